//! [`DivisionExec`]: which quasi-identifiers would share a sub-table, and why.

use std::fmt;
use std::sync::Arc;

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
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, SendableRecordBatchStream,
};

use super::block::merge_profiles;
use crate::engine::{only_child, properties, show};
use crate::spec::Spec;
use crate::system::Layout;
use crate::system::anatomy::{LearnedTable, division_rows};

/// Shows weights, coefficients and the division of the quasi-identifiers, from the profiles of all partitions.
#[derive(Debug)]
pub struct DivisionExec {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    profile: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl DivisionExec {
    /// Over the output of [`ProfileExec`](super::ProfileExec), in one partition.
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        profile: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let properties = properties(layout.published(), 1, EmissionType::Final);
        Ok(Self {
            spec,
            layout,
            profile,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is asked for.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }
}

impl DisplayAs for DivisionExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(t, f, "DivisionExec", &self.spec.facts())
    }
}

impl ExecutionPlan for DivisionExec {
    fn name(&self) -> &str {
        "DivisionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.profile]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
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
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        let division = Self::try_new(spec, layout, only_child(children)?)?;
        Ok(Arc::new(division))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("DivisionExec has one partition");
        }
        let profile = Arc::clone(&self.profile);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        let stream = async_stream::try_stream! {
            let mut learned = LearnedTable::new(spec.qi().len());
            let _reserved = merge_profiles(&mut learned, profile, context).await?;
            let timer = baseline.elapsed_compute().timer();
            let described = division_rows(&spec, &layout, learned.profile())?;
            timer.done();
            yield described.record_output(&baseline);
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
