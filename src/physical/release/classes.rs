//! Classes: individuals that share their published quasi-identifiers.

use std::ops::Range;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};

use super::super::block::domains_of;
use super::{BlockDone, BlockWork, Context, PublishedRows, individuals};
use crate::algorithm::{Algorithm, Classes};
use crate::coding::{EncodedBlock, Published, publish};
use crate::model::{Member, Model};
use crate::spec::Spec;
use crate::table::Block;
use crate::verify;

/// Forms classes, publishes and verifies them.
pub(super) struct ClassWork {
    context: Context,
    model: Box<dyn Model>,
    algorithm: Box<dyn Algorithm>,
}

impl PublishedRows for Published {
    fn len(&self) -> usize {
        Published::len(self)
    }

    fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        Published::columns(self, rows)
    }
}

impl BlockWork for ClassWork {
    fn run(&self, rows: &RecordBatch) -> Result<BlockDone> {
        let Context {
            spec,
            layout,
            metrics,
            cancel,
        } = &self.context;
        let domains = domains_of(rows)?;
        let individuals = individuals(layout, rows);
        let (kinds, ladders) = (&layout.kinds, layout.ladders());
        let normalize = spec.normalize;
        let encoded = EncodedBlock::try_new(&individuals, kinds, &ladders, &domains, normalize)?;
        let block = &encoded.block;

        let timer = metrics.forming.timer();
        let classes = self
            .algorithm
            .form_classes(block, self.model.as_ref(), cancel)
            .map_err(|_| exec_datafusion_err!("cancelled"))?;
        timer.done();
        self.count(block, &classes, encoded.look_alikes);

        let published = publish(
            &individuals,
            &encoded,
            &classes.classes,
            &classes.nodes,
            kinds,
            layout.is_text(),
        )?;
        let timer = metrics.verifying.timer();
        self.verify(&published)?;
        timer.done();

        let infeasible = if classes.classes.is_empty() {
            let mut members = (0..block.len() as u32).map(|i| Member::of(block, i));
            self.model.feasible(&mut members).err()
        } else {
            None
        };
        Ok(BlockDone {
            published: Box::new(published),
            individuals: block.len() as u64,
            infeasible,
        })
    }
}

impl ClassWork {
    pub fn try_new(context: Context) -> Result<Self> {
        Ok(Self {
            model: context.spec.model()?,
            algorithm: context.spec.algorithm()?,
            context,
        })
    }

    /// Checks the published rows with code that knows nothing of how they came about.
    fn verify(&self, published: &Published) -> Result<()> {
        let spec = &self.context.spec;
        let requirement = requirement(spec)?;
        let rows = verify::Published::try_new(
            &published.tuples,
            published.tuple_of_record.values(),
            &published.individual,
            &published.records[0],
        )?;
        verify::verify(&rows, &requirement).map_err(|violation| {
            internal_datafusion_err!(
                "{}: nothing is published, because the result failed its verification: {violation}",
                spec.function()
            )
        })?;
        Ok(())
    }

    fn count(&self, block: &Block, classes: &Classes, look_alikes: u64) {
        let Context {
            spec,
            layout,
            metrics,
            ..
        } = &self.context;
        let records = |i: &u32| u64::from(block.records(*i));
        let suppressed: u64 = classes.suppressed.iter().map(records).sum();
        metrics.blocks.add(1);
        metrics.individuals.add(block.len());
        metrics.classes.add(classes.classes.len());
        metrics.suppressed.add(classes.suppressed.len());
        metrics.suppressed_records.add(suppressed as usize);
        metrics.look_alikes.add(look_alikes as usize);
        if look_alikes > 0 && !spec.normalize {
            log::warn!(
                "{}: sensitive column '{}' counts {look_alikes} more distinct than with normalize => true, which takes \
                 spellings that differ only in case, spacing or Unicode form as one value",
                spec.function(),
                spec.sensitive().join("', '"),
            );
        }

        // Wang 2018, Eqs. 13–15, in millionths of a cell; a suppressed record has lost all its cells.
        let cells = layout.qi_count() as u128;
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
fn requirement(spec: &Spec) -> Result<verify::Requirement> {
    let name = spec.model_entry()?.name;
    verify::Requirement::named(name, |parameter| spec.parameter(parameter))
        .ok_or_else(|| internal_datafusion_err!("the verifier does not know the model '{name}'"))
}
