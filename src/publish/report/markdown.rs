//! The report as text.

use std::fmt::Write;

use super::figures::Figures;
use super::{visible, words};

/// How every report as text begins.
pub const BEGINNING: &str = "# Release report: ";

/// The same content as the page, with tables instead of charts.
pub fn page(figures: &Figures) -> String {
    let manifest = &figures.manifest;
    let mut page = format!(
        "{BEGINNING}{}\n\n{} {} by `{}`, release `{}`.\n\n",
        escaped(&manifest.model),
        if words::missed(manifest) {
            "Made"
        } else {
            "Published"
        },
        manifest.created,
        manifest.function,
        manifest.release
    );
    if words::missed(manifest) {
        let _ = write!(page, "**{}**\n\n", words::NOT_PUBLISHED);
    }
    if !manifest.required.is_empty() {
        section(
            &mut page,
            "Required levels",
            "- ",
            &words::required(manifest),
        );
    }
    page.push_str("## What was published\n\n");
    let counts = &manifest.counts;
    let roles = [
        ("quasi-identifiers", manifest.roles.qi.join(", ")),
        ("sensitive", manifest.roles.sensitive.join(", ")),
        ("kept", manifest.roles.keep.join(", ")),
        (
            "individuals published",
            words::grouped(counts.individuals_out),
        ),
        (
            "individuals in the original",
            words::count(counts.individuals_in),
        ),
        (
            "individuals left out",
            words::count(counts.individuals_suppressed),
        ),
        ("records published", words::grouped(counts.records_out)),
        ("classes", words::grouped(counts.classes)),
    ];
    table(
        &mut page,
        ["what", "value"],
        roles.iter().map(|(a, b)| [(*a).to_owned(), b.clone()]),
    );
    if manifest.tables.len() > 1 {
        let tables = manifest.tables.iter();
        let tables = tables.map(|t| {
            let records = words::grouped(t.records);
            [t.name.clone(), t.columns.join(", "), records]
        });
        table(&mut page, ["table", "columns", "records"], tables);
    }
    section(
        &mut page,
        "The guarantee in plain words",
        "",
        &words::guarantee(manifest),
    );
    section(
        &mut page,
        "What is not protected",
        "- ",
        &words::unprotected(manifest),
    );
    let context: Vec<String> = words::CONTEXT.iter().map(|c| format!("{c}: …")).collect();
    section(&mut page, "Context assessment", "- ", &context);
    page.push_str("## Data assessment\n\n");
    let bars = |bars: &[crate::publish::Bar]| -> Vec<[String; 2]> {
        bars.iter()
            .map(|b| [b.label.clone(), words::grouped(b.value as u64)])
            .collect()
    };
    table(
        &mut page,
        ["people in the class", "individuals"],
        bars(&figures.class_sizes),
    );
    for distribution in &figures.distributions {
        let shown =
            |count: Option<f64>| count.map_or("too few".to_owned(), |c| words::grouped(c as u64));
        let rows = (0..distribution.labels.len()).map(|i| {
            let counts = (distribution.before[i], distribution.after[i]);
            [
                distribution.labels[i].clone(),
                shown(counts.0),
                shown(counts.1),
            ]
        });
        table(
            &mut page,
            [distribution.column.as_str(), "before", "after"],
            rows,
        );
    }
    page.push_str("## Identifiability assessment and mitigation\n\n");
    if manifest.measure("prosecutor_max").is_none() {
        let _ = write!(page, "{}\n\n", words::NO_CLASSES);
    } else {
        let share = |value: Option<f64>| value.map_or("–".to_owned(), words::percent);
        let risks = words::risks(manifest).into_iter();
        let risks = risks.map(|r| [r.attacker.to_owned(), share(r.largest), share(r.average)]);
        table(
            &mut page,
            ["attacker", "largest risk", "average risk"],
            risks,
        );
        let above = words::THRESHOLDS.iter();
        let above = above.map(|(t, _, m)| [(*t).to_owned(), share(manifest.measure(m))]);
        table(&mut page, ["threshold", "people above it"], above);
    }
    page.push_str("## What is left for users\n\n");
    let losses = manifest.information_loss.iter();
    let losses = losses.map(|l| {
        let column = l.column.clone().unwrap_or_else(|| "all columns".to_owned());
        [l.measure.clone(), column, words::measured(l.value)]
    });
    table(&mut page, ["loss", "column", "value"], losses);
    table(
        &mut page,
        ["error of count queries", "queries"],
        bars(&figures.query_errors),
    );
    section(
        &mut page,
        "De-identification governance",
        "- ",
        &words::governance(),
    );
    page.push_str("## Appendix\n\n");
    let measures = manifest
        .audit
        .iter()
        .filter(|m| m.section != "not protected");
    let measures = measures.map(|m| [m.measure.clone(), words::measured(m.value), m.note.clone()]);
    table(&mut page, ["measure", "value", "meaning"], measures);
    let files = manifest.files.iter();
    let files = files.map(|f| [f.path.clone(), words::grouped(f.bytes), f.sha256.clone()]);
    table(&mut page, ["file", "bytes", "SHA-256"], files);
    page + words::DISCLAIMER + "\n"
}

fn section(page: &mut String, title: &str, bullet: &str, items: &[String]) {
    let _ = write!(page, "## {title}\n\n");
    for item in items {
        let gap = if bullet.is_empty() { "\n\n" } else { "\n" };
        let _ = write!(page, "{bullet}{}{gap}", escaped(item));
    }
    if !bullet.is_empty() {
        page.push('\n');
    }
}

fn table<const N: usize>(
    page: &mut String,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let head = head.map(escaped);
    let _ = writeln!(page, "| {} |\n|{}", head.join(" | "), "---|".repeat(N));
    for row in rows {
        let row = row.map(|cell| escaped(&cell));
        let _ = writeln!(page, "| {} |", row.join(" | "));
    }
    page.push('\n');
}

/// Text that stays text, on one line: what would be markup, a link or the end of a cell is escaped.
fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut safe = String::with_capacity(text.len());
    let mut before = None;
    for (at, c) in text.char_indices() {
        let after = &text[at + c.len_utf8()..];
        let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let acts = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '|' | '~' | '$' => true,
            '_' => !(in_word(before) && in_word(after.chars().next())),
            // What looks like an address becomes a link.
            ':' => after.starts_with("//"),
            '.' => {
                let word = safe.as_bytes().last_chunk::<3>();
                word.is_some_and(|word| word.eq_ignore_ascii_case(b"www"))
            }
            _ => false,
        };
        if acts {
            safe.push('\\');
        }
        safe.push(c);
        before = Some(c);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        for (name, shown) in [
            ("birth_year", "birth_year"),
            (
                "_a_ **b** `c` ~d~ $e$",
                "\\_a\\_ \\*\\*b\\*\\* \\`c\\` \\~d\\~ \\$e\\$",
            ),
            ("a|b\nc", "a\\|b\\\\nc"),
            ("<script>&lt;", "\\<script\\>\\&lt;"),
            ("![x](http://y)", "!\\[x\\](http\\://y)"),
            ("WWW.x.org, a.b", "WWW\\.x.org, a.b"),
            ("C:\\d", "C:\\\\d"),
        ] {
            assert_eq!(escaped(name), shown);
        }
    }
}
