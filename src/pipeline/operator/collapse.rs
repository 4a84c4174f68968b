//! [`CollapseExec`]: records of one individual that stand together, as one row.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BinaryArray, Int64Array, ListArray, RecordBatch, UInt32Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{cast, partition, take};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::engine::{only_child, properties, show};
use crate::error;
use crate::measure::{CollapseSpec, class_bytes, collapse_schema, plain_type};

/// Makes one row of records that stand together, of one individual and with the same carried columns, with their sensitive
/// values as lists; and replaces the id by a hash, the same for equal ids of any type.
///
/// It only saves work: records of an individual that do not stand together, or stand in two batches, become several rows, and
/// whoever reads them must unite these. Nothing is held from one batch to the next.
#[derive(Debug)]
pub struct CollapseExec {
    spec: Arc<CollapseSpec>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl CollapseExec {
    /// Over an input with the columns that [`CollapseSpec`] says.
    pub fn try_new(spec: Arc<CollapseSpec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        if input.schema().fields().len() < 1 + spec.carried {
            return internal_err!("CollapseExec needs an id and {} columns", spec.carried);
        }
        let properties = properties(
            collapse_schema(&spec, &input.schema()),
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

    /// What is collapsed.
    pub fn spec(&self) -> &Arc<CollapseSpec> {
        &self.spec
    }
}

impl DisplayAs for CollapseExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [("carried", self.spec.carried.to_string())];
        show(t, f, "CollapseExec", &facts)
    }
}

impl ExecutionPlan for CollapseExec {
    fn name(&self) -> &str {
        "CollapseExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![true]
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
        let spec = Arc::clone(&self.spec);
        Ok(Arc::new(Self::try_new(spec, only_child(children)?)?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, schema) = (Arc::clone(&self.spec), self.schema());
        let stream = async_stream::try_stream! {
            while let Some(batch) = input.next().await {
                let batch = batch.map_err(|e| error::input(&spec.function, e))?;
                if batch.num_rows() == 0 {
                    continue;
                }
                let timer = baseline.elapsed_compute().timer();
                let collapsed = collapse(&spec, &schema, &batch)?;
                timer.done();
                yield collapsed.record_output(&baseline);
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

fn collapse(spec: &CollapseSpec, schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let (same, sensitive) = batch.columns().split_at(1 + spec.carried);
    let runs = match partition(same) {
        Ok(runs) => runs.ranges(),
        // What cannot be compared is taken to differ.
        Err(_) => (0..batch.num_rows()).map(|row| row..row + 1).collect(),
    };
    let firsts = UInt32Array::from_iter_values(runs.iter().map(|run| run.start as u32));
    let first = |column: &ArrayRef| -> Result<ArrayRef> { plain(&take(column, &firsts, None)?) };
    let mut columns = vec![keys(&first(&same[0])?)?];
    for column in &same[1..] {
        columns.push(first(column)?);
    }
    let lengths = || runs.iter().map(|run| run.len());
    columns.push(Arc::new(Int64Array::from_iter_values(
        lengths().map(|records| records as i64),
    )));
    for column in sensitive {
        let values = plain(column)?;
        let field = Field::new_list_field(values.data_type().clone(), true);
        let lists = OffsetBuffer::from_lengths(lengths());
        let lists = ListArray::try_new(Arc::new(field), lists, values, None)?;
        columns.push(Arc::new(lists));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// A hash of each id, NULL where there is none.
fn keys(ids: &ArrayRef) -> Result<ArrayRef> {
    let hashes = class_bytes(std::slice::from_ref(ids))?;
    let (offsets, values, _) = hashes.into_parts();
    let nulls: Option<NullBuffer> = ids.logical_nulls();
    Ok(Arc::new(BinaryArray::try_new(offsets, values, nulls)?))
}

/// A column without dictionaries and views.
fn plain(column: &ArrayRef) -> Result<ArrayRef> {
    let wanted: DataType = plain_type(column.data_type());
    Ok(match *column.data_type() == wanted {
        true => Arc::clone(column),
        false => cast(column, &wanted)?,
    })
}
