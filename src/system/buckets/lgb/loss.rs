//! What a release loses: discernibility and normalized certainty penalty (Li 2020, Section 4.1).

use super::{Anonymized, LgbInput, Treatment};

/// The loss of a release, counted over the individuals who are published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupLoss {
    /// C_DM: the sum of the squared sizes of the local groups.
    pub discernibility: u128,
    /// NCP of the table: the loss of all cells, in units of [`LgbInput::full`]. An exact value loses nothing (docs/theory/papers.md
    /// L9), nor does a value in a bucket; a blank cell loses all.
    pub penalty: u128,
    /// Cells that are generalized or blank.
    pub cells: u64,
    /// Cells whose value is in a bucket.
    pub bucketized: u64,
    /// Individuals who are published.
    pub individuals: u64,
    /// Individuals who are not.
    pub dropped: u64,
    full: u64,
}

impl GroupLoss {
    /// The loss of what was made of `people`.
    pub fn of(people: &LgbInput, anonymized: &Anonymized) -> Self {
        let mut loss = Self {
            full: people.full(),
            dropped: anonymized.patterns.dropped.len() as u64,
            ..Self::default()
        };
        for group in &anonymized.groups {
            let size = group.members.len() as u64;
            let treatments = &anonymized.patterns.patterns[group.pattern].treatments;
            let secret = treatments
                .iter()
                .filter(|treatment| **treatment == Treatment::Bucketized)
                .count() as u64;
            loss.individuals += size;
            loss.discernibility += u128::from(size) * u128::from(size);
            loss.penalty += u128::from(size) * u128::from(group.loss);
            loss.cells += size * (treatments.len() as u64 - secret);
            loss.bucketized += size * secret;
        }
        loss
    }
}

#[cfg(test)]
impl GroupLoss {
    /// NCP of the table as printed: the sum over all cells, each between 0 and 1.
    pub fn ncp(&self) -> f64 {
        if self.full == 0 {
            return 0.0;
        }
        self.penalty as f64 / self.full as f64
    }

    /// The mean of NCP over the cells that are not in buckets; 0 without such cells.
    pub fn ncp_per_cell(&self) -> f64 {
        match self.cells {
            0 => 0.0,
            cells => self.ncp() / cells as f64,
        }
    }
}
