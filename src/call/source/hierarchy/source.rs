//! Given hierarchies: files in ARX's layout, or registered tables.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{DataFusionError, Result, internal_err, plan_datafusion_err, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::object_store::ObjectStoreExt;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::super::input;
use super::super::load::Loaded;
use super::made::{MADE, Made};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::table::Taxonomy;

/// Name under which [`HierarchyFunction`] is registered, for our own use.
pub(crate) const HIERARCHY_FUNCTION: &str = "anonymize_hierarchy";

/// Reads a hierarchy from a file or a table. It is a table function, so that it gets the session from the engine.
#[derive(Debug)]
pub(crate) struct HierarchyFunction;

impl TableFunctionImpl for HierarchyFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [name] | [name, Expr::ScalarSubquery(_)] => ArgumentValue::from_expr(name),
            _ => None,
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return internal_err!("{HIERARCHY_FUNCTION} needs a session of DataFusion");
        };
        let name = name.as_ref().and_then(ArgumentValue::text);
        if let (Some(name), [_, Expr::ScalarSubquery(values)]) = (name, args.exprs()) {
            let made = Made::named(name).map_err(|reason| plan_datafusion_err!("{reason}"))?;
            return match made {
                Some(made) => {
                    let taxonomy = made.make(state, &values.subquery)?;
                    let rows = rows_of(&taxonomy)?;
                    Ok(Arc::new(Loaded::try_new(taxonomy, rows)?))
                }
                None => plan_err!("{HIERARCHY_FUNCTION}: a hierarchy is made by {MADE}"),
            };
        }
        match name {
            Some(name) => {
                let taxonomy = load(state, name)?;
                let rows = rows_of(&taxonomy)?;
                Ok(Arc::new(Loaded::try_new(taxonomy, rows)?))
            }
            None => plan_err!(
                "{HIERARCHY_FUNCTION}: a hierarchy is the name of a table or the path of a file"
            ),
        }
    }
}

/// A hierarchy as rows: value, level_1, …, one row per leaf.
pub(in crate::call) fn rows_of(taxonomy: &Taxonomy) -> Result<RecordBatch> {
    let tree = taxonomy.tree();
    let nodes: Vec<u32> = (0..tree.leaves()).map(|leaf| tree.node_of(leaf)).collect();
    let (mut fields, mut columns) = (vec![], vec![]);
    for level in 0..=tree.height() {
        let name = match level {
            0 => "value".to_owned(),
            _ => format!("level_{level}"),
        };
        fields.push(Field::new(name, DataType::Utf8, false));
        // Shorter chains stay at the root.
        let labels = nodes
            .iter()
            .map(|node| taxonomy.label(tree.up(*node, level)));
        columns.push(Arc::new(StringArray::from_iter_values(labels)) as ArrayRef);
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// The hierarchy in the table of that name, or in the file at that path.
pub(in crate::call) fn load(state: &SessionState, name: &str) -> Result<Taxonomy> {
    let (state, owned) = (state.clone(), name.to_owned());
    let rows = input::wait(async move {
        // First of all: some sessions take the path of a file for a table, whose first row would be its header.
        if is_csv(&owned) {
            return csv_rows(&state, &owned).await;
        }
        if let Some(table) = input::registered(&state, &owned).await? {
            return table_rows(state, &owned, table).await;
        }
        let table = input::files_or_refusal(&state, &owned).await?;
        table_rows(state, &owned, table).await
    })?;
    Taxonomy::from_rows(&rows)
        .map_err(|reason| plan_datafusion_err!("'{name}' is not a hierarchy: {reason}"))
}

/// Whether a path or URL, without what a URL asks of a server, is that of a CSV file.
fn is_csv(name: &str) -> bool {
    let path = match name.contains("://") {
        true => name.split(['?', '#']).next().unwrap_or(name),
        false => name,
    };
    let path = path.to_ascii_lowercase();
    [".csv", ".txt"].iter().any(|end| path.ends_with(end))
}

/// All rows of a table as text. Sorted, because a table has no order of its own.
async fn table_rows(
    state: SessionState,
    name: &str,
    table: Arc<dyn TableProvider>,
) -> Result<Vec<Vec<String>>> {
    let batches = SessionContext::new_with_state(state)
        .read_table(table)?
        .collect()
        .await
        .map_err(|e| error::unreadable_rows(name, &e))?;
    let mut rows = vec![];
    for batch in batches {
        let texts = batch
            .columns()
            .iter()
            .map(|column| cast(column, &DataType::Utf8))
            .collect::<Result<Vec<_>, _>>()?;
        for i in 0..batch.num_rows() {
            let cells = texts.iter().map(|column| column.as_string::<i32>());
            let cells = cells.filter(|column| datafusion::arrow::array::Array::is_valid(column, i));
            rows.push(labels(cells.map(|column| column.value(i))));
        }
    }
    rows.sort_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
    Ok(rows)
}

/// The rows of a CSV file without a header: `leaf;level 1;…;*`, or with commas if the first row has no semicolon.
async fn csv_rows(state: &SessionState, path: &str) -> Result<Vec<Vec<String>>> {
    let unreadable = |e: DataFusionError| error::unreadable(path, &e);
    let url = ListingTableUrl::parse(path).map_err(unreadable)?;
    let store = match Session::runtime_env(state).object_store(&url) {
        Ok(store) => store,
        Err(_) => {
            // Some sessions make the store of a URL when they look for a table of that name.
            let _ = input::registered(state, path).await;
            let Ok(store) = Session::runtime_env(state).object_store(&url) else {
                return plan_err!("cannot read '{path}': the session has no object store for it");
            };
            store
        }
    };
    let mut files = url
        .list_all_files(state, store.as_ref(), "")
        .await
        .map_err(unreadable)?;
    let Some(file) = files.next().await.transpose().map_err(unreadable)? else {
        return plan_err!("there is no table or file '{path}'");
    };
    let bytes = async { store.get(&file.location).await?.bytes().await }
        .await
        .map_err(|e| unreadable(e.into()))?;
    let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let delimiter = if first.contains(&b';') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(bytes.as_ref());
    let mut rows = vec![];
    for record in reader.records() {
        // The parser's own message would show the row.
        let record = record.map_err(|_| {
            plan_datafusion_err!(
                "cannot read '{path}': row {} is not CSV in UTF-8",
                rows.len() + 1
            )
        })?;
        rows.push(labels(record.iter()));
    }
    Ok(rows)
}

/// Labels without the blanks that fill up shorter rows.
fn labels<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    cells
        .map(str::trim)
        .filter(|label| !label.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_csv;

    #[test]
    fn urls_of_csv_files_may_ask_for_more() {
        for csv in [
            "city.csv",
            "CITY.TXT",
            "s3://b/city.csv",
            "https://h/city.csv?token=a.b#top",
        ] {
            assert!(is_csv(csv), "{csv}");
        }
        for other in [
            "cities",
            "city.parquet",
            "https://h/city.parquet?name=city.csv",
            "what?.json",
        ] {
            assert!(!is_csv(other), "{other}");
        }
    }
}
