//! Files that are named by a path, a glob or a URL, and folders among them that are releases.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::{
    ListingTable, ListingTableConfig, ListingTableConfigExt, ListingTableUrl,
};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlanBuilder, cast, ident};
use futures::StreamExt;

use super::csv_types::{self, Fitted};
use super::input;
use crate::error;
use crate::release::ReadRelease;

/// Files as a table whose columns have the types that fit all of their values, and what is to be said of it.
///
/// The types of some columns may be stated. Of a CSV file, these are read as they stand there; the columns of other files
/// are cast. A folder that is a release is read through its manifest.
///
/// # Errors
///
/// If there are no such files, if they cannot be read, or if a stated column is not in them.
pub async fn read_files(
    state: &SessionState,
    path: &str,
    types: &[(String, DataType)],
) -> Result<(Arc<dyn TableProvider>, Vec<String>)> {
    let unreadable = |e: DataFusionError| error::unreadable(path, &e);
    let url = ListingTableUrl::parse(path).map_err(unreadable)?;
    if Session::runtime_env(state).object_store(&url).is_err() {
        // Some sessions make the store of a URL when they look for a table of that name.
        let _ = input::registered(state, path).await;
    }
    let Ok(store) = Session::runtime_env(state).object_store(&url) else {
        let place = url.object_store();
        return plan_err!("cannot read '{path}': the session has no object store for {place}");
    };
    if let Some(release) = ReadRelease::from(path).open_if_any(state).await? {
        return Ok((with_types(release, path, types)?, vec![]));
    }
    let first = url
        .list_all_files(state, store.as_ref(), "")
        .await
        .map_err(unreadable)?
        .next()
        .await;
    match first {
        Some(Ok(_)) => {}
        Some(Err(e)) => return Err(error::unreadable(path, &e)),
        None => return plan_err!("there is no table or file '{path}'"),
    }
    let config = ListingTableConfig::new(url).infer_options(state).await;
    listed(state, path, config.map_err(unreadable)?, types).await
}

/// The same without stated types; what is to be said goes to the log.
pub(super) async fn known(state: &SessionState, path: &str) -> Result<Arc<dyn TableProvider>> {
    Ok(read_files(state, path, &[]).await?.0)
}

/// The files at a path as a table, with folders of partitions; none if there are none that the session can read.
pub(super) async fn if_any(
    state: &SessionState,
    path: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let Ok(url) = ListingTableUrl::parse(path) else {
        return Ok(None);
    };
    if let Some(release) = ReadRelease::from(path).open_if_any(state).await? {
        return Ok(Some(release));
    }
    let Ok(config) = ListingTableConfig::new(url).infer_options(state).await else {
        return Ok(None);
    };
    let config = config.infer_partitions_from_path(state).await?;
    Ok(Some(listed(state, path, config, &[]).await?.0))
}

async fn listed(
    state: &SessionState,
    path: &str,
    mut config: ListingTableConfig,
    types: &[(String, DataType)],
) -> Result<(Arc<dyn TableProvider>, Vec<String>)> {
    let unreadable = |e: DataFusionError| error::unreadable(path, &e);
    let format = config
        .options
        .as_ref()
        .map(|options| Arc::clone(&options.format));
    let is_csv = format
        .as_ref()
        .is_some_and(|format| format.is::<CsvFormat>());
    let json = format
        .as_ref()
        .and_then(|format| format.downcast_ref::<JsonFormat>());
    if let (Some(json), Some(options)) = (json, &mut config.options) {
        // Whole numbers may be followed by others.
        let whole = JsonFormat::default().with_options(json.options().clone());
        options.format = Arc::new(whole.with_schema_infer_max_rec(usize::MAX));
    }
    let config = config.infer_schema(state).await.map_err(unreadable)?;
    if !is_csv {
        let table = ListingTable::try_new(config).map_err(unreadable)?;
        return Ok((with_types(Arc::new(table), path, types)?, vec![]));
    }
    let Fitted { config, notes } = csv_types::fit(state, path, config, types).await?;
    for note in &notes {
        log::warn!("{note}");
    }
    let table = ListingTable::try_new(config).map_err(unreadable)?;
    Ok((Arc::new(table), notes))
}

/// A table with some columns cast.
fn with_types(
    table: Arc<dyn TableProvider>,
    path: &str,
    types: &[(String, DataType)],
) -> Result<Arc<dyn TableProvider>> {
    if types.is_empty() {
        return Ok(table);
    }
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    check_names(path, types, &names)?;
    let columns = names.iter().map(|name| {
        let column = ident(*name);
        match types.iter().find(|(stated, _)| stated == name) {
            Some((_, data_type)) => cast(column, data_type.clone()).alias(*name),
            None => column,
        }
    });
    let plan = LogicalPlanBuilder::scan("files", provider_as_source(table), None)?;
    let plan = plan.project(columns.collect::<Vec<_>>())?.build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Refuses stated types of columns that files do not have.
pub(super) fn check_names(path: &str, types: &[(String, DataType)], names: &[&str]) -> Result<()> {
    let unknown = types
        .iter()
        .find(|(name, _)| !names.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some((name, _)) => {
            let near = error::did_you_mean(name, names.iter().copied());
            Err(plan_datafusion_err!(
                "types: '{path}' has no column '{name}'{near} (columns: {})",
                names.join(", ")
            ))
        }
    }
}
