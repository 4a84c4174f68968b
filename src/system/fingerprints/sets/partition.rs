//! Partition: fingerprints generalized from the root down, as far as k individuals share the result (He and Naughton 2009;
//! Gong et al. 2017, Algorithm 2).
//!
//! ```text
//!   all individuals publish {*}
//!   for each group, and its widest node that can still be drilled down
//!     divide the group by which children of the node each individual has
//!       parts of at least k                      groups that publish those children
//!       all others together                      a group that keeps the node, if it has k individuals;
//!                                                else individuals of the largest parts join it,
//!                                                else the smallest part does
//!       no part of at least k                    the node stays as it is, in this group and all that come from it
//! ```
//!
//! A published fingerprint is the set of its different nodes (docs/theory/papers.md M3); what the paper leaves open about
//! left-over individuals is M5.

mod signature;

use std::cmp::Reverse;

use self::signature::{Chains, Signatures};
use super::{Generalized, SensitiveStep, UNPUBLISHED};
use crate::algorithm::{Cancel, Cancelled};
use crate::engine::threads::Threads;
use crate::table::{Fingerprints, Hierarchy, ROOT};

/// Groups of fewer individuals are not handed to another thread. Those of more have many nodes to be drilled down.
const WORTH_HANDING_ON: usize = 512;

/// Partition.
///
/// # Guarantee
/// That of every [`SensitiveStep`].
///
/// # Runtime
/// O(v · h) for v values of all individuals and a hierarchy of height h, times the cost of a look-up in a hash table: a
/// node is drilled down once per individual.
#[derive(Debug, Clone, Copy, Default)]
pub struct Partition;

impl SensitiveStep for Partition {
    fn generalize(
        &self,
        k: usize,
        fingerprints: &Fingerprints,
        tree: &Hierarchy,
        threads: &Threads,
        cancel: &Cancel,
    ) -> Result<Generalized, Cancelled> {
        Run { k: k.max(1) }.generalize(fingerprints, tree, threads, cancel)
    }
}

/// One run: every published fingerprint is to be shared by at least `k` individuals.
struct Run {
    k: usize,
}

impl Run {
    fn generalize(
        &self,
        fingerprints: &Fingerprints,
        tree: &Hierarchy,
        threads: &Threads,
        cancel: &Cancel,
    ) -> Result<Generalized, Cancelled> {
        let individuals = 0..fingerprints.len() as u32;
        let members: Vec<u32> = individuals
            .filter(|i| !fingerprints.of(*i).is_empty())
            .collect();
        let mut generalized = Generalized {
            sets: Fingerprints::new(),
            of: vec![UNPUBLISHED; fingerprints.len()],
        };
        if members.len() < self.k {
            return Ok(generalized);
        }
        let everybody = Group {
            nodes: vec![Open::new(tree, ROOT)],
            members,
        };
        let chains = Chains::new(tree);
        let parts = threads.all(vec![everybody], |group, others| {
            let signatures = Signatures::new(fingerprints, tree, &chains);
            self.drill_all(group, signatures, others, cancel)
        });
        let mut groups = vec![];
        for part in parts {
            groups.append(&mut part?);
        }
        // Numbers do not tell who found them.
        groups.sort_unstable_by_key(|group| group.members.first().copied());
        for (set, group) in (0..).zip(groups) {
            let nodes = group.nodes.iter().map(|open| open.node);
            generalized.sets.push(&mut nodes.collect());
            for member in group.members {
                generalized.of[member as usize] = set;
            }
        }
        Ok(generalized)
    }

    /// The groups that come from one and cannot be drilled down any more, but for large ones that are handed to others.
    fn drill_all(
        &self,
        group: Group,
        mut signatures: Signatures<'_>,
        others: &dyn Fn(Group),
        cancel: &Cancel,
    ) -> Result<Vec<Group>, Cancelled> {
        let (mut open, mut done) = (vec![group], vec![]);
        while let Some(mut group) = open.pop() {
            cancel.check()?;
            let Some(at) = group.widest() else {
                done.push(group);
                continue;
            };
            let Some(groups) = self.drill_down(&mut group, at, &mut signatures) else {
                group.nodes[at].size = 0;
                open.push(group);
                continue;
            };
            for group in groups {
                match !open.is_empty() && group.members.len() >= WORTH_HANDING_ON {
                    true => others(group),
                    false => open.push(group),
                }
            }
        }
        Ok(done)
    }

    /// Replaces a node of a group by its children, for as many members as can be; `None` if that is nobody.
    fn drill_down(
        &self,
        group: &mut Group,
        at: usize,
        signatures: &mut Signatures<'_>,
    ) -> Option<Vec<Group>> {
        let node = group.nodes[at].node;
        let (counts, labels) = signatures.divide(&group.members, node);
        let (mut parts, mut left) = self.parts(&group.members, counts, labels)?;
        self.top_up(&mut parts, &mut left);
        if parts.is_empty() {
            return None;
        }
        let mut groups = Vec::with_capacity(parts.len() + 1);
        for members in parts {
            let children = signatures.children(members[0], node);
            groups.push(Group {
                nodes: group.with(at, &children),
                members,
            });
        }
        if !left.is_empty() {
            left.sort_unstable();
            // No k of them have the same children, nor will they in any part of this group.
            group.nodes[at].size = 0;
            groups.push(Group {
                nodes: std::mem::take(&mut group.nodes),
                members: left,
            });
        }
        Some(groups)
    }

    /// The members by label where at least k have the same, and all others.
    fn parts(
        &self,
        members: &[u32],
        counts: &[u32],
        labels: &[u32],
    ) -> Option<(Vec<Vec<u32>>, Vec<u32>)> {
        let is_large = |label: &u32| counts[*label as usize] as usize >= self.k;
        if !counts.iter().any(|count| *count as usize >= self.k) {
            return None;
        }
        let mut numbers = vec![UNPUBLISHED; counts.len()];
        let (mut parts, mut left) = (vec![], vec![]);
        for (member, label) in members.iter().zip(labels) {
            if !is_large(label) {
                left.push(*member);
                continue;
            }
            let number = &mut numbers[*label as usize];
            if *number == UNPUBLISHED {
                *number = parts.len() as u32;
                parts.push(Vec::with_capacity(counts[*label as usize] as usize));
            }
            parts[*number as usize].push(*member);
        }
        Some((parts, left))
    }

    /// Makes the left-over individuals k or none: those of the largest parts join them, down to k each, or if these are
    /// too few, the smallest part does (docs/theory/papers.md M5).
    fn top_up(&self, parts: &mut Vec<Vec<u32>>, left: &mut Vec<u32>) {
        while !left.is_empty() && left.len() < self.k {
            let spare: usize = parts.iter().map(|part| part.len() - self.k).sum();
            if left.len() + spare < self.k {
                let smallest = (0..parts.len()).min_by_key(|part| parts[*part].len());
                match smallest {
                    Some(part) => left.append(&mut parts.remove(part)),
                    None => return,
                }
                continue;
            }
            let mut order: Vec<usize> = (0..parts.len()).collect();
            order.sort_by_key(|part| Reverse(parts[*part].len()));
            for part in order {
                let spare = (parts[part].len() - self.k).min(self.k - left.len());
                let keep = parts[part].len() - spare;
                left.extend(parts[part].drain(keep..));
            }
        }
    }
}

/// Individuals that publish the same nodes.
struct Group {
    nodes: Vec<Open>,
    /// Ascending.
    members: Vec<u32>,
}

/// A node of a group.
#[derive(Clone, Copy)]
struct Open {
    node: u32,
    /// Leaves below the node; 0 if it cannot be drilled down.
    size: u32,
}

impl Open {
    fn new(tree: &Hierarchy, node: u32) -> Self {
        let size = if tree.is_leaf(node) {
            0
        } else {
            tree.size(node)
        };
        Self { node, size }
    }
}

impl Group {
    /// Where the widest node that can be drilled down stands; of equally wide ones the first in the hierarchy.
    fn widest(&self) -> Option<usize> {
        let candidates = (0..self.nodes.len()).filter(|at| self.nodes[*at].size > 0);
        candidates.max_by_key(|at| (self.nodes[*at].size, Reverse(self.nodes[*at].node)))
    }

    /// The nodes with others in the place of one.
    fn with(&self, at: usize, others: &[Open]) -> Vec<Open> {
        let mut nodes = Vec::with_capacity(self.nodes.len() + others.len() - 1);
        nodes.extend_from_slice(&self.nodes[..at]);
        nodes.extend_from_slice(others);
        nodes.extend_from_slice(&self.nodes[at + 1..]);
        nodes
    }
}
