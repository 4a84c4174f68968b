//! Selections as calls of `match_fraction`.

use std::ops::Bound;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, ListArray, StructArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Expr, lit};

use super::match_fraction::match_fraction;
use crate::measure::cells::{Point, Selection};

/// The share of a column's cells that a selection takes. The domain says what suppressed cells may be.
pub(super) fn share(
    column: &Expr,
    value_type: Option<&DataType>,
    selection: &Selection,
    domain: Option<&Expr>,
) -> Result<Expr> {
    if selection.is_everything() {
        return Ok(lit(1.0));
    }
    let call = |predicate: &str, constants: Vec<Expr>| {
        let mut args = vec![column.clone(), lit(predicate)];
        args.extend(constants);
        args.extend(domain.cloned());
        match_fraction().call(args)
    };
    let missing = || call("is null", vec![]);
    let ranges: Vec<_> = selection.bounds().collect();
    let values = match ranges.as_slice() {
        [] => None,
        [(lo, hi)] => {
            use Bound::*;
            let constant = |p: &Point| {
                Ok::<_, datafusion::common::DataFusionError>(lit(scalar(p, value_type)?))
            };
            Some(match (lo, hi) {
                (Unbounded, Unbounded) => call("is not null", vec![]),
                (Unbounded, Included(p)) => call("<=", vec![constant(p)?]),
                (Unbounded, Excluded(p)) => call("<", vec![constant(p)?]),
                (Included(p), Unbounded) => call(">=", vec![constant(p)?]),
                (Excluded(p), Unbounded) => call(">", vec![constant(p)?]),
                (Included(a), Included(b)) if a == b => call("=", vec![constant(a)?]),
                (Included(a), Included(b)) => call("between", vec![constant(a)?, constant(b)?]),
                _ => call("in", vec![ranges_literal(&ranges, value_type)?]),
            })
        }
        several => {
            let points: Option<Vec<&Point>> = several
                .iter()
                .map(|range| match range {
                    (Bound::Included(a), Bound::Included(b)) if a == b => Some(*a),
                    _ => None,
                })
                .collect();
            let list = match points {
                Some(points) => values_literal(&points, value_type)?,
                None => ranges_literal(several, value_type)?,
            };
            Some(call("in", vec![list]))
        }
    };
    Ok(match (values, selection.selects_missing()) {
        (Some(values), true) => values + missing(),
        (Some(values), false) => values,
        (None, true) => missing(),
        (None, false) => lit(0.0),
    })
}

fn values_literal(points: &[&Point], value_type: Option<&DataType>) -> Result<Expr> {
    let scalars = points
        .iter()
        .map(|p| scalar(p, value_type))
        .collect::<Result<Vec<_>>>()?;
    Ok(lit(list(ScalarValue::iter_to_array(scalars)?)?))
}

/// Ranges as a list of structs, as `match_fraction(…, 'in', …)` reads them.
fn ranges_literal(
    ranges: &[(Bound<&Point>, Bound<&Point>)],
    value_type: Option<&DataType>,
) -> Result<Expr> {
    let known = ranges.iter().flat_map(|(lo, hi)| [lo, hi]);
    let null = known
        .filter_map(point)
        .map(|p| scalar(p, value_type))
        .next()
        .transpose()?
        .map_or(Ok(ScalarValue::Null), |s| {
            ScalarValue::try_from(&s.data_type())
        })?;
    let ends = |bounds: &[Bound<&Point>]| {
        let end = |bound: &Bound<&Point>| match point(bound) {
            Some(p) => scalar(p, value_type),
            None => Ok(null.clone()),
        };
        let ends = bounds.iter().map(end).collect::<Result<Vec<_>>>()?;
        ScalarValue::iter_to_array(ends)
    };
    let open = |bounds: &[Bound<&Point>]| {
        let open = bounds.iter().map(|b| Some(matches!(b, Bound::Excluded(_))));
        Arc::new(open.collect::<BooleanArray>()) as ArrayRef
    };
    let (starts, stops): (Vec<_>, Vec<_>) = ranges.iter().copied().unzip();
    let (lo, hi) = (ends(&starts)?, ends(&stops)?);
    let (lo_open, hi_open) = (open(&starts), open(&stops));
    let field =
        |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let structs = StructArray::from(vec![
        (field("lo", &lo), lo.clone()),
        (field("hi", &hi), hi.clone()),
        (field("lo_open", &lo_open), lo_open.clone()),
        (field("hi_open", &hi_open), hi_open.clone()),
    ]);
    Ok(lit(list(Arc::new(structs))?))
}

fn point<'a>(bound: &Bound<&'a Point>) -> Option<&'a Point> {
    match bound {
        Bound::Included(p) | Bound::Excluded(p) => Some(p),
        Bound::Unbounded => None,
    }
}

/// A list of one row.
pub(crate) fn list(items: ArrayRef) -> Result<ScalarValue> {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([items.len()]);
    let list = ListArray::try_new(field, offsets, items, None)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

/// A point as a constant of the column's type.
pub(crate) fn scalar(point: &Point, value_type: Option<&DataType>) -> Result<ScalarValue> {
    Ok(match (point, value_type) {
        (Point::Integer(digits), Some(DataType::Decimal128(precision, scale))) => {
            ScalarValue::Decimal128(Some(*digits), *precision, *scale)
        }
        (Point::Integer(whole), value_type) => {
            let number = ScalarValue::Int64(Some(i64::try_from(*whole).unwrap_or(i64::MAX)));
            match value_type {
                Some(t) if *t != DataType::Int64 => typed(&number, t)?,
                _ => number,
            }
        }
        (Point::Real(real), _) => ScalarValue::Float64(Some(*real)),
        (Point::Text(text), _) => ScalarValue::Utf8(Some(text.to_string())),
    })
}

fn typed(number: &ScalarValue, to: &DataType) -> Result<ScalarValue> {
    let array = number.to_array()?;
    let array = match to {
        // Days and short times are reached from 32 bits only.
        DataType::Date32 | DataType::Time32(_) => cast(&cast(&array, &DataType::Int32)?, to)?,
        _ => cast(&array, to)?,
    };
    ScalarValue::try_from_array(&array, 0)
}
