//! Incognito: optimal full-domain recoding (LeFevre, DeWitt, Ramakrishnan 2005).
//!
//! A *recoding* gives every column a level of its tree. Recodings form a lattice; the search goes through it from the
//! bottom, for one column, for two, and so on:
//!
//! ```text
//!                 [1 2]                 a recoding is valid if a less general one is             (roll-up)
//!             [1 1]   [0 2]             a recoding can be valid only if it is for fewer columns     (subsets)
//!         [1 0]   [0 1]                 else it is tried: individuals with equal labels are a class
//!             [0 0]
//! ```
//!
//! Of the valid recodings without a valid one below them, the one that loses least is taken.

mod lattice;
mod recoding;

use self::lattice::{Lattice, minimal};
use self::recoding::{Recoder, Recoding};
use crate::algorithm::trees::trees;
use crate::algorithm::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes};
use crate::model::{Model, Parameter, ParameterKind, Ratio};
use crate::table::Block;

/// Incognito in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "incognito",
    help: "generalizes every column to one level, the best of all valid combinations (LeFevre et al. 2005)",
    options: &[Parameter {
        name: "suppress",
        kind: ParameterKind::Share,
        required: false,
        help: "largest share of individuals that may be suppressed to save the others from generalization; none if it \
               is not given",
    }],
    whole_table: true,
    serves: |model| match model.closure().union {
        true => Ok(()),
        false => Err("a more general table may violate it where a less general one does not"),
    },
    build: |parameters| {
        Ok(Box::new(Incognito {
            suppress: parameters.ratio("suppress").ok(),
        }))
    },
};

/// Combinations of levels, of all sets of columns, that are looked at; more are left out by a rule (see
/// [`Lattice::within`]).
const MOST_RECODINGS: u64 = 1 << 17;

/// Incognito for any model that a union of valid classes satisfies.
///
/// # Guarantee
/// Of all combinations of levels it looks at, no valid one loses less, unless individuals are suppressed: then no valid
/// one that has no valid one below it. Ties go to the lower level of the first column that differs.
///
/// # Runtime
/// Linear in the different tuples for each recoding tried, which may be most of the lattice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Incognito {
    suppress: Option<Ratio>,
}

impl Incognito {
    /// What every minimal recoding publishes: all valid ones without a valid one below them, the one that loses least
    /// first.
    #[cfg(test)]
    pub fn minimal_tables(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Vec<Classes>, Cancelled> {
        let trees = trees(block);
        let mut recoder = Recoder::new(block, model, &trees, self.suppress, cancel)?;
        let found = self.best_first(&mut recoder)?;
        found.iter().map(|(_, r)| recoder.classes(r)).collect()
    }

    /// The minimal recodings with what they lose, in that order.
    fn best_first(&self, recoder: &mut Recoder<'_>) -> Result<Vec<(u128, Recoding)>, Cancelled> {
        let lattice = Lattice::within(MOST_RECODINGS, recoder.levels());
        // Where a more general table may suppress more, nothing follows from one recoding for another.
        let follows = self.suppress.is_none() || recoder.grows();
        let recodings = minimal(&lattice, follows, &mut |levels| recoder.is_valid(levels))?;
        let mut found = vec![];
        for recoding in recodings {
            found.push((recoder.loss(&recoding)?, recoding));
        }
        found.sort_unstable();
        Ok(found)
    }
}

impl Algorithm for Incognito {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        let trees = trees(block);
        let mut recoder = Recoder::new(block, model, &trees, self.suppress, cancel)?;
        match self.best_first(&mut recoder)?.first() {
            Some((_, recoding)) => recoder.classes(recoding),
            None => Ok(Classes {
                suppressed: (0..block.len() as u32).collect(),
                ..Classes::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
