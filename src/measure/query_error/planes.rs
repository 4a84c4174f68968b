//! Counts of many queries at once, bit by bit.

/// Bits per count, so that up to 2¹⁵ − 1 rows can be counted before the counts are taken.
const PLANES: usize = 15;

/// How many rows matched each query, 64 queries to a word.
///
/// Counts are kept across: the p-th plane of a word holds the p-th binary digit of 64 counts. Adding a row's bits is then
/// one addition with carry for 64 queries, which ends after two planes on average, however many queries match.
#[derive(Debug)]
pub(super) struct Planes {
    /// The planes of each word, one after the other.
    planes: Vec<[u64; PLANES]>,
    rows: u32,
}

impl Planes {
    /// Nothing counted, for queries in so many words.
    pub fn new(words: usize) -> Self {
        Self {
            planes: vec![[0; PLANES]; words],
            rows: 0,
        }
    }

    /// Adds a row: a bit for each query that it matches.
    pub fn add(&mut self, bits: &[u64]) {
        self.rows += 1;
        for (planes, bits) in self.planes.iter_mut().zip(bits) {
            let mut carry = *bits;
            for plane in planes {
                if carry == 0 {
                    break;
                }
                let both = *plane & carry;
                *plane ^= carry;
                carry = both;
            }
        }
    }

    /// Whether the counts must be taken before another row is added.
    pub fn is_full(&self) -> bool {
        self.rows >= (1 << PLANES) - 1
    }

    /// Hands over all counts above 0 with their queries, and begins anew.
    pub fn take(&mut self, mut visit: impl FnMut(usize, u32)) {
        let used = (u32::BITS - self.rows.leading_zeros()) as usize;
        self.rows = 0;
        for (word, planes) in self.planes.iter_mut().enumerate() {
            let counts = std::mem::replace(planes, [0; PLANES]);
            let counts = &counts[..used];
            let mut touched = counts.iter().fold(0, |all, plane| all | plane);
            while touched != 0 {
                let bit = touched.trailing_zeros();
                touched &= touched - 1;
                let digits = counts.iter().rev();
                let count = digits.fold(0, |count, plane| count << 1 | (plane >> bit & 1) as u32);
                visit(word * 64 + bit as usize, count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn counts_are_those_of_each_query_alone() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut planes = Planes::new(2);
        for rows in [0, 1, 2, 3, 100, (1 << PLANES) - 1] {
            let mut expected = [0u32; 128];
            for _ in 0..rows {
                assert!(!planes.is_full());
                let bits: [u64; 2] = [rng.random(), rng.random::<u64>() & rng.random::<u64>()];
                for (query, count) in expected.iter_mut().enumerate() {
                    *count += (bits[query / 64] >> (query % 64) & 1) as u32;
                }
                planes.add(&bits);
            }
            let mut counted = [0u32; 128];
            planes.take(|query, count| counted[query] += count);
            assert_eq!(counted, expected);
        }
    }
}
