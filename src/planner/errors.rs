//! Which plans may show no value of the data in an error.

use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::pipeline::{
    AnonymizeNode, ClassesNode, CollapseNode, CompareNode, CoverNode, GatherNode, LossNode,
    ReportNode,
};
use crate::publish::PublishNode;

/// A session with this extension in its configuration shows no value of the data in the error of any query, not only of
/// those that call a function of this crate.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::*;
/// use datafusion_anonymize::{MaskErrors, register_all};
///
/// # #[tokio::main(flavor = "multi_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let config = SessionConfig::new().with_extension(Arc::new(MaskErrors));
/// let ctx = SessionContext::new_with_config(config);
/// register_all(&ctx)?;
/// let sql = "SELECT CAST(name AS INT) FROM (SELECT concat('Alice', value) AS name FROM range(0, 3))";
/// let error = ctx.sql(sql).await?.collect().await.unwrap_err();
/// assert!(!error.to_string().contains("Alice"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct MaskErrors;

/// Scalar and aggregate functions of this crate.
pub(crate) const EXPRESSIONS: &[&str] = &[
    "__bucket_distance",
    "__expected_members",
    "__known_fraction",
    "__workload",
    "__workload_answers",
    "__workload_bounds_report",
    "__workload_bounds_summary",
    "__workload_matches",
    "__workload_report",
    "__workload_summary",
    "anonymize_class_tuple",
    "anonymize_different_values",
    "anonymize_unique_sets",
    "anonymize_value_hash",
    "bucket_sum",
    "class_key",
    "column_values",
    "estimate_count",
    "fixed_sum",
    "hierarchy_label",
    "match_fraction",
    "relative_error",
];

/// The function in whose name the errors of a plan are told without values; none if they are told as they are.
pub(super) fn masked_for(plan: &LogicalPlan, session: &dyn Session) -> Result<Option<String>> {
    let all = session.config().get_extension::<MaskErrors>().is_some();
    let mut function = all.then(|| "query".to_owned());
    plan.apply_with_subqueries(|node| {
        if let Some(name) = function_of(node) {
            function = Some(name);
            return Ok(TreeNodeRecursion::Stop);
        }
        for expression in node.expressions() {
            if function.is_none() && calls_ours(&expression)? {
                function = Some("query".to_owned());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(function)
}

/// The files that a plan reads, where they are named in the query.
pub(super) fn files_of(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut files = vec![];
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let name = scan.table_name.table();
            if name.contains(['.', '/']) && !files.iter().any(|known| known == name) {
                files.push(name.to_owned());
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(files)
}

/// The function that a node of this crate stands for.
fn function_of(node: &LogicalPlan) -> Option<String> {
    let LogicalPlan::Extension(extension) = node else {
        return None;
    };
    let any = extension.node.as_any();
    let name = if let Some(node) = any.downcast_ref::<AnonymizeNode>() {
        node.spec().function()
    } else if let Some(node) = any.downcast_ref::<ClassesNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<LossNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<CoverNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<CollapseNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<GatherNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<CompareNode>() {
        &node.spec().function
    } else if let Some(node) = any.downcast_ref::<ReportNode>() {
        node.function()
    } else if any.downcast_ref::<PublishNode>().is_some() {
        "publish"
    } else {
        return None;
    };
    Some(name.to_owned())
}

fn calls_ours(expr: &Expr) -> Result<bool> {
    expr.exists(|inner| {
        let name = match inner {
            Expr::ScalarFunction(call) => call.func.name(),
            Expr::AggregateFunction(call) => call.func.name(),
            Expr::WindowFunction(call) => call.fun.name(),
            _ => return Ok(false),
        };
        Ok(EXPRESSIONS.contains(&name))
    })
}
