//! Local groups: at least k individuals of one pattern who publish the same quasi-identifiers (Li 2020, Definition 8).

mod partition;
mod penalty;
mod sets;

use self::sets::Sets;
use super::people::{People, Seen};
use super::{Strategy, Treatment};
use crate::algorithm::{Cancel, Cancelled};
use crate::table::Cell;

/// Individuals that no published quasi-identifier tells apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// A random number.
    pub id: u64,
    /// The pattern, by its place in [`Patterns::patterns`](super::Patterns::patterns).
    pub pattern: usize,
    /// The individuals, in the order of their numbers.
    pub members: Vec<u32>,
    /// What the group publishes per quasi-identifier; `None` where the pattern does not generalize.
    pub cells: Vec<Option<Cell>>,
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
    people: &People,
    treatments: &[Treatment],
    members: Vec<u32>,
    k: usize,
    strategy: Strategy,
    cancel: &Cancel,
) -> Result<Vec<Vec<u32>>, Cancelled> {
    let columns = generalized(people, treatments).map(|at| &people.columns()[at]);
    let sets = Sets::new(columns.collect(), members);
    let k = k.max(1);
    sets.divide(cancel, |sets, set| match strategy {
        Strategy::Mdp => partition::cut(sets, set, k),
        Strategy::Ncp => penalty::halve(sets, set, k),
    })
}

/// The quasi-identifiers that a pattern generalizes.
fn generalized<'a>(
    people: &'a People,
    treatments: &'a [Treatment],
) -> impl Iterator<Item = usize> + 'a {
    (0..people.columns().len()).filter(|at| treatments[*at] == Treatment::Generalized)
}

impl Group {
    pub(super) fn new(
        people: &People,
        treatments: &[Treatment],
        pattern: usize,
        mut members: Vec<u32>,
        id: u64,
        seen: &mut Seen,
    ) -> Self {
        let blank = treatments
            .iter()
            .filter(|t| **t == Treatment::Blank)
            .count();
        let mut loss = people.full().saturating_mul(blank as u64);
        let mut cells = vec![None; treatments.len()];
        for at in generalized(people, treatments) {
            let column = &people.columns()[at];
            let ranks = members.iter().map(|member| column.ranks[*member as usize]);
            if let Some((region, _)) = column.region(ranks, seen) {
                loss = loss.saturating_add(region.loss());
                cells[at] = region.cells().first().cloned();
            }
        }
        members.sort_unstable();
        Self {
            id,
            pattern,
            members,
            cells,
            loss,
        }
    }
}
