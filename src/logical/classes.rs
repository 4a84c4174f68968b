//! [`ClassesNode`]: the classes of a published table, one row each.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::filters::take_back;
use crate::measure::{ClassesSpec, class_schema};

/// The measured classes of a published table.
///
/// Its first input is the table's records by class, the second, where there is one, its sensitive values. Like
/// [`AnonymizeNode`](super::AnonymizeNode) it takes back the predicates without columns that the optimizer pushes below
/// it: an audit of some of the records would be another audit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClassesNode {
    spec: Arc<ClassesSpec>,
    inputs: Vec<LogicalPlan>,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

impl ClassesNode {
    /// The plan that measures classes.
    pub(crate) fn plan(spec: ClassesSpec, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let node = Self::try_new(Arc::new(spec), inputs, vec![])?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    pub(crate) fn try_new(
        spec: Arc<ClassesSpec>,
        inputs: Vec<LogicalPlan>,
        filters: Vec<Expr>,
    ) -> Result<Self> {
        if !(1..=2).contains(&inputs.len()) {
            return internal_err!("Classes has one input or two");
        }
        let schema = DFSchema::try_from_qualified_schema(spec.function.as_str(), &class_schema())?;
        Ok(Self {
            spec,
            inputs,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// How classes are measured.
    pub fn spec(&self) -> &Arc<ClassesSpec> {
        &self.spec
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl PartialOrd for ClassesNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ClassesNode {
    fn name(&self) -> &str {
        "Classes"
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
        write!(f, "Classes: function={}", self.spec.function)?;
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
