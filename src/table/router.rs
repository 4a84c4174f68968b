//! Routing individuals to blocks: a k-d tree of cut points learned from the sample.

use std::cmp::Ordering;

use super::coding::{Domains, Key, Keys};
use super::profile::Profile;

/// Gives each individual a block of similar individuals.
///
/// The tree depends on the data and the release key alone. Where many individuals have the same quasi-identifiers and
/// no column can tell them apart, they are split by their random order.
#[derive(Debug)]
pub struct Router {
    root: Node,
}

#[derive(Debug)]
enum Node {
    Block(u32),
    /// Keys up to `key` go left.
    Cut {
        column: usize,
        key: Key,
        sides: Box<[Node; 2]>,
    },
    /// Orders up to `order` go left.
    Order {
        order: u64,
        sides: Box<[Node; 2]>,
    },
}

impl Node {
    fn looks_at_values(&self) -> bool {
        match self {
            Self::Block(_) => false,
            Self::Cut { .. } => true,
            Self::Order { sides, .. } => sides.iter().any(Self::looks_at_values),
        }
    }
}

type Sampled<'a> = (u64, &'a [Key]);

/// Sampled individuals at most, beyond one per entry of the profile's sample.
const MOST: u128 = 1 << 15;

impl Router {
    /// A tree whose blocks hold about `block` individuals each, or one block for all if that is `None`.
    pub fn new(profile: &Profile, domains: &Domains, block: Option<u64>) -> Self {
        let mut sample = individuals(profile);
        let capacity = block.map_or(usize::MAX, |size| {
            let share =
                u128::from(size) * sample.len() as u128 / u128::from(profile.individuals().max(1));
            usize::try_from(share).unwrap_or(usize::MAX).max(1)
        });
        let root = split(&mut sample, capacity, domains, &mut 0);
        Self { root }
    }

    /// As [`Router::new`], with blocks that are random samples of the table.
    pub fn random(profile: &Profile, block: Option<u64>) -> Self {
        let blocks = block.map_or(1, |size| profile.individuals().div_ceil(size.max(1)).max(1));
        Self {
            root: by_order(0, blocks, blocks),
        }
    }

    /// Whether values decide about blocks, or the random order alone.
    pub fn looks_at_values(&self) -> bool {
        self.root.looks_at_values()
    }

    /// The block of an individual, given by its order and the positions of its values in each column's keys.
    pub fn route(&self, order: u64, keys: &[Keys], position: impl Fn(usize) -> usize) -> u32 {
        let mut node = &self.root;
        loop {
            let (left, sides) = match node {
                Node::Block(block) => return *block,
                Node::Cut { column, key, sides } => {
                    let side = keys[*column].cmp_key(position(*column), key);
                    (side != Ordering::Greater, sides)
                }
                Node::Order { order: cut, sides } => (order <= *cut, sides),
            };
            node = &sides[usize::from(!left)];
        }
    }
}

/// A tree over `count` of all blocks from `first` on, which have equal shares of all orders.
fn by_order(first: u64, count: u64, blocks: u64) -> Node {
    if count == 1 {
        return Node::Block(first as u32);
    }
    let (left, right) = (count / 2, count - count / 2);
    let end = (u128::from(first + left) << 64) / u128::from(blocks);
    let sides = [
        by_order(first, left, blocks),
        by_order(first + left, right, blocks),
    ];
    Node::Order {
        order: (end - 1) as u64,
        sides: Box::new(sides),
    }
}

/// The sampled individuals. Where many share an entry of the sample, as many of them as is their share of a sample of
/// [`MOST`], with orders spread evenly as those of the whole table are.
fn individuals(profile: &Profile) -> Vec<Sampled<'_>> {
    let all: u128 = profile
        .sample()
        .map(|(_, s)| u128::from(s.individuals))
        .sum();
    let mut sample = vec![];
    for (order, sampled) in profile.sample() {
        let keys = sampled.keys.as_slice();
        let copies = match u128::from(sampled.individuals) {
            1 => 1,
            n => (n * MOST.min(all)).div_ceil(all) as u64,
        };
        if copies == 1 {
            sample.push((order, keys));
            continue;
        }
        let step = u64::MAX / copies;
        sample.extend((0..copies).map(|copy| (copy * step + step / 2, keys)));
    }
    sample
}

/// Splits a sample into parts of at most `capacity` sampled individuals, as equal as ties allow.
fn split(sample: &mut [Sampled<'_>], capacity: usize, domains: &Domains, blocks: &mut u32) -> Node {
    let leaves = sample.len().div_ceil(capacity);
    if leaves <= 1 {
        let block = *blocks;
        *blocks += 1;
        return Node::Block(block);
    }
    let target = sample.len() * (leaves / 2) / leaves;
    let (cut, at) = match best_cut(sample, target, capacity, domains) {
        Some((column, at)) => (Some((column, sample[at - 1].1[column].clone())), at),
        None => {
            sample.sort_unstable_by_key(|s| s.0);
            (None, target)
        }
    };
    let order = sample[at - 1].0;
    let (left, right) = sample.split_at_mut(at);
    let sides = Box::new([
        split(left, capacity, domains, blocks),
        split(right, capacity, domains, blocks),
    ]);
    match cut {
        Some((column, key)) => Node::Cut { column, key, sides },
        None => Node::Order { order, sides },
    }
}

/// The widest column that can be cut so that neither side is a crumb, and where; the sample is then sorted by it.
fn best_cut(
    sample: &mut [Sampled<'_>],
    target: usize,
    capacity: usize,
    domains: &Domains,
) -> Option<(usize, usize)> {
    let mut columns: Vec<usize> = (0..domains.0.len()).collect();
    let widths: Vec<f64> = columns.iter().map(|c| width(sample, *c, domains)).collect();
    columns.sort_by(|a, b| widths[*b].total_cmp(&widths[*a]));
    let crumb = capacity.div_ceil(2);
    columns.into_iter().find_map(|column| {
        sample.sort_unstable_by(|a, b| a.1[column].cmp(&b.1[column]).then(a.0.cmp(&b.0)));
        let at = boundary(sample, column, target)?;
        (at >= crumb && sample.len() - at >= crumb).then_some((column, at))
    })
}

/// The place nearest to `target` where the sorted sample changes its value.
fn boundary(sample: &[Sampled<'_>], column: usize, target: usize) -> Option<usize> {
    let changes = |at: usize| sample[at - 1].1[column] != sample[at].1[column];
    let before = (1..=target).rev().find(|at| changes(*at));
    let after = (target..sample.len()).find(|at| changes(*at));
    match (before, after) {
        (Some(b), Some(a)) => Some(if target - b <= a - target { b } else { a }),
        (b, a) => b.or(a),
    }
}

/// How much of a column's domain the sample spans.
fn width(sample: &[Sampled<'_>], column: usize, domains: &Domains) -> f64 {
    let domain = &domains.0[column];
    let steps = domain.steps();
    if steps == 0 {
        return 0.0;
    }
    let code = |key: &Key| match key {
        Key::Integer(v) => Some(domain.code_integer(*v)),
        Key::Real(v) => Some(domain.code_real(*v)),
        _ => None,
    };
    let mut codes = sample.iter().filter_map(|s| code(&s.1[column]));
    let span = match codes.next() {
        Some(first) => {
            let (lo, hi) = codes.fold((first, first), |(lo, hi), c| (lo.min(c), hi.max(c)));
            u64::from(hi - lo)
        }
        None => {
            let mut keys: Vec<_> = sample.iter().map(|s| &s.1[column]).collect();
            keys.sort_unstable();
            keys.dedup();
            keys.len() as u64 - 1
        }
    };
    span as f64 / steps as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray, UInt64Array};

    use super::super::coding::Kind;
    use super::*;

    const KINDS: [Kind; 2] = [Kind::Integer, Kind::Categorical];

    fn block_sizes(rows: &[(u64, Option<i32>, &str)], block: u64) -> Vec<usize> {
        let order = UInt64Array::from_iter_values(rows.iter().map(|r| r.0));
        let age: ArrayRef = Arc::new(rows.iter().map(|r| r.1).collect::<Int32Array>());
        let sex: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.2)));
        let mut profile = Profile::new(&KINDS, false);
        let columns = [age, sex];
        profile.update(&KINDS, &order, &columns).unwrap();
        let router = Router::new(&profile, &profile.domains(), Some(block));
        let keys: Vec<_> = columns
            .iter()
            .zip(KINDS)
            .map(|(c, k)| Keys::try_new(c, k).unwrap())
            .collect();
        let mut sizes = BTreeMap::<u32, usize>::new();
        for (i, row) in rows.iter().enumerate() {
            *sizes.entry(router.route(row.0, &keys, |_| i)).or_default() += 1;
        }
        sizes.into_values().collect()
    }

    fn orders() -> impl Iterator<Item = u64> {
        (1u64..).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    #[test]
    fn blocks_are_of_about_the_asked_size() {
        let rows: Vec<_> = orders()
            .take(5_000)
            .enumerate()
            .map(|(i, o)| {
                (
                    o,
                    (i % 11 != 0).then_some((i % 83) as i32),
                    ["F", "M"][i % 2],
                )
            })
            .collect();
        let sizes = block_sizes(&rows, 600);
        assert_eq!(sizes.iter().sum::<usize>(), 5_000);
        assert!(
            sizes.len() >= 8 && sizes.iter().all(|s| (300..=700).contains(s)),
            "{sizes:?}"
        );
        assert_eq!(block_sizes(&rows, 5_000), [5_000]);
    }

    #[test]
    fn records_that_are_individuals_weigh_in_the_sample() {
        // Three of four records have the same quasi-identifiers, and so the same order in the profile.
        let tuple = |i: usize| {
            if i.is_multiple_of(4) {
                i as i32 / 8
            } else {
                -1
            }
        };
        let rows: Vec<_> = (0..40_000)
            .map(|i| (tuple(i), orders_of(tuple(i) as u64)))
            .collect();
        let age: ArrayRef = Arc::new(rows.iter().map(|r| Some(r.0)).collect::<Int32Array>());
        let order = UInt64Array::from_iter_values(rows.iter().map(|r| r.1));
        let kinds = [Kind::Integer];
        let mut profile = Profile::new(&kinds, true);
        profile
            .update(&kinds, &order, std::slice::from_ref(&age))
            .unwrap();
        assert_eq!(profile.individuals(), 40_000);
        let router = Router::new(&profile, &profile.domains(), Some(5_000));
        let keys = [Keys::try_new(&age, Kind::Integer).unwrap()];
        let mut sizes = BTreeMap::<u32, usize>::new();
        for i in 0..rows.len() {
            // What tells equal records apart later.
            let order = orders_of(i as u64);
            *sizes.entry(router.route(order, &keys, |_| i)).or_default() += 1;
        }
        assert!(sizes.len() >= 7, "{sizes:?}");
        assert!(
            sizes.values().all(|s| (2_000..=6_500).contains(s)),
            "{sizes:?}"
        );
    }

    #[test]
    fn random_blocks_are_equal_shares_of_the_orders() {
        let order = UInt64Array::from_iter_values((0..30_000).map(orders_of));
        let age: ArrayRef = Arc::new(Int32Array::from(vec![1; order.len()]));
        let kinds = [Kind::Integer];
        let mut profile = Profile::new(&kinds, true);
        profile
            .update(&kinds, &order, std::slice::from_ref(&age))
            .unwrap();
        for (size, blocks) in [(Some(10_000), 3), (Some(4_000), 8), (None, 1)] {
            let router = Router::random(&profile, size);
            assert!(!router.looks_at_values());
            // Who sorts by order has sorted by block.
            let mut orders = order.values().to_vec();
            orders.sort_unstable();
            assert!(orders.is_sorted_by_key(|order| router.route(*order, &[], |_| 0)));
            let mut sizes = BTreeMap::<u32, usize>::new();
            for order in order.values() {
                *sizes.entry(router.route(*order, &[], |_| 0)).or_default() += 1;
            }
            assert_eq!(sizes.len(), blocks);
            let even = order.len() / blocks;
            assert!(sizes.values().all(|s| s.abs_diff(even) < even / 10 + 1));
        }
        let router = Router::random(&profile, Some(10_000));
        assert_eq!(router.route(0, &[], |_| 0), 0);
        assert_eq!(router.route(u64::MAX, &[], |_| 0), 2);
    }

    fn orders_of(i: u64) -> u64 {
        let hash = blake3::hash(&i.to_be_bytes());
        u64::from_be_bytes(hash.as_bytes()[..8].try_into().unwrap())
    }

    #[test]
    fn equal_individuals_are_split_by_their_order() {
        let rows: Vec<_> = orders().take(1_000).map(|o| (o, Some(7), "F")).collect();
        let sizes = block_sizes(&rows, 250);
        assert_eq!(sizes, [250; 4]);
    }
}
