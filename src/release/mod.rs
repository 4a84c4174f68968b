//! A release as others find it: the manifest, and its tables.
//!
//! Who writes a release is in `publish`.

mod manifest;
mod required;
mod table;

pub use manifest::{
    Count, Counts, FileEntry, Loss, MANIFEST, Manifest, Measure, Roles, TableEntry, Tool, Truth,
};
pub use required::{Attained, Required, RequiredLevel, UnknownLevel, judge};
pub use table::ReadRelease;
pub(crate) use table::ReleaseTable;

/// Who speaks in messages about reading one.
const SPEAKER: &str = "release";
