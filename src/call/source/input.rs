//! The first argument: a table, a view, a subquery, or files.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, TableReference, internal_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, TableSource};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::files;
use crate::call::value::ArgumentValue;
use crate::error;
use crate::release::ReadRelease;

/// Name under which [`InputFunction`] is registered, for our own use.
pub(crate) const INPUT_FUNCTION: &str = "anonymize_input";

/// Finds tables and files that the engine has not looked up by itself, because they are named as arguments.
///
/// It is a table function, so that it gets the session from the engine: `anonymize_input('patients')`,
/// `anonymize_input('s3://bucket/patients/*.parquet')`.
#[derive(Debug)]
pub(crate) struct InputFunction;

impl TableFunctionImpl for InputFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [name] => ArgumentValue::from_expr(name),
            _ => None,
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return internal_err!("{INPUT_FUNCTION} needs a session of DataFusion");
        };
        match name.as_ref().and_then(ArgumentValue::text) {
            Some(name) => find(state, name),
            None => plan_err!(
                "{INPUT_FUNCTION}: the input must be the name of a table or the path of files"
            ),
        }
    }
}

/// Scans rows that are no table of the session. Plans tell scans apart by name and columns, and what is equal may be
/// computed once for all: so each of these scans has a name of its own below `name`.
pub(crate) fn scan_apart(name: &str, source: Arc<dyn TableSource>) -> Result<LogicalPlan> {
    static SCANS: AtomicU64 = AtomicU64::new(0);
    let number = SCANS.fetch_add(1, Ordering::Relaxed);
    LogicalPlanBuilder::scan(format!("{name}_{number}"), source, None)?
        .alias(name)?
        .build()
}

/// The table of that name, or the files at that path.
pub(crate) fn find(state: &SessionState, name: &str) -> Result<Arc<dyn TableProvider>> {
    let (state, name) = (state.clone(), name.to_owned());
    wait(async move {
        match registered(&state, &name).await? {
            Some(table) => Ok(table),
            None => files_or_refusal(&state, &name).await,
        }
    })
}

/// The table registered under that name.
pub(super) async fn registered(
    state: &SessionState,
    name: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    for reference in [TableReference::bare(name), TableReference::parse_str(name)] {
        if let Ok(schema) = state.schema_for_ref(reference.clone())
            && let Some(table) = schema
                .table(reference.table())
                .await
                .map_err(|e| error::unreadable(name, &e))?
        {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// The files at that path; if it is none, which table may have been meant.
pub(super) async fn files_or_refusal(
    state: &SessionState,
    name: &str,
) -> Result<Arc<dyn TableProvider>> {
    if name.contains(['/', '\\', '*', '.']) {
        return files::known(state, name).await;
    }
    if let Some(release) = ReadRelease::from(name).open_if_any(state).await? {
        return Ok(release);
    }
    let known = state
        .schema_for_ref(TableReference::bare(name))
        .map(|schema| schema.table_names())
        .unwrap_or_default();
    let nearest = error::did_you_mean(name, known.iter().map(String::as_str));
    plan_err!("there is no table '{name}'{nearest}")
}

/// Waits for a future while SQL is planned, which is not asynchronous.
pub(crate) fn wait<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| handle.block_on(future))
        }
        // A single-threaded runtime cannot go on while we wait for it: a thread with its own can.
        _ => std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(future)
            });
            waiting
                .join()
                .unwrap_or_else(|_| internal_err!("looking up a table failed"))
        }),
    }
}
