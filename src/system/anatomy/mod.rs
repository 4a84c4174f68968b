//! Sub-tables of exact values that only group ids link (SLPPA).

pub mod slppa;
mod sub_tables;
mod work;

pub use sub_tables::sub_tables;
pub(crate) use work::AnatomyWork;
