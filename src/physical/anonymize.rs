//! [`AnonymizeExec`]: from blocks of individuals to published records.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{SchemaRef, UInt32Type};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
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
use super::room::{Guest, Room};
use crate::algorithm::Cancel;
use crate::parallel::Crew;
use crate::spec::{BlockSize, Layout, Spec};

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
    /// As many threads as the session has partitions, for all blocks together.
    crew: OnceLock<Arc<Crew>>,
    /// Where they find memory.
    room: Arc<Room>,
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
            crew: OnceLock::new(),
            room: Arc::default(),
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
        let config = context.session_config();
        let batch_size = config.batch_size();
        let threads = config.target_partitions();
        let crew = self.crew.get_or_init(|| Arc::new(Crew::new(threads)));
        let crew = Arc::clone(crew);
        let reservation = MemoryConsumer::new(format!("AnonymizeExec[{partition}]"))
            .register(context.memory_pool());
        let input = self.input.execute(partition, context)?;
        let size = match self.spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => usize::try_from(n).ok(),
        };
        let room = Arc::clone(&self.room);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let outcome = Arc::clone(&self.outcome);
        let schema = self.schema();
        let cancel = Arc::new(Cancel::default());
        let work = release::work(release::Context {
            spec: Arc::clone(&self.spec),
            layout: Arc::clone(&self.layout),
            metrics: BlockMetrics::new(&self.metrics, partition),
            cancel: Arc::clone(&cancel),
            crew: Arc::clone(&crew),
        })?;
        let spec = Arc::clone(&self.spec);
        let stream = async_stream::try_stream! {
            let _cancel_when_dropped = CancelOnDrop(cancel);
            // Who is not read yet is nobody to wait for.
            let mut blocks = BlockReader::new(input, size, room.enter(reservation));
            while let Some(block) = blocks.next().await? {
                let (worker, crew) = (Arc::clone(&work), Arc::clone(&crew));
                let elapsed = baseline.elapsed_compute().clone();
                let task = SpawnedTask::spawn_blocking(move || {
                    let _seat = crew.take();
                    let timer = elapsed.timer();
                    let result = worker.run(block);
                    timer.done();
                    result
                });
                let done = task
                    .join()
                    .await
                    .map_err(|_| exec_datafusion_err!("the work on a block was interrupted"))??;
                blocks.worked(done.published.size());
                outcome.add(&done);
                let records = done.published.len();
                for begin in (0..records).step_by(batch_size) {
                    let timer = baseline.elapsed_compute().timer();
                    let columns = done.published.columns(begin..records.min(begin + batch_size))?;
                    timer.done();
                    yield RecordBatch::try_new(Arc::clone(&schema), columns)?.record_output(&baseline);
                }
                drop(done);
                blocks.worked(0);
            }
            drop(blocks);
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
///
/// Blocks are learned from a sample, so one may be larger than asked where many individuals have the same
/// quasi-identifiers. Then it is cut along the random order, wherever three times the size are left, after twice the size:
/// never where batches happen to end.
struct BlockReader {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    /// Individuals per block, if not all.
    size: Option<usize>,
    /// Parts of the block being read; with the first rows of the next one last, once they are seen.
    pending: Vec<RecordBatch>,
    /// Rows in there.
    rows: usize,
    memory: Guest,
}

/// What the work on a block needs, in bytes per byte of input: the input in one piece, codes, index and results.
const WORK_FACTOR: usize = 4;

impl BlockReader {
    fn new(input: SendableRecordBatchStream, size: Option<usize>, memory: Guest) -> Self {
        Self {
            schema: input.schema(),
            input,
            size,
            pending: vec![],
            rows: 0,
            memory,
        }
    }

    /// The rows of the next block.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(length) = self.complete() {
                return self.take(length).await.map(Some);
            }
            match self.input.next().await {
                Some(batch) => {
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        self.memory.grow(sliced_size(&batch)).await?;
                        self.rows += batch.num_rows();
                        self.pending.push(batch);
                    }
                }
                None if self.pending.is_empty() => return Ok(None),
                None => return self.take(self.rows).await.map(Some),
            }
        }
    }

    /// How many of the rows at hand are the next block, once that is certain.
    fn complete(&self) -> Option<usize> {
        let (first, last) = (self.pending.first()?, self.pending.last()?);
        let others = last.num_rows() - run_length(last, first_block(first));
        let held = self.rows - others;
        match self.size {
            Some(size) if held >= size.saturating_mul(3) => Some(2 * size),
            _ => (others > 0).then_some(held),
        }
    }

    /// The first rows at hand, in one piece, once there is memory to work on them.
    async fn take(&mut self, length: usize) -> Result<RecordBatch> {
        let mut wanted = length;
        let (mut taken, mut rest) = (vec![], vec![]);
        for batch in self.pending.drain(..) {
            let rows = wanted.min(batch.num_rows());
            wanted -= rows;
            if rows < batch.num_rows() {
                rest.push(batch.slice(rows, batch.num_rows() - rows));
            }
            if rows > 0 {
                taken.push(batch.slice(0, rows));
            }
        }
        self.pending = rest;
        self.rows -= length;
        let held: usize = taken.iter().map(sliced_size).sum();
        self.memory.grow((WORK_FACTOR - 1) * held).await?;
        Ok(concat_batches(&self.schema, &taken)?)
    }

    /// Gives back the memory of the block that was last returned, except for what it publishes.
    fn worked(&mut self, published: usize) {
        let held: usize = self.pending.iter().map(sliced_size).sum();
        self.memory.shrink_to(held + published);
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

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, UInt32Array};
    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};

    use super::*;

    /// First rows and lengths of the blocks of 100 that are read from blocks of these lengths, cut into batches.
    async fn blocks(lengths: &[usize], batch: usize) -> Vec<(u32, usize)> {
        let block = (0..).zip(lengths).flat_map(|(b, n)| vec![b; *n]);
        let block: ArrayRef = Arc::new(block.collect::<UInt32Array>());
        let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..block.len() as u32));
        let all = RecordBatch::try_from_iter([("block", block), ("row", row)]).unwrap();
        let schema = all.schema();
        let starts = (0..all.num_rows()).step_by(batch);
        let batches: Vec<_> = starts
            .map(|at| Ok(all.slice(at, batch.min(all.num_rows() - at))))
            .collect();
        let input = futures::stream::iter(batches);
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let input = Box::pin(RecordBatchStreamAdapter::new(schema, input));
        let memory = Arc::new(Room::default()).enter(MemoryConsumer::new("test").register(&pool));
        let mut reader = BlockReader::new(input, Some(100), memory);
        let mut found = vec![];
        while let Some(block) = reader.next().await.unwrap() {
            let first = block.column(1).as_primitive::<UInt32Type>().value(0);
            found.push((first, block.num_rows()));
            reader.worked(0);
        }
        assert_eq!(pool.reserved(), 0);
        found
    }

    #[tokio::test]
    async fn large_blocks_are_cut_wherever_batches_end() {
        let expected = vec![
            (0, 99),
            (99, 299),
            (398, 200),
            (598, 100),
            (698, 1),
            (699, 200),
            (899, 200),
            (1_099, 299),
        ];
        for batch in [1, 7, 64, 100, 301, 8_192] {
            assert_eq!(blocks(&[99, 299, 300, 1, 699], batch).await, expected);
        }
    }
}
