//! [`LossExec`]: adds up what published cells lose.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Int64Array, RecordBatch,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
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
use tokio::sync::OnceCell;

use crate::engine::{collect, first_only, others_whole, properties, show};
use crate::error;
use crate::measure::cells::{Cell, CellDomain, Heights, Interner, LabelCells, Reader, points};
use crate::measure::{LossLevels, LossSpec, SCALE, loss_schema};

/// Adds up the losses of a published table's cells: one row of sums per partition.
///
/// The first child's records stream through. Then comes one row with the domains of all columns, their values or their smallest
/// and largest ones, and for each column with a hierarchy another child with that; they are read once.
#[derive(Debug)]
pub struct LossExec {
    spec: Arc<LossSpec>,
    children: Vec<Arc<dyn ExecutionPlan>>,
    /// Read once, by whichever partition comes first; a failure is everybody's.
    scales: Arc<OnceCell<Result<Scales, Arc<DataFusionError>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl LossExec {
    /// Over published columns, their domains and hierarchies.
    pub fn try_new(spec: Arc<LossSpec>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Self> {
        if children.len() != 2 + spec.hierarchies() {
            return internal_err!("LossExec cannot have {} children", children.len());
        }
        let properties = properties(
            loss_schema(spec.columns.len()),
            children[0].output_partitioning().partition_count(),
            EmissionType::Final,
        );
        Ok(Self {
            spec,
            children,
            scales: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is measured.
    pub fn spec(&self) -> &Arc<LossSpec> {
        &self.spec
    }
}

impl DisplayAs for LossExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.spec.columns.iter().map(|c| c.name.as_str()).collect();
        let facts = [("columns", format!("[{}]", columns.join(", ")))];
        show(t, f, "LossExec", &facts)
    }
}

impl ExecutionPlan for LossExec {
    fn name(&self) -> &str {
        "LossExec"
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
            MemoryConsumer::new(format!("LossExec[{partition}]")).register(context.memory_pool());
        let mut input = self.children[0].execute(partition, Arc::clone(&context))?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, children) = (Arc::clone(&self.spec), self.children.clone());
        let scales = Arc::clone(&self.scales);
        let stream = async_stream::try_stream! {
            let read = async { Scales::read(&spec, &children, &context).await.map_err(Arc::new) };
            let scales = scales.get_or_init(|| read).await.as_ref();
            let scales = scales.map_err(|e| DataFusionError::Shared(Arc::clone(e)))?;
            let mut sums = Sums::new(scales);
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                sums.add(&spec, scales, &batch)?;
                timer.done();
                reservation.try_resize(sums.size())?;
                tokio::task::consume_budget().await;
            }
            yield sums.finish()?.record_output(&baseline);
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

/// What each column is measured against.
#[derive(Debug)]
struct Scales {
    columns: Vec<Scale>,
    _reservation: MemoryReservation,
}

#[derive(Debug)]
struct Scale {
    domain: CellDomain,
    reader: Reader,
    heights: Option<Heights>,
}

impl Scales {
    async fn read(
        spec: &LossSpec,
        children: &[Arc<dyn ExecutionPlan>],
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let reservation =
            MemoryConsumer::new("LossExec[domains]".to_string()).register(context.memory_pool());
        let mut hierarchies = children[2..].iter();
        let domains = collect(&children[1], context, &reservation).await?;
        let mut domains = domains.columns().iter();
        let mut next = || match domains.next() {
            Some(column) => Ok(column),
            None => internal_err!("the row of domains is too short"),
        };
        let mut columns = vec![];
        for column in &spec.columns {
            let first = next()?;
            let (value_type, mut domain) = if column.of_published {
                let value_type = next()?.data_type().clone();
                let reader = Reader::new().with_type(value_type.clone());
                let domain = shown(reader, &items(first)?, column.categorical)?;
                (value_type, domain)
            } else if column.categorical {
                let values = items(first)?;
                let domain = CellDomain::values(points(&values)?.into_iter().flatten());
                (values.data_type().clone(), domain)
            } else {
                let end =
                    |c: &ArrayRef| -> Result<_> { Ok(points(c)?.into_iter().flatten().next()) };
                let domain = CellDomain::range(end(first)?, end(next()?)?);
                (first.data_type().clone(), domain)
            };
            let mut reader = Reader::new().with_type(value_type.clone());
            let mut heights = None;
            if column.levels != LossLevels::None
                && let Some(hierarchy) = hierarchies.next()
            {
                let hierarchy = collect(hierarchy, context, &reservation).await?;
                heights = Some(Heights::try_new(hierarchy.columns())?);
                if column.levels == LossLevels::Labels {
                    let labels = LabelCells::try_new(hierarchy.columns(), &value_type)?;
                    if let Some(Cell::Set(leaves)) = labels.domain() {
                        domain = CellDomain::values(leaves.iter().cloned());
                    }
                    reader = reader.with_labels(Arc::new(labels));
                }
            }
            columns.push(Scale {
                domain,
                reader,
                heights,
            });
        }
        Ok(Self {
            columns,
            _reservation: reservation,
        })
    }
}

/// The values in the only list of a column.
fn items(column: &ArrayRef) -> Result<ArrayRef> {
    match column.as_list_opt::<i32>() {
        Some(lists) if lists.len() == 1 => Ok(lists.value(0)),
        _ => internal_err!("a domain is not a list"),
    }
}

/// All that published cells stand for.
fn shown(reader: Reader, cells: &ArrayRef, categorical: bool) -> Result<CellDomain> {
    let mut seen = Interner::new(reader);
    seen.read(cells)?;
    Ok(match Cell::hull(seen.cells()) {
        None => CellDomain::Empty,
        Some(Cell::Set(values)) if categorical => CellDomain::Values(values),
        Some(Cell::Set(values)) => {
            CellDomain::range(values.first().cloned(), values.last().cloned())
        }
        Some(Cell::Interval(lo, hi)) => CellDomain::range(Some(lo), Some(hi)),
        Some(_) => CellDomain::Empty,
    })
}

/// Cells that are remembered per column; then memory is given back and they are read again.
const MOST_CELLS: usize = 1 << 16;

/// What was added up so far.
struct Sums {
    records: i64,
    columns: Vec<ColumnSums>,
}

struct ColumnSums {
    interner: Interner,
    /// The losses of the cells that the interner knows.
    losses: Vec<[i128; 3]>,
    sums: [i128; 3],
    /// Heights by label.
    heights: HashMap<Option<Box<str>>, [i128; 2]>,
    height_sums: [i128; 2],
}

impl Sums {
    fn new(scales: &Scales) -> Self {
        let columns = scales.columns.iter().map(|scale| ColumnSums {
            interner: Interner::new(scale.reader.clone()),
            losses: vec![],
            sums: [0; 3],
            heights: HashMap::new(),
            height_sums: [0; 2],
        });
        Self {
            records: 0,
            columns: columns.collect(),
        }
    }

    fn add(&mut self, spec: &LossSpec, scales: &Scales, batch: &RecordBatch) -> Result<()> {
        self.records += batch.num_rows() as i64;
        let columns = self.columns.iter_mut().zip(&scales.columns);
        for (((sums, scale), column), asked) in columns.zip(batch.columns()).zip(&spec.columns) {
            sums.add(scale, column).map_err(|e| match e {
                // The reader's messages count cells and show none.
                DataFusionError::ArrowError(e, _) => error::data(
                    &spec.function,
                    format!("column '{}' cannot be read: {e}", asked.name),
                ),
                other => other,
            })?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let cells = self
            .columns
            .iter()
            .map(|c| c.losses.len() + c.heights.len());
        cells.sum::<usize>() * 256
    }

    fn finish(self) -> Result<RecordBatch> {
        let schema = loss_schema(self.columns.len());
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![self.records]))];
        for column in self.columns {
            for sum in column.sums.into_iter().chain(column.height_sums) {
                let sum = Decimal128Array::from(vec![sum]).with_precision_and_scale(38, SCALE)?;
                columns.push(Arc::new(sum));
            }
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

impl ColumnSums {
    fn add(&mut self, scale: &Scale, column: &ArrayRef) -> Result<()> {
        if self.losses.len() > MOST_CELLS {
            self.interner.clear();
            self.losses.clear();
        }
        let codes = self.interner.read(column)?;
        for cell in &self.interner.cells()[self.losses.len()..] {
            let loss = scale.domain.loss(cell);
            self.losses
                .push([loss.glm, loss.ncp_count, loss.ncp_range].map(fixed));
        }
        for code in codes {
            let losses = self.losses[code as usize];
            self.sums.iter_mut().zip(losses).for_each(|(s, l)| *s += l);
        }
        if let Some(heights) = &scale.heights {
            self.add_heights(heights, column)?;
        }
        Ok(())
    }

    fn add_heights(&mut self, heights: &Heights, column: &ArrayRef) -> Result<()> {
        if self.heights.len() > MOST_CELLS {
            self.heights.clear();
        }
        let labels = cast(column, &DataType::Utf8)?;
        for label in labels.as_string::<i32>() {
            let known = self
                .heights
                .entry(label.map(Into::into))
                .or_insert_with(|| {
                    let (height, depth) = heights.of(label);
                    [height, depth].map(fixed)
                });
            let sums = self.height_sums.iter_mut().zip(known);
            sums.for_each(|(sum, height)| *sum += *height);
        }
        Ok(())
    }
}

/// A number with [`SCALE`] digits after the point.
fn fixed(number: f64) -> i128 {
    (number * 10f64.powi(i32::from(SCALE))).round() as i128
}
