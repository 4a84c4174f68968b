//! Numbers for values: equal values of any type get the same number.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{Row, RowConverter, Rows, SortField};

/// Numbers the different rows of `columns` from 0: the number of every row, and how many there are.
pub(super) fn codes(columns: &[ArrayRef]) -> Result<(Vec<u32>, usize), ArrowError> {
    let Some(first) = columns.first() else {
        return Ok((vec![], 0));
    };
    if columns.iter().any(|c| c.len() != first.len()) {
        return invalid("verify: the quasi-identifier columns differ in length".to_string());
    }
    if u32::try_from(first.len() + 1).is_err() {
        return invalid("verify: more records than 32 bits count".to_string());
    }
    let rows = comparable_rows(columns)?;
    let mut known: HashMap<Row<'_>, u32> = HashMap::new();
    let mut last: Option<(Row<'_>, u32)> = None;
    let mut codes = Vec::with_capacity(rows.num_rows());
    for row in &rows {
        // Records of an individual and tuples of a class mostly stand together.
        let code = match last {
            Some((same, code)) if same == row => code,
            _ => {
                let next = known.len() as u32;
                *known.entry(row).or_insert(next)
            }
        };
        last = Some((row, code));
        codes.push(code);
    }
    Ok((codes, known.len()))
}

/// Rows of values as bytes: equal values give equal bytes, with NULL equal to NULL, NaN to NaN and -0.0 to 0.0.
pub fn comparable_rows(columns: &[ArrayRef]) -> Result<Rows, ArrowError> {
    let columns = columns
        .iter()
        .map(with_one_nan_and_zero)
        .collect::<Result<Vec<_>, _>>()?;
    let fields = columns
        .iter()
        .map(|c| SortField::new(c.data_type().clone()));
    RowConverter::new(fields.collect())?.convert_columns(&columns)
}

/// The array with every NaN made the same NaN and every -0.0 made 0.0, also inside structs and lists: the row
/// format compares floats by their bits.
fn with_one_nan_and_zero(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    macro_rules! primitive {
        ($float:ty) => {{
            type Native = <$float as ArrowPrimitiveType>::Native;
            let floats = array.as_primitive::<$float>();
            Ok(Arc::new(floats.unary::<_, $float>(|value| {
                if value.is_nan() {
                    <Native>::NAN
                } else if value == Native::default() {
                    Native::default()
                } else {
                    value
                }
            })))
        }};
    }
    match array.data_type() {
        DataType::Float16 => primitive!(Float16Type),
        DataType::Float32 => primitive!(Float32Type),
        DataType::Float64 => primitive!(Float64Type),
        other if has_floats(other) => {
            let data = array.to_data();
            let children = data
                .child_data()
                .iter()
                .map(|child| Ok(with_one_nan_and_zero(&make_array(child.clone()))?.to_data()))
                .collect::<Result<Vec<_>, ArrowError>>()?;
            Ok(make_array(
                data.into_builder().child_data(children).build()?,
            ))
        }
        _ => Ok(array.clone()),
    }
}

fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|f| has_floats(f.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, f)| has_floats(f.data_type())),
        DataType::Dictionary(_, values) => has_floats(values),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => has_floats(field.data_type()),
        other => other.is_floating(),
    }
}

pub(super) fn invalid<T>(message: String) -> Result<T, ArrowError> {
    Err(ArrowError::InvalidArgumentError(message))
}
