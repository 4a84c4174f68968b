//! Charts as SVG, with nothing to load.

use std::fmt::Write;

use super::figures::{Bar, Distribution};
use super::html::escaped;
use super::words::grouped;

const WIDTH: f64 = 680.0;
const LEFT: f64 = 8.0;

/// Vertical bars with their values above and labels below.
pub fn bars(title: &str, bars: &[Bar], unit: &str) -> String {
    let most = bars
        .iter()
        .map(|bar| bar.value)
        .fold(0.0, f64::max)
        .max(1.0);
    let (top, height) = (26.0, 150.0);
    let step = (WIDTH - 2.0 * LEFT) / bars.len().max(1) as f64;
    let mut svg = open(title, top + height + 40.0);
    for (i, bar) in bars.iter().enumerate() {
        let x = LEFT + step * i as f64;
        let h = height * bar.value / most;
        let y = top + height - h;
        let middle = x + step / 2.0;
        let _ = write!(
            svg,
            "<rect class=\"after\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{h:.1}\" rx=\"2\"><title>{}: {} {unit}</title></rect>",
            x + step * 0.12,
            step * 0.76,
            escaped(&bar.label),
            grouped(bar.value as u64),
        );
        let _ = write!(
            svg,
            "<text class=\"value\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            y - 6.0,
            grouped(bar.value as u64)
        );
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            top + height + 18.0,
            escaped(&short(&bar.label, step))
        );
    }
    axis(&mut svg, top + height);
    svg + "</svg>"
}

/// Horizontal bars from 0 to 1.
pub fn shares(title: &str, rows: &[(String, f64)]) -> String {
    let (label, line) = (190.0, 26.0);
    let width = WIDTH - label - 70.0;
    let mut svg = open(title, line * rows.len() as f64 + 10.0);
    for (i, (name, share)) in rows.iter().enumerate() {
        let y = 4.0 + line * i as f64;
        let _ = write!(
            svg,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <rect class=\"track\" x=\"{label}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"16\" rx=\"2\"/>\
             <rect class=\"after\" x=\"{label}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"16\" rx=\"2\"/>\
             <text class=\"number\" x=\"{:.1}\" y=\"{:.1}\">{:.3}</text>",
            label - 10.0,
            y + 13.0,
            escaped(&short(name, label * 2.0)),
            width * share.clamp(0.0, 1.0),
            label + width + 8.0,
            y + 13.0,
            share,
        );
    }
    svg + "</svg>"
}

/// Pairs of bars: before and after.
pub fn pairs(distribution: &Distribution) -> String {
    let counts = || distribution.before.iter().chain(&distribution.after);
    let most = counts().flatten().copied().fold(0.0, f64::max).max(1.0);
    let (top, height) = (10.0, 120.0);
    let step = (WIDTH - 2.0 * LEFT) / distribution.labels.len().max(1) as f64;
    let mut svg = open(
        &format!("{}: individuals before and after", distribution.column),
        top + height + 34.0,
    );
    for (i, label) in distribution.labels.iter().enumerate() {
        let x = LEFT + step * i as f64;
        for (side, count, class) in [
            (0.10, distribution.before[i], "before"),
            (0.51, distribution.after[i], "after"),
        ] {
            let x = x + step * side;
            let width = step * 0.39;
            let Some(count) = count else {
                let _ = write!(
                    svg,
                    "<rect class=\"hidden\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"6\"><title>{}: too few to be shown</title></rect>",
                    top + height - 6.0,
                    escaped(label)
                );
                continue;
            };
            let h = height * count / most;
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{h:.1}\" rx=\"1\"><title>{}, {class}: {}</title></rect>",
                top + height - h,
                escaped(label),
                grouped(count as u64),
            );
        }
        let _ = write!(
            svg,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + step / 2.0,
            top + height + 18.0,
            escaped(&short(label, step))
        );
    }
    axis(&mut svg, top + height);
    svg + "</svg>"
}

fn open(title: &str, height: f64) -> String {
    format!(
        "<svg role=\"img\" viewBox=\"0 0 {WIDTH} {height:.0}\" aria-label=\"{0}\"><title>{0}</title>",
        escaped(title)
    )
}

fn axis(svg: &mut String, y: f64) {
    let _ = write!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>",
        WIDTH - LEFT
    );
}

/// A label that fits into so many pixels.
fn short(label: &str, pixels: f64) -> String {
    let most = (pixels / 6.2) as usize;
    if label.chars().count() <= most {
        return label.to_owned();
    }
    // Of a range that does not fit, its beginning says enough.
    if let Some((from, _)) = label.split_once('–')
        && from.chars().count() < most
    {
        return format!("{from}–");
    }
    let kept: String = label.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}
