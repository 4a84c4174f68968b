//! From an l-eligible range of values to l-unique buckets: the assignment of m-invariance (Xiao 2007).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::{Drafts, Owners};

/// Forms buckets of at least `l` members with different values from all owners of `range`, which must be l-eligible:
/// no value is more than 1 / l of them.
///
/// Each turn takes the β most frequent values, β as small as possible and at least l, and makes α buckets of them, α as
/// large as possible so that the rest stays l-eligible:
///
/// ```text
///   α ≤ n_β      (n₁ − α) · l ≤ n − αβ      n_{β+1} · l ≤ n − αβ
/// ```
///
/// There is always such a β. If β = l fails for α = 1, then n_{l+1} > n / l − 1; as no count is more than n / l, the
/// first l + 1 counts all are q = ⌊n / l⌋. Let β be the number of values with that count, and r = n − ql. From
/// βq ≤ ql + r follows β ≤ l + r, so (q − 1) · l ≤ n − β, and all other counts are at most q − 1.
pub(super) fn assign(owners: &Owners, range: Range<usize>, l: usize, drafts: &mut Drafts) {
    let first = range.start;
    let mut rest = owners.starts[range.end] - owners.starts[range.start];
    // The next owner of each value.
    let mut next: Vec<usize> = owners.starts[range.clone()].to_vec();
    // The most frequent value on top, the smaller of equally frequent ones first.
    let mut heap: BinaryHeap<(usize, Reverse<usize>)> =
        range.map(|v| (owners.count(v), Reverse(v))).collect();
    let mut taken: Vec<(usize, usize)> = vec![];
    while rest > 0 {
        let Some(buckets) = take(&mut heap, &mut taken, rest, l) else {
            break;
        };
        for _ in 0..buckets {
            for (_, value) in &taken {
                let at = &mut next[value - first];
                drafts.members.push(owners.sorted[*at]);
                *at += 1;
            }
            drafts.close();
        }
        rest -= buckets * taken.len();
        let remaining = taken.iter().map(|(count, value)| (count - buckets, *value));
        heap.extend(
            remaining
                .filter(|(count, _)| *count > 0)
                .map(|(count, value)| (count, Reverse(value))),
        );
    }
    debug_assert_eq!(rest, 0, "an l-eligible range is divided completely");
}

/// Takes the β most frequent values from the heap; α. `None` only if the range was not l-eligible.
fn take(
    heap: &mut BinaryHeap<(usize, Reverse<usize>)>,
    taken: &mut Vec<(usize, usize)>,
    rest: usize,
    l: usize,
) -> Option<usize> {
    taken.clear();
    loop {
        let (count, Reverse(value)) = heap.pop()?;
        taken.push((count, value));
        if taken.len() >= l {
            let following = heap.peek().map_or(0, |top| top.0);
            let buckets = most_buckets(taken, following, rest, l);
            if buckets > 0 {
                return Some(buckets);
            }
        }
    }
}

/// α for the values taken, of which the first is the most frequent: how many buckets they can fill together.
fn most_buckets(taken: &[(usize, usize)], following: usize, rest: usize, l: usize) -> usize {
    let width = taken.len();
    let (Some((most, _)), Some((least, _))) = (taken.first(), taken.last()) else {
        return 0;
    };
    let mut buckets = *least;
    if width > l {
        buckets = buckets.min(rest.saturating_sub(most * l) / (width - l));
    }
    if following > 0 {
        buckets = buckets.min(rest.saturating_sub(following * l) / width);
    }
    buckets
}
