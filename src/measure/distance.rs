//! How far buckets are from all of them, for t-closeness.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::error::ArrowError;

use crate::check::{comparable_rows, largest_distance};

/// More different values than this are too many for t-closeness to say anything.
pub(crate) const MOST_VALUES: usize = 256;

/// Buckets with their values, of which there are few.
#[derive(Debug, Default)]
pub(crate) struct BucketDistances {
    buckets: HashMap<Box<[u8]>, u32>,
    values: HashMap<Box<[u8]>, u32>,
    /// Bucket, value, and how often it occurs there.
    entries: Vec<(u32, u32, i64)>,
    bytes: usize,
}

impl BucketDistances {
    /// Whether there are so many values that no distance is told.
    pub fn is_full(&self) -> bool {
        self.values.len() > MOST_VALUES
    }

    /// Adds values of buckets with their numbers.
    pub fn add(
        &mut self,
        buckets: &ArrayRef,
        values: &ArrayRef,
        times: &Int64Array,
    ) -> Result<(), ArrowError> {
        let buckets = comparable_rows(std::slice::from_ref(buckets))?;
        let values = comparable_rows(std::slice::from_ref(values))?;
        let rows = buckets.iter().zip(values.iter()).zip(times.iter());
        for ((bucket, value), times) in rows {
            self.push(bucket.data(), value.data(), times.unwrap_or(0));
        }
        Ok(())
    }

    /// Adds a value of a bucket, both in the row format.
    pub fn push(&mut self, bucket: &[u8], value: &[u8], times: i64) {
        if self.is_full() {
            return;
        }
        let mut bytes = 0;
        let mut number = |known: &mut HashMap<Box<[u8]>, u32>, key: &[u8]| match known.get(key) {
            Some(number) => *number,
            None => {
                let number = known.len() as u32;
                known.insert(key.into(), number);
                bytes += key.len() + 48;
                number
            }
        };
        let value = number(&mut self.values, value);
        let bucket = number(&mut self.buckets, bucket);
        self.bytes += bytes + size_of::<(u32, u32, i64)>();
        self.entries.push((bucket, value, times));
        if self.is_full() {
            // One value too many is all that must be known.
            self.buckets = HashMap::new();
            self.entries = vec![];
        }
    }

    /// Everything that was added, as [`BucketDistances::push`] takes it.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8], i64)> {
        let (buckets, values) = (by_number(&self.buckets), by_number(&self.values));
        let of_all = |(bucket, value, times): &(u32, u32, i64)| {
            (buckets[*bucket as usize], values[*value as usize], *times)
        };
        self.entries
            .iter()
            .map(of_all)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// The largest distance; `None` without buckets, or with too many values.
    pub fn largest(&self, ordered: bool) -> Option<f64> {
        if self.is_full() {
            return None;
        }
        let mut order: Vec<(&[u8], u32)> = vec![];
        order.extend(self.values.iter().map(|(key, number)| (&**key, *number)));
        order.sort_unstable();
        let mut place = vec![0; order.len()];
        for (at, (_, number)) in order.into_iter().enumerate() {
            place[number as usize] = at as u32;
        }
        let mut buckets = vec![vec![]; self.buckets.len()];
        for (bucket, value, times) in &self.entries {
            let times = usize::try_from(*times).unwrap_or(0);
            buckets[*bucket as usize].push((place[*value as usize], times));
        }
        for bucket in &mut buckets {
            bucket.sort_unstable();
        }
        largest_distance(&buckets, self.values.len(), ordered)
    }
}

fn by_number(known: &HashMap<Box<[u8]>, u32>) -> Vec<&[u8]> {
    let mut keys: Vec<&[u8]> = vec![&[]; known.len()];
    for (key, number) in known {
        keys[*number as usize] = key;
    }
    keys
}
