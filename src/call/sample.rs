//! The call `sample_patients(individuals => n, seed => s)`.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::sample_patients;

const NAME: &str = "sample_patients";

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "invented patients, to try things on",
    positional: 2,
    arguments: Cow::Borrowed(&[
        Argument::optional("individuals", ArgumentKind::Count, "patients to make").or("1000"),
        Argument::optional("seed", ArgumentKind::Count, "another seed, other patients").or("1"),
    ]),
    refused: &[],
    plan,
};

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let individuals = given.count_within("individuals", 0, u64::MAX)?;
    let seed = given.count_within("seed", 0, u64::MAX)?;
    let (individuals, seed) = (individuals.unwrap_or(1_000), seed.unwrap_or(1));
    let table = sample_patients(individuals, seed)?;
    // Plans tell scans apart by their names.
    let name = format!("{NAME}({individuals}, {seed})");
    LogicalPlanBuilder::scan(name, provider_as_source(table), None)?
        .alias(NAME)?
        .build()
}
