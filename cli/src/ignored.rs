//! Clauses of SQL that the engine reads and does nothing about. Whoever wrote one would publish other rows than they think.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::sql::sqlparser::ast::TableFactor;

/// Refuses them.
#[derive(Debug)]
pub struct RefuseIgnored;

impl RelationPlanner for RefuseIgnored {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let clause = match &relation {
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => Some("TABLESAMPLE"),
            TableFactor::Table {
                with_ordinality: true,
                ..
            } => Some("WITH ORDINALITY"),
            _ => None,
        };
        match clause {
            None => Ok(RelationPlanning::Original(Box::new(relation))),
            Some(clause) => plan_err!(
                "query: {clause} is not supported, and would be ignored; leave it out, or say which rows are meant with WHERE"
            ),
        }
    }
}
