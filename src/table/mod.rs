//! Tables as algorithms see them: coded columns, fingerprints, regions of generalized values.

mod block;
mod categories;
mod chance;
pub(crate) mod coding;
#[cfg(test)]
pub(crate) mod example;
mod fingerprint;
mod hierarchy;
mod profile;
mod region;
mod router;

pub use hierarchy::{co_occurrence, even};
pub use profile::{EXACT_VALUES, Profile};
pub use router::Router;

pub use block::{Block, Categorical, Hierarchical, LossTree, NULL_CODE, Numeric, QuasiIdentifier};
pub use categories::{Categories, CategoryRow};
pub use chance::smallest_random_block;
pub use fingerprint::{Fingerprints, Sensitive};
pub use hierarchy::{Hierarchy, HierarchyError, ROOT, Taxonomy};
pub use region::{Cell, Region, loss_of_two};
