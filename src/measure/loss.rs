//! The loss of a published table: how it is asked for, and its columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

/// Digits after the point in which losses are added up: sums of decimals do not depend on their order.
pub(crate) const SCALE: i8 = 18;

/// The loss of a published table against the domains of the original one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LossSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// The published columns, in order.
    pub columns: Vec<LossColumn>,
}

impl LossSpec {
    /// How many hierarchies there are.
    pub(crate) fn hierarchies(&self) -> usize {
        let levelled = |column: &&LossColumn| column.levels != LossLevels::None;
        self.columns.iter().filter(levelled).count()
    }
}

/// A published column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LossColumn {
    /// Its name.
    pub name: String,
    /// Whether its values are names, or else points on a line.
    pub categorical: bool,
    /// Whether its domain is what the published cells stand for. Then there are a list of these in the row of domains and, for
    /// the type of their values, a missing one; else a list of its values, or the smallest and the largest one.
    pub of_published: bool,
    /// Its hierarchy, which is a further input.
    pub levels: LossLevels,
}

/// What the hierarchy of a column says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LossLevels {
    /// There is none.
    None,
    /// How far up labels stand; what they stand for is said by themselves, as `[30, 34]` does.
    Heights,
    /// What labels stand for, and how far up they are.
    Labels,
}

/// Names of the sums of one column, by its position.
pub(crate) fn sum_names(column: usize) -> [String; 5] {
    ["glm", "ncp_count", "ncp_range", "height", "depth"].map(|name| format!("{name}_{column}"))
}

/// The name of the number of a column's values that are in buckets, by its position.
pub(crate) fn inside_name(column: usize) -> String {
    format!("inside_{column}")
}

/// One row of sums per partition.
pub(crate) fn loss_schema(columns: usize) -> SchemaRef {
    let mut fields = vec![Field::new("published", DataType::Int64, false)];
    for column in 0..columns {
        for name in sum_names(column) {
            fields.push(Field::new(name, DataType::Decimal128(38, SCALE), false));
        }
    }
    Arc::new(Schema::new(fields))
}
