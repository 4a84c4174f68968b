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
use crate::measure::cells::{Cell, CellColumn, LabelCells, Point, Reader, points};
use crate::measure::{CoverSpec, cover_schema};

/// Counts, per published class, the individuals of another table whose values it covers.
///
/// The first child's individuals stream through; the second child's classes, and the hierarchies of columns with labels
/// in the others, are read once. Where both sides have a key, only classes with the same key are looked at. A few of them
/// are looked at one by one; of more, those that cover a value of a column are a set of bits, and whoever fits a class is
/// in the sets of all columns.
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
    /// The classes with each key, or all of them.
    groups: Vec<Vec<u32>>,
    /// The group of each key.
    by_key: HashMap<u64, usize>,
    columns: Vec<CellColumn>,
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
                let labels = LabelCells::try_new(hierarchy.columns(), value_type)?;
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
        Ok(Self::new(
            Arc::clone(table.column(0)),
            table.column(last).as_primitive::<Int64Type>().clone(),
            keys,
            columns,
            reservation,
        ))
    }

    fn new(
        names: ArrayRef,
        individuals: Int64Array,
        keys: Option<UInt64Array>,
        columns: Vec<CellColumn>,
        reservation: MemoryReservation,
    ) -> Self {
        let (mut groups, mut by_key) = (vec![], HashMap::new());
        match &keys {
            None => groups.push((0..names.len() as u32).collect()),
            Some(keys) => {
                for (class, key) in (0u32..).zip(keys) {
                    let Some(key) = key else { continue };
                    let group = *by_key.entry(key).or_insert(groups.len());
                    if group == groups.len() {
                        groups.push(vec![]);
                    }
                    groups[group].push(class);
                }
            }
        }
        Self {
            names,
            individuals,
            keys,
            groups,
            by_key,
            columns,
            _reservation: reservation,
        }
    }

    fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether a class covers all values of a row.
    fn fits(&self, class: u32, values: &[Vec<Option<Point>>], row: usize) -> bool {
        let mut columns = self.columns.iter().zip(values);
        columns.all(|(column, values)| column.cell(class as usize).covers(values[row].as_ref()))
    }
}

/// So many classes are looked at one by one.
const FEW: usize = 8;

/// Bytes of sets of bits that one partition remembers; then it forgets them all.
const MOST_BYTES: usize = 64 << 20;

/// The classes of a group that cover a value, one bit each.
#[derive(Debug)]
struct Covering {
    bits: Box<[u64]>,
    classes: u32,
}

/// By group and value; `None` is a missing value.
type Known = HashMap<(usize, Option<Point>), Arc<Covering>>;

/// Who fitted so far.
struct Fitting<'a> {
    classes: &'a Classes,
    covered: Vec<i64>,
    /// For each column the classes that cover a value.
    known: Vec<Known>,
    reservation: MemoryReservation,
}

impl<'a> Fitting<'a> {
    fn new(classes: &'a Classes, reservation: MemoryReservation) -> Self {
        Self {
            classes,
            covered: vec![0; classes.len()],
            known: vec![HashMap::new(); classes.columns.len()],
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
        let keys = spec
            .keyed
            .then(|| batch.column(columns).as_primitive::<UInt64Type>());
        for (row, weight) in weights.values().iter().enumerate() {
            let group = match keys {
                None => Some(0),
                Some(keys) if keys.is_null(row) => None,
                Some(keys) => self.classes.by_key.get(&keys.value(row)).copied(),
            };
            if let Some(group) = group {
                self.add_row(group, &values, row, *weight)?;
            }
        }
        Ok(())
    }

    /// Counts a row for the classes of a group that it fits.
    fn add_row(
        &mut self,
        group: usize,
        values: &[Vec<Option<Point>>],
        row: usize,
        weight: i64,
    ) -> Result<()> {
        let classes = self.classes;
        let members = &classes.groups[group];
        if members.len() <= FEW {
            for &class in members {
                if classes.fits(class, values, row) {
                    self.covered[class as usize] += weight;
                }
            }
            return Ok(());
        }
        let mut covering = Vec::with_capacity(values.len());
        for (column, values) in values.iter().enumerate() {
            covering.push(self.covering(column, group, &values[row]));
        }
        // What few classes cover leaves little for the others to look at.
        covering.sort_unstable_by_key(|covering| covering.classes);
        for at in 0..members.len().div_ceil(64) {
            let mut left = u64::MAX;
            for covering in &covering {
                left &= covering.bits[at];
                if left == 0 {
                    break;
                }
            }
            while left != 0 {
                let class = members[at * 64 + left.trailing_zeros() as usize];
                self.covered[class as usize] += weight;
                left &= left - 1;
            }
        }
        Ok(())
    }

    /// The classes of a group that cover a value of a column.
    fn covering(&mut self, column: usize, group: usize, value: &Option<Point>) -> Arc<Covering> {
        let key = (group, value.clone());
        if let Some(known) = self.known[column].get(&key) {
            return Arc::clone(known);
        }
        let (members, published) = (&self.classes.groups[group], &self.classes.columns[column]);
        let mut bits = vec![0u64; members.len().div_ceil(64)];
        let covers = |cell: &Cell| cell.covers(value.as_ref());
        // Many classes may have the same cells.
        let by_cell = published.cells.len() < members.len();
        let by_cell = by_cell.then(|| published.cells.iter().map(covers).collect::<Vec<_>>());
        for (at, &class) in members.iter().enumerate() {
            let covers = match &by_cell {
                Some(by_cell) => by_cell[published.codes[class as usize] as usize],
                None => covers(published.cell(class as usize)),
            };
            bits[at / 64] |= u64::from(covers) << (at % 64);
        }
        let covering = Arc::new(Covering {
            classes: bits.iter().map(|word| word.count_ones()).sum(),
            bits: bits.into(),
        });
        let bytes = 8 * covering.bits.len() + 128;
        if self.reservation.size() + bytes > MOST_BYTES {
            self.known.iter_mut().for_each(HashMap::clear);
            self.reservation.free();
        }
        // Where there is no memory for it, it is computed again.
        if self.reservation.try_grow(bytes).is_ok() {
            self.known[column].insert(key, Arc::clone(&covering));
        }
        covering
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

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::measure::CoverColumn;

    fn cell(rng: &mut ChaCha8Rng) -> Cell {
        let (lo, more) = (rng.random_range(0..12), rng.random_range(0..6));
        match rng.random_range(0..10) {
            0 => Cell::Suppressed,
            1 => Cell::Missing,
            2 | 3 => Cell::set([Point::Integer(lo), Point::Integer(lo + more)]),
            _ => Cell::Interval(Point::Integer(lo), Point::Integer(lo + more)),
        }
    }

    /// Sets of bits count whom the plain way counts: each row against each class with the same key.
    #[test]
    fn sets_of_bits_count_as_rows_and_classes_one_by_one() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for round in 0..200 {
            let (keyed, width) = (round % 2 == 0, rng.random_range(1..=3));
            let (classes, rows) = (rng.random_range(0..300), rng.random_range(1..60));
            let kinds = [1u64, 3, 40][round % 3];
            let mut keys = |n: usize| -> UInt64Array {
                let mut key = || {
                    rng.random_range(0..12)
                        .ne(&0)
                        .then(|| rng.random_range(0..kinds))
                };
                (0..n).map(|_| key()).collect()
            };
            let (of_classes, of_rows) = (keys(classes), keys(rows));
            let columns: Vec<CellColumn> = (0..width)
                .map(|_| {
                    let cells = rng.random_range(1..=classes.max(1));
                    CellColumn {
                        cells: (0..cells).map(|_| cell(&mut rng)).collect(),
                        codes: (0..classes)
                            .map(|_| rng.random_range(0..cells as u32))
                            .collect(),
                    }
                })
                .collect();
            let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
            let reservation = || MemoryConsumer::new("test").register(&pool);
            let known = Classes::new(
                Arc::new(Int64Array::from_iter_values(0..classes as i64)),
                Int64Array::from(vec![1; classes]),
                keyed.then(|| of_classes.clone()),
                columns,
                reservation(),
            );
            let value = |rng: &mut ChaCha8Rng| {
                let value = rng.random_range(-1..19i64);
                (value >= 0).then_some(value)
            };
            let values: Vec<Int64Array> = (0..width)
                .map(|_| (0..rows).map(|_| value(&mut rng)).collect())
                .collect();
            let weights: Int64Array = (0..rows).map(|_| Some(rng.random_range(1..4))).collect();
            let mut arrays: Vec<(String, ArrayRef)> = vec![];
            for (at, values) in values.iter().enumerate() {
                arrays.push((format!("value{at}"), Arc::new(values.clone())));
            }
            if keyed {
                arrays.push(("key".to_owned(), Arc::new(of_rows.clone())));
            }
            arrays.push(("weight".to_owned(), Arc::new(weights.clone())));
            let batch = RecordBatch::try_from_iter(arrays).unwrap();
            let spec = CoverSpec {
                function: "audit".to_owned(),
                columns: (0..width)
                    .map(|at| CoverColumn {
                        name: format!("value{at}"),
                        labels: false,
                    })
                    .collect(),
                keyed,
            };

            let mut plain = vec![0; classes];
            for row in 0..rows {
                let point = |values: &Int64Array| {
                    (!values.is_null(row)).then(|| Point::Integer(values.value(row).into()))
                };
                for (class, covered) in plain.iter_mut().enumerate() {
                    let same_key = of_rows.is_valid(row)
                        && of_classes.is_valid(class)
                        && of_rows.value(row) == of_classes.value(class);
                    let mut columns = known.columns.iter().zip(&values);
                    let fits = columns
                        .all(|(column, values)| column.cell(class).covers(point(values).as_ref()));
                    if (same_key || !keyed) && fits {
                        *covered += weights.value(row);
                    }
                }
            }
            let mut fitting = Fitting::new(&known, reservation());
            fitting.add(&spec, &batch).unwrap();
            assert_eq!(fitting.covered, plain, "round {round}");
        }
    }
}
