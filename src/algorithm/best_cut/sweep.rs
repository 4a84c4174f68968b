//! The losses on both sides of every place in a class.

use super::frequency::Frequency;
use super::measure::{CutMeasure, Steps};
use super::{ends, place};
use crate::table::{Block, Categorical, Hierarchical, NULL_CODE, Numeric, QuasiIdentifier};

/// So many members of a large class are looked at.
const SAMPLE: usize = 512;

/// Sweeps classes; keeps its buffers.
pub(super) struct Sweeper<'a> {
    block: &'a Block,
    /// The members that are looked at, in the order of a column, and the place of each.
    sample: Vec<u32>,
    keys: Vec<u64>,
    frequency: Frequency,
    losses: Losses<'a>,
}

impl<'a> Sweeper<'a> {
    pub(super) fn new(block: &'a Block, measure: CutMeasure) -> Self {
        let codes = block.quasi_identifiers().iter().map(|column| match column {
            QuasiIdentifier::Categorical(c) => c.cardinality as usize,
            _ => 0,
        });
        let codes = codes.max().unwrap_or(0);
        Self {
            block,
            sample: vec![],
            keys: vec![],
            frequency: Frequency::new(codes),
            losses: Losses::new(block, measure, codes),
        }
    }

    /// Looks at a class before it is swept: the columns in which its members differ.
    pub(super) fn begin(&mut self, members: &[u32]) -> &[usize] {
        let columns = self.block.quasi_identifiers();
        self.losses.columns.clear();
        let differing = (0..columns.len()).filter(|column| differ(&columns[*column], members));
        self.losses.columns.extend(differing);
        &self.losses.columns
    }

    /// Puts a class in the order of a column and reports every cut across it that has at least `least` members on both
    /// sides: the loss of all members, and the number left of the cut.
    pub(super) fn sweep(
        &mut self,
        column: usize,
        members: &mut [u32],
        least: usize,
        mut report: impl FnMut(u64, usize),
    ) {
        let column = &self.block.quasi_identifiers()[column];
        if let QuasiIdentifier::Categorical(c) = column {
            self.frequency.sort(c, members);
        }
        let key = |member: &u32| match column {
            QuasiIdentifier::Categorical(c) => u64::from(self.frequency.rank(c, *member)),
            _ => ends(column).map_or(0, |(lo, hi)| place(lo, hi, *member)),
        };
        let stride = members.len().div_ceil(SAMPLE).max(1);
        self.sample.clear();
        self.sample.extend(members.iter().step_by(stride));
        self.keys.clear();
        self.keys.extend(self.sample.iter().map(key));
        if self.keys.first() == self.keys.last() {
            return;
        }
        self.losses.measure(&self.sample);
        for at in 1..self.sample.len() {
            if self.keys[at - 1] == self.keys[at] {
                continue;
            }
            let left = match stride {
                1 => at,
                _ => {
                    let (begin, end) = ((at - 1) * stride, at * stride);
                    begin + members[begin..end].partition_point(|i| key(i) < self.keys[at])
                }
            };
            if (least..=members.len() - least).contains(&left) {
                report(self.losses.of_cut(at), left);
            }
        }
    }
}

fn is_plain(column: &QuasiIdentifier) -> bool {
    matches!(column, QuasiIdentifier::Numeric(n) if n.lo == n.hi)
}

/// Whether members have different values. Where they have not, all cuts lose the same.
fn differ(column: &QuasiIdentifier, members: &[u32]) -> bool {
    let mut pairs = members.windows(2);
    match (column, ends(column)) {
        (_, Some((lo, hi))) => pairs.any(|pair| {
            let [a, b] = [pair[0] as usize, pair[1] as usize];
            (lo[a], hi[a]) != (lo[b], hi[b])
        }),
        (QuasiIdentifier::Categorical(c), None) => pairs.any(|pair| c.of(pair[0]) != c.of(pair[1])),
        (_, None) => false,
    }
}

/// The losses of the members before each place of a sequence, and of those after it.
struct Losses<'a> {
    block: &'a Block,
    measure: CutMeasure,
    /// What steps lose, by column.
    steps: Vec<Steps>,
    /// Numeric columns in which no individual has a range.
    plain: Vec<bool>,
    /// The columns that are measured.
    columns: Vec<usize>,
    /// What each member loses if those up to a place publish the same, and if those from a place on do.
    before: Vec<u64>,
    after: Vec<u64>,
    /// The weight of the members up to a place.
    weights: Vec<u64>,
    /// By code: the sweep in which it was last seen.
    seen: Vec<u64>,
    sweep: u64,
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

impl<'a> Losses<'a> {
    fn new(block: &'a Block, measure: CutMeasure, codes: usize) -> Self {
        Self {
            block,
            measure,
            steps: measure.steps(block),
            plain: block.quasi_identifiers().iter().map(is_plain).collect(),
            columns: vec![],
            before: vec![],
            after: vec![],
            weights: vec![],
            seen: vec![0; codes],
            sweep: 0,
        }
    }

    /// The loss of all members if they are cut before place `at`.
    fn of_cut(&self, at: usize) -> u64 {
        let all = self.weights.last().copied().unwrap_or(0);
        let before = self.weights[at - 1];
        let loss = before.saturating_mul(self.before[at - 1]);
        loss.saturating_add((all - before).saturating_mul(self.after[at]))
    }

    fn measure(&mut self, members: &[u32]) {
        for losses in [&mut self.before, &mut self.after] {
            losses.clear();
            losses.resize(members.len(), 0);
        }
        for at in 0..self.columns.len() {
            self.add(self.columns[at], members, Direction::Forward);
            self.add(self.columns[at], members, Direction::Backward);
        }
        let (block, measure) = (self.block, self.measure);
        self.weights.clear();
        self.weights.extend(members.iter().scan(0, |sum, member| {
            *sum += measure.weight(block, *member);
            Some(*sum)
        }));
    }

    /// Adds what a record loses in a column if all members up to each place publish the same.
    fn add(&mut self, column: usize, members: &[u32], direction: Direction) {
        let (full, steps) = (self.block.full(), self.steps[column]);
        let losses = match direction {
            Direction::Forward => &mut self.before,
            Direction::Backward => &mut self.after,
        };
        match &self.block.quasi_identifiers()[column] {
            QuasiIdentifier::Numeric(n) => {
                each(
                    members,
                    losses,
                    direction,
                    Range::new(n, self.plain[column], steps, full),
                );
            }
            QuasiIdentifier::Hierarchical(h) => {
                each(members, losses, direction, Span::new(h, full));
            }
            QuasiIdentifier::Categorical(c) => {
                self.sweep += 1;
                let set = Set {
                    column: c,
                    seen: &mut self.seen,
                    sweep: self.sweep,
                    steps,
                    full,
                    values: 0,
                    missing: false,
                };
                each(members, losses, direction, set);
            }
        }
    }
}

/// What the members seen so far publish in one column.
trait Seen {
    /// One more member; the loss with it.
    fn add(&mut self, individual: u32) -> u64;
}

fn each(members: &[u32], losses: &mut [u64], direction: Direction, mut seen: impl Seen) {
    let both = members.iter().zip(losses);
    match direction {
        Direction::Forward => both.for_each(|(i, loss)| *loss += seen.add(*i)),
        Direction::Backward => both.rev().for_each(|(i, loss)| *loss += seen.add(*i)),
    }
}

struct Range<'a> {
    los: &'a [u32],
    his: &'a [u32],
    steps: Steps,
    full: u64,
    lo: u32,
    hi: u32,
    loss: u64,
}

impl<'a> Range<'a> {
    fn new(column: &'a Numeric, is_plain: bool, steps: Steps, full: u64) -> Self {
        Self {
            los: &column.lo,
            // The same memory is read once.
            his: if is_plain { &column.lo } else { &column.hi },
            steps,
            full,
            lo: NULL_CODE,
            hi: 0,
            loss: 0,
        }
    }
}

impl Seen for Range<'_> {
    fn add(&mut self, individual: u32) -> u64 {
        let i = individual as usize;
        let (lo, hi) = (self.los[i], self.his[i]);
        // Most members lie within what was seen.
        if lo < self.lo || hi > self.hi {
            (self.lo, self.hi) = (self.lo.min(lo), self.hi.max(hi));
            self.loss = match (self.lo, self.hi) {
                (NULL_CODE, _) => 0,
                (_, NULL_CODE) => self.full,
                (lo, hi) => self.steps.loss(hi - lo),
            };
        }
        self.loss
    }
}

struct Span<'a> {
    column: &'a Hierarchical,
    full: u64,
    lo: u32,
    hi: u32,
    loss: u64,
}

impl<'a> Span<'a> {
    fn new(column: &'a Hierarchical, full: u64) -> Self {
        Self {
            column,
            full,
            lo: NULL_CODE,
            hi: 0,
            loss: 0,
        }
    }
}

impl Seen for Span<'_> {
    fn add(&mut self, individual: u32) -> u64 {
        let i = individual as usize;
        let (lo, hi) = (self.column.lo[i], self.column.hi[i]);
        if lo < self.lo || hi > self.hi {
            (self.lo, self.hi) = (self.lo.min(lo), self.hi.max(hi));
            self.loss = match (self.lo, self.hi) {
                (NULL_CODE, _) => 0,
                (_, NULL_CODE) => self.full,
                (lo, hi) => self.column.tree.span_loss(lo, hi),
            };
        }
        self.loss
    }
}

struct Set<'a> {
    column: &'a Categorical,
    seen: &'a mut [u64],
    sweep: u64,
    steps: Steps,
    full: u64,
    values: u32,
    missing: bool,
}

impl Seen for Set<'_> {
    fn add(&mut self, individual: u32) -> u64 {
        let codes = self.column.of(individual);
        self.missing |= codes.is_empty();
        for code in codes {
            if *code == NULL_CODE {
                self.missing = true;
            } else if self.seen[*code as usize] != self.sweep {
                self.seen[*code as usize] = self.sweep;
                self.values += 1;
            }
        }
        match (self.missing, self.values) {
            (true, 1..) => self.full,
            (_, values) => self.steps.loss(values.saturating_sub(1)),
        }
    }
}
