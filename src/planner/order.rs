//! Sorts by random orders.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::engine::OrderExec;
use crate::pipeline::{AnonymizeExec, IndividualsExec};

/// Puts [`OrderExec`] in the place of the engine's sorts below the operators of this crate.
///
/// What they sort by is random, which the engine cannot know.
#[derive(Debug)]
pub struct OrderInMemory;

impl PhysicalOptimizerRule for OrderInMemory {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let sorts = node.downcast_ref::<AnonymizeExec>().is_some()
                || node.downcast_ref::<IndividualsExec>().is_some();
            if !sorts {
                return Ok(Transformed::no(node));
            }
            let children = node.children().into_iter().map(ordered).collect();
            let node = replace_children_if_necessary(node, children)?;
            Ok(Transformed::yes(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "OrderInMemory"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn ordered(child: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let order = child
        .downcast_ref::<SortExec>()
        .and_then(OrderExec::instead_of);
    match order {
        Some(order) => Arc::new(order),
        None => Arc::clone(child),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use crate::register_all;

    #[tokio::test]
    async fn random_orders_are_not_sorted_by_the_engine_and_others_are() {
        for partitions in [1, 2] {
            let config = SessionConfig::new().with_target_partitions(partitions);
            let ctx = SessionContext::new_with_config(config);
            register_all(&ctx).unwrap();
            let sql = "SELECT * FROM anonymize_ir(sample_patients(10), id => patient_id, qi => [sex], \
                       sensitive => diagnosis, k => 2) ORDER BY diagnosis";
            let plan = ctx.sql(sql).await.unwrap();
            let plan = plan.create_physical_plan().await.unwrap();
            let plan = displayable(plan.as_ref()).indent(false).to_string();
            assert_eq!(plan.matches("OrderExec: by=[__order]").count(), 1, "{plan}");
            let by_block = plan.matches("OrderExec: by=[__block, __order]");
            assert_eq!(by_block.count(), 1, "{plan}");
            assert_eq!(plan.matches("SortExec").count(), 1, "{plan}");
        }
    }
}
