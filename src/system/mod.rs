//! The four ways in which something is published: classes, fingerprints, buckets, and anatomized tables.

pub mod anatomy;
pub(crate) mod buckets;
pub(crate) mod classes;
pub(crate) mod fingerprints;
pub(crate) mod work;
