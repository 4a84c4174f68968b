//! Cutting a class across one column.

use std::ops::Range;

use super::width::{Ends, ends};
use crate::table::{Block, Categorical, Hierarchical, Hierarchy, NULL_CODE, QuasiIdentifier};

/// Cuts classes; keeps its buffers.
pub(super) struct Cutter<'a> {
    block: &'a Block,
    relaxed: bool,
    /// The place of each member on the column, in the order of the members.
    keys: Vec<u64>,
    sorted: Vec<u64>,
    /// The part of each member.
    labels: Vec<u32>,
    /// Members, part by part, and where each part ends.
    members: Vec<u32>,
    bounds: Vec<usize>,
    /// By code: individuals that have it, then its rank.
    codes: Vec<u32>,
    ranked: Vec<u32>,
}

/// The parts of a class, each in ascending order.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) members: &'a [u32],
    /// Where each part begins, and where the last one ends.
    bounds: &'a [usize],
}

impl<'a> Parts<'a> {
    /// The members of each part.
    pub(super) fn each(&self) -> Vec<&'a [u32]> {
        let part = |ends: &[usize]| &self.members[ends[0]..ends[1]];
        self.bounds.windows(2).map(part).collect()
    }

    /// Where the parts lie if the class begins at `start`.
    pub(super) fn ranges(self, start: usize) -> impl Iterator<Item = Range<usize>> {
        self.bounds
            .windows(2)
            .map(move |ends| start + ends[0]..start + ends[1])
    }
}

impl<'a> Cutter<'a> {
    pub(super) fn new(block: &'a Block, relaxed: bool) -> Self {
        Self {
            block,
            relaxed,
            keys: vec![],
            sorted: vec![],
            labels: vec![],
            members: vec![],
            bounds: vec![],
            codes: vec![],
            ranked: vec![],
        }
    }

    /// The parts of a class along a column; `None` if the column does not tell its members apart.
    pub(super) fn cut(&mut self, column: usize, members: &[u32]) -> Option<Parts<'_>> {
        self.labels.clear();
        let block = self.block;
        let parts = match &block.quasi_identifiers()[column] {
            QuasiIdentifier::Numeric(n) => {
                let presence = |i: usize| Presence::of_range(n.lo[i], n.hi[i]);
                match first_missing(members, presence) {
                    Some(first) => self.by_presence(members, presence, first),
                    None => self.by_value(members, |i| u64::from(n.lo[i]) + u64::from(n.hi[i])),
                }
            }
            QuasiIdentifier::Categorical(c) => {
                let presence = |i: usize| Presence::of_set(c.of(i as u32));
                match first_missing(members, presence) {
                    Some(first) => self.by_presence(members, presence, first),
                    None => self.by_frequency(members, c),
                }
            }
            QuasiIdentifier::Hierarchical(h) => {
                let presence = |i: usize| Presence::of_range(h.lo[i], h.hi[i]);
                match first_missing(members, presence) {
                    Some(first) => self.by_presence(members, presence, first),
                    None => self.by_child(members, h),
                }
            }
        }?;
        self.distribute(members, parts);
        Some(Parts {
            members: &self.members,
            bounds: &self.bounds,
        })
    }

    /// Those like `first` from the others.
    fn by_presence(
        &mut self,
        members: &[u32],
        presence: impl Fn(usize) -> Presence,
        first: Presence,
    ) -> Option<usize> {
        self.label(
            members
                .iter()
                .map(|member| u32::from(presence(*member as usize) != first)),
        )
    }

    /// Small values from large ones, between two values, as near to the middle individual as can be.
    fn by_value(&mut self, members: &[u32], key: impl Fn(usize) -> u64) -> Option<usize> {
        self.keys.clear();
        self.keys
            .extend(members.iter().map(|member| key(*member as usize)));
        self.cut_keys()
    }

    fn cut_keys(&mut self) -> Option<usize> {
        self.sorted.clear();
        self.sorted.extend_from_slice(&self.keys);
        let n = self.sorted.len();
        let (_, middle, _) = self.sorted.select_nth_unstable(n / 2);
        let middle = *middle;
        let below = self.keys.iter().filter(|key| **key < middle).count();
        let upto = below + self.keys.iter().filter(|key| **key == middle).count();
        if below == 0 && upto == n {
            return None;
        }
        let keys = std::mem::take(&mut self.keys);
        let parts = if self.relaxed {
            // As many of the individuals with the middle value as the lower half lacks, the first ones first.
            let mut lacking = n / 2 - below;
            self.label(keys.iter().map(|key| {
                let joins = *key == middle && lacking > 0;
                lacking -= usize::from(joins);
                u32::from(*key >= middle && !joins)
            }))
        } else if below > 0 && n.abs_diff(2 * below) < n.abs_diff(2 * upto) || upto == n {
            self.label(keys.iter().map(|key| u32::from(*key >= middle)))
        } else {
            self.label(keys.iter().map(|key| u32::from(*key > middle)))
        };
        self.keys = keys;
        parts
    }

    /// Frequent values from rare ones: a few values for many individuals lose least. An individual with several values
    /// is with the rarest of them, so that the frequent part shows frequent values only.
    fn by_frequency(&mut self, members: &[u32], column: &Categorical) -> Option<usize> {
        self.codes
            .resize(self.codes.len().max(column.cardinality as usize), 0);
        self.ranked.clear();
        for code in members.iter().flat_map(|member| column.of(*member)) {
            let count = &mut self.codes[*code as usize];
            if *count == 0 {
                self.ranked.push(*code);
            }
            *count += 1;
        }
        let counts = &self.codes;
        self.ranked
            .sort_unstable_by_key(|code| (std::cmp::Reverse(counts[*code as usize]), *code));
        for (rank, code) in self.ranked.iter().enumerate() {
            self.codes[*code as usize] = rank as u32;
        }
        self.keys.clear();
        for member in members {
            let ranks = column
                .of(*member)
                .iter()
                .map(|code| self.codes[*code as usize]);
            self.keys.push(u64::from(ranks.max().unwrap_or(0)));
        }
        for code in &self.ranked {
            self.codes[*code as usize] = 0;
        }
        // A value is never on both sides, also where numbers may be.
        let relaxed = std::mem::replace(&mut self.relaxed, false);
        let parts = self.cut_keys();
        self.relaxed = relaxed;
        parts
    }

    /// By the children of the node that covers the class; individuals that span several of them are a part of their
    /// own, because no child describes them.
    fn by_child(&mut self, members: &[u32], column: &Hierarchical) -> Option<usize> {
        let Ends::Within(first, last) = ends(&column.lo, &column.hi, members) else {
            return None;
        };
        let tree: &Hierarchy = &column.tree.hierarchy;
        let node = tree.covering(first, last);
        let begins: Vec<u32> = tree
            .children(node)
            .map(|child| tree.range(child).0)
            .collect();
        let child = |leaf: u32| begins.partition_point(|begin| *begin <= leaf) as u32;
        self.label(members.iter().map(|member| {
            let i = *member as usize;
            match (child(column.lo[i]), child(column.hi[i])) {
                (a, b) if a == b => a,
                _ => 0,
            }
        }))
    }

    /// Sets the labels; the number of labels in use from 0, or `None` if there is only one.
    fn label(&mut self, labels: impl Iterator<Item = u32>) -> Option<usize> {
        self.labels.clear();
        self.labels.extend(labels);
        let first = self.labels.first()?;
        if self.labels.iter().all(|label| label == first) {
            return None;
        }
        self.labels.iter().max().map(|last| *last as usize + 1)
    }

    fn distribute(&mut self, members: &[u32], parts: usize) {
        self.bounds.clear();
        self.bounds.resize(parts + 1, 0);
        for label in &self.labels {
            self.bounds[*label as usize + 1] += 1;
        }
        for part in 1..=parts {
            self.bounds[part] += self.bounds[part - 1];
        }
        self.members.clear();
        self.members.resize(members.len(), 0);
        let mut next = self.bounds.clone();
        for (member, label) in members.iter().zip(&self.labels) {
            let at = &mut next[*label as usize];
            self.members[*at] = *member;
            *at += 1;
        }
        // Children without members are no parts.
        self.bounds.dedup();
    }
}

/// In a class with missing values, those that are to be one part: the present ones, or the missing ones where none is
/// present. As long as a class has both, its column is suppressed and no other cut helps. Individuals some of whose
/// records have no value are suppressed among values and among missing ones alike.
fn first_missing(members: &[u32], presence: impl Fn(usize) -> Presence) -> Option<Presence> {
    let of = |member: &u32| presence(*member as usize);
    if members.iter().all(|member| of(member) == Presence::Present) {
        return None;
    }
    Some(
        match members.iter().any(|member| of(member) == Presence::Present) {
            true => Presence::Present,
            false => Presence::Missing,
        },
    )
}

/// Whether an individual has a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Present,
    Missing,
    /// Some records have one and some have none.
    Partly,
}

impl Presence {
    fn of_range(lo: u32, hi: u32) -> Self {
        match (lo, hi) {
            (NULL_CODE, _) => Self::Missing,
            (_, NULL_CODE) => Self::Partly,
            _ => Self::Present,
        }
    }

    fn of_set(codes: &[u32]) -> Self {
        match codes {
            [] | [NULL_CODE] => Self::Missing,
            [.., NULL_CODE] => Self::Partly,
            _ => Self::Present,
        }
    }
}
