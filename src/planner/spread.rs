//! Work on small tables for all threads.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary,
};

use super::records_of;
use crate::pipeline::PseudonymizeExec;

/// Deals the batches of a small input out to all partitions.
///
/// A scan divides a Parquet file by its row groups, and gives a file that has only one to one partition: all other threads
/// would look on until the first shuffle. What is published does not depend on the partition a record comes from.
#[derive(Debug)]
pub struct SpreadInput;

/// A smaller input is read at once.
const WORTH_IT: usize = 50_000;

/// Rows of a row group, by default. An input with more per partition has row groups for all of them.
const ROW_GROUP: usize = 1 << 20;

impl PhysicalOptimizerRule for SpreadInput {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if node.downcast_ref::<PseudonymizeExec>().is_none() {
                return Ok(Transformed::no(node));
            }
            let children = node.children().into_iter();
            let children = children.map(spread).collect::<Result<Vec<_>>>()?;
            let node = replace_children_if_necessary(node, children)?;
            Ok(Transformed::yes(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "SpreadInput"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn spread(input: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let input = Arc::clone(input);
    let partitions = input.output_partitioning().partition_count();
    let small = WORTH_IT..ROW_GROUP.saturating_mul(partitions);
    let is_small = records_of(&input).is_some_and(|records| small.contains(&records));
    if partitions == 1 || !is_small || !is_scan(&input) {
        return Ok(input);
    }
    let dealt = Partitioning::RoundRobinBatch(partitions);
    Ok(Arc::new(RepartitionExec::try_new(input, dealt)?))
}

/// Whether rows come as they are read.
fn is_scan(input: &Arc<dyn ExecutionPlan>) -> bool {
    match input.children().as_slice() {
        [] => true,
        [child] => input.downcast_ref::<ProjectionExec>().is_some() && is_scan(child),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion::datasource::MemTable;
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::register_all;

    /// The plan over a table with all rows in the first of two partitions.
    async fn plan(rows: usize) -> String {
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        register_all(&ctx).unwrap();
        // Twice, as programs may.
        register_all(&ctx).unwrap();
        let column = |modulus: i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(
                (0..rows as i64).map(|i| i % modulus),
            ))
        };
        let columns = [
            ("id", column(i64::MAX)),
            ("age", column(90)),
            ("value", column(7)),
        ];
        let all = RecordBatch::try_from_iter(columns).unwrap();
        let table = MemTable::try_new(all.schema(), vec![vec![all], vec![]]).unwrap();
        ctx.register_table("people", Arc::new(table)).unwrap();
        let sql =
            "SELECT * FROM anonymize_ir(people, id => id, qi => [age], sensitive => value, k => 3)";
        let plan = ctx.sql(sql).await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    #[tokio::test]
    async fn all_partitions_get_batches_of_a_table_that_is_worth_it() {
        let dealt = |plan: &str| plan.matches("RoundRobinBatch(2)").count();
        assert_eq!(dealt(&plan(1_000).await), 0);
        // For the profile and for the individuals.
        let plan = plan(WORTH_IT).await;
        assert_eq!(dealt(&plan), 2, "{plan}");
    }
}
