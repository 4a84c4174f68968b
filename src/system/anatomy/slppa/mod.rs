//! Anatomization: exact values are published, and the links between them are cut (Yao et al. 2021, SLPPA).
//!
//! ```text
//!   a pass over the table ──► TableProfile ──► Learned                what every block is told about the whole table
//!   columns ──► DivisionStatistics ──► Associations ──► Division      which columns share a sub-table
//!   individuals, Division, Prior, Requirements ──► Method::groups ──► Groups   who shares a group
//!   Groups, group ids ──► publish ──► Published      (gid, sub-tuple, count) and (gid, sensitive value, count)
//!   Published, a count query ──► CountEstimate       what a reader answers from it
//! ```
//!
//! Every group satisfies four bounds (Definitions 1 to 4), each decided by integers:
//!
//! | bound | no larger than it, in every group |
//! |---|---|
//! | α | the share of the most frequent sub-tuple, in every sub-table (Eq. 3) |
//! | β | the share of the most frequent sensitive value (Eq. 5) |
//! | γ | the product of these shares (Eq. 7) |
//! | δ | the distance of any sensitive value's share from its share of the whole table (Eq. 8) |
//!
//! Individuals are numbered in a random order that the caller makes with a key; nothing here draws random numbers, and
//! every tie goes to the smaller number. Corrections to the paper are marked by their number in docs/theory/papers.md.

mod assign;
mod coded;
mod counter;
mod divide;
mod division;
mod estimate;
mod exact;
mod groups;
mod individuals;
mod learned;
mod method;
mod mix;
mod mondrian;
mod profile;
mod repair;
mod requirement;
mod slicing;
mod statistics;
mod sub_tables;

#[cfg(test)]
mod example;

pub use coded::{CodedBlock, ranks};
pub use division::{Division, DivisionError};
pub use estimate::RelativeErrors;
pub use groups::{DivideError, Groups};
pub use individuals::{CodedIndividuals, Prior};
pub use learned::{AnatomyRequest, Learned, SubTables, TooSmall};
pub use method::Method;
pub use profile::TableProfile;
pub use requirement::GroupBounds;
pub use statistics::{
    Associations, DivisionStatistics, MISSING, position_of_bytes, position_of_i64,
};
pub use sub_tables::{Publisher, Row, publish};
