//! Different values of one individual.

use std::cmp::Ordering;

/// Values as bytes, which are equal exactly if the values are. Memory is bounded by twice the different ones.
#[derive(Debug, Default)]
pub(in crate::pipeline::operator) struct ValueSet {
    bytes: Vec<u8>,
    /// Where each value ends; it begins where the one before ends.
    ends: Vec<usize>,
    /// How many of the values are known to be different and in order.
    settled: usize,
}

/// Values that are added before equal ones are looked for.
const FEW: usize = 64;

impl ValueSet {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.settled = 0;
    }

    pub fn add(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
        if self.ends.len() >= FEW + 2 * self.settled {
            self.settle();
        }
    }

    /// Sorts the values and keeps one of equal ones.
    pub fn settle(&mut self) {
        if self.settled == self.ends.len() {
            return;
        }
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        order.sort_unstable_by(|a, b| self.value(*a).cmp(self.value(*b)));
        order.dedup_by(|a, b| self.value(*a) == self.value(*b));
        let mut sorted = Self::default();
        for at in order {
            sorted.bytes.extend_from_slice(self.value(at));
            sorted.ends.push(sorted.bytes.len());
        }
        sorted.settled = sorted.ends.len();
        *self = sorted;
    }

    /// How many values there are; of a settled set.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// How many values only this set has, and how many only the other; of settled sets.
    pub fn differences(&self, other: &Self) -> (usize, usize) {
        let (mut i, mut j, mut both) = (0, 0, 0);
        while i < self.len() && j < other.len() {
            match self.value(i).cmp(other.value(j)) {
                Ordering::Less => i += 1,
                Ordering::Greater => j += 1,
                Ordering::Equal => {
                    (i, j, both) = (i + 1, j + 1, both + 1);
                }
            }
        }
        (self.len() - both, other.len() - both)
    }

    fn value(&self, at: usize) -> &[u8] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn sets_are_those_of_the_standard_library() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..300 {
            let (mut sets, mut plain) = (
                [ValueSet::default(), ValueSet::default()],
                [BTreeSet::new(), BTreeSet::new()],
            );
            for (set, plain) in sets.iter_mut().zip(&mut plain) {
                for _ in 0..rng.random_range(0..300) {
                    let value = vec![7u8; rng.random_range(0..40)];
                    set.add(&value);
                    plain.insert(value);
                }
                set.settle();
                assert_eq!(set.len(), plain.len());
            }
            let only = |a: usize, b: usize| plain[a].difference(&plain[b]).count();
            let differences = sets[0].differences(&sets[1]);
            assert_eq!(differences, (only(0, 1), only(1, 0)));
        }
        let mut many = ValueSet::default();
        (0..100_000u32).for_each(|i| many.add(&(i % 10).to_le_bytes()));
        assert!(many.size() < 4096);
    }
}
