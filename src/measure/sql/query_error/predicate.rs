//! Drawn predicates as SQL.

use std::ops::Bound;

use datafusion::arrow::array::StringArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::measure::cells::Point;
use crate::measure::query_error::{Predicate, Workload};
use crate::measure::sql::estimate::scalar;

/// The condition of a query: `"age" BETWEEN 30 AND 39 AND "sex" IN ('F')`.
pub(super) fn predicate_text(
    workload: &Workload,
    query: &[(usize, Predicate)],
    names: &StringArray,
) -> Result<String> {
    let mut parts = vec![];
    for (column, predicate) in query {
        let name = format!("\"{}\"", names.value(*column).replace('"', "\"\""));
        let value_type = &workload.attributes[*column].value_type;
        let print = |point: &Point| constant(point, value_type);
        parts.push(match predicate {
            Predicate::Values(bits) => {
                let values = workload.values(*column, bits).map(print);
                format!(
                    "{name} IN ({})",
                    values.collect::<Result<Vec<_>>>()?.join(", ")
                )
            }
            Predicate::Range(selection) => match selection.bounds().next() {
                Some((Bound::Included(lo), Bound::Included(hi))) => {
                    format!("{name} BETWEEN {} AND {}", print(lo)?, print(hi)?)
                }
                _ => "false".to_owned(),
            },
        });
    }
    Ok(if parts.is_empty() {
        "true".to_owned()
    } else {
        parts.join(" AND ")
    })
}

fn constant(point: &Point, value_type: &DataType) -> Result<String> {
    let text = scalar(point, Some(value_type))?.to_string();
    Ok(
        if value_type.is_numeric() || *value_type == DataType::Boolean {
            text
        } else {
            format!("'{}'", text.replace('\'', "''"))
        },
    )
}
