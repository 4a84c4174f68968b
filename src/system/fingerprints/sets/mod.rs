//! What is published of fingerprints: sets of nodes of the sensitive column's hierarchy, each shared by enough
//! individuals that knowing some of a person's values does not single out its record.
//!
//! ```text
//!   fingerprints of leaves ──► SensitiveStep (k) ──► Generalized ──► Catalogue, KlDiversity ──► classes
//!     {a1, a2, b2}             Partition             {A, b2}         what can be confused       (l)
//! ```

mod partition;
mod prepare;
mod rmr;
mod step;

#[cfg(test)]
mod tests;

pub use partition::Partition;
pub use prepare::{Failure, Prepared, Unreachable, prepare};
pub use rmr::{Cluster, Rmr};
pub use step::{Generalized, SensitiveStep, UNPUBLISHED};
