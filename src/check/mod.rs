//! The independent checker: reads what is published and re-derives the privacy requirement from it.
//!
//! An algorithm is never its own judge. This module sees published quasi-identifier values, the pseudonym
//! column and the sensitive column, and nothing else: equivalence classes are found again by grouping on
//! published values, never by an internal group id. Every decision is integer arithmetic on the definitions
//! of Wang, Du, Luo and Li 2018, Definitions 2.3, 3.3 and 3.4. No code is shared with the code that
//! forms classes; an error made there cannot repeat itself here.
//!
//! ```text
//!   published columns ──► Published ──► verify(requirement) ──► Attained   counts of what holds
//!                         classes,                       └────► Violation  counts of what does not
//!                         individuals, fingerprints
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
pub(crate) mod buckets;
pub(crate) mod classes;
mod codes;
pub(crate) mod fingerprints;
mod ratio;
mod spelling;

pub(crate) use codes::invalid;

pub use anatomy::{
    AnatomyAttained, AnatomyBounds, AnatomyTable, ShownTables, rows_out_of_order, verify_anatomy,
};
pub use buckets::{
    BucketRule, BucketTable, LocalColumn, ShownBuckets, flags_absent, largest_distance,
    verify_groups, verify_local,
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
pub use spelling::one_spelling;
