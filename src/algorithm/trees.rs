//! Every column of a block as a tree, for the algorithms that climb or descend hierarchies.
//!
//! | column | tree |
//! |---|---|
//! | with a hierarchy | the hierarchy |
//! | numeric without one | value → intervals of 4, 16, 64, … steps of the column's scale → all |
//! | categorical without one | value → all |
//!
//! Where values are missing, the tree gets a new root over the old one and a leaf for "missing": to publish both in
//! one class is to say nothing about the column (docs/theory/papers.md X6).

use std::sync::Arc;

use crate::table::{
    Block, Categorical, Hierarchical, Hierarchy, NULL_CODE, Numeric, QuasiIdentifier, ROOT,
};

/// Bits of a numeric code that one level of intervals leaves open: each interval has four parts.
const BITS: u32 = 2;

/// One column of a block as a tree.
#[derive(Debug)]
pub(super) struct Tree {
    hierarchy: Arc<Hierarchy>,
    /// The smallest node that covers an individual's own values.
    starts: Vec<u32>,
    losses: Vec<u64>,
    /// The root of all values; below [`ROOT`] if some are missing.
    top: u32,
    /// Levels from the deepest start to `top`.
    height: u32,
    /// Number of nodes of the hierarchy that the column came with; none if it came without.
    given: u32,
}

/// The columns of a block as trees.
pub(super) fn trees(block: &Block) -> Vec<Tree> {
    let tree = |column: &QuasiIdentifier| match column {
        QuasiIdentifier::Numeric(n) => numeric(n, block.full()),
        QuasiIdentifier::Categorical(c) => categorical(c, block.len(), block.full()),
        QuasiIdentifier::Hierarchical(h) => hierarchical(h, block.full()),
    };
    block.quasi_identifiers().iter().map(tree).collect()
}

impl Tree {
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// The node at which an individual's generalization starts.
    pub fn start(&self, individual: u32) -> u32 {
        self.starts[individual as usize]
    }

    /// Loss of publishing a node: at least that of the values below it.
    pub fn loss(&self, node: u32) -> u64 {
        self.losses[node as usize]
    }

    /// Levels from a node to where nothing is said any more: a missing value has one, and whether values that are there
    /// share a class with missing ones is no level of its own.
    #[cfg(test)]
    pub fn rise(&self, node: u32) -> u32 {
        let missing = self.top != ROOT && node == self.hierarchy.len() - 1;
        let depth = self.hierarchy.depth(node);
        if missing {
            depth
        } else {
            depth.saturating_sub(self.top)
        }
    }

    /// How often "one level up" can be said of the whole column.
    pub fn levels(&self) -> u32 {
        self.height + u32::from(self.top != ROOT)
    }

    /// What every node becomes when a column is recoded from the level below to `level`. Chains shorter than the
    /// tallest end at their root earlier (docs/theory/papers.md X7); missing values stay apart up to the last level.
    pub fn step_up(&self, level: u32) -> Vec<u32> {
        let up = |node: u32| match self.hierarchy.parent(node) {
            _ if level > self.height => ROOT,
            Some(parent) if parent != ROOT || self.top == ROOT => parent,
            _ => node,
        };
        (0..self.hierarchy.len()).map(up).collect()
    }

    /// The smallest node that covers two.
    pub fn join(&self, a: u32, b: u32) -> u32 {
        let (first, last) = self.hierarchy.range(b);
        self.hierarchy.join(self.hierarchy.join(a, first), last)
    }

    /// The node by its number in the hierarchy that the column came with, if it did. A class some of whose values are
    /// missing publishes no node, whatever this says.
    pub fn given(&self, node: u32) -> Option<u32> {
        Some(node.saturating_sub(self.top)).filter(|node| *node < self.given)
    }

    /// The node of a hierarchy that the column came with, where a class publishes it instead of `smallest`; `None` if
    /// values of the class are missing, so that it publishes none.
    #[cfg(test)]
    pub fn at_given(&self, node: u32, smallest: u32) -> Option<u32> {
        let node = node + self.top;
        self.hierarchy.is_below(smallest, node).then_some(node)
    }

    /// A tree over leaves in the order of `base`, to which [`NULL_CODE`]s among `ends` add the leaf for "missing".
    fn new(
        base: Arc<Hierarchy>,
        losses: Vec<u64>,
        ends: impl Iterator<Item = (u32, u32)> + Clone,
        full: u64,
    ) -> Self {
        let missing = ends.clone().any(|(_, last)| last == NULL_CODE);
        let (hierarchy, losses, top) = match missing {
            true => with_missing(&base, losses, full),
            false => (base, losses, ROOT),
        };
        let null = hierarchy.len() - 1;
        let start = |(first, last)| match (first, last) {
            (NULL_CODE, _) => null,
            (_, NULL_CODE) => ROOT,
            (first, last) => hierarchy.covering(first, last),
        };
        let starts: Vec<u32> = ends.map(start).collect();
        let levels = starts.iter().filter(|node| !missing || **node != null);
        let deepest = levels.map(|node| hierarchy.depth(*node)).max();
        Self {
            // The number of the top is its depth: none, or one below a new root.
            height: deepest.unwrap_or(0).saturating_sub(top),
            starts,
            hierarchy,
            losses,
            top,
            given: 0,
        }
    }
}

/// The hierarchy below a new root, with a last leaf for missing values.
fn with_missing(base: &Hierarchy, losses: Vec<u64>, full: u64) -> (Arc<Hierarchy>, Vec<u64>, u32) {
    // Numbers are shifted by one: both are depth-first.
    let mut parents = vec![None];
    parents.extend((0..base.len()).map(|node| Some(base.parent(node).map_or(ROOT, |p| p + 1))));
    parents.push(Some(ROOT));
    let mut all = vec![full];
    all.extend(losses);
    all.push(0);
    (Arc::new(tree_of(&parents)), all, ROOT + 1)
}

fn hierarchical(column: &Hierarchical, full: u64) -> Tree {
    let ends = column.lo.iter().copied().zip(column.hi.iter().copied());
    let (hierarchy, losses) = (&column.tree.hierarchy, &column.tree.losses);
    Tree {
        given: hierarchy.len(),
        ..Tree::new(Arc::clone(hierarchy), losses.to_vec(), ends, full)
    }
}

/// Leaves are the codes that occur. Intervals are aligned to the scale, so that they are the same in every block.
fn numeric(column: &Numeric, full: u64) -> Tree {
    let mut codes: Vec<u32> = column.lo.iter().chain(&column.hi).copied().collect();
    codes.sort_unstable();
    codes.dedup();
    if codes.last() == Some(&NULL_CODE) {
        codes.pop();
    }
    let steps = full.checked_div(column.step).unwrap_or(0);
    let steps = steps.max(codes.last().copied().unwrap_or(0).into());
    let levels = (u64::BITS - steps.leading_zeros()).div_ceil(BITS);
    // Level by level from the leaves: which interval each node lies in.
    let mut parents: Vec<Option<u32>> = vec![];
    let mut level: Vec<u32> = codes.clone();
    for _ in 0..levels {
        let first = parents.len() as u32;
        let above: Vec<u32> = level.iter().map(|code| code >> BITS).collect();
        let next = first + level.len() as u32;
        let mut number = next;
        for (i, code) in above.iter().enumerate() {
            number += u32::from(i > 0 && above[i - 1] != *code);
            parents.push(Some(number));
        }
        level = above;
        level.dedup();
    }
    parents.push(None);
    let base = tree_of(&parents);
    let loss = |node: u32| {
        let (first, last) = base.range(node);
        let code = |leaf: u32| codes.get(leaf as usize).copied().unwrap_or(0);
        column
            .step
            .saturating_mul((code(last) - code(first)).into())
    };
    let losses = (0..base.len()).map(loss).collect();
    let leaf = |code: &u32| match *code {
        NULL_CODE => NULL_CODE,
        code => codes.partition_point(|c| *c < code) as u32,
    };
    let ends = column.lo.iter().map(leaf).zip(column.hi.iter().map(leaf));
    Tree::new(Arc::new(base), losses, ends, full)
}

fn categorical(column: &Categorical, individuals: usize, full: u64) -> Tree {
    let base = match column.cardinality {
        0 | 1 => tree_of(&[None]),
        leaves => {
            let mut parents = vec![Some(leaves); leaves as usize];
            parents.push(None);
            tree_of(&parents)
        }
    };
    let loss = |node: u32| column.step.saturating_mul((base.size(node) - 1).into());
    let losses = (0..base.len()).map(loss).collect();
    let ends = (0..individuals as u32).map(|i| match column.of(i) {
        [first, .., last] => (*first, *last),
        [code] => (*code, *code),
        [] => (NULL_CODE, NULL_CODE),
    });
    Tree::new(Arc::new(base), losses, ends, full)
}

/// The tree of parents that are known to form one.
fn tree_of(parents: &[Option<u32>]) -> Hierarchy {
    let tree = Hierarchy::from_parents(parents);
    debug_assert!(tree.is_some());
    tree.map(|(tree, _)| tree).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod example;

#[cfg(test)]
mod tests {
    use super::example::{hierarchical, hierarchy};
    use super::*;
    use crate::table::Region;

    fn block(columns: Vec<QuasiIdentifier>, individuals: u32) -> Block {
        let fingerprints = (0..individuals).map(|i| [i]).collect();
        Block::new(columns, fingerprints, vec![1; individuals as usize], 60)
    }

    fn numeric(values: &[u32]) -> QuasiIdentifier {
        QuasiIdentifier::Numeric(Numeric {
            lo: values.to_vec(),
            hi: values.to_vec(),
            step: 60 / 20,
        })
    }

    /// The label of each individual at a level.
    fn labels(tree: &Tree, level: u32) -> Vec<u32> {
        let mut labels = tree.starts.clone();
        for level in 1..=level {
            let up = tree.step_up(level);
            labels.iter_mut().for_each(|l| *l = up[*l as usize]);
        }
        labels
    }

    /// Which individuals have the same label at a level: for each the first of them.
    fn alike(tree: &Tree, level: u32) -> Vec<usize> {
        let labels = labels(tree, level);
        let first = |label: &u32| labels.iter().position(|l| l == label).unwrap();
        labels.iter().map(first).collect()
    }

    #[test]
    fn numbers_without_a_hierarchy_get_intervals_of_four_sixteen_and_so_on() {
        // The scale has 20 steps, so that 64 is the first power of four that covers it.
        let tree = &trees(&block(vec![numeric(&[0, 3, 4, 15, 16, 3])], 6))[0];
        assert_eq!(tree.levels(), 3);
        assert_eq!(alike(tree, 0), [0, 1, 2, 3, 4, 1]);
        assert_eq!(alike(tree, 1), [0, 0, 2, 3, 4, 0]);
        assert_eq!(alike(tree, 2), [0, 0, 0, 0, 4, 0]);
        assert_eq!(alike(tree, 3), [0; 6]);
        let losses: Vec<u64> = (0..4).map(|l| tree.loss(labels(tree, l)[0])).collect();
        assert_eq!(losses, [0, 9, 45, 48], "of the values that occur");
        assert_eq!(tree.given(tree.start(0)), None);
        // The same intervals in every block.
        let other = &trees(&block(vec![numeric(&[5, 7])], 2))[0];
        assert_eq!((other.levels(), alike(other, 1)), (3, vec![0, 0]));
    }

    #[test]
    fn names_without_a_hierarchy_get_a_flat_one() {
        let column = QuasiIdentifier::Categorical(Categorical {
            offsets: vec![0, 1, 2, 4],
            codes: vec![2, 0, 0, 1],
            cardinality: 3,
            step: 30,
        });
        let tree = &trees(&block(vec![column], 3))[0];
        assert_eq!(tree.levels(), 1);
        assert_eq!(tree.start(2), ROOT, "two values at once");
        assert_eq!(alike(tree, 1), [0, 0, 0]);
        assert_eq!((tree.loss(tree.start(0)), tree.loss(ROOT)), (0, 60));
    }

    #[test]
    fn missing_values_stay_apart_up_to_the_last_level() {
        let tree = &trees(&block(vec![numeric(&[0, NULL_CODE, 9])], 3))[0];
        assert_eq!(tree.levels(), 4);
        assert_eq!(alike(tree, 3), [0, 1, 0]);
        assert_eq!(alike(tree, 4), [0, 0, 0]);
        let all_missing = &trees(&block(vec![numeric(&[NULL_CODE; 2])], 2))[0];
        assert_eq!(
            (all_missing.levels(), alike(all_missing, 0)),
            (1, vec![0, 0])
        );
    }

    #[test]
    fn shorter_chains_end_earlier() {
        // docs/theory/papers.md X7: leaf 0 is a child of the root, leaves 1 to 3 are two levels below it.
        let tree = hierarchy(&[5, 4, 4, 4, 5, u32::MAX], 60);
        let column = hierarchical(&[1, 2, 0, 1], &[1, 2, 0, 3], &tree);
        let tree = &trees(&block(vec![column], 4))[0];
        assert_eq!(tree.levels(), 2);
        assert_eq!(alike(tree, 0), [0, 1, 2, 3]);
        assert_eq!(alike(tree, 1), [0, 0, 2, 2], "the last two are at the root");
        assert_eq!(alike(tree, 2), [0; 4]);
        assert_eq!(tree.given(ROOT), Some(ROOT));
    }

    #[test]
    fn labels_cover_and_levels_only_merge() {
        for seed in 0..2000 {
            let block = example::block(seed);
            for (column, tree) in trees(&block).iter().enumerate() {
                let all: Vec<u32> = (0..block.len() as u32).collect();
                let merged = |level| {
                    let (fine, coarse) = (alike(tree, level), alike(tree, level + 1));
                    (0..all.len()).all(|i| coarse[fine[i]] == coarse[i])
                };
                assert!((0..tree.levels()).all(merged));
                assert_eq!(alike(tree, tree.levels()), vec![0; all.len()]);
                for (level, i) in (0..=tree.levels()).flat_map(|l| all.iter().map(move |i| (l, *i)))
                {
                    let label = labels(tree, level)[i as usize];
                    assert!(tree.hierarchy().is_below(tree.start(i), label));
                    if let (Some(node), QuasiIdentifier::Hierarchical(h)) =
                        (tree.given(label), &block.quasi_identifiers()[column])
                    {
                        let lo = h.lo[i as usize];
                        let given = &h.tree.hierarchy;
                        assert!(lo == NULL_CODE || given.is_below(given.node_of(lo), node));
                    }
                    let alone = block_of_one_column(&block, column);
                    assert!(tree.loss(label) >= Region::of(&alone, i).loss());
                }
            }
        }
    }

    fn block_of_one_column(block: &Block, column: usize) -> Block {
        let records = vec![1; block.len()];
        let columns = vec![block.quasi_identifiers()[column].clone()];
        Block::new(columns, block.fingerprints().clone(), records, block.full())
    }
}
