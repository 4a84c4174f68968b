//! From Arrow arrays to coded tables and back: domains, blocks of similar individuals, codes, published values.

mod categories;
mod domain;
mod encode;
mod generalize;
mod key;
mod ladder;
mod levels;
mod local;
mod numbers;
mod profile;
mod publish;
mod router;
mod scale;

pub use categories::ColumnCategories;
pub use domain::{Domain, Domains};
pub use encode::{EncodedBlock, Individuals, QiColumn, one_rank, own_values, value_ranks};
pub use generalize::interval_fields;
pub(crate) use key::rows;
pub use key::{Key, Keys, Kind, canonical, without_nan};
pub use ladder::{Ladder, mask_taxonomy};
pub use levels::{BUILT_IN, DateLevel, Levels};
pub use local::{LocalCell, LocalGroup, LocalRows, exact_values, publish_groups};
pub(crate) use numbers::{Numbers, places};
pub use profile::{EXACT_VALUES, Profile};
pub use publish::{Published, publish};
pub use router::Router;
