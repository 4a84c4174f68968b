//! [`PublishNode`]: `publish('target', (SELECT * FROM f(…)))` as the optimizer sees it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use tokio::sync::OnceCell;

use super::manifest::RequiredLevel;
use super::run::{Publish, Release};

/// A release that is made when the plan runs, and the files of which are its rows.
///
/// It has no inputs, so that no rule of the optimizer can reach what is published: filters and limits above it are filters
/// and limits of the list of files. However often it stands in a plan, it runs once.
#[derive(Debug, Clone)]
pub struct PublishNode {
    publish: Arc<Publish>,
    target: String,
    plan: Arc<LogicalPlan>,
    done: Arc<OnceCell<Release>>,
    schema: DFSchemaRef,
}

impl PublishNode {
    /// The plan that publishes the result of `plan` if it reaches the required levels.
    pub fn plan(
        target: &str,
        plan: LogicalPlan,
        required: Vec<RequiredLevel>,
    ) -> Result<LogicalPlan> {
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        let schema = Schema::new(vec![
            field("release", DataType::Utf8),
            field("table", DataType::Utf8),
            field("file", DataType::Utf8),
            field("records", DataType::UInt64),
            field("bytes", DataType::UInt64),
            field("sha256", DataType::Utf8),
        ]);
        let node = Self {
            publish: Arc::new(Publish::to(target).with_required(required)),
            target: target.to_owned(),
            plan: Arc::new(plan),
            done: Arc::new(OnceCell::new()),
            schema: Arc::new(DFSchema::try_from_qualified_schema("publish", &schema)?),
        };
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    pub(super) fn publish(&self) -> &Arc<Publish> {
        &self.publish
    }

    pub(super) fn published(&self) -> &Arc<LogicalPlan> {
        &self.plan
    }

    pub(super) fn done(&self) -> &Arc<OnceCell<Release>> {
        &self.done
    }
}

impl PartialEq for PublishNode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.done, &other.done)
    }
}

impl Eq for PublishNode {}

impl Hash for PublishNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.hash(state);
        self.plan.hash(state);
    }
}

impl PartialOrd for PublishNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for PublishNode {
    fn name(&self) -> &str {
        "Publish"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Publish: target={}", self.target)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        if !exprs.is_empty() || !inputs.is_empty() {
            return internal_err!("Publish has no inputs");
        }
        Ok(self.clone())
    }
}
