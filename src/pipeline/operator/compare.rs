//! [`CompareExec`]: a published table and the original one, individual by individual.

mod shown;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, internal_err};
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
use hashbrown::HashSet;
use tokio::sync::OnceCell;

use self::shown::{ClassName, Readers, Shown};
use super::sorted::{Key, Side, ValueSet};
use crate::engine::{ascending, column, properties, show};
use crate::measure::cells::{Point, points};
use crate::measure::{COUNTS, CompareSpec, compare_schema};

/// Compares every individual of a published table with itself in the original one: one row of counts per partition.
///
/// Asks the engine for both tables, collapsed by [`CollapseExec`](super::CollapseExec), partitioned and sorted by key, and
/// goes through both at once. Hierarchies of columns with labels are the other children, and are read once. Memory is bounded
/// by a batch of each table, the values of the largest individual, and 65,536 classes.
#[derive(Debug)]
pub struct CompareExec {
    spec: Arc<CompareSpec>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    /// Made once, by whichever partition comes first; a failure is everybody's.
    readers: Arc<OnceCell<Result<Readers, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl CompareExec {
    /// Over the published table, the original one and hierarchies.
    pub fn try_new(spec: Arc<CompareSpec>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        if children.len() != 2 + spec.hierarchies() || spec.columns.is_empty() {
            return internal_err!("CompareExec cannot have {} children", children.len());
        }
        let width = 2 + spec.columns.len() + spec.sensitive;
        let widths = [0, 1].map(|child| children[child].schema().fields().len());
        if widths != [width; 2] {
            return internal_err!("CompareExec cannot have {widths:?} columns");
        }
        let properties = properties(
            compare_schema(),
            children[0].output_partitioning().partition_count(),
            EmissionType::Final,
        );
        Ok(Self {
            spec,
            children,
            readers: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is compared.
    pub fn spec(&self) -> &Arc<CompareSpec> {
        &self.spec
    }
}

impl DisplayAs for CompareExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.spec.columns.iter().map(|c| c.name.as_str()).collect();
        let facts = [("columns", format!("[{}]", columns.join(", ")))];
        show(t, f, "CompareExec", &facts)
    }
}

impl ExecutionPlan for CompareExec {
    fn name(&self) -> &str {
        "CompareExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let key =
            |child: usize| Distribution::KeyPartitioned(vec![column(&self.children[child], 0)]);
        InputDistributionRequirements::co_partitioned(vec![key(0), key(1)])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let by_key = |child: usize| ascending(&self.children[child], &[0]);
        let mut required = vec![by_key(0), by_key(1)];
        required.resize(self.children.len(), None);
        required
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        (0..self.children.len()).map(|child| child < 2).collect()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&column(&self.children[0], 0))?;
        f(&column(&self.children[1], 0))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::try_new(Arc::clone(&self.spec), children)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = [0, 1].map(|child| {
            let partitioning = self.children[child].output_partitioning();
            partitioning.partition_count()
        });
        if partitions[0] != partitions[1] {
            return internal_err!("CompareExec cannot compare {partitions:?} partitions");
        }
        let consumer = |name: String| MemoryConsumer::new(name).register(context.memory_pool());
        let reservation = consumer(format!("CompareExec[{partition}]"));
        let shared = consumer("CompareExec[hierarchies]".to_owned());
        let side = |child: usize| -> Result<Side> {
            let input = self.children[child].execute(partition, Arc::clone(&context))?;
            Ok(Side::new(
                &self.spec.function,
                input,
                self.spec.columns.len(),
            ))
        };
        let (mut published, mut original) = (side(0)?, side(1)?);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, children) = (Arc::clone(&self.spec), self.children.clone());
        let readers = Arc::clone(&self.readers);
        let stream = async_stream::try_stream! {
            let read = async {
                Readers::read(&spec, &children, &context, shared).await.map_err(Arc::new)
            };
            let readers = readers.get_or_init(|| read).await.as_ref();
            let readers = readers.map_err(|e| DataFusionError::Shared(Arc::clone(e)))?;
            let mut comparison = Comparison::new(&spec, readers);
            loop {
                // An individual may go on in the next batch of either table.
                if published.load().await? {
                    let timer = baseline.elapsed_compute().timer();
                    comparison.read_published(&published)?;
                    timer.done();
                    tokio::task::consume_budget().await;
                }
                if original.load().await? {
                    let timer = baseline.elapsed_compute().timer();
                    comparison.read_original(&original)?;
                    timer.done();
                    tokio::task::consume_budget().await;
                }
                reservation.try_resize(published.size() + original.size() + comparison.size())?;
                let timer = baseline.elapsed_compute().timer();
                let going_on = comparison.merge(&mut published, &mut original)?;
                timer.done();
                if !going_on {
                    break;
                }
            }
            yield comparison.counts.finish()?.record_output(&baseline);
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

/// What was counted, in the order of [`COUNTS`].
#[derive(Default)]
struct Counts {
    published_individuals: usize,
    published_nameless: i64,
    in_several_classes: usize,
    original_individuals: usize,
    original_nameless: i64,
    only_published: usize,
    only_original: usize,
    untrue: usize,
    invented: usize,
    lost: usize,
}

impl Counts {
    fn finish(&self) -> Result<RecordBatch> {
        let counts: [i64; COUNTS.len()] = [
            self.published_individuals as i64,
            self.published_nameless,
            self.in_several_classes as i64,
            self.original_individuals as i64,
            self.original_nameless,
            self.only_published as i64,
            self.only_original as i64,
            self.untrue as i64,
            self.invented as i64,
            self.lost as i64,
        ];
        let columns = counts.map(|count| Arc::new(Int64Array::from(vec![count])) as ArrayRef);
        Ok(RecordBatch::try_new(compare_schema(), columns.to_vec())?)
    }
}

/// An individual of which not all rows were read, perhaps.
struct Individual {
    key: Key,
    /// The smallest original value of each column, `None` if all are missing: what covers all of them covers it, too.
    least: Vec<Option<Point>>,
    original_records: i64,
    published_records: i64,
    /// The class of its first published row.
    class: Option<ClassName>,
    /// The other classes that its published rows show.
    others: HashSet<ClassName>,
    /// How many of its classes do not cover the original values.
    untrue: usize,
}

impl Individual {
    fn new(key: Key, columns: usize) -> Self {
        Self {
            key,
            least: vec![None; columns],
            original_records: 0,
            published_records: 0,
            class: None,
            others: HashSet::new(),
            untrue: 0,
        }
    }

    /// Adds rows of the original table.
    fn know(&mut self, records: i64, rows: Range<usize>, values: &[Vec<Option<Point>>]) {
        self.original_records += records;
        for (least, values) in self.least.iter_mut().zip(values) {
            for value in values[rows.clone()].iter().flatten() {
                if least.as_ref().is_none_or(|least| value < least) {
                    *least = Some(value.clone());
                }
            }
        }
    }

    /// Adds rows of the published table; those of the original are known.
    fn show(&mut self, records: i64, rows: Range<usize>, shown: &Shown) {
        self.published_records += records;
        let known = self.original_records > 0 && self.key != Key::Nobody;
        for row in rows {
            let class = shown.class(row);
            let name = shown.name(class);
            let new = match &self.class {
                None => {
                    self.class = Some(Arc::clone(name));
                    true
                }
                Some(first) => first != name && self.others.insert(Arc::clone(name)),
            };
            if new && !(known && shown.covers(class, &self.least)) {
                self.untrue += 1;
            }
        }
    }

    fn size(&self) -> usize {
        let class = self.class.as_ref().map_or(0, |class| class.len());
        (class + 64) * self.others.len()
    }
}

/// Goes through both tables.
struct Comparison<'a> {
    spec: &'a CompareSpec,
    shown: Shown,
    /// The original values of the batch that was read last, by column.
    values: Vec<Vec<Option<Point>>>,
    open: Option<Individual>,
    /// Sensitive values of the open individual, by column.
    published: Vec<ValueSet>,
    original: Vec<ValueSet>,
    counts: Counts,
}

impl<'a> Comparison<'a> {
    fn new(spec: &'a CompareSpec, readers: &Readers) -> Self {
        let sets = || (0..spec.sensitive).map(|_| ValueSet::default()).collect();
        Self {
            spec,
            shown: Shown::new(readers),
            values: vec![],
            open: None,
            published: sets(),
            original: sets(),
            counts: Counts::default(),
        }
    }

    /// Reads what a new batch of the published table shows.
    fn read_published(&mut self, side: &Side) -> Result<()> {
        match side.now() {
            Some(rows) => self.shown.read(self.spec, &rows.carried),
            None => Ok(()),
        }
    }

    /// Reads the values of a new batch of the original table.
    fn read_original(&mut self, side: &Side) -> Result<()> {
        if let Some(rows) = side.now() {
            let values = rows.carried.iter().map(points);
            self.values = values.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let sets = self.published.iter().chain(&self.original);
        let open = self.open.as_ref().map_or(0, Individual::size);
        self.shown.size() + open + sets.map(ValueSet::size).sum::<usize>()
    }

    /// Goes on until a batch of either table ends. False if both tables have ended.
    fn merge(&mut self, published: &mut Side, original: &mut Side) -> Result<bool> {
        loop {
            let next = (original.key()?, published.key()?);
            let key = match (&self.open, next) {
                (Some(individual), _) => individual.key,
                (None, (Some(a), Some(b))) => a.min(b),
                (None, (Some(key), None) | (None, Some(key))) => key,
                (None, (None, None)) => return Ok(false),
            };
            let columns = self.spec.columns.len();
            let individual = self
                .open
                .get_or_insert_with(|| Individual::new(key, columns));
            // All rows of the original first: they say what the published ones must cover.
            if next.0 == Some(key) {
                let rows = original.take(key)?;
                if let Some(now) = original.now() {
                    individual.know(now.records(rows.clone()), rows.clone(), &self.values);
                    if key != Key::Nobody {
                        now.add_values(rows, &mut self.original);
                    }
                }
                if original.is_at_end() {
                    return Ok(true);
                }
            }
            if next.1 == Some(key) {
                let rows = published.take(key)?;
                if let Some(now) = published.now() {
                    individual.show(now.records(rows.clone()), rows.clone(), &self.shown);
                    now.add_values(rows, &mut self.published);
                }
                if published.is_at_end() {
                    return Ok(true);
                }
            }
            if let Some(individual) = self.open.take() {
                self.count(&individual);
            }
        }
    }

    /// Counts an individual of which everything was read.
    fn count(&mut self, individual: &Individual) {
        let (mut invented, mut lost) = (0, 0);
        for (published, original) in self.published.iter_mut().zip(&mut self.original) {
            published.settle();
            original.settle();
            let (only_published, only_original) = published.differences(original);
            invented += only_published;
            lost += only_original;
            published.clear();
            original.clear();
        }
        let counts = &mut self.counts;
        counts.untrue += individual.untrue;
        counts.invented += invented;
        if individual.key == Key::Nobody {
            counts.published_nameless += individual.published_records;
            counts.original_nameless += individual.original_records;
            return;
        }
        let published = individual.published_records > 0;
        let original = individual.original_records > 0;
        counts.published_individuals += usize::from(published);
        counts.original_individuals += usize::from(original);
        counts.only_published += usize::from(published && !original);
        counts.only_original += usize::from(original && !published);
        counts.in_several_classes += usize::from(!individual.others.is_empty());
        // Whoever is not published was dropped, and nothing of it is counted as lost.
        counts.lost += if published { lost } else { 0 };
    }
}
