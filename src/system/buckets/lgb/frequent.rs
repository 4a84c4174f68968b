//! How frequent the most frequent secret value of an attribute is, and how large a random block must be for l-diversity.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::table::smallest_random_block;

/// Different values that are counted each.
const EXACT: usize = 1 << 12;

/// Counters that more values share.
const COUNTERS: usize = 1 << 14;

/// Counts values: each by itself, or, where there are too many different ones, in counters that several may share.
///
/// So no value is more frequent than the fullest counter, and what is counted depends neither on the order of the values nor on
/// the parts that they come in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Sent", into = "Sent")]
pub struct Frequent {
    exact: HashMap<Vec<u8>, u64>,
    /// Empty while all values are counted each.
    shared: Vec<u64>,
    all: u64,
}

/// The same as lists.
#[derive(Serialize, Deserialize)]
struct Sent {
    exact: Vec<(Vec<u8>, u64)>,
    shared: Vec<u64>,
    all: u64,
}

impl From<Sent> for Frequent {
    fn from(Sent { exact, shared, all }: Sent) -> Self {
        let exact = exact.into_iter().collect();
        Self { exact, shared, all }
    }
}

impl From<Frequent> for Sent {
    fn from(Frequent { exact, shared, all }: Frequent) -> Self {
        let exact = exact.into_iter().collect();
        Self { exact, shared, all }
    }
}

impl Frequent {
    /// Counts a value.
    pub fn add(&mut self, value: &[u8]) {
        self.all += 1;
        self.count(value, 1);
    }

    fn count(&mut self, value: &[u8], times: u64) {
        if !self.shared.is_empty() {
            self.shared[place(value)] += times;
        } else if let Some(count) = self.exact.get_mut(value) {
            *count += times;
        } else {
            self.exact.insert(value.to_vec(), times);
            if self.exact.len() > EXACT {
                self.share();
            }
        }
    }

    /// Counts all values in shared counters from now on.
    fn share(&mut self) {
        self.shared.resize(COUNTERS, 0);
        for (value, times) in std::mem::take(&mut self.exact) {
            self.shared[place(&value)] += times;
        }
    }

    /// Adds the counts of another part of the table.
    pub fn merge(&mut self, other: Self) {
        self.all += other.all;
        if !other.shared.is_empty() {
            self.share();
            let counts = self.shared.iter_mut().zip(other.shared);
            counts.for_each(|(own, other)| *own += other);
        }
        for (value, times) in other.exact {
            self.count(&value, times);
        }
    }

    /// Values so far.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// No value occurs more often.
    pub fn at_most(&self) -> u64 {
        let counts = self.exact.values().chain(&self.shared);
        counts.copied().max().unwrap_or(0)
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let exact: usize = self.exact.keys().map(|value| value.len() + 48).sum();
        exact + self.shared.len() * size_of::<u64>()
    }

    /// How many of the values a random block must hold on average so that none of them is more than 1/l of it; `None` if
    /// only the whole table will do.
    pub fn smallest_block(&self, l: u32) -> Option<u64> {
        if self.all == 0 {
            return Some(0);
        }
        let share = self.at_most() as f64 / self.all as f64;
        let needed = smallest_random_block(share, 1.0 / f64::from(l.max(1)));
        needed.is_finite().then(|| needed.ceil() as u64)
    }
}

/// The counter of a value: FNV-1a, the same on every machine.
fn place(value: &[u8]) -> usize {
    let hash = value.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ hash >> 32) as usize % COUNTERS
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn no_value_is_more_frequent_than_said() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for values in [3u32, 900, 5_000, 40_000] {
            let mut parts = [Frequent::default(), Frequent::default()];
            let mut counts: HashMap<u32, u64> = HashMap::new();
            for i in 0..60_000 {
                let value = rng.random_range(0..values).min(rng.random_range(0..values));
                *counts.entry(value).or_default() += 1;
                parts[i % 2].add(&value.to_be_bytes());
            }
            let [mut all, other] = parts;
            let sent = serde_json::to_vec(&other).unwrap();
            all.merge(serde_json::from_slice(&sent).unwrap());
            let most = counts.values().copied().max().unwrap();
            assert_eq!(all.all(), 60_000);
            assert!(all.at_most() >= most, "{values}");
            let others = if values > EXACT as u32 { 100 } else { 0 };
            assert!(
                all.at_most() <= most + others,
                "{values}: {}",
                all.at_most()
            );
        }
    }

    #[test]
    fn random_blocks_of_that_size_are_eligible() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        for (values, l) in [(12u32, 8u32), (30, 20), (7, 5)] {
            let all: Vec<u32> = (0..400_000).map(|_| rng.random_range(0..values)).collect();
            let mut frequent = Frequent::default();
            all.iter().for_each(|v| frequent.add(&v.to_be_bytes()));
            let size = frequent.smallest_block(l).unwrap() as usize;
            assert!(size < all.len() / 4, "{values} {l}: {size}");
            for block in all.chunks_exact(size) {
                let mut counts = vec![0u64; values as usize];
                block.iter().for_each(|v| counts[*v as usize] += 1);
                let most = counts.into_iter().max().unwrap();
                assert!(most * u64::from(l) <= size as u64, "{values} {l}");
            }
        }
        // No room: only the whole table may do.
        let mut even = Frequent::default();
        (0..1000u32).for_each(|i| even.add(&(i % 4).to_be_bytes()));
        assert_eq!(even.smallest_block(4), None);
        assert!(even.smallest_block(3).is_some());
        assert_eq!(Frequent::default().smallest_block(5), Some(0));
    }
}
