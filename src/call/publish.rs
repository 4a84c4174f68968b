//! `publish(target, (SELECT * FROM f(…)))`: a release as a table function.

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;

use super::value::ArgumentValue;
use crate::error;
use crate::publish::PublishNode;

/// Its SQL name.
pub(super) const NAME: &str = "publish";

/// The plan of a call.
pub(super) fn plan(target: &ArgumentValue, release: LogicalPlan) -> Result<LogicalPlan> {
    let ArgumentValue::Text(target) = target else {
        return Err(error::argument(
            NAME,
            "target",
            format!("must be a folder or the URL of one, in quotes, not {target}"),
        ));
    };
    PublishNode::plan(target, release)
}

/// What a call must look like.
pub(super) fn wrong() -> DataFusionError {
    error::call(
        NAME,
        "takes a target and what to publish: publish('folder/', (SELECT * FROM anonymize_eir(…)))",
    )
}
