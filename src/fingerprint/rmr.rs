//! RMR, a baseline: (k, kᵐ)-anonymity by merging classes, then generalizing the fingerprints of each class (Poulis et al.
//! 2013, as Gong et al. 2017 compare with it).
//!
//! ```text
//!   classes of at least k individuals
//!   while the QID-NCP of all stays at most δ
//!     the class that loses least is merged with the one nearest to it
//!   in each class, the values of all its individuals are generalized
//!     until every m values that one of them publishes are published by k of them
//! ```
//!
//! For comparison only. An attacker of this model knows quasi-identifiers and m sensitive values; a class may still have
//! one value in common.

mod cut;

use self::cut::Cut;
use crate::algorithm::{Cancel, Cancelled, Classes};
use crate::model::Ratio;
use crate::table::{Block, Hierarchy, Region};

/// RMR, a baseline.
#[derive(Debug, Clone, Copy)]
pub struct Rmr {
    k: usize,
    m: usize,
    delta: Ratio,
}

/// A class with the fingerprints it publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its individuals.
    pub members: Vec<u32>,
    /// The published fingerprint of each, as nodes of the hierarchy.
    pub sets: Vec<Vec<u32>>,
}

impl Rmr {
    /// `k` individuals publish whatever `m` values one of them does; classes are merged up to a QID-NCP of `delta`.
    pub fn new(k: usize, m: usize, delta: Ratio) -> Self {
        Self {
            k: k.max(1),
            m: m.max(1),
            delta,
        }
    }

    /// From classes of at least k individuals, as any algorithm forms them under IR k-anonymity, and a block whose
    /// fingerprints are leaf positions.
    pub fn anonymize(
        &self,
        block: &Block,
        classes: &Classes,
        tree: &Hierarchy,
        cancel: &Cancel,
    ) -> Result<Vec<Cluster>, Cancelled> {
        let merged = self.merge(block, classes, cancel)?;
        merged
            .into_iter()
            .map(|members| {
                cancel.check()?;
                let fingerprints: Vec<&[u32]> = members
                    .iter()
                    .map(|i| block.fingerprints().of(*i))
                    .collect();
                let cut = Cut::anonymous(tree, &fingerprints, self.k, self.m);
                let sets = fingerprints.iter().map(|leaves| cut.generalize(leaves));
                Ok(Cluster {
                    sets: sets.collect(),
                    members,
                })
            })
            .collect()
    }

    /// Merges classes as long as the mean loss of a cell stays at most δ.
    fn merge(
        &self,
        block: &Block,
        classes: &Classes,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>, Cancelled> {
        let regions = classes
            .classes
            .iter()
            .filter_map(|members| Some((members.clone(), Region::covering(block, members)?)));
        let mut open: Vec<(Vec<u32>, Region)> = regions.collect();
        let individuals: usize = open.iter().map(|(members, _)| members.len()).sum();
        let cells = (individuals * block.quasi_identifiers().len()) as u64;
        let whole = cells.saturating_mul(block.full());
        let lost = |(members, region): &(Vec<u32>, Region)| members.len() as u64 * region.loss();
        let mut loss: u64 = open.iter().map(lost).sum();
        while open.len() > 1 {
            cancel.check()?;
            let Some(least) = (0..open.len()).min_by_key(|at| (open[*at].1.loss(), open[*at].0[0]))
            else {
                break;
            };
            let mut class = open.swap_remove(least);
            let near = |at: &usize| (class.1.distance(block, &open[*at].1), open[*at].0[0]);
            let Some(nearest) = (0..open.len()).min_by_key(near) else {
                break;
            };
            let other = &open[nearest];
            let mut joined = class.1.clone();
            joined.extend(block, &other.1);
            let members = (class.0.len() + other.0.len()) as u64;
            let with = loss - lost(&class) - lost(other) + members * joined.loss();
            if !self.delta.at_least(with, whole) {
                open.push(class);
                break;
            }
            loss = with;
            class.0.extend_from_slice(&other.0);
            class.0.sort_unstable();
            open[nearest] = (class.0, joined);
        }
        let mut merged: Vec<Vec<u32>> = open.into_iter().map(|(members, _)| members).collect();
        merged.sort_unstable();
        Ok(merged)
    }
}
