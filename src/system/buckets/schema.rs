//! What is published where values are in buckets.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;

use crate::error;
use crate::spec::{Output, Spec};
use crate::system::{INDIVIDUAL, Layout};
use crate::table::coding::Levels;

/// Name of the published column of local groups.
pub(crate) const GROUP: &str = "gid";

/// Name of the published column that counts the individuals behind a bucket's value.
pub(crate) const COUNT: &str = "individuals";

/// What is added to the name of a column whose values are in buckets.
pub(crate) const BUCKETIZED: &str = "_bucketized";

/// What is added to the name of a column with the ids of its buckets.
pub(crate) const BUCKET: &str = "_bid";

/// `individual, gid`, each quasi-identifier, followed by its values in buckets and their ids where some are secret,
/// then those of the sensitive columns.
pub(super) fn published(spec: &Spec, layout: &Layout) -> SchemaRef {
    let detached = spec.output() == Output::Detached;
    let semi_sensitive = spec.semi_sensitive();
    let mut fields = vec![
        Field::new(INDIVIDUAL, DataType::Utf8, detached),
        Field::new(GROUP, DataType::UInt64, detached),
    ];
    for (column, field) in layout.qi_fields().iter().enumerate() {
        fields.push(Field::new(field.name(), layout.generalized(column), true));
        if semi_sensitive.iter().any(|(name, _)| name == field.name()) {
            let exact = match layout.levels(column) {
                Some(Levels::Tree(_)) => DataType::Utf8,
                _ => field.data_type().clone(),
            };
            fields.extend(bucket_fields(field.name(), exact));
        }
    }
    for field in layout.sensitive_fields(spec) {
        fields.extend(bucket_fields(field.name(), field.data_type().clone()));
    }
    if detached {
        fields.push(Field::new(COUNT, DataType::UInt64, true));
    }
    Arc::new(Schema::new(fields))
}

/// The columns of values in buckets and of their ids.
fn bucket_fields(name: &str, exact: DataType) -> [Field; 2] {
    [
        Field::new(format!("{name}{BUCKETIZED}"), exact, true),
        Field::new(format!("{name}{BUCKET}"), DataType::UInt64, true),
    ]
}

/// No two published columns may have one name.
pub(super) fn check_names(spec: &Spec) -> Result<()> {
    let secret = spec.semi_sensitive().into_iter().map(|(name, _)| name);
    let secret = secret.chain(spec.sensitive().iter().map(String::as_str));
    let mut taken: Vec<String> = secret
        .flat_map(|name| [BUCKETIZED, BUCKET].map(|suffix| format!("{name}{suffix}")))
        .collect();
    taken.push(GROUP.to_owned());
    if spec.output() == Output::Detached {
        taken.push(COUNT.to_owned());
    }
    match spec.qi().iter().find(|qi| taken.contains(qi)) {
        Some(qi) => Err(error::argument(
            spec.function(),
            "qi",
            format!(
                "names column '{qi}', which is the name of another published column; rename it"
            ),
        )),
        None => Ok(()),
    }
}
