//! What `anonymize audit` and `anonymize compare` share: a call, its rows, and the levels they must reach.

use std::fmt::Write as _;
use std::io::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion_anonymize::publish::{Attained, RequiredLevel, judge, visible};
use datafusion_anonymize::{Phase, Step};
use datafusion_cli::pool_type::PoolType;

use crate::Failure;
use crate::output::{Output, end_at_interrupt};
use crate::progress::Progress;
use crate::session::{Limits, session};

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For machines: an array with an object per row
    Json,
}

/// Reads `k=10`.
pub fn required(text: &str) -> Result<RequiredLevel, String> {
    let expected = "expected a measure and a level, such as k=10 or eir_beta=0.5";
    let (measure, level) = text.split_once('=').ok_or(expected)?;
    let level: f64 = level.trim().parse().map_err(|_| expected)?;
    if measure.trim().is_empty() || !level.is_finite() {
        return Err(expected.into());
    }
    Ok(RequiredLevel {
        measure: measure.trim().to_owned(),
        level,
    })
}

/// Reads `postcode=postcodes.csv`.
pub fn hierarchy(text: &str) -> Result<(String, String), String> {
    let (column, file) = text
        .split_once('=')
        .ok_or("expected a column and a file, such as postcode=postcodes.csv")?;
    Ok((column.to_owned(), file.to_owned()))
}

/// Reads `age=0,120`.
pub fn domain(text: &str) -> Result<(String, Vec<String>), String> {
    let expected = "expected a column and its ends or values, such as age=0,120 or sex=F,M";
    let (column, values) = text.split_once('=').ok_or(expected)?;
    let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
    if column.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(expected.into());
    }
    Ok((column.trim().to_owned(), values))
}

/// Reads a share, and leaves it as it is written: shares are compared exactly.
pub fn share(text: &str) -> Result<String, String> {
    let decimal = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    match text.parse::<f64>() {
        Ok(share) if decimal && share > 0.0 && share <= 1.0 => Ok(text.to_owned()),
        _ => Err("expected a decimal above 0 and at most 1, such as 0.4".into()),
    }
}

/// One row of a report.
#[derive(Debug)]
pub struct Row {
    /// The section or the column, empty for the whole table.
    group: String,
    measure: String,
    value: Option<f64>,
    better: Option<String>,
    note: String,
}

/// The arguments of a call in SQL.
#[derive(Debug, Default)]
pub struct Arguments(String);

impl Arguments {
    /// A text in quotes.
    pub fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            let _ = write!(self.0, ", {name} => {}", quoted(value));
        }
    }

    /// A list of texts in quotes.
    pub fn texts(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            let _ = write!(self.0, ", {name} => {}", list(values));
        }
    }

    /// Names with a text each.
    pub fn map(&mut self, name: &str, entries: &[(String, String)]) {
        if !entries.is_empty() {
            let entry =
                |(key, value): &(String, String)| format!("{}: {}", quoted(key), quoted(value));
            let entries: Vec<_> = entries.iter().map(entry).collect();
            self.plain(name, Some(format!("MAP {{{}}}", entries.join(", "))));
        }
    }

    /// Names with a list of texts each.
    pub fn lists(&mut self, name: &str, entries: &[(String, Vec<String>)]) {
        if !entries.is_empty() {
            let entry = |(key, values): &(String, Vec<String>)| {
                format!("{}: {}", quoted(key), list(values))
            };
            let entries: Vec<_> = entries.iter().map(entry).collect();
            self.plain(name, Some(format!("MAP {{{}}}", entries.join(", "))));
        }
    }

    /// Something that needs no quotes.
    pub fn plain(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            let _ = write!(self.0, ", {name} => {value}");
        }
    }
}

/// A text as SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A list of texts as SQL.
pub fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A call of a function that measures, and how it runs.
#[derive(Debug)]
pub struct Call<'a> {
    pub function: &'a str,
    pub tables: &'a [&'a str],
    pub arguments: Arguments,
    /// The column of the function's rows that says what they are about, beside the measure.
    pub group: &'a str,
    pub memory_limit: Option<u64>,
}

/// Runs a call, prints its rows, and fails if a level is missed.
pub async fn run(call: Call<'_>, format: Format, levels: &[RequiredLevel]) -> Result<(), Failure> {
    end_at_interrupt()?;
    let group = call.group;
    let (context, _) = session(&Limits {
        batch_size: None,
        memory_bytes: call.memory_limit.map(usize::try_from).transpose()?,
        pool: PoolType::Fair,
        disk_bytes: None,
        sql_from_stdin: false,
        shows_values: false,
    })
    .await?;
    let tables: Vec<_> = call.tables.iter().map(|table| quoted(table)).collect();
    let sql = format!(
        "SELECT \"{group}\", measure, value, better, note FROM {}({}{})",
        call.function,
        tables.join(", "),
        call.arguments.0
    );
    let comparing = Step {
        phase: Phase::Comparing,
        done: 0,
        of: None,
    };
    let progress = Progress::of("comparing", move || vec![comparing]);
    let batches = context.sql(&sql).await?.collect().await?;
    drop(progress);
    let rows = rows(&batches);
    match format {
        Format::Table => print_table(&rows)?,
        Format::Json => print_json(group, &rows)?,
    }
    let missed = missed(&rows, levels)?;
    if missed.is_empty() {
        Ok(())
    } else {
        Err(missed.join("\nerror: ").into())
    }
}

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = vec![];
    for batch in batches {
        let text = |column: &ArrayRef, at: usize| {
            let column = column.as_string_opt::<i32>()?;
            column.is_valid(at).then(|| column.value(at).to_owned())
        };
        let [group, measure, value, better, note] = batch.columns() else {
            continue;
        };
        let values = value.as_primitive::<Float64Type>();
        for at in 0..batch.num_rows() {
            rows.push(Row {
                group: text(group, at).unwrap_or_default(),
                measure: text(measure, at).unwrap_or_default(),
                value: values.is_valid(at).then(|| values.value(at)),
                better: text(better, at),
                note: text(note, at).unwrap_or_default(),
            });
        }
    }
    rows
}

fn print_table(rows: &[Row]) -> Result<(), Failure> {
    let measures = rows.iter().map(|row| row.measure.chars().count()).max();
    let values = rows.iter().map(|row| shown(row.value).len()).max();
    let (measures, values) = (measures.unwrap_or(0), values.unwrap_or(0));
    for (at, row) in rows.iter().enumerate() {
        if at == 0 || rows[at - 1].group != row.group {
            let heading = if row.group.is_empty() {
                "in total"
            } else {
                &row.group
            };
            let space = if at == 0 { "" } else { "\n" };
            writeln!(Output, "{space}{}", visible(heading))?;
        }
        let value = shown(row.value);
        let (measure, note) = (&row.measure, visible(&row.note));
        writeln!(Output, "  {measure:<measures$}  {value:>values$}  {note}")?;
    }
    Ok(())
}

/// At most four digits after the point.
fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value.fract() == 0.0 => format!("{value}"),
        Some(value) => format!("{value:.4}"),
    }
}

fn print_json(group: &str, rows: &[Row]) -> Result<(), Failure> {
    let text = |text: &str| match text {
        "" => serde_json::Value::Null,
        text => text.into(),
    };
    let object = |row: &Row| {
        serde_json::json!({
            group: text(&row.group),
            "measure": row.measure,
            "value": row.value,
            "better": row.better,
            "note": row.note,
        })
    };
    let objects: Vec<_> = rows.iter().map(object).collect();
    writeln!(Output, "{}", serde_json::to_string_pretty(&objects)?)?;
    Ok(())
}

/// Faults of a table whose levels say less than they seem to: of nobody's records, or of people who are in two classes.
const FAULTS: [&str; 2] = ["records_without_id", "individuals_in_several_classes"];

/// What is said of each level that is missed, and of faults that nobody allowed.
fn missed(rows: &[Row], levels: &[RequiredLevel]) -> Result<Vec<String>, Failure> {
    let mut missed = vec![];
    for fault in FAULTS {
        let allowed = levels.is_empty() || levels.iter().any(|level| level.measure == fault);
        let found = rows.iter().find(|row| row.measure == fault);
        if let (false, Some(count @ 1.0..)) = (allowed, found.and_then(|row| row.value)) {
            missed.push(format!(
                "{fault} is {count}, so that no level is sure; correct the table, or allow them with --require \
                 {fault}={count}"
            ));
        }
    }
    let attained = rows.iter().filter_map(|row| {
        Some(Attained {
            measure: &row.measure,
            total: row.group.is_empty(),
            value: row.value,
            higher: row.better.as_deref()? == "higher",
        })
    });
    let judged = judge(levels, &attained.collect::<Vec<_>>());
    let judged = judged.map_err(|unknown| format!("--require: {unknown}"))?;
    let failed = judged.iter().filter(|level| !level.passed);
    missed.extend(failed.map(ToString::to_string));
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_bounds_in_the_right_direction() {
        let row = |measure: &str, value, better: Option<&str>| Row {
            group: String::new(),
            measure: measure.into(),
            value,
            better: better.map(Into::into),
            note: String::new(),
        };
        let rows = [
            row("k", Some(4.0), Some("higher")),
            row("eir_beta", Some(0.58), Some("lower")),
            row("t_ordered", None, Some("lower")),
            row("records", Some(9.0), None),
        ];
        let said = |text: &str| missed(&rows, &[required(text).unwrap()]);
        assert!(said("k=4").unwrap().is_empty());
        assert_eq!(said("k=5").unwrap(), ["k must be at least 5, but is 4"]);
        assert!(said("eir_beta=0.58").unwrap().is_empty());
        assert_eq!(said("eir_beta=0.57").unwrap().len(), 1);
        assert_eq!(said("t_ordered=1").unwrap().len(), 1);
        assert!(said("records=1").is_err());
        for wrong in ["k", "=3", "k=", "k=many", "k=inf"] {
            assert!(required(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn faults_miss_every_level() {
        let row = |measure: &str, value| Row {
            group: String::new(),
            measure: measure.into(),
            value: Some(value),
            better: Some("lower".into()),
            note: String::new(),
        };
        let rows = [
            row("records_without_id", 2.0),
            row("individuals_in_several_classes", 0.0),
            row("nloss", 0.1),
            row("ncp", 0.2),
            row("nloss", 0.3),
        ];
        let said = |levels: &[&str]| {
            let levels: Vec<_> = levels.iter().map(|text| required(text).unwrap()).collect();
            missed(&rows, &levels)
        };
        assert!(said(&[]).unwrap().is_empty());
        let found = said(&["ncp=1"]).unwrap();
        assert!(
            found.len() == 1 && found[0].starts_with("records_without_id is 2, "),
            "{found:?}"
        );
        assert!(said(&["ncp=1", "records_without_id=2"]).unwrap().is_empty());
        assert_eq!(said(&["ncp=1", "records_without_id=1"]).unwrap().len(), 1);
        // Each name once, also where other rows are between.
        let unknown = said(&["nothing=1"]).unwrap_err().to_string();
        assert_eq!(unknown.matches("nloss").count(), 1, "{unknown}");
    }

    #[test]
    fn domains_and_shares_are_read() {
        assert_eq!(
            domain("sex = F, M"),
            Ok(("sex".to_owned(), vec!["F".to_owned(), "M".to_owned()]))
        );
        for wrong in ["age", "=1", "age=", "age=1,,2"] {
            assert!(domain(wrong).is_err(), "{wrong}");
        }
        assert_eq!(share("0.40"), Ok("0.40".to_owned()));
        for wrong in ["0", "1.1", "-0.5", "1e-1", "nan", "", "."] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sql_is_quoted() {
        let mut arguments = Arguments::default();
        arguments.text("id", Some("o'id"));
        arguments.texts("qi", &["a".into(), "b".into()]);
        arguments.plain("l", Some(3));
        assert_eq!(arguments.0, ", id => 'o''id', qi => ['a', 'b'], l => 3");
        let mut arguments = Arguments::default();
        arguments.lists("domain", &[("age".into(), vec!["0".into(), "9".into()])]);
        assert_eq!(arguments.0, ", domain => MAP {'age': ['0', '9']}");
    }
}
