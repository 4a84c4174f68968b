//! Decides whether a few sensitive values are enough to hit every fingerprint of a class.
//!
//! A *hitting set* has a value in common with every fingerprint. Wang 2018, Algorithms 2, 3 and 5 enumerate all
//! minimal hitting sets, which is exponential in memory and, as printed, misses some (docs/theory/papers.md E1). Only the
//! *decision* "is there one of at most k values?" is needed (Theorem 3.1), and a bounded search answers it:
//!
//! ```text
//!   un-hit individuals, k picks left
//!     none un-hit                                  ─► yes
//!     the k most frequent values hit too few       ─► no
//!     else take the individual with the fewest useful values: one of them must be picked; try each,
//!          most frequent first, without those that another value of the individual dominates
//! ```
//!
//! A value is a bit mask of the individuals that have it. A value that was tried in vain at a branch is not tried
//! again below its later siblings, nor is any value it dominates.

mod search;
mod values;

use self::search::Search;
use self::values::ValueIndex;

/// A collection of fingerprints, and the search for values that hit them all.
#[derive(Debug, Clone)]
pub(super) struct Family {
    values: ValueIndex,
    /// Individuals per value, by local number of the value.
    frequency: Vec<u32>,
    /// `stride` words per value: the individuals that have it.
    masks: Vec<u64>,
    stride: usize,
    /// Values by falling frequency, the place of each in that order, and how many values have at least a frequency.
    order: Vec<u32>,
    place: Vec<u32>,
    at_least: Vec<u32>,
    /// The values of individual `i` are `members[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<u32>,
    members: Vec<u32>,
    search: Search,
}

/// The answer to "is there a hitting set of at most k values?".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Yes: [`Family::witness`].
    Found,
    /// No.
    Absent,
    /// The search was given up.
    Exhausted,
}

impl Family {
    pub(super) fn new() -> Self {
        Self {
            values: ValueIndex::new(),
            frequency: vec![],
            masks: vec![],
            stride: 1,
            order: vec![],
            place: vec![],
            at_least: vec![0, 0],
            offsets: vec![0],
            members: vec![],
            search: Search::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.frequency.clear();
        self.masks.clear();
        self.stride = 1;
        self.order.clear();
        self.place.clear();
        self.at_least.clear();
        self.at_least.extend([0, 0]);
        self.offsets.truncate(1);
        self.members.clear();
        self.search.picked.clear();
    }

    /// Number of fingerprints.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Words of memory that the bit masks take.
    pub(super) fn mask_words(&self) -> usize {
        self.masks.len()
    }

    /// Adds a fingerprint, which must not be empty; returns the local numbers of its values.
    pub(super) fn add(&mut self, fingerprint: &[u32]) -> &[u32] {
        let individual = self.len();
        if individual == self.stride * 64 {
            self.widen();
        }
        let start = self.members.len();
        for code in fingerprint {
            let value = self.values.number(*code);
            if value as usize == self.frequency.len() {
                self.place.push(self.order.len() as u32);
                self.order.push(value);
                self.frequency.push(0);
                self.masks.resize(self.masks.len() + self.stride, 0);
            }
            self.masks[value as usize * self.stride + individual / 64] |= 1 << (individual % 64);
            self.members.push(value);
            self.count(value);
        }
        self.offsets.push(self.members.len() as u32);
        &self.members[start..]
    }

    /// The local numbers of the values of one fingerprint.
    pub(super) fn of(&self, individual: usize) -> &[u32] {
        &self.members[self.offsets[individual] as usize..self.offsets[individual + 1] as usize]
    }

    /// The local number of a code that some fingerprint has.
    pub(super) fn value(&self, code: u32) -> Option<u32> {
        self.values.known(code)
    }

    /// Number of individuals with a value.
    pub(super) fn frequency(&self, value: u32) -> u32 {
        self.frequency[value as usize]
    }

    /// Whether even the `picks` most frequent values together hit too few individuals.
    pub(super) fn too_many_for(&self, picks: usize) -> bool {
        let most = self.order.iter().take(picks);
        most.map(|value| self.frequency[*value as usize] as usize)
            .sum::<usize>()
            < self.len()
    }

    /// The hitting set that the last [`Decision::Found`] was about, as local numbers.
    pub(super) fn witness(&self) -> &[u32] {
        &self.search.picked
    }

    /// Whether some hitting set has at most `picks` values; looks at about `budget` words of memory at most.
    pub(super) fn decide(&mut self, picks: usize, budget: u64) -> Decision {
        let n = self.len();
        let stride = self.stride;
        let search = &mut self.search;
        search.budget = budget;
        search.picked.clear();
        search.candidates.clear();
        search.excluded.clear();
        search.excluded.resize(self.frequency.len(), false);
        search
            .residual
            .resize(self.frequency.len().max(search.residual.len()), 0);
        search
            .histogram
            .resize((n + 1).max(search.histogram.len()), 0);
        search.unhit.clear();
        search.unhit.resize(stride, u64::MAX);
        for (word, bits) in search.unhit.iter_mut().enumerate() {
            let here = n.saturating_sub(word * 64);
            if here < 64 {
                *bits = (1 << here) - 1;
            }
        }
        match stride {
            1 => self.branch::<1>(0, picks),
            2 => self.branch::<2>(0, picks),
            _ => self.branch::<0>(0, picks),
        }
    }

    /// Moves a value to the front of those with its frequency and raises the frequency: the order stays sorted.
    fn count(&mut self, value: u32) {
        let raised = self.frequency[value as usize] as usize + 1;
        self.frequency[value as usize] = raised as u32;
        if self.at_least.len() <= raised {
            self.at_least.push(0);
        }
        let to = self.at_least[raised];
        self.at_least[raised] += 1;
        let from = self.place[value as usize];
        let other = self.order[to as usize];
        self.order.swap(to as usize, from as usize);
        self.place[other as usize] = from;
        self.place[value as usize] = to;
    }

    /// Doubles the room for individuals.
    fn widen(&mut self) {
        let wide = self.stride * 2;
        let mut masks = vec![0; self.frequency.len() * wide];
        for (new, old) in masks
            .chunks_exact_mut(wide)
            .zip(self.masks.chunks_exact(self.stride))
        {
            new[..self.stride].copy_from_slice(old);
        }
        self.masks = masks;
        self.stride = wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of a minimum hitting set by trying all sets of values.
    fn minimum(sets: &[Vec<u32>], values: u32) -> usize {
        let masks: Vec<u32> = sets
            .iter()
            .map(|s| s.iter().fold(0, |m, v| m | 1 << v))
            .collect();
        (0u32..1 << values)
            .filter(|pick| masks.iter().all(|m| m & pick != 0))
            .map(|pick| pick.count_ones() as usize)
            .min()
            .unwrap()
    }

    fn family(sets: &[Vec<u32>]) -> Family {
        let mut family = Family::new();
        for set in sets {
            family.add(set);
        }
        family
    }

    fn check(sets: &[Vec<u32>], minimum: usize) {
        let mut family = family(sets);
        for picks in 0..=minimum + 1 {
            let decision = family.decide(picks, u64::MAX);
            if picks < minimum {
                assert_eq!(decision, Decision::Absent, "{picks} {sets:?}");
            } else {
                assert_eq!(decision, Decision::Found, "{picks} {sets:?}");
                assert!(family.witness().len() <= picks);
                assert!(
                    (0..sets.len())
                        .all(|i| { family.of(i).iter().any(|v| family.witness().contains(v)) })
                );
            }
            assert!(!family.too_many_for(picks) || picks < minimum);
        }
    }

    #[test]
    fn the_papers_own_counter_example_is_two_not_three() {
        // docs/theory/papers.md E1: {a,b},{a,c},{b,d},{c,e}; Algorithms 3 and 5 as printed say three.
        check(&[vec![0, 1], vec![0, 2], vec![1, 3], vec![2, 4]], 2);
    }

    #[test]
    fn the_example_of_algorithm_3_needs_three_values() {
        let sets = ["13", "135", "16", "35", "57", "4", "45", "46"];
        let digits = |set: &str| set.bytes().map(|digit| u32::from(digit - b'0')).collect();
        check(&sets.map(digits), 3);
    }

    #[test]
    fn decisions_agree_with_brute_force() {
        let mut random = Random(1);
        for round in 0..4000 {
            let values = 2 + random.below(11);
            let sets: Vec<Vec<u32>> = (0..1 + random.below(14))
                .map(|_| {
                    let mut set: Vec<u32> = (0..1 + random.below(1 + round % 5))
                        // The smaller of two draws makes some values frequent.
                        .map(|_| random.below(values).min(random.below(values)))
                        .collect();
                    set.sort_unstable();
                    set.dedup();
                    set
                })
                .collect();
            check(&sets, minimum(&sets, values));
        }
    }

    #[test]
    fn more_than_64_and_128_individuals() {
        let mut random = Random(2);
        for individuals in [63, 64, 65, 127, 128, 129, 200, 300] {
            let sets: Vec<Vec<u32>> = (0..individuals)
                .map(|_| {
                    let mut set = vec![random.below(12), random.below(12), random.below(12)];
                    set.sort_unstable();
                    set.dedup();
                    set
                })
                .collect();
            check(&sets, minimum(&sets, 12));
        }
    }

    #[test]
    fn a_cleared_family_is_like_a_new_one() {
        let mut family = family(&[vec![7, 9], vec![9]]);
        assert_eq!(family.decide(1, u64::MAX), Decision::Found);
        family.clear();
        family.add(&[7]);
        family.add(&[u32::MAX - 1]);
        assert_eq!(family.decide(1, u64::MAX), Decision::Absent);
        assert_eq!(family.frequency.len(), 2);
    }

    #[test]
    fn without_budget_the_search_gives_up() {
        // The edges of a complete graph of five nodes: three nodes could cover ten edges, but do not.
        let sets: Vec<Vec<u32>> = (0..5)
            .flat_map(|i| (0..i).map(move |j| vec![j, i]))
            .collect();
        assert_eq!(family(&sets).decide(3, 0), Decision::Exhausted);
        check(&sets, 4);
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u32) -> u32 {
            self.0 = self
                .0
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((self.0 >> 33) % u64::from(bound)) as u32
        }
    }
}
