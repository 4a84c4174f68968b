//! [`CoverExec`]: counts who fits into which class.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{Int64Type, UInt64Type};
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
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use hashbrown::HashMap;
use tokio::sync::OnceCell;

use crate::engine::{collect, first_only, others_whole, properties, show};
use crate::error;
use crate::measure::cells::{Cell, Labels, Point, Reader, points};
use crate::measure::{CoverSpec, cover_schema};

/// Counts, per published class, the individuals of another table whose values it covers.
///
/// The first child's individuals stream through; the second child's classes, and the hierarchies of columns with labels
/// in the others, are read once. For each value of a column
/// the classes that cover it are a set of bits, and whoever fits a class is in the sets of all columns. Where both sides
/// have a key, only classes with the same key are looked at, one by one.
#[derive(Debug)]
pub struct CoverExec {
    spec: Arc<CoverSpec>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    /// Read once, by whichever partition comes first; a failure is everybody's.
    known: Arc<OnceCell<Result<Classes, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl CoverExec {
    /// Over individuals, classes and hierarchies, as [`CoverSpec`] says.
    pub fn try_new(spec: Arc<CoverSpec>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        if children.len() != 2 + spec.hierarchies() {
            return internal_err!("CoverExec cannot have {} children", children.len());
        }
        let columns = spec.columns.len() + usize::from(spec.keyed);
        let widths = [0, 1].map(|child| children[child].schema().fields().len());
        if widths != [columns + 1, columns + 2] {
            return internal_err!("CoverExec cannot have {widths:?} columns");
        }
        let properties = properties(
            cover_schema(),
            children[0].output_partitioning().partition_count(),
            EmissionType::Final,
        );
        Ok(Self {
            spec,
            children,
            known: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is compared.
    pub fn spec(&self) -> &Arc<CoverSpec> {
        &self.spec
    }
}

impl DisplayAs for CoverExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.spec.columns.iter().map(|c| c.name.as_str()).collect();
        let facts = [("columns", format!("[{}]", columns.join(", ")))];
        show(t, f, "CoverExec", &facts)
    }
}

impl ExecutionPlan for CoverExec {
    fn name(&self) -> &str {
        "CoverExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.children.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        others_whole(self.children.len())
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        first_only(self.children.len())
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
        Ok(Arc::new(Self::try_new(Arc::clone(&self.spec), children)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation =
            MemoryConsumer::new(format!("CoverExec[{partition}]")).register(context.memory_pool());
        let shared =
            MemoryConsumer::new("CoverExec[classes]".to_string()).register(context.memory_pool());
        let mut input = self.children[0].execute(partition, Arc::clone(&context))?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, children) = (Arc::clone(&self.spec), self.children.clone());
        let known = Arc::clone(&self.known);
        let stream = async_stream::try_stream! {
            let read = async {
                Classes::read(&spec, &children, &context, shared).await.map_err(Arc::new)
            };
            let classes = known.get_or_init(|| read).await.as_ref();
            let classes = classes.map_err(|e| DataFusionError::Shared(Arc::clone(e)))?;
            let mut fitting = Fitting::new(classes, reservation);
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                fitting.add(&spec, &batch)?;
                timer.done();
                tokio::task::consume_budget().await;
            }
            yield fitting.finish()?.record_output(&baseline);
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

/// The published classes.
#[derive(Debug)]
struct Classes {
    names: ArrayRef,
    individuals: Int64Array,
    keys: Option<UInt64Array>,
    /// The classes with each key.
    by_key: HashMap<u64, Vec<u32>>,
    columns: Vec<crate::measure::cells::Column>,
    _reservation: MemoryReservation,
}

impl Classes {
    async fn read(
        spec: &CoverSpec,
        children: &[Arc<dyn ExecutionPlan>],
        context: &Arc<TaskContext>,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let table = collect(&children[1], context, &reservation).await?;
        let individuals = children[0].schema();
        let mut hierarchies = children[2..].iter();
        let mut columns = vec![];
        for (at, asked) in spec.columns.iter().enumerate() {
            let value_type = individuals.field(at).data_type();
            let mut reader = Reader::new().with_type(value_type.clone());
            if asked.labels
                && let Some(hierarchy) = hierarchies.next()
            {
                let hierarchy = collect(hierarchy, context, &reservation).await?;
                let labels = Labels::try_new(hierarchy.columns(), value_type)?;
                reader = reader.with_labels(Arc::new(labels));
            }
            // The reader's messages count cells and show none.
            let column = reader.read(table.column(1 + at)).map_err(|e| {
                error::data(
                    &spec.function,
                    format!("column '{}' cannot be read: {e}", asked.name),
                )
            })?;
            columns.push(column);
        }
        let last = table.num_columns() - 1;
        let keys = spec
            .keyed
            .then(|| table.column(last - 1).as_primitive::<UInt64Type>().clone());
        let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
        for (class, key) in (0u32..).zip(keys.iter().flatten()) {
            if let Some(key) = key {
                by_key.entry(key).or_default().push(class);
            }
        }
        Ok(Self {
            names: Arc::clone(table.column(0)),
            individuals: table.column(last).as_primitive::<Int64Type>().clone(),
            keys,
            by_key,
            columns,
            _reservation: reservation,
        })
    }

    fn len(&self) -> usize {
        self.names.len()
    }

    fn cell(&self, column: usize, class: u32) -> &Cell {
        self.columns[column].cell(class as usize)
    }
}

/// Bytes of sets of bits that one partition remembers; then it forgets them all.
const MOST_BYTES: usize = 64 << 20;

/// Which classes cover a value, one bit each, by value; `None` is a missing value.
type Bits = HashMap<Option<Point>, Arc<[u64]>>;

/// Who fitted so far.
struct Fitting<'a> {
    classes: &'a Classes,
    covered: Vec<i64>,
    /// For each column the classes that cover a value.
    bits: Vec<Bits>,
    bytes: usize,
    reservation: MemoryReservation,
}

impl<'a> Fitting<'a> {
    fn new(classes: &'a Classes, reservation: MemoryReservation) -> Self {
        Self {
            classes,
            covered: vec![0; classes.len()],
            bits: vec![HashMap::new(); classes.columns.len()],
            bytes: 0,
            reservation,
        }
    }

    fn add(&mut self, spec: &CoverSpec, batch: &RecordBatch) -> Result<()> {
        let columns = spec.columns.len();
        let values = batch.columns()[..columns]
            .iter()
            .map(points)
            .collect::<Result<Vec<_>, _>>()?;
        let weights = batch.column(batch.num_columns() - 1);
        let weights = weights.as_primitive::<Int64Type>();
        if spec.keyed {
            let keys = batch.column(columns).as_primitive::<UInt64Type>();
            self.add_keyed(&values, keys, weights);
            return Ok(());
        }
        for row in 0..batch.num_rows() {
            let mut fitting: Option<Vec<u64>> = None;
            for (column, values) in values.iter().enumerate() {
                let bits = self.covering(column, &values[row])?;
                match &mut fitting {
                    None => fitting = Some(bits.to_vec()),
                    Some(all) => all.iter_mut().zip(bits.iter()).for_each(|(a, b)| *a &= b),
                }
            }
            for (at, word) in fitting.into_iter().flatten().enumerate() {
                let mut left = word;
                while left != 0 {
                    self.covered[at * 64 + left.trailing_zeros() as usize] += weights.value(row);
                    left &= left - 1;
                }
            }
        }
        Ok(())
    }

    fn add_keyed(
        &mut self,
        values: &[Vec<Option<Point>>],
        keys: &UInt64Array,
        weights: &Int64Array,
    ) {
        for (row, key) in keys.iter().enumerate() {
            let candidates = key.and_then(|key| self.classes.by_key.get(&key));
            for &class in candidates.into_iter().flatten() {
                let covers = |(column, values): (usize, &Vec<Option<Point>>)| {
                    self.classes
                        .cell(column, class)
                        .covers(values[row].as_ref())
                };
                if values.iter().enumerate().all(covers) {
                    self.covered[class as usize] += weights.value(row);
                }
            }
        }
    }

    /// The classes that cover a value of a column.
    fn covering(&mut self, column: usize, value: &Option<Point>) -> Result<Arc<[u64]>> {
        if let Some(bits) = self.bits[column].get(value) {
            return Ok(Arc::clone(bits));
        }
        let published = &self.classes.columns[column];
        let covers: Vec<bool> = published
            .cells
            .iter()
            .map(|cell| cell.covers(value.as_ref()))
            .collect();
        let mut bits = vec![0u64; self.classes.len().div_ceil(64)];
        for (class, &code) in published.codes.iter().enumerate() {
            bits[class / 64] |= u64::from(covers[code as usize]) << (class % 64);
        }
        let bytes = 8 * bits.len() + 64;
        if self.bytes + bytes > MOST_BYTES {
            self.bits.iter_mut().for_each(HashMap::clear);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.reservation.try_resize(self.bytes)?;
        let bits: Arc<[u64]> = bits.into();
        self.bits[column].insert(value.clone(), Arc::clone(&bits));
        Ok(bits)
    }

    fn finish(self) -> Result<RecordBatch> {
        let keys = match &self.classes.keys {
            Some(keys) => keys.clone(),
            None => UInt64Array::new_null(self.classes.len()),
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::clone(&self.classes.names),
            Arc::new(keys),
            Arc::new(self.classes.individuals.clone()),
            Arc::new(Int64Array::from(self.covered)),
        ];
        Ok(RecordBatch::try_new(cover_schema(), columns)?)
    }
}
