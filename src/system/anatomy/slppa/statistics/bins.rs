//! Bins of a column: cells of equal width on a fixed grid.

use serde::{Deserialize, Serialize};

use super::MISSING;
use crate::system::anatomy::slppa::mix::NumberMap;

/// Most bins of present values.
const MOST: usize = 64;

/// Slots of a contingency table: bins, the bin of missing values, and one that is free while a new bin is admitted.
pub(super) const SLOTS: usize = MOST + 2;

/// The occupied bins of a column, each with its slot in contingency tables.
///
/// The width is the smallest power of two for which at most [`MOST`] bins are occupied. More values never occupy fewer
/// bins, so the width in the end is the same in whatever order values come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Bins {
    shift: u32,
    slots: NumberMap<u8>,
    /// Where the counts of each slot belong since the bins became wider.
    moves: Option<Vec<u8>>,
}

impl Bins {
    /// The bin of a position.
    fn bin(&self, position: u64) -> u64 {
        match position {
            MISSING => MISSING,
            present => present >> self.shift,
        }
    }

    pub fn occupied(&self) -> usize {
        self.slots.len()
    }

    /// Makes bins for all positions; whether older ones became wider.
    pub fn admit(&mut self, positions: &[u64]) -> bool {
        for position in positions {
            self.admit_bin(self.bin(*position));
        }
        self.moves.is_some()
    }

    /// Makes bins for all of `other`'s, at the width of both; whether older ones became wider.
    pub fn admit_bins(&mut self, other: &Self) -> bool {
        self.widen_to(other);
        let mut bins: Vec<u64> = other.slots.keys().copied().collect();
        bins.sort_unstable();
        for bin in bins {
            let position = match bin {
                MISSING => MISSING,
                bin => bin << other.shift,
            };
            self.admit_bin(self.bin(position));
        }
        self.moves.is_some()
    }

    fn admit_bin(&mut self, bin: u64) {
        if self.slots.contains_key(&bin) {
            return;
        }
        let slot = self.slots.len() as u8;
        self.slots.insert(bin, slot);
        while self.slots.len() - usize::from(self.slots.contains_key(&MISSING)) > MOST {
            self.widen(1);
        }
    }

    /// At least as wide as `other`'s.
    pub fn widen_to(&mut self, other: &Self) {
        if other.shift > self.shift {
            self.widen(other.shift - self.shift);
        }
    }

    fn widen(&mut self, by: u32) {
        self.shift += by;
        let mut old: Vec<(u64, u8)> = self.slots.drain().collect();
        old.sort_unstable();
        let mut moved = [0; SLOTS];
        for (bin, slot) in old {
            let bin = if bin == MISSING { bin } else { bin >> by };
            let next = self.slots.len() as u8;
            moved[usize::from(slot)] = *self.slots.entry(bin).or_insert(next);
        }
        let before = self.moves.take();
        let through = |slot: u8| moved[usize::from(slot)];
        self.moves = Some(match before {
            Some(moves) => moves.into_iter().map(through).collect(),
            None => moved.to_vec(),
        });
    }

    /// Where the counts of each slot belong, once after bins became wider.
    pub fn take_moves(&mut self) -> Option<Vec<u8>> {
        self.moves.take()
    }

    /// The slots of admitted positions.
    pub fn slots(&self, positions: &[u64]) -> Vec<u8> {
        let slot = |p: &u64| self.slots.get(&self.bin(*p)).copied().unwrap_or(0);
        positions.iter().map(slot).collect()
    }

    /// The slots here of the bins of `other`, which has the same width, by their slots there.
    pub fn slots_of(&self, other: &Self) -> Vec<u8> {
        let mut slots = vec![0; other.slots.len()];
        for (bin, slot) in &other.slots {
            slots[usize::from(*slot)] = self.slots.get(bin).copied().unwrap_or(0);
        }
        slots
    }
}
