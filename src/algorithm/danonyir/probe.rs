//! The region whose nearest neighbour is sought, with its distances to regions and bounds for collections of them.
//!
//! No loss here exceeds [`Block::full`](crate::table::Block::full) per column, and the sum over all columns fits in a
//! `u64`: that is what a block promises. Arithmetic wraps rather than panics should the promise be broken.

use super::space::{Codes, Folded, NULL, Nullable, Space, VALUE, ends};
use crate::table::{Cell, LossTree, Region};

/// Ends of an interval without values.
const NOWHERE: (u32, u32) = (u32::MAX, 0);

/// The region whose nearest neighbour is sought.
#[derive(Debug, Default)]
pub(super) struct Probe {
    records: u64,
    loss: u64,
    full: u64,
    ranges: usize,
    intervals: Vec<IntervalProbe>,
    nullable: Vec<NullableProbe>,
    sets: Vec<SetProbe>,
    folded: Vec<FoldedProbe>,
}

#[derive(Debug, Clone, Copy)]
struct IntervalProbe {
    lo: u32,
    hi: u32,
    step: u64,
}

#[derive(Debug)]
struct NullableProbe {
    interval: IntervalProbe,
    presence: Presence,
    tree: Option<LossTree>,
}

#[derive(Debug, Clone, Copy)]
struct SetProbe {
    mask: u64,
    loss: u64,
    step: u64,
}

#[derive(Debug)]
struct FoldedProbe {
    number: usize,
    exact: bool,
    presence: Presence,
    masks: [u64; 2],
    loss: u64,
    step: u64,
    codes: Vec<u32>,
    /// A bit per code.
    members: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Values,
    Missing,
    Both,
}

/// What is known about the regions of a collection, or all about a single region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent<'a> {
    pub(super) hull: &'a [u64],
    pub(super) core: &'a [u64],
    /// Fewest records.
    pub(super) records: u64,
    /// Smallest and largest loss.
    pub(super) losses: (u64, u64),
}

impl Probe {
    /// Aims at a region.
    pub(super) fn aim(&mut self, space: &Space, region: &Region) {
        let cells = region.cells();
        self.records = region.records();
        self.loss = region.loss();
        self.full = space.full;
        self.ranges = space.ranges();
        self.intervals.clear();
        self.intervals.extend(space.intervals.iter().map(|column| {
            let (lo, hi) = match cells[column.number] {
                Cell::Interval { lo, hi } => (lo, hi),
                _ => NOWHERE,
            };
            let step = column.step;
            IntervalProbe { lo, hi, step }
        }));
        if self.nullable.len() != space.nullable.len() {
            self.nullable = space.nullable.iter().map(NullableProbe::new).collect();
        }
        for (probe, nullable) in self.nullable.iter_mut().zip(&space.nullable) {
            probe.aim(nullable, &cells[nullable.column.number]);
        }
        self.sets.clear();
        self.sets.extend(space.sets.iter().map(|column| {
            let mask = match &cells[column.number] {
                Cell::Set(codes) => codes.iter().fold(0, |mask, code| mask | 1 << (code & 63)),
                _ => 0u64,
            };
            let more = u64::from(mask.count_ones().saturating_sub(1));
            SetProbe {
                mask,
                loss: column.step.wrapping_mul(more),
                step: column.step,
            }
        }));
        if self.folded.len() != space.folded.len() {
            self.folded = space.folded.iter().map(FoldedProbe::new).collect();
        }
        for (probe, folded) in self.folded.iter_mut().zip(&space.folded) {
            probe.aim(folded, &cells[folded.column.number]);
        }
    }

    /// The distance to one region (Wang 2018, Eqs. 16–18).
    #[inline]
    pub(super) fn distance(
        &self,
        words: &[u64],
        records: u64,
        loss: u64,
        item: u32,
        codes: &impl Codes,
    ) -> u128 {
        let mut joined = 0u64;
        let (ranges, masks) = words.split_at(self.ranges);
        for (probe, word) in self.intervals.iter().zip(ranges) {
            joined = joined.wrapping_add(probe.joined(*word));
        }
        for (probe, word) in self.sets.iter().zip(masks) {
            let more = ones(word & !probe.mask);
            joined = joined.wrapping_add(probe.joined_with(more));
        }
        if !self.nullable.is_empty() || !self.folded.is_empty() {
            let (values, states) = (&ranges[self.intervals.len()..], &masks[self.sets.len()..]);
            for ((probe, value), state) in self.nullable.iter().zip(values).zip(states) {
                joined = joined.wrapping_add(probe.joined(*value, *state, *state, self.full));
            }
            let folds = states[self.nullable.len()..].chunks_exact(2);
            for (probe, word) in self.folded.iter().zip(folds) {
                let bound = probe.joined(word, word, self.full);
                joined = joined.wrapping_add(
                    if probe.exact || word[0] & NULL != 0 || probe.presence != Presence::Values {
                        bound
                    } else {
                        probe.joined_exactly(codes.codes(item, probe.number))
                    },
                );
            }
        }
        self.weigh(joined, joined.saturating_sub(loss), records)
    }

    /// A lower bound of the distance to any region of a collection, and whether only regions with the fewest records
    /// can be that near.
    #[inline]
    pub(super) fn bound(&self, extent: Extent<'_>) -> (u128, bool) {
        let (mut joined, mut outside) = (0u64, 0u64);
        let points = extent.losses.1 == 0;
        let (hull_ranges, hull_masks) = extent.hull.split_at(self.ranges);
        let (core_ranges, core_masks) = extent.core.split_at(self.ranges);
        for (probe, core) in self.intervals.iter().zip(core_ranges) {
            joined = joined.wrapping_add(probe.joined(*core));
        }
        for ((probe, hull), core) in self.sets.iter().zip(hull_masks).zip(core_masks) {
            let more = ones(core & !probe.mask).max(u64::from(hull & probe.mask == 0));
            joined = joined.wrapping_add(probe.joined_with(more));
        }
        if !self.nullable.is_empty() || !self.folded.is_empty() {
            let values = core_ranges[self.intervals.len()..].iter();
            let (hulls, cores) = (
                &hull_masks[self.sets.len()..],
                &core_masks[self.sets.len()..],
            );
            for (((probe, value), hull), core) in
                self.nullable.iter().zip(values).zip(hulls).zip(cores)
            {
                joined = joined.wrapping_add(probe.joined(*value, *hull, *core, self.full));
            }
            let hulls = hulls[self.nullable.len()..].chunks_exact(2);
            let cores = cores[self.nullable.len()..].chunks_exact(2);
            for ((probe, hull), core) in self.folded.iter().zip(hulls).zip(cores) {
                joined = joined.wrapping_add(probe.joined(hull, core, self.full));
            }
        }
        if !points {
            // A region in the hull grows at least by what the probe covers outside the hull. Columns with missing
            // values could be suppressed already and are left out.
            for (probe, hull) in self.intervals.iter().zip(hull_ranges) {
                let (lo, hi) = ends(*hull);
                let beyond = lo
                    .saturating_sub(probe.lo)
                    .saturating_add(probe.hi.saturating_sub(hi));
                outside = outside.wrapping_add(probe.step.wrapping_mul(u64::from(beyond)));
            }
            for (probe, hull) in self.sets.iter().zip(hull_masks) {
                let beyond = ones(probe.mask & !hull);
                outside = outside.wrapping_add(probe.step.wrapping_mul(beyond));
            }
        }
        let joined = joined.max(extent.losses.0);
        let growth = joined.saturating_sub(extent.losses.1).max(outside);
        (self.weigh(joined, growth, extent.records), growth > 0)
    }

    /// |p| · growth + |Q| · (L(pQ) − L(Q))
    fn weigh(&self, joined: u64, growth: u64, records: u64) -> u128 {
        u128::from(records) * u128::from(growth)
            + u128::from(self.records) * u128::from(joined.saturating_sub(self.loss))
    }
}

impl NullableProbe {
    fn new(nullable: &Nullable) -> Self {
        let ((lo, hi), step) = (NOWHERE, nullable.column.step);
        Self {
            interval: IntervalProbe { lo, hi, step },
            presence: Presence::Missing,
            tree: nullable.tree.clone(),
        }
    }

    fn aim(&mut self, nullable: &Nullable, cell: &Cell) {
        let (lo, hi) = nullable.ends(cell).unwrap_or(NOWHERE);
        (self.interval.lo, self.interval.hi) = (lo, hi);
        self.presence = presence(cell);
    }

    /// The loss together with values from `value`, given what is missing for some and for all of a collection.
    fn joined(&self, value: u64, hull: u64, core: u64, full: u64) -> u64 {
        let suppressed = match self.presence {
            Presence::Both => true,
            Presence::Missing => hull & NULL == 0 || core & VALUE != 0,
            Presence::Values => core & NULL != 0 || hull & VALUE == 0,
        };
        match (self.presence, &self.tree) {
            _ if suppressed => full,
            (Presence::Values, Some(tree)) => {
                let (lo, hi) = ends(value);
                tree.span_loss(self.interval.lo.min(lo), self.interval.hi.max(hi))
            }
            (Presence::Values, None) => self.interval.joined(value),
            _ => 0,
        }
    }
}

impl SetProbe {
    #[inline]
    fn joined_with(&self, more: u64) -> u64 {
        self.loss.wrapping_add(self.step.wrapping_mul(more))
    }
}

impl IntervalProbe {
    #[inline]
    fn joined(&self, core: u64) -> u64 {
        let (lo, hi) = ends(core);
        let width = self.hi.max(hi).saturating_sub(self.lo.min(lo));
        self.step.wrapping_mul(u64::from(width))
    }
}

impl FoldedProbe {
    fn new(folded: &Folded) -> Self {
        Self {
            number: folded.column.number,
            exact: folded.is_exact(),
            presence: Presence::Missing,
            masks: [0; 2],
            loss: 0,
            step: folded.column.step,
            codes: vec![],
            members: vec![0; folded.codes.div_ceil(64) as usize],
        }
    }

    fn aim(&mut self, folded: &Folded, cell: &Cell) {
        for code in self.codes.drain(..) {
            self.members[code as usize / 64] = 0;
        }
        self.presence = presence(cell);
        if let Cell::Set(codes) = cell {
            self.codes.extend_from_slice(codes);
            self.masks = folded.fold(codes);
            self.loss = self.step.wrapping_mul(codes.len().saturating_sub(1) as u64);
            for code in codes {
                self.members[*code as usize / 64] |= 1 << (code % 64);
            }
        }
    }

    fn joined(&self, hull: &[u64], core: &[u64], full: u64) -> u64 {
        match self.presence {
            Presence::Both => full,
            Presence::Missing if hull[0] & NULL == 0 || core[0] & !NULL != 0 => full,
            Presence::Missing => 0,
            Presence::Values if core[0] & NULL != 0 => full,
            Presence::Values => {
                let more = |i: usize| {
                    let more = ones(core[i] & !self.masks[i]);
                    more.max(u64::from(hull[i] & self.masks[i] == 0))
                };
                let more = more(0).max(more(1));
                self.loss.wrapping_add(self.step.wrapping_mul(more))
            }
        }
    }

    fn joined_exactly(&self, codes: &[u32]) -> u64 {
        let new = |code: &&u32| self.members[**code as usize / 64] >> (**code % 64) & 1 == 0;
        let more = codes.iter().filter(new).count() as u64;
        self.loss.wrapping_add(self.step.wrapping_mul(more))
    }
}

/// The number of ones. Most masks here have none or one, and counting more is slow on the oldest processors.
fn ones(mask: u64) -> u64 {
    if mask & mask.wrapping_sub(1) == 0 {
        u64::from(mask != 0)
    } else {
        u64::from(mask.count_ones())
    }
}

fn presence(cell: &Cell) -> Presence {
    match cell {
        Cell::Null => Presence::Missing,
        Cell::Suppressed => Presence::Both,
        _ => Presence::Values,
    }
}
