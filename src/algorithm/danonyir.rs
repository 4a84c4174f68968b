//! DAnonyIR: classes grown around random individuals by always adding what loses least (Wang 2018, Algorithm 1).
//!
//! ```text
//!   while individuals remain
//!     Q = the next individual
//!     while Q does not satisfy the model and individuals remain
//!       p' = nearest individual      Q' = nearest finished class          (search)
//!       the nearer of both joins Q; p' if they tie
//!     Q is finished
//!   the individuals of an unfinished last Q join the nearest class, or are suppressed   (Algorithm 7)
//! ```
//!
//! Corrections to the printed algorithm are marked by their number in docs/theory/papers.md.

mod index;
mod items;
mod probe;
mod scan;
mod space;
#[cfg(test)]
mod tests;
mod tree;

use self::index::Index;
use self::scan::Scan;
use super::{Algorithm, AlgorithmEntry, Cancel, Cancelled, Classes};
use crate::model::{Member, Model, Tally};
use crate::table::{Block, Region};

/// DAnonyIR in the list of algorithms.
pub static ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "danonyir",
    help: "grows each class around a random individual by the nearest individual or class (Wang et al. 2018)",
    options: &[],
    whole_table: false,
    serves: |_| Ok(()),
    build: |_| Ok(Box::new(Danonyir::new())),
};

/// DAnonyIR (Wang 2018, Algorithms 1 and 7).
///
/// # Runtime
/// The nearest individual and the nearest class are found by an exact index; the classes are the same as by looking
/// at all of them ([`Danonyir::naive`]), which takes quadratic time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Danonyir {
    naive: bool,
}

impl Danonyir {
    /// The algorithm with its index.
    pub fn new() -> Self {
        Self { naive: false }
    }

    /// The algorithm as printed, which looks at everything for each step: the reference for tests and benchmarks.
    pub fn naive() -> Self {
        Self { naive: true }
    }
}

impl Algorithm for Danonyir {
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled> {
        if self.naive {
            Run::new(block, model, cancel, Scan::new(block)).form_classes()
        } else {
            Run::new(block, model, cancel, Index::new(block)).form_classes()
        }
    }
}

/// A class, finished or growing.
#[derive(Debug, Clone)]
struct Class {
    members: Vec<u32>,
    /// The smallest member decides ties between classes.
    smallest: u32,
    region: Region,
}

impl Class {
    fn of(block: &Block, individual: u32) -> Self {
        Self {
            members: vec![individual],
            smallest: individual,
            region: Region::of(block, individual),
        }
    }

    fn include(&mut self, block: &Block, individual: u32) {
        self.members.push(individual);
        self.smallest = self.smallest.min(individual);
        self.region.include(block, individual);
    }

    fn extend(&mut self, block: &Block, other: &Class) {
        self.members.extend_from_slice(&other.members);
        self.smallest = self.smallest.min(other.smallest);
        self.region.extend(block, &other.region);
    }
}

/// Finds what is nearest to a region among the remaining individuals and the finished classes.
///
/// Both ways of searching give the same answers: nearest first, ties to the smaller individual or smallest member.
trait Search {
    /// The individual is no longer among the remaining ones.
    fn take(&mut self, individual: u32);

    /// The nearest remaining individual and its distance (Wang 2018, Eq. 17).
    fn nearest_individual(&mut self, region: &Region) -> Option<(u32, u128)>;

    /// The nearest finished class that lies within reach and is accepted (Wang 2018, Eqs. 17 and 18).
    fn nearest_class(
        &mut self,
        region: &Region,
        reach: Reach,
        accept: &mut dyn FnMut(&Class) -> bool,
    ) -> Option<usize>;

    /// Adds a finished class.
    fn finish(&mut self, class: Class);

    /// Takes a class back.
    fn reopen(&mut self, class: usize) -> Option<Class>;

    /// All finished classes, by their smallest member.
    fn into_classes(self) -> Vec<Class>;
}

/// How far a class may be.
#[derive(Debug, Clone, Copy)]
enum Reach {
    Below(u128),
    UpTo(u128),
}

impl Reach {
    /// The first pair of distance and smallest member out of reach.
    fn end(self) -> (u128, u32) {
        match self {
            Self::Below(distance) => (distance, 0),
            Self::UpTo(distance) => (distance, u32::MAX),
        }
    }
}

/// One run of the algorithm over a block.
struct Run<'a, S> {
    block: &'a Block,
    model: &'a dyn Model,
    cancel: &'a Cancel,
    tally: Box<dyn Tally>,
    search: S,
    taken: Vec<bool>,
}

impl<'a, S: Search> Run<'a, S> {
    fn new(block: &'a Block, model: &'a dyn Model, cancel: &'a Cancel, search: S) -> Self {
        Self {
            block,
            model,
            cancel,
            tally: model.tally(),
            search,
            taken: vec![false; block.len()],
        }
    }

    fn form_classes(mut self) -> Result<Classes, Cancelled> {
        let mut suppressed = vec![];
        for seed in 0..self.block.len() as u32 {
            if !self.taken[seed as usize] {
                // Only the last class can be left unfinished, because it has taken all that remained.
                for individual in self.grow(seed)? {
                    self.cancel.check()?;
                    if !self.handle(individual) {
                        suppressed.push(individual);
                    }
                }
            }
        }
        let mut classes: Vec<Vec<u32>> = self
            .search
            .into_classes()
            .into_iter()
            .map(|class| class.members)
            .collect();
        for class in &mut classes {
            class.sort_unstable();
        }
        Ok(Classes {
            classes,
            suppressed,
            ..Classes::default()
        })
    }

    /// Grows a class from one individual (Algorithm 1, lines 3–18); returns the individuals it could not publish.
    fn grow(&mut self, seed: u32) -> Result<Vec<u32>, Cancelled> {
        self.cancel.check()?;
        self.tally.clear();
        let mut class = Class::of(self.block, seed);
        self.take(seed);
        self.count(&[seed]);
        // Finished classes that joined stay known as they were, to be published alone if this one fails (E6).
        let mut atoms: Vec<Class> = vec![];
        let mut fresh = vec![seed];
        // A single individual is tested too (E5). Each turn takes an individual or leaves one class less.
        while !self.tally.satisfied() {
            let Some((individual, distance)) = self.search.nearest_individual(&class.region) else {
                for atom in atoms {
                    self.search.finish(atom);
                }
                fresh.sort_unstable();
                return Ok(fresh);
            };
            self.cancel.check()?;
            // Line 9: the individual is preferred, so only a nearer class counts.
            let reach = Reach::Below(distance);
            let nearer = self
                .search
                .nearest_class(&class.region, reach, &mut |_| true);
            if let Some(atom) = nearer.and_then(|id| self.search.reopen(id)) {
                self.count(&atom.members);
                class.extend(self.block, &atom);
                atoms.push(atom);
            } else {
                self.take(individual);
                self.count(&[individual]);
                class.include(self.block, individual);
                fresh.push(individual);
            }
        }
        self.search.finish(class);
        Ok(vec![])
    }

    /// Puts a residual individual into the nearest class if that loses no more than suppressing it (Algorithm 7).
    fn handle(&mut self, individual: u32) -> bool {
        let alone = Region::of(self.block, individual);
        let suppression = u128::from(alone.records())
            * self.block.quasi_identifiers().len() as u128
            * u128::from(self.block.full());
        let (block, tally) = (self.block, &mut self.tally);
        let mut accept: Box<dyn FnMut(&Class) -> bool> = if self.model.closure().extension {
            Box::new(|_| true)
        } else {
            Box::new(move |class| {
                tally.clear();
                for member in class.members.iter().chain([&individual]) {
                    tally.add(self::Member::of(block, *member));
                }
                tally.satisfied()
            })
        };
        let reach = Reach::UpTo(suppression);
        let nearest = self.search.nearest_class(&alone, reach, &mut accept);
        drop(accept);
        match nearest.and_then(|id| self.search.reopen(id)) {
            Some(mut class) => {
                class.include(self.block, individual);
                self.search.finish(class);
                true
            }
            None => false,
        }
    }

    fn take(&mut self, individual: u32) {
        self.taken[individual as usize] = true;
        self.search.take(individual);
    }

    fn count(&mut self, members: &[u32]) {
        for individual in members {
            self.tally.add(Member::of(self.block, *individual));
        }
    }
}
