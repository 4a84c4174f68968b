//! Which records have all values that must be known of them.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};

use crate::spec::Spec;

/// The columns of tagged records in which a value may be missing.
pub(crate) struct Known<'a> {
    sensitive: &'a [ArrayRef],
    /// Quasi-identifiers some values of which are secret, with their flags.
    secret: Vec<(&'a ArrayRef, &'a BooleanArray)>,
}

impl<'a> Known<'a> {
    /// Of records given by order, pseudonym, quasi-identifiers, sensitive columns, and perhaps kept columns and flags.
    pub fn new(spec: &Spec, columns: &'a [ArrayRef]) -> Self {
        let qi = &columns[2..2 + spec.qi().len()];
        let sensitive = 2 + qi.len()..2 + qi.len() + spec.sensitive().len();
        let flags = columns.get(sensitive.end + spec.keep().len()..);
        let semi_sensitive = spec.semi_sensitive().into_iter();
        let places =
            semi_sensitive.filter_map(|(name, _)| spec.qi().iter().position(|c| c == name));
        let flags = flags.unwrap_or_default().iter();
        let secret = places.zip(flags);
        Self {
            sensitive: &columns[sensitive],
            secret: secret
                .map(|(place, flags)| (&qi[place], flags.as_boolean()))
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
