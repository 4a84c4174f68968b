//! What published fingerprints lose.

use super::{Generalized, UNPUBLISHED};
use crate::table::{Fingerprints, Hierarchy};

/// SA-NCP (Gong et al. 2017, Eq. 4) in its two consistent forms; the printed one divides the first sum by the second
/// number (docs/papers.md M9). The NCP of a node is its share of all leaves, and nothing for a leaf (Eq. 1).
///
/// Sums are leaves; a share of the whole is `sum / (values · leaves)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensitiveLoss {
    /// Leaves below all published nodes of all individuals, leaves themselves not counted.
    pub published_leaves: u64,
    /// Published values.
    pub published_values: u64,
    /// Leaves below the nodes that stand for all original values, leaves themselves not counted.
    pub original_leaves: u64,
    /// Original values.
    pub original_values: u64,
    /// Leaves of the hierarchy.
    pub leaves: u64,
}

impl SensitiveLoss {
    /// SA-NCP per published value.
    pub fn per_published_value(&self) -> f64 {
        share(self.published_leaves, self.published_values, self.leaves)
    }

    /// SA-NCP per original value.
    pub fn per_original_value(&self) -> f64 {
        share(self.original_leaves, self.original_values, self.leaves)
    }
}

fn share(sum: u64, values: u64, leaves: u64) -> f64 {
    match values {
        0 => 0.0,
        _ => sum as f64 / (values as f64 * leaves as f64),
    }
}

/// Measures what individuals that are published lose.
pub fn sensitive_loss(
    fingerprints: &Fingerprints,
    tree: &Hierarchy,
    generalized: &Generalized,
) -> SensitiveLoss {
    let loss = |node: u32| match tree.size(node) {
        1 => 0,
        size => u64::from(size),
    };
    let mut sum = SensitiveLoss {
        published_leaves: 0,
        published_values: 0,
        original_leaves: 0,
        original_values: 0,
        leaves: u64::from(tree.leaves()),
    };
    for (individual, set) in generalized.of.iter().enumerate() {
        if *set == UNPUBLISHED {
            continue;
        }
        let nodes = generalized.sets.of(*set);
        sum.published_values += nodes.len() as u64;
        sum.published_leaves += nodes.iter().map(|node| loss(*node)).sum::<u64>();
        for leaf in fingerprints.of(individual as u32) {
            // Nodes cover disjoint ranges of leaves, in their order.
            let after = nodes.partition_point(|node| tree.range(*node).0 <= *leaf);
            sum.original_values += 1;
            sum.original_leaves += after.checked_sub(1).map_or(0, |at| loss(nodes[at]));
        }
    }
    sum
}
