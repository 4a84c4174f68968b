//! [`CoverNode`]: who fits into which class.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::filters::take_back;
use crate::measure::{CoverSpec, cover_schema};

/// Individuals of another table, and the published classes that cover them, counted.
///
/// Its inputs are the individuals and the classes. Like [`AnonymizeNode`](super::AnonymizeNode) it takes back the
/// predicates without columns that the optimizer pushes below it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CoverNode {
    spec: Arc<CoverSpec>,
    inputs: Vec<LogicalPlan>,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

impl CoverNode {
    /// The plan that counts.
    pub(crate) fn plan(spec: CoverSpec, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let node = Self::try_new(Arc::new(spec), inputs, vec![])?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    pub(crate) fn try_new(
        spec: Arc<CoverSpec>,
        inputs: Vec<LogicalPlan>,
        filters: Vec<Expr>,
    ) -> Result<Self> {
        if inputs.len() != 2 {
            return internal_err!("Cover has two inputs");
        }
        let schema = DFSchema::try_from_qualified_schema(spec.function.as_str(), &cover_schema())?;
        Ok(Self {
            spec,
            inputs,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// What is compared.
    pub fn spec(&self) -> &Arc<CoverSpec> {
        &self.spec
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl PartialOrd for CoverNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for CoverNode {
    fn name(&self) -> &str {
        "Cover"
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
        write!(f, "Cover: function={}", self.spec.function)?;
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
