//! [`AnonymizeExec`]: from blocks of individuals to published records.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{SchemaRef, UInt32Type};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use super::operator::{ascending, column, only_child, properties, show, sliced_size};
use super::outcome::Outcome;
use super::release::{self, BlockMetrics};
use crate::algorithm::Cancel;
use crate::spec::{Layout, Spec};

/// Does the work of the spec's form block by block, verifies what each block publishes, and emits it.
///
/// Asks the engine for its input partitioned by block and sorted by block and random order. One block at a time is
/// held in memory per partition, reserved from the engine's pool; its work runs on a blocking thread and stops when
/// the stream is dropped. Nothing passes below this operator: it knows no filter, limit or statistic.
#[derive(Debug)]
pub struct AnonymizeExec {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    input: Arc<dyn ExecutionPlan>,
    outcome: Arc<Outcome>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AnonymizeExec {
    /// Over the output of [`BlockExec`](super::BlockExec).
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        if input.schema() != layout.blocks() {
            return internal_err!("AnonymizeExec needs blocks");
        }
        let partitions = input.output_partitioning().partition_count();
        let properties = properties(layout.published(), partitions, EmissionType::Final);
        Ok(Self {
            spec,
            layout,
            input,
            outcome: Arc::new(Outcome::new(partitions)),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }
}

impl DisplayAs for AnonymizeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(t, f, "AnonymizeExec", &self.spec.facts())
    }
}

impl ExecutionPlan for AnonymizeExec {
    fn name(&self) -> &str {
        "AnonymizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let block = vec![column(&self.input, 0)];
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(block)])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![ascending(&self.input, &[0, 2])]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&column(&self.input, 0))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        Ok(Arc::new(Self::try_new(
            spec,
            layout,
            only_child(children)?,
        )?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batch_size = context.session_config().batch_size();
        let mut blocks = BlockReader {
            reservation: MemoryConsumer::new(format!("AnonymizeExec[{partition}]"))
                .register(context.memory_pool()),
            input: self.input.execute(partition, context)?,
            schema: self.input.schema(),
            pending: vec![],
        };
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let outcome = Arc::clone(&self.outcome);
        let schema = self.schema();
        let cancel = Arc::new(Cancel::default());
        let work = release::work(release::Context {
            spec: Arc::clone(&self.spec),
            layout: Arc::clone(&self.layout),
            metrics: BlockMetrics::new(&self.metrics, partition),
            cancel: Arc::clone(&cancel),
        })?;
        let spec = Arc::clone(&self.spec);
        let stream = async_stream::try_stream! {
            let _cancel_when_dropped = CancelOnDrop(cancel);
            while let Some(block) = blocks.next().await? {
                let worker = Arc::clone(&work);
                let elapsed = baseline.elapsed_compute().clone();
                let task = SpawnedTask::spawn_blocking(move || {
                    let timer = elapsed.timer();
                    let result = worker.run(&block);
                    timer.done();
                    result
                });
                let done = task
                    .join()
                    .await
                    .map_err(|_| exec_datafusion_err!("the work on a block was interrupted"))??;
                outcome.add(&done);
                let records = done.published.len();
                for begin in (0..records).step_by(batch_size) {
                    let timer = baseline.elapsed_compute().timer();
                    let columns = done.published.columns(begin..records.min(begin + batch_size))?;
                    timer.done();
                    yield RecordBatch::try_new(Arc::clone(&schema), columns)?.record_output(&baseline);
                }
                drop(done);
                blocks.release();
            }
            outcome.finish_partition(&spec)?;
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Stops the work on a block when nobody waits for it any more.
struct CancelOnDrop(Arc<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Cuts the sorted input into blocks.
struct BlockReader {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Parts of the block being read; with the first rows of the next one last, once they are seen.
    pending: Vec<RecordBatch>,
    reservation: MemoryReservation,
}

/// What the work on a block needs, in bytes per byte of input: the input in one piece, codes, index and results.
const WORK_FACTOR: usize = 4;

impl BlockReader {
    /// The rows of the next block.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(last) = self.pending.pop() {
                let block = first_block(self.pending.first().unwrap_or(&last));
                let length = run_length(&last, block);
                if length < last.num_rows() {
                    let rest = last.slice(length, last.num_rows() - length);
                    self.pending.push(last.slice(0, length));
                    let complete = concat_batches(&self.schema, &self.pending)?;
                    self.pending = vec![rest];
                    return Ok(Some(complete));
                }
                self.pending.push(last);
            }
            match self.input.next().await {
                Some(batch) => {
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        self.reservation
                            .try_grow(WORK_FACTOR * sliced_size(&batch))?;
                        self.pending.push(batch);
                    }
                }
                None if self.pending.is_empty() => return Ok(None),
                None => {
                    let complete = concat_batches(&self.schema, &self.pending)?;
                    self.pending.clear();
                    return Ok(Some(complete));
                }
            }
        }
    }

    /// Gives back the memory of the block that was last returned.
    fn release(&mut self) {
        let held: usize = self.pending.iter().map(sliced_size).sum();
        self.reservation.resize(WORK_FACTOR * held);
    }
}

fn first_block(batch: &RecordBatch) -> u32 {
    batch.column(0).as_primitive::<UInt32Type>().value(0)
}

/// How many rows at the beginning of a batch belong to a block.
fn run_length(batch: &RecordBatch, block: u32) -> usize {
    let blocks = batch.column(0).as_primitive::<UInt32Type>().values();
    blocks.partition_point(|b| *b <= block)
}
