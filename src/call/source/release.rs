//! Tables of releases, opened through their manifests.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, lit};

use super::input;
use crate::call::value::ArgumentValue;
use crate::error;
use crate::release::ReadRelease;

/// The function that users call.
pub(in crate::call) const NAME: &str = "release";

/// Name under which [`ReleaseFunction`] is registered, for our own use.
pub(crate) const RELEASE_FUNCTION: &str = "anonymize_release";

/// Opens a table of a release: the engine hands its session to table functions only.
#[derive(Debug)]
pub(crate) struct ReleaseFunction;

impl TableFunctionImpl for ReleaseFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let values = args.exprs().iter().map(ArgumentValue::from_expr);
        let values = values.collect::<Option<Vec<_>>>().unwrap_or_default();
        let [
            ArgumentValue::Text(target),
            table,
            ArgumentValue::Boolean(verify),
        ] = &values[..]
        else {
            return internal_err!("{RELEASE_FUNCTION} takes a target, a table and a flag");
        };
        match args.session().as_any().downcast_ref::<SessionState>() {
            Some(state) => open(state, target, table.text(), *verify),
            None => internal_err!("{RELEASE_FUNCTION} needs a session of DataFusion"),
        }
    }
}

/// The arguments of [`ReleaseFunction`].
pub(super) fn arguments(target: &str, table: Option<&str>, verify: bool) -> Vec<Expr> {
    let table = ScalarValue::Utf8(table.map(str::to_owned));
    vec![lit(target), lit(table), lit(verify)]
}

pub(super) fn open(
    state: &SessionState,
    target: &str,
    table: Option<&str>,
    verify: bool,
) -> Result<Arc<dyn TableProvider>> {
    let state = state.clone();
    let release = ReadRelease::from(target)
        .with_table(table.map(str::to_owned))
        .with_verify(verify);
    let opened = input::wait(async move { release.open(&state).await });
    opened.map_err(|e| error::input(NAME, e))
}
