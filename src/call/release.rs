//! The call `release('target', table => 'name', verify => true)`: a table of a release.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::source::release::NAME;
use super::value::ArgumentValue;

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "reads a release, through its manifest",
    positional: 3,
    arguments: Cow::Borrowed(&[
        Argument::required(
            "target",
            ArgumentKind::Text,
            "the folder or URL of the release",
        ),
        Argument::optional(
            "table",
            ArgumentKind::Text,
            "one of its tables, if it has several",
        ),
        Argument::optional(
            "verify",
            ArgumentKind::Flag,
            "true to compare the hash of each file with the manifest",
        )
        .or("false"),
    ]),
    refused: &[],
    plan,
};

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let target = given.read(
        "target",
        "a folder or the URL of one, in quotes",
        |value| match value {
            ArgumentValue::Text(target) => Some(target.clone()),
            _ => None,
        },
    )?;
    let target = target
        .ok_or_else(|| given.refuse("target", "is missing: name a folder or the URL of one"))?;
    let table = given.read("table", "the name of a table", |value| {
        value.text().map(str::to_owned)
    })?;
    let verify = given.flag("verify")?;
    let source = given.load().release(&target, table.as_deref(), verify)?;
    LogicalPlanBuilder::scan(NAME, source, None)?.build()
}
