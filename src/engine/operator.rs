//! What all operators have in common.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::{SortOptions, concat_batches};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements, PhysicalExpr};
use datafusion::physical_expr::{LexRequirement, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::{
    DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties,
};
use futures::StreamExt;

/// Properties of an operator that promises nothing about order or partitioning but the number of partitions.
pub(crate) fn properties(
    schema: SchemaRef,
    partitions: usize,
    emission: EmissionType,
) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        emission,
        Boundedness::Bounded,
    ))
}

/// The column at a position of an operator's input.
pub(crate) fn column(input: &Arc<dyn ExecutionPlan>, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(input.schema().field(index).name(), index))
}

/// Ascending order by the columns at these positions.
pub(crate) fn ascending_by(
    input: &Arc<dyn ExecutionPlan>,
    indexes: &[usize],
) -> Vec<PhysicalSortExpr> {
    let options = SortOptions {
        descending: false,
        nulls_first: false,
    };
    let by = indexes.iter().map(|i| column(input, *i));
    by.map(|by| PhysicalSortExpr::new(by, options)).collect()
}

/// Requires ascending order by the columns at these positions.
pub(crate) fn ascending(
    input: &Arc<dyn ExecutionPlan>,
    indexes: &[usize],
) -> Option<OrderingRequirements> {
    let required = ascending_by(input, indexes).into_iter().map(Into::into);
    LexRequirement::new(required).map(OrderingRequirements::new)
}

/// The only child.
pub(crate) fn only_child(
    mut children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match (children.pop(), children.pop()) {
        (Some(child), None) => Ok(child),
        _ => internal_err!("expected one child"),
    }
}

/// Requires all children but the first, which streams, in one partition.
pub(crate) fn others_whole(children: usize) -> InputDistributionRequirements {
    let mut required = vec![Distribution::SinglePartition; children];
    required[0] = Distribution::UnspecifiedDistribution;
    InputDistributionRequirements::new(required)
}

/// Whether more partitions of a child help: of the first only.
pub(crate) fn first_only(children: usize) -> Vec<bool> {
    (0..children).map(|child| child == 0).collect()
}

/// All rows of a plan of one partition, with memory for what is made of them.
pub(crate) async fn collect(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    reservation: &MemoryReservation,
) -> Result<RecordBatch> {
    let mut stream = plan.execute(0, Arc::clone(context))?;
    let mut batches = vec![];
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // The values, and as much again for the points, cells or labels made of them.
        reservation.try_grow(4 * sliced_size(&batch))?;
        batches.push(batch);
    }
    Ok(concat_batches(&plan.schema(), &batches)?)
}

/// Shows an operator with its facts, on one line or, in a tree, one line each.
pub(crate) fn show(
    format: DisplayFormatType,
    f: &mut fmt::Formatter<'_>,
    name: &str,
    facts: &[(&str, String)],
) -> fmt::Result {
    let facts = facts.iter().map(|(key, value)| format!("{key}={value}"));
    match format {
        DisplayFormatType::TreeRender => {
            facts.into_iter().try_for_each(|fact| writeln!(f, "{fact}"))
        }
        _ => write!(f, "{name}: {}", facts.collect::<Vec<_>>().join(", ")),
    }
}

/// Bytes of the rows themselves, whatever the size of the buffers they lie in.
pub(crate) fn sliced_size(batch: &RecordBatch) -> usize {
    let sizes = batch
        .columns()
        .iter()
        .map(|c| c.to_data().get_slice_memory_size());
    sizes.map(|size| size.unwrap_or_default()).sum()
}
