//! The checker of local generalization and bucketization (Li, He and Sun 2020): reads published columns only.
//!
//! ```text
//!   individual, qi …,                     ──► local groups: records that show the same quasi-identifiers,
//!   semi-sensitive (value, bucket) …,         where a value in a bucket shows nothing but that it is in one
//!   sensitive (value, bucket) …           ──► buckets per attribute: their values and how often each occurs
//!                    │
//!                    └──► verify_local(k, rule per attribute) ──► LocalAttained or LocalViolation, counts only
//! ```
//!
//! Groups and buckets are found again from the columns, never taken from a group id. Buckets come permuted in place or as
//! tables of their own ([`BucketTable`]). t-closeness compares a bucket with all buckets of its attribute that are given:
//! give the whole release, not a block.

mod attribute;
mod original;
#[cfg(test)]
mod preserved;
mod release;

use std::fmt;

use super::ratio::Ratio;

pub use original::flags_absent;
#[cfg(test)]
pub use preserved::preserved;
pub use release::{BucketTable, LocalColumn, ShownBuckets};

/// What every bucket of an attribute must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketRule {
    /// Each value occurs once in its bucket, and there are at least l of them (Li 2020, Corollary 2: l-unique).
    Diversity {
        /// At least 1.
        l: usize,
    },
    /// The distribution of the bucket lies within t of that of all buckets, and it has two different values.
    Closeness {
        /// The largest distance.
        t: Ratio,
        /// Whether values are as far apart as their places in the order, or all equally far.
        ordered: bool,
    },
}

/// What the buckets of one attribute attain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttributeAttained {
    /// Buckets.
    pub buckets: usize,
    /// Values in buckets.
    pub owners: usize,
    /// Values in the smallest bucket; 0 without buckets.
    pub smallest_bucket: usize,
    /// Values in the largest bucket.
    pub largest_bucket: usize,
    /// How often a value occurs in one bucket, at most; 1 if all buckets are l-unique.
    pub most_of_a_value: usize,
    /// How sure an outsider can be of a member's value: the largest share of a value in its bucket.
    pub outsider_share: Ratio,
    /// The same for a member, or whoever knows the value of one: the largest share of a value among the others of the
    /// bucket, 1 / (l − 1) in a bucket of l different values.
    pub insider_share: Ratio,
    /// How far a bucket is from all of them, for t-closeness.
    pub largest_distance: Option<f64>,
}

/// What a release that satisfies its requirements attains.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalAttained {
    /// Individuals, one record each.
    pub individuals: usize,
    /// Local groups.
    pub groups: usize,
    /// Individuals in the smallest group; 0 without groups.
    pub smallest_group: usize,
    /// Individuals in the largest group.
    pub largest_group: usize,
    /// Different choices of columns that are in buckets: what flags a reader sees.
    pub patterns: usize,
    /// Individuals in the smallest pattern; 0 without patterns.
    pub smallest_pattern: usize,
    /// Semi-sensitive columns in their order, then sensitive ones.
    pub attributes: Vec<AttributeAttained>,
}

/// Why a release must not be published. Holds counts only; attributes are counted through both kinds, semi-sensitive
/// ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LocalViolation {
    /// Records whose pseudonym is NULL.
    NoPseudonym {
        /// Such records.
        records: usize,
    },
    /// Individuals with more than one record.
    SeveralRecords {
        /// Such individuals.
        individuals: usize,
    },
    /// Records whose sensitive value is in no bucket.
    NoBucket {
        /// The attribute.
        attribute: usize,
        /// Such records.
        records: usize,
    },
    /// Records in a bucket that show no value, or more than one, or a value where a table has them.
    NoValue {
        /// The attribute.
        attribute: usize,
        /// Such records.
        records: usize,
    },
    /// Buckets whose table has another number of values than they have members.
    Table {
        /// The attribute.
        attribute: usize,
        /// Such buckets.
        buckets: usize,
    },
    /// Local groups with fewer than k individuals.
    SmallGroup {
        /// What was required.
        k: usize,
        /// All groups.
        groups: usize,
        /// Those that are too small.
        violating: usize,
        /// Individuals in the smallest.
        individuals: usize,
    },
    /// Buckets that miss the rule of their attribute.
    Bucket {
        /// The attribute.
        attribute: usize,
        /// What was required.
        rule: BucketRule,
        /// All buckets of the attribute.
        buckets: usize,
        /// Those that miss it.
        violating: usize,
        /// Values in the first of them.
        size: usize,
        /// How often its most frequent value occurs.
        most: usize,
    },
    /// Values in buckets that their owner did not keep secret, or secret values that are shown outside of one.
    Flags {
        /// The attribute.
        attribute: usize,
        /// Such records.
        records: usize,
    },
    /// Buckets whose values are not those of their members.
    Values {
        /// The attribute.
        attribute: usize,
        /// Such buckets.
        buckets: usize,
    },
    /// Published columns that have no role, among them flags.
    Columns {
        /// Such columns.
        columns: usize,
    },
}

/// Checks that every local group has at least `k` individuals and every bucket satisfies the rule of its attribute:
/// `rules` are those of the semi-sensitive columns, then of the sensitive ones.
///
/// # Errors
///
/// The first [`LocalViolation`] in the order of its variants.
pub fn verify_local(
    release: &ShownBuckets,
    k: usize,
    rules: &[BucketRule],
) -> Result<LocalAttained, LocalViolation> {
    release.check_form()?;
    let groups = release.group_sizes();
    check_groups(&groups, k)?;
    let mut attributes = vec![];
    for (at, attribute) in release.attributes().iter().enumerate() {
        // Without a rule everything is required: an attribute that was forgotten must not pass.
        let rule = rules
            .get(at)
            .unwrap_or(&BucketRule::Diversity { l: usize::MAX });
        attributes.push(attribute.check(at, rule)?);
    }
    let patterns = release.pattern_sizes();
    let smallest = |sizes: &[usize]| sizes.iter().copied().min().unwrap_or(0);
    Ok(LocalAttained {
        individuals: release.individuals(),
        groups: groups.len(),
        smallest_group: smallest(&groups),
        largest_group: groups.iter().copied().max().unwrap_or(0),
        patterns: patterns.len(),
        smallest_pattern: smallest(&patterns),
        attributes,
    })
}

/// As [`verify_local`], for whole local groups whose buckets may have members and values elsewhere: those are not looked
/// at.
///
/// # Errors
///
/// The first [`LocalViolation`] in the order of its variants.
pub fn verify_groups(release: &ShownBuckets, k: usize) -> Result<(), LocalViolation> {
    release.check_people()?;
    check_groups(&release.group_sizes(), k)
}

/// How far a bucket is from all of them, at most; `None` without buckets.
///
/// A bucket is a list of values by their place in the order of all `values` different ones, with how often each occurs. The
/// distance is that of t-closeness: half the sum of the differences of all shares, or, where values are `ordered`, the mean
/// over their borders of the difference of what lies below.
pub fn largest_distance(
    buckets: &[Vec<(u32, usize)>],
    values: usize,
    ordered: bool,
) -> Option<f64> {
    let mut whole = vec![0; values];
    for (place, count) in buckets.iter().flatten() {
        whole[*place as usize] += count;
    }
    let distances = buckets.iter().map(|bucket| {
        let (part, all) = attribute::distance(bucket, &whole, ordered);
        part as f64 / all as f64
    });
    distances.reduce(f64::max)
}

fn check_groups(groups: &[usize], k: usize) -> Result<(), LocalViolation> {
    let small = || groups.iter().filter(|size| **size < k);
    match small().min() {
        None => Ok(()),
        Some(smallest) => Err(LocalViolation::SmallGroup {
            k,
            groups: groups.len(),
            violating: small().count(),
            individuals: *smallest,
        }),
    }
}

impl fmt::Display for BucketRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diversity { l } => write!(f, "{l}-diversity"),
            Self::Closeness { t, ordered: false } => write!(f, "{t}-closeness"),
            Self::Closeness { t, ordered: true } => write!(f, "ordered {t}-closeness"),
        }
    }
}

impl fmt::Display for LocalViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPseudonym { records } => write!(f, "{records} records have no pseudonym"),
            Self::SeveralRecords { individuals } => {
                write!(f, "{individuals} individuals have more than one record")
            }
            Self::NoBucket { attribute, records } => write!(
                f,
                "{records} values of attribute {attribute} are in no bucket"
            ),
            Self::NoValue { attribute, records } => write!(
                f,
                "{records} records in buckets of attribute {attribute} do not show one value"
            ),
            Self::Table { attribute, buckets } => write!(
                f,
                "the table of attribute {attribute} does not fit the members of {buckets} buckets"
            ),
            Self::SmallGroup {
                k,
                groups,
                violating,
                individuals,
            } => write!(
                f,
                "{violating} of {groups} local groups have fewer than {k} individuals, the smallest {individuals}"
            ),
            Self::Bucket {
                attribute,
                rule,
                buckets,
                violating,
                size,
                most,
            } => write!(
                f,
                "{violating} of {buckets} buckets of attribute {attribute} violate {rule}; the first of them has \
                 {size} values, one of them {most} times"
            ),
            Self::Flags { attribute, records } => write!(
                f,
                "{records} values of attribute {attribute} are not treated as their owners wish"
            ),
            Self::Values { attribute, buckets } => write!(
                f,
                "{buckets} buckets of attribute {attribute} have other values than their members"
            ),
            Self::Columns { columns } => write!(f, "{columns} published columns have no role"),
        }
    }
}

impl std::error::Error for LocalViolation {}

#[cfg(test)]
mod tests;
