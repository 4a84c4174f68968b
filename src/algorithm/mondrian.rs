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
//! What the papers leave open is settled in docs/papers.md M7.

mod cut;
mod width;

#[cfg(test)]
pub(super) mod tests;

use std::ops::Range;

use self::cut::Cutter;
use self::width::Ruler;
use super::judge::Judge;
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes, Danonyir};
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
#[derive(Debug, Clone, Copy, Default)]
pub struct Mondrian {
    relaxed: bool,
}

impl Mondrian {
    /// Individuals with the same value stay together.
    pub fn strict() -> Self {
        Self { relaxed: false }
    }

    /// Numeric cuts are exactly in the middle; individuals with the same value may go to both sides.
    pub fn relaxed() -> Self {
        Self { relaxed: true }
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
        let mut run = Run::new(*self, block, model);
        if run.judge.accepts(&run.order) {
            return run.form_classes(cancel);
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

/// One run over a block whose individuals together satisfy the model.
struct Run<'a> {
    /// The individuals, class by class, ascending in each.
    order: Vec<u32>,
    ruler: Ruler<'a>,
    cutter: Cutter<'a>,
    judge: Judge<'a>,
}

impl<'a> Run<'a> {
    fn new(mondrian: Mondrian, block: &'a Block, model: &'a dyn Model) -> Self {
        Self {
            order: (0..block.len() as u32).collect(),
            ruler: Ruler::new(block),
            cutter: Cutter::new(block, mondrian.relaxed),
            judge: Judge::new(block, model),
        }
    }

    fn form_classes(mut self, cancel: &Cancel) -> Result<Classes, Cancelled> {
        let mut classes = vec![];
        let mut open: Vec<Range<usize>> = std::iter::once(0..self.order.len()).collect();
        while let Some(class) = open.pop() {
            cancel.check()?;
            if !self.split(class.clone(), &mut open) {
                classes.push(self.order[class].to_vec());
            }
        }
        classes.sort_unstable_by_key(|class| class.first().copied());
        Ok(Classes {
            classes,
            ..Classes::default()
        })
    }

    /// Replaces a class by its parts, if any cut is allowed.
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
}
