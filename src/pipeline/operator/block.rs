//! [`BlockExec`]: similar individuals, together.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, DictionaryArray, RecordBatch, UInt8Array, UInt32Array,
    UInt64Array,
};
use datafusion::arrow::datatypes::{SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_err};
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

use crate::engine::{properties, show};
use crate::error;
use crate::spec::{BlockSize, Spec};
use crate::system::anatomy::slppa::{Learned, TableProfile, TooSmall};
use crate::system::buckets::SecretCounts;
use crate::system::{Blocks, Layout, StatedDomain, stated_domains};
use crate::table::coding::{
    Domain, Domains, Keys, Ladder, QiArray, mask_taxonomy, own_values, rows,
};
use crate::table::{EXACT_VALUES, Profile, Router};

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
    routes: Arc<OnceCell<Result<Routes, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

/// What the profile tells.
#[derive(Debug)]
struct Routes {
    way: Way,
    /// What the blocks need to know of the whole table, as every row carries it.
    learned: BinaryArray,
    /// The memory of the way, held by the streams that use it.
    reserved: Weak<MemoryReservation>,
}

/// How individuals find their block.
#[derive(Debug)]
enum Way {
    Router(Router),
    /// By random order, with the number of individuals that have the same sensitive value; and how many individuals came,
    /// in how many partitions.
    Anatomy(Learned, TableProfile, AtomicU64, AtomicUsize),
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
            routes: Arc::default(),
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
        let routes = Arc::clone(&self.routes);
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
            let routes = routes
                .get_or_init(async || assigner.learn(profile, context).await.map_err(Arc::new))
                .await
                .as_ref()
                .map_err(DataFusionError::from)?;
            let _reserved = routes.reserved.upgrade();
            while let Some(batch) = individuals.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                let assigned = assigner.assign(&batch, routes)?;
                timer.done();
                yield assigned.record_output(&baseline);
            }
            assigner.finish(routes, partitions)?;
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
    ) -> Result<Routes> {
        if self.spec.is_anatomy() {
            let (profile, reservation) = merged_profiles(&self.spec, profiles, context).await?;
            let reserved = Arc::new(reservation);
            let routes = self.anatomy(profile, Arc::downgrade(&reserved));
            *self.reserved.lock() = Some(reserved);
            return routes;
        }
        let one_row = self.spec.counts_records();
        let mut profile = Profile::new(&self.layout.kinds, one_row);
        let mut batches = profiles.execute(0, context)?;
        let mut secrets: Option<SecretCounts> = None;
        while let Some(batch) = batches.next().await {
            for bytes in batch?.column(0).as_binary::<i32>().iter().flatten() {
                let (part, counts) = received(bytes)?;
                profile.merge(part);
                match (&mut secrets, counts) {
                    (Some(all), Some(counts)) => all.merge(counts),
                    (all, counts) => *all = all.take().or(counts),
                }
            }
        }
        let mut domains = profile.domains();
        self.check_masks(&domains)?;
        for (domain, stated) in domains.0.iter_mut().zip(self.stated.iter()) {
            if let Some(stated) = stated {
                domain.clone_from(&stated.domain);
            }
        }
        let size = match self.spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => Some(n),
        };
        let router = match self.spec.entry()?.blocks {
            Blocks::Similar => Router::new(&profile, &domains, size),
            Blocks::Random => {
                let size = match (size, &secrets) {
                    (Some(n), Some(secrets)) => {
                        secrets.block(&self.spec, profile.individuals(), n)?
                    }
                    (size, _) => size,
                };
                Router::random(&profile, size)
            }
        };
        let bytes = serde_json::to_vec(&domains)
            .map_err(|_| exec_datafusion_err!("the domains cannot be sent"))?;
        Ok(Routes {
            way: Way::Router(router),
            reserved: Weak::new(),
            learned: BinaryArray::from_iter_values([bytes]),
        })
    }

    /// Divides the quasi-identifiers, and the table into as many blocks as the bounds allow.
    fn anatomy(&self, profile: TableProfile, reserved: Weak<MemoryReservation>) -> Result<Routes> {
        let function = self.spec.function();
        let ask = self.spec.anatomy()?;
        let division = profile
            .division(&ask)
            .map_err(|e| error::argument(function, "tables:", e.to_string()))?;
        let size = match self.spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => Some(n),
        };
        // A table of one block is refused there, with all bounds that stand in the way.
        if size.is_some_and(|size| profile.individuals() > size) {
            profile.feasible(&ask).map_err(|infeasible| {
                let message = format!("the bounds cannot be reached: {infeasible}");
                error::data(function, message)
            })?;
        }
        let adjust = !self.spec.block_is_given();
        let learned = Learned::new(&profile, division, &ask.requirements, size, adjust);
        let learned = learned.map_err(|TooSmall { smallest }| {
            let larger = smallest.map_or_else(String::new, |n| format!("at least {n}, or "));
            error::data(
                function,
                format!(
                    "block is too small for these bounds: by chance a block may be impossible to divide; \
                     use {larger}block => 'all', or leave it out"
                ),
            )
        })?;
        let bytes = serde_json::to_vec(&learned)
            .map_err(|_| exec_datafusion_err!("the division cannot be sent"))?;
        Ok(Routes {
            way: Way::Anatomy(learned, profile, AtomicU64::new(0), AtomicUsize::new(0)),
            reserved,
            learned: BinaryArray::from_iter_values([bytes]),
        })
    }

    /// Whether the columns to be masked can be.
    fn check_masks(&self, domains: &Domains) -> Result<()> {
        for (c, (ladder, domain)) in self.layout.ladders().iter().zip(&domains.0).enumerate() {
            let (Some(Ladder::Mask(characters)), Domain::Values(values)) = (ladder, domain) else {
                continue;
            };
            let refuse = |reason: String| {
                let message = format!(
                    "column '{}' cannot be masked: {reason}",
                    self.layout.qi_name(c)
                );
                Err(error::data(self.spec.function(), message))
            };
            if values.len() > EXACT_VALUES {
                return refuse(format!(
                    "it has more than {EXACT_VALUES} values; give a hierarchy"
                ));
            }
            if let Err(reason) = mask_taxonomy(values.iter(), characters) {
                return refuse(format!("as a hierarchy, {reason}"));
            }
        }
        Ok(())
    }

    fn assign(&mut self, batch: &RecordBatch, routes: &Routes) -> Result<RecordBatch> {
        let router = match &routes.way {
            Way::Anatomy(learned, profile, seen, _) => {
                return self.anatomized(batch, learned, profile, seen, routes);
            }
            Way::Router(router) => router,
        };
        let columns: Vec<QiArray> = batch.columns()[2..2 + self.layout.qi_count()]
            .iter()
            .map(|column| QiArray::new(column, self.layout.covers()))
            .collect();
        // Random blocks look at no value.
        let looks = router.looks_at_values() || self.stated.iter().any(Option::is_some);
        let keys = columns
            .iter()
            .zip(&self.layout.kinds)
            .filter(|_| looks)
            .map(|(column, kind)| Keys::try_new(column.values(), *kind))
            .collect::<Result<Vec<_>, _>>()?;
        self.count_outside(&columns, &keys, batch.num_rows());

        let orders = batch.column(0).as_primitive::<UInt64Type>().values();
        let blocks = orders
            .iter()
            .enumerate()
            .map(|(i, order)| router.route(*order, &keys, |c| columns[c].positions(i).start));
        let blocks = UInt32Array::from_iter_values(blocks);
        self.told(batch, blocks, routes, None)
    }

    /// Individuals with their block, and what it needs to know.
    fn told(
        &self,
        batch: &RecordBatch,
        blocks: UInt32Array,
        routes: &Routes,
        whole: Option<ArrayRef>,
    ) -> Result<RecordBatch> {
        let zeros = UInt8Array::from(vec![0; batch.num_rows()]);
        let learned = DictionaryArray::try_new(zeros, Arc::new(routes.learned.clone()))?;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(blocks), Arc::new(learned)];
        columns.extend(batch.columns().iter().cloned());
        columns.extend(whole);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Routes individuals by their order, and says how many others have their sensitive value.
    fn anatomized(
        &self,
        batch: &RecordBatch,
        learned: &Learned,
        profile: &TableProfile,
        seen: &AtomicU64,
        routes: &Routes,
    ) -> Result<RecordBatch> {
        let orders = batch.column(0).as_primitive::<UInt64Type>().values();
        let blocks = UInt32Array::from_iter_values(orders.iter().map(|o| learned.block(*o)));
        let column = batch.column(2 + self.layout.qi_count());
        let sensitive = match self.spec.routes_records() {
            true => Arc::clone(column),
            false => {
                let (_, records) = own_values(column.as_list());
                Arc::clone(records.as_struct().column(0))
            }
        };
        let valid = sensitive.len() - sensitive.null_count();
        seen.fetch_add(valid as u64, Ordering::Relaxed);
        let values = rows(std::slice::from_ref(&sensitive))?;
        let mut known = Vec::with_capacity(values.num_rows());
        for (row, value) in values.iter().enumerate() {
            // Records without a value were not counted, and are left out when they are gathered.
            let count = match sensitive.is_valid(row) {
                true => profile.having(value.data()),
                false => Some(0),
            };
            known.push(count.ok_or_else(|| error::changed(self.spec.function()))?);
        }
        let whole: ArrayRef = Arc::new(UInt64Array::from(known));
        self.told(batch, blocks, routes, Some(whole))
    }

    fn count_outside(&mut self, columns: &[QiArray], keys: &[Keys], individuals: usize) {
        for (c, stated) in self.stated.iter().enumerate() {
            if let Some(stated) = stated {
                let outside = |i: &usize| {
                    columns[c]
                        .positions(*i)
                        .any(|at| !stated.contains(&keys[c], at))
                };
                self.outside[c] += (0..individuals).filter(outside).count() as u64;
            }
        }
    }

    /// After the last individual of a partition.
    fn finish(&self, routes: &Routes, partitions: usize) -> Result<()> {
        if let Way::Anatomy(_, profile, seen, finished) = &routes.way {
            // Nothing is published before all partitions have come to their end.
            let last = finished.fetch_add(1, Ordering::AcqRel) + 1 == partitions;
            if last && seen.load(Ordering::Acquire) != profile.individuals() {
                return Err(error::changed(self.spec.function()));
            }
        }
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

/// Merges the profiles of all partitions for an anatomizing function.
pub(super) async fn merged_profiles(
    spec: &Spec,
    profiles: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<(TableProfile, MemoryReservation)> {
    let reservation = MemoryConsumer::new("TableProfile").register(context.memory_pool());
    let mut profile = TableProfile::new(spec.qi().len());
    let mut batches = profiles.execute(0, context)?;
    while let Some(batch) = batches.next().await {
        for bytes in batch?.column(0).as_binary::<i32>().iter().flatten() {
            let merged = profile.merge_bytes(bytes);
            merged.ok_or_else(|| exec_datafusion_err!("a profile cannot be read"))?;
            reservation.try_resize(profile.size())?;
        }
    }
    Ok((profile, reservation))
}

fn received(bytes: &[u8]) -> Result<(Profile, Option<SecretCounts>)> {
    serde_json::from_slice(bytes).map_err(|_| exec_datafusion_err!("a profile cannot be read"))
}
