//! How many of a class may have the same values, and how many have a value in common.

use super::published::Counted;
use super::tree::Tree;

/// The most individuals whose labels can all describe one set of values. That is the heaviest group of fingerprints that
/// are compatible in pairs: the lowest labels of all of them describe such a set.
pub(crate) fn most_alike(counted: &[Counted<'_>], tree: &Tree) -> usize {
    let compatible = |a: usize, b: usize| tree.are_compatible(counted[a].0, counted[b].0);
    let mut neighbours = vec![vec![]; counted.len()];
    for a in 0..counted.len() {
        for b in a + 1..counted.len() {
            if compatible(a, b) {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        }
    }
    let mut search = Heaviest {
        neighbours: &neighbours,
        weights: &counted.iter().map(|(_, n)| *n).collect::<Vec<_>>(),
        best: 0,
        steps: LIMIT,
    };
    // A group is found from its first member: all others are neighbours of it.
    for first in 0..counted.len() {
        let later = neighbours[first].iter().copied().filter(|at| *at > first);
        search.extend(counted[first].1, later.collect());
    }
    search.best
}

/// Steps of one search; beyond them the weight of all that is left counts as found, which is never too little.
const LIMIT: usize = 1 << 20;

/// The heaviest group of neighbours.
struct Heaviest<'a> {
    /// Ascending.
    neighbours: &'a [Vec<usize>],
    weights: &'a [usize],
    best: usize,
    steps: usize,
}

impl Heaviest<'_> {
    fn extend(&mut self, chosen: usize, mut open: Vec<usize>) {
        self.best = self.best.max(chosen);
        let mut rest: usize = open.iter().map(|at| self.weights[*at]).sum();
        while let Some(next) = open.pop() {
            let reachable = chosen + rest;
            if reachable <= self.best {
                return;
            }
            rest -= self.weights[next];
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                self.best = reachable;
                return;
            }
            let near = |at: &usize| self.neighbours[next].binary_search(at).is_ok();
            let common = open.iter().copied().filter(near).collect();
            self.extend(chosen + self.weights[next], common);
        }
    }
}

/// The most individuals who have a published label, or one below or above it. The root tells nothing.
///
/// Related to a set are the labels below its own, which are ranges of the walk through the hierarchy, and those above
/// them, which are few. So no label is compared with every set.
pub(crate) fn most_related(counted: &[Counted<'_>], tree: &Tree) -> usize {
    let mut own: Vec<u32> = vec![];
    // Where the walk enters labels that one more set is related to, and where it leaves them.
    let (mut begins, mut ends) = (vec![], vec![]);
    let mut above: Vec<(u32, usize)> = vec![];
    let (mut ranges, mut upwards) = (vec![], vec![]);
    for (set, n) in counted {
        own.extend(*set);
        ranges.clear();
        ranges.extend(set.iter().map(|label| tree.range(*label)));
        ranges.sort_unstable();
        // A range within another one, of a label below another of the same set, says nothing new.
        let mut covered = 0;
        ranges.retain(|(_, leave)| {
            let is_new = *leave > covered;
            covered = covered.max(*leave);
            is_new
        });
        begins.extend(ranges.iter().map(|(enter, _)| (*enter, *n)));
        ends.extend(ranges.iter().map(|(_, leave)| (*leave, *n)));
        upwards.clear();
        upwards.extend(set.iter().flat_map(|label| tree.above(*label)));
        upwards.sort_unstable();
        upwards.dedup();
        let outside = |label: &&u32| {
            let (enter, _) = tree.range(**label);
            !ranges
                .iter()
                .any(|(begin, end)| (*begin..*end).contains(&enter))
        };
        above.extend(upwards.iter().filter(outside).map(|label| (*label, *n)));
    }
    own.sort_unstable();
    own.dedup();
    own.retain(|label| !tree.roots[*label as usize]);
    own.sort_unstable_by_key(|label| tree.range(*label).0);
    begins.sort_unstable();
    ends.sort_unstable();
    above.sort_unstable();
    let (mut begun, mut ended, mut inside, mut most) = (0, 0, 0, 0);
    for label in own {
        let (enter, _) = tree.range(label);
        while let Some((_, n)) = begins.get(begun).filter(|(at, _)| *at <= enter) {
            inside += n;
            begun += 1;
        }
        while let Some((_, n)) = ends.get(ended).filter(|(at, _)| *at <= enter) {
            inside -= n;
            ended += 1;
        }
        let first = above.partition_point(|(other, _)| *other < label);
        let over = above[first..]
            .iter()
            .take_while(|(other, _)| *other == label);
        most = most.max(inside + over.map(|(_, n)| n).sum::<usize>());
    }
    most
}
