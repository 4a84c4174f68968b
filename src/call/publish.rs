//! `publish(target, (SELECT * FROM f(…)))`: a release as a table function.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::value::ArgumentValue;
use crate::publish::{PublishNode, RequiredLevel};

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: "publish",
    help: "writes a release to a folder, verified, or nothing at all",
    positional: 2,
    arguments: Cow::Borrowed(&[
        Argument::required(
            "target",
            ArgumentKind::Text,
            "an empty or new folder, or the URL of one",
        ),
        Argument::required(
            "release",
            ArgumentKind::Relation,
            "(SELECT * FROM f(…)) with one of the anonymizing functions f",
        ),
        Argument::optional(
            "require",
            ArgumentKind::Levels,
            "levels that measures must reach before anything is visible: {k: 10, prosecutor_max: 0.09}",
        )
        .or("none"),
    ]),
    refused: &[],
    plan,
};

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let target = match given.take("target") {
        Some(ArgumentValue::Text(target)) => target,
        Some(other) => {
            let allowed = "must be a folder or the URL of one, in quotes";
            return Err(given.wrong("target", allowed, &other));
        }
        None => return Err(given.refuse("target", "is missing: name a folder or the URL of one")),
    };
    let required = match given.take("require") {
        None => vec![],
        Some(value) => levels(&value).ok_or_else(|| {
            let message = "must map measures to levels, such as {k: 10, prosecutor_max: 0.09}";
            given.refuse("require", message)
        })?,
    };
    let release = given.relation("release")?;
    PublishNode::plan(&target, release, required)
}

fn levels(value: &ArgumentValue) -> Option<Vec<RequiredLevel>> {
    let ArgumentValue::Map(entries) = value else {
        return None;
    };
    let level = |(measure, level): &(String, ArgumentValue)| match level {
        ArgumentValue::Number(digits) => {
            let level = digits.parse().ok().filter(|l: &f64| l.is_finite())?;
            let measure = measure.clone();
            Some(RequiredLevel { measure, level })
        }
        _ => None,
    };
    entries.iter().map(level).collect()
}
