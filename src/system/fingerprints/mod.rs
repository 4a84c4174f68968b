//! Classes with published fingerprints: sets of labels in the place of sensitive values.

mod rmr_work;
pub(crate) mod sets;
mod work;

pub(crate) use rmr_work::RmrWork;
pub(crate) use work::FingerprintWork;
