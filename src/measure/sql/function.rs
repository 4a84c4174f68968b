//! Functions that ask about published tables: relations first, then constants, some of which may go without a name.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DFSchema, DataFusionError, Result, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;

use super::estimate::{self, estimated};
use super::{buckets, query_error};
use crate::call::source::{Load, SessionLoad, hierarchy, input};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::pipeline::coerced;
use crate::table::coding::Levels;

/// Turns SQL expressions into expressions over a schema, as the session does.
pub(crate) type ToExpr<'a> = dyn FnMut(SqlExpr, &DFSchema) -> Result<Expr> + 'a;

/// Arguments by name.
pub(super) type Named = Vec<(String, ArgumentValue)>;

/// What a call gives.
pub(crate) struct MeasureCall {
    /// Its relations, in the order of the entry.
    pub relations: Vec<LogicalPlan>,
    /// Other arguments.
    pub arguments: Named,
    /// Columns that are published as labels, with their hierarchies.
    pub hierarchies: Vec<(String, Levels)>,
}

impl MeasureCall {
    /// Reads what the arguments name.
    pub(crate) fn read(
        function: &str,
        relations: Vec<LogicalPlan>,
        mut arguments: Named,
        load: &mut dyn Load,
    ) -> Result<Self> {
        let mut hierarchies = vec![];
        if let Some(at) = arguments.iter().position(|(name, _)| name == "hierarchy") {
            let (name, value) = arguments.remove(at);
            hierarchies = hierarchy::read_map(&value, load)
                .map_err(|reason| error::argument(function, &name, reason))?;
        }
        Ok(Self {
            relations,
            arguments,
            hierarchies,
        })
    }
}

/// Plans a call.
type Plan = fn(MeasureCall, &mut ToExpr) -> Result<LogicalPlan>;

/// A function that asks about published tables.
pub(crate) struct MeasureEntry {
    /// Its SQL name.
    pub name: &'static str,
    /// The arguments that are relations, in order.
    pub relations: &'static [&'static str],
    /// The arguments after them that may go without a name, in order.
    pub positional: &'static [&'static str],
    /// Plans a call.
    pub plan: Plan,
}

/// All functions that ask about published tables.
pub(crate) static MEASURES: &[MeasureEntry] = &[
    buckets::ENTRY,
    estimate::ENTRY,
    estimate::SUM,
    estimated::ENTRY,
    query_error::ENTRY,
    query_error::SUMMARY,
];

impl MeasureEntry {
    /// The function of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        MEASURES.iter().find(|m| m.name == name)
    }

    /// Names the arguments that were given without a name: relations, then constants, then a struct of the rest.
    pub fn bind<R>(
        &self,
        mut relations: Vec<(String, R)>,
        mut named: Named,
        mut unnamed: impl Iterator<Item = R>,
        mut constant: impl FnMut(R) -> Result<ArgumentValue>,
    ) -> Result<(Vec<R>, Named)> {
        let mut bound = vec![];
        for name in self.relations {
            let given = relations.iter().position(|(n, _)| n == name);
            bound.push(match given {
                Some(at) => relations.remove(at).1,
                None => unnamed.next().ok_or_else(|| {
                    error::argument(
                        self.name,
                        name,
                        "is missing: name a table, a (SELECT …) or the path of files",
                    )
                })?,
            });
        }
        if let Some((name, _)) = relations.first() {
            return Err(error::argument(self.name, name, "is given twice"));
        }
        let mut positional = self
            .positional
            .iter()
            .filter(|name| !named.iter().any(|(n, _)| n == *name))
            .collect::<Vec<_>>()
            .into_iter();
        for value in unnamed {
            match (constant(value)?, positional.next()) {
                (ArgumentValue::Map(entries), _) => named.extend(entries),
                (value, Some(name)) => named.push(((*name).to_owned(), value)),
                (_, None) => {
                    return Err(error::call(
                        self.name,
                        "further arguments have names: id => …, qi => […]",
                    ));
                }
            }
        }
        for (i, (name, _)) in named.iter().enumerate() {
            if named[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(error::argument(self.name, name, "is given twice"));
            }
        }
        Ok((bound, named))
    }

    /// The error for an argument that the function does not know.
    pub fn unknown(&self, name: &str, names: &[&str]) -> DataFusionError {
        let names = [self.relations, self.positional, names].concat();
        let nearest = error::did_you_mean(name, names.iter().copied());
        error::call(
            self.name,
            format!(
                "there is no argument '{name}'{nearest} (arguments: {})",
                names.join(", ")
            ),
        )
    }
}

/// Calls by hosts that know only ordinary table functions: `estimate('published', 'SELECT …', {id: 'individual'})`.
#[derive(Debug)]
pub(crate) struct MeasureTableFunction {
    function: &'static str,
}

impl MeasureTableFunction {
    /// The table function of that name.
    pub fn new(function: &'static str) -> Self {
        Self { function }
    }
}

impl TableFunctionImpl for MeasureTableFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let function = self.function;
        let Some(entry) = MeasureEntry::named(function) else {
            return datafusion::common::internal_err!("there is no function {function}");
        };
        let state = args
            .session()
            .as_any()
            .downcast_ref::<SessionState>()
            .ok_or_else(|| plan_datafusion_err!("{function}: needs a session of DataFusion"))?;
        let constant = |expr: &Expr| {
            ArgumentValue::from_expr(expr)
                .ok_or_else(|| error::call(function, "arguments must be constant"))
        };
        let (tables, arguments) = entry.bind(vec![], vec![], args.exprs().iter(), constant)?;
        let mut relations = vec![];
        for table in tables {
            let table = constant(table)?;
            let name = table
                .text()
                .ok_or_else(|| error::call(function, "a table is given by its name"))?;
            let provider =
                input::find(state, name).map_err(|e| error::call(function, e.strip_backtrace()))?;
            let source = provider_as_source(provider);
            let scan = LogicalPlanBuilder::scan(name, source, None)?;
            relations.push(coerced(scan.build()?)?);
        }
        let mut to_expr =
            |expr: SqlExpr, schema: &DFSchema| state.create_logical_expr(&expr.to_string(), schema);
        let call = MeasureCall::read(function, relations, arguments, &mut SessionLoad(state))?;
        let plan = (entry.plan)(call, &mut to_expr)?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}
