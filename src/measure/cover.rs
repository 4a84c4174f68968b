//! Who fits into which class: how it is asked for, and its columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

/// Published classes, and individuals of another table that may belong to them.
///
/// ```text
/// individuals   one exact value per column, [key,] weight
/// classes       class, one generalized value per column, [key,] individuals
/// hierarchies   one for each column with labels: leaf, level_1, …
/// covers        class, key, individuals, covered: the weight of those who fit
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CoverSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// The columns that are compared.
    pub columns: Vec<CoverColumn>,
    /// Whether both sides have a key that must be equal, too.
    pub keyed: bool,
}

impl CoverSpec {
    /// How many hierarchies there are.
    pub(crate) fn hierarchies(&self) -> usize {
        self.columns.iter().filter(|c| c.labels).count()
    }
}

/// A column that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CoverColumn {
    /// Its name.
    pub name: String,
    /// Whether a further input says what its labels stand for.
    pub labels: bool,
}

/// The columns of the result.
pub(crate) fn cover_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("class", DataType::Binary, false),
        Field::new("key", DataType::UInt64, true),
        Field::new("individuals", DataType::Int64, false),
        Field::new("covered", DataType::Int64, false),
    ]))
}
