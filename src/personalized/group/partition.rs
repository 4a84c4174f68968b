//! Groups by multi-dimensional partition (Li 2020, Algorithm 3): always cut the widest column near its median.

use std::ops::Range;

use super::sets::Sets;

/// Cuts the widest column of a set that leaves `k` on both sides; how many are on the left one.
pub(super) fn cut(sets: &mut Sets, set: Range<usize>, k: usize) -> Option<usize> {
    if set.len() < 2 * k {
        return None;
    }
    let mut widths: Vec<(u64, usize)> = vec![];
    for column in 0..sets.columns.len() {
        let (loss, differ) = sets.width(column, set.clone());
        if differ {
            widths.push((loss, column));
        }
    }
    // The widest first; of equally wide ones the first column.
    widths.sort_unstable_by_key(|(width, column)| (u64::MAX - width, *column));
    for (_, column) in &widths {
        if let Some(bound) = sets.bound(*column, set.clone(), k) {
            let ranks = sets.ranks(*column, set.clone());
            let left: Vec<bool> = ranks.iter().map(|rank| *rank < bound).collect();
            let differing = widths.iter().map(|(_, column)| *column);
            return Some(sets.separate(set, &left, differing));
        }
    }
    None
}
