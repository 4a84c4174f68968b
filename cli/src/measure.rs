//! What `anonymize audit` and `anonymize compare` share: a call, its rows, and the levels they must reach.

use std::io::Write;
use std::marker::PhantomData;

use clap::{ArgMatches, Command, FromArgMatches};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion_anonymize::publish::{Attained, RequiredLevel, judge, visible};
use datafusion_anonymize::{ArgumentValue, Phase, Step, call};
use datafusion_cli::pool_type::PoolType;

use crate::Failure;
use crate::options::Options;
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

/// What sets a command that measures apart.
pub trait Described {
    /// One line.
    const ABOUT: &str;
    /// What else the help says before the options.
    const MORE: &str;
    /// What it says after them.
    const AFTER_HELP: &str;
    /// The help of `--require`.
    const REQUIRE: &str;
    /// The function and its arguments.
    const OPTIONS: &Options;
    /// The column of the function's rows that says what they are about, beside the measure.
    const GROUP: &str;
}

/// A command that calls a function that measures.
#[derive(Debug)]
pub struct Measuring<D> {
    arguments: Vec<(&'static str, ArgumentValue)>,
    common: Common,
    described: PhantomData<D>,
}

/// What all of them take.
#[derive(Debug, clap::Args)]
struct Common {
    #[arg(long, value_name = "MEASURE=LEVEL", value_parser = required)]
    require: Vec<RequiredLevel>,

    /// Most memory, such as 512m or 10g; what needs more is spilled to disk or refused [default: no limit]
    #[arg(short, long, value_name = "SIZE", value_parser = crate::sql::size)]
    memory_limit: Option<u64>,

    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl<D: Described> clap::Args for Measuring<D> {
    fn augment_args(command: Command) -> Command {
        let command = Common::augment_args(D::OPTIONS.add_to(command));
        command
            .mut_arg("require", |arg| arg.help(D::REQUIRE))
            .about(D::ABOUT)
            .long_about(format!("{}\n\n{}", D::ABOUT, D::MORE))
            .after_long_help(D::AFTER_HELP)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<D: Described> FromArgMatches for Measuring<D> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            arguments: D::OPTIONS.read(matches),
            common: Common::from_arg_matches(matches)?,
            described: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
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

/// A text as SQL.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl<D: Described> Measuring<D> {
    /// Runs the call, prints its rows, and fails if a level is missed.
    pub async fn run(self) -> Result<(), Failure> {
        end_at_interrupt()?;
        let Common {
            require,
            memory_limit,
            format,
        } = self.common;
        let (context, _) = session(&Limits {
            batch_size: None,
            memory_bytes: memory_limit.map(usize::try_from).transpose()?,
            pool: PoolType::Fair,
            disk_bytes: None,
            sql_from_stdin: false,
            shows_values: false,
        })
        .await?;
        let comparing = Step {
            phase: Phase::Comparing,
            done: 0,
            of: None,
        };
        let progress = Progress::of("comparing", move || vec![comparing]);
        let frame = call(&context, D::OPTIONS.function, [], self.arguments)?;
        let columns = [D::GROUP, "measure", "value", "better", "note"];
        let batches = frame.select_columns(&columns)?.collect().await?;
        drop(progress);
        let rows = rows(&batches);
        match format {
            Format::Table => print_table(&rows)?,
            Format::Json => print_json(D::GROUP, &rows)?,
        }
        let missed = missed(&rows, &require)?;
        if missed.is_empty() {
            Ok(())
        } else {
            Err(missed.join("\nerror: ").into())
        }
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
}
