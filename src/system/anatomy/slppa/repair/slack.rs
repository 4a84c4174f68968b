//! How much room groups leave to bounds that are often at fault.

use std::collections::BTreeSet;

use crate::system::anatomy::slppa::counter::{Bound, Rules, Tally};

/// Bounds that have an index however many groups there are.
const FEWEST: usize = 4;

/// Available groups ordered by the room they leave to a bound, for bounds that came up.
pub(super) struct Rooms {
    /// No larger group counts as small.
    largest: usize,
    indices: Vec<Index>,
}

struct Index {
    bound: Bound,
    /// Whether each group is large and the room that it leaves, if it is available.
    rooms: Vec<Option<(bool, i128)>>,
    small: BTreeSet<(i128, u32)>,
    large: BTreeSet<(i128, u32)>,
}

/// The room that a group leaves to a bound.
pub(super) fn of(rules: &Rules<'_>, bound: Bound, members: &[u32]) -> i128 {
    let concerned = members
        .iter()
        .filter(|member| rules.concerns(bound, **member));
    rules.slack(bound, members.len() as u64, concerned.count() as u64)
}

impl Rooms {
    pub fn new(largest: usize) -> Self {
        Self {
            largest,
            indices: vec![],
        }
    }

    pub fn has(&self, bound: Bound) -> bool {
        self.indices.iter().any(|index| index.bound == bound)
    }

    /// Whether one more index would take more memory than the individuals themselves.
    pub fn is_full(&self, groups: usize, individuals: usize) -> bool {
        self.indices.len() >= FEWEST && self.indices.len() * groups > individuals / 2
    }

    /// Makes an index of the room that each available group leaves to the bound.
    pub fn add(
        &mut self,
        rules: &Rules<'_>,
        bound: Bound,
        groups: &[Vec<u32>],
        available: impl Fn(usize) -> bool,
    ) {
        let mut index = Index {
            bound,
            rooms: vec![None; groups.len()],
            small: BTreeSet::new(),
            large: BTreeSet::new(),
        };
        for (group, members) in groups.iter().enumerate() {
            if available(group) {
                let room = of(rules, bound, members);
                index.insert(group as u32, members.len() > self.largest, room);
            }
        }
        self.indices.push(index);
    }

    /// The group that leaves the least room of those that leave enough, or else the most. Large ones are spared while
    /// small ones leave any: taking in the same group again and again would make it larger still.
    pub fn best(&self, bound: Bound, needed: i128) -> Option<u32> {
        let index = self.indices.iter().find(|index| index.bound == bound)?;
        let enough = |groups: &BTreeSet<(i128, u32)>| groups.range((needed, 0)..).next().copied();
        let most = |groups: &BTreeSet<(i128, u32)>| groups.last().copied();
        let best = enough(&index.small)
            .or_else(|| most(&index.small).filter(|(room, _)| *room > 0))
            .or_else(|| enough(&index.large))
            .or_else(|| most(&index.large))
            .or_else(|| most(&index.small));
        best.map(|(_, group)| group)
    }

    pub fn remove(&mut self, group: u32) {
        for index in &mut self.indices {
            if let Some((is_large, room)) = index.rooms[group as usize].take() {
                index.side(is_large).remove(&(room, group));
            }
        }
    }

    pub fn insert(&mut self, rules: &Rules<'_>, tally: &Tally, group: u32) {
        let is_large = tally.individuals() > self.largest as u64;
        for index in &mut self.indices {
            index.insert(group, is_large, tally.slack(rules, index.bound));
        }
    }
}

impl Index {
    fn side(&mut self, is_large: bool) -> &mut BTreeSet<(i128, u32)> {
        if is_large {
            &mut self.large
        } else {
            &mut self.small
        }
    }

    fn insert(&mut self, group: u32, is_large: bool, room: i128) {
        self.rooms[group as usize] = Some((is_large, room));
        self.side(is_large).insert((room, group));
    }
}
