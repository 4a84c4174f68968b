//! Classes with published fingerprints: sets of labels in the place of sensitive values.

pub(in crate::system) mod requirement;
mod rmr_work;
pub(crate) mod sets;
mod work;

pub(crate) use requirement::sensitive_tree;
pub(crate) use rmr_work::RmrWork;
pub(crate) use work::FingerprintWork;
