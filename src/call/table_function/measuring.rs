//! Measuring calls by hosts that know only ordinary table functions.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use crate::call::source::{SessionLoad, input};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::measure::sql::audits::{AuditEntry, Given, table};
use crate::pipeline::coerced;

/// `audit(published, {id: 'individual', qi: ['gender', 'age'], sensitive: 'disease'})`.
#[derive(Debug)]
pub struct AuditTableFunction {
    entry: &'static AuditEntry,
}

impl AuditTableFunction {
    /// The table function of an entry.
    pub fn new(entry: &'static AuditEntry) -> Self {
        Self { entry }
    }
}

impl TableFunctionImpl for AuditTableFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = self.entry.name;
        let usage = || {
            error::call(
                name,
                "expected tables and a struct of arguments: (published, {id: 'individual', …})",
            )
        };
        let state = args
            .session()
            .as_any()
            .downcast_ref::<SessionState>()
            .ok_or_else(|| plan_datafusion_err!("{name}: needs a session of DataFusion"))?;
        let required = self.entry.relations.iter().filter(|r| r.required);
        let required: Vec<&str> = required.map(|r| r.name).collect();
        let Some((options, named_tables)) = args.exprs().split_last() else {
            return Err(usage());
        };
        let Some(ArgumentValue::Map(options)) = ArgumentValue::from_expr(options) else {
            return Err(usage());
        };
        if named_tables.len() != required.len() {
            return Err(usage());
        }
        let mut relations: Vec<(String, LogicalPlan)> = vec![];
        for (relation, table) in required.iter().zip(named_tables) {
            let table = ArgumentValue::from_expr(table);
            let table = table
                .as_ref()
                .and_then(ArgumentValue::text)
                .ok_or_else(usage)?;
            relations.push(((*relation).to_owned(), self.scan(state, relation, table)?));
        }
        let mut named = vec![];
        for (argument, value) in options {
            match table(self.entry, &argument, &value) {
                Some(table) => {
                    let plan = self.scan(state, &argument, table)?;
                    relations.push((argument, plan));
                }
                None => named.push((argument, value)),
            }
        }
        let mut load = SessionLoad(state);
        let mut given = Given::try_new(self.entry, relations, named, &mut load)?;
        let plan = (self.entry.build)(&mut given)?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}

impl AuditTableFunction {
    fn scan(&self, state: &SessionState, relation: &str, table: &str) -> Result<LogicalPlan> {
        let provider = input::find(state, table).map_err(|e| {
            error::argument(
                self.entry.name,
                &format!("{relation}:"),
                e.strip_backtrace(),
            )
        })?;
        let scan = LogicalPlanBuilder::scan(table, provider_as_source(provider), None)?;
        coerced(scan.build()?)
    }
}
