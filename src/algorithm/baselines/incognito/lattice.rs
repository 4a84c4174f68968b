//! The lattice of recodings, and the search for its minimal valid ones.

use std::collections::HashMap;

use super::recoding::Recoding;
use crate::algorithm::Cancelled;

/// Which levels of each column are looked at, in ascending order, at least one each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lattice {
    levels: Vec<Vec<u32>>,
}

impl Lattice {
    /// The lattice of all combinations of levels of columns that have so many each, besides the lowest.
    ///
    /// Where there are more than `most` combinations, over all sets of columns, every second level of the column with
    /// the most is left out, the lowest and the highest never; at a tie, of the first such column. If that is not
    /// enough, columns are left at their highest level, the last one first.
    pub fn within(most: u64, highest: Vec<u32>) -> Self {
        let mut levels: Vec<Vec<u32>> = highest.iter().map(|h| (0..=*h).collect()).collect();
        while size(&levels) > most {
            let longest = levels.iter().map(Vec::len).max().unwrap_or(0);
            if longest > 2 {
                if let Some(column) = levels.iter_mut().find(|l| l.len() == longest) {
                    *column = every_second(column);
                }
            } else if let Some(column) = levels.iter_mut().rfind(|l| l.len() > 1) {
                column.drain(..1);
            } else {
                break;
            }
        }
        Self { levels }
    }

    fn len(&self) -> usize {
        self.levels.len()
    }

    /// The columns that have a choice.
    fn open(&self) -> Vec<usize> {
        (0..self.len())
            .filter(|c| self.levels[*c].len() > 1)
            .collect()
    }

    /// The recoding in which some columns have these steps and all others are at their highest level.
    fn recoding(&self, columns: &[usize], steps: &[usize]) -> Recoding {
        let highest = self.levels.iter().map(|l| l.last().copied().unwrap_or(0));
        let mut levels: Recoding = highest.collect();
        for (column, step) in columns.iter().zip(steps) {
            levels[*column] = self.levels[*column][*step];
        }
        levels
    }
}

/// Combinations of levels over all sets of columns; a column at its highest level is as good as none.
fn size(levels: &[Vec<u32>]) -> u64 {
    let factor = |levels: &Vec<u32>| match levels.len() as u64 {
        1 => 1,
        n => n + 1,
    };
    levels.iter().map(factor).fold(1, u64::saturating_mul)
}

fn every_second(levels: &[u32]) -> Vec<u32> {
    let last = levels.len() - 1;
    let kept = levels
        .iter()
        .enumerate()
        .filter(|(i, _)| *i == last || i % 2 == 0);
    kept.map(|(_, level)| *level).collect()
}

/// The valid recodings without a valid one below them. If `follows`, whatever is above a valid recoding is valid and
/// need not be tried, and what is valid is valid with any column at its highest level.
pub(super) fn minimal(
    lattice: &Lattice,
    follows: bool,
    is_valid: &mut dyn FnMut(&Recoding) -> Result<bool, Cancelled>,
) -> Result<Vec<Recoding>, Cancelled> {
    let open = lattice.open();
    let everything = (1u64 << open.len().min(63)) - 1;
    // Which combinations of steps are valid, by set of columns.
    let mut known: HashMap<u64, Vec<bool>> = HashMap::new();
    let mut sets: Vec<u64> = match follows {
        true => (0..=everything).collect(),
        false => vec![everything],
    };
    sets.sort_by_key(|set| set.count_ones());
    let mut found = vec![];
    for set in sets {
        let search = Search::new(lattice, &open, set);
        let mut valid = vec![false; search.size];
        let mut below = vec![false; search.size];
        for at in search.upwards() {
            let steps = search.steps(at);
            below[at] = search
                .predecessors(at, &steps)
                .any(|p| valid[p] || below[p]);
            valid[at] = if follows && below[at] {
                true
            } else if follows && search.fails_for_fewer(&steps, &known) {
                false
            } else {
                is_valid(&lattice.recoding(&search.columns, &steps))?
            };
            if set == everything && valid[at] && !below[at] {
                found.push(lattice.recoding(&search.columns, &steps));
            }
        }
        known.insert(set, valid);
    }
    Ok(found)
}

/// The combinations of steps of one set of columns, numbered; the last column counts fastest.
struct Search {
    set: u64,
    /// The columns in the set, and their places among all that have a choice.
    columns: Vec<usize>,
    places: Vec<usize>,
    counts: Vec<usize>,
    /// By how much a step of each column changes the number.
    weights: Vec<usize>,
    size: usize,
}

impl Search {
    fn new(lattice: &Lattice, open: &[usize], set: u64) -> Self {
        let places: Vec<usize> = (0..open.len()).filter(|i| set >> i & 1 == 1).collect();
        let columns: Vec<usize> = places.iter().map(|i| open[*i]).collect();
        let counts: Vec<usize> = columns.iter().map(|c| lattice.levels[*c].len()).collect();
        let mut weights = vec![1; counts.len()];
        for i in (1..counts.len()).rev() {
            weights[i - 1] = weights[i] * counts[i];
        }
        Self {
            set,
            size: counts.iter().product(),
            columns,
            places,
            counts,
            weights,
        }
    }

    /// All combinations, each after those below it.
    fn upwards(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.size).collect();
        all.sort_by_cached_key(|at| self.steps(*at).iter().sum::<usize>());
        all
    }

    fn steps(&self, at: usize) -> Vec<usize> {
        let mut rest = at;
        let mut steps = vec![0; self.counts.len()];
        for (step, count) in steps.iter_mut().zip(&self.counts).rev() {
            *step = rest % count;
            rest /= count;
        }
        steps
    }

    /// The combinations with one column one step lower.
    fn predecessors<'a>(
        &'a self,
        at: usize,
        steps: &'a [usize],
    ) -> impl Iterator<Item = usize> + 'a {
        let lower = steps
            .iter()
            .zip(&self.weights)
            .filter(|(step, _)| **step > 0);
        lower.map(move |(_, weight)| at - weight)
    }

    /// Whether the combination is known to be invalid without one of its columns.
    fn fails_for_fewer(&self, steps: &[usize], known: &HashMap<u64, Vec<bool>>) -> bool {
        (0..self.places.len()).any(|without| {
            let set = self.set & !(1 << self.places[without]);
            let others = |i: &usize| *i != without;
            let fewer = (0..steps.len()).filter(others);
            let at = fewer.fold(0, |at, i| at * self.counts[i] + steps[i]);
            known.get(&set).is_some_and(|valid| !valid[at])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_lattices_are_thinned() {
        let levels = |most, highest: &[u32]| Lattice::within(most, highest.to_vec()).levels;
        assert_eq!(levels(100, &[2, 1]), [vec![0, 1, 2], vec![0, 1]]);
        assert_eq!(levels(20, &[6, 1]), [vec![0, 2, 4, 6], vec![0, 1]]);
        assert_eq!(levels(20, &[5, 1]), [vec![0, 2, 4, 5], vec![0, 1]]);
        assert_eq!(levels(9, &[9, 9]), [[0, 9], [0, 9]]);
        assert_eq!(levels(8, &[9, 9]), [vec![0, 9], vec![9]]);
        assert_eq!(levels(1, &[3, 0]), [[3], [0]]);
        assert_eq!(levels(1, &[]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn the_search_agrees_with_trying_everything() {
        // Valid is what lies above one of some random corners.
        let mut state = 1u64;
        let mut random = |below: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32 % below
        };
        for _ in 0..3000 {
            let highest: Vec<u32> = (0..1 + random(4)).map(|_| random(4)).collect();
            let corners: Vec<Vec<u32>> = (0..random(4))
                .map(|_| highest.iter().map(|h| random(h + 1)).collect())
                .collect();
            let above = |r: &[u32], c: &[u32]| r.iter().zip(c).all(|(r, c)| r >= c);
            let valid = |r: &Recoding| corners.iter().any(|c| above(r, c));
            let lattice = Lattice::within(u64::MAX, highest.clone());
            for follows in [true, false] {
                let mut found = minimal(&lattice, follows, &mut |r| Ok(valid(r))).unwrap();
                found.sort();
                let mut expected: Vec<Recoding> = corners
                    .iter()
                    .filter(|c| !corners.iter().any(|d| d != *c && above(c, d)))
                    .cloned()
                    .collect();
                expected.sort();
                expected.dedup();
                assert_eq!(found, expected, "{highest:?} {corners:?}");
            }
        }
    }

    #[test]
    fn what_follows_is_not_tried() {
        let lattice = Lattice::within(u64::MAX, vec![3, 3, 3]);
        let mut tried = 0;
        let found = minimal(&lattice, true, &mut |levels| {
            tried += 1;
            Ok(levels[0] >= 3)
        });
        assert_eq!(found, Ok(vec![vec![3, 0, 0]]));
        assert!(tried < 20, "{tried} of 64");
    }
}
