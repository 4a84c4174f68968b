//! Local groups: at least k individuals of one pattern who publish the same quasi-identifiers (Li 2020, Definition 8).

mod partition;
mod penalty;
mod sets;

pub use self::sets::Set;
use self::sets::Sets;
use super::people::LgbInput;
use super::{Strategy, Treatment};
use crate::algorithm::{Cancel, Cancelled};

/// Individuals that no published quasi-identifier tells apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The pattern, by its place in [`Patterns::patterns`](super::Patterns::patterns).
    pub pattern: usize,
    /// The individuals, in the order of their numbers.
    pub members: Vec<u32>,
    /// What each member loses in all quasi-identifiers, blank ones included.
    pub loss: u64,
}

/// Divides individuals of one pattern, at least k, into groups of at least k.
///
/// Everything that a strategy decides comes from the columns that the pattern generalizes; secret values are never
/// looked at.
///
/// # Runtime
///
/// O(c · n log n) for n individuals and c columns.
pub fn generalize(
    people: &LgbInput,
    treatments: &[Treatment],
    members: Vec<u32>,
    k: usize,
    strategy: Strategy,
    cancel: &Cancel,
) -> Result<Vec<Set>, Cancelled> {
    let columns = people.columns().iter().zip(treatments);
    let columns = columns.filter(|(_, treatment)| **treatment == Treatment::Generalized);
    let columns = columns.map(|(column, _)| column);
    let sets = Sets::new(columns.collect(), members);
    let k = k.max(1);
    sets.divide(cancel, |sets, set| match strategy {
        Strategy::Mdp => partition::cut(sets, set, k),
        Strategy::Ncp => penalty::halve(sets, set, k),
    })
}
