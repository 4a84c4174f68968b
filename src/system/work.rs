//! The work on one block, from its individuals to verified rows.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_datafusion_err};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, RatioMetrics, Time,
};
use serde::de::DeserializeOwned;

use crate::algorithm::{Cancel, Classes};
use crate::check::{Refused, Verified, Verifier};
use crate::engine::threads::Threads;
use crate::model::Infeasible;
use crate::spec::Spec;
use crate::system::layout::learned_column;
use crate::system::{Layout, RowColumns, Stage};
use crate::table::Block;
use crate::table::coding::{IndividualArrays, QiArray, own_values};

/// What is done with each block of one partition. Runs on a blocking thread.
pub(crate) trait BlockWork: Send + Sync {
    /// Proposes what is published of the individuals of a block.
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal>;
}

/// What a block would publish. Whoever gets it must have it verified.
pub(crate) struct BlockProposal {
    pub proposal: Box<dyn Proposal>,
    pub individuals: u64,
    /// Why the block publishes nothing, if that is because of the model.
    pub infeasible: Option<Infeasible>,
}

/// Rows that are published once the verifier has seen them.
pub(crate) trait Proposal: Send {
    /// Shows everything that would be published to the verifier.
    fn verify(&self, verifier: &Verifier, threads: &Threads) -> Result<Verified, Refused>;

    /// The rows in the order of the published columns.
    fn into_rows(self: Box<Self>) -> Result<Box<dyn PublishedRows>>;
}

/// The verified result of the work on a block.
pub(crate) struct BlockDone {
    pub published: Box<dyn PublishedRows>,
    pub individuals: u64,
    pub infeasible: Option<Infeasible>,
}

/// Verifies what a block would publish. The memory of the work is free by then.
pub(crate) fn verified(
    proposed: BlockProposal,
    verifier: &Verifier,
    spec: &Spec,
    verifying: &Time,
    threads: &Threads,
) -> Result<BlockDone> {
    let BlockProposal {
        proposal,
        individuals,
        infeasible,
    } = proposed;
    let function = spec.function();
    let timer = verifying.timer();
    let verified = proposal.verify(verifier, threads).map_err(|refused| match refused {
        Refused::Arrow(error) => DataFusionError::from(error),
        Refused::Violation(reason) => internal_datafusion_err!(
            "{function}: nothing is published, because the result failed its verification: {reason}"
        ),
    })?;
    timer.done();
    if let Some(share) = verified.unbounded_share {
        log::warn!(
            "{function}: alpha bounds no share: in a class, {} of {} individuals have a value of one category; \
             max_category_share bounds it",
            share.numerator(),
            share.denominator(),
        );
    }
    Ok(BlockDone {
        published: proposal.into_rows()?,
        individuals,
        infeasible,
    })
}

/// The published rows of one block.
pub(crate) trait PublishedRows: Send + Sync {
    /// Their number.
    fn len(&self) -> usize;

    /// Bytes of memory.
    fn size(&self) -> usize;

    /// The published columns of some rows, in buffers of their own.
    fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError>;
}

/// What all kinds of work need.
pub(crate) struct WorkContext {
    pub spec: Arc<Spec>,
    pub layout: Arc<Layout>,
    pub metrics: BlockMetrics,
    pub cancel: Arc<Cancel>,
    /// The threads that all partitions of the operator share.
    pub threads: Arc<Threads>,
}

#[derive(Clone)]
pub(crate) struct BlockMetrics {
    pub forming: Time,
    pub verifying: Time,
    pub blocks: Count,
    pub individuals: Count,
    pub classes: Count,
    pub suppressed: Count,
    pub suppressed_records: Count,
    pub masked: Count,
    pub buckets: Count,
    pub look_alikes: Count,
    pub loss: RatioMetrics,
    pub published_loss: RatioMetrics,
}

impl BlockMetrics {
    pub fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let build = || MetricBuilder::new(metrics);
        Self {
            forming: build().subset_time("time_forming_classes", partition),
            verifying: build().subset_time("time_verifying", partition),
            blocks: build().counter("blocks", partition),
            individuals: build().counter("individuals", partition),
            classes: build().counter("classes", partition),
            suppressed: build().counter("suppressed_individuals", partition),
            suppressed_records: build().counter("suppressed_records", partition),
            masked: build().counter("masked_individuals", partition),
            buckets: build().counter("buckets", partition),
            look_alikes: build().counter("look_alike_sensitive_values", partition),
            loss: build().ratio_metrics("information_loss", partition),
            published_loss: build().ratio_metrics("published_loss", partition),
        }
    }
}

impl BlockMetrics {
    /// Adds what a block loses (Wang 2018, Eqs. 13–15), in millionths of a cell; a suppressed record has lost all its
    /// cells.
    pub fn add_loss(&self, block: &Block, classes: &Classes, columns: usize) {
        let records = |i: &u32| u64::from(block.records(*i));
        let suppressed: u64 = classes.suppressed.iter().map(records).sum();
        let cell = columns as u128 * 1_000_000;
        let (mut lost, mut published) = (0, 0);
        for region in classes.regions(block) {
            let (records, full) = (u128::from(region.records()), u128::from(block.full()));
            lost += u128::from(region.loss()) * records * 1_000_000 / full;
            published += records;
        }
        self.add_losses(lost, published * cell, u128::from(suppressed) * cell);
    }

    /// Adds what was lost of what is published, and what is not published at all.
    pub fn add_losses(&self, lost: u128, published: u128, suppressed: u128) {
        self.loss.add_part((lost + suppressed) as usize);
        self.loss.add_total((published + suppressed) as usize);
        self.published_loss.add_part(lost as usize);
        self.published_loss.add_total(published as usize);
    }
}

/// The individuals of a block.
pub(crate) fn individuals(context: &WorkContext, rows: &RecordBatch) -> IndividualArrays {
    let rows = RowColumns::new(&context.spec, Stage::Blocks, rows.columns());
    let (record_offsets, records) = own_values(rows.records());
    let covers = context.layout.covers();
    IndividualArrays {
        pseudonyms: rows.pseudonym().clone(),
        qi: rows.qi().iter().map(|c| QiArray::new(c, covers)).collect(),
        record_offsets,
        records: records.as_struct().clone(),
    }
}

/// What came with a block's rows about the whole table.
pub(super) fn learned_of<T: DeserializeOwned>(batch: &RecordBatch) -> Result<T> {
    let dictionary = learned_column(batch);
    let learned = dictionary
        .keys()
        .values()
        .first()
        .map(|key| {
            dictionary
                .values()
                .as_binary::<i32>()
                .value(usize::from(*key))
        })
        .and_then(|bytes| serde_json::from_slice(bytes).ok());
    learned.ok_or_else(|| exec_datafusion_err!("what a block needs to know cannot be read"))
}
