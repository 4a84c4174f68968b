//! [`ReportNode`]: figures as rows with names and notes.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore,
};

use super::filters::{show, take_back};
use crate::measure::Report;

/// A report on one row of figures.
///
/// Like [`AnonymizeNode`](super::AnonymizeNode) it takes back the predicates without columns that the optimizer pushes
/// below it. That matters here more than elsewhere: below the report stand aggregates without groups, which give a row
/// even of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReportNode {
    report: Arc<Report>,
    function: String,
    input: LogicalPlan,
    filters: Vec<Expr>,
    schema: DFSchemaRef,
}

/// The plan that reports on figures.
pub(crate) fn report(
    function: &str,
    report: Report,
    figures: LogicalPlanBuilder,
) -> Result<LogicalPlan> {
    let node = ReportNode::try_new(
        Arc::new(report),
        function.to_owned(),
        figures.build()?,
        vec![],
    )?;
    Ok(LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    }))
}

impl ReportNode {
    pub(crate) fn try_new(
        report: Arc<Report>,
        function: String,
        input: LogicalPlan,
        filters: Vec<Expr>,
    ) -> Result<Self> {
        let schema = DFSchema::try_from_qualified_schema(function.as_str(), &report.schema())?;
        Ok(Self {
            report,
            function,
            input,
            filters,
            schema: Arc::new(schema),
        })
    }

    /// Which report.
    pub fn report(&self) -> &Arc<Report> {
        &self.report
    }

    /// The SQL function that reports.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Predicates to apply to the output.
    pub(crate) fn filters(&self) -> &[Expr] {
        &self.filters
    }
}

impl PartialOrd for ReportNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ReportNode {
    fn name(&self) -> &str {
        "Report"
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
        write!(f, "Report: function={}", self.function)?;
        show(f, &self.filters)
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut filters = exprs;
        let old = std::slice::from_ref(&self.input);
        let Some(input) = take_back(&mut filters, inputs, old).pop() else {
            return internal_err!("Report has one input");
        };
        Self::try_new(
            Arc::clone(&self.report),
            self.function.clone(),
            input,
            filters,
        )
    }
}
