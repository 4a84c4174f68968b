//! Privacy against utility as SVG.

use std::fmt::Write;

use datafusion_anonymize::publish::visible;

use super::Outcome;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 52.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 30.0;

/// How every plot begins.
const BEGINNING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 420\" width=\"640\" height=\"420\" \
     font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1b2733\"><title>Privacy and utility</title>";

/// Whether the beginning of a file is that of a plot.
pub fn begins(file: &[u8]) -> bool {
    file.starts_with(BEGINNING.as_bytes())
}

/// Average risk to the right, loss upwards, under the name `axis`: the nearer to the lower left corner, the better.
pub fn svg(parameter: &str, axis: &str, outcomes: &[Outcome]) -> String {
    let points: Vec<_> = outcomes
        .iter()
        .filter_map(|o| {
            o.figures
                .as_ref()
                .ok()
                .map(|costs| (&o.value, costs.risk, costs.loss))
        })
        .collect();
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max).max(0.01) * 1.15;
    let (risk, loss) = (
        most(&mut points.iter().map(|p| p.1)),
        most(&mut points.iter().map(|p| p.2)),
    );
    let x = |value: f64| LEFT + (WIDTH - LEFT - RIGHT) * value / risk;
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / loss;
    let mut svg = format!(
        "{BEGINNING}<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"14\" font-weight=\"600\">Privacy and utility by {}: lower left is better</text>",
        escaped(parameter)
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (gx, gy) = (x(risk * share), y(loss * share));
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{gy:.1}\" x2=\"{:.1}\" y2=\"{gy:.1}\" stroke=\"#dde4ea\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#5b6b7a\">{:.2}</text>\
             <text x=\"{gx:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#5b6b7a\">{:.3}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            gy + 4.0,
            loss * share,
            HEIGHT - BOTTOM + 18.0,
            risk * share,
        );
    }
    let line: Vec<String> = points
        .iter()
        .map(|p| format!("{:.1},{:.1}", x(p.1), y(p.2)))
        .collect();
    let _ = write!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1d6fa3\" stroke-width=\"2\"/>",
        line.join(" ")
    );
    for (value, risk, loss) in &points {
        let _ = write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"#1d6fa3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} = {}</text>",
            x(*risk),
            y(*loss),
            x(*risk) + 9.0,
            y(*loss) - 7.0,
            escaped(parameter),
            escaped(value),
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">average risk to be found (prosecutor)</text>\
         <text transform=\"translate(18 {:.1}) rotate(-90)\" text-anchor=\"middle\">{axis}</text></svg>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0,
        (TOP + HEIGHT - BOTTOM) / 2.0,
    );
    svg
}

fn escaped(text: &str) -> String {
    visible(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
