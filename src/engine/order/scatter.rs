//! Sorting rows in memory by scattering them.
//!
//! The engine sorts batches and merges all of them at once. Where keys are random, neighbours in the result come from everywhere
//! in memory, and each batch of the result looks at each of thousands of batches. Here rows are first moved within their batch,
//! to the bucket of their key; then the parts of each bucket are put together and sorted, all of it within the processor's cache.
//! A bucket that was taken leaves its memory to others.
//!
//! ```text
//! batches      8 3 9 1 | 2 7 4 6            each a chunk
//! scattered    3 1 · 8 9 | 2 4 · 7 6        two buckets: up to 4, above
//! buckets      3 1 2 4 → 1 2 3 4,  8 9 7 6 → 6 7 8 9
//! ```

use datafusion::arrow::array::{AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, SchemaRef, UInt32Type, UInt64Type};
use datafusion::common::Result;

/// Rows of a chunk, if they are not too wide.
const CHUNK_ROWS: usize = 8_192;
/// Rows and bytes of a bucket, on average.
const BUCKET_ROWS: usize = 1 << 16;
const BUCKET_BYTES: usize = 16 << 20;
const MOST_BUCKETS: usize = 1_024;
/// Chunks whose rows are put together before all others.
const GROUP: usize = 32;
/// Keys that are looked at for each bucket, to find where it ends.
const SAMPLED: usize = 16;

/// The columns that rows are sorted by: their block, if any, and their random order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortKey {
    block: Option<usize>,
    order: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    block: u32,
    order: u64,
}

impl SortKey {
    /// Columns at these positions, if they are a block and an order, or an order alone.
    pub fn try_new(schema: &SchemaRef, columns: &[usize]) -> Option<Self> {
        let (block, order) = match columns {
            [order] => (None, *order),
            [block, order] => (Some(*block), *order),
            _ => return None,
        };
        let has_type = |column: usize, expected: DataType| {
            let field = schema.fields().get(column);
            field.is_some_and(|f| *f.data_type() == expected && !f.is_nullable())
        };
        let fits = block.is_none_or(|block| has_type(block, DataType::UInt32))
            && has_type(order, DataType::UInt64);
        fits.then_some(Self { block, order })
    }

    pub fn columns(self) -> Vec<usize> {
        self.block.into_iter().chain([self.order]).collect()
    }

    fn of(self, batch: &RecordBatch) -> impl Iterator<Item = Key> {
        let blocks = self.block.map(|block| batch.column(block));
        let blocks = blocks.map(|column| column.as_primitive::<UInt32Type>().values());
        let orders = batch.column(self.order).as_primitive::<UInt64Type>();
        let orders = orders.values().iter().enumerate();
        orders.map(move |(row, order)| Key {
            block: blocks.map_or(0, |blocks| blocks[row]),
            order: *order,
        })
    }
}

/// Rows that are being scattered, a chunk at a time.
#[derive(Debug)]
pub(super) struct Scatter {
    schema: SchemaRef,
    key: SortKey,
    bounds: Bounds,
    /// The last chunks, fewer than a group.
    chunks: Vec<Chunk>,
    /// The rows of each bucket in all chunks before, a part for each group.
    buckets: Vec<Vec<RecordBatch>>,
    /// Rows that were added, less those of buckets that were taken.
    rows: usize,
}

/// Rows in the order of their buckets.
#[derive(Debug)]
struct Chunk {
    rows: RecordBatch,
    /// Where each bucket begins, and the end.
    begins: Vec<u32>,
}

/// Where buckets begin, except for the first. A key that would fill buckets alone has one of its own: from the key to the key
/// with `true`, which is larger and which no row has.
#[derive(Debug)]
struct Bounds(Vec<(Key, bool)>);

/// The rows of one bucket and their order.
#[derive(Debug)]
pub(super) struct Bucket {
    rows: RecordBatch,
    sorted: Vec<u32>,
    /// Rows that are out.
    out: usize,
}

impl Scatter {
    /// Looks at some of the keys. All batches are to be added afterwards.
    pub fn new(schema: SchemaRef, key: SortKey, batches: &[RecordBatch], bytes: usize) -> Self {
        let bounds = Bounds::sampled(key, batches, buckets(batches, bytes));
        Self {
            schema,
            key,
            buckets: vec![vec![]; bounds.buckets()],
            bounds,
            chunks: vec![],
            rows: 0,
        }
    }

    /// What scattering needs besides the rows, no more than these: a group, while its parts are put together, or a bucket in
    /// one piece, with its order, and sorted.
    pub fn work(batches: &[RecordBatch], bytes: usize) -> usize {
        let group = GROUP * CHUNK_ROWS * bytes / rows_of(batches).max(1);
        let bucket = 3 * bytes / buckets(batches, bytes);
        group.max(bucket).min(bytes)
    }

    /// Moves the next rows to their buckets.
    pub fn add(&mut self, batches: &[RecordBatch]) -> Result<()> {
        let rows = match batches {
            [one] => one.clone(),
            some => concat_batches(&self.schema, some)?,
        };
        self.rows += rows.num_rows();
        let buckets = self.buckets.len();
        if buckets == 1 {
            self.buckets[0].push(rows);
            return Ok(());
        }
        let bucket_of: Vec<u32> = self.key.of(&rows).map(|key| self.bounds.of(key)).collect();
        let mut begins = vec![0u32; buckets + 1];
        for bucket in &bucket_of {
            begins[*bucket as usize + 1] += 1;
        }
        for bucket in 0..buckets {
            begins[bucket + 1] += begins[bucket];
        }
        let mut next = begins.clone();
        let mut moved = vec![0u32; bucket_of.len()];
        for (row, bucket) in (0..).zip(&bucket_of) {
            let to = &mut next[*bucket as usize];
            moved[*to as usize] = row;
            *to += 1;
        }
        let rows = take_record_batch(&rows, &UInt32Array::from(moved))?;
        self.chunks.push(Chunk { rows, begins });
        if self.chunks.len() == GROUP {
            self.put_together()?;
        }
        Ok(())
    }

    /// Puts the rows of the last chunks together, bucket by bucket.
    pub fn put_together(&mut self) -> Result<()> {
        let chunks = std::mem::take(&mut self.chunks);
        for (bucket, parts) in self.buckets.iter_mut().enumerate() {
            let rows = chunks.iter().filter_map(|chunk| {
                let (begin, end) = (chunk.begins[bucket], chunk.begins[bucket + 1]);
                (begin < end).then(|| chunk.rows.slice(begin as usize, (end - begin) as usize))
            });
            let rows: Vec<RecordBatch> = rows.collect();
            if !rows.is_empty() {
                parts.push(concat_batches(&self.schema, &rows)?);
            }
        }
        Ok(())
    }

    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Rows that were not taken yet.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the rows of a bucket, whose keys are all larger than those of buckets before; in several parts where all keys are
    /// equal.
    pub fn take(
        &mut self,
        bucket: usize,
        batch_size: usize,
    ) -> impl Iterator<Item = Result<Bucket>> {
        let parts = std::mem::take(&mut self.buckets[bucket]);
        self.rows -= rows_of(&parts);
        let (schema, key) = (&self.schema, self.key);
        let are_equal = self.bounds.has_one_key(bucket);
        let together = match are_equal {
            true => grouped(parts, batch_size),
            false => vec![parts],
        };
        let together = together.into_iter().filter(|parts| !parts.is_empty());
        together.map(move |parts| {
            let rows = concat_batches(schema, &parts)?;
            drop(parts);
            let mut sorted: Vec<(Key, u32)> = key.of(&rows).zip(0..).collect();
            if !are_equal {
                sorted.sort_unstable();
            }
            Ok(Bucket {
                sorted: sorted.into_iter().map(|(_, row)| row).collect(),
                rows,
                out: 0,
            })
        })
    }
}

impl Bucket {
    /// The next rows, at most so many.
    pub fn next(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let left = &self.sorted[self.out..];
        let rows = left.len().min(most);
        if rows == 0 {
            return Ok(None);
        }
        self.out += rows;
        let rows = UInt32Array::from(left[..rows].to_vec());
        Ok(Some(take_record_batch(&self.rows, &rows)?))
    }
}

impl Bounds {
    fn sampled(key: SortKey, batches: &[RecordBatch], buckets: usize) -> Self {
        if buckets < 2 {
            return Self(vec![]);
        }
        let step = (rows_of(batches) / (SAMPLED * buckets)).max(1);
        let mut sample = vec![];
        let mut skipped = 0;
        for batch in batches {
            let keys = key.of(batch).skip(skipped).step_by(step);
            let before = sample.len();
            sample.extend(keys);
            let beyond = skipped + (sample.len() - before) * step;
            skipped = beyond.saturating_sub(batch.num_rows());
        }
        sample.sort_unstable();
        let ends = (1..buckets).filter_map(|i| sample.get(i * sample.len() / buckets));
        let mut bounds: Vec<(Key, bool)> = vec![];
        for key in ends {
            match bounds.last() {
                Some((last, _)) if last == key => bounds.push((*key, true)),
                _ => bounds.push((*key, false)),
            }
        }
        bounds.dedup();
        Self(bounds)
    }

    fn buckets(&self) -> usize {
        self.0.len() + 1
    }

    fn of(&self, key: Key) -> u32 {
        self.0.partition_point(|bound| *bound <= (key, false)) as u32
    }

    fn has_one_key(&self, bucket: usize) -> bool {
        let begin = bucket.checked_sub(1).and_then(|at| self.0.get(at));
        match (begin, self.0.get(bucket)) {
            (Some((begin, _)), Some((end, _))) => begin == end,
            _ => false,
        }
    }
}

/// Batches in groups of at least so many rows, but for the last, or of many bytes.
pub(super) fn grouped(batches: Vec<RecordBatch>, rows: usize) -> Vec<Vec<RecordBatch>> {
    let mut groups: Vec<Vec<RecordBatch>> = vec![];
    let mut last = (rows, 0);
    for batch in batches {
        if last.0 >= rows || last.1 >= BUCKET_BYTES {
            groups.push(vec![]);
            last = (0, 0);
        }
        last.0 += batch.num_rows();
        // What is one batch already is not looked at.
        if last.0 < rows {
            last.1 += crate::engine::operator::sliced_size(&batch);
        }
        if let Some(group) = groups.last_mut() {
            group.push(batch);
        }
    }
    groups
}

/// The parts of rows that are added at once.
pub(super) fn chunks(batches: Vec<RecordBatch>) -> Vec<Vec<RecordBatch>> {
    grouped(batches, CHUNK_ROWS)
}

fn rows_of(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn buckets(batches: &[RecordBatch], bytes: usize) -> usize {
    let wanted = (rows_of(batches) / BUCKET_ROWS).max(bytes / BUCKET_BYTES);
    wanted.clamp(1, MOST_BUCKETS)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, StringArray, UInt64Array};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Rows with these keys, numbered in a column of text.
    fn rows(keys: &[(u32, u64)]) -> RecordBatch {
        let blocks = keys.iter().map(|(block, _)| *block);
        let orders = keys.iter().map(|(_, order)| *order);
        let names = (0..keys.len()).map(|i| i.to_string());
        let columns: [(&str, ArrayRef); 3] = [
            ("block", Arc::new(UInt32Array::from_iter_values(blocks))),
            ("order", Arc::new(UInt64Array::from_iter_values(orders))),
            ("name", Arc::new(StringArray::from_iter_values(names))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, false))).unwrap()
    }

    fn keys_of(batch: &RecordBatch) -> Vec<(u32, u64)> {
        let key = SortKey::try_new(&batch.schema(), &[0, 1]).unwrap();
        key.of(batch).map(|key| (key.block, key.order)).collect()
    }

    /// Sorts them in batches of a size, as if a row had so many bytes; and says how many buckets there were.
    fn sort(keys: &[(u32, u64)], by: &[usize], batch: usize, row_bytes: usize) -> usize {
        let all = rows(keys);
        let begins = (0..keys.len()).step_by(batch);
        let batches = begins.map(|at| all.slice(at, batch.min(keys.len() - at)));
        let batches: Vec<RecordBatch> = batches.collect();
        let by = SortKey::try_new(&all.schema(), by).unwrap();
        let mut scatter = Scatter::new(all.schema(), by, &batches, row_bytes * keys.len());
        for chunk in chunks(batches) {
            scatter.add(&chunk).unwrap();
        }
        scatter.put_together().unwrap();
        assert_eq!(scatter.rows(), keys.len());
        let mut sorted = vec![];
        let buckets = scatter.buckets();
        for bucket in 0..buckets {
            for part in scatter.take(bucket, 1_000) {
                let mut part = part.unwrap();
                while let Some(rows) = part.next(1_000).unwrap() {
                    assert!((1..=1_000).contains(&rows.num_rows()));
                    sorted.push(rows);
                }
            }
        }
        assert_eq!(scatter.rows(), 0);
        let sorted = concat_batches(&all.schema(), &sorted).unwrap();
        assert!(by.of(&sorted).is_sorted());
        // Every row is there once, and is the one that it was.
        let mut seen = vec![false; keys.len()];
        for (name, key) in sorted
            .column(2)
            .as_string::<i32>()
            .iter()
            .zip(keys_of(&sorted))
        {
            let row: usize = name.unwrap().parse().unwrap();
            assert!(!seen[row] && keys[row] == key);
            seen[row] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
        buckets
    }

    #[test]
    fn rows_are_sorted_whatever_their_keys() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let rows = 300_000;
        let mut keys = |blocks: u32, orders: u64| -> Vec<(u32, u64)> {
            let mut key = || {
                (
                    random.random_range(0..blocks),
                    random.random_range(0..orders),
                )
            };
            (0..rows).map(|_| key()).collect()
        };
        let uniform = keys(7, u64::MAX);
        assert_eq!(sort(&uniform, &[0, 1], 8_192, 100), 4);
        assert_eq!(sort(&uniform, &[1], 8_192, 100), 4);
        assert_eq!(sort(&uniform, &[1], 100, 1_000), 17);
        assert_eq!(sort(&uniform, &[0, 1], rows, 1_000), 17);
        // Keys that fill a bucket alone, beside others.
        for (blocks, orders) in [(1, 1), (2, 1), (1, 3), (5, 5)] {
            let few = keys(blocks, orders);
            assert!(sort(&few, &[0, 1], 5_000, 1_000) > 1);
        }
        let mut skewed = keys(1, u64::MAX);
        skewed[50_000..200_000].fill((0, u64::MAX / 3));
        assert!(sort(&skewed, &[1], 8_192, 1_000) > 10);
    }

    #[test]
    fn small_tables_are_one_bucket() {
        for rows in [1, 2, 100] {
            let keys: Vec<(u32, u64)> = (0..rows).map(|i| (0, i * 7 % 10)).collect();
            assert_eq!(sort(&keys, &[0, 1], 3, 100), 1);
        }
    }

    #[test]
    fn only_numbers_are_keys() {
        let schema = rows(&[]).schema();
        for columns in [&[][..], &[0], &[2], &[1, 0], &[0, 1, 2], &[0, 9]] {
            assert_eq!(SortKey::try_new(&schema, columns), None);
        }
    }
}
