//! The call `sample_patients(individuals => n, seed => s)`.

use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use super::sample_patients;
use super::value::ArgumentValue;
use crate::error;

/// The function's name.
pub(super) const NAME: &str = "sample_patients";

const PARAMETERS: [(&str, u64); 2] = [("individuals", 1_000), ("seed", 1)];

/// Plans a call with unnamed and named arguments.
pub(super) fn plan(
    unnamed: &[ArgumentValue],
    named: &[(String, ArgumentValue)],
) -> Result<LogicalPlan> {
    let mut values = PARAMETERS.map(|(_, default)| default);
    if unnamed.len() > values.len() {
        return Err(error::call(NAME, "takes individuals and seed, no more"));
    }
    let positions = unnamed.iter().enumerate().map(Ok);
    let names = named
        .iter()
        .map(|(name, value)| -> Result<(usize, &ArgumentValue)> {
            let known = PARAMETERS.iter().position(|(p, _)| p == name);
            let position = known.ok_or_else(|| {
                let nearest = error::did_you_mean(name, PARAMETERS.map(|(p, _)| p));
                error::call(
                    NAME,
                    format!(
                        "there is no argument '{name}'{nearest} (arguments: individuals, seed)"
                    ),
                )
            })?;
            Ok((position, value))
        });
    for argument in positions.chain(names) {
        let (position, value) = argument?;
        values[position] = match value {
            ArgumentValue::Number(digits) => digits.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| {
            let name = PARAMETERS[position].0;
            error::argument(NAME, name, format!("must be a whole number, not {value}"))
        })?;
    }
    let table = sample_patients(values[0], values[1])?;
    // Plans tell scans apart by their names.
    let name = format!("{NAME}({}, {})", values[0], values[1]);
    LogicalPlanBuilder::scan(name, provider_as_source(table), None)?
        .alias(NAME)?
        .build()
}
