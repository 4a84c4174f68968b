//! Best cut: classes cut in two out of the whole, always where the loss left over is smallest.
//!
//! Mondrian cuts across the widest column in the middle. Both are guesses at what loses least; here every cut of every
//! column is measured, and the best one that the model allows is taken:
//!
//! ```text
//!   the individuals of a class in the order of one column     a b b c c c d e
//!   loss of all records left of each place                      0 · 3 · · 9 …
//!   loss of all records right of each place                  … 8 · 5 · · 2 0
//!   a cut lies between two different values                     ↑   ↑     ↑ ↑
//! ```
//!
//! A column is swept once from each end, and each column is kept sorted, class by class, as classes are cut. Of a large
//! class some members, evenly spread, stand for all.

mod frequency;
mod measure;
mod sweep;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use self::measure::CutMeasure;
use self::sweep::Sweeper;
use super::cutting::{Cutting, cut_up};
use super::judge::Judge;
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes, Danonyir};
use crate::engine::threads::Threads;
use crate::model::{Model, Parameter, ParameterKind};
use crate::table::{Block, QuasiIdentifier};

/// Best cut in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "best_cut",
    help: "cuts classes in two where the loss left over is smallest",
    options: &[Parameter {
        name: "ncp",
        kind: ParameterKind::Integer { min: 0, max: 1 },
        required: false,
        help: "1: the loss is the NCP of individuals, by counts of values; 0: that of records, by ranges",
    }],
    whole_table: false,
    serves: |_| Ok(()),
    build: |options| {
        Ok(Box::new(match options.integer("ncp") {
            Ok(1) => BestCut::ncp(),
            _ => BestCut::records(),
        }))
    },
};

/// So many cuts of one class are tried before it is left as it is.
const TRIES: usize = 64;

/// Best cut.
///
/// # Guarantee
/// As for Mondrian: a class is cut only if both parts satisfy the model. If the block as a whole does not satisfy it,
/// [`Danonyir`] looks for classes, unless more members never break the model.
///
/// # Runtime
/// O(d² · n log n) for n individuals and d columns where cuts are even.
#[derive(Debug, Clone)]
pub struct BestCut {
    measure: CutMeasure,
    threads: Option<Arc<Threads>>,
}

impl BestCut {
    /// By the loss of records (Wang 2018, Eqs. 11–15).
    pub fn records() -> Self {
        Self {
            measure: CutMeasure::Records,
            threads: None,
        }
    }

    /// By the NCP of individuals (Gong et al. 2017, Eqs. 1–3).
    pub fn ncp() -> Self {
        Self {
            measure: CutMeasure::Individuals,
            threads: None,
        }
    }

    /// Uses free slots of `threads` beside the one that the caller holds. The classes are the same.
    pub fn with_crew(self, threads: Arc<Threads>) -> Self {
        Self {
            threads: Some(threads),
            ..self
        }
    }
}

impl Algorithm for BestCut {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        cancel.check()?;
        let everybody: Vec<u32> = (0..block.len() as u32).collect();
        let mut judge = Judge::new(block, model);
        if judge.accepts(&everybody) {
            let threads = self.threads.as_deref();
            let run = Run::new(block, model, self.measure, judge, threads);
            return Ok(Classes {
                classes: cut_up(run, threads, cancel)?,
                ..Classes::default()
            });
        }
        if model.closure().extension {
            return Ok(Classes {
                suppressed: everybody,
                ..Classes::default()
            });
        }
        Danonyir::new().form_classes(block, model, cancel)
    }
}

/// A place to cut a class: what all its records lose then, the column, and how many members are left of the cut.
type Cut = (u64, u32, u32);

/// One run over individuals that together satisfy the model.
struct Run<'a> {
    block: &'a Block,
    model: &'a dyn Model,
    measure: CutMeasure,
    judge: Judge<'a>,
    sweeper: Sweeper<'a>,
    individuals: usize,
    /// Per column all individuals, class by class, in each class in the order of the column.
    sorted: Vec<Vec<u32>>,
    cuts: Vec<Cut>,
    /// Whether an individual is left of the cut at hand.
    left: Vec<bool>,
    buffer: Vec<u32>,
}

impl<'a> Run<'a> {
    fn new(
        block: &'a Block,
        model: &'a dyn Model,
        measure: CutMeasure,
        judge: Judge<'a>,
        threads: Option<&Threads>,
    ) -> Self {
        let columns = block.quasi_identifiers().iter();
        let sorted = |column: &QuasiIdentifier| {
            let mut order: Vec<u32> = (0..block.len() as u32).collect();
            if let Some((lo, hi)) = ends(column) {
                order.sort_by_key(|i| place(lo, hi, *i));
            }
            order
        };
        let sorted = match threads {
            Some(threads) => threads.each(columns.collect(), sorted),
            None => columns.map(sorted).collect(),
        };
        Self {
            block,
            model,
            measure,
            judge,
            sweeper: Sweeper::new(block, measure),
            individuals: block.len(),
            sorted,
            cuts: vec![],
            left: vec![false; block.len()],
            buffer: vec![0; block.len()],
        }
    }

    /// Cuts a class in two, if any cut is allowed; where its second part begins.
    fn cut_in_two(&mut self, class: Range<usize>) -> Option<usize> {
        if class.len() < 2 * self.judge.least() {
            return None;
        }
        self.measure_cuts(&class);
        let best = (0..self.cuts.len()).min_by_key(|at| self.cuts[*at])?;
        self.cuts.swap(0, best);
        for attempt in 0..self.cuts.len().min(TRIES) {
            if attempt == 1 {
                self.order_cuts();
            }
            let (_, column, left) = self.cuts[attempt];
            let (column, left) = (column as usize, left as usize);
            let (a, b) = self.sorted[column][class.clone()].split_at(left);
            if self.judge.accepts_all(&[a, b]) {
                self.cut(column, class.clone(), left);
                return Some(class.start + left);
            }
        }
        None
    }

    /// All cuts of a class that leave enough members on both sides.
    fn measure_cuts(&mut self, class: &Range<usize>) {
        self.cuts.clear();
        let least = self.judge.least();
        let Some(members) = self.sorted.first() else {
            return;
        };
        let columns = self.sweeper.begin(&members[class.clone()]).to_vec();
        for column in columns {
            let members = &mut self.sorted[column][class.clone()];
            self.sweeper.sweep(column, members, least, |loss, left| {
                self.cuts.push((loss, column as u32, left as u32));
            });
        }
    }

    /// Puts the best cuts after the first one in order.
    fn order_cuts(&mut self) {
        let rest = &mut self.cuts[1..];
        if rest.len() > TRIES {
            rest.select_nth_unstable(TRIES);
        }
        let tried = rest.len().min(TRIES);
        rest[..tried].sort_unstable();
    }

    /// Moves the members left of a cut to the front of the class in every column, in the order they have there.
    fn cut(&mut self, column: usize, class: Range<usize>, left: usize) {
        for (at, member) in self.sorted[column][class.clone()].iter().enumerate() {
            self.left[*member as usize] = at < left;
        }
        for (other, sorted) in self.sorted.iter_mut().enumerate() {
            if other == column {
                continue;
            }
            let members = &mut sorted[class.clone()];
            let (mut front, mut back) = (0, 0);
            for at in 0..members.len() {
                // Written to both places, kept in one: no branch that could be guessed wrong.
                let member = members[at];
                let is_left = self.left[member as usize];
                members[front] = member;
                self.buffer[back] = member;
                front += usize::from(is_left);
                back += usize::from(!is_left);
            }
            members[front..].copy_from_slice(&self.buffer[..back]);
        }
    }
}

impl Cutting for Run<'_> {
    fn individuals(&self) -> usize {
        self.individuals
    }

    fn split(&mut self, class: Range<usize>, open: &mut Vec<Range<usize>>) -> bool {
        let Some(at) = self.cut_in_two(class.clone()) else {
            return false;
        };
        open.extend([class.start..at, at..class.end]);
        true
    }

    fn part(&self, class: Range<usize>) -> Self {
        let sorted = self.sorted.iter();
        Self {
            judge: Judge::new(self.block, self.model),
            sweeper: Sweeper::new(self.block, self.measure),
            individuals: class.len(),
            sorted: sorted.map(|order| order[class.clone()].to_vec()).collect(),
            cuts: vec![],
            left: vec![false; self.block.len()],
            buffer: vec![0; class.len()],
            ..*self
        }
    }

    fn members(&self, class: Range<usize>) -> Vec<u32> {
        let mut members = match self.sorted.first() {
            Some(column) => column[class].to_vec(),
            // Without columns there is one class.
            None => (class.start as u32..class.end as u32).collect(),
        };
        members.sort_unstable();
        members
    }
}

/// The ranges of a column whose values have an order.
fn ends(column: &QuasiIdentifier) -> Option<(&[u32], &[u32])> {
    match column {
        QuasiIdentifier::Numeric(n) => Some((&n.lo, &n.hi)),
        QuasiIdentifier::Hierarchical(h) => Some((&h.lo, &h.hi)),
        QuasiIdentifier::Categorical(_) => None,
    }
}

/// Where an individual stands on a column: by the middle of its range; missing values come last, and before them those
/// of individuals with some missing values.
fn place(lo: &[u32], hi: &[u32], individual: u32) -> u64 {
    let i = individual as usize;
    u64::from(lo[i]) + u64::from(hi[i])
}
