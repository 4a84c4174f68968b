//! [`ClassesExec`]: measures the classes of a published table.

mod whole;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_err};
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
use tokio::sync::OnceCell;

use self::whole::Whole;
use crate::check::{Class, Ratio, ShownClasses};
use crate::engine::{ascending, column, properties, show, sliced_size};
use crate::error;
use crate::measure::{
    ClassRow, ClassRows, ClassesSpec, LabelPlaces, Measurer, class_schema, eir_l,
};

/// Gives one row of figures for each class of a published table.
///
/// The first child's records come partitioned and sorted by class. The second child, where there is one, is the
/// sensitive values of the whole table with their number of records, the third the hierarchy of these; both are read once.
/// Memory is bounded by the largest class, the different sensitive values and the hierarchy.
#[derive(Debug)]
pub struct ClassesExec {
    spec: Arc<ClassesSpec>,
    records: Arc<dyn ExecutionPlan>,
    values: Option<Arc<dyn ExecutionPlan>>,
    labels: Option<Arc<dyn ExecutionPlan>>,
    /// Read once, by whichever partition comes first; a failure is everybody's.
    whole: Arc<OnceCell<Result<Whole, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ClassesExec {
    /// Over records (class, individual unless every record is one, sensitive value), values (sensitive value, records,
    /// category) and a hierarchy (value, labels above it).
    pub fn try_new(spec: Arc<ClassesSpec>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        let mut children = children.into_iter();
        let Some(records) = children.next() else {
            return internal_err!("ClassesExec has no child");
        };
        let (values, labels) = (children.next(), children.next());
        if spec.labels != labels.is_some() {
            return internal_err!("ClassesExec needs a hierarchy exactly if values are labels");
        }
        let columns = 2 + usize::from(!spec.one_row_per_individual);
        if records.schema().fields().len() != columns {
            return internal_err!("ClassesExec needs {columns} columns of records");
        }
        let properties = properties(
            class_schema(),
            records.output_partitioning().partition_count(),
            EmissionType::Incremental,
        );
        Ok(Self {
            spec,
            records,
            values,
            labels,
            whole: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// How classes are measured.
    pub fn spec(&self) -> &Arc<ClassesSpec> {
        &self.spec
    }

    /// The children that are read once.
    fn read_once(&self) -> impl Iterator<Item = &Arc<dyn ExecutionPlan>> {
        self.values.iter().chain(&self.labels)
    }
}

impl DisplayAs for ClassesExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [("function", self.spec.function.clone())];
        show(t, f, "ClassesExec", &facts)
    }
}

impl ExecutionPlan for ClassesExec {
    fn name(&self) -> &str {
        "ClassesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        [&self.records]
            .into_iter()
            .chain(self.read_once())
            .collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let mut required = vec![Distribution::KeyPartitioned(vec![column(&self.records, 0)])];
        required.extend(self.read_once().map(|_| Distribution::SinglePartition));
        InputDistributionRequirements::new(required)
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let mut required = vec![ascending(&self.records, &[0])];
        required.extend(self.read_once().map(|_| None));
        required
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        let mut benefits = vec![true];
        benefits.extend(self.read_once().map(|_| false));
        benefits
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&column(&self.records, 0))
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
        let reservation = MemoryConsumer::new(format!("ClassesExec[{partition}]"))
            .register(context.memory_pool());
        let values_reservation =
            MemoryConsumer::new("ClassesExec[values]".to_string()).register(context.memory_pool());
        let mut classes = ClassReader {
            reservation,
            batch_size: context.session_config().batch_size(),
            input: self.records.execute(partition, Arc::clone(&context))?,
            schema: self.records.schema(),
            function: self.spec.function.clone(),
            pending: vec![],
        };
        let (spec, whole) = (Arc::clone(&self.spec), Arc::clone(&self.whole));
        let (values, labels) = (self.values.clone(), self.labels.clone());
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let stream = async_stream::try_stream! {
            let read = async {
                Whole::read(&spec, values, labels, &context, values_reservation).await.map_err(Arc::new)
            };
            whole.get_or_init(|| read).await.as_ref().map_err(|e| DataFusionError::Shared(Arc::clone(e)))?;
            let mut least = None;
            while let Some(records) = classes.next().await? {
                let (spec, whole) = (Arc::clone(&spec), Arc::clone(&whole));
                let elapsed = baseline.elapsed_compute().clone();
                let task = SpawnedTask::spawn_blocking(move || {
                    let timer = elapsed.timer();
                    let whole = match whole.get() {
                        Some(Ok(whole)) => whole,
                        _ => return internal_err!("the values of the table are not known"),
                    };
                    let rows = measure(&spec, whole, &records, &mut least)?;
                    timer.done();
                    Ok((rows, least))
                });
                let (rows, known) = task
                    .join()
                    .await
                    .map_err(|_| exec_datafusion_err!("measuring a class was interrupted"))??;
                least = known;
                yield rows.record_output(&baseline);
                classes.release();
            }
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

/// Measures complete classes.
fn measure(
    spec: &ClassesSpec,
    whole: &Whole,
    records: &RecordBatch,
    least: &mut Option<usize>,
) -> Result<RecordBatch> {
    let runs = Runs::new(records.column(0));
    let sensitive = records.column(records.num_columns() - 1);
    let individuals: ArrayRef = if spec.one_row_per_individual {
        Arc::new(UInt64Array::from_iter_values(0..records.num_rows() as u64))
    } else {
        Arc::clone(records.column(1))
    };
    let published = ShownClasses::try_new(
        &[Arc::clone(&runs.classes)],
        &runs.class_of_record,
        &individuals,
        sensitive,
    )?;
    let numbers = whole.numbers(&published, sensitive)?;
    let mut measurer = Measurer::new(&published, &whole.reference, numbers.as_deref());
    let versus = spec.versus.as_ref().and_then(|v| v.requirements());
    let most_in_category: Option<Ratio> = match &spec.max_category_share {
        Some(share) => match share.parse() {
            Ok(share) => Some(share),
            Err(_) => return internal_err!("max_category_share is no share"),
        },
        None => None,
    };
    let names = runs.classes.as_binary::<i32>();
    let mut rows = ClassRows::default();
    for class in published.classes() {
        let measures = measurer.measure(&class);
        let enough = if spec.every_eir_l { None } else { *least };
        let eir_l = eir_l(&class, enough);
        if let Some(minimum) = eir_l {
            let size = minimum.size();
            *least = Some(least.map_or(size, |least| least.min(size)));
        }
        let versus = versus.map(|(plain, enhanced)| {
            (
                measurer.satisfies(&class, &plain),
                measurer.satisfies(&class, &enhanced),
            )
        });
        let fingerprints = match &numbers {
            Some(numbers) if spec.fingerprints => fingerprints(&class.value_sets(), numbers),
            _ => vec![],
        };
        let known = measures.individuals - measures.individuals_without_value;
        let category_stands_out = most_in_category
            .as_ref()
            .map(|share| !share.admits(measures.individuals_in_modal_category, known));
        let related = match (&numbers, &whole.labels) {
            (Some(numbers), Some((labels, places))) => {
                Some(labels.measure(placed(&class, numbers, labels, places)))
            }
            _ => None,
        };
        rows.push(ClassRow {
            name: spec.key.name(names.value(class.tuple())),
            measures,
            eir_l,
            versus,
            category_stands_out,
            related,
            fingerprints,
        });
    }
    Ok(rows.finish()?)
}

/// The labels of each individual of a class, as places. A missing value may be anything, as the root is.
fn placed(
    class: &Class<'_>,
    numbers: &[u32],
    labels: &LabelPlaces,
    places: &[u32],
) -> Vec<Vec<u32>> {
    let place = |code: &u32| match numbers[*code as usize] {
        u32::MAX => labels.root(),
        number => places[number as usize],
    };
    let sets = class.all_value_sets().into_iter();
    sets.map(|set| set.iter().map(place).collect()).collect()
}

/// A hash of each set of values that is the same in every batch and partition. A missing value can be seen as well.
fn fingerprints(sets: &[(&[u32], bool)], numbers: &[u32]) -> Vec<u64> {
    let hash = |code: u32| mixed(u64::from(numbers[code as usize]).wrapping_add(1));
    let hash_of_set = |(set, missing): &(&[u32], bool)| {
        let none = if *missing { mixed(u64::MAX) } else { 0 };
        set.iter().map(|&c| hash(c)).fold(none, u64::wrapping_add)
    };
    sets.iter().map(hash_of_set).collect()
}

/// Steele 2014's SplitMix64: spreads small numbers over all 64 bits.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs of records of one class.
struct Runs {
    /// One row per run.
    classes: ArrayRef,
    class_of_record: Vec<u32>,
}

impl Runs {
    fn new(column: &ArrayRef) -> Self {
        let classes = column.as_binary::<i32>();
        let mut firsts = datafusion::arrow::array::BinaryBuilder::new();
        let mut class_of_record = Vec::with_capacity(classes.len());
        let (mut runs, mut before) = (0u32, None);
        for class in classes.iter().flatten() {
            if before != Some(class) {
                firsts.append_value(class);
                runs += 1;
                before = Some(class);
            }
            class_of_record.push(runs - 1);
        }
        Self {
            classes: Arc::new(firsts.finish()),
            class_of_record,
        }
    }
}

/// Cuts the sorted records into pieces of complete classes.
struct ClassReader {
    input: SendableRecordBatchStream,
    schema: SchemaRef,
    function: String,
    batch_size: usize,
    /// Records that were read and not returned, none of them of a class that was.
    pending: Vec<RecordBatch>,
    reservation: MemoryReservation,
}

/// What measuring needs, in bytes per byte of records: the records in one piece, their codes, and sets of values.
const WORK_FACTOR: usize = 4;

impl ClassReader {
    /// The records of some complete classes.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let rows: usize = self.pending.iter().map(RecordBatch::num_rows).sum();
            if rows >= self.batch_size
                && let Some(last) = self.pending.pop()
            {
                let begin = last_run(&last);
                if begin > 0 {
                    self.pending.push(last.slice(0, begin));
                    let complete = concat_batches(&self.schema, &self.pending)?;
                    self.pending = vec![last.slice(begin, last.num_rows() - begin)];
                    return Ok(Some(complete));
                }
                if let Some(before) = self.pending.last()
                    && class(before, before.num_rows() - 1) != class(&last, 0)
                {
                    let complete = concat_batches(&self.schema, &self.pending)?;
                    self.pending = vec![last];
                    return Ok(Some(complete));
                }
                self.pending.push(last);
            }
            match self.input.next().await {
                Some(batch) => {
                    let batch = batch.map_err(|e| error::input(&self.function, e))?;
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

    /// Gives back the memory of the records that were last returned.
    fn release(&mut self) {
        let held: usize = self.pending.iter().map(sliced_size).sum();
        self.reservation.resize(WORK_FACTOR * held);
    }
}

fn class(batch: &RecordBatch, at: usize) -> &[u8] {
    batch.column(0).as_binary::<i32>().value(at)
}

/// Where the last class of a batch begins.
fn last_run(batch: &RecordBatch) -> usize {
    let last = class(batch, batch.num_rows() - 1);
    let (mut low, mut high) = (0, batch.num_rows() - 1);
    while low < high {
        let middle = (low + high) / 2;
        if class(batch, middle) < last {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
