//! Who shares a fingerprint, over several parts of a release.

use std::collections::HashMap;

use super::{FingerprintViolation, ShownLabels};

/// How many individuals publish each fingerprint, counted over parts of a release that share one hierarchy.
#[derive(Debug, Default)]
pub struct FingerprintTally {
    holders: HashMap<Vec<u32>, usize>,
    /// Labels in all of them.
    labels: usize,
}

impl FingerprintTally {
    /// Counts the individuals of a part.
    pub fn add(&mut self, part: &ShownLabels) {
        let mut counts = vec![0; part.sets.len()];
        for set in part.classes.iter().flatten() {
            counts[*set as usize] += 1;
        }
        for (labels, count) in part.sets.iter().zip(counts) {
            match self.holders.get_mut(labels) {
                Some(holders) => *holders += count,
                None => {
                    self.labels += labels.len();
                    self.holders.insert(labels.clone(), count);
                }
            }
        }
    }

    /// About how many bytes it takes.
    pub fn memory(&self) -> usize {
        // A table of hashes has room for 7/8 of its places, each with a byte of its own.
        let entry = size_of::<(Vec<u32>, usize)>() + 1;
        self.labels * size_of::<u32>() + self.holders.capacity() * entry * 8 / 7
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
