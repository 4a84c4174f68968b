//! The independent checker: reads what is published and re-derives the privacy requirement from it.
//!
//! An algorithm is never its own judge. [`Asked`] is the call as it was written: names and texts that nobody has parsed.
//! [`Requirement::read`](verifier::Requirement::read) reads them here a second time, and [`Verifier`] checks the published columns against it: each
//! block in memory before a row of it is emitted, and the written files again before a release becomes visible. Classes,
//! groups and buckets are found again by grouping on published values, never by an internal number. Every decision is
//! integer arithmetic on the definitions of the papers. No code is shared with the code that forms classes.
//!
//! ```text
//!   words of the call ──► Asked ──► Requirement ┐
//!                                               ├─► Verifier ──► Verified, or Refused with counts of what does not hold
//!   published columns ──► ShownClasses, ShownLabels, ShownBuckets, ShownTables
//! ```
//!
//! Three things hold whatever the requirement: no pseudonym is NULL, an individual shows one tuple of
//! quasi-identifiers only, and every individual has a sensitive value. Neither `Attained` nor `Violation`
//! ever holds a cell's value or a pseudonym.
//!
//! Where a sensitive value is NULL, the record counts as a record, and the NULL bounds like a value of its own
//! for the shares of (α, β); it is never one of `l` values. A record without a value may stand for its
//! individual in a reasoning set, so an individual with such a record adds nothing to EIR l-diversity.

pub(crate) mod anatomy;
mod asked;
pub(crate) mod buckets;
pub(crate) mod classes;
mod codes;
pub(crate) mod fingerprints;
mod ratio;
mod spelling;
mod verifier;

pub(crate) use codes::invalid;

pub use anatomy::{
    AnatomyAttained, AnatomyBounds, AnatomyTable, ShownTables, rows_out_of_order, verify_anatomy,
};
pub(crate) use asked::{Asked, BucketRequirement};
pub use buckets::{
    BucketRule, BucketTable, LocalColumn, ShownBuckets, flags_absent, largest_distance,
    verify_local,
};
pub use classes::{
    Answer, Class, ClassRequirement, Listed, Minimum, SensitiveColumn, SensitiveTable, Sensitivity,
    ShownClasses, check_sensitivity, diversity, eir_diverse, verify,
};
pub use codes::comparable_rows;
pub use fingerprints::{
    CombinationRequirement, FingerprintRequirement, FingerprintTally, ShownLabels,
    verify_combinations, verify_fingerprints,
};
pub use ratio::Ratio;
pub use verifier::{
    Categories, Extent, References, Refused, ShownPeople, ShownRows, Verified, Verifier,
};
