//! The plans that look at individuals one by one.

use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col};

use super::measured::{CollapseNode, CompareNode, GatherNode};
use crate::measure::{COUNTS, CollapseSpec, CompareSpec, GatherSpec};

/// One row with the counts of a comparison. Both tables have an id, the columns that are compared and sensitive values, in this
/// order; then come hierarchies.
pub(crate) fn compare(
    spec: CompareSpec,
    published: LogicalPlan,
    original: LogicalPlan,
    hierarchies: Vec<LogicalPlan>,
) -> Result<LogicalPlan> {
    let carried = spec.columns.len();
    let mut inputs = vec![
        collapsed(&spec.function, carried, published)?,
        collapsed(&spec.function, carried, original)?,
    ];
    inputs.extend(hierarchies);
    let sums = COUNTS.map(|name| sum(col(name)).alias(name));
    LogicalPlanBuilder::from(CompareNode::plan(spec, inputs)?)
        .aggregate(Vec::<Expr>::new(), sums)?
        .build()
}

/// A row for each individual and class of a table, which has an id, its classes if the spec says so, and sensitive values.
pub(crate) fn gather(spec: GatherSpec, table: LogicalPlan) -> Result<LogicalPlan> {
    let collapsed = collapsed(&spec.function, usize::from(spec.classes), table)?;
    GatherNode::plan(spec, vec![collapsed])
}

fn collapsed(function: &str, carried: usize, table: LogicalPlan) -> Result<LogicalPlan> {
    let spec = CollapseSpec {
        function: function.to_owned(),
        carried,
    };
    CollapseNode::plan(spec, vec![table])
}
