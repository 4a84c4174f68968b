//! One place for the style of messages.
//!
//! A message names the function, the argument, what is allowed and what came, and where a name is unknown the
//! nearest one. It never holds a cell's value: rows are counted, not shown.

use datafusion::arrow::error::ArrowError;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{DataFusionError, exec_datafusion_err, plan_datafusion_err};

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

/// What may be told of an error of the input: engines like to show the value that made them fail.
pub(crate) fn input(function: &str, error: DataFusionError) -> DataFusionError {
    let reason = match error.find_root() {
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::CastError(_) => "a value that cannot be cast",
            ArrowError::ParseError(_) | ArrowError::CsvError(..) | ArrowError::JsonError(_) => {
                "a value that cannot be parsed"
            }
            ArrowError::DivideByZero => "a division by zero",
            ArrowError::ArithmeticOverflow(_) => "a number that is too large",
            _ => "an error in a computation",
        },
        // Messages of this crate hold no cell, and those about files and memory are needed as they are.
        DataFusionError::Execution(message)
            if message.starts_with("anonymize_")
                || message.starts_with(&format!("{function}: ")) =>
        {
            return error;
        }
        DataFusionError::ResourcesExhausted(_)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::IoError(_)
        | DataFusionError::ParquetError(_) => return error,
        _ => "an error",
    };
    data(
        function,
        format!("the input ends with {reason}; run its query alone to see where"),
    )
}

/// The message of an error that is told as part of another.
pub(crate) fn text(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => message.clone(),
        other => other.strip_backtrace(),
    }
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

    #[test]
    fn nearest_names() {
        let names = ["age", "postcode", "gender"];
        assert_eq!(did_you_mean("pstcode", names), "; did you mean 'postcode'?");
        assert_eq!(did_you_mean("Age", names), "; did you mean 'age'?");
        assert_eq!(did_you_mean("salary", names), "");
    }
}
