//! Exact values, comparable across Arrow types.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::*;
use datafusion::arrow::error::ArrowError;

/// One exact value.
#[derive(Debug, Clone)]
pub enum Point {
    /// A value with whole steps: an integer, the digits of a decimal, a date, a time, a boolean.
    Integer(i128),
    /// A value on a continuous line, never NaN.
    Real(f64),
    /// A name.
    Text(Box<str>),
}

impl Point {
    /// A real value; `None` for NaN, which is a missing value.
    pub fn real(value: f64) -> Option<Self> {
        // x + 0.0 turns -0.0 into 0.0.
        (!value.is_nan()).then_some(Point::Real(value + 0.0))
    }

    /// The value as a name.
    pub fn text(value: &str) -> Self {
        Point::Text(value.into())
    }

    /// The value as a number on a line; `None` for names.
    pub fn number(&self) -> Option<f64> {
        match self {
            Point::Integer(value) => Some(*value as f64),
            Point::Real(value) => Some(*value),
            Point::Text(_) => None,
        }
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Point {}

impl PartialOrd for Point {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Point {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Point::Integer(a), Point::Integer(b)) => a.cmp(b),
            (Point::Text(a), Point::Text(b)) => a.cmp(b),
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                // Numbers come before names.
                (a, b) => b.is_some().cmp(&a.is_some()),
            },
        }
    }
}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Point::Text(text) => text.hash(state),
            // An integer and the same real are equal, so they must hash alike.
            _ => self.number().map(f64::to_bits).hash(state),
        }
    }
}

/// The values of a plain array; `None` where a value is missing.
pub fn points(array: &ArrayRef) -> Result<Vec<Option<Point>>, ArrowError> {
    use DataType::*;
    let integers = |values: Vec<Option<i128>>| -> Vec<Option<Point>> {
        values.into_iter().map(|v| v.map(Point::Integer)).collect()
    };
    Ok(match array.data_type() {
        Boolean => {
            let values = array.as_boolean().iter();
            integers(values.map(|v| v.map(i128::from)).collect())
        }
        Int8 => integers(widen::<Int8Type>(array)),
        Int16 => integers(widen::<Int16Type>(array)),
        Int32 => integers(widen::<Int32Type>(array)),
        Int64 => integers(widen::<Int64Type>(array)),
        UInt8 => integers(widen::<UInt8Type>(array)),
        UInt16 => integers(widen::<UInt16Type>(array)),
        UInt32 => integers(widen::<UInt32Type>(array)),
        UInt64 => integers(widen::<UInt64Type>(array)),
        Decimal32(..) => integers(widen::<Decimal32Type>(array)),
        Decimal64(..) => integers(widen::<Decimal64Type>(array)),
        Decimal128(..) => integers(widen::<Decimal128Type>(array)),
        Date32 => integers(widen::<Date32Type>(array)),
        Date64 | Time64(_) | Timestamp(..) | Duration(_) => {
            integers(widen::<Int64Type>(&cast(array, &Int64)?))
        }
        Time32(_) => integers(widen::<Int32Type>(&cast(array, &Int32)?)),
        Float16 | Float32 | Float64 => {
            let values = cast(array, &Float64)?;
            let values = values.as_primitive::<Float64Type>().iter();
            values.map(|v| v.and_then(Point::real)).collect()
        }
        Utf8 => array.as_string::<i32>().iter().map(name).collect(),
        LargeUtf8 => array.as_string::<i64>().iter().map(name).collect(),
        Utf8View => array.as_string_view().iter().map(name).collect(),
        Dictionary(_, value) => points(&cast(array, value)?)?,
        RunEndEncoded(_, value) => points(&cast(array, value.data_type())?)?,
        Null => vec![None; array.len()],
        other => {
            return Err(ArrowError::InvalidArgumentError(format!(
                "values of type {other} are neither numbers, dates nor names"
            )));
        }
    })
}

/// Constants as values of a column of the given type, so that both can be compared.
///
/// A fraction stays what it is beside a column of integers: `age > 30.5` takes 31 and more.
pub fn literals(array: &ArrayRef, value_type: &DataType) -> Result<Vec<Option<Point>>, ArrowError> {
    let fractional = array.data_type().is_floating()
        || matches!(
            array.data_type(),
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..)
        );
    let target = match value_type {
        t if t.is_floating() => DataType::Float64,
        t if t.is_integer() && fractional => DataType::Float64,
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        t => t.clone(),
    };
    let options = datafusion::arrow::compute::CastOptions {
        safe: false,
        ..Default::default()
    };
    let values = datafusion::arrow::compute::cast_with_options(array, &target, &options)?;
    points(&values)
}

fn widen<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<Option<i128>>
where
    T::Native: Into<i128>,
{
    let array: &PrimitiveArray<T> = array.as_primitive();
    array.iter().map(|v| v.map(Into::into)).collect()
}

fn name(value: Option<&str>) -> Option<Point> {
    value.map(Point::text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        BooleanArray, Date32Array, Float64Array, Int32Array, StringArray,
    };

    use super::*;

    #[test]
    fn values_of_all_kinds() -> Result<(), ArrowError> {
        let whole: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), None]));
        assert_eq!(points(&whole)?, [Some(Point::Integer(3)), None]);
        let real: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, f64::NAN]));
        assert_eq!(points(&real)?, [Some(Point::Real(0.0)), None]);
        let date: ArrayRef = Arc::new(Date32Array::from(vec![7]));
        assert_eq!(points(&date)?, [Some(Point::Integer(7))]);
        let flag: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
        assert_eq!(points(&flag)?, [Some(Point::Integer(1))]);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let coded = cast(
            &text,
            &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        )?;
        assert_eq!(points(&coded)?, [Some(Point::text("a"))]);
        Ok(())
    }

    #[test]
    fn constants_take_the_columns_type() -> Result<(), ArrowError> {
        let fraction: ArrayRef = Arc::new(Float64Array::from(vec![30.5]));
        assert_eq!(
            literals(&fraction, &DataType::Int32)?,
            [Some(Point::Real(30.5))]
        );
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1970-01-03"]));
        assert_eq!(
            literals(&text, &DataType::Date32)?,
            [Some(Point::Integer(2))]
        );
        let number: ArrayRef = Arc::new(Int32Array::from(vec![10_073]));
        assert_eq!(
            literals(&number, &DataType::Utf8)?,
            [Some(Point::text("10073"))]
        );
        assert!(literals(&text, &DataType::Int32).is_err());
        Ok(())
    }
}
