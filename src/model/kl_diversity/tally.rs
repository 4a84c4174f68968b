//! The counts of a class.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Catalogue, Shares};
use crate::model::{Member, Tally};
use crate::table::ROOT;

/// Individuals by fingerprint.
pub(super) struct Diversity {
    l: u64,
    value_l: Option<u64>,
    book: Book,
    individuals: u64,
    /// A member has a fingerprint that is not in the catalogue.
    unknown: bool,
    /// By number of the fingerprint.
    counts: Vec<u64>,
    /// Those with members.
    held: Vec<u32>,
}

/// What the numbers of fingerprints stand for.
enum Book {
    /// Sets of nodes, numbered beforehand.
    Published(Arc<Catalogue>),
    /// Sets of values that are compared as they are, numbered when they are first seen.
    Plain {
        numbers: HashMap<Vec<u32>, u32>,
        sets: Vec<Vec<u32>>,
    },
}

impl Book {
    /// The number of a fingerprint.
    fn number(&mut self, fingerprint: &[u32]) -> Option<u32> {
        match self {
            Self::Published(catalogue) => match fingerprint {
                [id] => Some(*id).filter(|id| (*id as usize) < catalogue.len()),
                _ => None,
            },
            Self::Plain { numbers, sets } => {
                let known = numbers.get(fingerprint).copied();
                Some(known.unwrap_or_else(|| {
                    let next = sets.len() as u32;
                    numbers.insert(fingerprint.to_vec(), next);
                    sets.push(fingerprint.to_vec());
                    next
                }))
            }
        }
    }

    fn values(&self, id: u32) -> &[u32] {
        match self {
            Self::Published(catalogue) => catalogue.nodes(id),
            Self::Plain { sets, .. } => &sets[id as usize],
        }
    }

    /// The published values that tell something: everybody is known to have something below the root.
    fn telling(&self, id: u32) -> impl Iterator<Item = u32> {
        let root = matches!(self, Self::Published(_)).then_some(ROOT);
        self.values(id)
            .iter()
            .copied()
            .filter(move |value| Some(*value) != root)
    }

    fn is_related(&self, id: u32, value: u32) -> bool {
        match self {
            Self::Published(catalogue) => catalogue.is_related(id, value),
            Self::Plain { sets, .. } => sets[id as usize].binary_search(&value).is_ok(),
        }
    }

    /// What [`Book::may_be_common`] needs to know of a fingerprint.
    fn common(&self, id: u32) -> u128 {
        match self {
            Self::Published(catalogue) => catalogue.common(id),
            Self::Plain { .. } => 0,
        }
    }

    /// A quick no to most questions whether any value is related to all of several fingerprints.
    fn may_have_common(&self, common: u128) -> bool {
        match self {
            Self::Published(catalogue) => catalogue.may_have_common(common),
            Self::Plain { .. } => true,
        }
    }

    /// A quick no to most questions whether a value is related to all of several fingerprints.
    fn may_be_common(&self, value: u32, common: u128) -> bool {
        match self {
            Self::Published(catalogue) => catalogue.may_be_common(value, common),
            Self::Plain { .. } => true,
        }
    }

    fn wider(&self, id: u32) -> &[u32] {
        match self {
            Self::Published(catalogue) => catalogue.wider(id),
            Self::Plain { .. } => &[],
        }
    }

    /// The values above a value.
    fn above(&self, value: u32) -> impl Iterator<Item = u32> {
        let parent = move |value: u32| match self {
            Self::Published(catalogue) => catalogue.tree().parent(value),
            Self::Plain { .. } => None,
        };
        std::iter::successors(parent(value), move |value| parent(*value))
    }
}

impl Diversity {
    pub(super) fn new(l: u64, value_l: Option<u64>, published: Option<Arc<Catalogue>>) -> Self {
        let numbers = HashMap::new();
        Self {
            l,
            value_l,
            counts: vec![0; published.as_ref().map_or(0, |catalogue| catalogue.len())],
            book: match published {
                Some(catalogue) => Book::Published(catalogue),
                None => Book::Plain {
                    numbers,
                    sets: vec![],
                },
            },
            individuals: 0,
            unknown: false,
            held: vec![],
        }
    }

    /// Different fingerprints.
    pub(super) fn different(&self) -> usize {
        self.held.len()
    }

    pub(super) fn shares(&self) -> Shares {
        let alike = self.held.iter().map(|id| self.alike(*id));
        Shares {
            individuals: self.individuals,
            fingerprint: alike.max().unwrap_or(0),
            value: self.most_related(),
        }
    }

    /// Those whose fingerprints may describe the same set as one of them does. Of all fingerprints that describe a set
    /// one is the narrowest, and the others are compatible with it and not narrower.
    fn alike(&self, id: u32) -> u64 {
        let count = |id: &u32| self.counts[*id as usize];
        count(&id) + self.book.wider(id).iter().map(count).sum::<u64>()
    }

    /// Whether all members may have one published value, or something below or above it.
    fn have_one_in_common(&self) -> bool {
        let common = self
            .held
            .iter()
            .fold(u128::MAX, |all, id| all & self.book.common(*id));
        if !self.book.may_have_common(common) {
            return false;
        }
        // It is related to every fingerprint, so also to one with few values.
        let held = self.held.iter();
        let Some(small) = held.min_by_key(|id| self.book.values(**id).len()) else {
            return false;
        };
        let mut values = self.held.iter().flat_map(|id| self.book.telling(*id));
        values.any(|value| {
            self.book.may_be_common(value, common)
                && self.book.is_related(*small, value)
                && self.held.iter().all(|id| self.book.is_related(*id, value))
        })
    }

    /// The most members who have a published value, or something below or above it.
    fn most_related(&self) -> u64 {
        let (mut own, mut below) = (vec![], vec![]);
        let mut upwards = vec![];
        for id in &self.held {
            let count = self.counts[*id as usize];
            upwards.clear();
            for value in self.book.values(*id) {
                own.push((*value, count));
                upwards.push(*value);
                upwards.extend(self.book.above(*value));
            }
            // Who has two values below one is counted once there.
            upwards.sort_unstable();
            upwards.dedup();
            below.extend(upwards.iter().map(|value| (*value, count)));
        }
        let (own, below) = (summed(own), summed(below));
        let values = self.held.iter().flat_map(|id| self.book.telling(*id));
        let related = values.map(|value| {
            let above = self.book.above(value).map(|above| look_up(&own, above));
            look_up(&below, value) + above.sum::<u64>()
        });
        related.max().unwrap_or(0)
    }
}

/// One entry per value, ascending.
fn summed(mut counts: Vec<(u32, u64)>) -> Vec<(u32, u64)> {
    counts.sort_unstable();
    counts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    counts
}

fn look_up(counts: &[(u32, u64)], value: u32) -> u64 {
    let at = counts.binary_search_by_key(&value, |(value, _)| *value);
    at.map_or(0, |at| counts[at].1)
}

impl Tally for Diversity {
    fn add(&mut self, member: Member<'_>) {
        if member.fingerprint.is_empty() {
            return;
        }
        let Some(id) = self.book.number(member.fingerprint) else {
            self.unknown = true;
            return;
        };
        if self.counts.len() <= id as usize {
            self.counts.resize(id as usize + 1, 0);
        }
        let count = &mut self.counts[id as usize];
        if *count == 0 {
            self.held.push(id);
        }
        *count += 1;
        self.individuals += 1;
    }

    fn satisfied(&mut self) -> bool {
        let n = self.individuals;
        let most = n / self.l;
        n > 0
            && !self.unknown
            && self.held.iter().all(|id| self.counts[*id as usize] <= most)
            && self.held.iter().all(|id| self.alike(*id) <= most)
            && match self.value_l {
                Some(value_l) => self.most_related() <= n / value_l,
                None => !self.have_one_in_common(),
            }
    }

    /// A member with a fingerprint that no other has.
    fn helps(&self, member: Member<'_>) -> bool {
        match (&self.book, member.fingerprint) {
            (Book::Published(_), [id]) => self.counts.get(*id as usize) == Some(&0),
            (Book::Plain { numbers, .. }, values) => numbers
                .get(values)
                .is_none_or(|id| self.counts[*id as usize] == 0),
            _ => false,
        }
    }

    fn clear(&mut self) {
        for id in self.held.drain(..) {
            self.counts[id as usize] = 0;
        }
        self.individuals = 0;
        self.unknown = false;
    }
}
