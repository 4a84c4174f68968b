//! The report as one page.

use std::fmt::Write;

use super::figures::Figures;
use super::{svg, visible, words};
use crate::publish::manifest::Manifest;

/// How every page begins.
pub const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
     <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
     <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\
     <link rel=\"icon\" href=\"data:,\"><title>Release report: ";

/// The page. It loads nothing and runs nothing.
pub fn page(figures: &Figures) -> String {
    let manifest = &figures.manifest;
    let mut page = format!(
        "{BEGINNING}{}</title><style>{STYLE}</style></head><body><main>",
        escaped(&manifest.model)
    );
    header(&mut page, manifest);
    published(&mut page, manifest);
    list(
        &mut page,
        "The guarantee in plain words",
        &words::guarantee(manifest),
        "p",
    );
    list(
        &mut page,
        "What is not protected",
        &words::unprotected(manifest),
        "li",
    );
    context(&mut page);
    data(&mut page, figures);
    risk(&mut page, manifest);
    utility(&mut page, figures);
    list(
        &mut page,
        "De-identification governance",
        &words::governance(),
        "li",
    );
    appendix(&mut page, manifest);
    let _ = writeln!(
        page,
        "<footer><p>{}</p><p>{} {}, release {}</p></footer></main></body></html>",
        words::DISCLAIMER,
        escaped(&manifest.tool.name),
        escaped(&manifest.tool.version),
        escaped(&manifest.release)
    );
    page
}

fn header(page: &mut String, manifest: &Manifest) {
    let _ = write!(
        page,
        "<header><p class=\"kicker\">Release report</p><h1>{}</h1>\
         <p class=\"lead\">Published {} by <code>{}</code>. The files were read again after writing; they satisfy the requirement{}.</p></header>",
        escaped(&manifest.model),
        escaped(&manifest.created),
        escaped(&manifest.function),
        if manifest.truth.checked == "exact" {
            " and are true of the original table"
        } else {
            ""
        }
    );
    let loss = manifest
        .information_loss
        .iter()
        .find(|l| l.column.is_none());
    let cards = [
        (
            words::grouped(manifest.counts.individuals_out),
            "individuals published",
        ),
        (
            words::grouped(manifest.counts.records_out),
            "records published",
        ),
        (
            words::measured(manifest.measure("k").or(manifest.measure("group_min"))),
            "people in the smallest class",
        ),
        (
            manifest
                .measure("prosecutor_max")
                .map_or("–".to_owned(), words::percent),
            "largest risk to be found",
        ),
        (
            loss.and_then(|l| l.value)
                .map_or("–".to_owned(), words::percent),
            "of the detail lost",
        ),
    ];
    page.push_str("<section class=\"cards\">");
    for (value, name) in cards {
        let _ = write!(
            page,
            "<div class=\"card\"><b>{value}</b><span>{name}</span></div>"
        );
    }
    page.push_str("</section>");
}

fn published(page: &mut String, manifest: &Manifest) {
    page.push_str("<section><h2>What was published</h2><table><thead><tr><th>Column</th><th>Role</th><th>How it is published</th></tr></thead><tbody>");
    let mut row = |column: &str, role: &str, how: &str| {
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td>{role}</td><td>{how}</td></tr>",
            escaped(column)
        );
    };
    if let Some(individual) = &manifest.roles.individual {
        row(
            individual,
            "pseudonym",
            "random, the same for all records of a person; no id is published",
        );
    }
    let words = words::of_system(manifest);
    for (column, how) in manifest.roles.qi.iter().zip(&words.qi) {
        row(column, "quasi-identifier", how);
    }
    for column in &manifest.roles.sensitive {
        row(column, "sensitive", words.sensitive);
    }
    for column in &manifest.roles.keep {
        row(column, "kept", "as it is, and not protected");
    }
    page.push_str("</tbody></table>");
    if manifest.tables.len() > 1 {
        page.push_str("<table><thead><tr><th>Table</th><th>Columns</th><th class=\"n\">Records</th></tr></thead><tbody>");
        for table in &manifest.tables {
            let _ = write!(
                page,
                "<tr><td><code>{}</code></td><td>{}</td><td class=\"n\">{}</td></tr>",
                escaped(&table.name),
                escaped(&table.columns.join(", ")),
                words::grouped(table.records)
            );
        }
        page.push_str("</tbody></table>");
    }
    let counts = &manifest.counts;
    let _ = write!(
        page,
        "<table class=\"facts\"><tbody>\
         <tr><th>Individuals in the original</th><td>{}</td></tr>\
         <tr><th>Individuals left out</th><td>{}</td></tr>\
         <tr><th>Records in the original</th><td>{}</td></tr>\
         <tr><th>Classes</th><td>{}</td></tr>\
         <tr><th>Parameters</th><td>{}</td></tr></tbody></table></section>",
        words::count(counts.individuals_in),
        words::count(counts.individuals_suppressed),
        words::count(counts.records_in),
        words::grouped(counts.classes),
        escaped(&parameters(manifest)),
    );
}

fn context(page: &mut String) {
    page.push_str("<section><h2>Context assessment</h2><p>To be filled in by the publisher; it cannot be read from data.</p><table class=\"blank\"><tbody>");
    for line in words::CONTEXT {
        let _ = write!(page, "<tr><th>{line}</th><td></td></tr>");
    }
    page.push_str("</tbody></table></section>");
}

fn data(page: &mut String, figures: &Figures) {
    page.push_str("<section><h2>Data assessment</h2>");
    if !figures.class_sizes.is_empty() {
        page.push_str("<h3>How large the classes are</h3><p>Individuals by the number of people in their class, who all look the same.</p>");
        page.push_str(&svg::bars(
            "Individuals by the size of their class",
            &figures.class_sizes,
            "individuals",
        ));
    }
    if !figures.distributions.is_empty() {
        let _ = write!(
            page,
            "<h3>Distributions before and after</h3><p><span class=\"key before\"></span> original \
             <span class=\"key after\"></span> release, each individual spread evenly over the values it may have. \
             Counts below {} are not shown.</p>",
            figures.manifest.counts.hidden_below
        );
        for distribution in &figures.distributions {
            let _ = write!(
                page,
                "<figure><figcaption><code>{}</code></figcaption>{}</figure>",
                escaped(&distribution.column),
                svg::pairs(distribution)
            );
        }
    }
    page.push_str("</section>");
}

fn risk(page: &mut String, manifest: &Manifest) {
    page.push_str("<section><h2>Identifiability assessment and mitigation</h2>");
    if manifest.measure("prosecutor_max").is_none() {
        let _ = write!(page, "<p>{}</p></section>", words::NO_CLASSES);
        return;
    }
    page.push_str("<table><thead><tr><th>Attacker</th><th>Knows</th><th class=\"n\">Largest risk</th><th class=\"n\">Average risk</th></tr></thead><tbody>");
    for risk in words::risks(manifest) {
        let shown = |value: Option<f64>| value.map_or("–".to_owned(), words::percent);
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            risk.attacker,
            risk.knows,
            shown(risk.largest),
            shown(risk.average)
        );
    }
    page.push_str("</tbody></table><h3>People above the usual thresholds</h3><table><thead><tr><th>Threshold of the prosecutor's risk</th><th>Above it are classes of at most</th><th class=\"n\">People above it</th></tr></thead><tbody>");
    for (threshold, people, measure) in &words::THRESHOLDS {
        let share = manifest.measure(measure);
        let class = if share.is_some_and(|s| s > 0.0) {
            "n some"
        } else {
            "n none"
        };
        let _ = write!(
            page,
            "<tr><td>{threshold}</td><td>{people} people</td><td class=\"{class}\">{}</td></tr>",
            share.map_or("–".to_owned(), words::percent)
        );
    }
    page.push_str("</tbody></table></section>");
}

fn utility(page: &mut String, figures: &Figures) {
    let losses: Vec<(String, f64)> = figures
        .manifest
        .information_loss
        .iter()
        .filter(|loss| loss.measure == "nloss")
        .filter_map(|loss| Some((loss.column.clone()?, loss.value?)))
        .collect();
    if losses.is_empty() && figures.query_errors.is_empty() {
        return;
    }
    page.push_str("<section><h2>What is left for users</h2>");
    if !losses.is_empty() {
        let left_out = match figures.manifest.counts.hides_suppressed() {
            true => {
                "People who were left out do not count, because it is hidden how many they are."
            }
            false => "People who were left out count as lost.",
        };
        let _ = write!(
            page,
            "<h3>Loss per column</h3><p>0: every value as it was. 1: nothing is left. {left_out}</p>"
        );
        page.push_str(&svg::shares("Loss per column", &losses));
    }
    if let (Some(median), Some(p95)) = (figures.query_error_median, figures.query_error_p95) {
        let _ = write!(
            page,
            "<h3>Error of count queries</h3><p>Random count queries over the original and the release: half of them are wrong by \
             at most {}, nineteen of twenty by at most {}.</p>{}",
            words::percent(median),
            words::percent(p95),
            svg::bars(
                "Queries by relative error",
                &figures.query_errors,
                "queries"
            )
        );
    }
    page.push_str("</section>");
}

fn appendix(page: &mut String, manifest: &Manifest) {
    page.push_str("<section class=\"appendix\"><h2>Appendix</h2><h3>All measures</h3><table><thead><tr><th>Measure</th><th class=\"n\">Value</th><th>Meaning</th></tr></thead><tbody>");
    for measure in manifest
        .audit
        .iter()
        .filter(|m| m.section != "not protected")
    {
        let _ = write!(
            page,
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td>{}</td></tr>",
            escaped(&measure.measure),
            words::measured(measure.value),
            escaped(&measure.note)
        );
    }
    page.push_str("</tbody></table><h3>Files</h3><table><thead><tr><th>File</th><th class=\"n\">Records</th><th class=\"n\">Bytes</th></tr></thead><tbody>");
    for file in &manifest.files {
        let _ = write!(
            page,
            "<tr><td><code class=\"long\">{}</code><br><code class=\"long\">SHA-256 {}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escaped(&file.path),
            escaped(&file.sha256),
            words::grouped(file.records),
            words::grouped(file.bytes)
        );
    }
    page.push_str("</tbody></table></section>");
}

fn list(page: &mut String, title: &str, items: &[String], tag: &str) {
    let (open, close) = if tag == "li" {
        ("<ul>", "</ul>")
    } else {
        ("", "")
    };
    let _ = write!(page, "<section><h2>{title}</h2>{open}");
    for item in items {
        let _ = write!(page, "<{tag}>{}</{tag}>", escaped(item));
    }
    let _ = write!(page, "{close}</section>");
}

fn parameters(manifest: &Manifest) -> String {
    let parameters = manifest.parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    parameters.join(", ")
}

/// Text that stays text, on one line.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

const STYLE: &str = "
:root{--ink:#1b2733;--soft:#5b6b7a;--line:#dde4ea;--paper:#fff;--back:#f3f6f8;--accent:#1d6fa3;--before:#b4c2ce;--warn:#b4561b;--good:#2f7d4f}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}
main{max-width:780px;margin:2rem auto;background:var(--paper);padding:2.5rem 3rem;border-radius:10px;box-shadow:0 1px 3px #0002}
.kicker{margin:0;color:var(--accent);font-weight:600;letter-spacing:.08em;text-transform:uppercase;font-size:.75rem}
h1{margin:.2rem 0 .5rem;font-size:2rem;line-height:1.2}
h2{margin:2.2rem 0 .6rem;font-size:1.2rem;border-bottom:2px solid var(--line);padding-bottom:.3rem}
h3{margin:1.4rem 0 .3rem;font-size:1rem}
p{margin:.5rem 0}.lead{color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(5,1fr);gap:.7rem;margin:1.4rem 0}
.card{background:var(--back);border-radius:8px;padding:.8rem .9rem;border-top:3px solid var(--accent)}
.card b{display:block;font-size:1.35rem;line-height:1.3}.card span{color:var(--soft);font-size:.78rem;line-height:1.3;display:block}
table{border-collapse:collapse;width:100%;margin:.6rem 0;font-size:.9rem}
th,td{text-align:left;padding:.38rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
thead th{color:var(--soft);font-weight:600;font-size:.8rem}
.facts th,.blank th{font-weight:400;color:var(--soft);width:16rem}.blank td{height:2.6rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.some{color:var(--warn);font-weight:600}.none{color:var(--good);font-weight:600}
code{font:.86em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.long{word-break:break-all;color:var(--soft)}
ul{padding-left:1.2rem}li{margin:.3rem 0}
figure{margin:.8rem 0 1.2rem}figcaption{font-weight:600}
svg{display:block;width:100%;height:auto;margin:.3rem 0}
svg text{font:11px system-ui,-apple-system,'Segoe UI',Roboto,Arial,sans-serif;fill:var(--soft)}
svg .value,svg .label{text-anchor:middle}svg .name{text-anchor:end;fill:var(--ink);font-size:12px}svg .value,svg .number{fill:var(--ink)}
.after{fill:var(--accent);background:var(--accent)}.before{fill:var(--before);background:var(--before)}.track{fill:var(--back)}
.hidden{fill:none;stroke:var(--soft);stroke-width:.7;stroke-dasharray:2 2}.axis{stroke:var(--line);stroke-width:1.5}
.key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin:0 .2rem 0 .6rem;vertical-align:-1px}
.appendix table{font-size:.8rem}
footer{margin-top:2.5rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8rem}
@media(max-width:640px){main{padding:1.2rem;margin:0;border-radius:0}.cards{grid-template-columns:repeat(2,1fr)}}
@media print{body{background:#fff;font-size:11pt}main{box-shadow:none;margin:0;max-width:none;padding:0}section,figure,table{break-inside:avoid}.appendix,.appendix table{break-inside:auto}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
";

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(escaped("a\0\nb"), "a\\u{0}\\nb");
    }
}
