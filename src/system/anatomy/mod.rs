//! Sub-tables of exact values that only group ids link (SLPPA).

pub(in crate::system) mod requirement;
pub mod slppa;
mod sub_tables;
mod work;

pub use requirement::{ANATOMY_ARGUMENTS, SUBTABLE};
pub(crate) use requirement::{GID, NOT_FOR_ANATOMY, TIMES};
pub use sub_tables::sub_tables;
pub(crate) use work::AnatomyWork;
