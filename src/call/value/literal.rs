//! Arguments from constant expressions, as ordinary table functions receive them.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

use super::ArgumentValue;

impl ArgumentValue {
    /// Reads a constant or a column's name; `None` for anything else.
    pub(crate) fn from_expr(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Column(column) => Some(ArgumentValue::Name(column.name.clone())),
            Expr::Literal(value, _) => Self::from_scalar(value),
            Expr::Cast(cast) => Self::from_expr(&cast.expr),
            Expr::Alias(alias) => Self::from_expr(&alias.expr),
            _ => None,
        }
    }

    /// Reads a constant.
    pub(super) fn from_scalar(value: &ScalarValue) -> Option<Self> {
        if value.is_null() {
            return Some(ArgumentValue::Null);
        }
        match value {
            ScalarValue::Boolean(Some(b)) => return Some(ArgumentValue::Boolean(*b)),
            ScalarValue::List(list) => return Self::from_items(&list.value(0)),
            ScalarValue::LargeList(list) => return Self::from_items(&list.value(0)),
            ScalarValue::FixedSizeList(list) => return Self::from_items(&list.value(0)),
            ScalarValue::Struct(fields) => {
                let columns = fields.columns().iter();
                let entries =
                    fields
                        .column_names()
                        .into_iter()
                        .zip(columns)
                        .map(|(name, column)| {
                            let value = ScalarValue::try_from_array(column, 0).ok()?;
                            Some((name.to_owned(), Self::from_scalar(&value)?))
                        });
                let entries = entries.collect::<Option<Vec<_>>>()?;
                // A tuple (a, b) is a struct with fields c0, c1.
                let tuple = entries
                    .iter()
                    .enumerate()
                    .all(|(i, (name, _))| *name == format!("c{i}"));
                return Some(if tuple {
                    ArgumentValue::List(entries.into_iter().map(|(_, value)| value).collect())
                } else {
                    ArgumentValue::Map(entries)
                });
            }
            ScalarValue::Map(map) => {
                let entries = map.value(0);
                let item = |column: usize, i: usize| {
                    let value = ScalarValue::try_from_array(entries.column(column), i).ok()?;
                    Self::from_scalar(&value)
                };
                let entries = (0..entries.len())
                    .map(|i| Some((item(0, i)?.plain()?, item(1, i)?)))
                    .collect::<Option<Vec<_>>>();
                return entries.map(ArgumentValue::Map);
            }
            _ => {}
        }
        let text = value.to_array().ok().and_then(|array| {
            let strings = datafusion::arrow::compute::cast(
                &array,
                &datafusion::arrow::datatypes::DataType::Utf8,
            )
            .ok()?;
            Some(strings.as_string::<i32>().value(0).to_owned())
        })?;
        Some(if value.data_type().is_numeric() {
            ArgumentValue::Number(text)
        } else {
            ArgumentValue::Text(text)
        })
    }

    fn from_items(items: &dyn Array) -> Option<Self> {
        let items = (0..items.len())
            .map(|i| Self::from_scalar(&ScalarValue::try_from_array(items, i).ok()?));
        items.collect::<Option<Vec<_>>>().map(ArgumentValue::List)
    }
}
