//! Calls in SQL: named arguments, and a relation as the first one.

mod measuring;

use datafusion::common::{DFSchema, DataFusionError, Result, TableReference};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    TableFactor, TableFunctionArgs, Value,
};

use super::source::input::INPUT_FUNCTION;
use super::source::{InputLoad, PlanningLoad, hierarchy};
use super::value::ArgumentValue;
use super::{anonymize, publish, release, sample};
use crate::error;
use crate::measure::sql::{MeasureCall, MeasureEntry, audits};
use crate::pipeline::{AnonymizeNode, coerced};
use crate::system::FUNCTIONS;

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
        let function = match name.0.as_slice() {
            [part] => part
                .as_ident()
                .map(|ident| context.normalize_ident(ident.clone())),
            _ => None,
        };
        let audit = function.as_deref().and_then(audits::named);
        let called = function.as_deref();
        if let Some(called) = called.filter(|called| audit.is_some() || ours(called)) {
            let clause = match (with_ordinality, sample) {
                (true, _) => Some("WITH ORDINALITY"),
                (_, Some(_)) => Some("TABLESAMPLE"),
                _ => None,
            };
            if let Some(clause) = clause {
                let message = format!(
                    "{clause} cannot follow the call, because the function publishes one whole result"
                );
                return Err(error::call(called, message));
            }
        }
        if let Some(entry) = audit {
            let plan = measuring::plan(entry, &args.args, context)?;
            let planned = PlannedRelation::new(plan, alias.clone());
            return Ok(RelationPlanning::Planned(Box::new(planned)));
        }
        let Some(function) = function.filter(|f| ours(f)) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let measure = MeasureEntry::named(&function);
        let own: &[_] = match function.as_str() {
            publish::NAME => &["release"],
            _ => &["input"],
        };
        let relations = measure.map_or(own, |q| q.relations);
        let call = Call::read(&function, relations, &args.args, context)?;
        let plan = if let Some(measure) = measure {
            call.measure(measure, context)?
        } else if function == sample::NAME {
            sample::plan(&call.positional(&function, context)?, &call.named)?
        } else if function == hierarchy::NAME {
            call.hierarchy(context)?
        } else if function == publish::NAME {
            call.publish(context)?
        } else if function == release::NAME {
            release::plan(call.positional(&function, context)?, &call.named, context)?
        } else {
            call.anonymize(&function, context)?
        };
        let planned = PlannedRelation::new(plan, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

fn ours(function: &str) -> bool {
    [sample::NAME, hierarchy::NAME, publish::NAME, release::NAME].contains(&function)
        || MeasureEntry::named(function).is_some()
        || FUNCTIONS.iter().any(|f| f.name == function)
}

/// The arguments of one call.
struct Call {
    unnamed: Vec<SqlExpr>,
    /// Relations that were given by name.
    relations: Vec<(String, SqlExpr)>,
    named: Vec<(String, ArgumentValue)>,
}

impl Call {
    fn read(
        function: &str,
        relations: &[&str],
        args: &[FunctionArg],
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Self> {
        let mut call = Self {
            unnamed: vec![],
            relations: vec![],
            named: vec![],
        };
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(value) => (None, value),
                FunctionArg::Named { name, arg, .. } => (Some(name.clone()), arg),
                FunctionArg::ExprNamed {
                    name: SqlExpr::Identifier(name),
                    arg,
                    ..
                } => (Some(name.clone()), arg),
                FunctionArg::ExprNamed { .. } => {
                    return Err(error::call(
                        function,
                        "an argument's name must be an identifier",
                    ));
                }
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(error::call(
                    function,
                    "* is not an argument; name the columns",
                ));
            };
            match name.map(|ident| context.normalize_ident(ident)) {
                None if call.named.is_empty() => call.unnamed.push(value.clone()),
                None => {
                    return Err(error::call(
                        function,
                        "an argument without a name stands after one with a name",
                    ));
                }
                Some(name) if relations.contains(&name.as_str()) => {
                    call.relations.push((name, value.clone()));
                }
                Some(name) => {
                    let value = constant(function, &name, value, context)?;
                    call.named.push((name, value));
                }
            }
        }
        Ok(call)
    }

    /// The unnamed arguments as constants.
    fn positional(
        &self,
        function: &str,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<Vec<ArgumentValue>> {
        let read = |value| constant(function, "an argument", value, context);
        self.unnamed.iter().map(read).collect()
    }

    /// `hierarchy(source)` or `hierarchy(input, column => …, by => …)`.
    fn hierarchy(self, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let inputs = self
            .unnamed
            .into_iter()
            .chain(self.relations.into_iter().map(|(_, r)| r));
        let Ok([input]) = <[SqlExpr; 1]>::try_from(inputs.collect::<Vec<_>>()) else {
            return Err(error::call(
                hierarchy::NAME,
                "takes a hierarchy ('city.csv'), or a table and a column: (patients, column => age, by => 'bins(5, 20)')",
            ));
        };
        if self.named.is_empty() {
            let name = ArgumentValue::from_sql(&input, context);
            let name = name.as_ref().and_then(ArgumentValue::text);
            let name = name.ok_or_else(|| {
                error::call(
                    hierarchy::NAME,
                    "takes the name of a table or the path of a file",
                )
            })?;
            return hierarchy::plan_given(name, context)
                .map_err(|e| error::call(hierarchy::NAME, error::text(&e)));
        }
        let input = plan_input(hierarchy::NAME, input, context)?;
        hierarchy::plan_column(input, &self.named, context)
    }

    /// `publish(target, release, require => {…})`.
    fn publish(mut self, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let mut unnamed = self.unnamed.drain(..);
        let named = self.named.iter().position(|(name, _)| name == "target");
        let target = match named {
            Some(at) => Some(self.named.swap_remove(at).1),
            None => unnamed
                .next()
                .map(|value| constant(publish::NAME, "target", &value, context))
                .transpose()?,
        };
        let required = self.named.iter().position(|(name, _)| name == "require");
        let required = required.map(|at| self.named.swap_remove(at).1);
        let release = match self.relations.pop() {
            Some((_, release)) => Some(release),
            None => unnamed.next(),
        };
        let too_many = unnamed.next().is_some() || !self.named.is_empty();
        let (Some(target), Some(release), false) = (target, release, too_many) else {
            return Err(publish::wrong());
        };
        let release = plan_input(publish::NAME, release, context)?;
        publish::plan(&target, release, required.as_ref())
    }

    /// `f(relation, …, constant, …, name => value, …)`.
    fn measure(
        self,
        entry: &MeasureEntry,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let unnamed = self.unnamed.into_iter();
        let (relations, arguments) = entry.bind(self.relations, self.named, unnamed, |value| {
            constant(entry.name, "an argument", &value, context)
        })?;
        let relations = relations
            .into_iter()
            .map(|relation| plan_input(entry.name, relation, context))
            .collect::<Result<Vec<_>>>()?;
        let load = &mut PlanningLoad(context);
        let call = MeasureCall::read(entry.name, relations, arguments, load)?;
        let mut to_expr = |expr, schema: &DFSchema| context.sql_to_expr(expr, schema);
        (entry.plan)(call, &mut to_expr)
    }

    /// `f(input, name => value, …)`, or `f(input, {name: value, …})` as ordinary table functions are called.
    fn anonymize(
        mut self,
        function: &str,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let mut unnamed = self.unnamed.drain(..);
        let input = match (self.relations.pop(), unnamed.next()) {
            (Some((_, input)), None) | (None, Some(input)) => input,
            (Some(_), Some(_)) => return Err(error::argument(function, "input", "is given twice")),
            (None, None) => {
                return Err(error::argument(
                    function,
                    "input",
                    "is missing: name a table, a (SELECT …) or the path of files first",
                ));
            }
        };
        if let Some(options) = unnamed.next() {
            match ArgumentValue::from_sql(&options, context) {
                Some(ArgumentValue::Map(entries)) if self.named.is_empty() => self.named = entries,
                _ => {
                    return Err(error::call(
                        function,
                        "arguments after the input have names: id => …, qi => […]",
                    ));
                }
            }
        }
        if unnamed.next().is_some() {
            return Err(error::call(
                function,
                "arguments after the input have names: id => …, qi => […]",
            ));
        }
        let input = plan_input(function, input, context)?;
        let mut load = InputLoad {
            load: PlanningLoad(context),
            input: &input,
            id: anonymize::id(&self.named),
        };
        let spec = anonymize::read(function, &self.named, &mut load)?;
        let mut to_expr = |expr, schema: &DFSchema| context.sql_to_expr(expr, schema);
        let (spec, input) = anonymize::plan_flags(spec, input, &mut to_expr)?;
        AnonymizeNode::plan(spec, input)
    }
}

pub(super) fn constant(
    function: &str,
    name: &str,
    value: &SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<ArgumentValue> {
    ArgumentValue::from_sql(value, context).ok_or_else(|| {
        error::argument(
            function,
            name,
            "must be constant: it is needed to plan the query",
        )
    })
}

/// Plans the relation that an argument names, with the types that it will have.
pub(super) fn plan_input(
    function: &str,
    input: SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    coerced(plan_relation(function, input, context)?)
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

fn not_a_relation(function: &str) -> DataFusionError {
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
