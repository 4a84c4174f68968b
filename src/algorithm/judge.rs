//! Asking a model about the parts of a class.

use crate::model::{Member, Model, Tally};
use crate::table::Block;

/// Decides whether individuals may be a class.
pub(super) struct Judge<'a> {
    block: &'a Block,
    tally: Box<dyn Tally>,
    least: usize,
    /// More members never break the model.
    extension: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(block: &'a Block, model: &dyn Model) -> Self {
        Self {
            block,
            tally: model.tally(),
            least: model.min_individuals().max(1),
            extension: model.closure().extension,
        }
    }

    /// No smaller class is accepted.
    pub(super) fn least(&self) -> usize {
        self.least
    }

    /// Whether each part may be a class.
    pub(super) fn accepts_all(&mut self, parts: &[&[u32]]) -> bool {
        let smallest = (0..parts.len()).min_by_key(|part| parts[*part].len());
        // A small part is the one that fails, and quick to look at.
        smallest.is_some_and(|smallest| {
            self.accepts(parts[smallest])
                && (0..parts.len()).all(|part| part == smallest || self.accepts(parts[part]))
        })
    }

    /// Whether these individuals may be a class.
    pub(super) fn accepts(&mut self, members: &[u32]) -> bool {
        if members.len() < self.least {
            return false;
        }
        self.tally.clear();
        let mut counted = 0;
        // What some members satisfy, all do: look at the first ones, then at twice as many.
        let mut stop = if self.extension {
            self.least
        } else {
            members.len()
        };
        loop {
            for member in &members[counted..stop] {
                self.tally.add(Member::of(self.block, *member));
            }
            if self.tally.satisfied() {
                return true;
            }
            if stop == members.len() {
                return false;
            }
            counted = stop;
            stop = (2 * stop).min(members.len());
        }
    }
}
