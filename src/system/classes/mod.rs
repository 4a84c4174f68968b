//! Classes: individuals that share all published quasi-identifiers.

mod work;

pub(crate) use work::ClassWork;
