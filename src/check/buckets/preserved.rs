//! A check for who has the original table.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::compute::{concat, filter};
use datafusion::arrow::error::ArrowError;

use super::super::codes::{codes, invalid};
use super::LocalViolation;
use super::attribute::single_values;
use super::release::{LocalColumn, inside};

/// Checks a column, permuted in place, against the original values of the same records, row by row: only secret values are
/// in buckets, no secret value is shown outside of one, and the values of every bucket are those of its members.
///
/// `secret` are the flags of a semi-sensitive column; without them everything is secret. The original values have the
/// type of the single values that are published. `attribute` is the place of the column in the violation.
///
/// # Errors
///
/// [`ArrowError`] if the columns do not fit together; inside, [`LocalViolation::Flags`] or [`LocalViolation::Values`].
pub fn preserved(
    attribute: usize,
    column: &LocalColumn,
    original: &ArrayRef,
    secret: Option<&BooleanArray>,
) -> Result<Result<(), LocalViolation>, ArrowError> {
    let records = column.value.len();
    if original.len() != records || secret.is_some_and(|s| s.len() != records) {
        return invalid("verify: the original has another number of records".to_string());
    }
    let is_secret = |r: usize| secret.is_none_or(|s| s.is_valid(r) && s.value(r));
    // A value that is in no bucket though it is secret must be blank.
    let wrong = |r: &usize| match (column.bucket.is_valid(*r), is_secret(*r)) {
        (true, secret) => !secret,
        (false, true) => column.value.is_valid(*r),
        (false, false) => false,
    };
    match (0..records).filter(wrong).count() {
        0 => {}
        records => return Ok(Err(LocalViolation::Flags { attribute, records })),
    }
    let inside = inside(column);
    let (published, _) = single_values(&filter(&column.value, &inside)?)?;
    let own = filter(original, &inside)?;
    if published.data_type() != own.data_type() {
        return invalid("verify: the original values have another type".to_string());
    }
    let (bucket, buckets) = codes(&[filter(&column.bucket, &inside)?])?;
    let (value, _) = codes(&[concat(&[published.as_ref(), own.as_ref()])?])?;
    let (published, own) = value.split_at(bucket.len());
    let sorted = |values: &[u32]| {
        let mut pairs: Vec<(u32, u32)> =
            bucket.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_unstable();
        pairs
    };
    let mut unlike = vec![false; buckets];
    for (shown, true_value) in sorted(published).iter().zip(&sorted(own)) {
        unlike[shown.0 as usize] |= shown != true_value;
    }
    Ok(match unlike.iter().filter(|u| **u).count() {
        0 => Ok(()),
        buckets => Err(LocalViolation::Values { attribute, buckets }),
    })
}
