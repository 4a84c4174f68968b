//! Classes: individuals that share all published quasi-identifiers.

pub(in crate::system) mod categories;
mod work;

pub(crate) use categories::column_categories;
pub(crate) use work::ClassWork;
