//! [`ProfileExec`]: a first look at the quasi-identifiers.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BinaryArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
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

use super::operator::{only_child, properties, show};
use crate::coding::{Kind, Profile};
use crate::spec::Spec;

/// Learns, per partition, the domains of the quasi-identifiers and a sample of individuals.
///
/// The sample holds the individuals with the smallest random order, whatever the order, files and partitions of the
/// input are. Emits one row with the profile of the partition; [`BlockExec`](super::BlockExec) merges them.
#[derive(Debug)]
pub struct ProfileExec {
    spec: Arc<Spec>,
    kinds: Vec<Kind>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ProfileExec {
    /// Over an input whose first columns are those of [`PseudonymizeExec`](super::PseudonymizeExec): order,
    /// pseudonym, quasi-identifiers.
    pub fn try_new(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        let kinds = (0..spec.qi().len())
            .map(|c| crate::spec::kind_of(&spec, &spec.qi()[c], schema.field(2 + c).data_type()))
            .collect::<Result<Vec<_>>>()?;
        let properties = properties(
            Self::schema(),
            input.output_partitioning().partition_count(),
            EmissionType::Final,
        );
        Ok(Self {
            spec,
            kinds,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new(
            "profile",
            DataType::Binary,
            false,
        )]))
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }
}

impl DisplayAs for ProfileExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qi = format!("[{}]", self.spec.qi().join(", "));
        show(t, f, "ProfileExec", &[("qi", qi)])
    }
}

impl ExecutionPlan for ProfileExec {
    fn name(&self) -> &str {
        "ProfileExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Arc::new(Self::try_new(
            Arc::clone(&self.spec),
            only_child(children)?,
        )?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("ProfileExec[{partition}]"))
            .register(context.memory_pool());
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let kinds = self.kinds.clone();
        let one_row = self.spec.one_row_per_individual();
        let stream = async_stream::try_stream! {
            let mut profile = Profile::new(&kinds, one_row);
            while let Some(batch) = input.next().await {
                let batch = if one_row { batch? } else { one_row_per_run(&batch?)? };
                let timer = baseline.elapsed_compute().timer();
                let order = batch.column(0).as_primitive::<UInt64Type>();
                profile.update(&kinds, order, &batch.columns()[2..2 + kinds.len()])?;
                timer.done();
                reservation.try_resize(profile.size())?;
            }
            profile.finish();
            let bytes = serde_json::to_vec(&profile)
                .map_err(|_| exec_datafusion_err!("the profile cannot be sent"))?;
            let profile = BinaryArray::from_iter_values([bytes]);
            yield RecordBatch::try_new(Self::schema(), vec![Arc::new(profile)])?.record_output(&baseline);
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Self::schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Drops records that repeat the individual and the quasi-identifiers of the record before them.
fn one_row_per_run(batch: &RecordBatch) -> Result<RecordBatch> {
    let order = batch.column(0).as_primitive::<UInt64Type>().values();
    let rows = crate::coding::rows(&batch.columns()[2..])?;
    let new = |i: usize| i == 0 || order[i] != order[i - 1] || rows.row(i) != rows.row(i - 1);
    let mask: BooleanArray = (0..batch.num_rows()).map(|i| Some(new(i))).collect();
    Ok(filter_record_batch(batch, &mask)?)
}
