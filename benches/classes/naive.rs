//! DAnonyIR by looking at everything, as fast as a quadratic scan can reasonably be: the reference for the index.
//!
//! Individuals are rows of small codes. For a growing class, what each value of each column would add to its loss is
//! tabulated once; the distance of an individual is then a sum over its row. Classes are rows of words. Only points
//! without missing values, and models under which classes grow freely.

use datafusion_anonymize::internals::algorithm::Classes;
use datafusion_anonymize::internals::model::{Member, Model, Tally};
use datafusion_anonymize::internals::table::{Block, QuasiIdentifier};

/// Columns at most; rows are filled up with a column that loses nothing.
const COLUMNS: usize = 8;

/// Forms the classes of DAnonyIR.
pub fn form_classes(block: &Block, model: &dyn Model) -> Classes {
    assert!(
        model.closure().extension,
        "only models under which classes grow freely"
    );
    let mut run = Run::new(block, model.tally());
    let mut left = vec![];
    for seed in 0..block.len() as u32 {
        if !run.taken[seed as usize] {
            left = run.grow(seed);
        }
    }
    let mut suppressed = vec![];
    for individual in left {
        if !run.handle(individual) {
            suppressed.push(individual);
        }
    }
    run.classes.sort_by_key(|class| class.smallest);
    let mut classes: Vec<Vec<u32>> = run.classes.into_iter().map(|c| c.members).collect();
    classes
        .iter_mut()
        .for_each(|members| members.sort_unstable());
    Classes {
        classes,
        suppressed,
        ..Classes::default()
    }
}

/// A box of values: per column the smallest and the largest code, or a bit per code.
#[derive(Clone, Copy)]
struct Span {
    words: [(u32, u32); COLUMNS],
    masks: [u64; COLUMNS],
    records: u64,
    loss: u64,
}

struct Class {
    members: Vec<u32>,
    smallest: u32,
}

struct Run<'a> {
    block: &'a Block,
    tally: Box<dyn Tally>,
    taken: Vec<bool>,
    steps: [u64; COLUMNS],
    numeric: [bool; COLUMNS],
    /// Where the values of each column begin in the table.
    starts: [usize; COLUMNS],
    table: Vec<u64>,
    /// Remaining individuals in no order: number, records, places of their values in the table.
    numbers: Vec<u32>,
    records: Vec<u32>,
    rows: Vec<[u16; COLUMNS]>,
    place: Vec<u32>,
    codes: Vec<[u32; COLUMNS]>,
    classes: Vec<Class>,
    spans: Vec<Span>,
}

impl<'a> Run<'a> {
    fn new(block: &'a Block, tally: Box<dyn Tally>) -> Self {
        let columns = block.quasi_identifiers();
        assert!(columns.len() <= COLUMNS, "at most {COLUMNS} columns");
        let individuals = block.len();
        let (mut steps, mut numeric, mut starts) = ([0; COLUMNS], [true; COLUMNS], [0; COLUMNS]);
        let mut codes = vec![[0; COLUMNS]; individuals];
        let mut values = 0;
        for c in 0..COLUMNS {
            starts[c] = values;
            let column: Vec<u32> = match columns.get(c) {
                Some(QuasiIdentifier::Numeric(n)) => {
                    steps[c] = n.step;
                    n.lo.clone()
                }
                Some(QuasiIdentifier::Categorical(k)) => {
                    (steps[c], numeric[c]) = (k.step, false);
                    k.codes.clone()
                }
                _ => vec![0; individuals],
            };
            for (row, code) in codes.iter_mut().zip(&column) {
                row[c] = *code;
            }
            values += column.iter().max().map_or(1, |most| *most as usize + 1);
        }
        let row = |codes: &[u32; COLUMNS]| {
            std::array::from_fn(|c| (starts[c] + codes[c] as usize) as u16)
        };
        Self {
            tally,
            taken: vec![false; individuals],
            steps,
            numeric,
            starts,
            table: vec![0; values],
            numbers: (0..individuals as u32).collect(),
            records: (0..individuals as u32).map(|i| block.records(i)).collect(),
            rows: codes.iter().map(row).collect(),
            place: (0..individuals as u32).collect(),
            codes,
            classes: vec![],
            spans: vec![],
            block,
        }
    }

    fn span_of(&self, individual: u32) -> Span {
        let codes = self.codes[individual as usize];
        Span {
            words: codes.map(|code| (code, code)),
            masks: std::array::from_fn(|c| if self.numeric[c] { 0 } else { 1 << codes[c] }),
            records: u64::from(self.block.records(individual)),
            loss: 0,
        }
    }

    fn extend(&self, span: &mut Span, other: &Span) {
        span.loss = self.joined(span, other);
        for c in 0..COLUMNS {
            let ((lo, hi), (l, h)) = (span.words[c], other.words[c]);
            span.words[c] = (lo.min(l), hi.max(h));
            span.masks[c] |= other.masks[c];
        }
        span.records += other.records;
    }

    fn joined(&self, a: &Span, b: &Span) -> u64 {
        let loss = |c: usize| {
            let more = if self.numeric[c] {
                let ((lo, hi), (l, h)) = (a.words[c], b.words[c]);
                hi.max(h) - lo.min(l)
            } else {
                (a.masks[c] | b.masks[c]).count_ones() - 1
            };
            self.steps[c] * u64::from(more)
        };
        (0..COLUMNS).map(loss).sum()
    }

    /// What each value of each column makes of the loss.
    fn tabulate(&mut self, span: &Span) {
        for c in 0..COLUMNS {
            let end = self.starts.get(c + 1).map_or(self.table.len(), |end| *end);
            let (lo, hi) = span.words[c];
            for (code, loss) in self.table[self.starts[c]..end].iter_mut().enumerate() {
                let code = code as u32;
                let more = if self.numeric[c] {
                    hi.max(code) - lo.min(code)
                } else {
                    (span.masks[c] | 1 << code).count_ones() - 1
                };
                *loss = self.steps[c] * u64::from(more);
            }
        }
    }

    fn nearest_individual(&mut self, span: &Span) -> Option<(u64, u32)> {
        self.tabulate(span);
        let table = &self.table[..];
        let mut best = (u64::MAX, u32::MAX);
        for ((row, records), number) in self.rows.iter().zip(&self.records).zip(&self.numbers) {
            let joined: u64 = row.iter().map(|at| table[*at as usize]).sum();
            let distance = u64::from(*records) * joined + span.records * (joined - span.loss);
            if distance <= best.0 {
                best = best.min((distance, *number));
            }
        }
        (best.1 != u32::MAX).then_some(best)
    }

    fn nearest_class(&self, span: &Span, end: (u64, u32)) -> Option<usize> {
        let (mut best, mut nearest) = (end, None);
        for (at, other) in self.spans.iter().enumerate() {
            let joined = self.joined(span, other);
            let distance =
                other.records * (joined - other.loss) + span.records * (joined - span.loss);
            if distance <= best.0 && (distance, self.classes[at].smallest) < best {
                best = (distance, self.classes[at].smallest);
                nearest = Some(at);
            }
        }
        nearest
    }

    fn take(&mut self, individual: u32) {
        self.taken[individual as usize] = true;
        let at = self.place[individual as usize] as usize;
        self.numbers.swap_remove(at);
        self.records.swap_remove(at);
        self.rows.swap_remove(at);
        if let Some(moved) = self.numbers.get(at) {
            self.place[*moved as usize] = at as u32;
        }
    }

    fn finish(&mut self, members: Vec<u32>, span: Span) {
        let smallest = members.iter().copied().min().unwrap_or(0);
        self.classes.push(Class { members, smallest });
        self.spans.push(span);
    }

    /// Grows a class; returns the individuals of one that stays unfinished.
    fn grow(&mut self, seed: u32) -> Vec<u32> {
        self.tally.clear();
        let mut span = self.span_of(seed);
        let (mut members, mut fresh, mut atoms) = (vec![seed], vec![seed], vec![]);
        self.take(seed);
        self.tally.add(Member::of(self.block, seed));
        while !self.tally.satisfied() {
            let Some((distance, individual)) = self.nearest_individual(&span) else {
                for (members, span) in atoms {
                    self.finish(members, span);
                }
                fresh.sort_unstable();
                return fresh;
            };
            let joining = if let Some(at) = self.nearest_class(&span, (distance, 0)) {
                let (class, other) = (self.classes.swap_remove(at), self.spans.swap_remove(at));
                self.extend(&mut span, &other);
                atoms.push((class.members.clone(), other));
                class.members
            } else {
                self.take(individual);
                let other = self.span_of(individual);
                self.extend(&mut span, &other);
                fresh.push(individual);
                vec![individual]
            };
            for member in &joining {
                self.tally.add(Member::of(self.block, *member));
            }
            members.extend(joining);
        }
        self.finish(members, span);
        vec![]
    }

    /// Puts a residual individual into the nearest class, if that loses no more than suppressing it.
    fn handle(&mut self, individual: u32) -> bool {
        let alone = self.span_of(individual);
        let columns = self.block.quasi_identifiers().len() as u64;
        let suppression = alone.records * columns * self.block.full();
        let Some(at) = self.nearest_class(&alone, (suppression, u32::MAX)) else {
            return false;
        };
        let mut span = self.spans[at];
        self.extend(&mut span, &alone);
        self.spans[at] = span;
        let class = &mut self.classes[at];
        class.members.push(individual);
        class.smallest = class.smallest.min(individual);
        true
    }
}
