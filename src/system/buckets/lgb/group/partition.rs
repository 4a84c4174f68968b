//! Groups by multi-dimensional partition (Li 2020, Algorithm 3): always cut the widest column near its median.

use std::ops::Range;

use super::sets::Sets;

/// Cuts the widest column of a set that leaves `k` on both sides; how many are on the left one.
pub(super) fn cut(sets: &mut Sets, set: Range<usize>, k: usize) -> Option<usize> {
    if set.len() < 2 * k {
        return None;
    }
    let widest = sets.widest(set.clone());
    sets.cut_first(&widest, set, k)
}
