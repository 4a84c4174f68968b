//! The types of a CSV file's columns, decided by all of their values.
//!
//! The engine decides by the first rows: it fails where a later value is of another kind, and reads codes such as 007 as
//! numbers, which have no zeros in front. So whatever it takes for something else than text is read once more, as text.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::kernels::cast_utils::Parser;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit,
};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::execution::SessionState;
use datafusion::logical_expr::ident;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use super::files::check_names;
use crate::error;

/// A file whose columns have types that fit.
pub(super) struct Fitted {
    pub config: ListingTableConfig,
    /// What became text although it looked like something else.
    pub notes: Vec<String>,
}

/// Gives columns the types that were stated, and otherwise those that fit all of their values.
pub(super) async fn fit(
    state: &SessionState,
    path: &str,
    config: ListingTableConfig,
    stated: &[(String, DataType)],
) -> Result<Fitted> {
    let guessed = config.file_schema.clone();
    let guessed = guessed.ok_or_else(|| internal_datafusion_err!("a file without a schema"))?;
    let names: Vec<&str> = guessed.fields().iter().map(|f| f.name().as_str()).collect();
    check_names(path, stated, &names)?;
    let mut types: Vec<DataType> = guessed
        .fields()
        .iter()
        .map(|f| f.data_type().clone())
        .collect();
    let mut columns = vec![];
    for (at, name) in names.iter().enumerate() {
        match stated.iter().find(|(column, _)| column == name) {
            Some((_, data_type)) => types[at] = data_type.clone(),
            None if types[at] != DataType::Utf8 => columns.push(Column::new(at, &types[at])),
            None => {}
        }
    }
    if !columns.is_empty() {
        let looked = look(state, &config, &guessed, &mut columns).await;
        looked.map_err(|e| error::unreadable_rows(path, &e))?;
    }
    let mut notes = vec![];
    for column in columns {
        let (guess, name) = (types[column.at].clone(), names[column.at]);
        types[column.at] = column.fitting().unwrap_or(guess);
        if types[column.at] == DataType::Utf8 {
            let why = match column.has_code {
                true => "it has values with zeros in front, as codes have",
                false => "its values are of different kinds",
            };
            notes.push(format!(
                "column '{name}' of '{path}' is read as text: {why}"
            ));
        }
    }
    let fields = names
        .iter()
        .zip(types)
        .map(|(name, data_type)| Field::new(*name, data_type, true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    Ok(Fitted {
        config: config.with_schema(Arc::new(schema)),
        notes,
    })
}

/// Reads columns as text.
async fn look(
    state: &SessionState,
    config: &ListingTableConfig,
    guessed: &SchemaRef,
    columns: &mut [Column],
) -> Result<()> {
    let fields = guessed.fields().iter();
    let text = fields.map(|f| Field::new(f.name(), DataType::Utf8, true));
    let text = Arc::new(Schema::new(text.collect::<Vec<_>>()));
    let table = ListingTable::try_new(config.clone().with_schema(text))?;
    let names = columns
        .iter()
        .map(|column| ident(guessed.field(column.at).name()));
    let names = names.collect::<Vec<_>>();
    let context = SessionContext::new_with_state(state.clone());
    let frame = context.read_table(Arc::new(table))?.select(names)?;
    let mut batches = frame.execute_stream().await?;
    while let Some(batch) = batches.next().await.transpose()? {
        for (column, values) in columns.iter_mut().zip(batch.columns()) {
            column.add(values)?;
        }
    }
    Ok(())
}

/// What is known of a column.
struct Column {
    at: usize,
    has_values: bool,
    has_code: bool,
    /// Types that may fit, the first of them first.
    types: Vec<DataType>,
}

impl Column {
    fn new(at: usize, guess: &DataType) -> Self {
        let types = match guess {
            DataType::Int64 => vec![DataType::Int64, DataType::Float64],
            // Nothing was in the first rows.
            DataType::Null => vec![
                DataType::Int64,
                DataType::Float64,
                DataType::Boolean,
                DataType::Date32,
                DataType::Timestamp(TimeUnit::Nanosecond, None),
            ],
            other => vec![other.clone()],
        };
        Self {
            at,
            has_values: false,
            has_code: false,
            types,
        }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        self.has_values |= values.null_count() < values.len();
        let texts = || values.as_string::<i32>().iter().flatten();
        self.has_code |= texts().any(is_code);
        let mut kept = vec![];
        for data_type in self.types.drain(..) {
            let fits = match &data_type {
                DataType::Int64 => texts().all(|text| Int64Type::parse(text).is_some()),
                DataType::Float64 => texts().all(|text| Float64Type::parse(text).is_some()),
                DataType::Boolean => texts().all(is_boolean),
                other => {
                    let safe = CastOptions {
                        safe: true,
                        ..CastOptions::default()
                    };
                    cast_with_options(values, other, &safe)?.null_count() == values.null_count()
                }
            };
            if fits {
                kept.push(data_type);
            }
        }
        self.types = kept;
        Ok(())
    }

    /// The type that fits; none if there was no value.
    fn fitting(&self) -> Option<DataType> {
        let numeric = self.types.first().is_some_and(DataType::is_numeric);
        match self.types.first() {
            _ if !self.has_values => None,
            Some(data_type) if !(numeric && self.has_code) => Some(data_type.clone()),
            _ => Some(DataType::Utf8),
        }
    }
}

/// Whether a number would lose the zeros in front.
fn is_code(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_boolean(text: &str) -> bool {
    ["true", "false"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    fn fitting(guess: DataType, batches: &[&[&str]]) -> Option<DataType> {
        let mut column = Column::new(0, &guess);
        for batch in batches {
            let values = batch.iter().map(|text| (!text.is_empty()).then_some(*text));
            let values: ArrayRef = Arc::new(values.collect::<StringArray>());
            column.add(&values).unwrap();
        }
        column.fitting()
    }

    #[test]
    fn all_values_decide() {
        use DataType::{Boolean, Date32, Float64, Int64, Null, Utf8};
        for (guess, batches, expected) in [
            (Int64, &[&["1", "-2"][..], &["", "30"]][..], Some(Int64)),
            (Int64, &[&["1"], &["2.5"]], Some(Float64)),
            (Int64, &[&["1"], &["N"]], Some(Utf8)),
            (Int64, &[&["1"], &["007"]], Some(Utf8)),
            (Int64, &[&["0"]], Some(Int64)),
            (Int64, &[&["99999999999999999999"]], Some(Float64)),
            (Float64, &[&["1.5"], &["01"]], Some(Utf8)),
            (Boolean, &[&["true", "FALSE"]], Some(Boolean)),
            (Boolean, &[&["true"], &["yes"]], Some(Utf8)),
            (Date32, &[&["2026-11-19"], &["19.11."]], Some(Utf8)),
            (Date32, &[&["2026-11-19"], &[""]], Some(Date32)),
            (Null, &[&["", ""]], None),
            (Null, &[&["", ""], &["4"]], Some(Int64)),
            (Null, &[&["", ""], &["x"]], Some(Utf8)),
        ] {
            assert_eq!(fitting(guess, batches), expected, "{batches:?}");
        }
    }
}
