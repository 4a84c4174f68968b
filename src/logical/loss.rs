//! [`LossNode`]: the loss of a published table, in sums per partition.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::filters::take_back;
use crate::measure::{LossSpec, loss_schema};

/// What the cells of a published table lose, added up.
///
/// Its first input is the published columns; then come the domains of each column, and hierarchies. Like
/// [`AnonymizeNode`](super::AnonymizeNode) it takes back the predicates without columns that the optimizer pushes below
/// it: the loss of some of the records would be another loss.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LossNode {
    spec: Arc<LossSpec>,
    inputs: Vec<LogicalPlan>,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

impl LossNode {
    /// The plan that adds up losses.
    pub(crate) fn plan(spec: LossSpec, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let node = Self::try_new(Arc::new(spec), inputs, vec![])?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    pub(crate) fn try_new(
        spec: Arc<LossSpec>,
        inputs: Vec<LogicalPlan>,
        filters: Vec<Expr>,
    ) -> Result<Self> {
        if inputs.len() <= spec.columns.len() {
            return internal_err!("Loss has an input for each column");
        }
        let schema = loss_schema(spec.columns.len());
        let schema = DFSchema::try_from_qualified_schema(spec.function.as_str(), &schema)?;
        Ok(Self {
            spec,
            inputs,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// What is measured.
    pub fn spec(&self) -> &Arc<LossSpec> {
        &self.spec
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl PartialOrd for LossNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for LossNode {
    fn name(&self) -> &str {
        "Loss"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.filters.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loss: function={}", self.spec.function)?;
        if !self.filters.is_empty() {
            let filters: Vec<_> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", filter={}", filters.join(" AND "))?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut filters = exprs;
        let inputs = take_back(&mut filters, inputs, &self.inputs);
        Self::try_new(Arc::clone(&self.spec), inputs, filters)
    }
}
