//! [`MeasuredNode`]: what is measured of a published table.

use std::cmp::Ordering;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::filters::{show, take_back};
use crate::measure::{
    ClassesSpec, CollapseSpec, CompareSpec, CoverSpec, GatherSpec, LossSpec, class_schema,
    collapse_schema, compare_schema, cover_schema, gather_schema, loss_schema,
};

/// What a [`MeasuredNode`] measures.
pub trait Measured: Debug + Clone + Eq + Hash + Send + Sync + 'static {
    /// The node's name.
    const NAME: &'static str;

    /// The SQL function that measures.
    fn function(&self) -> &str;

    /// The columns of the result.
    fn schema(&self, inputs: &[LogicalPlan]) -> SchemaRef;

    /// Whether it measures so many inputs.
    fn takes(&self, inputs: usize) -> bool;
}

/// A measurement of its inputs.
///
/// Like [`AnonymizeNode`](super::AnonymizeNode) it takes back the predicates without columns that the optimizer pushes
/// below it: a measurement of some of the records would be another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MeasuredNode<S: Measured> {
    spec: Arc<S>,
    inputs: Vec<LogicalPlan>,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

/// The measured classes of a published table, one row each. Its first input is the table's records by class, the
/// second, where there is one, its sensitive values, the third the hierarchy of these.
pub type ClassesNode = MeasuredNode<ClassesSpec>;

/// Individuals of another table, and the published classes that cover them, counted. Its inputs are the individuals, the
/// classes, and hierarchies.
pub type CoverNode = MeasuredNode<CoverSpec>;

/// Records of an individual that stand together, as one row. Its input is records.
pub type CollapseNode = MeasuredNode<CollapseSpec>;

/// Every individual of a published table compared with itself in the original one, counted. Its inputs are both tables,
/// collapsed, and hierarchies.
pub type CompareNode = MeasuredNode<CompareSpec>;

/// The individuals of a table, one by one. Its input is the table, collapsed.
pub type GatherNode = MeasuredNode<GatherSpec>;

/// What the cells of a published table lose, in sums per partition. Its first input is the published columns; then come
/// the domains of all columns in one row, and hierarchies.
pub type LossNode = MeasuredNode<LossSpec>;

impl Measured for ClassesSpec {
    const NAME: &'static str = "Classes";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, _: &[LogicalPlan]) -> SchemaRef {
        class_schema()
    }

    fn takes(&self, inputs: usize) -> bool {
        match self.labels {
            true => inputs == 3,
            false => (1..=2).contains(&inputs),
        }
    }
}

impl Measured for CoverSpec {
    const NAME: &'static str = "Cover";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, _: &[LogicalPlan]) -> SchemaRef {
        cover_schema()
    }

    fn takes(&self, inputs: usize) -> bool {
        inputs == 2 + self.hierarchies()
    }
}

impl Measured for CollapseSpec {
    const NAME: &'static str = "Collapse";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, inputs: &[LogicalPlan]) -> SchemaRef {
        let records = inputs.first().map(|input| input.schema().as_arrow());
        collapse_schema(self, records.unwrap_or(&Schema::empty()))
    }

    fn takes(&self, inputs: usize) -> bool {
        inputs == 1
    }
}

impl Measured for CompareSpec {
    const NAME: &'static str = "Compare";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, _: &[LogicalPlan]) -> SchemaRef {
        compare_schema()
    }

    fn takes(&self, inputs: usize) -> bool {
        inputs == 2 + self.hierarchies()
    }
}

impl Measured for GatherSpec {
    const NAME: &'static str = "Gather";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, _: &[LogicalPlan]) -> SchemaRef {
        gather_schema()
    }

    fn takes(&self, inputs: usize) -> bool {
        inputs == 1
    }
}

impl Measured for LossSpec {
    const NAME: &'static str = "Loss";

    fn function(&self) -> &str {
        &self.function
    }

    fn schema(&self, _: &[LogicalPlan]) -> SchemaRef {
        loss_schema(self.columns.len())
    }

    fn takes(&self, inputs: usize) -> bool {
        inputs == 2 + self.hierarchies()
    }
}

impl<S: Measured> MeasuredNode<S> {
    /// The plan that measures.
    pub(crate) fn plan(spec: S, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let node = Self::try_new(Arc::new(spec), inputs, vec![])?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    pub(crate) fn try_new(
        spec: Arc<S>,
        inputs: Vec<LogicalPlan>,
        filters: Vec<Expr>,
    ) -> Result<Self> {
        if !spec.takes(inputs.len()) {
            return internal_err!("{} cannot have {} inputs", S::NAME, inputs.len());
        }
        let schema = DFSchema::try_from_qualified_schema(spec.function(), &spec.schema(&inputs))?;
        Ok(Self {
            spec,
            inputs,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// What is measured.
    pub fn spec(&self) -> &Arc<S> {
        &self.spec
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl<S: Measured> PartialOrd for MeasuredNode<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl<S: Measured> UserDefinedLogicalNodeCore for MeasuredNode<S> {
    fn name(&self) -> &str {
        S::NAME
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
        write!(f, "{}: function={}", S::NAME, self.spec.function())?;
        show(f, &self.filters)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut filters = exprs;
        let inputs = take_back(&mut filters, inputs, &self.inputs);
        Self::try_new(Arc::clone(&self.spec), inputs, filters)
    }
}
