//! The checker of (k, l)-diversity: reads published rows and the hierarchy of the sensitive column, and nothing else.
//!
//! ```text
//!   pseudonym, QI tuple, published value      individuals, each with its tuple and its set of labels
//!   label, parent                             which labels lie below which
//!        └─► every set of labels is that of k individuals                            Gong et al. 2017, Def. 5 (1)
//!            at most 1/l of a class may have the same values                         Def. 5 (2), docs/theory/papers.md M2
//!            at most 1/value_l, or not all, have a value, or something below or above it              M1
//!            how many of a class have the same set of labels                                          M6
//! ```
//!
//! Labels that do not occur in the hierarchy are a fault of form. Neither [`FingerprintsAttained`](diversity::FingerprintsAttained) nor
//! [`FingerprintViolation`] ever holds a label, a cell or a pseudonym.

mod combinations;
mod diversity;
mod published;
mod shares;
mod tally;
mod tree;

pub(crate) use shares::{most_alike, most_related};
pub(crate) use tree::Tree;

pub use self::combinations::{CombinationRequirement, verify_combinations};
pub use self::diversity::{FingerprintRequirement, FingerprintViolation, verify_fingerprints};
pub use self::published::ShownLabels;
pub use self::tally::FingerprintTally;

#[cfg(test)]
mod tests;
