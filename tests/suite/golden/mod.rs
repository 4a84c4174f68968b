//! Golden files: what the crate gives at fixed seeds, word by word, so that a change that should change nothing changes
//! nothing.
//!
//! They are in `snapshots/`, a file for each subject, also those of the program (`cli/tests/golden`). Where one differs, its
//! test prints the difference. Who means to change something makes all of them anew with one command, and reads what
//! `git diff` says then:
//!
//! ```text
//! INSTA_UPDATE=always cargo test --workspace --test suite --test cli -- golden messages help_of
//! ```
//!
//! `messages` and `help_of` are the snapshots of messages and help that lie elsewhere. A file that lost its test stays where
//! it is, and is to be removed by hand.
//!
//! What differs from machine to machine or from run to run is masked or left out: names and times of releases, folders, the
//! last digits of fractions. Sessions that give rows have one partition, so that the order of rows is part of what is
//! recorded.

mod calls;
pub mod measured;
mod messages;
mod plans;
mod published;
mod record;
mod releases;
mod surface;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::engine::{context, make_wards, printed, rows};
use record::golden;

/// The tables of all calls: `visits`, records of 240 made-up patients; `moved`, where the records of some of them disagree
/// on the year of birth; `people`, one record of each patient, some of whom hide their year of birth; and the hierarchy
/// `wards`.
async fn session(partitions: usize) -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(partitions));
    for sql in [
        "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 240, seed => 5)",
        "CREATE TABLE moved AS SELECT * EXCEPT (birth_year), \
         CASE WHEN birth_month = 3 AND ward = 'surgery' THEN birth_year + 1 ELSE birth_year END AS birth_year FROM visits",
        "CREATE TABLE people AS SELECT patient_id, sex, race, birth_year, birth_year % 5 = 0 AS hidden, \
         education_years, birth_month, min(diagnosis) AS diagnosis, min(ward) AS ward, min(visit_date) AS visit_date \
         FROM visits GROUP BY ALL",
    ] {
        rows(&ctx, sql).await.unwrap();
    }
    make_wards(&ctx).await;
    ctx
}

/// A part of a golden file.
fn part(title: &str, text: &str) -> String {
    format!("## {title}\n{}\n\n", text.trim_end())
}

/// A table: its columns, the number of its rows, the first of them, and a hash of all if there are more.
fn table(schema: &Schema, batches: &[RecordBatch], first: usize) -> String {
    let lines: Vec<String> = printed(batches)
        .iter()
        .map(|row| rounded(&row.join(" | ")))
        .collect();
    let columns = schema.fields().iter().map(|field| {
        let null = if field.is_nullable() {
            ""
        } else {
            ", never NULL"
        };
        format!("{}: {}{null}\n", field.name(), field.data_type())
    });
    let mut text: String = columns.collect();
    text += &format!("{} rows", lines.len());
    if lines.len() > first {
        text += &format!(", {}", hash(lines.join("\n")));
    }
    text += "\n";
    for line in lines.iter().take(first) {
        text += line;
        text += "\n";
    }
    text
}

/// The first half of a BLAKE3 hash.
fn hash(bytes: impl AsRef<[u8]>) -> String {
    blake3::hash(bytes.as_ref()).to_hex()[..32].to_owned()
}

/// What a query gives.
async fn result(ctx: &SessionContext, sql: &str, first: usize) -> String {
    let frame = ctx.sql(sql).await;
    let frame = frame.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let schema = frame.schema().as_arrow().clone();
    let batches = frame.collect().await;
    table(
        &schema,
        &batches.unwrap_or_else(|e| panic!("{sql}: {e}")),
        first,
    )
}

/// The text with long fractions rounded to twelve digits: the last ones depend on the order in which numbers were added.
fn rounded(text: &str) -> String {
    let numeric = |c: char| c.is_ascii_digit() || c == '.';
    let mut out = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(numeric) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !numeric(c)).unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        out += before;
        match number.parse::<f64>() {
            // Twelve digits, and the shortest number that has them.
            Ok(value) if number.contains('.') && number.len() > 13 && !after.starts_with('e') => {
                let value: f64 = format!("{value:.11e}").parse().unwrap();
                let whole = if value.fract() == 0.0 { ".0" } else { "" };
                out += &format!("{value}{whole}");
            }
            _ => out += number,
        }
        rest = after;
    }
    out + rest
}

/// The text without the names of releases and of their files, which are random: 32 hexadecimal digits after a word of these.
fn masked_names(text: &str) -> String {
    let mut text = text.to_owned();
    for before in ["\"release\": \"", "release ", "data-", "part-"] {
        let mut at = 0;
        while let Some(found) = text[at..].find(before) {
            at += found + before.len();
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            let end = text[at..].find(|c| !hex(c)).unwrap_or(text.len() - at);
            if end == 32 {
                text.replace_range(at..at + end, "RANDOM");
            }
        }
    }
    text
}

#[test]
fn golden_names_are_masked() {
    let name = "0123456789abcdef0123456789abcdef";
    let text = format!("release {name}: data-{name}/part-{name}.parquet, sha {name}, data-12");
    let said = format!("release RANDOM: data-RANDOM/part-RANDOM.parquet, sha {name}, data-12");
    assert_eq!(masked_names(&text), said);
}

#[test]
fn golden_fractions_are_rounded() {
    let text = "ab12.5, 0.30000000000000004 [0.1234567890123456] 1.0000000000000002, 123456789.12345678 3.1e-9 7";
    let said = "ab12.5, 0.3 [0.123456789012] 1.0, 123456789.123 3.1e-9 7";
    assert_eq!(rounded(text), said);
}
