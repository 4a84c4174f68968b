//! [`ReportExec`]: figures as rows with names and notes.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
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
use futures::StreamExt;

use crate::engine::{only_child, properties, show};
use crate::error;
use crate::measure::Report;

/// Turns one row of figures into the rows of a report.
#[derive(Debug)]
pub struct ReportExec {
    report: Arc<Report>,
    function: String,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ReportExec {
    /// Over an input of one row.
    pub fn new(report: Arc<Report>, function: String, input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = properties(report.schema(), 1, EmissionType::Final);
        Self {
            report,
            function,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        }
    }

    /// Which report.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// The SQL function that reports.
    pub fn function(&self) -> &str {
        &self.function
    }
}

impl DisplayAs for ReportExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(t, f, "ReportExec", &[("function", self.function.clone())])
    }
}

impl ExecutionPlan for ReportExec {
    fn name(&self) -> &str {
        "ReportExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        let input = only_child(children)?;
        let report = Arc::clone(&self.report);
        Ok(Arc::new(Self::new(report, self.function.clone(), input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (report, function) = (Arc::clone(&self.report), self.function.clone());
        let stream = async_stream::try_stream! {
            let mut figures: Option<RecordBatch> = None;
            while let Some(batch) = input.next().await {
                let batch = batch.map_err(|e| error::input(&function, e))?;
                if batch.num_rows() > 0 && figures.replace(batch).is_some() {
                    internal_err!("a report is on one row of figures")?;
                }
            }
            match figures {
                Some(figures) => yield report.of(&figures)?.record_output(&baseline),
                None => internal_err!("a report without figures")?,
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
