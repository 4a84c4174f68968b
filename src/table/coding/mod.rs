//! From Arrow arrays to coded tables and back: domains, blocks of similar individuals, codes, published values.

mod categories;
mod class_rows;
mod domain;
mod encode;
mod generalize;
mod key;
mod ladder;
mod levels;
mod numbers;
mod scale;

pub(crate) use class_rows::{Class, hex};
pub(crate) use generalize::generalize;

pub use categories::ColumnCategories;
pub use class_rows::{PublishedRecords, publish};
pub use domain::{Domain, Domains};
pub use encode::{EncodedBlock, IndividualArrays, QiArray, one_rank, own_values, value_ranks};
pub use generalize::interval_fields;
pub(crate) use key::rows;
pub use key::{Key, Keys, Kind, canonical, without_nan};
pub use ladder::{Ladder, mask_taxonomy};
pub use levels::{BUILT_IN, DateLevel, Levels};
pub(crate) use numbers::{Numbers, places};
