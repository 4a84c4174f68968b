//! What only functions that publish fingerprints are told.

use serde::{Deserialize, Serialize};

use super::SystemOptions;
use crate::spec::{FingerprintRows, Spec};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct FingerprintOptions {
    rows: FingerprintRows,
}

impl Spec {
    /// Chooses what has a row where fingerprints are published.
    pub fn with_fingerprint_rows(mut self, rows: FingerprintRows) -> Self {
        match &mut self.options {
            SystemOptions::Fingerprints(own) => own.rows = rows,
            _ => self.refuse("fingerprint_rows", rows != FingerprintRows::default()),
        }
        self
    }

    /// What has a row where fingerprints are published.
    pub(crate) fn fingerprint_rows(&self) -> FingerprintRows {
        match &self.options {
            SystemOptions::Fingerprints(own) => own.rows,
            _ => FingerprintRows::default(),
        }
    }
}
