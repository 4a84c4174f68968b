//! `release('target', table => 'name', verify => true)`: a table of a release.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue, plan_datafusion_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};

use super::source::input;
use super::value::ArgumentValue;
use crate::error;
use crate::release::ReadRelease;

/// Its SQL name.
pub(crate) const NAME: &str = "release";

/// Its arguments, in their order where they have no names.
const ARGUMENTS: [&str; 3] = ["target", "table", "verify"];

/// Plans a call with named arguments: one of the table function, which gets the session from the engine.
pub(super) fn plan(
    unnamed: Vec<ArgumentValue>,
    named: &[(String, ArgumentValue)],
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let positions = ARGUMENTS.iter().map(|name| (*name).to_owned());
    if unnamed.len() > ARGUMENTS.len() {
        return Err(wrong());
    }
    let mut given: Vec<(String, ArgumentValue)> = positions.zip(unnamed).collect();
    for (name, value) in named {
        if given.iter().any(|(known, _)| known == name) {
            return Err(error::argument(NAME, name, "is given twice"));
        }
        if !ARGUMENTS.contains(&name.as_str()) {
            let near = error::did_you_mean(name, ARGUMENTS);
            let message = format!(
                "there is no argument '{name}'{near} (arguments: {})",
                ARGUMENTS.join(", ")
            );
            return Err(error::call(NAME, message));
        }
        given.push((name.clone(), value.clone()));
    }
    let read = read(&given)?;
    let arguments = vec![lit(read.0), lit(ScalarValue::Utf8(read.1)), lit(read.2)];
    let source = context
        .context_provider()
        .get_table_function_source(NAME, arguments)?;
    LogicalPlanBuilder::scan(NAME, source, None)?.build()
}

/// Opens a table of a release.
#[derive(Debug)]
pub(crate) struct ReleaseFunction;

impl TableFunctionImpl for ReleaseFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let values = args.exprs().iter().map(ArgumentValue::from_expr);
        let values = values.collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        if values.len() > ARGUMENTS.len() {
            return Err(wrong());
        }
        let given: Vec<_> = ARGUMENTS
            .iter()
            .map(|name| (*name).to_owned())
            .zip(values)
            .collect();
        let (target, table, verify) = read(&given)?;
        let state = args
            .session()
            .as_any()
            .downcast_ref::<SessionState>()
            .cloned();
        let state =
            state.ok_or_else(|| plan_datafusion_err!("{NAME}: needs a session of DataFusion"))?;
        let release = ReadRelease::from(target)
            .with_table(table)
            .with_verify(verify);
        let opened = input::wait(async move { release.open(&state).await });
        opened.map_err(|e| error::input(NAME, e))
    }
}

/// Target, table, and whether hashes are checked.
fn read(given: &[(String, ArgumentValue)]) -> Result<(String, Option<String>, bool)> {
    let of = |name: &str| {
        given
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    };
    let target = match of("target") {
        Some(ArgumentValue::Text(target)) => target.clone(),
        Some(other) => {
            return Err(error::argument(
                NAME,
                "target",
                format!("must be a folder or the URL of one, in quotes, not {other}"),
            ));
        }
        None => return Err(wrong()),
    };
    let table = match of("table") {
        None | Some(ArgumentValue::Null) => None,
        Some(value) => {
            let name = value.text().map(str::to_owned);
            Some(name.ok_or_else(|| error::argument(NAME, "table", "must be the name of a table"))?)
        }
    };
    let verify = match of("verify") {
        None | Some(ArgumentValue::Null) => false,
        Some(ArgumentValue::Boolean(verify)) => *verify,
        Some(_) => return Err(error::argument(NAME, "verify", "must be true or false")),
    };
    Ok((target, table, verify))
}

fn wrong() -> DataFusionError {
    error::call(
        NAME,
        "takes the folder or URL of a release: release('folder/', table => 'published', verify => true)",
    )
}
