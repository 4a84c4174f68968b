//! Localpk: top-down local recoding over hierarchies (Sun, Sun, Wang 2010, Algorithm 1).
//!
//! ```text
//!   all individuals are one group, at the roots of all columns
//!   for every group, one column after the other
//!     specialize it one level down: its members go to children
//!     children that do not satisfy the model go back                                       (line 8)
//!     if members are left in the group and do not satisfy it, others go back too      (lines 9 and 10)
//!     if a child remains: it is a group, and so are those left;  else: the next column
//!   a group that no column can specialize is a class
//! ```
//!
//! Corrections to the printed algorithm are marked by their number in docs/theory/papers.md.

mod borrowed;
mod split;

use std::cmp::Reverse;

use self::split::{Back, Group, Split, Splitter};
use super::full_domain::satisfied;
use super::trees::{Tree, trees};
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes};
use crate::model::{Model, Parameter, ParameterKind};
use crate::table::{Block, ROOT};

/// Localpk in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "localpk",
    help: "splits the table top-down along hierarchies while all parts stay valid (Sun et al. 2010)",
    options: &[
        Parameter {
            name: "widest_first",
            kind: FLAG,
            required: false,
            help: "1 to specialize the widest column first: fewer classes, but a smaller share of each column's range is lost",
        },
        Parameter {
            name: "whole_children",
            kind: FLAG,
            required: false,
            help: "1 to unite those who are left with whole children only, never with some members of one: fewer classes",
        },
    ],
    whole_table: false,
    serves: |_| Ok(()),
    build: |parameters| {
        let said = |name| parameters.integer(name) == Ok(1);
        Ok(Box::new(Localpk {
            first: match said("widest_first") {
                true => First::Widest,
                false => First::FewestLeft,
            },
            ways: match said("whole_children") {
                true => &[Back::Children],
                false => &[Back::Borrow, Back::Children],
            },
        }))
    },
};

const FLAG: ParameterKind = ParameterKind::Integer { min: 0, max: 1 };

/// Localpk (Sun 2010, Algorithm 1), for any number of columns and any model.
///
/// # Guarantee
/// Nobody is suppressed, unless all individuals together are no valid class; then everybody is (docs/theory/papers.md P6). No
/// two classes publish the same values: those who are left in a group are fewer from any child that remains than a class
/// needs, so that in this column a class of theirs covers more than that child.
///
/// # Runtime
/// Every level of every column looks at every individual once per column, and every class is tried in every column once
/// more: O(n · levels · columns²), whatever the values.
#[derive(Debug, Clone, Copy)]
pub struct Localpk {
    first: First,
    ways: &'static [Back],
}

/// Which column a group is specialized in first. Both rules look at quasi-identifiers only (docs/theory/papers.md P7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The one in which the fewest members are left in children that are too small; at a tie the one with the tallest
    /// hierarchy, and then with the fewest leaves.
    FewestLeft,
    /// The one in which the group's label loses most.
    Widest,
}

impl Default for Localpk {
    fn default() -> Self {
        Self::new()
    }
}

impl Localpk {
    /// The algorithm that forms the most classes: those who are left borrow members of other children (P5), and the column in which the
    /// fewest are left comes first (P7).
    pub fn new() -> Self {
        Self {
            first: First::FewestLeft,
            ways: &[Back::Borrow, Back::Children],
        }
    }

    /// The columns in which a group may be specialized, in the order in which they are tried; at a tie their own.
    fn columns(&self, splitter: &mut Splitter<'_>, trees: &[Tree], group: &Group) -> Vec<usize> {
        let may = |c: &usize| {
            group.exhausted != Some(*c) && !trees[*c].hierarchy().is_leaf(group.labels[*c])
        };
        let mut columns: Vec<usize> = (0..trees.len()).filter(may).collect();
        match self.first {
            First::Widest => columns.sort_by_key(|c| Reverse(trees[*c].loss(group.labels[*c]))),
            First::FewestLeft => columns.sort_by_cached_key(|c| {
                let tree = &trees[*c];
                let left = splitter.too_few(group, *c);
                (left, Reverse(tree.levels()), tree.hierarchy().leaves())
            }),
        }
        columns
    }
}

impl Algorithm for Localpk {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        form_classes(*self, block, model, cancel, &mut |_, _| {})
    }
}

/// Forms classes and shows every specialization that succeeds.
fn form_classes(
    localpk: Localpk,
    block: &Block,
    model: &dyn Model,
    cancel: &Cancel,
    watch: &mut dyn FnMut(&Group, &Split),
) -> Result<Classes, Cancelled> {
    cancel.check()?;
    let trees = trees(block);
    let everybody: Vec<u32> = (0..block.len() as u32).collect();
    let mut tally = model.tally();
    let members = everybody.iter().copied();
    // The paper never asks whether there is a solution (P6).
    if block.is_empty() || !satisfied(block, model, tally.as_mut(), members) {
        return Ok(Classes {
            suppressed: everybody,
            ..Classes::default()
        });
    }
    let mut splitter = Splitter::new(block, model, &trees);
    let mut open = vec![Group {
        labels: vec![ROOT; trees.len()],
        members: everybody,
        exhausted: None,
    }];
    let mut classes = vec![];
    // A group of fewer cannot be two classes.
    let two = model.min_individuals().saturating_mul(2);
    while let Some(group) = open.pop() {
        cancel.check()?;
        let split = (group.members.len() >= two)
            .then(|| localpk.columns(&mut splitter, &trees, &group))
            .and_then(|columns| splitter.first_split(&group, &columns, localpk.ways));
        match split {
            Some(split) => {
                watch(&group, &split);
                open.extend(split.children);
                open.extend(split.left);
            }
            // Here, not after the loop, so that no group is forgotten; and a leaf is never queued again (P4).
            None => classes.push(group.members),
        }
    }
    classes.sort_unstable();
    Ok(Classes {
        classes,
        ..Classes::default()
    })
}

#[cfg(test)]
mod tests;
