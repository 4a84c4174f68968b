//! The sensitive step: what is published instead of fingerprints.

use std::fmt::Debug;

use crate::algorithm::{Cancel, Cancelled};
use crate::engine::threads::Threads;
use crate::table::{Fingerprints, Hierarchy};

/// The number of an individual that publishes nothing.
pub const UNPUBLISHED: u32 = u32::MAX;

/// A way of generalizing fingerprints so that enough individuals share each. What comes after it, the test of the whole
/// table and the classes, knows only what it published.
///
/// # Guarantee
/// Every published fingerprint is that of at least k individuals. Every value of an individual lies below exactly one node
/// of its published fingerprint, and every node has a value of the individual below it.
pub trait SensitiveStep: Debug + Send + Sync {
    /// Generalizes fingerprints of leaf positions, each for at least `k` individuals. Individuals without values publish
    /// nothing; if fewer than k are left, nobody does. Free threads may help, and change nothing.
    fn generalize(
        &self,
        k: usize,
        fingerprints: &Fingerprints,
        tree: &Hierarchy,
        threads: &Threads,
        cancel: &Cancel,
    ) -> Result<Generalized, Cancelled>;
}

/// What a sensitive step made of fingerprints.
#[derive(Debug, Clone)]
pub struct Generalized {
    /// The different published fingerprints, as nodes of the hierarchy.
    pub sets: Fingerprints,
    /// The number of each individual's published fingerprint, or [`UNPUBLISHED`].
    pub of: Vec<u32>,
}
