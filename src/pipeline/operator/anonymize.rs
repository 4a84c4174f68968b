//! [`AnonymizeExec`]: from blocks of individuals to published records.

use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput, SpillMetrics,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, SendableRecordBatchStream, SpillManager,
};

use super::outcome::Outcome;
use super::reader::BlockReader;
use crate::algorithm::Cancel;
use crate::check::Asked;
use crate::engine::threads::Threads;
use crate::engine::{
    BlockPartitioning, SharedMemory, ascending, column, only_child, properties, show,
};
use crate::spec::{BlockSize, Spec};
use crate::system::work::{BlockMetrics, WorkContext, verified};
use crate::system::{BLOCK, Layout, Stage};

/// Does the work of the spec's system block by block, verifies what each block publishes, and emits it.
///
/// Asks the engine for its input partitioned by block and sorted by block and random order. One block at a time is
/// held in memory per partition, reserved from the engine's pool; where that does not suffice, its rows wait in a file until
/// other partitions have done their work. The work runs on a blocking thread and stops when the stream is dropped. Nothing
/// passes below this operator: it knows no filter, limit or statistic.
#[derive(Debug)]
pub struct AnonymizeExec {
    spec: Arc<Spec>,
    /// The call as the verifier reads it.
    asked: Asked,
    layout: Arc<Layout>,
    input: Arc<dyn ExecutionPlan>,
    deal: BlockPartitioning,
    /// What the input is shuffled by.
    key: Arc<dyn PhysicalExpr>,
    outcome: Arc<Outcome>,
    /// As many threads as the session has partitions, for all blocks together.
    threads: OnceLock<Arc<Threads>>,
    /// Where they find memory.
    shared: Arc<SharedMemory>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl AnonymizeExec {
    /// Over the output of [`BlockExec`](super::BlockExec), whose blocks are dealt out.
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        input: Arc<dyn ExecutionPlan>,
        deal: BlockPartitioning,
    ) -> Result<Self> {
        if input.schema() != layout.blocks() {
            return internal_err!("AnonymizeExec needs blocks");
        }
        let partitions = input.output_partitioning().partition_count();
        let properties = properties(layout.published(), partitions, EmissionType::Final);
        Ok(Self {
            asked: spec.asked(),
            spec,
            layout,
            key: deal.key(column(&input, BLOCK))?,
            input,
            deal,
            outcome: Arc::new(Outcome::new(partitions)),
            threads: OnceLock::new(),
            shared: Arc::default(),
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

    /// The same, judged by what another call asks for: what the work publishes for its own must not pass.
    #[cfg(test)]
    pub(crate) fn judged_by(&self, asked: Asked) -> Result<Self> {
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        let own = Self::try_new(spec, layout, Arc::clone(&self.input), self.deal.clone())?;
        Ok(Self { asked, ..own })
    }

    pub(crate) fn deal(&self) -> &BlockPartitioning {
        &self.deal
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
        let key = vec![Arc::clone(&self.key)];
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(key)])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![ascending(&self.input, &[BLOCK, Stage::Blocks.order()])]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.key)
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
            self.deal.clone(),
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
        let threads = self.threads.get_or_init(|| Arc::new(Threads::new(threads)));
        let threads = Arc::clone(threads);
        let reservation = MemoryConsumer::new(format!("AnonymizeExec[{partition}]"))
            .register(context.memory_pool());
        let spills = SpillManager::new(
            context.runtime_env(),
            SpillMetrics::new(&self.metrics, partition),
            self.input.schema(),
        );
        let spills = spills.with_compression_type(config.spill_compression());
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let size = match self.spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => usize::try_from(n).ok(),
        };
        let shared = Arc::clone(&self.shared);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let outcome = Arc::clone(&self.outcome);
        let schema = self.schema();
        let cancel = Arc::new(Cancel::default());
        let metrics = BlockMetrics::new(&self.metrics, partition);
        let verifier = Arc::new(self.spec.verifier(&self.asked, &self.layout)?);
        let work = self.spec.entry()?.system.work(WorkContext {
            spec: Arc::clone(&self.spec),
            layout: Arc::clone(&self.layout),
            metrics: metrics.clone(),
            cancel: Arc::clone(&cancel),
            threads: Arc::clone(&threads),
        })?;
        let spec = Arc::clone(&self.spec);
        let stream = async_stream::try_stream! {
            let _cancel_when_dropped = CancelOnDrop(cancel);
            // Who is not read yet is nobody to wait for.
            let mut blocks = BlockReader::new(input, size, shared.enter(reservation), spills, Arc::clone(&threads));
            while let Some(block) = blocks.next().await? {
                let (worker, threads) = (Arc::clone(&work), Arc::clone(&threads));
                let (verifier, spec) = (Arc::clone(&verifier), Arc::clone(&spec));
                let verifying = metrics.verifying.clone();
                let elapsed = baseline.elapsed_compute().clone();
                let task = SpawnedTask::spawn_blocking(move || {
                    let _slot = threads.take();
                    let timer = elapsed.timer();
                    let proposed = worker.run(block)?;
                    let done = verified(proposed, &verifier, &spec, &verifying, &threads);
                    timer.done();
                    done
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
