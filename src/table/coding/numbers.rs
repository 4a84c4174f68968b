//! Numbers for the different values of a column, in the order in which they come.

use std::hash::Hash;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::*;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::Rows;
use hashbrown::HashMap;

use super::key::rows;
use crate::table::NULL_CODE;

/// The values of a column as numbers.
#[derive(Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number of each value; [`NULL_CODE`] where it is missing.
    pub of: Vec<u32>,
    /// Where each number was seen first.
    pub first: Vec<u32>,
}

impl Numbers {
    /// Numbers the values of a column. Texts and numbers are compared as they are, reals by their bits, others in Arrow's
    /// row format, which has the same order and equality.
    pub fn try_new(column: &ArrayRef) -> Result<Self, ArrowError> {
        macro_rules! whole {
            ($type:ty) => {{
                let values = column.as_primitive::<$type>();
                Self::by(values.iter())
            }};
        }
        Ok(match column.data_type() {
            DataType::Utf8 => Self::of_texts(column.as_string::<i32>().iter()),
            DataType::Utf8View => Self::of_views(column.as_string_view()),
            DataType::Int8 => whole!(Int8Type),
            DataType::Int16 => whole!(Int16Type),
            DataType::Int32 => whole!(Int32Type),
            DataType::Int64 => whole!(Int64Type),
            DataType::UInt8 => whole!(UInt8Type),
            DataType::UInt16 => whole!(UInt16Type),
            DataType::UInt32 => whole!(UInt32Type),
            DataType::UInt64 => whole!(UInt64Type),
            DataType::Float64 => {
                let values = column.as_primitive::<Float64Type>();
                Self::by(values.iter().map(|value| value.map(f64::to_bits)))
            }
            _ => {
                let rows = rows(std::slice::from_ref(column))?;
                Self::by((0..column.len()).map(|i| column.is_valid(i).then(|| rows.row(i))))
            }
        })
    }

    /// Numbers values that are at hand.
    pub fn by<T: Hash + Eq + Copy>(values: impl Iterator<Item = Option<T>>) -> Self {
        // The value before.
        Self::remembering(1, |_| 0, values)
    }

    /// Numbers texts. Most columns have a few different ones only, which are told apart by their length and ends.
    fn of_texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Self {
        Self::remembering(TEXTS, text_slot, values)
    }

    /// Numbers texts by their views: those that are equal mostly are the same place of a dictionary.
    fn of_views(texts: &StringViewArray) -> Self {
        let views = texts.views();
        let view_of = |at: usize| texts.is_valid(at).then(|| views[at]);
        let slot_of = |view: u128| slot(view as u64 ^ (view >> 64) as u64, VIEWS);
        Self::told_apart(VIEWS, slot_of, (0..texts.len()).map(view_of), |at, _| {
            texts.value(at)
        })
    }

    /// Numbers values, and remembers the last one of each slot: comparing two takes less time than hashing one.
    fn remembering<T: Hash + Eq + Copy>(
        slots: usize,
        slot_of: impl Fn(T) -> usize,
        values: impl Iterator<Item = Option<T>>,
    ) -> Self {
        Self::told_apart(slots, slot_of, values, |_, value| value)
    }

    /// Numbers values that are given by something else, of which equal ones stand for equal values.
    fn told_apart<T: Eq + Copy, V: Hash + Eq>(
        slots: usize,
        slot_of: impl Fn(T) -> usize,
        items: impl Iterator<Item = Option<T>>,
        value_of: impl Fn(usize, T) -> V,
    ) -> Self {
        let mut known: HashMap<V, u32> = HashMap::new();
        let (mut of, mut first) = (Vec::with_capacity(items.size_hint().0), vec![]);
        let mut slots: Vec<Option<(T, u32)>> = vec![None; slots];
        for (at, item) in items.enumerate() {
            let Some(item) = item else {
                of.push(NULL_CODE);
                continue;
            };
            let slot = &mut slots[slot_of(item)];
            let number = match *slot {
                Some((before, number)) if item == before => number,
                _ => {
                    let number = *known.entry(value_of(at, item)).or_insert_with(|| {
                        first.push(at as u32);
                        first.len() as u32 - 1
                    });
                    *slot = Some((item, number));
                    number
                }
            };
            of.push(number);
        }
        Self { of, first }
    }

    /// What stands for each value, given what stands for each number; [`NULL_CODE`] where it is missing.
    pub fn placed(&self, places: &[u32]) -> Vec<u32> {
        let place = |number: &u32| places.get(*number as usize).copied();
        let of = self.of.iter();
        of.map(|number| place(number).unwrap_or(NULL_CODE))
            .collect()
    }

    /// The different values, by number.
    pub fn values(&self, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        let first: ArrayRef = Arc::new(UInt32Array::from(self.first.clone()));
        take(column, &first, None)
    }

    /// The same in Arrow's row format.
    pub fn rows(&self, column: &ArrayRef) -> Result<Rows, ArrowError> {
        rows(&[self.values(column)?])
    }
}

/// Texts that are remembered at a time; a power of two.
const TEXTS: usize = 64;

/// Views that are remembered at a time, of which each text has several; a power of two.
const VIEWS: usize = 512;

/// A number below [`TEXTS`] by the length and the ends of a text.
fn text_slot(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
        }
        _ => bytes
            .iter()
            .fold(0, |ends, byte| ends << 8 | u64::from(*byte)),
    };
    slot(ends ^ bytes.len() as u64, TEXTS)
}

/// A number below a power of two: the high bits of a product are the well mixed ones.
fn slot(bits: u64, slots: usize) -> usize {
    let mixed = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - slots.ilog2())) as usize
}

/// The place of each of some items among all of them in their order.
pub fn places<K: Ord>(items: usize, key: impl Fn(u32) -> K) -> Vec<u32> {
    // Keys are sorted where they stand: looking each of them up takes longer.
    let mut sorted: Vec<(K, u32)> = (0..items as u32).map(|item| (key(item), item)).collect();
    sorted.sort_unstable_by(|(key, _), (other, _)| key.cmp(other));
    let mut places = vec![0; items];
    for (place, (_, item)) in (0..).zip(sorted) {
        places[item as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Date32Array, Float64Array, Int64Array, StringArray, StringViewArray,
    };

    use super::*;

    #[test]
    fn values_are_numbered_as_they_come() {
        let texts = vec![Some("b"), None, Some("b"), Some("a"), Some(""), Some("b")];
        let numbers = [Some(7), None, Some(7), Some(-7), Some(0), Some(7)];
        let reals = numbers.iter().map(|n| n.map(f64::from));
        let days = numbers.iter().copied();
        let columns: [ArrayRef; 5] = [
            Arc::new(StringArray::from(texts.clone())),
            Arc::new(StringViewArray::from(texts)),
            Arc::new(
                numbers
                    .iter()
                    .map(|n| n.map(i64::from))
                    .collect::<Int64Array>(),
            ),
            Arc::new(reals.collect::<Float64Array>()),
            Arc::new(days.collect::<Date32Array>()),
        ];
        for column in columns {
            let numbers = Numbers::try_new(&column).unwrap();
            assert_eq!(numbers.of, [0, NULL_CODE, 0, 1, 2, 0]);
            assert_eq!(numbers.first, [0, 3, 4]);
            let rows = numbers.rows(&column).unwrap();
            let places = places(3, |number| rows.row(number as usize));
            let smallest = places.iter().position(|place| *place == 0).unwrap();
            let expected = if column.data_type().is_string() { 2 } else { 1 };
            assert_eq!(smallest, expected);
        }
    }

    #[test]
    fn texts_of_any_length_are_told_apart() {
        // Equal ends, equal lengths, more texts than are remembered, and each again later.
        let text = |i: usize| format!("{}{}{}", "x".repeat(i % 23), i / 7, "y".repeat(i % 11));
        let texts: Vec<String> = (0..3_000).map(|i| text(i * i % 700)).collect();
        let column: ArrayRef = Arc::new(StringArray::from_iter_values(&texts));
        let numbers = Numbers::try_new(&column).unwrap();
        // Equal texts have different views.
        let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(&texts));
        assert_eq!(Numbers::try_new(&views).unwrap(), numbers);
        let mut seen: Vec<&String> = vec![];
        for (text, number) in texts.iter().zip(&numbers.of) {
            let place = seen.iter().position(|known| *known == text);
            let place = place.unwrap_or_else(|| {
                seen.push(text);
                seen.len() - 1
            });
            assert_eq!(*number as usize, place);
        }
        assert_eq!(numbers.first.len(), seen.len());
        assert!(seen.len() > TEXTS);
    }
}
