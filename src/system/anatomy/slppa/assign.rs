//! Groups to begin with: Anatomy's assignment, and dealing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::Ratio;

/// Individuals by their sensitive value: larger buckets first, ties to the smaller value; in a bucket the smaller
/// number first.
pub(super) struct Buckets {
    individuals: Vec<u32>,
    ends: Vec<usize>,
}

impl Buckets {
    pub fn new(members: &[u32], sensitive: &[u32]) -> Self {
        let value = |member: u32| sensitive[member as usize];
        let mut members = members.to_vec();
        members.sort_unstable_by_key(|member| u64::from(value(*member)) << 32 | u64::from(*member));
        let same = members.chunk_by(|a, b| value(*a) == value(*b));
        let mut buckets: Vec<&[u32]> = same.collect();
        buckets.sort_by_key(|bucket| Reverse(bucket.len()));
        let mut sorted = Self {
            individuals: Vec::with_capacity(members.len()),
            ends: Vec::with_capacity(buckets.len()),
        };
        for bucket in buckets {
            sorted.individuals.extend_from_slice(bucket);
            sorted.ends.push(sorted.individuals.len());
        }
        sorted
    }

    fn of(&self, bucket: usize) -> &[u32] {
        let start = bucket.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.individuals[start..self.ends[bucket]]
    }

    /// Into how many groups all can be dealt so that no value has a share of more than β.
    pub fn most_groups(&self, beta: Ratio) -> usize {
        let all = self.individuals.len();
        let largest = self.ends.first().copied().unwrap_or(0);
        let holds = |groups: &usize| {
            let most = largest.div_ceil(*groups);
            beta.at_least(most as u64, (all / groups) as u64)
        };
        (1..=all).rev().find(holds).unwrap_or(1)
    }

    /// Groups of one individual from each of the `width` largest buckets, which are found anew for every group, while
    /// there are that many (Anatomy; Xiao and Tao 2006). The printed algorithm takes the smallest (docs/theory/papers.md S1). Ties
    /// go to the bucket that was larger at first.
    ///
    /// If no bucket holds more than one `width`-th of all individuals, fewer than `width` of them remain, each of another
    /// value, and join a group without that value: then no group has any value twice. Otherwise some may remain alone.
    pub fn anatomy(&self, sensitive: &[u32], width: usize) -> Vec<Vec<u32>> {
        let size = |bucket: usize| (self.of(bucket).len(), Reverse(bucket));
        let mut remaining: BinaryHeap<(usize, Reverse<usize>)> =
            (0..self.ends.len()).map(size).collect();
        let mut groups = Vec::with_capacity(self.individuals.len() / width.max(1));
        let mut drawn = vec![];
        while remaining.len() >= width.max(1) {
            drawn.extend((0..width.max(1)).filter_map(|_| remaining.pop()));
            let mut group = Vec::with_capacity(drawn.len());
            for (left, number) in drawn.drain(..) {
                let bucket = self.of(number.0);
                group.push(bucket[bucket.len() - left]);
                if left > 1 {
                    remaining.push((left - 1, number));
                }
            }
            groups.push(group);
        }
        let mut residues: Vec<u32> = vec![];
        while let Some((left, number)) = remaining.pop() {
            let bucket = self.of(number.0);
            residues.extend_from_slice(&bucket[bucket.len() - left..]);
        }
        place(&mut groups, &residues, sensitive);
        groups
    }

    /// `groups` groups among which each bucket is spread as evenly as can be, the larger buckets first.
    ///
    /// If no bucket holds more than `groups` individuals, no group has any value twice; and every value's share of every
    /// group is near its share of the whole, nearer the larger groups are.
    pub fn deal(&self, groups: usize) -> Vec<Vec<u32>> {
        let mut dealt = vec![vec![]; groups];
        for (at, individual) in self.individuals.iter().enumerate() {
            dealt[at % groups].push(*individual);
        }
        dealt
    }
}

/// Puts each individual that Anatomy left over into a group without its value.
fn place(groups: &mut Vec<Vec<u32>>, residues: &[u32], sensitive: &[u32]) {
    let formed = groups.len();
    let mut cursor = 0;
    // Individuals of one value come together, and a value that is in every group stays there.
    let mut everywhere = None;
    for individual in residues {
        let value = sensitive[*individual as usize];
        if everywhere == Some(value) {
            groups.push(vec![*individual]);
            continue;
        }
        let lacks = |at: &usize| {
            let mut members = groups[*at].iter();
            members.all(|member| sensitive[*member as usize] != value)
        };
        match (cursor..formed).chain(0..cursor).find(lacks) {
            Some(at) => {
                groups[at].push(*individual);
                cursor = (at + 1) % formed;
            }
            None => {
                everywhere = Some(value);
                groups.push(vec![*individual]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};

    use super::*;

    fn sensitive(sizes: &[usize]) -> Vec<u32> {
        (0u32..).zip(sizes).flat_map(|(v, n)| vec![v; *n]).collect()
    }

    fn anatomy(sizes: &[usize], width: usize) -> Vec<Vec<u32>> {
        let sensitive = sensitive(sizes);
        let values = |group: Vec<u32>| group.iter().map(|i| sensitive[*i as usize]).collect();
        let everybody: Vec<u32> = (0..sensitive.len() as u32).collect();
        let buckets = Buckets::new(&everybody, &sensitive);
        buckets
            .anatomy(&sensitive, width)
            .into_iter()
            .map(values)
            .collect()
    }

    #[test]
    fn two_buckets_of_two_make_two_groups() {
        // As printed there must be more than N buckets, so that there is no group at all.
        assert_eq!(anatomy(&[2, 2], 2), [[0, 1], [0, 1]]);
    }

    #[test]
    fn the_largest_buckets_come_first() {
        // The two smallest first, as printed, would leave a, a, a.
        assert_eq!(anatomy(&[3, 2, 1], 2), [[0, 1], [0, 1], [0, 2]]);
        assert_eq!(anatomy(&[1, 1, 4, 2], 2), [[2, 3], [2, 3], [2, 0], [2, 1]]);
    }

    #[test]
    fn a_residue_joins_a_group_without_its_value() {
        assert_eq!(anatomy(&[2, 2, 1], 2), [vec![0, 1, 2], vec![0, 1]]);
        // One a too many stays alone.
        assert_eq!(anatomy(&[3, 2], 2), [vec![0, 1], vec![0, 1], vec![0]]);
    }

    #[test]
    fn eligible_tables_leave_nobody_and_repeat_no_value() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut eligible = 0;
        while eligible < 2000 {
            let width = random.random_range(2..=5);
            let values = random.random_range(width..=9);
            let sizes: Vec<usize> = (0..values).map(|_| random.random_range(1..=12)).collect();
            let all: usize = sizes.iter().sum();
            if sizes.iter().any(|size| size * width > all) {
                continue;
            }
            eligible += 1;
            let sensitive = sensitive(&sizes);
            let everybody: Vec<u32> = (0..all as u32).collect();
            let buckets = Buckets::new(&everybody, &sensitive);
            for groups in [
                buckets.anatomy(&sensitive, width),
                buckets.deal(all / width),
            ] {
                let mut members: Vec<u32> = groups.concat();
                members.sort_unstable();
                assert!(members.into_iter().eq(0..all as u32));
                for group in groups {
                    assert!(group.len() >= width);
                    let mut seen: Vec<u32> = group.iter().map(|i| sensitive[*i as usize]).collect();
                    seen.sort_unstable();
                    assert!(seen.is_sorted_by(|a, b| a < b), "{sizes:?} {width}");
                }
            }
        }
    }

    #[test]
    fn as_many_groups_are_dealt_as_beta_allows() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for _ in 0..2000 {
            let values = random.random_range(1..=6);
            let sizes: Vec<usize> = (0..values).map(|_| random.random_range(1..=12)).collect();
            let sensitive = sensitive(&sizes);
            let everybody: Vec<u32> = (0..sensitive.len() as u32).collect();
            let buckets = Buckets::new(&everybody, &sensitive);
            let beta = Ratio::new(random.random_range(1..=100), 100).unwrap();
            let holds = |groups: usize| {
                buckets.deal(groups).iter().all(|group| {
                    let count = |v: u32| {
                        group
                            .iter()
                            .filter(|i| sensitive[**i as usize] == v)
                            .count()
                    };
                    let most = (0..values as u32).map(count).max().unwrap_or(0);
                    beta.at_least(most as u64, group.len() as u64)
                })
            };
            let most = buckets.most_groups(beta);
            assert!(most <= everybody.len());
            assert!(!holds(1) || holds(most));
        }
    }

    #[test]
    fn the_printed_rule_gives_up_where_this_one_does_not() {
        // Algorithm 1, lines 6 to 19: the N smallest buckets while there are more than N; then each remaining record
        // to a group without its value.
        fn printed(sizes: &[usize], width: usize) -> bool {
            let mut left = sizes.to_vec();
            let mut lacking = vec![0; sizes.len()];
            loop {
                let mut occupied: Vec<usize> = (0..left.len()).filter(|b| left[*b] > 0).collect();
                if occupied.len() <= width {
                    return occupied.iter().all(|b| left[*b] <= lacking[*b]);
                }
                occupied.sort_by_key(|b| left[*b]);
                for bucket in 0..left.len() {
                    if occupied[..width].contains(&bucket) {
                        left[bucket] -= 1;
                    } else {
                        lacking[bucket] += 1;
                    }
                }
            }
        }
        assert!(!printed(&[2, 2], 2));
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(2);
        let (mut eligible, mut gave_up) = (0, 0);
        while eligible < 2000 {
            let width = random.random_range(2..=5);
            let values = random.random_range(width..=9);
            let sizes: Vec<usize> = (0..values).map(|_| random.random_range(1..=12)).collect();
            if sizes.iter().all(|size| size * width <= sizes.iter().sum()) {
                eligible += 1;
                gave_up += usize::from(!printed(&sizes, width));
            }
        }
        assert!(gave_up > eligible / 2, "{gave_up} of {eligible}");
    }
}
