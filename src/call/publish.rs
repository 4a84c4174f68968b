//! `publish(target, (SELECT * FROM f(…)))`: a release as a table function.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::value::ArgumentValue;
use crate::publish::PublishNode;

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
    PublishNode::plan(&target, given.relation("release")?)
}
