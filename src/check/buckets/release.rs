//! Published columns as a reader sees them, grouped again.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt64Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{cast, nullif};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::arrow::error::ArrowError;

use super::super::codes::{codes, invalid};
use super::LocalViolation;
use super::attribute::AttributeBuckets;

/// A column of which some or all values are in buckets, one row per record.
#[derive(Debug, Clone)]
pub struct LocalColumn {
    /// What the record shows: a generalized value, or the value it got in its bucket. With a [`BucketTable`] it must show
    /// nothing where it has a bucket.
    pub value: ArrayRef,
    /// The id of the bucket; NULL where the value is in none.
    pub bucket: ArrayRef,
    /// The values of the buckets, where they stand in a table of their own.
    pub table: Option<BucketTable>,
}

/// The values of buckets: one row per bucket and different value.
#[derive(Debug, Clone)]
pub struct BucketTable {
    /// The id of the bucket, of the same type as [`LocalColumn::bucket`].
    pub bucket: ArrayRef,
    /// The value.
    pub value: ArrayRef,
    /// How many members have it: any integer type.
    pub individuals: ArrayRef,
}

/// A release, grouped.
#[derive(Debug)]
pub struct ShownBuckets {
    individuals: usize,
    without_pseudonym: usize,
    with_several: usize,
    group: Vec<u32>,
    groups: usize,
    pattern: Vec<u32>,
    patterns: usize,
    attributes: Vec<AttributeBuckets>,
}

impl ShownBuckets {
    /// Groups published columns of the same length. `qi` are the quasi-identifiers that nobody keeps secret.
    ///
    /// Bucketized values of a `Struct<lo, hi>` or `List` column must be single values in that form.
    pub fn try_new(
        individual: &ArrayRef,
        qi: &[ArrayRef],
        semi_sensitive: &[LocalColumn],
        sensitive: &[LocalColumn],
    ) -> Result<Self, ArrowError> {
        let records = individual.len();
        let local = || semi_sensitive.iter().chain(sensitive);
        let lengths = qi.iter().chain(local().flat_map(|c| [&c.value, &c.bucket]));
        if let Some(column) = lengths.into_iter().find(|c| c.len() != records) {
            return invalid(format!(
                "verify: a column has {} records, the individual column {records}",
                column.len()
            ));
        }
        let nameless = individual.logical_nulls().map_or(0, |n| n.null_count());

        let mut shown = qi.to_vec();
        let mut presence: Vec<ArrayRef> = vec![];
        for column in semi_sensitive {
            let in_bucket = inside(column);
            // Its value says nothing about the record, only that the value is in a bucket.
            shown.push(nullif(&column.value, &in_bucket)?);
            presence.push(Arc::new(in_bucket));
        }
        shown.extend(presence.iter().cloned());
        let (pattern, patterns) = of_all(&presence, records)?;

        let mut parts = vec![Part::People(individual)];
        parts.extend(sensitive.iter().map(|column| Part::Attribute(column, true)));
        parts.push(Part::Groups(&shown, records));
        parts.extend(
            semi_sensitive
                .iter()
                .map(|column| Part::Attribute(column, false)),
        );
        let (mut with_several, mut group, mut groups) = (0, vec![], 0);
        let (mut attributes, mut of_sensitive) = (vec![], vec![]);
        for (part, seen) in parts.iter().zip(by_two(&parts, Part::look)) {
            match (seen?, part) {
                (Seen::People(several), _) => with_several = several,
                (Seen::Groups(codes, number), _) => (group, groups) = (codes, number),
                (Seen::Attribute(buckets), Part::Attribute(_, true)) => of_sensitive.push(buckets),
                (Seen::Attribute(buckets), _) => attributes.push(buckets),
            }
        }
        attributes.extend(of_sensitive);
        Ok(Self {
            individuals: records,
            without_pseudonym: nameless,
            with_several,
            group,
            groups,
            pattern,
            patterns,
            attributes,
        })
    }

    pub(super) fn individuals(&self) -> usize {
        self.individuals
    }

    pub(super) fn attributes(&self) -> &[AttributeBuckets] {
        &self.attributes
    }

    /// What must hold whatever is required.
    pub(super) fn check_form(&self) -> Result<(), LocalViolation> {
        self.check_people()?;
        let attributes = || self.attributes.iter().enumerate();
        attributes().try_for_each(|(at, a)| a.check_values(at))?;
        attributes().try_for_each(|(at, a)| a.check_table(at))
    }

    /// The same without what buckets hold.
    pub(super) fn check_people(&self) -> Result<(), LocalViolation> {
        if self.without_pseudonym > 0 {
            return Err(LocalViolation::NoPseudonym {
                records: self.without_pseudonym,
            });
        }
        if self.with_several > 0 {
            return Err(LocalViolation::SeveralRecords {
                individuals: self.with_several,
            });
        }
        let mut attributes = self.attributes.iter().enumerate();
        attributes.try_for_each(|(at, a)| a.check_members(at))
    }

    pub(super) fn group_sizes(&self) -> Vec<usize> {
        sizes(&self.group, self.groups)
    }

    pub(super) fn pattern_sizes(&self) -> Vec<usize> {
        sizes(&self.pattern, self.patterns)
    }
}

/// What is looked at without the rest.
enum Part<'a> {
    People(&'a ArrayRef),
    /// The columns that show something, and the number of records.
    Groups(&'a [ArrayRef], usize),
    /// A column, and whether it is sensitive.
    Attribute(&'a LocalColumn, bool),
}

/// What was found in a part.
enum Seen {
    /// How many individuals have several records.
    People(usize),
    /// The group of each record, and the number of groups.
    Groups(Vec<u32>, usize),
    Attribute(AttributeBuckets),
}

impl Part<'_> {
    fn look(&self) -> Result<Seen, ArrowError> {
        Ok(match self {
            Self::People(individual) => {
                let (person, people) = codes(std::slice::from_ref(*individual))?;
                let records = sizes(&person, people);
                Seen::People(records.iter().filter(|records| **records > 1).count())
            }
            Self::Groups(shown, records) => {
                let (group, groups) = of_all(shown, *records)?;
                Seen::Groups(group, groups)
            }
            Self::Attribute(column, sensitive) => {
                Seen::Attribute(AttributeBuckets::try_new(column, *sensitive)?)
            }
        })
    }
}

/// The results of `work` for each item, in their order, by this thread and another one.
fn by_two<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let some = || {
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, work(item)))
        };
        std::iter::from_fn(take).collect::<Vec<_>>()
    };
    let mut done = scope(|scope| {
        let other = scope.spawn(some);
        let mut done = some();
        done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Whether the value of each record is in a bucket.
pub(super) fn inside(column: &LocalColumn) -> BooleanArray {
    let bucket = &column.bucket;
    let inside = match bucket.nulls() {
        Some(nulls) => nulls.inner().clone(),
        None => BooleanBuffer::new_set(bucket.len()),
    };
    BooleanArray::new(inside, None)
}

/// Counts of a table, as numbers.
pub(super) fn counts(array: &ArrayRef) -> Result<UInt64Array, ArrowError> {
    Ok(cast(array, &DataType::UInt64)?
        .as_primitive::<UInt64Type>()
        .clone())
}

/// As [`codes`], with all records alike where there is no column.
fn of_all(columns: &[ArrayRef], records: usize) -> Result<(Vec<u32>, usize), ArrowError> {
    if columns.is_empty() {
        return Ok((vec![0; records], usize::from(records > 0)));
    }
    codes(columns)
}

/// How often each number occurs.
pub(super) fn sizes(codes: &[u32], number: usize) -> Vec<usize> {
    let mut sizes = vec![0; number];
    for code in codes {
        sizes[*code as usize] += 1;
    }
    sizes
}
