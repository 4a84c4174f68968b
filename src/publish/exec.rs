//! [`PublishExec`]: makes the release when it is read from.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::UserDefinedLogicalNodeCore;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::manifest::Manifest;
use super::node::PublishNode;

/// Publishes, and then gives a row per file. It runs in the session that planned it, and is not sent elsewhere.
pub struct PublishExec {
    node: PublishNode,
    state: SessionState,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl PublishExec {
    pub(crate) fn new(node: PublishNode, state: SessionState) -> Self {
        let schema = Arc::new(UserDefinedLogicalNodeCore::schema(&node).as_arrow().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Self {
            node,
            state,
            schema,
            properties: Arc::new(properties),
        }
    }
}

impl fmt::Debug for PublishExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishExec")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for PublishExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublishExec")
    }
}

impl ExecutionPlan for PublishExec {
    fn name(&self) -> &str {
        "PublishExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
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
        if !children.is_empty() {
            return internal_err!("PublishExec has no children");
        }
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (node, state) = (self.node.clone(), self.state.clone());
        let schema = Arc::clone(&self.schema);
        let files = async move {
            let work = || node.publish().run_plan(&state, node.published());
            let release = node.done().get_or_try_init(work).await?;
            for warning in &release.warnings {
                log::warn!("{warning}");
            }
            files(&release.manifest, schema)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            futures::stream::once(files),
        )))
    }
}

/// A row per file.
fn files(manifest: &Manifest, schema: SchemaRef) -> Result<RecordBatch> {
    let files = &manifest.files;
    let texts = |text: fn(&super::FileEntry) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(files.iter().map(text)))
    };
    let counts = |count: fn(&super::FileEntry) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(files.iter().map(count)))
    };
    let release: ArrayRef = Arc::new(StringArray::from_iter_values(
        files.iter().map(|_| &manifest.release),
    ));
    let columns = vec![
        release,
        texts(|f| &f.table),
        texts(|f| &f.path),
        counts(|f| f.records),
        counts(|f| f.bytes),
        texts(|f| &f.sha256),
    ];
    Ok(RecordBatch::try_new(schema, columns)?)
}
