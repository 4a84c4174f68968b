//! Calls in SQL: named arguments, and relations among them.

use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    TableFactor, TableFunctionArgs, Value,
};

use super::arguments::{Resolve, Written};
use super::functions;
use super::source::PlanningLoad;
use super::source::input::INPUT_FUNCTION;
use super::value::ArgumentValue;
use crate::error;
use crate::pipeline::coerced;

/// Plans calls of our functions in SQL.
#[derive(Debug, Default)]
pub struct AnonymizeRelationPlanner;

impl RelationPlanner for AnonymizeRelationPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table {
            name,
            alias,
            args: Some(args),
            with_ordinality,
            sample,
            ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let name = match name.0.as_slice() {
            [part] => part
                .as_ident()
                .map(|ident| context.normalize_ident(ident.clone())),
            _ => None,
        };
        let Some(function) = name.as_deref().and_then(functions::named) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let clause = match (with_ordinality, sample) {
            (true, _) => Some("WITH ORDINALITY"),
            (_, Some(_)) => Some("TABLESAMPLE"),
            _ => None,
        };
        if let Some(clause) = clause {
            let message = format!(
                "{clause} cannot follow the call, because the function publishes one whole result"
            );
            return Err(error::call(function.name, message));
        }
        let written = written(function.name, &args.args, context)?;
        let plan = function.call(written, &mut PlanningLoad(context))?;
        let planned = PlannedRelation::new(plan, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// The arguments with their names, where they have some.
fn written(
    function: &str,
    args: &[FunctionArg],
    context: &dyn RelationPlannerContext,
) -> Result<Vec<(Option<String>, Written)>> {
    let one = |arg: &FunctionArg| {
        let (name, value) = match arg {
            FunctionArg::Unnamed(value) => (None, value),
            FunctionArg::Named { name, arg, .. }
            | FunctionArg::ExprNamed {
                name: SqlExpr::Identifier(name),
                arg,
                ..
            } => (Some(context.normalize_ident(name.clone())), arg),
            FunctionArg::ExprNamed { .. } => {
                let message = "an argument's name must be an identifier";
                return Err(error::call(function, message));
            }
        };
        match value {
            FunctionArgExpr::Expr(value) => Ok((name, Written::Sql(value.clone()))),
            _ => {
                let message = "* is not an argument; name the columns";
                Err(error::call(function, message))
            }
        }
    };
    args.iter().map(one).collect()
}

impl Resolve for PlanningLoad<'_> {
    fn constant(&mut self, expr: &SqlExpr) -> Option<ArgumentValue> {
        ArgumentValue::from_sql(expr, self.0)
    }

    fn relation(&mut self, function: &str, written: Written) -> Result<LogicalPlan> {
        let plan = match written {
            Written::Sql(expr) => plan_relation(function, expr, self.0)?,
            Written::Value(value) => {
                let name = value.text().ok_or_else(|| not_a_relation(function))?;
                look_up(function, name, TableReference::bare("input"), self.0)?
            }
            Written::Plan(plan) => plan,
        };
        coerced(plan)
    }

    fn expression(&mut self, expr: SqlExpr, schema: &DFSchema) -> Result<Expr> {
        self.0.sql_to_expr(expr, schema)
    }
}

fn plan_relation(
    function: &str,
    input: SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    match input {
        SqlExpr::Nested(inner) => plan_relation(function, *inner, context),
        SqlExpr::Subquery(subquery) => context.plan(TableFactor::Derived {
            lateral: false,
            subquery,
            alias: None,
            sample: None,
        }),
        SqlExpr::Identifier(name) => plan_table(function, vec![name], context),
        SqlExpr::CompoundIdentifier(name) => plan_table(function, name, context),
        SqlExpr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)) => {
            let path = value.value.into_string().unwrap_or_default();
            look_up(function, &path, TableReference::bare("input"), context)
        }
        SqlExpr::Function(f) => {
            let FunctionArguments::List(list) = f.args else {
                return Err(not_a_relation(function));
            };
            match (
                f.name.to_string().to_uppercase().as_str(),
                list.args.as_slice(),
            ) {
                ("TABLE", [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))]) => {
                    plan_relation(function, inner.clone(), context)
                }
                _ => context.plan(table(f.name, Some(list.args))),
            }
        }
        _ => Err(not_a_relation(function)),
    }
}

/// The error for what is no relation.
pub(super) fn not_a_relation(function: &str) -> DataFusionError {
    error::argument(
        function,
        "input",
        "must be a table or view, a (SELECT …), or the path, glob or URL of files in quotes",
    )
}

/// A table by its name: a CTE or a table the engine has seen in the query, else one from the catalog.
fn plan_table(
    function: &str,
    name: Vec<Ident>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let object = ObjectName::from(name);
    if let Ok(plan) = context.plan(table(object.clone(), None)) {
        return Ok(plan);
    }
    let reference = context.object_name_to_table_reference(object)?;
    look_up(function, &reference.to_quoted_string(), reference, context)
}

fn look_up(
    function: &str,
    name: &str,
    scanned_as: TableReference,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let source = context
        .context_provider()
        .get_table_function_source(INPUT_FUNCTION, vec![lit(name)])
        .map_err(|e| match e {
            DataFusionError::Plan(message) => error::argument(function, "input:", message),
            other => other,
        })?;
    LogicalPlanBuilder::scan(scanned_as, source, None)?.build()
}

fn table(name: ObjectName, args: Option<Vec<FunctionArg>>) -> TableFactor {
    TableFactor::Table {
        name,
        alias: None,
        args: args.map(|args| TableFunctionArgs {
            args,
            settings: None,
        }),
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}
