//! What is published in sub-tables, and how their division is described.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::system::Layout;

/// The column that names the table of each row of an anatomized release.
pub const SUBTABLE: &str = "subtable";
/// The id of a group.
pub(crate) const GID: &str = "gid";
/// How many individuals show a row's values.
pub(crate) const TIMES: &str = "count";

/// All tables as one relation: columns that a table does not have are NULL in its rows.
pub(super) fn sub_tables(layout: &Layout) -> SchemaRef {
    let mut fields = vec![
        Field::new(SUBTABLE, DataType::Utf8, false),
        Field::new(GID, DataType::UInt64, false),
    ];
    fields.extend(layout.qi_fields().iter().cloned());
    fields.extend(layout.record_fields().iter().map(|f| f.as_ref().clone()));
    fields.push(Field::new(TIMES, DataType::Int64, false));
    Arc::new(Schema::new(fields))
}

/// What a division is described by.
pub(super) fn division() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(SUBTABLE, DataType::Utf8, true),
        Field::new("attribute", DataType::Utf8, false),
        Field::new("other_attribute", DataType::Utf8, true),
        Field::new("weight", DataType::Float64, true),
        Field::new("distinct_values", DataType::Int64, true),
        Field::new("bins", DataType::Int64, true),
        Field::new("largest_share", DataType::Float64, true),
        Field::new("coefficient", DataType::Float64, true),
    ]))
}
