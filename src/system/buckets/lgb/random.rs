//! Random choices of a release: ChaCha from a secret key.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// One stream of random numbers. Streams of one key are independent of each other.
pub(super) struct Random(ChaCha20Rng);

impl Random {
    pub fn new(key: &[u8; 32], stream: u64) -> Self {
        let mut generator = ChaCha20Rng::from_seed(*key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A number below `bound`, each equally likely.
    fn below(&mut self, bound: u32) -> u32 {
        let bound = u64::from(bound);
        // The first multiples of `bound` in 32 bits; above them some numbers would be likelier than others.
        let fair = (1u64 << 32) / bound * bound;
        loop {
            let drawn = u64::from(self.0.next_u32());
            if drawn < fair {
                return (drawn % bound) as u32;
            }
        }
    }

    /// Brings the items into an order of which all are equally likely, the present one included.
    pub fn shuffle(&mut self, items: &mut [u32]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u32 + 1) as usize;
            items.swap(i, j);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_equally_likely() {
        // 24 orders, 2,400 expected each; 5 standard deviations are 240.
        let mut random = Random::new(&[7; 32], 1);
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..57_600 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            *seen.entry(items).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 24);
        assert!(seen.values().all(|n| (2160..=2640).contains(n)), "{seen:?}");
    }

    #[test]
    fn streams_and_keys_differ_and_repeat() {
        let order = |key, stream| {
            let mut items: Vec<u32> = (0..100).collect();
            Random::new(&[key; 32], stream).shuffle(&mut items);
            items
        };
        assert_eq!(order(1, 1), order(1, 1));
        assert_ne!(order(1, 1), order(1, 2));
        assert_ne!(order(1, 1), order(2, 1));
    }
}
