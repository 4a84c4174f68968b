//! Which children of a node each individual has.

use super::Open;
use crate::table::{Fingerprints, Hierarchy};

/// Divides individuals by the children of a node that they have values below. A set of children is a way down a trie whose
/// steps are found in a hash table, so that a node may have any number of children.
pub(super) struct Signatures<'a> {
    fingerprints: &'a Fingerprints,
    tree: &'a Hierarchy,
    chains: &'a Chains,
    steps: Steps,
    counts: Vec<u32>,
    labels: Vec<u32>,
}

/// The nodes above each leaf.
pub(super) struct Chains {
    /// Row by row: the node of each leaf's chain at each depth; its own below that.
    nodes: Vec<u32>,
    leaves: usize,
}

impl Chains {
    pub(super) fn new(tree: &Hierarchy) -> Self {
        let mut nodes = vec![];
        for depth in 0..=tree.height() {
            nodes.extend((0..tree.leaves()).map(|leaf| {
                let node = tree.node_of(leaf);
                tree.up(node, tree.depth(node).saturating_sub(depth))
            }));
        }
        Self {
            nodes,
            leaves: tree.leaves() as usize,
        }
    }

    /// By leaf, the node at a depth.
    fn at(&self, depth: u32) -> &[u32] {
        let row = depth as usize * self.leaves;
        &self.nodes[row..row + self.leaves]
    }
}

impl<'a> Signatures<'a> {
    pub(super) fn new(
        fingerprints: &'a Fingerprints,
        tree: &'a Hierarchy,
        chains: &'a Chains,
    ) -> Self {
        Self {
            fingerprints,
            tree,
            chains,
            steps: Steps::new(),
            counts: vec![],
            labels: vec![],
        }
    }

    /// The number of members with each set of children, and for each member which of these it has.
    pub(super) fn divide(&mut self, members: &[u32], node: u32) -> (&[u32], &[u32]) {
        let (first, last) = self.tree.range(node);
        let children = self.chains.at(self.tree.depth(node) + 1);
        self.steps.clear();
        self.counts.clear();
        self.counts.push(0);
        self.labels.clear();
        for member in members {
            let (mut label, mut latest) = (0, u32::MAX);
            for leaf in self.fingerprints.of(*member) {
                if *leaf > last {
                    break;
                }
                if *leaf < first || children[*leaf as usize] == latest {
                    continue;
                }
                latest = children[*leaf as usize];
                label = self.steps.step(label, latest, self.counts.len() as u32);
                if label as usize == self.counts.len() {
                    self.counts.push(0);
                }
            }
            self.counts[label as usize] += 1;
            self.labels.push(label);
        }
        (&self.counts, &self.labels)
    }

    /// The children of a node that an individual has.
    pub(super) fn children(&self, individual: u32, node: u32) -> Vec<Open> {
        let (first, last) = self.tree.range(node);
        let below = self.chains.at(self.tree.depth(node) + 1);
        let leaves = self.fingerprints.of(individual).iter();
        let mut children: Vec<u32> = leaves
            .filter(|leaf| (first..=last).contains(leaf))
            .map(|leaf| below[*leaf as usize])
            .collect();
        children.dedup();
        children
            .into_iter()
            .map(|child| Open::new(self.tree, child))
            .collect()
    }
}

/// Steps from one place of the trie to the next, by child.
struct Steps {
    /// Open addressing; a power of two, at most half full. A slot holds what it does only in its own turn.
    slots: Vec<Slot>,
    turn: u32,
    used: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    from: u32,
    child: u32,
    to: u32,
    turn: u32,
}

impl Steps {
    fn new() -> Self {
        Self {
            slots: vec![Slot::default(); 64],
            turn: 1,
            used: 0,
        }
    }

    fn clear(&mut self) {
        self.used = 0;
        self.turn = self.turn.wrapping_add(1);
        if self.turn == 0 {
            self.slots.fill(Slot::default());
            self.turn = 1;
        }
    }

    /// Where a step leads; to `next` if it is new.
    fn step(&mut self, from: u32, child: u32, next: u32) -> u32 {
        let at = self.find(from, child);
        if self.slots[at].turn == self.turn {
            return self.slots[at].to;
        }
        self.put(at, from, child, next);
        if 2 * self.used > self.slots.len() {
            self.grow();
        }
        next
    }

    fn put(&mut self, at: usize, from: u32, child: u32, to: u32) {
        self.slots[at] = Slot {
            from,
            child,
            to,
            turn: self.turn,
        };
        self.used += 1;
    }

    /// The slot of a step, or a free one for it.
    fn find(&self, from: u32, child: u32) -> usize {
        let key = u64::from(from) << 32 | u64::from(child);
        // The high bits of a product are the well mixed ones.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mut at = hash as usize & (self.slots.len() - 1);
        loop {
            let slot = &self.slots[at];
            if slot.turn != self.turn || (slot.from, slot.child) == (from, child) {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn grow(&mut self) {
        let larger = vec![Slot::default(); 2 * self.slots.len()];
        let slots = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        let turn = self.turn;
        for slot in slots.iter().filter(|slot| slot.turn == turn) {
            let at = self.find(slot.from, slot.child);
            self.put(at, slot.from, slot.child, slot.to);
        }
    }
}
