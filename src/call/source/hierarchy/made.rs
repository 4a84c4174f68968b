//! Hierarchies made from the values of a column, to be looked at and used where nobody has given one.

use std::collections::BTreeSet;
use std::fmt;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::expr_fn::array_agg;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col};
use datafusion::prelude::DataFrame;

use super::super::input;
use super::NAME;
use crate::error;
use crate::system::find_column;
use crate::table::{Fingerprints, Taxonomy, co_occurrence, even};

/// A way of making a hierarchy, with the most children of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// Neighbours in the order of the values are grouped, then the groups.
    Even(usize),
    /// Values that individuals have together are grouped, then the groups.
    CoOccurrence(usize),
}

/// What can be written for a hierarchy that is made.
pub(super) const MADE: &str = "'even(5)' or 'co_occurrence(5)'";

/// The most children of a label unless said otherwise, as in Gong et al. 2017.
const FAN_OUT: usize = 5;

impl Made {
    /// Reads a way as it is written in SQL; `None` if the text names something else.
    pub(in crate::call) fn named(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        let (name, fan_out) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
            Some((name, fan_out)) => (name.trim(), Some(fan_out.trim())),
            None => (text, None),
        };
        let make = match name.to_ascii_lowercase().as_str() {
            "even" => Self::Even,
            "co_occurrence" => Self::CoOccurrence,
            _ => return Ok(None),
        };
        let fan_out = match fan_out {
            None => Some(FAN_OUT),
            Some(digits) => digits.parse().ok().filter(|n| (2..=1000).contains(n)),
        };
        match fan_out {
            Some(fan_out) => Ok(Some(make(fan_out))),
            None => Err(format!(
                "{name} takes the most children of a label, from 2 to 1000, such as {name}(5)"
            )),
        }
    }

    /// The values of a column of which the hierarchy is made, or a list of them for each individual.
    pub(in crate::call) fn values(
        self,
        input: LogicalPlan,
        column: &str,
        id: Option<&str>,
    ) -> Result<LogicalPlan> {
        let found = |argument: &str, name: &str| -> Result<Expr> {
            let (column, _) = find_column(NAME, argument, name, input.schema())?;
            Ok(Expr::Column(column))
        };
        let value = found("column", column)?.alias("value");
        match self {
            Self::Even(_) => LogicalPlanBuilder::from(input.clone())
                .project([value])?
                .filter(col("value").is_not_null())?
                .distinct()?
                .sort([col("value").sort(true, false)])?
                .project([cast(col("value"), DataType::Utf8).alias("value")])?
                .build(),
            Self::CoOccurrence(_) => {
                let id = id.ok_or_else(|| {
                    let message =
                        "is missing: which values occur together is a question about individuals";
                    error::argument(NAME, "id", message)
                })?;
                LogicalPlanBuilder::from(input.clone())
                    .project([found("id", id)?.alias("id"), value])?
                    .filter(col("id").is_not_null().and(col("value").is_not_null()))?
                    .project([col("id"), cast(col("value"), DataType::Utf8).alias("value")])?
                    .aggregate([col("id")], [array_agg(col("value")).alias("values")])?
                    .project([col("values")])?
                    .build()
            }
        }
    }

    /// Makes the hierarchy of the values, or lists of values, that a plan gives.
    pub(in crate::call) fn make(
        self,
        state: &SessionState,
        values: &LogicalPlan,
    ) -> Result<Taxonomy> {
        let frame = DataFrame::new(state.clone(), values.clone());
        let batches =
            input::wait(async { frame.collect().await }).map_err(|e| error::input(NAME, e))?;
        let rows = match self {
            Self::Even(fan_out) => even(&texts(&batches), fan_out),
            Self::CoOccurrence(fan_out) => {
                let sets = sets(&batches);
                let values: Vec<&str> = sets
                    .iter()
                    .flatten()
                    .copied()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect();
                let mut fingerprints = Fingerprints::new();
                for set in &sets {
                    fingerprints.push(&mut codes(set, &values));
                }
                co_occurrence(&fingerprints, &values, fan_out)
            }
        };
        Taxonomy::from_rows(&rows).map_err(|reason| {
            error::data(
                NAME,
                format!("no hierarchy can be made of the column: {reason}"),
            )
        })
    }
}

fn codes(set: &[&str], values: &[&str]) -> Vec<u32> {
    let code = |value: &&str| values.binary_search(value).ok().map(|at| at as u32);
    set.iter().filter_map(code).collect()
}

fn texts(batches: &[RecordBatch]) -> Vec<&str> {
    let columns = batches.iter().filter_map(|batch| batch.columns().first());
    columns
        .flat_map(|column| column.as_string::<i32>().iter().flatten())
        .collect()
}

fn sets(batches: &[RecordBatch]) -> Vec<Vec<&str>> {
    let mut sets = vec![];
    for column in batches.iter().filter_map(|batch| batch.columns().first()) {
        let lists = column.as_list::<i32>();
        let values = lists.values().as_string::<i32>();
        sets.extend(lists.offsets().windows(2).map(|ends| {
            let range = ends[0] as usize..ends[1] as usize;
            range
                .filter(|at| values.is_valid(*at))
                .map(|at| values.value(at))
                .collect()
        }));
    }
    sets
}

/// As it is written in SQL.
impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even(fan_out) => write!(f, "even({fan_out})"),
            Self::CoOccurrence(fan_out) => write!(f, "co_occurrence({fan_out})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_and_printed() {
        for text in ["even(5)", "co_occurrence(2)"] {
            assert_eq!(Made::named(text).unwrap().unwrap().to_string(), text);
        }
        assert_eq!(Made::named(" Even "), Ok(Some(Made::Even(FAN_OUT))));
        for other in ["evening", "even.csv", "mask(1)", "odd(5)"] {
            assert_eq!(Made::named(other), Ok(None), "{other}");
        }
        for wrong in ["even(1)", "even(x)", "even()", "co_occurrence(2000)"] {
            assert!(Made::named(wrong).is_err(), "{wrong}");
        }
    }
}
