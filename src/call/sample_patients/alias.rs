//! Drawing from a fixed discrete distribution in constant time.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

/// Walker's alias table: one 64-bit draw gives one of `len` outcomes.
///
/// Built with `+ - * /` only, which IEEE 754 defines to the last bit: the same table on every machine.
#[derive(Debug)]
pub(super) struct Alias {
    /// Outcome `i` keeps a draw whose low half is below `keep[i]`, the others go to `other[i]`.
    keep: Vec<u64>,
    other: Vec<usize>,
}

impl Alias {
    /// A table over `weights`, which are non-negative and not all zero.
    pub(super) fn new(weights: &[f64]) -> Self {
        const ONE: f64 = 4_294_967_296.0; // 2^32, the range of the low half of a draw

        let total: f64 = weights.iter().sum();
        let mut share: Vec<f64> = weights
            .iter()
            .map(|weight| weight / total * weights.len() as f64)
            .collect();
        let mut keep = vec![1 << 32; weights.len()];
        let mut other: Vec<usize> = (0..weights.len()).collect();

        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&i| share[i] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            keep[poor] = (share[poor] * ONE) as u64;
            other[poor] = rich;
            share[rich] -= 1.0 - share[poor];
            if share[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        Self { keep, other }
    }

    /// One outcome, an index into the weights.
    #[inline]
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> usize {
        let bits = rng.next_u64();
        let outcome = (((bits >> 32) * self.keep.len() as u64) >> 32) as usize;
        if bits & 0xffff_ffff < self.keep[outcome] {
            outcome
        } else {
            self.other[outcome]
        }
    }
}

/// One index into `weights`, for distributions that are too short-lived or too small for a table.
#[inline]
pub(super) fn pick(rng: &mut ChaCha8Rng, weights: &[u32]) -> usize {
    let total: u32 = weights.iter().sum();
    let mut point = below(rng, total);
    for (i, &weight) in weights.iter().enumerate() {
        if point < weight {
            return i;
        }
        point -= weight;
    }
    0 // not reached while a weight is positive
}

/// A number in `0..bound`.
#[inline]
pub(super) fn below(rng: &mut ChaCha8Rng, bound: u32) -> u32 {
    ((u64::from(rng.next_u32()) * u64::from(bound)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn draws_follow_the_weights() {
        let weights = [0.0, 1.0, 2.0, 3.0, 10.0];
        let alias = Alias::new(&weights);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut seen = [0_u32; 5];
        for _ in 0..160_000 {
            seen[alias.draw(&mut rng)] += 1;
        }
        assert_eq!(seen[0], 0);
        for (count, weight) in seen.iter().zip(weights) {
            let expected = weight * 10_000.0;
            assert!(
                (f64::from(*count) - expected).abs() <= 400.0,
                "{count} for {expected}"
            );
        }
    }

    #[test]
    fn pick_skips_what_has_no_weight() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        assert!((0..1000).all(|_| pick(&mut rng, &[0, 3, 0]) == 1));
    }
}
