//! What anatomization learns of the whole table: how its quasi-identifiers hang together, and how often each sensitive
//! value occurs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array, UInt64Array};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::common::{Result, exec_datafusion_err};

use super::slppa::{self, TableProfile, TooSmall};
use crate::error;
use crate::spec::{BlockSize, Spec};
use crate::system::learn::{BlockPlace, Learned, Learner, Routed, Routes, unreadable};
use crate::system::{RecordColumns, RowColumns, Stage};
use crate::table::coding::{Kind, own_values, rows};

pub(super) struct TableLearner {
    spec: Arc<Spec>,
    kinds: Vec<Kind>,
    profile: TableProfile,
}

impl TableLearner {
    pub fn new(spec: &Arc<Spec>, kinds: &[Kind]) -> Self {
        Self {
            spec: Arc::clone(spec),
            kinds: kinds.to_vec(),
            profile: TableProfile::new(kinds.len()),
        }
    }
}

impl Learner for TableLearner {
    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = RowColumns::new(&self.spec, Stage::Tagged, batch.columns());
        let sensitive = &columns.record().sensitive()[0];
        let known;
        let batch = match sensitive.null_count() {
            0 => batch,
            _ => {
                known = filter_record_batch(batch, &is_not_null(sensitive)?)?;
                &known
            }
        };
        let columns = RowColumns::new(&self.spec, Stage::Tagged, batch.columns());
        let sensitive = rows(columns.record().sensitive())?;
        self.profile.update(&self.kinds, columns.qi(), &sensitive)?;
        Ok(())
    }

    fn size(&self) -> usize {
        self.profile.size()
    }

    fn into_bytes(self: Box<Self>) -> Option<Vec<u8>> {
        self.profile.to_bytes()
    }
}

pub(crate) struct LearnedTable(TableProfile);

impl LearnedTable {
    pub fn new(quasi_identifiers: usize) -> Self {
        Self(TableProfile::new(quasi_identifiers))
    }

    pub fn profile(&self) -> &TableProfile {
        &self.0
    }
}

impl Learned for LearnedTable {
    fn merge(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.merge_bytes(bytes).ok_or_else(unreadable)
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    /// Divides the quasi-identifiers, and the table into as many blocks as the bounds allow.
    fn routes(self: Box<Self>, place: &BlockPlace<'_>) -> Result<Box<dyn Routes>> {
        let (spec, profile) = (place.spec, self.0);
        let function = spec.function();
        let ask = spec.anatomy()?;
        let division = profile
            .division(&ask)
            .map_err(|e| error::argument(function, "tables:", e.to_string()))?;
        let size = match spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => Some(n),
        };
        // A table of one block is refused there, with all bounds that stand in the way.
        if size.is_some_and(|size| profile.individuals() > size) {
            profile.feasible(&ask).map_err(|infeasible| {
                let message = format!("the bounds cannot be reached: {infeasible}");
                error::data(function, message)
            })?;
        }
        let adjust = !spec.block_is_given();
        let learned = slppa::Learned::new(&profile, division, &ask.requirements, size, adjust);
        let learned = learned.map_err(|TooSmall { smallest }| {
            let larger = smallest.map_or_else(String::new, |n| format!("at least {n}, or "));
            error::data(
                function,
                format!(
                    "block is too small for these bounds: by chance a block may be impossible to divide; \
                     use {larger}block => 'all', or leave it out"
                ),
            )
        })?;
        Ok(Box::new(TableRoutes {
            spec: Arc::clone(spec),
            learned,
            profile,
            seen: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
        }))
    }
}

/// Blocks are parts of the random order; each row says how many individuals have its sensitive value.
#[derive(Debug)]
struct TableRoutes {
    spec: Arc<Spec>,
    learned: slppa::Learned,
    profile: TableProfile,
    /// Individuals that came, and partitions that came to their end.
    seen: AtomicU64,
    finished: AtomicUsize,
}

impl Routes for TableRoutes {
    fn told(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.learned)
            .map_err(|_| exec_datafusion_err!("the division cannot be sent"))
    }

    fn size(&self) -> usize {
        self.profile.size()
    }

    fn route(&self, batch: &RecordBatch, _: &mut [u64]) -> Result<Routed> {
        let stage = Stage::without_block(&self.spec);
        let columns = RowColumns::new(&self.spec, stage, batch.columns());
        let orders = columns.order().values();
        let blocks = orders.iter().map(|order| self.learned.block(*order));
        let sensitive = match stage {
            Stage::Tagged => Arc::clone(&columns.record().sensitive()[0]),
            _ => {
                let (_, records) = own_values(columns.records());
                let record = RecordColumns::new(&self.spec, records.as_struct().columns());
                Arc::clone(&record.sensitive()[0])
            }
        };
        let valid = sensitive.len() - sensitive.null_count();
        self.seen.fetch_add(valid as u64, Ordering::Relaxed);
        let values = rows(std::slice::from_ref(&sensitive))?;
        let mut known = Vec::with_capacity(values.num_rows());
        for (row, value) in values.iter().enumerate() {
            // Records without a value were not counted, and are left out when they are gathered.
            let count = match sensitive.is_valid(row) {
                true => self.profile.having(value.data()),
                false => Some(0),
            };
            known.push(count.ok_or_else(|| error::changed(self.spec.function()))?);
        }
        let whole: ArrayRef = Arc::new(UInt64Array::from(known));
        Ok(Routed {
            blocks: UInt32Array::from_iter_values(blocks),
            further: Some(whole),
        })
    }

    fn finish(&self, partitions: usize) -> Result<()> {
        // Nothing is published before all partitions have come to their end.
        let last = self.finished.fetch_add(1, Ordering::AcqRel) + 1 == partitions;
        match last && self.seen.load(Ordering::Acquire) != self.profile.individuals() {
            true => Err(error::changed(self.spec.function())),
            false => Ok(()),
        }
    }
}
