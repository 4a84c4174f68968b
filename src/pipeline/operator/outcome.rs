//! Whether anything was published at all: an empty result is never a success.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use datafusion::common::Result;
use parking_lot::Mutex;

use crate::error;
use crate::model::Infeasible;
use crate::spec::Spec;
use crate::system::work::BlockDone;

/// Adds up what the partitions of one operator published.
#[derive(Debug)]
pub(super) struct Outcome {
    partitions_left: AtomicUsize,
    individuals: AtomicU64,
    blocks: AtomicU64,
    published_records: AtomicU64,
    /// The block that came nearest to the requirement.
    nearest: Mutex<Option<Infeasible>>,
}

impl Outcome {
    pub fn new(partitions: usize) -> Self {
        Self {
            partitions_left: AtomicUsize::new(partitions),
            individuals: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            published_records: AtomicU64::new(0),
            nearest: Mutex::new(None),
        }
    }

    pub fn add(&self, done: &BlockDone) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.individuals
            .fetch_add(done.individuals, Ordering::Relaxed);
        self.published_records
            .fetch_add(done.published.len() as u64, Ordering::Relaxed);
        if let Some(infeasible) = &done.infeasible {
            let mut nearest = self.nearest.lock();
            if nearest
                .as_ref()
                .is_none_or(|known| infeasible.is_nearer_than(known))
            {
                *nearest = Some(infeasible.clone());
            }
        }
    }

    /// The last partition to finish says so if nothing was published.
    pub fn finish_partition(&self, spec: &Spec) -> Result<()> {
        let left = self.partitions_left.fetch_sub(1, Ordering::AcqRel);
        if left != 1 || self.published_records.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        let function = spec.function();
        if self.individuals.load(Ordering::Relaxed) == 0 {
            return Err(error::data(
                function,
                "the input has no individual to publish",
            ));
        }
        let model = spec.describe()?;
        let nearest = self.nearest.lock();
        let Some(nearest) = nearest.as_ref() else {
            return Err(error::data(
                function,
                format!("{model} would suppress every individual"),
            ));
        };
        let scope = if self.blocks.load(Ordering::Relaxed) > 1 {
            " in any block; more may work with a larger block"
        } else {
            ""
        };
        let advice = nearest.advice();
        Err(error::data(
            function,
            format!("{model} cannot be reached: {advice}{scope}"),
        ))
    }
}
