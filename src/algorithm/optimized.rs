//! Classes grown where they matter most, then improved by local search.
//!
//! ```text
//!   who is near whom                                      (cloud)
//!   classes around the individuals with the most records  (start)        also by a stricter model, where there is one;
//!                                                                         or those of DAnonyIR, if they lose less
//!   small changes that lose less while the model holds    (search: chain, regroup)
//! ```
//!
//! DAnonyIR's distance (Wang 2018, Eq. 16) counts what a new member itself will lose, and so prefers members with few
//! records; those with many are left for late, bad classes. Here they come first, and what counts is how much a member
//! widens the class and how much it would lose elsewhere.

mod chain;
mod cloud;
mod groups;
mod judge;
mod regroup;
mod search;
mod shape;
mod start;
#[cfg(test)]
mod tests;
mod wide;

use self::cloud::Cloud;
use self::groups::Groups;
use self::judge::Judge;
use self::search::Search;
use self::shape::Shape;
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes, Danonyir};
use crate::model::{Model, Parameter, ParameterKind};
use crate::table::Block;

/// The effort where none is given.
const EFFORT: u64 = 3;

/// The algorithm in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "optimized",
    help: "grows classes around the individuals with the most records and improves them by local search; never loses \
           more than danonyir",
    options: &[Parameter {
        name: "effort",
        kind: ParameterKind::Integer { min: 0, max: 10 },
        required: false,
        help: "how much work goes into local search, from 0 for none to 10; 3 if not given",
    }],
    whole_table: false,
    serves: |_| Ok(()),
    build: |options| {
        let effort = options.iter().any(|(name, _)| name == "effort");
        Ok(Box::new(Optimized::new(if effort {
            options.integer("effort")?
        } else {
            EFFORT
        })))
    },
};

/// Classes by greedy growth and local search.
///
/// # Guarantee
/// The records lose no more in total than with [`Danonyir`], suppressed ones counted as lost in full, and no more
/// individuals are suppressed.
///
/// # Runtime
/// The search looks only at the classes of an individual's neighbours, and its work is bounded by the number of
/// records times the effort.
#[derive(Debug, Clone, Copy)]
pub struct Optimized {
    effort: u64,
}

impl Optimized {
    /// The algorithm with so much local search, from 0 for none to 10.
    pub fn new(effort: u64) -> Self {
        Self { effort }
    }
}

impl Default for Optimized {
    fn default() -> Self {
        Self::new(EFFORT)
    }
}

impl Algorithm for Optimized {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        let shape = Shape::new(block);
        let points = shape.points();
        let mut cloud = Cloud::new(&shape, &points, block.len());
        let neighbours = cloud.neighbours(looks(block), cancel)?;
        let stricter = model.stricter().map(|model| (model, cloud.clone()));
        let mut groups = Groups::new(block, &shape, &points);
        let mut judge = Judge::new(block, model);
        start::grow(&mut groups, &mut cloud, &mut judge, cancel)?;
        drop(cloud);
        let mut search = Search::new(groups, judge, neighbours, cancel);
        search.place(0, false)?;
        if let Some((model, mut cloud)) = stricter {
            let mut groups = Groups::new(block, &shape, &points);
            let mut judge = Judge::new(block, model.as_ref());
            start::grow(&mut groups, &mut cloud, &mut judge, cancel)?;
            let first = std::mem::replace(&mut search.groups, groups);
            search.place(0, false)?;
            if first.total() <= search.groups.total() {
                search.groups = first;
            }
        }

        let printed = Danonyir::new().form_classes(block, model, cancel)?;
        let left = printed.suppressed.len();
        search.place(left, true)?;
        let mut other = Groups::new(block, &shape, &points);
        for class in printed.classes {
            other.add(class);
        }
        if left < search.groups.suppressed().len() || other.total() < search.groups.total() {
            search.groups = other;
        }
        search.run(self.effort)?;
        Ok(search.groups.into_classes())
    }
}

/// How long to look for an individual's neighbours. Loss is counted by record, and so is the work to lower it.
fn looks(block: &Block) -> usize {
    let records: u64 = (0..block.len() as u32)
        .map(|individual| u64::from(block.records(individual)))
        .sum();
    let mean = records / (block.len() as u64).max(1);
    (8 * mean).clamp(8, 64) as usize
}
