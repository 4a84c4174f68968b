//! EIR l-diversity of one class: does every reasoning set hold at least `l` values?
//!
//! A reasoning set takes one record of every individual (Wang 2018, Def. 3.2). The values of a reasoning set hit
//! every fingerprint, and every minimal hitting set is the values of some reasoning set; so the fewest values of
//! a reasoning set are the size of a minimum hitting set (Theorem 3.1, which holds in both directions).
//! Small spaces are enumerated by the definition. Large ones are searched for a hitting set of `l - 1` values.
//!
//! A family is one slice per individual: its different values, in ascending order.

use std::ops::Range;

/// Reasoning spaces up to this size are enumerated.
const ENUMERATED_SETS: usize = 1024;
/// Words looked at in one search after which the answer is [`Answer::Undecided`]; a few seconds of work. Counted,
/// not timed, so that the answer depends on the class alone.
const SEARCH_WORDS: usize = 1 << 30;
/// Words of 64 individuals that one table of a search may take, 64 MiB.
const TABLE_WORDS: usize = 8 << 20;

/// Whether a property holds of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It holds.
    Holds,
    /// It does not hold.
    Fails,
    /// The search ended at its limit; to be treated as if it failed.
    Undecided,
}

/// The size of a minimum hitting set, as far as the search went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Minimum {
    /// The size.
    Exact(usize),
    /// There is no smaller one; the search ended at its limit before it found one of this size.
    AtLeast(usize),
}

impl Minimum {
    /// The size, or the bound below it.
    pub fn size(&self) -> usize {
        match *self {
            Self::Exact(size) | Self::AtLeast(size) => size,
        }
    }
}

/// Whether every reasoning set of a class holds at least `l` different values (Wang 2018, Def. 3.3).
///
/// An individual without values makes the reasoning space empty, and any claim about its sets true; the answer is
/// [`Answer::Fails`] then.
pub fn eir_diverse(family: &[&[u32]], l: usize) -> Answer {
    let Some(fewer) = l.checked_sub(1) else {
        return Answer::Holds;
    };
    // One record of each individual cannot show more values than there are individuals.
    if family.len() < l || family.iter().any(|values| values.is_empty()) {
        return Answer::Fails;
    }
    if let Some(reached) = enumerate(family, l) {
        return if reached {
            Answer::Holds
        } else {
            Answer::Fails
        };
    }
    match Family::new(family).hit_by(fewer) {
        Some(true) => Answer::Fails,
        Some(false) => Answer::Holds,
        None => Answer::Undecided,
    }
}

/// The fewest values that a reasoning set of a class holds: the largest `l` of its EIR l-diversity.
///
/// 0 for no individuals and, as in [`eir_diverse`], for a family with an empty fingerprint.
pub fn min_hitting_set(family: &[&[u32]]) -> Minimum {
    if family.iter().any(|values| values.is_empty()) {
        return Minimum::Exact(0);
    }
    let family = Family::new(family);
    let mut size = family.packing();
    loop {
        match family.hit_by(size) {
            Some(true) => return Minimum::Exact(size),
            Some(false) => size += 1,
            None => return Minimum::AtLeast(size),
        }
    }
}

/// The size of the reasoning space (Wang 2018, Eq. 8), where an individual's records show different values.
fn reasoning_sets(family: &[&[u32]]) -> usize {
    let sizes = family.iter().map(|values| values.len());
    sizes.fold(1, usize::saturating_mul)
}

/// Goes through the reasoning space if it is small: whether every reasoning set has at least `l` values.
fn enumerate(family: &[&[u32]], l: usize) -> Option<bool> {
    if reasoning_sets(family) > ENUMERATED_SETS {
        return None;
    }
    // Individuals with one value take part in every reasoning set with that value.
    let (single, several): (Vec<&[u32]>, Vec<&[u32]>) =
        family.iter().partition(|values| values.len() == 1);
    let mut chosen: Vec<u32> = single.concat();
    chosen.sort_unstable();
    chosen.dedup();
    Some(completions_reach(&several, l, &mut chosen))
}

/// Whether `chosen` has at least `l` values however the remaining individuals are represented.
fn completions_reach(remaining: &[&[u32]], l: usize, chosen: &mut Vec<u32>) -> bool {
    if chosen.len() >= l {
        return true;
    }
    let Some((values, remaining)) = remaining.split_first() else {
        return false;
    };
    values.iter().all(|value| {
        if chosen.contains(value) {
            return completions_reach(remaining, l, chosen);
        }
        chosen.push(*value);
        let reached = completions_reach(remaining, l, chosen);
        chosen.pop();
        reached
    })
}

/// Different fingerprints, smallest first, with their values renumbered from 0.
struct Family {
    fingerprints: Vec<Vec<u32>>,
    /// Pairs of a value, as it came, and a fingerprint that holds it, in ascending order.
    incidence: Vec<(u32, u32)>,
    /// Where the pairs of each value are.
    holders: Vec<Range<usize>>,
}

impl Family {
    fn new(family: &[&[u32]]) -> Self {
        let mut family = family.to_vec();
        family.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        family.dedup();
        let mut incidence: Vec<(u32, u32)> = (0u32..)
            .zip(&family)
            .flat_map(|(at, values)| values.iter().map(move |&value| (value, at)))
            .collect();
        incidence.sort_unstable();
        let mut fingerprints: Vec<Vec<u32>> =
            family.iter().map(|v| Vec::with_capacity(v.len())).collect();
        let mut holders: Vec<Range<usize>> = Vec::new();
        for of_value in incidence.chunk_by(|a, b| a.0 == b.0) {
            for &(_, at) in of_value {
                fingerprints[at as usize].push(holders.len() as u32);
            }
            let start = holders.last().map_or(0, |last| last.end);
            holders.push(start..start + of_value.len());
        }
        Self {
            fingerprints,
            incidence,
            holders,
        }
    }

    /// The fingerprints that hold the value.
    fn holders(&self, value: usize) -> impl Iterator<Item = usize> {
        let pairs = &self.incidence[self.holders[value].clone()];
        pairs.iter().map(|&(_, at)| at as usize)
    }

    /// Whether some set of at most `size` values hits every fingerprint; `None` if the search ended at its limit.
    fn hit_by(&self, size: usize) -> Option<bool> {
        let individuals = self.fingerprints.len();
        let most = self.holders.iter().map(Range::len).max().unwrap_or(0);
        if self.packing() > size || individuals > size.saturating_mul(most) {
            return Some(false);
        }
        if individuals <= size || self.greedy(size) {
            return Some(true);
        }
        Search::try_new(self)?.hit_by(size, SEARCH_WORDS)
    }

    /// How many fingerprints a greedy choice of pairwise disjoint ones finds; each needs a value of its own.
    fn packing(&self) -> usize {
        let mut taken = vec![false; self.holders.len()];
        let mut disjoint = 0;
        for values in &self.fingerprints {
            if values.iter().all(|&v| !taken[v as usize]) {
                disjoint += 1;
                values.iter().for_each(|&v| taken[v as usize] = true);
            }
        }
        disjoint
    }

    /// Whether the values that hit most, taken one after the other, hit all within `size`.
    fn greedy(&self, size: usize) -> bool {
        let mut gain: Vec<usize> = self.holders.iter().map(Range::len).collect();
        let mut hit = vec![false; self.fingerprints.len()];
        for _ in 0..size {
            let best = gain.iter().enumerate().max_by_key(|&(_, gain)| gain);
            let Some((best, 1..)) = best.map(|(value, &gain)| (value, gain)) else {
                break;
            };
            for at in self.holders(best) {
                if !std::mem::replace(&mut hit[at], true) {
                    for &value in &self.fingerprints[at] {
                        gain[value as usize] -= 1;
                    }
                }
            }
        }
        hit.iter().all(|&hit| hit)
    }
}

/// Search for a hitting set by branching. Sets of fingerprints are bits, `words` words each.
struct Search {
    words: usize,
    individuals: usize,
    /// For every value that may be needed, the fingerprints it hits; those that hit many come first.
    hits: Vec<Vec<u64>>,
    /// For every fingerprint, its values among `hits`.
    values: Vec<Vec<u32>>,
    /// For every fingerprint, those that share a value with it.
    neighbours: Vec<Vec<u64>>,
}

/// Fingerprints that the values chosen so far do not hit, and the values that may be chosen next: every hitting set that
/// goes on from here has one of them.
struct Branch {
    unhit: Vec<u64>,
    next: Vec<u32>,
    tried: usize,
}

impl Search {
    /// `None` if the tables would be too large.
    fn try_new(family: &Family) -> Option<Self> {
        let individuals = family.fingerprints.len();
        let words = individuals.div_ceil(64);
        if individuals.max(family.holders.len()) > TABLE_WORDS / words.max(1) {
            return None;
        }
        let set_of = |value| {
            let mut set = vec![0u64; words];
            for at in family.holders(value) {
                set[at / 64] |= 1 << (at % 64);
            }
            set
        };
        let mut sets: Vec<Vec<u64>> = (0..family.holders.len()).map(set_of).collect();
        sets.sort_unstable_by(|a, b| (len(b), b).cmp(&(len(a), a)));
        sets.dedup();
        // A value is not needed if another one hits all that it hits. The quadratic comparison is worth it only
        // while it is small beside the search.
        let mut hits: Vec<Vec<u64>> = Vec::new();
        let compare = sets.len().saturating_mul(sets.len()) <= TABLE_WORDS / words.max(1);
        for set in sets {
            if !compare || !hits.iter().any(|larger| is_subset(&set, larger)) {
                hits.push(set);
            }
        }
        let mut values = vec![Vec::new(); individuals];
        let mut neighbours = vec![vec![0u64; words]; individuals];
        for (value, set) in (0u32..).zip(&hits) {
            for at in bits(set) {
                values[at].push(value);
                neighbours[at]
                    .iter_mut()
                    .zip(set)
                    .for_each(|(n, s)| *n |= s);
            }
        }
        Some(Self {
            words,
            individuals,
            hits,
            values,
            neighbours,
        })
    }

    /// As [`Family::hit_by`]; looks at about `limit` words.
    fn hit_by(&self, size: usize, limit: usize) -> Option<bool> {
        let mut everyone = vec![u64::MAX; self.words];
        if let Some(last) = everyone.last_mut() {
            *last >>= (64 - self.individuals % 64) % 64;
        }
        let mut steps = limit / (64 + self.hits.len() * self.words);
        // Values of branches that were searched in vain, which no set found later needs.
        let mut useless = vec![false; self.hits.len()];
        let mut path: Vec<Branch> = Vec::new();
        path.extend(self.branch(size, everyone, &useless));
        while let Some(branch) = path.last_mut() {
            let Some(&value) = branch.next.get(branch.tried) else {
                branch
                    .next
                    .iter()
                    .for_each(|v| useless[*v as usize] = false);
                path.pop();
                continue;
            };
            steps = steps.checked_sub(1)?;
            branch.tried += 1;
            useless[value as usize] = true;
            let hit = &self.hits[value as usize];
            let unhit: Vec<u64> = branch.unhit.iter().zip(hit).map(|(u, h)| u & !h).collect();
            if len(&unhit) == 0 {
                return Some(true);
            }
            path.extend(self.branch(size - path.len(), unhit, &useless));
        }
        Some(false)
    }

    /// Where to go on with at most `size` further values; `None` if they cannot hit all that is unhit.
    ///
    /// A hitting set has a value of each fingerprint, so of the one with the fewest. It also has a value that hits at least
    /// as many as one of `size` values must on average. Whichever are fewer are to be tried.
    fn branch(&self, size: usize, unhit: Vec<u64>, useless: &[bool]) -> Option<Branch> {
        let individuals = len(&unhit);
        if size == 0 || self.more_apart_than(size, &unhit) {
            return None;
        }
        let useful = |value: &u32| !useless[*value as usize];
        let mut gains: Vec<(usize, u32)> = (0u32..)
            .zip(&self.hits)
            .filter(|(value, _)| useful(value))
            .map(|(value, hit)| (common(hit, &unhit), value))
            .filter(|(gain, _)| *gain > 0)
            .collect();
        gains.sort_unstable_by_key(|&(gain, value)| (std::cmp::Reverse(gain), value));
        let most: usize = gains.iter().take(size).map(|(gain, _)| gain).sum();
        if most < individuals {
            return None;
        }
        let fair_share = individuals.div_ceil(size);
        let large = gains.partition_point(|(gain, _)| *gain >= fair_share);
        let fewest = bits(&unhit).min_by_key(|at| self.values[*at].len());
        let own = fewest.map_or(&[][..], |at| &self.values[at]);
        let own: Vec<u32> = own.iter().copied().filter(useful).collect();
        let large = gains[..large].iter().map(|(_, value)| *value);
        let next = match own.len() < large.len() {
            true => own,
            false => large.collect(),
        };
        Some(Branch {
            unhit,
            next,
            tried: 0,
        })
    }

    /// Whether more than `size` fingerprints, chosen greedily, have no value in common: each needs a value of its own.
    fn more_apart_than(&self, size: usize, unhit: &[u64]) -> bool {
        let mut apart = unhit.to_vec();
        for _ in 0..=size {
            let Some(first) = bits(&apart).next() else {
                return false;
            };
            let near = &self.neighbours[first];
            apart.iter_mut().zip(near).for_each(|(a, n)| *a &= !n);
        }
        true
    }
}

fn len(set: &[u64]) -> usize {
    set.iter().map(|word| word.count_ones() as usize).sum()
}

fn common(a: &[u64], b: &[u64]) -> usize {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a & b).count_ones() as usize)
        .sum()
}

fn is_subset(set: &[u64], of: &[u64]) -> bool {
    set.iter().zip(of).all(|(s, o)| s & !o == 0)
}

fn bits(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(at, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(at * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_paper() {
        // Below Def. 3.5: the minimum hitting set is {x2}.
        assert_eq!(
            min_hitting_set(&[&[2, 3], &[2, 4], &[1, 2]]),
            Minimum::Exact(1)
        );
        // Incremental enumeration by Algorithms 3 and 5 says 3 here; {b, c} hits all.
        let family: [&[u32]; 4] = [&[1, 2], &[1, 3], &[2, 4], &[3, 5]];
        assert_eq!(min_hitting_set(&family), Minimum::Exact(2));
        assert_eq!(eir_diverse(&family, 2), Answer::Holds);
        assert_eq!(eir_diverse(&family, 3), Answer::Fails);
    }

    #[test]
    fn the_example_of_algorithm_3_has_four_minimal_hitting_sets() {
        // The paper's tree shows three; {x1, x3, x4, x7} is missing (docs/theory/papers.md E1). Their minimum is right.
        let family: [&[u32]; 8] = [
            &[1, 3],
            &[1, 3, 5],
            &[1, 6],
            &[3, 5],
            &[5, 7],
            &[4],
            &[4, 5],
            &[4, 6],
        ];
        assert_eq!(min_hitting_set(&family), Minimum::Exact(3));
        assert_eq!(eir_diverse(&family, 3), Answer::Holds);
        assert_eq!(eir_diverse(&family, 4), Answer::Fails);
        let hits = |set: u32| family.iter().all(|s| s.iter().any(|v| set >> v & 1 == 1));
        let minimal = |set: &u32| {
            let without = (0..8).map(|v| set & !(1 << v)).filter(|less| less != set);
            hits(*set) && without.into_iter().all(|less| !hits(less))
        };
        let values = |set: u32| (0..8u32).filter(move |v| set >> v & 1 == 1).collect();
        let mut sets: Vec<Vec<u32>> = (0..1 << 8).filter(minimal).map(values).collect();
        sets.sort();
        assert_eq!(
            sets,
            [
                vec![1, 3, 4, 7],
                vec![1, 4, 5],
                vec![3, 4, 5, 6],
                vec![3, 4, 6, 7]
            ]
        );
    }

    #[test]
    fn reasoning_spaces_of_the_paper() {
        // Hypertension, heart, cancer, diabetes, HIV. Table 3, Q2: individuals 1, 3 and 4 have 2 · 1 · 2 reasoning sets.
        let table_3: [&[u32]; 3] = [&[0, 1], &[0], &[0, 3]];
        assert_eq!(reasoning_sets(&table_3), 4);
        assert_eq!(fewest_values_of_reasoning_sets(&table_3), 1);
        // Table 4, Q2: individuals 1, 2, 3 and 5 have two, of three and four values.
        let table_4: [&[u32]; 4] = [&[0, 1], &[2], &[0], &[4]];
        assert_eq!(reasoning_sets(&table_4), 2);
        assert_eq!(fewest_values_of_reasoning_sets(&table_4), 3);
        assert_eq!(reasoning_sets(&[]), 1);
        // While Q1 of Table 4 grows: {leukaemia, heart} and {syphilis} are not yet 3-diverse.
        let growing: [&[u32]; 2] = [&[1, 5], &[6]];
        assert_eq!(min_hitting_set(&growing), Minimum::Exact(2));
        assert_eq!(eir_diverse(&growing, 2), Answer::Holds);
        assert_eq!(eir_diverse(&growing, 3), Answer::Fails);
    }

    #[test]
    fn edges() {
        assert_eq!(min_hitting_set(&[]), Minimum::Exact(0));
        assert_eq!(eir_diverse(&[], 0), Answer::Holds);
        assert_eq!(eir_diverse(&[], 1), Answer::Fails);
        assert_eq!(min_hitting_set(&[&[1], &[]]), Minimum::Exact(0));
        assert_eq!(eir_diverse(&[&[1], &[]], 1), Answer::Fails);
        // Deep stacks would end here: every individual has one and the same value, or one of its own.
        let same: Vec<&[u32]> = vec![&[1]; 300_000];
        assert_eq!(eir_diverse(&same, 2), Answer::Fails);
        let own: Vec<[u32; 2]> = (0..200_000).map(|v| [2 * v, 2 * v + 1]).collect();
        let own: Vec<&[u32]> = own.iter().map(|v| &v[..]).collect();
        assert_eq!(eir_diverse(&own, 200_000), Answer::Holds);
        assert_eq!(eir_diverse(&own, 200_001), Answer::Fails);
        assert_eq!(eir_diverse(&own, usize::MAX), Answer::Fails);
    }

    #[test]
    fn enumeration_and_hitting_sets_agree() {
        let mut random = Random(0x0DD_B1A5);
        for round in 0..6000 {
            let domain = 2 + random.below(9);
            let individuals = 1 + random.below(6);
            let family = random.family(individuals, domain, 4);
            let family: Vec<&[u32]> = family.iter().map(|v| &v[..]).collect();
            let fewest = fewest_values_of_reasoning_sets(&family);
            assert_eq!(min_hitting_set(&family), Minimum::Exact(fewest), "{round}");
            let search = Search::try_new(&Family::new(&family)).unwrap();
            for l in 0..=family.len() + 1 {
                let holds = l <= fewest;
                let answer = if holds { Answer::Holds } else { Answer::Fails };
                assert_eq!(eir_diverse(&family, l), answer, "{round}");
                assert_eq!(enumerate(&family, l).unwrap_or(holds), holds, "{round}");
                if l > 1 {
                    let hit = search.hit_by(l - 1, usize::MAX);
                    assert_eq!(hit, Some(!holds), "{round}");
                }
            }
        }
    }

    #[test]
    fn classes_of_more_than_a_word_agree_with_all_subsets() {
        let mut random = Random(0xFACADE);
        for _ in 0..60 {
            let individuals = 60 + random.below(90);
            let family = random.family(individuals, 12, 4);
            let family: Vec<&[u32]> = family.iter().map(|v| &v[..]).collect();
            let hits_all = |set: u32| family.iter().all(|s| s.iter().any(|v| set >> v & 1 == 1));
            let smallest = (0..1u32 << 12).filter(|&set| hits_all(set));
            let smallest = smallest.map(|set| set.count_ones() as usize).min();
            assert_eq!(Some(min_hitting_set(&family).size()), smallest);
            let search = Search::try_new(&Family::new(&family)).unwrap();
            for size in 1..12 {
                assert_eq!(
                    search.hit_by(size, usize::MAX),
                    Some(Some(size) >= smallest)
                );
            }
        }
    }

    #[test]
    fn many_values_of_each_individual_are_decided() {
        let mut random = Random(0xD1CE);
        for individuals in [24, 32, 40, 48, 56] {
            let family: Vec<Vec<u32>> = (0..individuals)
                .map(|_| {
                    let mut values: Vec<u32> =
                        (0..450).map(|_| random.below(5000) as u32).collect();
                    values.sort_unstable();
                    values.dedup();
                    values
                })
                .collect();
            let family: Vec<&[u32]> = family.iter().map(|v| &v[..]).collect();
            for l in [4, 5, 6] {
                let answer = eir_diverse(&family, l);
                assert_ne!(answer, Answer::Undecided, "{individuals} {l}");
            }
        }
    }

    #[test]
    fn a_search_that_ends_early_is_undecided_and_never_wrong() {
        let mut family = Random(7).family(120, 40, 5);
        family.retain(|values| values.len() > 2);
        let family: Vec<&[u32]> = family.iter().map(|v| &v[..]).collect();
        let Minimum::Exact(minimum) = min_hitting_set(&family) else {
            panic!("within reach of a search");
        };
        let search = Search::try_new(&Family::new(&family)).unwrap();
        for (size, hit) in [(minimum - 1, false), (minimum, true)] {
            assert_eq!(search.hit_by(size, 0), None);
            let mut limit = 1 << 8;
            while search.hit_by(size, limit).is_none() {
                limit *= 2;
            }
            assert!(limit > 1 << 8, "not decided at once");
            assert_eq!(search.hit_by(size, limit), Some(hit));
        }
    }

    /// Definition 3.2 word for word, without any shortcut.
    fn fewest_values_of_reasoning_sets(family: &[&[u32]]) -> usize {
        let mut sets: Vec<Vec<u32>> = vec![vec![]];
        for values in family {
            let extended = sets.iter().flat_map(|set| {
                values.iter().map(move |&value| {
                    let mut set = set.clone();
                    set.push(value);
                    set.sort_unstable();
                    set.dedup();
                    set
                })
            });
            sets = extended.collect();
        }
        sets.iter().map(Vec::len).min().unwrap()
    }

    /// xorshift64*.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
        }

        /// Sets of 1 to `most` values.
        fn family(&mut self, individuals: usize, domain: usize, most: usize) -> Vec<Vec<u32>> {
            let set = |random: &mut Self| {
                let values = 1 + random.below(most);
                let mut set: Vec<u32> = (0..values).map(|_| random.below(domain) as u32).collect();
                set.sort_unstable();
                set.dedup();
                set
            };
            (0..individuals).map(|_| set(self)).collect()
        }
    }
}
