//! Measuring calls in SQL: named arguments, relations among them.

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, FunctionArg, FunctionArgExpr, Value};

use super::{constant, plan_input};
use crate::call::source::PlanningLoad;
use crate::call::value::ArgumentValue;
use crate::error;
use crate::measure::sql::audits::{AuditEntry, Given, table};

/// Plans `f(table, …, name => value, …)`, or `f(table, …, {name: value, …})` as ordinary table functions are called.
pub fn plan(
    entry: &'static AuditEntry,
    args: &[FunctionArg],
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let mut relations: Vec<(String, LogicalPlan)> = vec![];
    let mut named: Vec<(String, ArgumentValue)> = vec![];
    for arg in args {
        let (name, value) = match arg {
            FunctionArg::Unnamed(value) => (None, value),
            FunctionArg::Named { name, arg, .. }
            | FunctionArg::ExprNamed {
                name: SqlExpr::Identifier(name),
                arg,
                ..
            } => (Some(context.normalize_ident(name.clone())), arg),
            FunctionArg::ExprNamed { .. } => {
                return Err(error::call(
                    entry.name,
                    "an argument's name must be an identifier",
                ));
            }
        };
        let FunctionArgExpr::Expr(value) = value else {
            return Err(error::call(
                entry.name,
                "* is not an argument; name the columns",
            ));
        };
        match name {
            None if !named.is_empty() => return Err(order(entry)),
            None => match entry.relations.get(relations.len()).filter(|r| r.required) {
                Some(relation) => {
                    let plan = plan_input(entry.name, value.clone(), context)?;
                    relations.push((relation.name.to_owned(), plan));
                }
                None => named.extend(options(entry, value, context)?),
            },
            Some(name) if entry.relations.iter().any(|r| r.name == name) => {
                let plan = plan_input(entry.name, value.clone(), context)?;
                relations.push((name, plan));
            }
            Some(name) => {
                let value = constant(entry.name, &name, value, context)?;
                named.push((name, value));
            }
        }
    }
    // Relations in a struct of options are named there.
    let mut rest = vec![];
    for (name, value) in named {
        match table(entry, &name, &value) {
            Some(table) => {
                let literal = Value::SingleQuotedString(table.to_owned());
                let literal = SqlExpr::Value(literal.into());
                relations.push((name, plan_input(entry.name, literal, context)?));
            }
            None => rest.push((name, value)),
        }
    }
    let mut load = PlanningLoad(context);
    (entry.build)(&mut Given::try_new(entry, relations, rest, &mut load)?)
}

fn options(
    entry: &AuditEntry,
    value: &SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<(String, ArgumentValue)>> {
    match ArgumentValue::from_sql(value, context) {
        Some(ArgumentValue::Map(entries)) => Ok(entries),
        _ => Err(order(entry)),
    }
}

fn order(entry: &AuditEntry) -> datafusion::common::DataFusionError {
    let required = entry.relations.iter().filter(|r| r.required);
    let names: Vec<_> = required.map(|r| r.name).collect();
    error::call(
        entry.name,
        format!(
            "arguments after {} have names: id => …, qi => […]",
            names.join(", ")
        ),
    )
}
