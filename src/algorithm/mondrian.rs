//! Mondrian: classes cut out of the whole, always across the widest quasi-identifier (LeFevre, DeWitt and Ramakrishnan
//! 2006; Gong et al. 2017, Algorithm 3).
//!
//! ```text
//!   the block is one class
//!   for each class
//!     for each column, widest first
//!       cut the class there        numeric: between two values, nearest to the middle of its individuals
//!                                  categorical: frequent values from rare ones
//!                                  hierarchy: by the children of the node that covers the class
//!       if all parts satisfy the model, they replace the class
//!     a class that no column can cut is finished
//! ```
//!
//! What the papers leave open is settled in docs/theory/papers.md M7.

mod cut;
mod width;

#[cfg(test)]
pub(super) mod tests;

use std::ops::Range;
use std::sync::Arc;

use self::cut::Cutter;
use self::width::Ruler;
use super::cutting::{Cutting, cut_up};
use super::judge::Judge;
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes, Danonyir};
use crate::engine::threads::Threads;
use crate::model::{Model, Parameter, ParameterKind};
use crate::table::Block;

/// Mondrian in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "mondrian",
    help: "cuts classes in two, always across the widest quasi-identifier (LeFevre et al. 2006)",
    options: &[Parameter {
        name: "relaxed",
        kind: ParameterKind::Integer { min: 0, max: 1 },
        required: false,
        help: "1: individuals with the same value may go to both sides of a cut; 0: they stay together",
    }],
    whole_table: false,
    serves: |_| Ok(()),
    build: |options| {
        Ok(Box::new(match options.integer("relaxed") {
            Ok(1) => Mondrian::relaxed(),
            _ => Mondrian::strict(),
        }))
    },
};

/// Mondrian.
///
/// # Guarantee
/// A class is cut only if every part satisfies the model, so that every class does. If the block as a whole does not,
/// there is nothing to begin with: under a model that more members never break nobody can be published; under others
/// some may be, and [`Danonyir`] looks for them.
///
/// # Runtime
/// O(d · n log n) for n individuals and d columns where cuts are even. A model that more members never break is asked
/// about a few members of large classes, others about all.
#[derive(Debug, Clone, Default)]
pub struct Mondrian {
    relaxed: bool,
    threads: Option<Arc<Threads>>,
}

impl Mondrian {
    /// Individuals with the same value stay together.
    pub fn strict() -> Self {
        Self::default()
    }

    /// Numeric cuts are exactly in the middle; individuals with the same value may go to both sides.
    pub fn relaxed() -> Self {
        Self {
            relaxed: true,
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

impl Algorithm for Mondrian {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        cancel.check()?;
        let everybody = (0..block.len() as u32).collect();
        let mut run = Run::new(self.relaxed, block, model, everybody);
        if run.judge.accepts(&run.order) {
            return Ok(Classes {
                classes: cut_up(run, self.threads.as_deref(), cancel)?,
                ..Classes::default()
            });
        }
        if model.closure().extension {
            return Ok(Classes {
                suppressed: run.order,
                ..Classes::default()
            });
        }
        Danonyir::new().form_classes(block, model, cancel)
    }
}

/// One run over individuals that together satisfy the model.
struct Run<'a> {
    relaxed: bool,
    block: &'a Block,
    model: &'a dyn Model,
    /// The individuals, class by class, ascending in each.
    order: Vec<u32>,
    ruler: Ruler<'a>,
    cutter: Cutter<'a>,
    judge: Judge<'a>,
}

impl<'a> Run<'a> {
    fn new(relaxed: bool, block: &'a Block, model: &'a dyn Model, order: Vec<u32>) -> Self {
        Self {
            relaxed,
            block,
            model,
            order,
            ruler: Ruler::new(block),
            cutter: Cutter::new(block, relaxed),
            judge: Judge::new(block, model),
        }
    }
}

impl Cutting for Run<'_> {
    fn individuals(&self) -> usize {
        self.order.len()
    }

    fn split(&mut self, class: Range<usize>, open: &mut Vec<Range<usize>>) -> bool {
        let members = &mut self.order[class.clone()];
        if members.len() < 2 * self.judge.least() {
            return false;
        }
        for column in self.ruler.widest_first(members) {
            let Some(parts) = self.cutter.cut(*column, members) else {
                continue;
            };
            if self.judge.accepts_all(&parts.each()) {
                members.copy_from_slice(parts.members);
                open.extend(parts.ranges(class.start));
                return true;
            }
        }
        false
    }

    fn part(&self, class: Range<usize>) -> Self {
        let members = self.order[class].to_vec();
        Self::new(self.relaxed, self.block, self.model, members)
    }

    fn members(&self, class: Range<usize>) -> Vec<u32> {
        self.order[class].to_vec()
    }
}
