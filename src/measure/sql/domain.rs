//! Domains as they are given in calls.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringArray, StructArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, ScalarValue};

use super::estimate::list;
use crate::call::value::ArgumentValue;
use crate::error;

/// A domain as `match_fraction` reads it: a struct of `lo` and `hi` for a range, else a list of values.
///
/// Texts do not say what they hold (`value_type` is `None`): two numbers are a range, anything else is a list. A string is
/// in the text notation.
pub(super) fn given_domain(
    function: &str,
    column: &str,
    value_type: Option<&DataType>,
    range: bool,
    domain: &ArgumentValue,
) -> Result<ScalarValue> {
    let wrong = || {
        error::argument(
            function,
            "domain",
            format!("must map '{column}' to [smallest, largest] or to the list of its values"),
        )
    };
    let items = match domain {
        ArgumentValue::List(items) => items,
        ArgumentValue::Text(text) if value_type.is_none() => {
            return Ok(ScalarValue::Utf8(Some(text.clone())));
        }
        _ => return Err(wrong()),
    };
    let texts: Option<Vec<String>> = items.iter().map(ArgumentValue::plain).collect();
    let texts = texts.filter(|t| !t.is_empty()).ok_or_else(wrong)?;
    let Some(value_type) = value_type else {
        let numbers = items.iter().all(|i| matches!(i, ArgumentValue::Number(_)));
        if numbers && texts.len() == 2 {
            return Ok(ScalarValue::Utf8(Some(format!("[{}]", texts.join(", ")))));
        }
        return list(Arc::new(StringArray::from(texts)));
    };
    let values: ArrayRef = Arc::new(StringArray::from(texts));
    let values = cast(&values, value_type).map_err(|_| wrong())?;
    if values.null_count() > 0 || range && values.len() != 2 {
        return Err(wrong());
    }
    if !range {
        return list(values);
    }
    let end = |name: &str, i: usize| {
        let field = Field::new(name, value_type.clone(), true);
        (Arc::new(field), values.slice(i, 1))
    };
    let ends = StructArray::from(vec![end("lo", 0), end("hi", 1)]);
    Ok(ScalarValue::Struct(Arc::new(ends)))
}
