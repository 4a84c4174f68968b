//! `categories => …`: written in the call, or read from a table or a file.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, internal_err, plan_datafusion_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;

use super::input;
use super::load::{Load, Loaded};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::table::{Categories, CategoryRow};

/// Name under which [`CategoriesFunction`] is registered, for our own use.
pub(crate) const CATEGORIES_FUNCTION: &str = "anonymize_categories";

const SHAPE: &str = "must list categories from the most to the least sensitive one, [['HIV', 'Cancer'], ['Flu']] or \
     {worst: ['HIV', 'Cancer'], mild: ['Flu']}, or map values to categories in that order, or name a table or file \
     with the columns rank (1 for the most sensitive), category and value";

/// The categories that an argument gives; else what is wrong with it.
pub(super) fn read(value: &ArgumentValue, load: &mut dyn Load) -> Result<Categories, String> {
    let lists = match value {
        ArgumentValue::List(lists) => {
            let list =
                |(i, list): (usize, &ArgumentValue)| Some(((i + 1).to_string(), values(list)?));
            lists.iter().enumerate().map(list).collect()
        }
        ArgumentValue::Map(entries) => from_map(entries),
        _ => {
            let name = value.text().filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| format!("{SHAPE}, not {value}"))?;
            return load
                .categories(name)
                .map_err(|e| format!("cannot be used: {}", error::text(&e)));
        }
    };
    let lists: Vec<(String, Vec<String>)> = lists.ok_or_else(|| format!("{SHAPE}, not {value}"))?;
    Categories::from_lists(&lists).map_err(|e| format!("cannot be used: {e}"))
}

/// The categories of each sensitive column that has them: those of the only one, or a map from columns to theirs; else what
/// is wrong.
pub(crate) fn read_each(
    value: &ArgumentValue,
    sensitive: &[String],
    load: &mut dyn Load,
) -> Result<Vec<(String, Categories)>, String> {
    let entries = match value {
        ArgumentValue::Map(entries) => entries.as_slice(),
        _ => &[],
    };
    if !entries.is_empty() && entries.iter().all(|(name, _)| sensitive.contains(name)) {
        let of_column = |(column, value): &(String, ArgumentValue)| match read(value, load) {
            Ok(read) => Ok((column.clone(), read)),
            Err(reason) => Err(format!("of '{column}' {reason}")),
        };
        return entries.iter().map(of_column).collect();
    }
    match sensitive {
        [column] => Ok(vec![(column.clone(), read(value, load)?)]),
        // That the sensitive column is missing is said when the columns are looked up.
        [] => Ok(vec![]),
        _ => Err(format!(
            "must map each of the sensitive columns to its categories, not {value}"
        )),
    }
}

fn values(list: &ArgumentValue) -> Option<Vec<String>> {
    match list {
        ArgumentValue::List(values) => values.iter().map(ArgumentValue::plain).collect(),
        _ => None,
    }
}

/// `{category: [values]}` or `{value: category}`, categories in the order in which they are first named.
fn from_map(entries: &[(String, ArgumentValue)]) -> Option<Vec<(String, Vec<String>)>> {
    if entries
        .iter()
        .all(|(_, v)| matches!(v, ArgumentValue::List(_)))
    {
        return entries
            .iter()
            .map(|(category, list)| Some((category.clone(), values(list)?)))
            .collect();
    }
    let mut lists: Vec<(String, Vec<String>)> = vec![];
    for (value, category) in entries {
        let category = category.plain()?;
        match lists.iter_mut().find(|(known, _)| *known == category) {
            Some((_, values)) => values.push(value.clone()),
            None => lists.push((category, vec![value.clone()])),
        }
    }
    Some(lists)
}

/// Reads categories from a table or a file. It is a table function, so that it gets the session from the engine.
#[derive(Debug)]
pub(crate) struct CategoriesFunction;

impl TableFunctionImpl for CategoriesFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let name = match args.exprs() {
            [name] => ArgumentValue::from_expr(name),
            _ => None,
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return internal_err!("{CATEGORIES_FUNCTION} needs a session of DataFusion");
        };
        let Some(name) = name.as_ref().and_then(ArgumentValue::text) else {
            return plan_err!(
                "{CATEGORIES_FUNCTION}: categories are in a table or in a file, named in quotes"
            );
        };
        let categories = load(state, name)?;
        let rows = rows_of(&categories)?;
        Ok(Arc::new(Loaded::try_new(categories, rows)?))
    }
}

/// Categories as rows: rank, category, value.
fn rows_of(categories: &Categories) -> Result<RecordBatch> {
    let mut rows: Vec<(u32, &str)> = categories.iter().map(|(v, c)| (c, v)).collect();
    rows.sort_unstable();
    let ranks = rows.iter().map(|(category, _)| u64::from(*category) + 1);
    let labels = rows.iter().map(|(category, _)| categories.label(*category));
    let values = rows.iter().map(|(_, value)| *value);
    let columns: [(&str, ArrayRef); 3] = [
        ("rank", Arc::new(UInt64Array::from_iter_values(ranks))),
        ("category", Arc::new(StringArray::from_iter_values(labels))),
        ("value", Arc::new(StringArray::from_iter_values(values))),
    ];
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// The categories in the table of that name, or in the file at that path.
pub(super) fn load(state: &SessionState, name: &str) -> Result<Categories> {
    let table = input::find(state, name)?;
    let state = state.clone();
    let batches = input::wait(async move {
        SessionContext::new_with_state(state)
            .read_table(table)?
            .collect()
            .await
    })
    .map_err(|e| error::unreadable_rows(name, &e))?;
    let wrong = |reason: String| plan_datafusion_err!("'{name}': {reason}");
    let mut rows = vec![];
    for batch in &batches {
        rows.extend(category_rows(batch).map_err(wrong)?);
    }
    Categories::from_rows(&rows).map_err(|e| wrong(e.to_string()))
}

/// The rows of a table with the columns rank and value, and, if ranks have names, category.
fn category_rows(batch: &RecordBatch) -> Result<Vec<CategoryRow<String>>, String> {
    let column = |name: &str, data_type: &DataType| {
        let array = batch.column_by_name(name)?;
        // What is no number has no rank.
        cast(array, data_type).ok()
    };
    let missing = |name: &str| {
        let schema = batch.schema();
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        format!("it has no column '{name}' (columns: {})", names.join(", "))
    };
    let ranks = column("rank", &DataType::UInt64).ok_or_else(|| missing("rank"))?;
    let values = column("value", &DataType::Utf8).ok_or_else(|| missing("value"))?;
    let labels = column("category", &DataType::Utf8);
    let (ranks, values) = (
        ranks.as_primitive::<UInt64Type>(),
        values.as_string::<i32>(),
    );
    let labels = labels.as_ref().map(|labels| labels.as_string::<i32>());
    let row = |i: usize| {
        let rank = ranks.is_valid(i).then(|| ranks.value(i));
        let category = match labels {
            Some(labels) => labels.is_valid(i).then(|| labels.value(i).to_owned())?,
            None => rank.map_or_else(String::new, |rank| rank.to_string()),
        };
        let value = values.is_valid(i).then(|| values.value(i).to_owned())?;
        Some(CategoryRow {
            rank,
            category,
            value,
        })
    };
    let rows: Vec<_> = (0..batch.num_rows()).filter_map(row).collect();
    match batch.num_rows() - rows.len() {
        0 => Ok(rows),
        1 => Err("1 row has no category or no value".to_owned()),
        n => Err(format!("{n} rows have no category or no value")),
    }
}
