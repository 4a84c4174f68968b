//! Answers to all queries of a workload over a table with buckets, with bounds (Li 2020, section 4.2).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::arrow::error::ArrowError;

use crate::measure::query_error::{Fixed, Matching, Workload, visit};
use crate::measure::{Estimate, Hits};

/// Buckets that are read at a time, so that few different cells are held.
const PART: usize = 1024;

/// The field of a row that says whether it is an individual's.
pub(super) const SOMEBODY: &str = "somebody";
/// The field with a value of the bucket.
pub(super) const VALUE: &str = "value";
/// The field that says how many members have the value.
pub(super) const TIMES: &str = "times";

/// Evaluates a workload over buckets, each a list of structs: [`SOMEBODY`], [`VALUE`], [`TIMES`], and for the workload's
/// i-th column some of
///
/// - `c<i>`: what the individual shows,
/// - `b<i>`: the values of the bucket that its value is in, as a list of structs of a value and its number,
/// - `v<i>`: for the summed column, the value itself.
///
/// The answers are those of `estimate_sum`, query by query.
#[derive(Debug)]
pub(super) struct BucketAnswers {
    workload: Arc<Workload>,
    /// Generalized values of each column.
    shown: Vec<Matching>,
    /// Exact values of each column.
    exact: Vec<Matching>,
    /// Expected values of all queries, then lower, then upper bounds.
    sums: Vec<Fixed>,
    members: u64,
}

/// A column of the rows at hand.
#[derive(Debug, Default)]
struct BucketColumn {
    /// Codes of what is shown.
    shown: Option<Vec<u32>>,
    /// Values of buckets.
    secret: Option<Secret>,
    /// Codes of the summed values.
    summed: Option<Vec<u32>>,
}

/// The buckets that the rows' values of a column are in.
#[derive(Debug)]
struct Secret {
    codes: Vec<u32>,
    times: Int64Array,
    offsets: OffsetBuffer<i32>,
    inside: BooleanArray,
}

/// Rows with their columns.
#[derive(Debug)]
struct Rows {
    somebody: BooleanArray,
    values: Float64Array,
    times: Int64Array,
    columns: Vec<BucketColumn>,
}

/// Hits of one query in one bucket.
#[derive(Debug, Clone, Copy, Default)]
struct QueryHits {
    expected: Fixed,
    certain: usize,
    possible: usize,
}

fn wrong() -> ArrowError {
    ArrowError::SchemaError("buckets are lists of structs".to_owned())
}

impl BucketAnswers {
    /// Nothing counted yet.
    pub fn new(workload: &Arc<Workload>) -> Self {
        let columns = || 0..workload.attributes.len();
        Self {
            shown: columns()
                .map(|c| Matching::published(workload, c))
                .collect(),
            exact: columns().map(|c| Matching::exact(workload, c)).collect(),
            sums: vec![Fixed::default(); 3 * workload.queries.len()],
            members: 0,
            workload: Arc::clone(workload),
        }
    }

    /// Adds the buckets of a batch.
    pub fn add(&mut self, buckets: &ArrayRef) -> Result<(), ArrowError> {
        for from in (0..buckets.len()).step_by(PART) {
            let part = buckets.slice(from, PART.min(buckets.len() - from));
            let lists = part.as_list_opt::<i32>().ok_or_else(wrong)?;
            let offsets = lists.value_offsets();
            let (first, last) = (offsets[0], offsets[lists.len()]);
            let own = lists
                .values()
                .slice(first as usize, (last - first) as usize);
            let rows = self.read(&own)?;
            let mut hits = vec![QueryHits::default(); self.workload.queries.len()];
            for bucket in offsets.windows(2) {
                let (from, to) = ((bucket[0] - first) as usize, (bucket[1] - first) as usize);
                self.bucket(&rows, from..to, &mut hits);
            }
        }
        Ok(())
    }

    fn read(&mut self, rows: &ArrayRef) -> Result<Rows, ArrowError> {
        let rows = rows.as_struct_opt().ok_or_else(wrong)?;
        let named = |name: &str| rows.column_by_name(name).ok_or_else(wrong);
        let somebody = named(SOMEBODY)?.as_boolean_opt().ok_or_else(wrong)?.clone();
        let values = cast(named(VALUE)?, &DataType::Float64)?;
        let times = cast(named(TIMES)?, &DataType::Int64)?;
        let mut columns = vec![];
        for (c, (shown, exact)) in self.shown.iter_mut().zip(&mut self.exact).enumerate() {
            let mut column = BucketColumn::default();
            if let Some(array) = rows.column_by_name(&format!("c{c}")) {
                column.shown = Some(shown.read(array)?);
            }
            if let Some(array) = rows.column_by_name(&format!("b{c}")) {
                column.secret = Some(Secret::read(exact, array)?);
            }
            if let Some(array) = rows.column_by_name(&format!("v{c}")) {
                column.summed = Some(exact.read(array)?);
            }
            columns.push(column);
        }
        Ok(Rows {
            somebody,
            values: values.as_primitive::<Float64Type>().clone(),
            times: times.as_primitive::<Int64Type>().clone(),
            columns,
        })
    }

    /// Adds the bounds of every query that a bucket may have hits of.
    fn bucket(&mut self, rows: &Rows, own: std::ops::Range<usize>, hits: &mut [QueryHits]) {
        let mut matched = vec![0u64; self.workload.words()];
        let mut touched = vec![];
        for row in own.clone().filter(|row| rows.somebody.value(*row)) {
            self.members += 1;
            self.matching(rows, row, &mut matched);
            visit(&matched, |query| {
                let Some(hits) = hits.get_mut(query) else {
                    return;
                };
                let mut hit = Hits::default();
                hit.add(self.probability(rows, row, query));
                if hit.possible == 0 {
                    return;
                }
                if hits.possible == 0 {
                    touched.push(query);
                }
                hits.expected.add(hit.expected);
                hits.certain += hit.certain;
                hits.possible += hit.possible;
            });
        }
        let count = self.workload.queries.len();
        let mut values = vec![];
        for query in touched {
            let hits = std::mem::take(&mut hits[query]);
            values.clear();
            for row in own.clone() {
                if rows.values.is_valid(row) {
                    let times = usize::try_from(rows.times.value(row)).unwrap_or(0);
                    let value = match self.takes(rows, row, query) {
                        true => rows.values.value(row),
                        // Whoever does not satisfy it adds nothing.
                        false => 0.0,
                    };
                    values.extend(std::iter::repeat_n(value, times));
                }
            }
            let hits = Hits {
                expected: hits.expected.value(),
                certain: hits.certain,
                possible: hits.possible,
            };
            let mut sum = Estimate::default();
            sum.add_bucket(&hits, &mut values);
            self.sums[query].add(sum.expected);
            self.sums[count + query].add(sum.lower);
            self.sums[2 * count + query].add(sum.upper);
        }
    }

    /// Bits of the queries that an individual may satisfy.
    fn matching(&self, rows: &Rows, row: usize, matched: &mut [u64]) {
        matched.fill(u64::MAX);
        let narrow = |bits: &[u64], matched: &mut [u64]| {
            matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
        };
        let mut any = vec![0u64; matched.len()];
        for (c, column) in rows.columns.iter().enumerate() {
            match (&column.secret, &column.shown) {
                (Some(secret), _) if secret.inside.value(row) => {
                    any.fill(0);
                    for at in secret.range(row) {
                        let bits = self.exact[c].bits(secret.codes[at]);
                        any.iter_mut().zip(bits).for_each(|(m, b)| *m |= b);
                    }
                    narrow(&any, matched);
                }
                (_, Some(codes)) => narrow(self.shown[c].bits(codes[row]), matched),
                // A secret column without a bucket says nothing.
                (Some(_), None) => matched.fill(0),
                (None, None) => {}
            }
        }
    }

    /// Pro(t): how likely an individual satisfies a query, leaving the summed column aside.
    fn probability(&self, rows: &Rows, row: usize, query: usize) -> f64 {
        let mut probability = 1.0;
        for (c, _) in &self.workload.queries[query] {
            let column = &rows.columns[*c];
            probability *= match (&column.secret, &column.shown) {
                (Some(secret), _) if secret.inside.value(row) => {
                    secret.share(&self.exact[*c], row, query)
                }
                (_, Some(codes)) => self.shown[*c].share(codes[row], query),
                _ => 1.0,
            };
        }
        probability
    }

    /// Whether a query takes a row's value of the summed column.
    fn takes(&self, rows: &Rows, row: usize, query: usize) -> bool {
        let mut columns = rows.columns.iter().zip(&self.exact);
        columns.all(|(column, exact)| match &column.summed {
            Some(codes) => has(exact.bits(codes[row]), query),
            None => true,
        })
    }

    /// The answers so far: expected, lower, upper.
    pub fn sums(&self) -> &[Fixed] {
        &self.sums
    }

    /// Individuals so far.
    pub fn rows(&self) -> u64 {
        self.members
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let columns = self.shown.iter().chain(&self.exact);
        columns.map(Matching::size).sum::<usize>() + self.sums.len() * size_of::<Fixed>()
    }
}

impl Secret {
    fn read(exact: &mut Matching, array: &ArrayRef) -> Result<Self, ArrowError> {
        let lists = array.as_list_opt::<i32>().ok_or_else(wrong)?;
        let (first, last) = (lists.value_offsets()[0], lists.value_offsets()[lists.len()]);
        let entries = lists
            .values()
            .slice(first as usize, (last - first) as usize);
        let entries = entries.as_struct_opt().ok_or_else(wrong)?;
        let [values, times] = entries.columns() else {
            return Err(wrong());
        };
        let offsets = lists.offsets().iter().map(|offset| offset - first);
        Ok(Self {
            codes: exact.read(values)?,
            times: cast(times, &DataType::Int64)?
                .as_primitive::<Int64Type>()
                .clone(),
            offsets: OffsetBuffer::new(offsets.collect::<Vec<_>>().into()),
            inside: BooleanArray::from_iter((0..lists.len()).map(|r| Some(lists.is_valid(r)))),
        })
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// How much of a row's bucket a query takes.
    fn share(&self, exact: &Matching, row: usize, query: usize) -> f64 {
        let (mut taken, mut all) = (0i64, 0i64);
        for at in self.range(row) {
            let times = self.times.value(at);
            all += times;
            if has(exact.bits(self.codes[at]), query) {
                taken += times;
            }
        }
        match all {
            0 => 0.0,
            all => taken as f64 / all as f64,
        }
    }
}

fn has(bits: &[u64], query: usize) -> bool {
    bits[query / 64] >> (query % 64) & 1 == 1
}
