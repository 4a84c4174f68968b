//! Collapsed records in the order of their keys.

mod values;

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::row::Rows;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;

pub(super) use self::values::ValueSet;

use crate::check::comparable_rows;
use crate::engine::sliced_size;
use crate::error;

/// Whose record it is; those of nobody come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Of([u8; 16]),
    Nobody,
}

/// The rows of a table, sorted by key.
pub(super) struct Side {
    function: String,
    input: SendableRecordBatchStream,
    carried: usize,
    now: Option<Rowset>,
    ended: bool,
}

/// A batch that is being read.
pub(super) struct Rowset {
    keys: BinaryArray,
    /// The columns that are compared.
    pub carried: Vec<ArrayRef>,
    records: Int64Array,
    values: Vec<Values>,
    /// The next row.
    at: usize,
    /// Bytes of the rows, with what was made of them.
    size: usize,
}

/// Sensitive values of a batch, as bytes, and where those of each row end.
struct Values {
    rows: Rows,
    offsets: Vec<usize>,
}

impl Side {
    pub fn new(function: &str, input: SendableRecordBatchStream, carried: usize) -> Self {
        Self {
            function: function.to_owned(),
            input,
            carried,
            now: None,
            ended: false,
        }
    }

    /// Goes to the next batch with rows where the last one has none left. True if there is a new one.
    pub async fn load(&mut self) -> Result<bool> {
        if self.ended || self.now.is_some() && !self.is_at_end() {
            return Ok(false);
        }
        self.now = None;
        while let Some(batch) = self.input.next().await {
            let batch = batch.map_err(|e| error::input(&self.function, e))?;
            if batch.num_rows() > 0 {
                self.now = Some(Rowset::new(&batch, self.carried)?);
                return Ok(true);
            }
        }
        self.ended = true;
        Ok(false)
    }

    /// Whether no row of the batch is left.
    pub fn is_at_end(&self) -> bool {
        self.now
            .as_ref()
            .is_some_and(|now| now.at == now.keys.len())
    }

    /// The batch that is being read.
    pub fn now(&self) -> Option<&Rowset> {
        self.now.as_ref()
    }

    /// Whose the next row is.
    pub fn key(&self) -> Result<Option<Key>> {
        self.now.as_ref().map(Rowset::key).transpose()
    }

    /// Takes the rows of an individual that are in this batch.
    pub fn take(&mut self, key: Key) -> Result<Range<usize>> {
        match &mut self.now {
            Some(now) => now.take(key),
            None => Ok(0..0),
        }
    }

    pub fn size(&self) -> usize {
        self.now.as_ref().map_or(0, |now| now.size)
    }
}

impl Rowset {
    fn new(batch: &RecordBatch, carried: usize) -> Result<Self> {
        let columns = batch.columns();
        let values = columns[2 + carried..].iter().map(Values::new);
        let values = values.collect::<Result<Vec<_>>>()?;
        let of_values: usize = values.iter().map(|values| values.rows.size()).sum();
        Ok(Self {
            keys: columns[0].as_binary().clone(),
            carried: columns[1..=carried].to_vec(),
            records: columns[1 + carried].as_primitive::<Int64Type>().clone(),
            values,
            at: 0,
            // The points or cells of the carried columns take about as much again.
            size: 2 * sliced_size(batch) + of_values,
        })
    }

    fn key_of(&self, row: usize) -> Result<Key> {
        if self.keys.is_null(row) {
            return Ok(Key::Nobody);
        }
        let key = self.keys.value(row).try_into();
        let key = key.map_err(|_| internal_datafusion_err!("a key has 16 bytes"))?;
        Ok(Key::Of(key))
    }

    fn key(&self) -> Result<Key> {
        self.key_of(self.at)
    }

    fn take(&mut self, key: Key) -> Result<Range<usize>> {
        let begin = self.at;
        while self.at < self.keys.len() && self.key_of(self.at)? == key {
            self.at += 1;
        }
        Ok(begin..self.at)
    }

    /// How many records some rows stand for.
    pub fn records(&self, rows: Range<usize>) -> i64 {
        self.records.values()[rows].iter().sum()
    }

    /// Adds the sensitive values of some rows, column by column.
    pub fn add_values(&self, rows: Range<usize>, sets: &mut [ValueSet]) {
        for (values, set) in self.values.iter().zip(sets) {
            for at in values.offsets[rows.start]..values.offsets[rows.end] {
                set.add(values.rows.row(at).data());
            }
        }
    }
}

impl Values {
    fn new(column: &ArrayRef) -> Result<Self> {
        let lists = column.as_list::<i32>();
        let offsets = lists.value_offsets();
        let (first, last) = (offsets[0] as usize, offsets[lists.len()] as usize);
        let own = lists.values().slice(first, last - first);
        Ok(Self {
            rows: comparable_rows(&[own])?,
            offsets: offsets.iter().map(|at| *at as usize - first).collect(),
        })
    }
}
