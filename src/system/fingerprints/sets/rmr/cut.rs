//! The cut through a hierarchy at which one class publishes.

use std::collections::BTreeMap;

use crate::table::Hierarchy;

/// One node for each leaf: all individuals of a class generalize a value to the same node.
pub(super) struct Cut<'a> {
    tree: &'a Hierarchy,
    node_of: Vec<u32>,
}

impl<'a> Cut<'a> {
    /// A cut at which any up to m nodes that a fingerprint shows are shown by at least k; at the root if need be. Nodes of
    /// a combination that too few show are generalized, the one whose parent covers fewest leaves first.
    pub(super) fn anonymous(
        tree: &'a Hierarchy,
        fingerprints: &[&[u32]],
        k: usize,
        m: usize,
    ) -> Self {
        let mut cut = Self {
            tree,
            node_of: (0..tree.leaves()).map(|leaf| tree.node_of(leaf)).collect(),
        };
        for size in 1..=m {
            while let Some(rare) = cut.rare(fingerprints, k, size) {
                let parents = rare.iter().filter_map(|node| tree.parent(*node));
                match parents.min_by_key(|parent| (tree.size(*parent), *parent)) {
                    Some(parent) => cut.generalize_to(parent),
                    // Fewer than k individuals publish anything at all.
                    None => return cut,
                }
            }
        }
        cut
    }

    /// The nodes of a fingerprint of leaf positions.
    pub(super) fn generalize(&self, leaves: &[u32]) -> Vec<u32> {
        let mut nodes: Vec<u32> = leaves
            .iter()
            .map(|leaf| self.node_of[*leaf as usize])
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    fn generalize_to(&mut self, node: u32) {
        let (first, last) = self.tree.range(node);
        self.node_of[first as usize..=last as usize].fill(node);
    }

    /// The first combination of so many nodes that some and fewer than k fingerprints show.
    fn rare(&self, fingerprints: &[&[u32]], k: usize, size: usize) -> Option<Vec<u32>> {
        let mut support: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for leaves in fingerprints {
            let nodes = self.generalize(leaves);
            combinations(&nodes, size, &mut vec![], &mut |chosen| {
                *support.entry(chosen.to_vec()).or_default() += 1;
            });
        }
        support
            .into_iter()
            .find(|(_, count)| *count < k)
            .map(|(nodes, _)| nodes)
    }
}

/// Calls back with every choice of `size` of the nodes.
fn combinations(nodes: &[u32], size: usize, chosen: &mut Vec<u32>, found: &mut impl FnMut(&[u32])) {
    if size == 0 {
        return found(chosen);
    }
    for (at, node) in nodes.iter().enumerate() {
        chosen.push(*node);
        combinations(&nodes[at + 1..], size - 1, chosen, found);
        chosen.pop();
    }
}
