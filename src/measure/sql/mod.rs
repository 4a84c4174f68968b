//! Measuring functions, as they are called in SQL.

pub(crate) mod audits;
mod buckets;
mod domain;
mod estimate;
mod query_error;

pub(crate) use buckets::bucket_distance;
pub(crate) use estimate::estimated::EstimateCounts;
pub(crate) use estimate::{
    bucket_sum, column_values, estimate_count, expected_members, fixed_sum, known_fraction,
    match_fraction, relative_error,
};
pub(crate) use query_error::register;

use crate::call::arguments::Function;

/// The measuring functions.
pub(crate) fn functions() -> impl Iterator<Item = Function> {
    let others = [
        buckets::FUNCTION,
        estimate::FUNCTION,
        estimate::SUM,
        estimate::estimated::FUNCTION,
        query_error::FUNCTION,
        query_error::SUMMARY,
    ];
    audits::FUNCTIONS.into_iter().chain(others)
}
