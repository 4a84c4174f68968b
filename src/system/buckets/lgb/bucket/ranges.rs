//! Ranges of values that can be divided into buckets on their own: the narrower, the more a bucket tells.

use std::ops::Range;

use super::Owners;
use crate::algorithm::{Cancel, Cancelled};

/// Cuts the order of the values again and again while both parts are l-eligible (Li 2020, Algorithm 2).
///
/// The printed algorithm cuts at the median alone; here the eligible cut that divides the owners most evenly is taken,
/// which is the median wherever that is eligible. Both parts hold a value, so each cut makes progress (docs/theory/papers.md
/// L3). The ranges are of places in [`Owners::values`].
pub(super) fn divide(
    owners: &Owners,
    l: usize,
    cancel: &Cancel,
) -> Result<Vec<Range<usize>>, Cancelled> {
    let mut done = vec![];
    let whole = 0..owners.values.len();
    let mut open = if whole.is_empty() {
        vec![]
    } else {
        vec![whole]
    };
    let mut most_right = vec![0; owners.values.len()];
    while let Some(range) = open.pop() {
        cancel.check()?;
        match most_even_cut(owners, range.clone(), l, &mut most_right) {
            Some(cut) => {
                open.push(cut..range.end);
                open.push(range.start..cut);
            }
            None => done.push(range),
        }
    }
    Ok(done)
}

/// The first value of the right part; the leftmost of two cuts that are equally even.
fn most_even_cut(
    owners: &Owners,
    range: Range<usize>,
    l: usize,
    most_right: &mut [usize],
) -> Option<usize> {
    // Each part needs l different values.
    if range.len() < 2 * l {
        return None;
    }
    let mut most = 0;
    for value in range.clone().rev() {
        most = most.max(owners.count(value));
        most_right[value] = most;
    }
    let (begin, end) = (owners.starts[range.start], owners.starts[range.end]);
    let mut best: Option<(usize, usize)> = None;
    let mut most_left = 0;
    let borders = (range.start + 1..range.end).zip(&most_right[range.start + 1..range.end]);
    for (cut, most_right) in borders {
        most_left = most_left.max(owners.count(cut - 1));
        let (left, right) = (owners.starts[cut] - begin, end - owners.starts[cut]);
        if most_left * l <= left && most_right * l <= right {
            let uneven = left.abs_diff(right);
            if best.is_none_or(|(least, _)| uneven < least) {
                best = Some((uneven, cut));
            }
        }
    }
    best.map(|(_, cut)| cut)
}
