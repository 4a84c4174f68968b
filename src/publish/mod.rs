//! What leaves the house: files that were checked after they were written, under one manifest.
//!
//! ```text
//! plan of one anonymizing function
//!   │ sorted by class, written as Parquet          writer   <target>/data-<release>/part-<random>.parquet
//!   ▼
//! bytes in the store
//!   │ read again, hashed, verified                 check    with `check`, row group by row group
//!   │ measured: audit, loss, truth                 measures with the functions of this crate
//!   ▼
//! manifest.json, created if absent                 place    the one step that makes the release visible
//! ```
//!
//! A release exists if and only if its manifest does. Everything before that is staging, told apart from other runs by a
//! random name, and swept by later ones.

mod anatomy;
mod comparison;
mod counts;
mod exec;
mod folder;
mod ledger;
mod local;
mod measuring;
mod node;
mod parts;
mod paths;
mod place;
mod progress;
mod read_back;
mod report;
mod required;
mod run;
mod sources;
mod subject;
mod tables;
mod unfinished;
mod verification;
mod writer;

use crate::release as manifest;

pub use crate::release::{Attained, ReadRelease, Required, RequiredLevel, UnknownLevel, judge};
pub use exec::PublishExec;
pub use ledger::{Ledger, OnOverlap};
pub use manifest::{
    Count, Counts, FileEntry, Loss, MANIFEST, Manifest, Measure, Roles, TableEntry, Tool, Truth,
};
pub use node::PublishNode;
pub use paths::real_path;
pub use progress::Progress;
pub use report::{Bar, Distribution, Figures, ReportFormat, visible, visible_lines};
pub use run::{Missed, Outcome, Publish, Release};
pub use sources::table_with;
pub use unfinished::remove_unfinished;
