//! The buckets of one attribute, and the rules by their definitions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::{concat, filter, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, SortField};

use super::super::codes::{codes, invalid};
use super::super::ratio::Ratio;
use super::release::{LocalColumn, counts, inside, sizes};
use super::{AttributeAttained, BucketRule, LocalViolation};

/// Every bucket with its values.
#[derive(Debug)]
pub(super) struct AttributeBuckets {
    /// Bucket after bucket: the place of each of its values in the order of all values, with how often it occurs, by
    /// place.
    entries: Vec<(u32, usize)>,
    /// One past the last entry of each bucket.
    ends: Vec<usize>,
    /// Members of each bucket.
    members: Vec<usize>,
    /// Number of different values.
    values: usize,
    without_bucket: usize,
    without_value: usize,
}

impl AttributeBuckets {
    /// Finds the buckets again; everybody must have one if the column is `sensitive`.
    pub fn try_new(column: &LocalColumn, sensitive: bool) -> Result<Self, ArrowError> {
        let records = column.bucket.len();
        let inside = inside(column);
        let member_of = filter(&column.bucket, &inside)?;
        let shown = filter(&column.value, &inside)?;
        let (mut without_value, entries) = match &column.table {
            None => {
                let (value, faults) = single_values(&shown)?;
                (faults, (Arc::clone(&member_of), value, None))
            }
            Some(table) => {
                if table.bucket.len() != table.value.len()
                    || table.bucket.len() != table.individuals.len()
                {
                    return invalid(
                        "verify: the columns of a bucket table differ in length".into(),
                    );
                }
                let shown = shown.len() - shown.logical_null_count();
                let counts = counts(&table.individuals)?;
                let (value, faults) = single_values(&table.value)?;
                (
                    shown + faults + counts.null_count(),
                    (Arc::clone(&table.bucket), value, Some(counts)),
                )
            }
        };
        let (entry_bucket, value, number) = entries;
        without_value += entry_bucket.logical_null_count();

        // One numbering for the ids in records and in the table, which are the same where values are permuted in place.
        let same = member_of.as_ref() == entry_bucket.as_ref();
        let both = match same {
            true => Arc::clone(&member_of),
            false => concat(&[member_of.as_ref(), entry_bucket.as_ref()])?,
        };
        let (bucket, buckets) = codes(&[both])?;
        let of_member = &bucket[..member_of.len()];
        let of_entry = &bucket[bucket.len() - entry_bucket.len()..];
        let (place, values) = places(&value)?;
        let number = |at: usize| number.as_ref().map_or(1, |n| n.value(at) as usize);
        let (entries, ends) = by_bucket(of_entry, buckets, |at| (place[at], number(at)));
        Ok(Self {
            entries,
            ends,
            members: sizes(of_member, buckets),
            values,
            without_bucket: if sensitive {
                records - member_of.len()
            } else {
                0
            },
            without_value,
        })
    }

    fn buckets(&self) -> impl Iterator<Item = &[(u32, usize)]> {
        let begins = std::iter::once(&0).chain(&self.ends);
        let parts = begins.zip(&self.ends);
        parts.map(|(begin, end)| &self.entries[*begin..*end])
    }

    pub fn check_members(&self, attribute: usize) -> Result<(), LocalViolation> {
        match self.without_bucket {
            0 => Ok(()),
            records => Err(LocalViolation::NoBucket { attribute, records }),
        }
    }

    pub fn check_values(&self, attribute: usize) -> Result<(), LocalViolation> {
        match self.without_value {
            0 => Ok(()),
            records => Err(LocalViolation::NoValue { attribute, records }),
        }
    }

    pub fn check_table(&self, attribute: usize) -> Result<(), LocalViolation> {
        let sizes = self.members.iter().zip(self.buckets());
        let unlike = sizes.filter(|(members, values)| **members != size(values));
        match unlike.count() {
            0 => Ok(()),
            buckets => Err(LocalViolation::Table { attribute, buckets }),
        }
    }

    /// The rule, bucket by bucket.
    pub fn check(
        &self,
        attribute: usize,
        rule: &BucketRule,
    ) -> Result<AttributeAttained, LocalViolation> {
        let mut whole = vec![0; self.values];
        for (place, count) in &self.entries {
            whole[*place as usize] += count;
        }
        let mut attained = AttributeAttained {
            buckets: self.ends.len(),
            owners: whole.iter().sum(),
            smallest_bucket: usize::MAX,
            largest_bucket: 0,
            most_of_a_value: 0,
            outsider_share: Ratio::of(0, 1),
            insider_share: Ratio::of(0, 1),
            largest_distance: None,
        };
        let mut violation = None;
        for bucket in self.buckets() {
            let (size, most) = (size(bucket), most(bucket));
            attained.smallest_bucket = attained.smallest_bucket.min(size);
            attained.largest_bucket = attained.largest_bucket.max(size);
            attained.most_of_a_value = attained.most_of_a_value.max(most);
            attained.outsider_share = attained.outsider_share.max(Ratio::of(most, size));
            attained.insider_share = attained.insider_share.max(insider(bucket));
            let satisfied = match rule {
                BucketRule::Diversity { l } => most == 1 && size >= *l,
                BucketRule::Closeness { t, ordered } => {
                    let (part, all) = distance(bucket, &whole, *ordered);
                    let distance = part as f64 / all as f64;
                    attained.largest_distance =
                        Some(attained.largest_distance.unwrap_or(0.0).max(distance));
                    bucket.len() >= 2 && within(part, all, t)
                }
            };
            if !satisfied {
                violation.get_or_insert((0, size, most)).0 += 1;
            }
        }
        if self.ends.is_empty() {
            attained.smallest_bucket = 0;
        }
        match violation {
            None => Ok(attained),
            Some((violating, size, most)) => Err(LocalViolation::Bucket {
                attribute,
                rule: *rule,
                buckets: self.ends.len(),
                violating,
                size,
                most,
            }),
        }
    }
}

/// The entries of each bucket, by place and one for each, and where those of each bucket end. `entry` is a place and how
/// often its value occurs.
fn by_bucket(
    bucket_of: &[u32],
    buckets: usize,
    entry: impl Fn(usize) -> (u32, usize),
) -> (Vec<(u32, usize)>, Vec<usize>) {
    let mut ends = sizes(bucket_of, buckets);
    let mut begin = 0;
    for end in &mut ends {
        begin += std::mem::replace(end, begin);
    }
    // Where the next entry of each bucket goes; in the end, where it ends.
    let mut entries = vec![(0, 0); bucket_of.len()];
    for (at, bucket) in bucket_of.iter().enumerate() {
        let next = &mut ends[*bucket as usize];
        entries[*next] = entry(at);
        *next += 1;
    }
    let (mut begin, mut kept) = (0, 0);
    for end in &mut ends {
        let own = kept;
        entries[begin..*end].sort_unstable();
        for at in begin..*end {
            let (place, count) = entries[at];
            if kept > own && entries[kept - 1].0 == place {
                entries[kept - 1].1 += count;
            } else {
                entries[kept] = (place, count);
                kept += 1;
            }
        }
        begin = std::mem::replace(end, kept);
    }
    entries.truncate(kept);
    (entries, ends)
}

fn size(bucket: &[(u32, usize)]) -> usize {
    bucket.iter().map(|(_, count)| count).sum()
}

fn most(bucket: &[(u32, usize)]) -> usize {
    bucket.iter().map(|(_, count)| *count).max().unwrap_or(0)
}

/// The largest share of a value after one member with a known value is set aside.
fn insider(bucket: &[(u32, usize)]) -> Ratio {
    match (bucket.len(), size(bucket)) {
        (0, _) => Ratio::of(0, 1),
        // All members have the known value; a single one has no others, and nothing is left to guess.
        (1, _) => Ratio::of(1, 1),
        (_, size) => Ratio::of(most(bucket), size - 1),
    }
}

/// The distance of a bucket from the whole (Li 2007), as a fraction: half the sum of the differences of all shares, or
/// the mean over all borders between neighbouring values of the difference of what lies below.
pub(super) fn distance(bucket: &[(u32, usize)], whole: &[usize], ordered: bool) -> (u128, u128) {
    let (own, all) = (size(bucket) as u128, whole.iter().sum::<usize>() as u128);
    let mut counts = bucket.iter().peekable();
    let (mut sum, mut below, mut below_whole) = (0u128, 0u128, 0u128);
    for (place, in_whole) in whole.iter().enumerate() {
        let here = counts.next_if(|(p, _)| *p as usize == place);
        let (count, in_whole) = (here.map_or(0, |(_, c)| *c as u128), *in_whole as u128);
        below += count;
        below_whole += in_whole;
        sum += if ordered {
            (below * all).abs_diff(below_whole * own)
        } else {
            (count * all).abs_diff(in_whole * own)
        };
    }
    let parts = if ordered {
        whole.len().saturating_sub(1)
    } else {
        2
    };
    (sum, (own * all * parts as u128).max(1))
}

/// `part / whole <= t`, exactly; numbers that are too large to tell count as too far.
fn within(part: u128, whole: u128, t: &Ratio) -> bool {
    let left = part.checked_mul(u128::from(t.denominator()));
    let right = whole.checked_mul(u128::from(t.numerator()));
    matches!((left, right), (Some(left), Some(right)) if left <= right)
}

/// The place of each value in the order of the different values, and how many there are.
fn places(values: &ArrayRef) -> Result<(Vec<u32>, usize), ArrowError> {
    let (code, number) = codes(std::slice::from_ref(values))?;
    let mut first = vec![None; number];
    for (row, code) in code.iter().enumerate() {
        first[*code as usize].get_or_insert(row as u32);
    }
    let examples = take(values, &first.into_iter().collect::<UInt32Array>(), None)?;
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let rows = converter.convert_columns(&[examples])?;
    let mut order: Vec<usize> = (0..number).collect();
    order.sort_unstable_by(|a, b| rows.row(*a).cmp(&rows.row(*b)));
    let mut place = vec![0; number];
    for (at, code) in order.into_iter().enumerate() {
        place[code] = at as u32;
    }
    Ok((
        code.into_iter().map(|c| place[c as usize]).collect(),
        number,
    ))
}

/// The values behind cells that show one each, and how many cells do not.
///
/// A quasi-identifier shows a value as an interval with two equal ends or as a list of one.
pub(super) fn single_values(cells: &ArrayRef) -> Result<(ArrayRef, usize), ArrowError> {
    match cells.data_type() {
        DataType::Struct(fields)
            if fields.len() == 2 && fields[0].name() == "lo" && fields[1].name() == "hi" =>
        {
            let ends = cells.as_struct();
            let both = concat(&[ends.column(0).as_ref(), ends.column(1).as_ref()])?;
            let (code, _) = codes(&[both])?;
            let (lo, hi) = code.split_at(cells.len());
            let single = |r: &usize| cells.is_valid(*r) && lo[*r] == hi[*r];
            let nulls = ends.column(0).logical_nulls();
            let known = |r: &usize| nulls.as_ref().is_none_or(|n| n.is_valid(*r));
            let good = (0..cells.len()).filter(|r| single(r) && known(r)).count();
            Ok((Arc::clone(ends.column(0)), cells.len() - good))
        }
        DataType::List(_) => {
            let lists = cells.as_list::<i32>();
            let offsets = lists.value_offsets();
            let at = (0..cells.len()).map(|r| {
                let one = lists.is_valid(r) && offsets[r + 1] - offsets[r] == 1;
                one.then_some(offsets[r] as u32)
            });
            let values = take(lists.values(), &at.collect::<UInt32Array>(), None)?;
            let missing = values.logical_null_count();
            Ok((values, missing))
        }
        DataType::Dictionary(_, values) if values.is_nested() => {
            let cells = cells.as_any_dictionary();
            single_values(&take(cells.values(), cells.keys(), None)?)
        }
        _ => Ok((Arc::clone(cells), cells.logical_null_count())),
    }
}
