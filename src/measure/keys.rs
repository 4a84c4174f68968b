//! Keys of classes: the same bytes for the same tuple of published values, whatever their types.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BinaryArray, BinaryBuilder, UInt32Array};
use datafusion::arrow::compute::{partition, take};
use datafusion::arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use crate::check::comparable_rows;

/// Bytes of a class in shuffles and sorts: half a BLAKE3 hash of its tuple. Two tuples with the same half would take
/// about 2^64 attempts to find.
const CLASS_BYTES: usize = 16;

/// The bytes of each row's class.
pub(crate) fn class_bytes(columns: &[ArrayRef]) -> Result<BinaryArray, ArrowError> {
    let records = columns.first().map_or(0, |column| column.len());
    // Records of a class mostly stand together: only the first of equal ones is encoded.
    let runs = match partition(columns) {
        Ok(runs) => runs.ranges(),
        // What cannot be compared is taken to differ.
        Err(_) => (0..records).map(|record| record..record + 1).collect(),
    };
    let firsts = UInt32Array::from_iter_values(runs.iter().map(|run| run.start as u32));
    let firsts = columns.iter().map(|column| match runs.len() == records {
        true => Ok(Arc::clone(column)),
        false => take(column, &firsts, None),
    });
    let rows = comparable_rows(&firsts.collect::<Result<Vec<_>, _>>()?)?;
    let mut classes = BinaryBuilder::with_capacity(records, records * CLASS_BYTES);
    for (run, row) in runs.iter().zip(&rows) {
        let hash = blake3::hash(row.data());
        for _ in run.clone() {
            classes.append_value(&hash.as_bytes()[..CLASS_BYTES]);
        }
    }
    Ok(classes.finish())
}

/// The secret under which classes are named in results, so that a name tells nothing of the values behind it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ClassKey([u8; 32]);

impl ClassKey {
    /// A key from the operating system's random generator.
    pub fn random() -> Result<Self, ArrowError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|e| {
            ArrowError::ComputeError(format!("no randomness from the operating system: {e}"))
        })?;
        Ok(Self(bytes))
    }

    /// The key of a seed, by which classes can be found again.
    pub fn from_seed(seed: &str) -> Self {
        Self(blake3::derive_key(
            "datafusion-anonymize 2026 class key from seed",
            seed.as_bytes(),
        ))
    }

    /// The name of a class.
    pub fn name(&self, class: &[u8]) -> String {
        let hash = blake3::keyed_hash(&self.0, class).to_hex();
        hash[..16].to_owned()
    }
}

impl fmt::Debug for ClassKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClassKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn equal_tuples_have_equal_keys_and_others_do_not() {
        let text = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
        let columns = [text(&["a", "ab", "a", "a"]), text(&["bc", "c", "bc", "b"])];
        let classes = class_bytes(&columns).unwrap();
        assert_eq!(classes.len(), 4);
        assert_eq!(classes.value(0), classes.value(2));
        assert_ne!(classes.value(0), classes.value(1), "columns stay apart");
        assert_ne!(classes.value(0), classes.value(3));
    }

    #[test]
    fn names_need_the_key() {
        let (a, b) = (ClassKey::random().unwrap(), ClassKey::random().unwrap());
        assert_ne!(a.name(b"class"), b.name(b"class"));
        let (c, d) = (ClassKey::from_seed("1"), ClassKey::from_seed("1"));
        assert_eq!(c.name(b"class"), d.name(b"class"));
        assert_eq!(format!("{a:?}"), "ClassKey(secret)");
    }
}
