//! Which records have all values that must be known of them.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};

use super::RowColumns;
use crate::spec::Spec;

/// The columns of tagged records in which a value may be missing.
pub(crate) struct Known<'a> {
    sensitive: &'a [ArrayRef],
    /// Quasi-identifiers some values of which are secret, with their flags.
    secret: Vec<(&'a ArrayRef, &'a BooleanArray)>,
}

impl<'a> Known<'a> {
    /// Of tagged records. What was not read is not missing.
    pub fn new(spec: &Spec, rows: &RowColumns<'a>) -> Self {
        let semi_sensitive = spec.semi_sensitive().into_iter();
        let places =
            semi_sensitive.filter_map(|(name, _)| spec.qi().iter().position(|c| c == name));
        let secret = places.zip(rows.record().flags());
        Self {
            sensitive: rows.record().sensitive(),
            secret: secret
                .map(|(place, flags)| (&rows.qi()[place], flags.as_boolean()))
                .collect(),
        }
    }

    /// Whether a record has them all.
    pub fn holds(&self, record: usize) -> bool {
        let shown = |(qi, flags): &(&ArrayRef, &BooleanArray)| {
            qi.is_valid(record) || (flags.is_valid(record) && !flags.value(record))
        };
        self.sensitive.iter().all(|values| values.is_valid(record)) && self.secret.iter().all(shown)
    }

    /// The same for so many records.
    pub fn mask(&self, records: usize) -> BooleanArray {
        let mask = (0..records).map(|record| Some(self.holds(record)));
        mask.collect()
    }
}
