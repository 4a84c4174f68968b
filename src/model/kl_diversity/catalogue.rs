//! Published fingerprints, numbered, and which of them can describe the same set of values.

use std::sync::Arc;

use crate::engine::threads::Threads;
use crate::table::{Fingerprints, Hierarchy, ROOT};

/// So many fingerprints are looked at by one thread before it takes others.
const AT_A_TIME: usize = 256;

/// The published fingerprints of a table: sets of nodes of the sensitive column's hierarchy.
#[derive(Debug)]
pub struct Catalogue {
    tree: Arc<Hierarchy>,
    sets: Fingerprints,
    /// By fingerprint and by node.
    marks: Vec<Marks>,
    node_marks: Vec<Marks>,
    /// Every node but the root is below a marked one, or is one.
    all_marked: bool,
    /// Compatible fingerprints that come after one in the order of width are `wider[ends[i]..ends[i + 1]]`.
    ends: Vec<u32>,
    wider: Vec<u32>,
}

/// The uppermost nodes that a set of nodes is related to, a bit each: a quick no to most questions about two sets.
#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    /// Uppermost nodes with something of the set below them, or in it.
    below: u128,
    /// And those below something of the set.
    related: u128,
}

impl Marks {
    /// The marks of each node.
    fn of_nodes(tree: &Hierarchy) -> Vec<Self> {
        let mut uppermost: Vec<u32> = (ROOT + 1..tree.len()).collect();
        uppermost.sort_by_key(|node| tree.depth(*node));
        uppermost.truncate(u128::BITS as usize);
        let mut marks = vec![Self::default(); tree.len() as usize];
        for (bit, upper) in uppermost.into_iter().enumerate() {
            let bit = 1 << bit;
            for node in (upper..tree.len()).take_while(|node| tree.is_below(*node, upper)) {
                marks[node as usize].below |= bit;
                marks[node as usize].related |= bit;
            }
            for node in std::iter::successors(tree.parent(upper), |node| tree.parent(*node)) {
                marks[node as usize].related |= bit;
            }
        }
        marks
    }

    fn with(self, other: Self) -> Self {
        Self {
            below: self.below | other.below,
            related: self.related | other.related,
        }
    }

    /// Of two related nodes, what is above one is related to the other.
    fn excludes(self, other: Self) -> bool {
        (self.below & !other.related) | (other.below & !self.related) != 0
    }
}

impl Catalogue {
    /// The fingerprints with the numbers they have in `sets`. None of them may have a node below another one of its own.
    pub fn new(tree: Arc<Hierarchy>, sets: Fingerprints, threads: &Threads) -> Self {
        let node_marks = Marks::of_nodes(&tree);
        let all = 0..sets.len() as u32;
        let marks = all.clone().map(|id| {
            let nodes = sets.of(id).iter().map(|node| node_marks[*node as usize]);
            nodes.fold(Marks::default(), Marks::with)
        });
        let mut catalogue = Self {
            marks: marks.collect(),
            all_marked: node_marks.iter().skip(1).all(|marks| marks.below != 0),
            node_marks,
            tree,
            sets,
            ends: vec![0],
            wider: vec![],
        };
        let index = Index::new(&catalogue);
        let ids: Vec<u32> = all.collect();
        let found = threads.each(ids.chunks(AT_A_TIME).collect(), |ids| {
            let (mut lengths, mut wider) = (vec![], vec![]);
            for id in ids {
                let found = catalogue.find_wider(*id, &index);
                lengths.push(found.len() as u32);
                wider.extend(found);
            }
            (lengths, wider)
        });
        let mut end = 0;
        for (lengths, mut wider) in found {
            catalogue.wider.append(&mut wider);
            catalogue.ends.extend(lengths.into_iter().map(|length| {
                end += length;
                end
            }));
        }
        catalogue
    }

    /// Number of fingerprints.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// The hierarchy.
    pub fn tree(&self) -> &Arc<Hierarchy> {
        &self.tree
    }

    /// The nodes of a fingerprint, ascending.
    pub fn nodes(&self, id: u32) -> &[u32] {
        self.sets.of(id)
    }

    /// The fingerprints that can describe a set which this one describes too, and are not narrower.
    pub(super) fn wider(&self, id: u32) -> &[u32] {
        let id = id as usize;
        &self.wider[self.ends[id] as usize..self.ends[id + 1] as usize]
    }

    /// Whether a fingerprint has a node, something below it or something above it.
    pub(super) fn is_related(&self, id: u32, node: u32) -> bool {
        // The nodes of a set cover disjoint ranges of leaves, so only its last node up to `node` can be above it, and
        // only the next one be below it.
        let nodes = self.nodes(id);
        let after = nodes.partition_point(|other| *other <= node);
        after > 0 && self.tree.is_below(node, nodes[after - 1])
            || nodes
                .get(after)
                .is_some_and(|other| self.tree.is_below(*other, node))
    }

    /// What [`Catalogue::may_be_common`] needs to know of a fingerprint; for several of them, of all at once by `&`.
    pub(super) fn common(&self, id: u32) -> u128 {
        self.marks[id as usize].related
    }

    /// Whether any node but the root can be related to all of several fingerprints.
    pub(super) fn may_have_common(&self, common: u128) -> bool {
        common != 0 || !self.all_marked
    }

    /// Whether a node can be related to all of several fingerprints.
    pub(super) fn may_be_common(&self, node: u32, common: u128) -> bool {
        self.node_marks[node as usize].below & !common == 0
    }

    /// The compatible fingerprints after `id` in the order of width.
    fn find_wider(&self, id: u32, index: &Index) -> Vec<u32> {
        let (tree, mut found) = (&self.tree, vec![]);
        // All of them have a node related to each of its nodes; to one of these only a few.
        let rarest = |node: &u32| index.related(*node);
        let Some(node) = self.nodes(id).iter().copied().min_by_key(rarest) else {
            return found;
        };
        let above = std::iter::successors(tree.parent(node), |node| tree.parent(*node));
        let (marks, width) = (self.marks[id as usize], (index.leaves[id as usize], id));
        let mut look_at = |other: u32| {
            if !marks.excludes(self.marks[other as usize])
                && (index.leaves[other as usize], other) > width
                && self.are_compatible(id, other)
            {
                found.push(other);
            }
        };
        index.below(node).iter().for_each(|other| look_at(*other));
        for node in above {
            index.of(node).iter().for_each(|other| look_at(*other));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether some set of leaves generalizes to both: each node of one is related to one of the other.
    fn are_compatible(&self, a: u32, b: u32) -> bool {
        self.nodes(a).iter().all(|node| self.is_related(b, *node))
            && self.nodes(b).iter().all(|node| self.is_related(a, *node))
    }
}

/// Where fingerprints are found by their nodes, while the catalogue is made.
struct Index {
    /// Fingerprints by node, in the order of nodes, so that those below a node stand together.
    holders: Vec<u32>,
    /// Where each node's begin, and where those of its descendants end.
    begin: Vec<u32>,
    end: Vec<u32>,
    /// Fingerprints with a node above each node.
    above: Vec<u32>,
    /// Leaves below each fingerprint.
    leaves: Vec<u64>,
}

impl Index {
    fn new(catalogue: &Catalogue) -> Self {
        let tree = &catalogue.tree;
        let nodes = tree.len() as usize;
        let ids = 0..catalogue.len() as u32;
        let mut begin = vec![0; nodes + 1];
        for node in ids.clone().flat_map(|id| catalogue.nodes(id)) {
            begin[*node as usize + 1] += 1;
        }
        for node in 0..nodes {
            begin[node + 1] += begin[node];
        }
        let mut next = begin.clone();
        let mut holders = vec![0; begin[nodes] as usize];
        for id in ids.clone() {
            for node in catalogue.nodes(id) {
                holders[next[*node as usize] as usize] = id;
                next[*node as usize] += 1;
            }
        }
        let (mut end, mut above) = (begin[1..].to_vec(), vec![0; nodes]);
        for node in (0..nodes as u32).rev() {
            if let Some(parent) = tree.parent(node) {
                end[parent as usize] = end[parent as usize].max(end[node as usize]);
            }
        }
        for node in 0..nodes as u32 {
            if let Some(parent) = tree.parent(node) {
                let own = begin[parent as usize + 1] - begin[parent as usize];
                above[node as usize] = above[parent as usize] + own;
            }
        }
        let size = |node: &u32| u64::from(tree.size(*node));
        Self {
            leaves: ids
                .map(|id| catalogue.nodes(id).iter().map(size).sum())
                .collect(),
            holders,
            begin,
            end,
            above,
        }
    }

    fn of(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.holders[self.begin[node] as usize..self.begin[node + 1] as usize]
    }

    /// Those with a node or something below it; several times if they have several.
    fn below(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.holders[self.begin[node] as usize..self.end[node] as usize]
    }

    /// How many are related to a node.
    fn related(&self, node: u32) -> u32 {
        self.above[node as usize] + self.end[node as usize] - self.begin[node as usize]
    }
}
