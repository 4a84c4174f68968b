//! The work on one block, from its individuals to verified records.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
use datafusion::physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, RatioMetrics, Time,
};

use super::block::domains_of;
use crate::algorithm::{Algorithm, Cancel, Classes};
use crate::coding::{EncodedBlock, Individuals, Published, QiColumn, own_values, publish};
use crate::model::{Infeasible, Member, Model};
use crate::spec::{Layout, Spec};
use crate::table::Block;
use crate::verify;

/// What is needed to work on the blocks of one partition.
pub(super) struct BlockWork {
    pub spec: Arc<Spec>,
    pub layout: Arc<Layout>,
    pub model: Box<dyn Model>,
    pub algorithm: Box<dyn Algorithm>,
    pub metrics: BlockMetrics,
    pub cancel: Arc<Cancel>,
}

/// The result of the work on a block.
pub(super) struct BlockDone {
    pub published: Published,
    pub individuals: u64,
    /// Why the block publishes nothing, if that is because of the model.
    pub infeasible: Option<Infeasible>,
}

pub(super) struct BlockMetrics {
    forming: Time,
    verifying: Time,
    blocks: Count,
    individuals: Count,
    classes: Count,
    suppressed: Count,
    suppressed_records: Count,
    look_alikes: Count,
    loss: RatioMetrics,
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
            look_alikes: build().counter("look_alike_sensitive_values", partition),
            loss: build().ratio_metrics("information_loss", partition),
        }
    }
}

impl BlockWork {
    /// Forms classes, publishes and verifies them.
    pub fn run(&self, rows: &RecordBatch) -> Result<BlockDone> {
        let domains = domains_of(rows)?;
        let individuals = self.individuals(rows);
        let kinds = &self.layout.kinds;
        let ladders = self.layout.ladders();
        let normalize = self.spec.normalize;
        let encoded = EncodedBlock::try_new(&individuals, kinds, &ladders, &domains, normalize)?;
        let block = &encoded.block;

        let timer = self.metrics.forming.timer();
        let classes = self
            .algorithm
            .form_classes(block, self.model.as_ref(), &self.cancel)
            .map_err(|_| exec_datafusion_err!("cancelled"))?;
        timer.done();
        self.count(block, &classes, encoded.look_alikes);

        let published = publish(
            &individuals,
            &encoded,
            &classes.classes,
            &classes.nodes,
            kinds,
            self.layout.is_text(),
        )?;
        let timer = self.metrics.verifying.timer();
        self.verify(&published)?;
        timer.done();

        let infeasible = if classes.classes.is_empty() {
            let mut members = (0..block.len() as u32).map(|i| Member::of(block, i));
            self.model.feasible(&mut members).err()
        } else {
            None
        };
        Ok(BlockDone {
            published,
            individuals: block.len() as u64,
            infeasible,
        })
    }

    fn individuals(&self, rows: &RecordBatch) -> Individuals {
        let qi_end = 4 + self.layout.qi_count();
        let (record_offsets, records) = own_values(rows.column(qi_end).as_list());
        let qi = &rows.columns()[4..qi_end];
        Individuals {
            pseudonyms: rows.column(3).as_fixed_size_binary().clone(),
            qi: qi
                .iter()
                .map(|c| QiColumn::new(c, self.layout.covers()))
                .collect(),
            record_offsets,
            records: records.as_struct().clone(),
        }
    }

    /// Checks the published rows with code that knows nothing of how they came about.
    fn verify(&self, published: &Published) -> Result<()> {
        let requirement = requirement(&self.spec)?;
        let rows = verify::Published::try_new(
            &published.tuples,
            published.tuple_of_record.values(),
            &published.individual,
            &published.records[0],
        )?;
        verify::verify(&rows, &requirement).map_err(|violation| {
            internal_datafusion_err!(
                "{}: nothing is published, because the result failed its verification: {violation}",
                self.spec.function()
            )
        })?;
        Ok(())
    }

    fn count(&self, block: &Block, classes: &Classes, look_alikes: u64) {
        let metrics = &self.metrics;
        let records = |i: &u32| u64::from(block.records(*i));
        let suppressed: u64 = classes.suppressed.iter().map(records).sum();
        metrics.blocks.add(1);
        metrics.individuals.add(block.len());
        metrics.classes.add(classes.classes.len());
        metrics.suppressed.add(classes.suppressed.len());
        metrics.suppressed_records.add(suppressed as usize);
        metrics.look_alikes.add(look_alikes as usize);
        if look_alikes > 0 && !self.spec.normalize {
            log::warn!(
                "{}: sensitive column '{}' counts {look_alikes} more distinct than with normalize => true, which takes \
                 spellings that differ only in case, spacing or Unicode form as one value",
                self.spec.function(),
                self.spec.sensitive().unwrap_or_default(),
            );
        }

        // Wang 2018, Eqs. 13–15, in millionths of a cell; a suppressed record has lost all its cells.
        let cells = self.layout.qi_count() as u128;
        let mut loss = u128::from(suppressed) * cells * 1_000_000;
        let mut all = u128::from(suppressed);
        for region in classes.regions(block) {
            let (records, full) = (u128::from(region.records()), u128::from(block.full()));
            loss += u128::from(region.loss()) * records * 1_000_000 / full;
            all += records;
        }
        metrics.loss.add_part(loss as usize);
        metrics.loss.add_total((all * cells * 1_000_000) as usize);
    }
}

/// The verifier's own reading of the spec.
pub(crate) fn requirement(spec: &Spec) -> Result<verify::Requirement> {
    let name = spec.model_entry()?.name;
    verify::Requirement::named(name, |parameter| spec.parameter(parameter))
        .ok_or_else(|| internal_datafusion_err!("the verifier does not know the model '{name}'"))
}
