//! The types that a plan's columns will have when it runs.

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;

/// A plan whose schema says the types that its columns will have.
///
/// The engine brings the branches of a CASE, the sides of a UNION and the like to one type when it analyzes a plan; until then
/// the schema shows the type of one of them. Whoever decides by types must ask this plan: a text may become a view, a whole
/// number a real one.
pub(crate) fn coerced(plan: LogicalPlan) -> Result<LogicalPlan> {
    TypeCoercion::new().analyze(plan, &ConfigOptions::default())
}
