//! What group division returns.

use std::fmt;

use super::requirement::Infeasible;
use crate::algorithm::Cancelled;

/// Groups of individuals: every individual in exactly one.
///
/// Members are sorted, and groups come by their first member. Neither order may be published: see
/// [`publish`](super::publish()).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    members: Vec<u32>,
    ends: Vec<u32>,
}

/// Why there are no groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DivideError {
    /// Nobody waits for them any more.
    Cancelled,
    /// The caller's input contradicts itself.
    Malformed(&'static str),
    /// A sensitive value occurs more often than in what was given as the whole table.
    NotAPart,
    /// No groups satisfy the bounds.
    Infeasible(Infeasible),
}

impl Groups {
    pub(super) fn new(mut groups: Vec<Vec<u32>>) -> Self {
        for group in &mut groups {
            group.sort_unstable();
        }
        groups.sort_unstable_by_key(|group| group.first().copied());
        let mut sorted = Self::default();
        for group in groups.iter().filter(|group| !group.is_empty()) {
            sorted.members.extend_from_slice(group);
            sorted.ends.push(sorted.members.len() as u32);
        }
        sorted
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many individuals all groups have together.
    pub fn individuals(&self) -> usize {
        self.members.len()
    }

    /// The individuals of a group, sorted.
    pub fn members(&self, group: usize) -> &[u32] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start as usize..self.ends[group] as usize]
    }

    /// The individuals of each group.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|group| self.members(group))
    }
}

impl From<Cancelled> for DivideError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl fmt::Display for DivideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("cancelled"),
            Self::Malformed(why) => f.write_str(why),
            Self::NotAPart => {
                f.write_str("a sensitive value occurs more often than in the whole table")
            }
            Self::Infeasible(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for DivideError {}
