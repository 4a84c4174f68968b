//! `publish(target, (SELECT * FROM f(…)))`: a release as a table function.

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;

use super::value::ArgumentValue;
use crate::error;
use crate::publish::{PublishNode, RequiredLevel};

/// Its SQL name.
pub(super) const NAME: &str = "publish";

/// The plan of a call.
pub(super) fn plan(
    target: &ArgumentValue,
    release: LogicalPlan,
    require: Option<&ArgumentValue>,
) -> Result<LogicalPlan> {
    let ArgumentValue::Text(target) = target else {
        return Err(error::argument(
            NAME,
            "target",
            format!("must be a folder or the URL of one, in quotes, not {target}"),
        ));
    };
    PublishNode::plan(target, release, require.map_or(Ok(vec![]), levels)?)
}

/// `{k: 10, prosecutor_max: 0.09}`.
fn levels(value: &ArgumentValue) -> Result<Vec<RequiredLevel>> {
    let wrong = || {
        let said = "must map measures to levels, such as {k: 10, prosecutor_max: 0.09}";
        error::argument(NAME, "require", said)
    };
    let ArgumentValue::Map(entries) = value else {
        return Err(wrong());
    };
    let level = |(measure, level): &(String, ArgumentValue)| {
        let level = match level {
            ArgumentValue::Number(digits) => digits.parse().ok().filter(|l: &f64| l.is_finite()),
            _ => None,
        };
        let measure = measure.clone();
        level.map(|level| RequiredLevel { measure, level })
    };
    entries
        .iter()
        .map(|entry| level(entry).ok_or_else(wrong))
        .collect()
}

/// What a call must look like.
pub(super) fn wrong() -> DataFusionError {
    error::call(
        NAME,
        "takes a target and what to publish: publish('folder/', (SELECT * FROM anonymize_eir(…))), and perhaps \
         require => {k: 10}",
    )
}
