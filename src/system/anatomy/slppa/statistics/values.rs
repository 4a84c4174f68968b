//! How often each value of a column occurs.

use serde::{Deserialize, Serialize};

use super::Numbered;
use crate::system::anatomy::slppa::mix::{NumberMap, mix};

/// Most values that are counted.
const MOST: usize = 65_536;

/// A histogram of exact values, or of a sample of them once there are too many.
///
/// Values are sampled, never individuals: of `2^level` values about one is kept, with all its occurrences. Which one
/// depends on the value alone, so neither order nor parts matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Values {
    level: u32,
    counts: NumberMap<u64>,
}

impl Values {
    pub fn count(&mut self, column: &Numbered) {
        for (position, count) in column.positions.iter().zip(&column.counts) {
            self.add(*position, *count);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        while self.level < other.level {
            self.thin();
        }
        for (position, count) in &other.counts {
            self.add(*position, *count);
        }
    }

    fn add(&mut self, position: u64, count: u64) {
        if self.level > 0 && !kept(position, self.level) {
            return;
        }
        *self.counts.entry(position).or_default() += count;
        while self.counts.len() > MOST {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.level += 1;
        let level = self.level;
        self.counts.retain(|position, _| kept(*position, level));
    }

    pub fn distinct(&self) -> u64 {
        (self.counts.len() as u64) << self.level
    }

    /// How often the most frequent value occurs; `None` if only some values are counted.
    pub fn most(&self) -> Option<u64> {
        (self.level == 0).then(|| self.counts.values().copied().max().unwrap_or(0))
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        self.counts.capacity() * 24
    }

    /// −Σ p log₂ p (Yao 2021, Eq. 9).
    pub fn entropy(&self, individuals: u64) -> f64 {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        counts.sort_unstable();
        let terms = counts.into_iter().map(|count| {
            let share = count as f64 / individuals as f64;
            -share * share.log2()
        });
        // Starting from 0.0 keeps the sum of nothing, and of a single certain value, from being -0.0.
        let sum: f64 = terms.fold(0.0, |sum, term| sum + term);
        sum * (1u64 << self.level.min(63)) as f64
    }
}

fn kept(position: u64, level: u32) -> bool {
    // Positions may be hashes already, so another hash decides.
    mix(position ^ 0x5bd1_e995).trailing_zeros() >= level
}
