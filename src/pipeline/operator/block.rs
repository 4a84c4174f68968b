//! [`BlockExec`]: similar individuals, together.

use std::fmt;
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{ArrayRef, BinaryArray, DictionaryArray, RecordBatch, UInt8Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::PhysicalExpr;
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
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::profile::profiles_of;
use crate::engine::{properties, show};
use crate::error;
use crate::spec::{BlockSize, Spec};
use crate::system::learn::{BlockPlace, Learned, Routed, Routes};
use crate::system::{Layout, StatedDomain, stated_domains};

/// Gives each individual a block, and with it the domains against which its losses are measured.
///
/// The left child is the profile of the whole input, read once; the right child's individuals stream through. Blocks
/// are leaves of a k-d tree over the profile's sample, or parts of the random order where the function wants them to be
/// samples of the table: they depend on the data and the release key alone. In the latter case records may have their
/// block before they are gathered, so that one shuffle and one sort do for both.
#[derive(Debug)]
pub struct BlockExec {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    profile: Arc<dyn ExecutionPlan>,
    /// Or records, if these know their block.
    individuals: Arc<dyn ExecutionPlan>,
    stated: Arc<Vec<Option<StatedDomain>>>,
    /// Learned once, by whichever partition comes first; a failure is everybody's.
    shared: Arc<OnceCell<Result<Shared, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// What all partitions share once the profile is known.
#[derive(Debug)]
struct Shared {
    routes: Box<dyn Routes>,
    /// What blocks need to know of the whole table, as every row carries it.
    told: BinaryArray,
    /// The memory of the routes, held by the streams that use it.
    reserved: Weak<MemoryReservation>,
}

impl BlockExec {
    /// Over the outputs of [`ProfileExec`](super::ProfileExec), in one partition, and of
    /// [`IndividualsExec`](super::IndividualsExec), or of [`PseudonymizeExec`](super::PseudonymizeExec) if records know
    /// their block.
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        profile: Arc<dyn ExecutionPlan>,
        individuals: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let (needed, given) = match spec.routes_records() {
            true => (layout.tagged(&spec), layout.routed(&spec)),
            false => (layout.individuals(), layout.blocks()),
        };
        if individuals.schema() != needed {
            return internal_err!("BlockExec needs individuals");
        }
        let stated = Arc::new(stated_domains(&spec, &layout)?);
        let properties = properties(
            given,
            individuals.output_partitioning().partition_count(),
            EmissionType::Incremental,
        );
        Ok(Self {
            spec,
            layout,
            profile,
            individuals,
            stated,
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
}

impl DisplayAs for BlockExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = match self.spec.block() {
            BlockSize::All => "all".to_owned(),
            BlockSize::Individuals(n) => n.to_string(),
        };
        let stated: Vec<_> = self.spec.domains().keys().map(String::as_str).collect();
        let mut facts = vec![("block", size)];
        if !stated.is_empty() {
            facts.push(("domain", format!("[{}]", stated.join(", "))));
        }
        show(t, f, "BlockExec", &facts)
    }
}

impl ExecutionPlan for BlockExec {
    fn name(&self) -> &str {
        "BlockExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.profile, &self.individuals]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![
            Distribution::SinglePartition,
            Distribution::UnspecifiedDistribution,
        ])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [profile, individuals] = children
            .try_into()
            .or_else(|_| internal_err!("BlockExec has two children"))?;
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        Ok(Arc::new(Self::try_new(spec, layout, profile, individuals)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let shared = Arc::clone(&self.shared);
        let profile = Arc::clone(&self.profile);
        let mut individuals = self.individuals.execute(partition, Arc::clone(&context))?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let partitions = self.individuals.output_partitioning().partition_count();
        let mut assigner = Assigner {
            spec: Arc::clone(&self.spec),
            layout: Arc::clone(&self.layout),
            schema: self.schema(),
            stated: Arc::clone(&self.stated),
            outside: vec![0; self.layout.qi_count()],
            reserved: Mutex::default(),
        };
        let stream = async_stream::try_stream! {
            let shared = shared
                .get_or_init(async || assigner.learn(profile, context).await.map_err(Arc::new))
                .await
                .as_ref()
                .map_err(DataFusionError::from)?;
            let _reserved = shared.reserved.upgrade();
            while let Some(batch) = individuals.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                let assigned = assigner.assign(&batch, shared)?;
                timer.done();
                yield assigned.record_output(&baseline);
            }
            assigner.finish(shared, partitions)?;
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

struct Assigner {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    /// Of what is emitted.
    schema: SchemaRef,
    stated: Arc<Vec<Option<StatedDomain>>>,
    /// Individuals with a value outside the stated domain, per quasi-identifier.
    outside: Vec<u64>,
    /// Memory that was reserved while learning.
    reserved: Mutex<Option<Arc<MemoryReservation>>>,
}

impl Assigner {
    /// Merges the profiles of all partitions.
    async fn learn(
        &self,
        profiles: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Shared> {
        let mut learned = self
            .spec
            .entry()?
            .system
            .learned(&self.spec, &self.layout.kinds);
        let reservation = merge_profiles(learned.as_mut(), profiles, context).await?;
        let place = BlockPlace {
            spec: &self.spec,
            layout: &self.layout,
            stated: &self.stated,
        };
        let routes = learned.routes(&place)?;
        reservation.try_resize(routes.size())?;
        let reservation = Arc::new(reservation);
        let shared = Shared {
            told: BinaryArray::from_iter_values([routes.told()?]),
            reserved: Arc::downgrade(&reservation),
            routes,
        };
        *self.reserved.lock() = Some(reservation);
        Ok(shared)
    }

    /// The rows with their block, and what it needs to know.
    fn assign(&mut self, batch: &RecordBatch, shared: &Shared) -> Result<RecordBatch> {
        let Routed { blocks, further } = shared.routes.route(batch, &mut self.outside)?;
        let zeros = UInt8Array::from(vec![0; batch.num_rows()]);
        let told = DictionaryArray::try_new(zeros, Arc::new(shared.told.clone()))?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(blocks), Arc::new(told)];
        columns.extend(batch.columns().iter().cloned());
        columns.extend(further);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// After the last individual of a partition.
    fn finish(&self, shared: &Shared, partitions: usize) -> Result<()> {
        shared.routes.finish(partitions)?;
        let Some(column) = self.outside.iter().position(|n| *n > 0) else {
            return Ok(());
        };
        let individuals = match self.outside[column] {
            1 => "1 individual has a value".to_owned(),
            n => format!("{n} individuals have values"),
        };
        Err(error::data(
            self.spec.function(),
            format!(
                "at least {individuals} in column '{}' outside the given domain",
                self.layout.qi_name(column)
            ),
        ))
    }
}

/// Merges the profiles of all partitions. Their memory is reserved.
pub(super) async fn merge_profiles(
    learned: &mut dyn Learned,
    profiles: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<MemoryReservation> {
    let reservation = MemoryConsumer::new("BlockExec").register(context.memory_pool());
    let mut batches = profiles.execute(0, context)?;
    while let Some(batch) = batches.next().await {
        for bytes in profiles_of(&batch?)?.iter().flatten() {
            learned.merge(bytes)?;
            reservation.try_resize(learned.size())?;
        }
    }
    Ok(reservation)
}
