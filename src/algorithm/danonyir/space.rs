//! The space in which the index searches: regions as a few machine words, with lower bounds on the loss of joining.
//!
//! A numeric column is one word (both ends of its interval), a small categorical column one word (a bit per value).
//! Columns with missing values take two: one for values, one for what is missing; so do columns with a hierarchy, whose
//! nodes are intervals of leaves. Sets over many values are folded
//! twice into 63 bits, by ranges and by a hash; folding can only make sets look more alike, so that bounds stay
//! bounds, and exact losses are taken from the codes themselves.
//!
//! What holds for all regions of a collection is kept as two regions, the *hull* that covers each of them and the
//! *core* that each of them covers.

use crate::table::{Block, Cell, LossTree, NULL_CODE, QuasiIdentifier, Region};

/// In the second word of an interval column, and as the last bit of a folded set: there are missing values.
pub(super) const NULL: u64 = 1 << 63;
/// In the second word of an interval column: there are values.
pub(super) const VALUE: u64 = 1;
/// An interval without any value.
const NOTHING: u64 = u32::MAX as u64;
/// Bits for the values of a folded set.
const FOLDS: u32 = 63;

/// How the columns of a block are laid out in words.
///
/// ```text
///   │ intervals │ values of nullable intervals │ small sets │ nullable: what is missing │ folded sets, 2 words each │
///   └──────────── ranges ──────────────────────┴───────────────────────── masks ────────────────────────────────────┘
/// ```
#[derive(Debug)]
pub(super) struct Space {
    pub(super) intervals: Vec<Column>,
    pub(super) nullable: Vec<Nullable>,
    pub(super) sets: Vec<Column>,
    pub(super) folded: Vec<Folded>,
    pub(super) full: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) number: usize,
    pub(super) step: u64,
}

/// A column of intervals that may be missing, or of nodes of a hierarchy.
#[derive(Debug, Clone)]
pub(super) struct Nullable {
    pub(super) column: Column,
    pub(super) tree: Option<LossTree>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Folded {
    pub(super) column: Column,
    /// All codes are below.
    pub(super) codes: u64,
}

/// The codes of the regions in a tree, where words alone do not tell them.
pub(super) trait Codes {
    /// The codes of a set without missing values.
    fn codes(&self, item: u32, column: usize) -> &[u32];
}

impl Space {
    pub(super) fn new(block: &Block) -> Self {
        let mut space = Self {
            intervals: vec![],
            nullable: vec![],
            sets: vec![],
            folded: vec![],
            full: block.full(),
        };
        for (number, column) in block.quasi_identifiers().iter().enumerate() {
            match column {
                QuasiIdentifier::Numeric(n) => {
                    let column = Column {
                        number,
                        step: n.step,
                    };
                    if n.hi.contains(&NULL_CODE) {
                        space.nullable.push(Nullable { column, tree: None });
                    } else {
                        space.intervals.push(column);
                    }
                }
                QuasiIdentifier::Hierarchical(h) => space.nullable.push(Nullable {
                    column: Column { number, step: 0 },
                    tree: Some(h.tree.clone()),
                }),
                QuasiIdentifier::Categorical(c) => {
                    let column = Column {
                        number,
                        step: c.step,
                    };
                    let values = c.codes.iter().filter(|code| **code != NULL_CODE);
                    let codes = values.max().map_or(0, |code| u64::from(*code) + 1);
                    let missing = c.codes.contains(&NULL_CODE);
                    if missing || codes > 64 || c.offsets.windows(2).any(|pair| pair[0] == pair[1])
                    {
                        space.folded.push(Folded { column, codes });
                    } else {
                        space.sets.push(column);
                    }
                }
            }
        }
        space
    }

    /// Words per region.
    pub(super) fn words(&self) -> usize {
        self.ranges() + self.sets.len() + self.nullable.len() + 2 * self.folded.len()
    }

    /// Words that are intervals; the rest are masks.
    pub(super) fn ranges(&self) -> usize {
        self.intervals.len() + self.nullable.len()
    }

    /// Appends the words of a region.
    pub(super) fn encode(&self, region: &Region, words: &mut Vec<u64>) {
        let cells = region.cells();
        for column in &self.intervals {
            words.push(match cells[column.number] {
                Cell::Interval { lo, hi } => range(lo, hi),
                _ => NOTHING,
            });
        }
        for nullable in &self.nullable {
            words.push(match nullable.ends(&cells[nullable.column.number]) {
                Some((lo, hi)) => range(lo, hi),
                None => NOTHING,
            });
        }
        for column in &self.sets {
            words.push(match &cells[column.number] {
                Cell::Set(codes) => codes.iter().fold(0, |mask, code| mask | 1 << (code & 63)),
                _ => 0,
            });
        }
        for nullable in &self.nullable {
            words.push(match cells[nullable.column.number] {
                Cell::Null => NULL,
                Cell::Suppressed => NULL | VALUE,
                _ => VALUE,
            });
        }
        for folded in &self.folded {
            words.extend(match &cells[folded.column.number] {
                Cell::Set(codes) => folded.fold(codes),
                Cell::Null => [NULL; 2],
                // Which values a suppressed cell hides does not matter any more.
                _ => [u64::MAX; 2],
            });
        }
    }

    /// Makes `hull` and `core` those of no region at all.
    pub(super) fn reset(&self, hull: &mut [u64], core: &mut [u64]) {
        let ranges = self.ranges();
        hull[..ranges].fill(NOTHING);
        core[..ranges].fill(range(0, u32::MAX));
        hull[ranges..].fill(0);
        core[ranges..].fill(u64::MAX);
    }

    /// Extends `hull` and `core` to regions with another hull and core.
    pub(super) fn cover(
        &self,
        hull: &mut [u64],
        core: &mut [u64],
        other_hull: &[u64],
        other_core: &[u64],
    ) {
        let ranges = self.ranges();
        let (h, c) = (
            hull.iter_mut().zip(other_hull),
            core.iter_mut().zip(other_core),
        );
        for ((hull, other_hull), (core, other_core)) in h.zip(c).take(ranges) {
            let ((lo, hi), (l, h)) = (ends(*hull), ends(*other_hull));
            *hull = range(lo.min(l), hi.max(h));
            let ((lo, hi), (l, h)) = (ends(*core), ends(*other_core));
            *core = range(lo.max(l), hi.min(h));
        }
        for (hull, other) in hull[ranges..].iter_mut().zip(&other_hull[ranges..]) {
            *hull |= other;
        }
        for (core, other) in core[ranges..].iter_mut().zip(&other_core[ranges..]) {
            *core &= other;
        }
    }

    /// The loss that a hull spreads over, by word, for choosing where to split a collection.
    pub(super) fn spread(&self, hull: &[u64], word: usize) -> u64 {
        let ranges = self.ranges();
        if word < ranges {
            let (lo, hi) = ends(hull[word]);
            let width = |column: &Column| {
                let steps = u64::from(hi.saturating_sub(lo));
                column.step.saturating_mul(steps)
            };
            return match self.intervals.get(word) {
                Some(column) => width(column),
                None => match &self.nullable[word - self.intervals.len()] {
                    Nullable {
                        tree: Some(tree), ..
                    } if lo <= hi => tree.span_loss(lo, hi),
                    Nullable { column, .. } => width(column),
                },
            };
        }
        let values = u64::from(hull[word].count_ones().saturating_sub(1));
        let mask = word - ranges;
        let step = if mask < self.sets.len() {
            self.sets[mask].step
        } else if mask < self.sets.len() + self.nullable.len() || hull[word] & NULL != 0 {
            self.full
        } else {
            self.folded[(mask - self.sets.len() - self.nullable.len()) / 2]
                .column
                .step
        };
        step.saturating_mul(values)
    }

    /// Where a region lies in one of its words.
    pub(super) fn coordinate(&self, word: usize, value: u64) -> u64 {
        if word < self.ranges() {
            let (lo, hi) = ends(value);
            u64::from(lo) + u64::from(hi)
        } else {
            value
        }
    }
}

impl Nullable {
    /// First and last value of a cell that has values.
    pub(super) fn ends(&self, cell: &Cell) -> Option<(u32, u32)> {
        match (cell, &self.tree) {
            (Cell::Interval { lo, hi }, _) => Some((*lo, *hi)),
            (Cell::Node(node), Some(tree)) => Some(tree.hierarchy.range(*node)),
            _ => None,
        }
    }
}

impl Folded {
    pub(super) fn fold(&self, codes: &[u32]) -> [u64; 2] {
        codes.iter().fold([0, 0], |[ranges, hashes], code| {
            let code = u64::from(*code);
            let by_range = code * u64::from(FOLDS) / self.codes.max(u64::from(FOLDS));
            let by_hash = (code.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % u64::from(FOLDS);
            [ranges | 1 << by_range, hashes | 1 << by_hash]
        })
    }

    /// Whether folding by ranges keeps all codes apart.
    pub(super) fn is_exact(&self) -> bool {
        self.codes <= u64::from(FOLDS)
    }
}

fn range(lo: u32, hi: u32) -> u64 {
    u64::from(lo) | u64::from(hi) << 32
}

pub(super) fn ends(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
