//! Numbers for values: equal values of any type get the same number.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, UInt32Array, downcast_integer_array, make_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{partition, take};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use hashbrown::{DefaultHashBuilder, HashTable};

/// Rows that are numbered at a time.
const PART: usize = 8192;

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
    let columns = columns.iter().map(without_dictionary);
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    if let [column] = columns.as_slice()
        && let Some(numbered) = of_one(column)?
    {
        return Ok(numbered);
    }
    of_rows(&columns, first.len())
}

/// The numbers of rows of columns of any types.
fn of_rows(columns: &[ArrayRef], length: usize) -> Result<(Vec<u32>, usize), ArrowError> {
    let mut known = Known::default();
    let mut codes = Vec::with_capacity(length);
    let fields = columns
        .iter()
        .map(|c| SortField::new(c.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let repeats = repeats(columns);
    // A part at a time: all rows as bytes would take more memory than the columns.
    let mut rows = converter.empty_rows(0, 0);
    for from in (0..length).step_by(PART) {
        let part = from..length.min(from + PART);
        let new = part.clone().filter(|row| *row == from || !repeats[*row]);
        let new = UInt32Array::from_iter_values(new.map(|row| (row - from) as u32));
        let columns = columns
            .iter()
            .map(|column| {
                let part = column.slice(part.start, part.len());
                with_one_nan_and_zero(&take(&part, &new, None)?)
            })
            .collect::<Result<Vec<_>, _>>()?;
        rows.clear();
        converter.append(&mut rows, &columns)?;
        let mut rows = rows.iter();
        let mut code = 0;
        for row in part {
            if row == from || !repeats[row] {
                code = rows.next().map_or(code, |row| known.code(row.data()));
            }
            codes.push(code);
        }
    }
    Ok((codes, known.ends.len()))
}

/// The numbers of the values of a column whose type has a cheap equality.
fn of_one(column: &ArrayRef) -> Result<Option<(Vec<u32>, usize)>, ArrowError> {
    let column = with_one_nan_and_zero(column)?;
    let column = column.as_ref();
    Ok(downcast_integer_array!(
        column => Some(numbered(column.iter())),
        DataType::Float64 => {
            let floats = column.as_primitive::<Float64Type>().iter();
            Some(numbered(floats.map(|value| value.map(f64::to_bits))))
        }
        DataType::Utf8 => Some(numbered(column.as_string::<i32>().iter())),
        _ => None,
    ))
}

fn numbered<T: Hash + Eq + Copy>(values: impl Iterator<Item = Option<T>>) -> (Vec<u32>, usize) {
    let hasher = DefaultHashBuilder::default();
    // The table is small, because values and their hashes stand elsewhere; and hashes are not computed twice.
    let mut table: HashTable<u32> = HashTable::new();
    let mut known: Vec<(u64, Option<T>)> = vec![];
    let mut last = None;
    let code = |value: Option<T>| match last {
        Some((same, code)) if same == value => code,
        _ => {
            let (hash, next) = (hasher.hash_one(value), known.len() as u32);
            let same = |code: &u32| known[*code as usize] == (hash, value);
            let code = match table.find(hash, same) {
                Some(code) => *code,
                None => {
                    known.push((hash, value));
                    *table
                        .insert_unique(hash, next, |code| known[*code as usize].0)
                        .get()
                }
            };
            last = Some((value, code));
            code
        }
    };
    let codes = values.map(code).collect();
    (codes, known.len())
}

/// A dictionary as the numbers of its values; other columns as they are.
fn without_dictionary(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Some(dictionary) = column.as_any_dictionary_opt() else {
        return Ok(Arc::clone(column));
    };
    let values = dictionary.values();
    let (numbers, _) = codes(std::slice::from_ref(values))?;
    let numbers = UInt32Array::new(numbers.into(), values.logical_nulls());
    take(&numbers, dictionary.keys(), None)
}

/// Whether each row has the bits of the one before it: records of an individual and tuples of a class mostly stand together,
/// and comparing neighbours takes less time than making bytes of them.
fn repeats(columns: &[ArrayRef]) -> Vec<bool> {
    let rows = columns.first().map_or(0, |column| column.len());
    // What cannot be compared in this way is taken to differ.
    let Ok(runs) = partition(columns) else {
        return vec![false; rows];
    };
    let mut repeats = vec![true; rows];
    for run in runs.ranges() {
        repeats[run.start] = false;
    }
    repeats
}

/// Different rows of bytes, numbered as they come.
#[derive(Default)]
struct Known {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    hashes: Vec<u64>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Known {
    fn row(&self, code: u32) -> &[u8] {
        let code = code as usize;
        let begin = code.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[code]]
    }

    fn code(&mut self, row: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(row);
        let same = |code: &u32| self.hashes[*code as usize] == hash && self.row(*code) == row;
        let found = self.table.find(hash, same);
        match found.copied() {
            Some(code) => code,
            None => self.add(hash, row),
        }
    }

    fn add(&mut self, hash: u64, row: &[u8]) -> u32 {
        let code = self.ends.len() as u32;
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.table
            .insert_unique(hash, code, |code| hashes[*code as usize]);
        code
    }
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
pub(super) fn with_one_nan_and_zero(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
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
        // Of a part of a list only its own values: parts of one list would each convert all of it.
        DataType::List(field) if has_floats(field.data_type()) => {
            let list = array.as_list::<i32>();
            let (first, last) = (list.value_offsets()[0], list.value_offsets()[list.len()]);
            let own = list.values().slice(first as usize, (last - first) as usize);
            let offsets = list.value_offsets().iter().map(|offset| offset - first);
            let offsets = OffsetBuffer::new(offsets.collect::<Vec<_>>().into());
            let (values, nulls) = (with_one_nan_and_zero(&own)?, list.nulls().cloned());
            let list = ListArray::try_new(Arc::clone(field), offsets, values, nulls)?;
            Ok(Arc::new(list))
        }
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

pub(crate) fn invalid<T>(message: String) -> Result<T, ArrowError> {
    Err(ArrowError::InvalidArgumentError(message))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        DictionaryArray, Float64Array, Int64Array, StringArray, StructArray,
    };
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::{Field, Fields, Int32Type, UInt32Type};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Columns of several types with few different values, some of them missing, and floats that are equal in other bits.
    fn columns(random: &mut ChaCha8Rng, rows: usize) -> Vec<ArrayRef> {
        let mut numbers = || -> Vec<Option<i64>> {
            let number = |_| Some(random.random_range(0..6)).filter(|n| *n > 0);
            (0..rows).map(number).collect()
        };
        let float =
            |n: Option<i64>| n.map(|n| [0.0, -0.0, 1.5, f64::NAN, -f64::NAN][n as usize - 1]);
        let lists = |n: Option<i64>| n.map(|n| vec![Some(n as i32); n as usize / 2]);
        let floats: Float64Array = numbers().into_iter().map(float).collect();
        let ends = Fields::from(vec![
            Field::new("lo", DataType::Float64, true),
            Field::new("hi", DataType::Int64, true),
        ]);
        let both: Vec<ArrayRef> = vec![
            Arc::new(floats.clone()),
            Arc::new(Int64Array::from(numbers())),
        ];
        let known = numbers()
            .iter()
            .map(Option::is_some)
            .collect::<NullBuffer>();
        let text = numbers().into_iter().map(|n| n.map(|n| n.to_string()));
        vec![
            Arc::new(text.collect::<StringArray>()),
            Arc::new(Int64Array::from(numbers())),
            Arc::new(floats),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
                numbers().into_iter().map(lists),
            )),
            Arc::new(StructArray::new(ends, both, Some(known))),
        ]
    }

    #[test]
    fn one_column_is_numbered_as_rows_are() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for rows in [0, 1, 2, 40] {
            for column in columns(&mut random, rows) {
                let expected = of_rows(std::slice::from_ref(&column), rows).unwrap();
                assert_eq!(codes(&[column]).unwrap(), expected);
            }
        }
    }

    #[test]
    fn a_dictionary_is_numbered_as_its_values_are() {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        for rows in [0, 1, 2, 40, PART + 40] {
            let (mut packed, mut plain) = (vec![], vec![]);
            for values in columns(&mut random, 12) {
                let key = |_| Some(random.random_range(0..14)).filter(|key| *key < 12);
                let keys: UInt32Array = (0..rows).map(key).collect();
                plain.push(take(&values, &keys, None).unwrap());
                let dictionary = DictionaryArray::<UInt32Type>::new(keys, values);
                packed.push(Arc::new(dictionary) as ArrayRef);
            }
            for (packed, plain) in packed.iter().zip(&plain) {
                let [packed, plain] = [packed, plain].map(|c| codes(&[Arc::clone(c)]).unwrap());
                assert_eq!(packed, plain);
            }
            assert_eq!(codes(&packed).unwrap(), codes(&plain).unwrap());
        }
    }
}
