//! Who shares a fingerprint, over several parts of a release.

use std::collections::HashMap;

use super::{FingerprintViolation, PublishedFingerprints};

/// How many individuals publish each fingerprint, counted over parts of a release that share one hierarchy.
#[derive(Debug, Default)]
pub struct FingerprintTally {
    holders: HashMap<Vec<u32>, usize>,
}

impl FingerprintTally {
    /// Counts the individuals of a part.
    pub fn add(&mut self, part: &PublishedFingerprints) {
        for set in part.classes.iter().flatten() {
            let labels = &part.sets[*set as usize];
            match self.holders.get_mut(labels) {
                Some(holders) => *holders += 1,
                None => drop(self.holders.insert(labels.clone(), 1)),
            }
        }
    }

    /// Different fingerprints.
    pub(super) fn len(&self) -> usize {
        self.holders.len()
    }

    /// Checks that every fingerprint is that of at least `k` individuals; of how many the rarest is.
    ///
    /// # Errors
    ///
    /// [`FingerprintViolation::RareFingerprints`].
    pub fn check(&self, k: usize) -> Result<usize, FingerprintViolation> {
        let holders = self.holders.values();
        let rarest = holders.clone().copied().min().unwrap_or(0);
        match holders.filter(|n| **n < k).count() {
            0 => Ok(rarest),
            fingerprints => Err(FingerprintViolation::RareFingerprints {
                fingerprints,
                rarest,
            }),
        }
    }
}
