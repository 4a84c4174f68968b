//! Groups for what is shown, and buckets for what is secret (LGB).

mod group_rows;
pub(crate) mod lgb;
mod requirement;
mod secret_counts;
mod work;

pub(crate) use requirement::{LocalRequirement, SecretAttribute, SecretRule};
pub(crate) use secret_counts::{SecretCounts, counts_secrets};
pub(crate) use work::{BucketWork, checked_rule};
