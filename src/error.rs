//! One place for the style of messages.
//!
//! A message names the function, the argument, what is allowed and what came, and where a name is unknown the
//! nearest one. It never holds a cell's value: rows are counted, not shown.

use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{DataFusionError, exec_datafusion_err, plan_datafusion_err};
use datafusion::parquet::errors::ParquetError;

/// Something is wrong with the call: raised before any data is read.
pub(crate) fn argument(
    function: &str,
    argument: &str,
    message: impl AsRef<str>,
) -> DataFusionError {
    plan_datafusion_err!("{function}: {argument} {}", message.as_ref())
}

/// Something is wrong with the call as a whole.
pub(crate) fn call(function: &str, message: impl AsRef<str>) -> DataFusionError {
    plan_datafusion_err!("{function}: {}", message.as_ref())
}

/// Something is wrong with the data.
pub(crate) fn data(function: &str, message: impl AsRef<str>) -> DataFusionError {
    exec_datafusion_err!("{function}: {}", message.as_ref())
}

/// The second pass over an input saw other rows than the first.
pub(crate) fn changed(function: &str) -> DataFusionError {
    data(
        function,
        "the input gave other rows when it was read again; store it in a table first",
    )
}

/// Whose messages hold no value of a cell: every function of this crate, and what publishes.
const OURS: &[&str] = &[
    "audit",
    "audit_buckets",
    "audit_classes",
    "categories",
    "class_key",
    "estimate",
    "estimate_count",
    "estimate_counts",
    "estimate_sum",
    "estimated",
    "hierarchy",
    "information_loss",
    "input",
    "ledger",
    "match_fraction",
    "publish",
    "query",
    "query_error",
    "query_error_summary",
    "relative_error",
    "release",
    "sample_patients",
    "similarity_attack",
    "vulnerable_classes",
];

/// Why something is not told, and where to look for it.
const WITHHELD: &str = "the engine's own message may show values of the data, so it is withheld; to see it, run the query \
     in a shell of the engine, such as datafusion-cli";

/// The gate for errors of work on data: what may show a value of a cell is told without it.
///
/// Engines like to show the value, or the whole row, that made them fail. So everything is withheld but what is known to
/// hold none: messages of this crate, and those about files, memory and names of columns. Of the others, what kind of error
/// it is and, where that can be told apart from values, the type, the line and the column.
pub(crate) fn input(function: &str, error: DataFusionError) -> DataFusionError {
    match withheld(&error) {
        None => error,
        Some(reason) => data(
            function,
            format!("the input ends with {reason}; {WITHHELD}"),
        ),
    }
}

/// The gate above a whole query, which also says which files are read.
pub(crate) fn of_query(
    function: &str,
    files: &[String],
    error: DataFusionError,
) -> DataFusionError {
    match input(function, error) {
        DataFusionError::Execution(message) if message.ends_with(WITHHELD) && !files.is_empty() => {
            exec_datafusion_err!("{message}; the query reads '{}'", files.join("', '"))
        }
        other => other,
    }
}

/// An error of a statement without values of cells, for whoever prints or logs it.
///
/// What is said about names, types and syntax is told as it is. Work on data should have been done by plans that mask their
/// errors, see [`MaskErrors`](crate::MaskErrors); but to plan is to look into files, too.
pub fn without_values(error: DataFusionError) -> DataFusionError {
    match withheld_of_plan(&error) {
        None => error,
        Some(reason) => exec_datafusion_err!("query: the input ends with {reason}; {WITHHELD}"),
    }
}

/// An error of a file or table that is looked up while a statement is planned.
pub(crate) fn unreadable(name: &str, error: &DataFusionError) -> DataFusionError {
    let reason = match withheld_of_plan(error) {
        None => text(error),
        Some(reason) => format!("it ends with {reason}; {WITHHELD}"),
    };
    plan_datafusion_err!("cannot read '{name}': {reason}")
}

/// An error of the rows of a file or table that is read while a statement is planned.
pub(crate) fn unreadable_rows(name: &str, error: &DataFusionError) -> DataFusionError {
    let reason = match withheld(error) {
        None => text(error),
        Some(reason) => format!("it ends with {reason}; {WITHHELD}"),
    };
    plan_datafusion_err!("cannot read '{name}': {reason}")
}

/// The message of an error of planning that is told as part of another.
pub(crate) fn text(error: &DataFusionError) -> String {
    if let Some(reason) = withheld_of_plan(error) {
        return format!("the input ends with {reason}; {WITHHELD}");
    }
    match error {
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => message.clone(),
        other => other.strip_backtrace(),
    }
}

/// What is told in place of an error before any row is worked on; none if it can be told as it is.
fn withheld_of_plan(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::Plan(_)
        | DataFusionError::SQL(..)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_) => None,
        // It names the scheme of a URL in the statement.
        DataFusionError::Execution(message)
            if message.starts_with("Unsupported object store scheme: ") =>
        {
            None
        }
        _ => withheld(error),
    }
}

/// What is told in place of an error; none if it can be told as it is.
fn withheld(error: &DataFusionError) -> Option<String> {
    let reason = match error.find_root() {
        DataFusionError::Execution(message)
        | DataFusionError::Plan(message)
        | DataFusionError::Internal(message)
            if is_ours(message) =>
        {
            return None;
        }
        DataFusionError::SchemaError(..)
        | DataFusionError::ResourcesExhausted(_)
        | DataFusionError::ObjectStore(_) => return None,
        // What the operating system says; anything else may have been put there by whoever reads the file.
        DataFusionError::IoError(e) if e.get_ref().is_none() => return None,
        DataFusionError::IoError(e) => format!("a file that cannot be read ({:?})", e.kind()),
        DataFusionError::ArrowError(e, _) => of_arrow(e),
        DataFusionError::ParquetError(e) => of_parquet(e).to_owned(),
        DataFusionError::Execution(message) if unequal(message).is_some() => unequal(message)?,
        DataFusionError::ExecutionJoin(_) => "work that was interrupted".to_owned(),
        DataFusionError::Internal(_) => "an error that the engine did not expect".to_owned(),
        _ => "an error".to_owned(),
    };
    Some(reason)
}

fn is_ours(message: &str) -> bool {
    let speaker = message.split_once(": ").map_or("", |(speaker, _)| speaker);
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    let anonymizes = ["anonymize_", "anatomize_"]
        .iter()
        .any(|prefix| speaker.starts_with(prefix));
    OURS.contains(&speaker) || anonymizes && speaker.chars().all(word)
}

fn of_parquet(error: &ParquetError) -> &'static str {
    match error {
        ParquetError::EOF(_)
        | ParquetError::NeedMoreData(_)
        | ParquetError::NeedMoreDataRange(_) => "a Parquet file that ends too early",
        ParquetError::General(message) if message.starts_with("Invalid Parquet file") => {
            "a file that is no Parquet file, or is cut off"
        }
        ParquetError::NYI(_) => "a Parquet file with a feature that the engine does not know",
        _ => "a Parquet file that cannot be decoded",
    }
}

fn of_arrow(error: &ArrowError) -> String {
    let told = match error {
        ArrowError::CastError(message) => match cast_to(message) {
            Some(to) => return format!("a value that cannot be cast to {to}"),
            None => "a value that cannot be cast",
        },
        ArrowError::ParseError(message) => match unparsed(message) {
            Some(place) => return place,
            None => "a value that cannot be parsed",
        },
        ArrowError::CsvError(message) => match fields(message).or_else(|| unequal(message)) {
            Some(place) => return place,
            None => "a CSV file that cannot be parsed",
        },
        ArrowError::JsonError(_) => "JSON that cannot be parsed",
        ArrowError::AvroError(_) => "an Avro file that cannot be decoded",
        ArrowError::IpcError(_) => "an Arrow file that cannot be decoded",
        ArrowError::ParquetError(_) => "a Parquet file that cannot be decoded",
        ArrowError::IoError(..) => "a file that cannot be read",
        ArrowError::DivideByZero => "a division by zero",
        ArrowError::ArithmeticOverflow(_) => "a number that is too large",
        ArrowError::OffsetOverflowError(_) => "more text than one array can hold",
        _ => "an error in a computation",
    };
    told.to_owned()
}

/// The type in `Cannot cast string '…' to value of Int32 type` and `Can't cast value … to type Int32`.
fn cast_to(message: &str) -> Option<DataType> {
    let strings = message
        .rsplit_once("' to value of ")
        .and_then(|(_, tail)| tail.strip_suffix(" type"));
    let numbers = || message.rsplit_once(" to type ").map(|(_, tail)| tail);
    data_type(strings.or_else(numbers)?)
}

/// The place in `Error while parsing value '…' as type 'Int64' for column 3 at line 7. Row data: '[…]'`.
fn unparsed(message: &str) -> Option<String> {
    let (_, tail) = message.split_once("' as type '")?;
    let (to, tail) = tail.split_once("' for column ")?;
    let (column, tail) = tail.split_once(" at line ")?;
    let (line, _) = tail.split_once(". Row data")?;
    let (to, column, line) = (data_type(to)?, number(column)?, number(line)?);
    let column = column.saturating_add(1);
    Some(format!(
        "a value that cannot be parsed as {to} (line {line} as the engine counts, column {column})"
    ))
}

/// The numbers in `incorrect number of fields for line 3, expected 4 got 5`.
fn fields(message: &str) -> Option<String> {
    let tail = message.strip_prefix("incorrect number of fields for line ")?;
    let (line, tail) = tail.split_once(", expected ")?;
    let (expected, got) = tail.split_once(" got ")?;
    let got = got.strip_prefix("more than ").unwrap_or(got);
    let (line, expected) = (number(line)?, number(expected)?);
    let found = match number(got)? == expected {
        true => "more".to_owned(),
        false => number(got)?.to_string(),
    };
    Some(format!(
        "a line of a CSV file that has {found} fields where {expected} are expected (line {line} as the engine counts)"
    ))
}

/// The numbers in `Encountered unequal lengths between records … Expected 4 fields, found 5 fields at record 3`.
fn unequal(message: &str) -> Option<String> {
    let message = message
        .replace("records", "fields")
        .replace("line", "record");
    let (begin, tail) = message.split_once(". Expected ")?;
    let (expected, tail) = tail.split_once(" fields, found ")?;
    let (found, record) = tail.split_once(" fields at record ")?;
    let (expected, found, record) = (number(expected)?, number(found)?, number(record)?);
    begin.starts_with("Encountered unequal lengths").then(|| {
        format!(
            "a line of a CSV file that has {found} fields where {expected} are expected (record {record})"
        )
    })
}

/// A number of a line or a column.
fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// A type that takes no parameter, so that its name is one of a few words.
fn data_type(name: &str) -> Option<DataType> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric());
    plain.then(|| name.parse().ok())?
}

/// `; did you mean 'age'?` if one of the names is close to `name`, else nothing.
pub(crate) fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let wanted = name.to_lowercase();
    names
        .into_iter()
        .map(|candidate| (levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| format!("; did you mean '{candidate}'?"))
        .unwrap_or_default()
}

/// `1 record`, `2 records`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: DataFusionError) -> String {
        input("anonymize_eir", error).strip_backtrace()
    }

    #[test]
    fn values_are_withheld_and_places_are_told() {
        let cast = |m: &str| told(ArrowError::CastError(m.to_owned()).into());
        let parse = |m: &str| told(ArrowError::ParseError(m.to_owned()).into());
        let csv = |m: &str| told(ArrowError::CsvError(m.to_owned()).into());
        let run = |m: &str| told(DataFusionError::Execution(m.to_owned()));
        for (said, part) in [
            (
                cast("Cannot cast string 'canary' to value of Int32 type"),
                "a value that cannot be cast to Int32;",
            ),
            (
                cast("Can't cast value canary to type UInt8"),
                "a value that cannot be cast to UInt8;",
            ),
            (
                cast("Cannot cast string 'x' to value of canary type"),
                "a value that cannot be cast;",
            ),
            (
                parse(
                    "Error while parsing value 'canary' as type 'Int64' for column 3 at line 7. Row data: '[1,canary]'",
                ),
                "a value that cannot be parsed as Int64 (line 7 as the engine counts, column 4);",
            ),
            (
                parse(
                    "Error while parsing value 'x' as type 'canary' for column 3 at line 7. Row data: '[1,canary]'",
                ),
                "a value that cannot be parsed;",
            ),
            (
                csv("incorrect number of fields for line 3, expected 4 got 5"),
                "a line of a CSV file that has 5 fields where 4 are expected (line 3 as the engine counts);",
            ),
            (
                csv("incorrect number of fields for line 3, expected 4 got more than 4"),
                "that has more fields where 4 are expected (line 3 as the engine counts);",
            ),
            (
                csv("incorrect number of fields for line canary"),
                "a CSV file that cannot be parsed;",
            ),
            (
                run(
                    "Encountered unequal lengths between records on CSV file whilst inferring schema. Expected 4 fields, \
                     found 5 fields at record 3",
                ),
                "a line of a CSV file that has 5 fields where 4 are expected (record 3);",
            ),
            (run("cannot use 'canary'"), "an error;"),
            (run("canary: cannot be used"), "an error;"),
            (
                told(DataFusionError::External("canary".into())),
                "an error;",
            ),
            (
                told(std::io::Error::other("canary").into()),
                "a file that cannot be read (Other);",
            ),
        ] {
            assert!(said.contains(part), "{part}: {said}");
            assert!(!said.contains("canary"), "{said}");
            assert!(
                said.starts_with("Execution error: anonymize_eir: the input ends with "),
                "{said}"
            );
        }
    }

    #[test]
    fn what_holds_no_value_is_told_as_it_is() {
        for told_as_is in [
            DataFusionError::Execution("anonymize_eir: l = 3 cannot be reached".to_owned()),
            DataFusionError::Execution("publish: nothing is published".to_owned()),
            DataFusionError::ResourcesExhausted("no memory for OrderExec".to_owned()),
            std::io::Error::from_raw_os_error(2).into(),
        ] {
            let before = told_as_is.to_string();
            assert_eq!(told(told_as_is), before);
        }
        // About a statement, before it runs; a computation must not say it.
        let plan = || DataFusionError::Plan("there is no column 'aeg'".to_owned());
        assert_eq!(without_values(plan()).to_string(), plan().to_string());
        assert!(!told(plan()).contains("aeg"));
    }

    #[test]
    fn nearest_names() {
        let names = ["age", "postcode", "gender"];
        assert_eq!(did_you_mean("pstcode", names), "; did you mean 'postcode'?");
        assert_eq!(did_you_mean("Age", names), "; did you mean 'age'?");
        assert_eq!(did_you_mean("salary", names), "");
    }
}
