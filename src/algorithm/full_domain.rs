//! Full-domain recoding: all values of a column are generalized to the same level of its tree, and individuals with
//! the same labels are a group.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::trees::Tree;
use crate::model::{Member, Model, Tally};
use crate::table::Block;

/// Individuals with the same labels, one label per column.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub labels: Vec<u32>,
    pub members: Vec<u32>,
    /// Whether members were added since this was last set to false.
    pub grown: bool,
}

/// Groups individuals by the nodes at which their generalization starts. Groups come in the order of their first
/// members, members in ascending order.
pub(super) fn by_values(trees: &[Tree], individuals: u32) -> Vec<Group> {
    let labels = |i: u32| trees.iter().map(|tree| tree.start(i)).collect();
    merged((0..individuals).map(|i| Group {
        labels: labels(i),
        members: vec![i],
        grown: true,
    }))
}

/// The groups after a column was recoded one level up.
pub(super) fn step_up(groups: Vec<Group>, column: usize, up: &[u32]) -> Vec<Group> {
    merged(groups.into_iter().map(|mut group| {
        let label = &mut group.labels[column];
        *label = up[*label as usize];
        group
    }))
}

/// Makes groups with the same labels one.
fn merged(groups: impl Iterator<Item = Group>) -> Vec<Group> {
    let mut found: HashMap<Vec<u32>, usize, Mix> = HashMap::default();
    let mut all: Vec<Group> = vec![];
    for group in groups {
        match found.get(&group.labels) {
            Some(at) => {
                all[*at].members.extend(group.members);
                all[*at].grown = true;
            }
            None => {
                found.insert(group.labels.clone(), all.len());
                all.push(group);
            }
        }
    }
    all
}

/// Number of different labels of a column.
pub(super) fn distinct(groups: &[Group], column: usize) -> usize {
    let mut labels: Vec<u32> = groups.iter().map(|group| group.labels[column]).collect();
    labels.sort_unstable();
    labels.dedup();
    labels.len()
}

/// What a record loses that publishes these labels.
pub(super) fn loss(trees: &[Tree], labels: &[u32]) -> u64 {
    let losses = trees
        .iter()
        .zip(labels)
        .map(|(tree, label)| tree.loss(*label));
    losses.fold(0, u64::saturating_add)
}

/// Whether the members form a valid class. Stops early where more members cannot do harm.
pub(super) fn satisfied(
    block: &Block,
    model: &dyn Model,
    tally: &mut dyn Tally,
    members: impl IntoIterator<Item = u32>,
) -> bool {
    let (grows, enough) = (model.closure().extension, model.min_individuals());
    tally.clear();
    for (before, member) in members.into_iter().enumerate() {
        tally.add(Member::of(block, member));
        if grows && before + 1 >= enough && tally.satisfied() {
            return true;
        }
    }
    tally.satisfied()
}

/// Hashes labels, which come from our own trees: nobody chooses them to collide.
pub(super) type Mix = BuildHasherDefault<MixHasher>;

#[derive(Debug, Default)]
pub(super) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
