//! The plan that compares two tables individual by individual.

use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col};

use super::measured::{CollapseNode, CompareNode};
use crate::measure::{COUNTS, CollapseSpec, CompareSpec};

/// One row with the counts of a comparison. Both tables have an id, the columns that are compared and sensitive values, in this
/// order; then come hierarchies.
pub(crate) fn compare(
    spec: CompareSpec,
    published: LogicalPlan,
    original: LogicalPlan,
    hierarchies: Vec<LogicalPlan>,
) -> Result<LogicalPlan> {
    let collapsed = |table: LogicalPlan| {
        let collapse = CollapseSpec {
            function: spec.function.clone(),
            carried: spec.columns.len(),
        };
        CollapseNode::plan(collapse, vec![table])
    };
    let mut inputs = vec![collapsed(published)?, collapsed(original)?];
    inputs.extend(hierarchies);
    let sums = COUNTS.map(|name| sum(col(name)).alias(name));
    LogicalPlanBuilder::from(CompareNode::plan(spec, inputs)?)
        .aggregate(Vec::<Expr>::new(), sums)?
        .build()
}
