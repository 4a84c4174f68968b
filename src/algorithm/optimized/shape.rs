//! Generalized values as a few machine words: what the search computes with instead of regions.
//!
//! ```text
//!   │ intervals │ intervals and nodes that may be missing │ sets │ sets that may be missing │ what is missing │
//!   └───────────────────── ranges ────────────────────────┴──────────────────── masks ───────────────────────┘
//! ```
//!
//! An interval is one word with both its ends, and so is a node of a hierarchy, by its leaves; a set of up to 64 values
//! is one word with a bit per value. Sets over more values do not fit into words: an [`Area`] counts their codes.
//! All losses are those of [`Region`](crate::table::Region).

use super::wide::{Codes, Wide};
use crate::table::{Block, LossTree, NULL_CODE, QuasiIdentifier};

/// There are missing values.
const NULL: u64 = 2;
/// There are values.
const VALUE: u64 = 1;
/// A range without any value.
const NOTHING: u64 = u32::MAX as u64;

/// How the columns of a block are laid out in words.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    block: &'a Block,
    intervals: Vec<Column>,
    sets: Vec<Column>,
    spans: Vec<(Column, Option<&'a LossTree>)>,
    partial_sets: Vec<Column>,
    wide: Vec<Wide<'a>>,
    /// Whether all columns are intervals without missing values and such sets that fit into words.
    flat: bool,
}

#[derive(Debug, Clone, Copy)]
struct Column {
    number: usize,
    step: u64,
}

/// The generalized values of some individuals.
#[derive(Debug, Clone)]
pub(super) struct Area {
    pub(super) words: Vec<u64>,
    wide: Vec<Codes>,
    pub(super) records: u64,
    pub(super) loss: u64,
}

impl Area {
    /// What all records of the area lose together.
    pub(super) fn cost(&self) -> i128 {
        cost(self.records, self.loss)
    }
}

/// What so many records lose together.
#[inline]
pub(super) fn cost(records: u64, loss: u64) -> i128 {
    i128::from(records) * i128::from(loss)
}

impl<'a> Shape<'a> {
    pub(super) fn new(block: &'a Block) -> Self {
        let mut shape = Self {
            block,
            intervals: vec![],
            sets: vec![],
            spans: vec![],
            partial_sets: vec![],
            wide: vec![],
            flat: false,
        };
        for (number, column) in block.quasi_identifiers().iter().enumerate() {
            let column_of = |step| Column { number, step };
            match column {
                QuasiIdentifier::Numeric(n) if n.hi.contains(&NULL_CODE) => {
                    shape.spans.push((column_of(n.step), None));
                }
                QuasiIdentifier::Numeric(n) => shape.intervals.push(column_of(n.step)),
                QuasiIdentifier::Hierarchical(h) => {
                    shape.spans.push((column_of(0), Some(&h.tree)));
                }
                QuasiIdentifier::Categorical(c) => {
                    let mut values = c.codes.iter().filter(|code| **code != NULL_CODE);
                    let empty = || c.offsets.windows(2).any(|pair| pair[0] == pair[1]);
                    if values.any(|code| *code >= u64::BITS) {
                        shape.wide.push(Wide::new(c));
                    } else if c.codes.contains(&NULL_CODE) || empty() {
                        shape.partial_sets.push(column_of(c.step));
                    } else {
                        shape.sets.push(column_of(c.step));
                    }
                }
            }
        }
        shape.flat = shape.is_plain() && shape.wide.is_empty();
        shape
    }

    /// Words per individual and per area.
    pub(super) fn width(&self) -> usize {
        self.ranges() + self.sets.len() + 2 * self.partial_sets.len() + self.spans.len()
    }

    fn ranges(&self) -> usize {
        self.intervals.len() + self.spans.len()
    }

    /// The words of all individuals.
    pub(super) fn points(&self) -> Vec<u64> {
        let mut points = Vec::with_capacity(self.block.len() * self.width());
        for individual in 0..self.block.len() as u32 {
            let value = |column: &Column| self.value(column.number, individual).0;
            let state = |column: &Column| self.value(column.number, individual).1;
            points.extend(self.intervals.iter().map(value));
            points.extend(self.spans.iter().map(|(column, _)| value(column)));
            points.extend(self.sets.iter().map(value));
            points.extend(self.partial_sets.iter().map(value));
            points.extend(self.spans.iter().map(|(column, _)| state(column)));
            points.extend(self.partial_sets.iter().map(state));
        }
        points
    }

    /// The word of one value, and the word for what of it is missing.
    fn value(&self, column: usize, individual: u32) -> (u64, u64) {
        let ends = |lo: &[u32], hi: &[u32]| match (lo[individual as usize], hi[individual as usize])
        {
            (NULL_CODE, _) => (NOTHING, NULL),
            (_, NULL_CODE) => (NOTHING, NULL | VALUE),
            (lo, hi) => (range(lo, hi), VALUE),
        };
        match &self.block.quasi_identifiers()[column] {
            QuasiIdentifier::Numeric(n) => ends(&n.lo, &n.hi),
            QuasiIdentifier::Hierarchical(h) => ends(&h.lo, &h.hi),
            QuasiIdentifier::Categorical(c) => match c.of(individual) {
                [] | [NULL_CODE] => (0, NULL),
                [.., NULL_CODE] => (0, NULL | VALUE),
                codes => (
                    codes.iter().fold(0, |mask, code| mask | 1 << (code & 63)),
                    VALUE,
                ),
            },
        }
    }

    /// An area without individuals.
    pub(super) fn nothing(&self) -> Area {
        let mut area = Area {
            words: vec![0; self.width()],
            wide: vec![vec![]; self.wide.len()],
            records: 0,
            loss: 0,
        };
        self.clear(&mut area.words);
        area
    }

    /// Makes an area one without individuals.
    pub(super) fn empty(&self, area: &mut Area) {
        self.clear(&mut area.words);
        area.wide.iter_mut().for_each(Vec::clear);
        area.records = 0;
        area.loss = 0;
    }

    /// Makes words those of no individual.
    pub(super) fn clear(&self, words: &mut [u64]) {
        let (ranges, masks) = words.split_at_mut(self.ranges());
        ranges.fill(NOTHING);
        masks.fill(0);
    }

    /// Extends an area by an individual, whose words are given.
    pub(super) fn include(&self, area: &mut Area, individual: u32, point: &[u64]) {
        self.unite(&mut area.words, point);
        for (wide, codes) in self.wide.iter().zip(&mut area.wide) {
            wide.include(codes, individual);
        }
        area.records += u64::from(self.block.records(individual));
        area.loss = self
            .joined(&area.words, &area.words)
            .wrapping_add(self.wide_loss(area, None, None));
    }

    /// Extends words by others.
    #[inline]
    pub(super) fn unite(&self, words: &mut [u64], more: &[u64]) {
        let ranges = self.ranges();
        for (word, more) in words[..ranges].iter_mut().zip(&more[..ranges]) {
            *word = hull(*word, *more);
        }
        for (word, more) in words[ranges..].iter_mut().zip(&more[ranges..]) {
            *word |= more;
        }
    }

    /// Loss of a record, but for wide sets, where words are united.
    #[inline]
    pub(super) fn joined(&self, a: &[u64], b: &[u64]) -> u64 {
        let (a_ranges, a_masks) = a.split_at(self.ranges());
        let (b_ranges, b_masks) = b.split_at(self.ranges());
        let mut loss = 0u64;
        for ((column, a), b) in self.intervals.iter().zip(a_ranges).zip(b_ranges) {
            loss = loss.wrapping_add(width_loss(column.step, hull(*a, *b)));
        }
        for ((column, a), b) in self.sets.iter().zip(a_masks).zip(b_masks) {
            loss = loss.wrapping_add(set_loss(column.step, ones(a | b)));
        }
        if self.is_plain() {
            return loss;
        }
        loss.wrapping_add(self.joined_partial((a_ranges, a_masks), (b_ranges, b_masks)))
    }

    /// Whether no column has missing values or a hierarchy.
    fn is_plain(&self) -> bool {
        self.spans.is_empty() && self.partial_sets.is_empty()
    }

    /// The part of columns with missing values or a hierarchy.
    fn joined_partial(
        &self,
        (a_ranges, a_masks): (&[u64], &[u64]),
        (b_ranges, b_masks): (&[u64], &[u64]),
    ) -> u64 {
        let mut loss = 0u64;
        for place in self.places() {
            let state = a_masks[place.state] | b_masks[place.state];
            loss = loss.wrapping_add(match (state, place.kind) {
                (NULL | 0, _) => 0,
                (VALUE, Kind::Span(step, tree)) => {
                    let range = hull(a_ranges[place.value], b_ranges[place.value]);
                    span_loss(step, tree, range)
                }
                (VALUE, Kind::Set(step)) => {
                    set_loss(step, ones(a_masks[place.value] | b_masks[place.value]))
                }
                _ => self.block.full(),
            });
        }
        loss
    }

    /// Loss of a record where words that lose `loss` are extended by an individual; `wide` is the part of wide sets.
    #[inline]
    pub(super) fn extended(
        &self,
        loss: u64,
        words: &[u64],
        point: &[u64],
        wide: impl FnOnce() -> u64,
    ) -> u64 {
        if !self.flat {
            return self.joined(words, point).wrapping_add(wide());
        }
        let (a_ranges, a_masks) = words.split_at(self.ranges());
        let (b_ranges, b_masks) = point.split_at(self.ranges());
        let mut loss = loss;
        for ((column, a), b) in self.intervals.iter().zip(a_ranges).zip(b_ranges) {
            loss = loss.wrapping_add(widened(column.step, *a, hull(*a, *b)));
        }
        for ((column, a), b) in self.sets.iter().zip(a_masks).zip(b_masks) {
            let first = u64::from(*a == 0);
            let more = few_ones(b & !a).saturating_sub(first);
            loss = loss.wrapping_add(column.step.wrapping_mul(more));
        }
        loss
    }

    /// At most [`Shape::extended`] for any individual below `cover`.
    #[inline]
    pub(super) fn extended_at_least(
        &self,
        loss: u64,
        words: &[u64],
        cover: &[u64],
        wide: impl FnOnce() -> u64,
    ) -> u64 {
        if !self.flat {
            return self.joined_at_least(words, cover).wrapping_add(wide());
        }
        let (a_ranges, a_masks) = words.split_at(self.ranges());
        let (c_ranges, c_masks) = cover.split_at(self.ranges());
        let mut loss = loss;
        for ((column, a), c) in self.intervals.iter().zip(a_ranges).zip(c_ranges) {
            loss = loss.wrapping_add(widened(column.step, *a, reach(*a, *c)));
        }
        for ((column, a), c) in self.sets.iter().zip(a_masks).zip(c_masks) {
            let more = u64::from(*a != 0 && a & c == 0);
            loss = loss.wrapping_add(column.step.wrapping_mul(more));
        }
        loss
    }

    /// At most the loss of a record, but for wide sets, where `area` is united with any part of `cover`.
    #[inline]
    fn joined_at_least(&self, area: &[u64], cover: &[u64]) -> u64 {
        let (a_ranges, a_masks) = area.split_at(self.ranges());
        let (c_ranges, c_masks) = cover.split_at(self.ranges());
        let mut loss = 0u64;
        for ((column, a), c) in self.intervals.iter().zip(a_ranges).zip(c_ranges) {
            loss = loss.wrapping_add(width_loss(column.step, reach(*a, *c)));
        }
        for ((column, a), c) in self.sets.iter().zip(a_masks).zip(c_masks) {
            loss = loss.wrapping_add(set_loss(column.step, ones(*a) + u64::from(a & c == 0)));
        }
        if self.is_plain() {
            return loss;
        }
        for place in self.places() {
            let (a, c) = (a_masks[place.state], c_masks[place.state]);
            loss = loss.wrapping_add(match (a, place.kind) {
                _ if a == NULL | VALUE || a & c == 0 => self.block.full(),
                // Whoever has a value there lacks another.
                (VALUE, Kind::Span(..)) if c_ranges[place.value] == NOTHING => self.block.full(),
                (VALUE, Kind::Set(_)) if c_masks[place.value] == 0 => self.block.full(),
                (VALUE, Kind::Span(step, tree)) => {
                    let range = reach(a_ranges[place.value], c_ranges[place.value]);
                    span_loss(step, tree, range)
                }
                (VALUE, Kind::Set(step)) => {
                    let (a, c) = (a_masks[place.value], c_masks[place.value]);
                    set_loss(step, ones(a) + u64::from(a & c == 0))
                }
                _ => 0,
            });
        }
        loss
    }

    /// Loss of a record in the wide sets of an area, with one individual less and one more.
    #[inline]
    pub(super) fn wide_loss(&self, area: &Area, less: Option<u32>, more: Option<u32>) -> u64 {
        let columns = self.wide.iter().zip(&area.wide);
        columns.fold(0, |loss, (wide, codes)| {
            loss.wrapping_add(wide.loss(codes, less, more, self.block.full()))
        })
    }

    /// The loss that words spread over in one of them, for choosing where to cut.
    pub(super) fn spread(&self, words: &[u64], word: usize) -> u64 {
        let ranges = self.ranges();
        let full = self.block.full();
        if word < self.intervals.len() {
            return width_loss(self.intervals[word].step, words[word]);
        }
        if word < ranges {
            let (column, tree) = self.spans[word - self.intervals.len()];
            return if words[word] == NOTHING {
                0
            } else {
                span_loss(column.step, tree, words[word])
            };
        }
        let values = ones(words[word]);
        let mask = word - ranges;
        match mask.checked_sub(self.sets.len()) {
            None => set_loss(self.sets[mask].step, values),
            Some(i) if i < self.partial_sets.len() => set_loss(self.partial_sets[i].step, values),
            Some(_) => {
                if values > 1 {
                    full
                } else {
                    0
                }
            }
        }
    }

    /// Where an individual lies in one of its words.
    pub(super) fn coordinate(&self, word: usize, value: u64) -> u64 {
        if word < self.ranges() {
            u64::from(value as u32) + (value >> 32)
        } else {
            value
        }
    }

    /// The columns that may be missing or have a hierarchy.
    #[inline]
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let states = self.sets.len() + self.partial_sets.len();
        let spans = self.spans.iter().enumerate();
        let spans = spans.map(move |(i, (column, tree))| Place {
            kind: Kind::Span(column.step, *tree),
            value: self.intervals.len() + i,
            state: states + i,
        });
        let sets = self.partial_sets.iter().enumerate();
        spans.chain(sets.map(move |(i, column)| Place {
            kind: Kind::Set(column.step),
            value: self.sets.len() + i,
            state: states + self.spans.len() + i,
        }))
    }
}

/// Where the words of a column are, among the ranges or the masks.
struct Place<'a> {
    kind: Kind<'a>,
    value: usize,
    state: usize,
}

#[derive(Clone, Copy)]
enum Kind<'a> {
    Span(u64, Option<&'a LossTree>),
    Set(u64),
}

fn range(lo: u32, hi: u32) -> u64 {
    u64::from(lo) | u64::from(hi) << 32
}

/// The smallest range that covers both.
#[inline]
fn hull(a: u64, b: u64) -> u64 {
    range(
        (a as u32).min(b as u32),
        ((a >> 32) as u32).max((b >> 32) as u32),
    )
}

/// The smallest range that covers the first and touches the second.
#[inline]
fn reach(a: u64, cover: u64) -> u64 {
    range(
        (a as u32).min((cover >> 32) as u32),
        ((a >> 32) as u32).max(cover as u32),
    )
}

#[inline]
fn width_loss(step: u64, range: u64) -> u64 {
    step.wrapping_mul(u64::from(
        ((range >> 32) as u32).saturating_sub(range as u32),
    ))
}

/// What a range loses more than another.
#[inline]
fn widened(step: u64, from: u64, to: u64) -> u64 {
    width_loss(step, to).wrapping_sub(width_loss(step, from))
}

fn span_loss(step: u64, tree: Option<&LossTree>, range: u64) -> u64 {
    match tree {
        Some(tree) => tree.span_loss(range as u32, (range >> 32) as u32),
        None => width_loss(step, range),
    }
}

#[inline]
pub(super) fn set_loss(step: u64, values: u64) -> u64 {
    step.wrapping_mul(values.saturating_sub(1))
}

#[inline]
fn ones(mask: u64) -> u64 {
    u64::from(mask.count_ones())
}

/// The number of ones where there are seldom more than one.
#[inline]
fn few_ones(mask: u64) -> u64 {
    if mask & mask.wrapping_sub(1) == 0 {
        u64::from(mask != 0)
    } else {
        ones(mask)
    }
}
