//! [`MaskErrorsExec`]: lets rows pass, and errors without the values that they show.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use crate::engine::only_child;
use crate::error;

/// The root of a plan whose errors may not show values of the data. Rows, their order and their partitions stay as they
/// are.
#[derive(Debug)]
pub struct MaskErrorsExec {
    function: String,
    files: Vec<String>,
    input: Arc<dyn ExecutionPlan>,
}

impl MaskErrorsExec {
    /// Over a whole plan; errors are told in the name of a function, with the files that the plan reads.
    pub fn new(function: String, files: Vec<String>, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            function,
            files,
            input,
        }
    }

    /// In whose name errors are told.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The files that the plan reads.
    pub fn files(&self) -> &[String] {
        &self.files
    }
}

impl DisplayAs for MaskErrorsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MaskErrorsExec")
    }
}

impl ExecutionPlan for MaskErrorsExec {
    fn name(&self) -> &str {
        "MaskErrorsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
        let (function, files) = (self.function.clone(), self.files.clone());
        Ok(Arc::new(Self::new(function, files, input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (function, files) = (self.function.clone(), self.files.clone());
        let masked = move |e| error::of_query(&function, &files, e);
        let input = self.input.execute(partition, context).map_err(&masked)?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.input.schema(),
            input.map_err(masked),
        )))
    }
}
