//! Work on small tables for all threads.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary,
};

use super::records_of;
use crate::physical::PseudonymizeExec;

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
    let is_scan = input.children().is_empty();
    if partitions == 1 || !is_scan || !records_of(&input).is_some_and(|n| small.contains(&n)) {
        return Ok(input);
    }
    let dealt = Partitioning::RoundRobinBatch(partitions);
    Ok(Arc::new(RepartitionExec::try_new(input, dealt)?))
}
