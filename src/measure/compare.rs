//! Individuals of two tables, compared one by one: how it is asked for, and the columns on the way.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::CoverColumn;

/// Records of one individual that stand together, as one row.
///
/// ```text
/// records     id, carried columns …, sensitive values …
/// collapsed   key, carried columns …, records, lists of sensitive values …
/// ```
///
/// The key is a hash of the id, NULL where there is none. Records with different carried columns stay apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollapseSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// How many columns are carried.
    pub carried: usize,
}

/// A published table and the original one, compared individual by individual. Both are collapsed; they carry the columns that
/// are compared: generalized values of the published table, exact ones of the original.
///
/// ```text
/// compared   counts of each partition, see [`COUNTS`]
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompareSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// The columns that are compared.
    pub columns: Vec<CoverColumn>,
    /// How many sensitive columns there are.
    pub sensitive: usize,
}

impl CompareSpec {
    /// How many hierarchies there are.
    pub(crate) fn hierarchies(&self) -> usize {
        self.columns.iter().filter(|c| c.labels).count()
    }
}

/// The type in which a column goes through shuffles and sorts: without dictionaries and views, whose buffers every row would
/// carry and count.
pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, value) => plain_type(value),
        other => other.clone(),
    }
}

/// The columns of collapsed records.
pub(crate) fn collapse_schema(spec: &CollapseSpec, records: &Schema) -> SchemaRef {
    let types = records.fields().iter().map(|f| plain_type(f.data_type()));
    let mut fields = vec![Field::new("key", DataType::Binary, true)];
    for (at, data_type) in types.enumerate().skip(1) {
        if at <= spec.carried {
            fields.push(Field::new(format!("carried_{at}"), data_type, true));
        } else {
            let list = Field::new_list_field(data_type, true);
            let list = DataType::List(Arc::new(list));
            fields.push(Field::new(
                format!("values_{}", at - spec.carried),
                list,
                true,
            ));
        }
    }
    let records = Field::new("records", DataType::Int64, false);
    fields.insert(1 + spec.carried, records);
    Arc::new(Schema::new(fields))
}

/// What is counted of two tables. Values of an individual are its different ones, a missing value among them.
pub(crate) const COUNTS: [&str; 10] = [
    "published_individuals",
    "published_records_without_id",
    "individuals_in_several_classes",
    "original_individuals",
    "original_records_without_id",
    "individuals_only_published",
    "individuals_not_published",
    "untrue_individuals",
    "records_only_published",
    "records_not_published",
];

/// One row of counts per partition.
pub(crate) fn compare_schema() -> SchemaRef {
    let count = |name: &str| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(COUNTS.map(count).to_vec()))
}

/// The individuals of one table. It is collapsed; it carries the class of each record, if it has classes.
///
/// ```text
/// gathered   class, individuals, named, nameless_records, several, records, values
/// ```
///
/// There is a row for each individual and class, with counts in the first row of each individual: 1, 1 if it has an id, its
/// records if it has none, 1 if it has an id and several classes, its records, and its different values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GatherSpec {
    /// The SQL function that asks, for messages.
    pub function: String,
    /// Whether records have a class.
    pub classes: bool,
    /// How many sensitive columns there are.
    pub sensitive: usize,
}

/// The rows of gathered individuals.
pub(crate) fn gather_schema() -> SchemaRef {
    let count = |name: &str| Field::new(name, DataType::Int64, false);
    let counts = [
        "individuals",
        "named",
        "nameless_records",
        "several",
        "records",
        "values",
    ];
    let mut fields = vec![Field::new("class", DataType::Binary, false)];
    fields.extend(counts.map(count));
    Arc::new(Schema::new(fields))
}
