//! Asking the model about classes.

use crate::model::{Closure, Member, Model, Tally};
use crate::table::Block;

/// A model, with a tally for one class after the other.
pub(super) struct Judge<'a> {
    block: &'a Block,
    tally: Box<dyn Tally>,
    closure: Closure,
    min_individuals: usize,
    valid: bool,
}

impl<'a> Judge<'a> {
    pub(super) fn new(block: &'a Block, model: &dyn Model) -> Self {
        Self {
            block,
            tally: model.tally(),
            closure: model.closure(),
            min_individuals: model.min_individuals(),
            valid: false,
        }
    }

    /// Whether a valid class stays valid with one more member.
    pub(super) fn grows_freely(&self) -> bool {
        self.closure.extension
    }

    /// The size below which no class is valid.
    pub(super) fn min_individuals(&self) -> usize {
        self.min_individuals
    }

    /// Whether individuals would be a valid class.
    pub(super) fn satisfied(&mut self, members: impl Iterator<Item = u32>) -> bool {
        self.tally.clear();
        for member in members {
            self.tally.add(Member::of(self.block, member));
        }
        self.tally.satisfied()
    }

    /// Begins a class.
    pub(super) fn begin(&mut self) {
        self.tally.clear();
        self.valid = false;
    }

    /// Adds a member to the class that was begun.
    pub(super) fn add(&mut self, member: u32) {
        self.tally.add(Member::of(self.block, member));
        self.valid = self.tally.satisfied();
    }

    /// Whether the class that was begun is valid.
    pub(super) fn is_valid(&self) -> bool {
        self.valid
    }

    /// Whether an individual would bring the class that was begun nearer to being valid.
    pub(super) fn helps(&self, individual: u32) -> bool {
        self.tally.helps(Member::of(self.block, individual))
    }
}
