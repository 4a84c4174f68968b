//! Arguments of functions that publish local groups and buckets.

use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, SelectItem, SetExpr, Statement as SqlStatement,
};

use super::{Refusal, SpecArgument, choice};
use crate::call::arguments::{Argument, ArgumentKind, Arguments};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::spec::{Choice, LocalStrategy, Output, Secrecy, SmallPatterns, Spec};

/// The arguments of `anonymize_lgb` besides those of all functions.
pub(super) static ARGUMENTS: &[SpecArgument] = &[
    SpecArgument {
        argument: Argument::optional(
            "semi_sensitive",
            ArgumentKind::Secrecy,
            "quasi-identifiers of which some values are secret, each with what says whose: {age: age_private, \
               zip: 'zip_code LIKE ''9%''', sex: true}",
        ).or("none"),
        read: |mut spec, value, _| {
            let shape = "must map quasi-identifiers to a boolean column, a condition in quotes, true or false";
            let ArgumentValue::Map(entries) = value else {
                return Err(shape.into());
            };
            for (column, flag) in entries {
                let secrecy = match flag {
                    ArgumentValue::Name(name) => Secrecy::Column(name.clone()),
                    ArgumentValue::Text(text) => Secrecy::Written(text.clone()),
                    ArgumentValue::Boolean(all) => Secrecy::All(*all),
                    _ => return Err(shape.into()),
                };
                spec = spec.with_semi_sensitive(column, secrecy);
            }
            Ok(spec)
        },
    },
    SpecArgument {
        argument: Argument::optional(
            "k",
            ArgumentKind::Count,
            "smallest number of individuals in a local group",
        ),
        read: |spec, value, _| Ok(spec.with_parameter("k", number(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "l",
            ArgumentKind::CountPerColumn,
            "smallest number of different values in a bucket: one number, or {disease: 5, age: 3}",
        ),
        read: |spec, value, _| per_attribute(spec, value, "l", Spec::with_l_of),
    },
    SpecArgument {
        argument: Argument::optional(
            "t",
            ArgumentKind::DecimalPerColumn,
            "largest distance of a bucket from all secret values, for columns of few values instead of an l: {sex: 0.2}",
        ),
        read: |spec, value, _| match value {
            ArgumentValue::Map(_) => per_attribute(spec, value, "t", Spec::with_t_of),
            _ => Err("must map columns to a share, such as {sex: 0.2}".into()),
        },
    },
    SpecArgument {
        argument: Argument::optional(
            "strategy",
            ArgumentKind::Choice(LocalStrategy::NAMES),
            "how local groups are formed: 'ncp' (little loss) or 'mdp' (quick)",
        ).or("'ncp'"),
        read: |spec, value, _| Ok(spec.with_strategy(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "small_pattern",
            ArgumentKind::Choice(SmallPatterns::NAMES),
            "individuals who keep secret what fewer than k do: 'drop' or 'mask'",
        ).or("'drop'"),
        read: |spec, value, _| Ok(spec.with_small_pattern(choice(value)?)),
    },
    SpecArgument {
        argument: Argument::optional(
            "output",
            ArgumentKind::Choice(Output::NAMES),
            "values of buckets permuted in 'rows', or 'detached' in rows of their own",
        ).or("'rows'"),
        read: |spec, value, _| Ok(spec.with_output(choice(value)?)),
    },
];

fn number(value: &ArgumentValue) -> Result<String, Refusal> {
    match value {
        ArgumentValue::Number(digits) => Ok(digits.clone()),
        _ => Err("must be a number".into()),
    }
}

/// One number for all attributes, or a map.
fn per_attribute(
    mut spec: Spec,
    value: &ArgumentValue,
    name: &str,
    set: fn(Spec, String, String) -> Spec,
) -> Result<Spec, Refusal> {
    match value {
        ArgumentValue::Map(entries) => {
            for (column, value) in entries {
                spec = set(spec, column.clone(), number(value)?);
            }
            Ok(spec)
        }
        _ => Ok(spec.with_parameter(name, number(value)?)),
    }
}

/// Puts columns of flags under the anonymization where the call has conditions in quotes.
pub(super) fn plan_flags(
    mut spec: Spec,
    input: LogicalPlan,
    given: &mut Arguments,
) -> Result<(Spec, LogicalPlan)> {
    let mut flags: Vec<(Expr, String)> = vec![];
    for (column, text) in spec.written_flags() {
        let names = input.schema().fields().iter().map(|f| f.name());
        let flag = if names.clone().any(|name| *name == text) {
            text
        } else {
            let expr = condition(&column, &text, input.schema(), given)?;
            let flag = format!("__flag_{column}");
            flags.push((expr, flag.clone()));
            flag
        };
        spec = spec.with_flag(&column, flag);
    }
    if flags.is_empty() {
        return Ok((spec, input));
    }
    let columns = input.schema().columns().into_iter().map(Expr::Column);
    let flags = flags.into_iter().map(|(expr, name)| expr.alias(name));
    let columns: Vec<Expr> = columns.chain(flags).collect();
    let input = LogicalPlanBuilder::from(input).project(columns)?.build()?;
    Ok((spec, input))
}

/// A condition in quotes.
fn condition(column: &str, text: &str, schema: &DFSchema, given: &mut Arguments) -> Result<Expr> {
    let function = given.function();
    let refuse = |reason: String| -> DataFusionError {
        let message = format!(
            "of '{column}' must be a boolean column or a condition; '{text}' is not: {reason}"
        );
        error::argument(function, "semi_sensitive", message)
    };
    let parsed = DFParser::parse_sql(&format!("SELECT {text}"));
    let mut parsed = parsed.map_err(|e| refuse(e.strip_backtrace()))?;
    let expr = match (parsed.pop_front(), parsed.pop_front()) {
        (Some(Statement::Statement(statement)), None) => only_expression(*statement),
        _ => None,
    };
    let expr = expr.ok_or_else(|| refuse("it is not one expression".to_owned()))?;
    let expr = given.expression(expr, schema);
    expr.map_err(|e| refuse(error::text(&e)))
}

fn only_expression(statement: SqlStatement) -> Option<SqlExpr> {
    let SqlStatement::Query(query) = statement else {
        return None;
    };
    let SetExpr::Select(mut select) = *query.body else {
        return None;
    };
    match (select.projection.pop(), select.projection.is_empty()) {
        (Some(SelectItem::UnnamedExpr(expr)), true)
            if select.from.is_empty() && select.selection.is_none() =>
        {
            Some(expr)
        }
        _ => None,
    }
}
