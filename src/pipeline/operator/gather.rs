//! [`GatherExec`]: the individuals of a table, one by one.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryBuilder, Int64Builder, RecordBatch};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
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

use super::sorted::{Key, Side, ValueSet};
use crate::engine::{ascending, column, only_child, properties, show};
use crate::measure::{GatherSpec, gather_schema};

/// Gives one row for each individual and each class in which it is; how many records and different values it has is told in the
/// first of them.
///
/// Asks the engine for records that were collapsed by [`CollapseExec`](super::CollapseExec), partitioned and sorted by key.
/// Memory is bounded by a batch and the values and classes of the largest individual.
#[derive(Debug)]
pub struct GatherExec {
    spec: Arc<GatherSpec>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl GatherExec {
    /// Over collapsed records, which carry their class or nothing.
    pub fn try_new(spec: Arc<GatherSpec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let width = 2 + usize::from(spec.classes) + spec.sensitive;
        if input.schema().fields().len() != width {
            return internal_err!("GatherExec needs {width} columns");
        }
        let properties = properties(
            gather_schema(),
            input.output_partitioning().partition_count(),
            EmissionType::Incremental,
        );
        Ok(Self {
            spec,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is gathered.
    pub fn spec(&self) -> &Arc<GatherSpec> {
        &self.spec
    }
}

impl DisplayAs for GatherExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [("function", self.spec.function.clone())];
        show(t, f, "GatherExec", &facts)
    }
}

impl ExecutionPlan for GatherExec {
    fn name(&self) -> &str {
        "GatherExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let key = Distribution::KeyPartitioned(vec![column(&self.input, 0)]);
        InputDistributionRequirements::new(vec![key])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![ascending(&self.input, &[0])]
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
        let spec = Arc::clone(&self.spec);
        Ok(Arc::new(Self::try_new(spec, only_child(children)?)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation =
            MemoryConsumer::new(format!("GatherExec[{partition}]")).register(context.memory_pool());
        let batch_size = context.session_config().batch_size();
        let input = self.input.execute(partition, context)?;
        let carried = usize::from(self.spec.classes);
        let mut side = Side::new(&self.spec.function, input, carried);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let mut open = Open::new(&self.spec);
        let stream = async_stream::try_stream! {
            let mut rows = Gathered::default();
            loop {
                side.load().await?;
                reservation.try_resize(side.size() + open.size())?;
                let timer = baseline.elapsed_compute().timer();
                let going_on = open.read(&mut side, &mut rows)?;
                timer.done();
                if rows.len >= batch_size || !going_on && rows.len > 0 {
                    yield rows.finish()?.record_output(&baseline);
                }
                if !going_on {
                    break;
                }
                tokio::task::consume_budget().await;
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

/// The individual that is being read.
struct Open {
    key: Option<Key>,
    records: i64,
    classes: HashSet<Box<[u8]>>,
    values: Vec<ValueSet>,
}

impl Open {
    fn new(spec: &GatherSpec) -> Self {
        Self {
            key: None,
            records: 0,
            classes: HashSet::new(),
            values: (0..spec.sensitive).map(|_| ValueSet::default()).collect(),
        }
    }

    fn size(&self) -> usize {
        let values: usize = self.values.iter().map(ValueSet::size).sum();
        values + 128 * self.classes.len()
    }

    /// Goes on to the end of the batch. False if there is nothing more.
    fn read(&mut self, side: &mut Side, rows: &mut Gathered) -> Result<bool> {
        loop {
            let next = side.key()?;
            if self.key.is_some() && self.key != next {
                self.finish(rows);
            }
            let Some(key) = next else {
                return Ok(false);
            };
            self.key = Some(key);
            let range = side.take(key)?;
            if let Some(now) = side.now() {
                self.records += now.records(range.clone());
                match now.carried.first() {
                    Some(classes) => {
                        let classes = classes.as_binary::<i32>();
                        range
                            .clone()
                            .for_each(|row| self.add_class(classes.value(row)));
                    }
                    None => self.add_class(&[]),
                }
                now.add_values(range, &mut self.values);
            }
            if side.is_at_end() {
                return Ok(true);
            }
        }
    }

    fn add_class(&mut self, class: &[u8]) {
        if !self.classes.contains(class) {
            self.classes.insert(class.into());
        }
    }

    fn finish(&mut self, rows: &mut Gathered) {
        let values: usize = self
            .values
            .iter_mut()
            .map(|values| {
                values.settle();
                let different = values.len();
                values.clear();
                different
            })
            .sum();
        let named = self.key.take() != Some(Key::Nobody);
        let several = named && self.classes.len() > 1;
        // Which of its classes is the first does not matter: all that is told in it is added up.
        for (at, class) in std::mem::take(&mut self.classes).iter().enumerate() {
            let first = i64::from(at == 0);
            rows.push(
                class,
                [
                    first,
                    first * i64::from(named),
                    first * if named { 0 } else { self.records },
                    first * i64::from(several),
                    first * self.records,
                    first * values as i64,
                ],
            );
        }
        self.records = 0;
    }
}

/// Rows to emit.
#[derive(Default)]
struct Gathered {
    classes: BinaryBuilder,
    counts: [Int64Builder; 6],
    len: usize,
}

impl Gathered {
    fn push(&mut self, class: &[u8], counts: [i64; 6]) {
        self.classes.append_value(class);
        for (column, count) in self.counts.iter_mut().zip(counts) {
            column.append_value(count);
        }
        self.len += 1;
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        self.len = 0;
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.classes.finish())];
        for column in &mut self.counts {
            columns.push(Arc::new(column.finish()));
        }
        Ok(RecordBatch::try_new(gather_schema(), columns)?)
    }
}
