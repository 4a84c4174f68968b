//! Calls by hosts that know only ordinary table functions.

mod measuring;

pub use measuring::AuditTableFunction;

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, Result, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;

use super::anonymize;
use super::source::{InputLoad, SessionLoad, input};
use super::value::ArgumentValue;
use crate::error;
use crate::pipeline::{AnonymizeNode, coerced};

/// `anonymize_eir(patients, {id: 'name', qi: ['gender', 'age'], sensitive: 'disease', l: 3})`.
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
        let usage = || {
            error::call(
                self.function,
                "expected a table and a struct of arguments: (patients, {id: 'name', …})",
            )
        };
        let [table, options] = args.exprs() else {
            return Err(usage());
        };
        let table = ArgumentValue::from_expr(table);
        let table = table
            .as_ref()
            .and_then(ArgumentValue::text)
            .ok_or_else(usage)?;
        let Some(ArgumentValue::Map(options)) = ArgumentValue::from_expr(options) else {
            return Err(usage());
        };
        let state = args
            .session()
            .as_any()
            .downcast_ref::<SessionState>()
            .ok_or_else(|| {
                plan_datafusion_err!("{}: needs a session of DataFusion", self.function)
            })?;
        let provider = input::find(state, table)
            .map_err(|e| error::argument(self.function, "input:", e.strip_backtrace()))?;
        let scan = LogicalPlanBuilder::scan(table, provider_as_source(provider), None)?;
        let scan = coerced(scan.build()?)?;
        let mut load = InputLoad {
            load: SessionLoad(state),
            input: &scan,
            id: anonymize::id(&options),
        };
        let spec = anonymize::read(self.function, &options, &mut load)?;
        let mut to_expr =
            |expr: SqlExpr, schema: &DFSchema| state.create_logical_expr(&expr.to_string(), schema);
        let (spec, scan) = anonymize::plan_flags(spec, scan, &mut to_expr)?;
        // A view over the anonymization is inlined by the engine: the plan is the same as in SQL.
        Ok(Arc::new(ViewTable::new(
            AnonymizeNode::plan(spec, scan)?,
            None,
        )))
    }
}
