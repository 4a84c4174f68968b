//! Algorithms: ways of forming classes so that a model holds at low loss. One file each, and the list [`ALGORITHMS`].

pub(crate) mod baselines;
mod best_cut;
mod complete;
mod cutting;
mod danonyir;
mod full_domain;
mod judge;
mod localpk;
#[cfg(test)]
mod measure;
mod mondrian;
mod optimized;
mod trees;

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::model::{Model, Parameter, ParameterError, Parameters};
use crate::table::{Block, Region};

pub use best_cut::BestCut;
pub use complete::complete;
pub use danonyir::Danonyir;
pub use mondrian::Mondrian;

/// A way of forming classes.
pub trait Algorithm: Debug + Send + Sync {
    /// Forms classes that all satisfy `model` from the individuals of `block`.
    ///
    /// Every individual is in exactly one class or suppressed. The result depends on the block and the model alone.
    fn form_classes(
        &self,
        block: &Block,
        model: &dyn Model,
        cancel: &Cancel,
    ) -> Result<Classes, Cancelled>;
}

/// What an algorithm made of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classes {
    /// The individuals of each class.
    pub classes: Vec<Vec<u32>>,
    /// The individuals that are not published.
    pub suppressed: Vec<u32>,
    /// For each class and column the node of the column's hierarchy to publish, if not the smallest that covers the
    /// class. Empty if no class has any. A column in which values of the class are missing publishes no node.
    pub nodes: Vec<Vec<Option<u32>>>,
}

impl Classes {
    /// What each class publishes.
    pub fn regions<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = Region> + 'a {
        self.classes.iter().enumerate().filter_map(|(i, class)| {
            let region = Region::covering(block, class)?;
            Some(match self.nodes.get(i) {
                Some(nodes) => region.with_nodes(block, nodes),
                None => region,
            })
        })
    }
}

/// Tells a running algorithm that nobody waits for its result any more.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

/// The algorithm stopped because it was told to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl Cancel {
    /// Asks the algorithm to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// An error once [`Cancel::cancel`] was called; long loops call this often.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.0.load(Ordering::Relaxed) {
            Err(Cancelled)
        } else {
            Ok(())
        }
    }
}

/// An algorithm in the list [`ALGORITHMS`].
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// The name users give as `algorithm => '…'`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Its options.
    pub options: &'static [Parameter],
    /// Whether it means anything for a whole table only: `block` must then be `'all'`.
    pub whole_table: bool,
    /// Whether the algorithm can serve a model; the reason if not. Asked before any data is read.
    pub serves: fn(&dyn Model) -> Result<(), &'static str>,
    /// Builds the algorithm from checked options.
    pub build: fn(&Parameters) -> Result<Box<dyn Algorithm>, ParameterError>,
}

/// All algorithms; the first is the default.
pub static ALGORITHMS: &[&AlgorithmEntry] = &[
    &optimized::ENTRY,
    &danonyir::ENTRY,
    &baselines::geneir::ENTRY,
    &localpk::ENTRY,
    &baselines::incognito::ENTRY,
    &best_cut::ENTRY,
    &mondrian::ENTRY,
];

/// The algorithm of that name.
pub fn find(name: &str) -> Option<&'static AlgorithmEntry> {
    ALGORITHMS.iter().copied().find(|entry| entry.name == name)
}
