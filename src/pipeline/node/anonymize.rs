//! [`AnonymizeNode`]: the node the optimizer sees.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore,
};

use super::coerced;
use super::filters::{show, take_back};
use crate::spec::Spec;
use crate::system::{Layout, canonical_projection, column_categories, stated_domains};

/// An anonymization of its input: a release.
///
/// The input is a projection of the columns with a role, in canonical order; what stands below it is the user's own
/// plan and is optimized as usual. No filter, limit or projection passes this node: a filter below it would be
/// another release of the same people for every query.
///
/// DataFusion pushes predicates without a column (`random() < 0.5`, a scalar subquery) below any extension node. This
/// one takes them back and applies them to its output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AnonymizeNode {
    spec: Arc<Spec>,
    input: LogicalPlan,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

impl AnonymizeNode {
    /// The plan that anonymizes `input`, after checking the spec against it.
    pub fn plan(spec: Spec, input: LogicalPlan) -> Result<LogicalPlan> {
        spec.validate()?;
        let input = coerced(input)?;
        let projection = canonical_projection(&spec, input.schema())?;
        let input = LogicalPlanBuilder::from(input)
            .project(projection)?
            .build()?;
        let node = Self::try_new(Arc::new(spec.with_key_drawn()?), input, vec![])?;
        Ok(LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        }))
    }

    /// A node over an input in canonical form.
    pub(crate) fn try_new(spec: Arc<Spec>, input: LogicalPlan, filters: Vec<Expr>) -> Result<Self> {
        let layout = Layout::try_new(&spec, Arc::new(input.schema().as_arrow().clone()))?;
        stated_domains(&spec, &layout)?;
        column_categories(&spec, &layout)?;
        let schema = DFSchema::try_from_qualified_schema(spec.function(), &layout.published())?;
        Ok(Self {
            spec,
            input,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl PartialOrd for AnonymizeNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for AnonymizeNode {
    fn name(&self) -> &str {
        "Anonymize"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.filters.clone()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Anonymize: {}", self.spec)?;
        show(f, &self.filters)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut filters = exprs;
        let inputs = take_back(&mut filters, inputs, std::slice::from_ref(&self.input));
        let [input] = inputs
            .try_into()
            .or_else(|_| internal_err!("Anonymize has one input"))?;
        Self::try_new(Arc::clone(&self.spec), input, filters)
    }
}
