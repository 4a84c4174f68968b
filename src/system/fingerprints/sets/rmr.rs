//! RMR, a baseline: (k, kᵐ)-anonymity by merging classes, then generalizing the fingerprints of each class (Poulis et al.
//! 2013, as Gong et al. 2017 compare with it).
//!
//! ```text
//!   classes of at least k individuals
//!   while the QID-NCP of all, by counts of values, stays at most δ
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
use crate::table::{Block, Cell, Hierarchy, QuasiIdentifier, Region};

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
    /// fingerprints are leaf positions; `values` is how many values each column of the whole table may have.
    pub fn anonymize(
        &self,
        block: &Block,
        values: &[u64],
        classes: &Classes,
        tree: &Hierarchy,
        cancel: &Cancel,
    ) -> Result<Vec<Cluster>, Cancelled> {
        let merged = self.merge(block, values, classes, cancel)?;
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

    /// Merges classes as long as the mean NCP of a cell, by counts of values, stays at most δ.
    fn merge(
        &self,
        block: &Block,
        values: &[u64],
        classes: &Classes,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>, Cancelled> {
        let regions = classes
            .classes
            .iter()
            .filter_map(|members| Some((members.clone(), Region::covering(block, members)?)));
        let mut open: Vec<(Vec<u32>, Region)> = regions.collect();
        let individuals: usize = open.iter().map(|(members, _)| members.len()).sum();
        let cells = (individuals * block.quasi_identifiers().len()) as u128;
        let whole = cells * u128::from(ONE);
        let lost = |(members, region): &(Vec<u32>, Region)| {
            members.len() as u128 * ncp(block, values, region)
        };
        let mut loss: u128 = open.iter().map(lost).sum();
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
            let members = (class.0.len() + other.0.len()) as u128;
            let with = loss - lost(&class) - lost(other) + members * ncp(block, values, &joined);
            if !self.allows(with, whole) {
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

    /// Whether a loss is at most δ of the whole.
    fn allows(&self, loss: u128, whole: u128) -> bool {
        let (numerator, denominator) = (self.delta.numerator(), self.delta.denominator());
        loss.saturating_mul(u128::from(denominator)) <= whole.saturating_mul(u128::from(numerator))
    }
}

/// The NCP of a cell that shows nothing.
const ONE: u64 = 1 << 40;

/// The NCP of a region, a cell of each column, by counts: |v| of |A| values, and nothing for one (Gong et al. 2017, Eqs. 1
/// to 3). Never too small: what does not divide is rounded up.
fn ncp(block: &Block, values: &[u64], region: &Region) -> u128 {
    let columns = block.quasi_identifiers().iter().zip(values);
    let cells = region.cells().iter().zip(columns);
    let share = |part: u128, whole: u128| (part * u128::from(ONE)).div_ceil(whole.max(1));
    let of_cell = |(cell, (column, values)): (&Cell, (&QuasiIdentifier, &u64))| {
        let values = u128::from(*values);
        let lost = match (cell, column) {
            (Cell::Null, _) => 0,
            (Cell::Interval { lo, hi }, _) if lo < hi => share(u128::from(hi - lo) + 1, values),
            (Cell::Set(codes), _) if codes.len() > 1 => share(codes.len() as u128, values),
            (Cell::Interval { .. } | Cell::Set(_), _) => 0,
            (Cell::Node(node), QuasiIdentifier::Hierarchical(h)) => match h.tree.loss(*node) {
                0 => 0,
                // A node loses (|v| − 1) / (|A| − 1), rounded down.
                loss => {
                    let (loss, full) = (u128::from(loss) + 1, u128::from(block.full()));
                    share(loss * values.saturating_sub(1) + full, full * values)
                }
            },
            _ => u128::from(ONE),
        };
        lost.min(u128::from(ONE))
    };
    cells.map(of_cell).sum()
}
