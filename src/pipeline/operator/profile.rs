//! [`ProfileExec`]: a first look at the quasi-identifiers.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BinaryArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
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

use crate::engine::{only_child, properties, show};
use crate::spec::Spec;
use crate::system::{has_records, kind_of, qi_fields};
use crate::table::coding::Kind;

/// The only column: what each partition learned, as bytes.
const PROFILE: &str = "profile";

/// Learns, per partition, the domains of the quasi-identifiers and a sample of individuals; or, for anatomization, how
/// the quasi-identifiers hang together and how often each sensitive value occurs.
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
    /// pseudonym, quasi-identifiers; and the sensitive columns, or all secret values and flags, where they are needed. Or over
    /// that of [`IndividualsExec`](super::IndividualsExec), where individuals are left out.
    pub fn try_new(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        let kinds = spec.qi().iter().zip(qi_fields(&spec, &schema));
        let kinds = kinds.map(|(name, field)| {
            let data_type = match field.data_type() {
                DataType::List(values) => values.data_type(),
                other => other,
            };
            kind_of(&spec, name, data_type)
        });
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
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
            PROFILE,
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
        let has_records = has_records(&self.spec, &self.input.schema());
        let system = self.spec.entry()?.system;
        let mut learner = system.learner(&self.spec, &self.kinds, has_records)?;
        let stream = async_stream::try_stream! {
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                learner.update(&batch)?;
                timer.done();
                reservation.try_resize(learner.size())?;
            }
            let bytes = learner
                .into_bytes()
                .ok_or_else(|| exec_datafusion_err!("the profile cannot be sent"))?;
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

/// What the partitions learned whose rows these are.
pub(super) fn profiles_of(rows: &RecordBatch) -> Result<&BinaryArray> {
    let bytes = rows.column_by_name(PROFILE);
    let bytes = bytes.and_then(|column| column.as_binary_opt::<i32>());
    bytes.ok_or_else(|| internal_datafusion_err!("there is no profile"))
}
