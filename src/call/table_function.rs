//! Calls by hosts that know only ordinary table functions, and by Rust.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, Result, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;

use super::arguments::{Resolve, Written};
use super::functions;
use super::source::{SessionLoad, input};
use super::sql::not_a_relation;
use super::value::ArgumentValue;
use crate::error;
use crate::pipeline::coerced;

/// Any function of this crate as an ordinary table function: tables are named, and other arguments are in a struct, as in
/// `anonymize_eir('patients', {id: 'name', qi: ['gender', 'age'], sensitive: 'disease', l: 3})`.
#[derive(Debug)]
pub struct AnonymizeTableFunction {
    function: &'static str,
}

impl AnonymizeTableFunction {
    /// The table function of that name.
    pub fn new(function: &'static str) -> Self {
        Self { function }
    }
}

impl TableFunctionImpl for AnonymizeTableFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = self.function;
        let function =
            functions::named(name).ok_or_else(|| error::call(name, "there is no such function"))?;
        let state = args
            .session()
            .as_any()
            .downcast_ref::<SessionState>()
            .ok_or_else(|| plan_datafusion_err!("{name}: needs a session of DataFusion"))?;
        let constant = |expr: &Expr| match ArgumentValue::from_expr(expr) {
            Some(value) => Ok((None, Written::Value(value))),
            None => Err(error::call(name, "arguments must be constant")),
        };
        let written = args.exprs().iter().map(constant);
        let written = written.collect::<Result<Vec<_>>>()?;
        let plan = function.call(written, &mut SessionLoad(state))?;
        // The engine inlines a view: the plan is the same as in SQL.
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}

/// Calls one of [`TABLE_FUNCTIONS`](crate::TABLE_FUNCTIONS): the same as a call in SQL, for whoever has its arguments as values.
///
/// Relations are frames; one that is a table of the session, or files, may be among the other arguments by its name or path.
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// use datafusion_anonymize::{ArgumentValue, call, register_all};
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// register_all(&ctx)?;
/// let patients = call(&ctx, "sample_patients", [], [("individuals", ArgumentValue::Number("60".into()))])?;
/// let text = |text: &str| ArgumentValue::Text(text.into());
/// let published = call(&ctx, "anonymize_ir", [("input", patients)], [
///     ("id", text("patient_id")),
///     ("qi", ArgumentValue::List(vec![text("sex"), text("birth_year")])),
///     ("sensitive", text("diagnosis")),
///     ("k", ArgumentValue::Number("3".into())),
/// ])?;
/// assert!(published.count().await? > 100);
/// # Ok(())
/// # }
/// ```
pub fn call<'a>(
    ctx: &SessionContext,
    function: &str,
    relations: impl IntoIterator<Item = (&'a str, DataFrame)>,
    arguments: impl IntoIterator<Item = (&'a str, ArgumentValue)>,
) -> Result<DataFrame> {
    let called = functions::named(function)
        .ok_or_else(|| error::call(function, "there is no such function"))?;
    let relations = relations.into_iter().map(|(name, frame)| {
        let plan = Written::Plan(frame.logical_plan().clone());
        (Some(name.to_owned()), plan)
    });
    let arguments = arguments
        .into_iter()
        .map(|(name, value)| (Some(name.to_owned()), Written::Value(value)));
    let state = ctx.state();
    let plan = called.call(
        relations.chain(arguments).collect(),
        &mut SessionLoad(&state),
    )?;
    Ok(DataFrame::new(state, plan))
}

impl Resolve for SessionLoad<'_> {
    /// Nothing is written in SQL here.
    fn constant(&mut self, _: &SqlExpr) -> Option<ArgumentValue> {
        None
    }

    fn relation(&mut self, function: &str, written: Written) -> Result<LogicalPlan> {
        let plan = match &written {
            Written::Plan(plan) => plan.clone(),
            Written::Value(value) => {
                let name = value.text().ok_or_else(|| not_a_relation(function))?;
                let provider = input::find(self.0, name)
                    .map_err(|e| error::argument(function, "input:", e.strip_backtrace()))?;
                let source = provider_as_source(provider);
                LogicalPlanBuilder::scan(name, source, None)?.build()?
            }
            Written::Sql(_) => return Err(not_a_relation(function)),
        };
        coerced(plan)
    }

    fn expression(&mut self, expr: SqlExpr, schema: &DFSchema) -> Result<Expr> {
        self.0.create_logical_expr(&expr.to_string(), schema)
    }
}
