//! `estimated(published)`: a published table over which ordinary COUNT queries are answered by estimation.
//!
//! ```text
//! SELECT disease, count(*) FROM estimated(published) WHERE age > 30 GROUP BY disease
//! ```
//!
//! To the engine it is a table with the original's types, so that queries are planned as if nothing were generalized. It
//! cannot be read: [`EstimateCounts`] replaces every count over it by the plan of `estimate(…)`.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::{Options, Query, plan};
use crate::call::arguments::{Arguments, Function};
use crate::call::source::input;
use crate::error;
use crate::measure::sql::estimate;

const NAME: &str = "estimated";

/// The function.
pub(in crate::measure::sql) const FUNCTION: Function = Function {
    name: NAME,
    help: "a published table over which ordinary counts are estimated",
    positional: 1,
    arguments: Cow::Borrowed(&[
        estimate::PUBLISHED,
        plan::ID,
        plan::QI,
        plan::DOMAIN,
        plan::HIERARCHY,
        plan::ANATOMIZED,
    ]),
    refused: &[],
    plan: table,
};

fn table(given: &mut Arguments) -> Result<LogicalPlan> {
    let options = Options::take(given)?;
    let published = given.relation("published")?;
    let options = options.checked(NAME, published.schema())?;
    let schema = estimate::original_schema(published.schema())?;
    let table = EstimatedTable {
        schema: Arc::new(schema.as_arrow().clone()),
        published,
        options,
    };
    input::scan_apart(NAME, provider_as_source(Arc::new(table)))
}

/// A published table with the types of the original.
#[derive(Debug)]
struct EstimatedTable {
    published: LogicalPlan,
    schema: SchemaRef,
    options: Options,
}

#[async_trait]
impl TableProvider for EstimatedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(error::call(
            NAME,
            "answers SELECT count(*) or count(DISTINCT individual) with WHERE and GROUP BY, no other queries; read the published table itself",
        ))
    }
}

/// Replaces counts over [`EstimatedTable`]s by estimates. It must come before the engine's own rules, which would add
/// casts to comparisons.
#[derive(Debug)]
pub(crate) struct EstimateCounts;

impl AnalyzerRule for EstimateCounts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::Aggregate(aggregate) = &node else {
                return Ok(Transformed::no(node));
            };
            let mut conditions = vec![];
            let Some(provider) = table_below(&aggregate.input, &mut conditions) else {
                return Ok(Transformed::no(node));
            };
            match provider.downcast_ref::<EstimatedTable>() {
                Some(table) => Ok(Transformed::yes(rewrite(aggregate, table, conditions)?)),
                None => Ok(Transformed::no(node)),
            }
        })?;
        if !rewritten.transformed {
            return Ok(rewritten.data);
        }
        // What may be NULL is told differently below, so schemas above are read again.
        let plan = rewritten
            .data
            .transform_up_with_subqueries(|node| Ok(Transformed::yes(node.recompute_schema()?)))?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "estimate_counts"
    }
}

/// The table below filters and plain selections of columns, and the filters' conditions.
fn table_below(plan: &LogicalPlan, conditions: &mut Vec<Expr>) -> Option<Arc<dyn TableProvider>> {
    match plan {
        LogicalPlan::TableScan(scan) => source_as_provider(&scan.source).ok(),
        LogicalPlan::SubqueryAlias(alias) => table_below(&alias.input, conditions),
        LogicalPlan::Projection(projection) => {
            let plain = |expr: &Expr| matches!(expr, Expr::Column(_));
            let all = projection.expr.iter().all(plain);
            all.then(|| table_below(&projection.input, conditions))?
        }
        LogicalPlan::Filter(filter) => {
            conditions.push(filter.predicate.clone());
            table_below(&filter.input, conditions)
        }
        _ => None,
    }
}

fn rewrite(
    aggregate: &Aggregate,
    table: &EstimatedTable,
    conditions: Vec<Expr>,
) -> Result<LogicalPlan> {
    let published = &table.published;
    // Columns are the published table's, whatever aliases stand between.
    let below = |expr: Expr| -> Result<Expr> {
        let rewritten = expr.transform(|expr| {
            let Expr::Column(column) = &expr else {
                return Ok(Transformed::no(expr));
            };
            let found = published
                .schema()
                .iter()
                .find(|(_, f)| *f.name() == column.name);
            let qualifier = found.and_then(|(qualifier, _)| qualifier.cloned());
            let column = Column::new(qualifier, column.name.clone());
            Ok(Transformed::yes(Expr::Column(column)))
        })?;
        Ok(rewritten.data)
    };
    let [count] = aggregate.aggr_expr.as_slice() else {
        return Err(error::call(NAME, "answers one count per query"));
    };
    let count = below(count.clone().unalias())?;
    let keys = aggregate
        .group_expr
        .iter()
        .enumerate()
        .map(|(i, key)| Ok((below(key.clone().unalias())?, format!("__group_{i}"))))
        .collect::<Result<Vec<_>>>()?;
    let conditions = conditions
        .into_iter()
        .map(below)
        .collect::<Result<Vec<_>>>()?;
    let query = Query::of_count(&count, table.options.id.as_deref(), conditions, keys)?;
    let estimated = estimate::plan_query(published.clone(), query, &table.options)?;

    let mut columns = vec![];
    for (i, (qualifier, field)) in aggregate.schema.iter().enumerate() {
        let value = if i < aggregate.group_expr.len() {
            col(format!("__group_{i}"))
        } else {
            // A count is a whole number; half a record more or less is nothing to rely on.
            cast(col("estimate") + lit(0.5), DataType::Int64)
        };
        columns.push(value.alias_qualified(qualifier.cloned(), field.name()));
    }
    LogicalPlanBuilder::from(estimated)
        .project(columns)?
        .build()
}
