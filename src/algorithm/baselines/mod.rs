//! Algorithms of the papers that only serve to compare with.

pub(crate) mod geneir;
pub(crate) mod incognito;
