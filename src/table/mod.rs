//! Tables as algorithms see them: coded columns, fingerprints, regions of generalized values.

mod block;
#[cfg(test)]
pub(crate) mod example;
mod fingerprint;
mod region;

pub use block::{Block, Categorical, NULL_CODE, Numeric, QuasiIdentifier};
pub use fingerprint::Fingerprints;
pub use region::{Cell, Region};
