//! What correlated columns still give away: buckets of different attributes are independent, people are not.

use super::super::Buckets;

/// The fewest different values that remain possible for somebody in a bucket, once pairs that cannot occur are ruled out
/// (docs/theory/papers.md L7); `None` if nobody is in one.
///
/// `known` gives the codes that another column leaves possible for an individual: those of its group, or of its bucket
/// there. `forbidden` says whether such a code and a rank of the bucket's attribute exclude each other.
pub fn fewest_possible_values<K: IntoIterator<Item = u32>>(
    buckets: &Buckets,
    ranks: &[u32],
    known: impl Fn(u32) -> K,
    forbidden: impl Fn(u32, u32) -> bool,
) -> Option<usize> {
    let mut fewest = None;
    let mut values = vec![];
    let mut codes = vec![];
    for bucket in 0..buckets.len() {
        values.clear();
        values.extend(buckets.members(bucket).iter().map(|m| ranks[*m as usize]));
        values.sort_unstable();
        values.dedup();
        for member in buckets.members(bucket) {
            codes.clear();
            codes.extend(known(*member));
            let possible = |rank: &&u32| codes.iter().any(|code| !forbidden(*code, **rank));
            let remaining = values.iter().filter(possible).count();
            fewest = Some(fewest.map_or(remaining, |least: usize| least.min(remaining)));
        }
    }
    fewest
}
