//! Measuring functions, as they are called in SQL.

pub(crate) mod audits;
mod buckets;
mod domain;
mod estimate;
mod function;
mod query_error;

pub(crate) use buckets::bucket_distance;
pub(crate) use estimate::estimated::EstimateCounts;
pub(crate) use estimate::{
    bucket_sum, column_values, estimate_count, expected_members, fixed_sum, known_fraction,
    match_fraction, relative_error,
};
pub(crate) use function::{MEASURES, MeasureCall, MeasureEntry, MeasureTableFunction, ToExpr};
pub(crate) use query_error::register;
