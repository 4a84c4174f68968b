//! Values as comparable keys: whole numbers, reals, or bytes, whatever the Arrow type.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::buffer::{NullBuffer, ScalarBuffer};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::*;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{Row, RowConverter, Rows, SortField};
use serde::{Deserialize, Serialize};

use super::numbers::Numbers;
use crate::table::NULL_CODE;

/// How a quasi-identifier is measured and generalized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whole steps on a line: integers, decimals (their unscaled digits), dates, times.
    Integer,
    /// Points on a line: floats.
    Real,
    /// Names without order.
    Categorical,
    /// Codes to be masked: names, all of which are remembered.
    Masked,
}

/// One value. NULL and NaN are one key: a missing value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Key {
    /// Missing.
    Null,
    /// A value of an [`Kind::Integer`] column.
    Integer(i128),
    /// A value of a [`Kind::Real`] column.
    Real(#[serde(with = "bits")] f64),
    /// A value of a [`Kind::Categorical`] column, in Arrow's comparable row encoding.
    Bytes(Vec<u8>),
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Integer(a), Key::Integer(b)) => a.cmp(b),
            (Key::Real(a), Key::Real(b)) => a.total_cmp(b),
            (Key::Bytes(a), Key::Bytes(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Key {
    fn rank(&self) -> u8 {
        match self {
            Key::Null => 0,
            Key::Integer(_) => 1,
            Key::Real(_) => 2,
            Key::Bytes(_) => 3,
        }
    }
}

/// Numbers as their bits: JSON has no infinity.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(number.to_bits())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// The keys of a whole array.
#[derive(Debug)]
pub enum Keys {
    /// Keys of an [`Kind::Integer`] column.
    Integer(Integers),
    /// Keys of a [`Kind::Real`] column.
    Real(Vec<Option<f64>>),
    /// Keys of a [`Kind::Categorical`] column.
    Bytes(Names),
}

/// Whole numbers, in as few bytes as their type allows.
#[derive(Debug)]
pub struct Integers {
    values: Steps,
    nulls: Option<NullBuffer>,
}

#[derive(Debug)]
enum Steps {
    Short(ScalarBuffer<i64>),
    Long(ScalarBuffer<i128>),
}

impl Integers {
    /// A number, unless it is missing.
    pub fn get(&self, i: usize) -> Option<i128> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(i)) {
            return None;
        }
        Some(match &self.values {
            Steps::Short(values) => i128::from(values[i]),
            Steps::Long(values) => values[i],
        })
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Option<i128>> + '_ {
        let length = match &self.values {
            Steps::Short(values) => values.len(),
            Steps::Long(values) => values.len(),
        };
        (0..length).map(|i| self.get(i))
    }

    fn short<T: ArrowPrimitiveType>(array: &ArrayRef) -> Self
    where
        T::Native: Into<i64>,
    {
        Self::of::<T, i64>(array, Steps::Short)
    }

    fn long<T: ArrowPrimitiveType>(array: &ArrayRef) -> Self
    where
        T::Native: Into<i128>,
    {
        Self::of::<T, i128>(array, Steps::Long)
    }

    fn of<T: ArrowPrimitiveType, W: ArrowNativeType>(
        array: &ArrayRef,
        steps: fn(ScalarBuffer<W>) -> Steps,
    ) -> Self
    where
        T::Native: Into<W>,
    {
        let array: &PrimitiveArray<T> = array.as_primitive();
        let values = array.values().iter().map(|value| (*value).into());
        Self {
            values: steps(values.collect()),
            nulls: array.nulls().cloned(),
        }
    }
}

/// Keys of names, of which each different one is encoded once.
#[derive(Debug)]
pub struct Names {
    /// Which of them each value is.
    pub numbers: Numbers,
    /// The different ones, by number.
    pub rows: Rows,
    /// The values.
    pub column: ArrayRef,
}

impl Names {
    fn try_new(column: &ArrayRef) -> Result<Self, ArrowError> {
        let numbers = Numbers::try_new(column)?;
        Ok(Self {
            rows: numbers.rows(column)?,
            numbers,
            column: Arc::clone(column),
        })
    }

    /// A value that is not missing.
    pub fn get(&self, i: usize) -> Option<Row<'_>> {
        let number = self.numbers.of[i];
        (number != NULL_CODE).then(|| self.rows.row(number as usize))
    }
}

impl Keys {
    /// Reads the keys of an array.
    pub fn try_new(array: &ArrayRef, kind: Kind) -> Result<Self, ArrowError> {
        match kind {
            Kind::Integer => Ok(Keys::Integer(integers(array)?)),
            Kind::Real => Ok(Keys::Real(reals(array)?)),
            Kind::Categorical | Kind::Masked => Ok(Keys::Bytes(Names::try_new(array)?)),
        }
    }

    /// Whether a value is missing.
    pub fn is_null(&self, i: usize) -> bool {
        match self {
            Keys::Integer(v) => v.get(i).is_none(),
            Keys::Real(v) => v[i].is_none(),
            Keys::Bytes(names) => names.get(i).is_none(),
        }
    }

    /// One value as an owned key.
    pub fn key(&self, i: usize) -> Key {
        match self {
            Keys::Integer(v) => v.get(i).map_or(Key::Null, Key::Integer),
            Keys::Real(v) => v[i].map_or(Key::Null, Key::Real),
            Keys::Bytes(names) => names
                .get(i)
                .map_or(Key::Null, |row| Key::Bytes(row.data().to_vec())),
        }
    }

    /// Compares a value with a key of the same kind; missing comes first.
    pub fn cmp_key(&self, i: usize, key: &Key) -> Ordering {
        match (self, key) {
            (Keys::Integer(v), Key::Integer(k)) => v.get(i).cmp(&Some(*k)),
            (Keys::Real(v), Key::Real(k)) => v[i].map_or(Ordering::Less, |x| x.total_cmp(k)),
            (Keys::Bytes(names), Key::Bytes(k)) => {
                names.get(i).map_or(Ordering::Less, |row| row.data().cmp(k))
            }
            _ if self.is_null(i) && *key == Key::Null => Ordering::Equal,
            _ if self.is_null(i) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }

    /// Compares two values, missing ones first.
    pub fn cmp(&self, a: usize, b: usize) -> Ordering {
        match self {
            Keys::Integer(v) => v.get(a).cmp(&v.get(b)),
            Keys::Real(v) => match (v[a], v[b]) {
                (Some(x), Some(y)) => x.total_cmp(&y),
                (x, y) => x.is_some().cmp(&y.is_some()),
            },
            Keys::Bytes(names) => names.get(a).cmp(&names.get(b)),
        }
    }
}

/// Comparable rows over some columns; equal values give equal bytes.
pub(crate) fn rows(columns: &[ArrayRef]) -> Result<Rows, ArrowError> {
    let fields = columns
        .iter()
        .map(|c| SortField::new(c.data_type().clone()));
    RowConverter::new(fields.collect())?.convert_columns(columns)
}

/// The array with one bit pattern per value: every NaN is the same, and -0.0 is 0.0. Other types are returned as is.
pub fn canonical(array: &ArrayRef) -> ArrayRef {
    // x + 0.0 turns -0.0 into 0.0.
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|x| if x.is_nan() { f32::NAN } else { x + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|x| if x.is_nan() { f64::NAN } else { x + 0.0 }),
        ),
        _ => Arc::clone(array),
    }
}

/// The array with NULL for NaN: what cannot be measured is missing.
pub fn without_nan(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let nan: BooleanArray = match array.data_type() {
        DataType::Float32 => {
            BooleanArray::from_unary(array.as_primitive::<Float32Type>(), f32::is_nan)
        }
        DataType::Float64 => {
            BooleanArray::from_unary(array.as_primitive::<Float64Type>(), f64::is_nan)
        }
        _ => return Ok(Arc::clone(array)),
    };
    nullif(array, &nan)
}

fn integers(array: &ArrayRef) -> Result<Integers, ArrowError> {
    use DataType::*;
    Ok(match array.data_type() {
        Int8 => Integers::short::<Int8Type>(array),
        Int16 => Integers::short::<Int16Type>(array),
        Int32 => Integers::short::<Int32Type>(array),
        Int64 => Integers::short::<Int64Type>(array),
        UInt8 => Integers::short::<UInt8Type>(array),
        UInt16 => Integers::short::<UInt16Type>(array),
        UInt32 => Integers::short::<UInt32Type>(array),
        UInt64 => Integers::long::<UInt64Type>(array),
        Decimal32(..) => Integers::short::<Decimal32Type>(array),
        Decimal64(..) => Integers::short::<Decimal64Type>(array),
        Decimal128(..) => Integers::long::<Decimal128Type>(array),
        Date32 => Integers::short::<Date32Type>(array),
        Date64 => Integers::short::<Date64Type>(array),
        Time32(TimeUnit::Second) => Integers::short::<Time32SecondType>(array),
        Time32(_) => Integers::short::<Time32MillisecondType>(array),
        Time64(TimeUnit::Microsecond) => Integers::short::<Time64MicrosecondType>(array),
        Time64(_) => Integers::short::<Time64NanosecondType>(array),
        Timestamp(TimeUnit::Second, _) => Integers::short::<TimestampSecondType>(array),
        Timestamp(TimeUnit::Millisecond, _) => Integers::short::<TimestampMillisecondType>(array),
        Timestamp(TimeUnit::Microsecond, _) => Integers::short::<TimestampMicrosecondType>(array),
        Timestamp(TimeUnit::Nanosecond, _) => Integers::short::<TimestampNanosecondType>(array),
        Duration(TimeUnit::Second) => Integers::short::<DurationSecondType>(array),
        Duration(TimeUnit::Millisecond) => Integers::short::<DurationMillisecondType>(array),
        Duration(TimeUnit::Microsecond) => Integers::short::<DurationMicrosecondType>(array),
        Duration(TimeUnit::Nanosecond) => Integers::short::<DurationNanosecondType>(array),
        other => {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{other} has no whole steps"
            )));
        }
    })
}

fn reals(array: &ArrayRef) -> Result<Vec<Option<f64>>, ArrowError> {
    let known = |v: Option<f64>| v.filter(|x| !x.is_nan());
    Ok(match array.data_type() {
        DataType::Float32 => {
            let array = array.as_primitive::<Float32Type>();
            array.iter().map(|v| known(v.map(f64::from))).collect()
        }
        DataType::Float64 => array
            .as_primitive::<Float64Type>()
            .iter()
            .map(known)
            .collect(),
        other => {
            return Err(ArrowError::InvalidArgumentError(format!(
                "{other} is not a float"
            )));
        }
    })
}
