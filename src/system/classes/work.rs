//! Classes: individuals that share their published quasi-identifiers.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err};

use crate::algorithm::{Algorithm, Classes};
use crate::check::{Extent, Refused, ShownRows, Verified, Verifier};
use crate::engine::threads::Threads;
use crate::model::{Infeasible, Member, Model};
use crate::system::column_categories;
use crate::system::work::{
    BlockProposal, BlockWork, Proposal, PublishedRows, WorkContext, individuals, learned_of,
};
use crate::table::Block;
use crate::table::coding::{ColumnCategories, EncodedBlock, PublishedRecords, publish};

/// Forms classes, publishes and verifies them.
pub(crate) struct ClassWork {
    context: WorkContext,
    model: Box<dyn Model>,
    algorithm: Box<dyn Algorithm>,
    /// The categories of each sensitive column that has them.
    categories: Vec<Option<ColumnCategories>>,
}

impl Proposal for PublishedRecords {
    fn verify(&self, verifier: &Verifier, _: &Threads) -> Result<Verified, Refused> {
        let rows = ShownRows {
            tuples: &self.tuples,
            tuple_of_row: self.tuple_of_record.values(),
            individual: &self.individual,
            sensitive: &self.records,
        };
        verifier.check_rows(&rows, Extent::Whole)
    }

    fn into_rows(self: Box<Self>) -> Result<Box<dyn PublishedRows>> {
        Ok(self)
    }
}

impl PublishedRows for PublishedRecords {
    fn len(&self) -> usize {
        PublishedRecords::len(self)
    }

    fn size(&self) -> usize {
        let columns = self.tuples.iter().chain(&self.records);
        let columns: usize = columns.map(|c| c.get_array_memory_size()).sum();
        columns
            + self.individual.get_array_memory_size()
            + self.tuple_of_record.get_array_memory_size()
    }

    fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        PublishedRecords::columns(self, rows)
    }
}

impl BlockWork for ClassWork {
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal> {
        let WorkContext {
            spec,
            layout,
            metrics,
            cancel,
            threads,
        } = &self.context;
        let domains = learned_of(&rows)?;
        let individuals = individuals(layout, &rows);
        drop(rows);
        let (kinds, ladders) = (&layout.kinds, layout.ladders());
        let encoded = EncodedBlock::try_new(
            &individuals,
            kinds,
            &ladders,
            &domains,
            &self.categories,
            spec.normalize,
            threads,
        )?;
        let block = &encoded.block;

        let timer = metrics.forming.timer();
        let mut classes = self
            .algorithm
            .form_classes(block, self.model.as_ref(), cancel)
            .map_err(|_| exec_datafusion_err!("cancelled"))?;
        let infeasible = match classes.classes.is_empty() {
            true => self.everybody(block, &mut classes),
            false => None,
        };
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
        Ok(BlockProposal {
            proposal: Box::new(published),
            individuals: block.len() as u64,
            infeasible,
        })
    }
}

impl ClassWork {
    pub fn try_new(context: WorkContext) -> Result<Self> {
        Ok(Self {
            model: context.spec.model()?,
            algorithm: context.spec.algorithm()?,
            categories: column_categories(&context.spec, &context.layout)?,
            context,
        })
    }

    /// One class of the whole block, where the algorithm found none, so that whatever a message calls possible is possible.
    ///
    /// Whether so many individuals are a class can take longer to decide than an algorithm may take for each of its classes.
    fn everybody(&self, block: &Block, classes: &mut Classes) -> Option<Infeasible> {
        let mut members = (0..block.len() as u32).map(|i| Member::of(block, i));
        let infeasible = self.model.feasible(&mut members).err();
        // More members never hurt: what some of them satisfy, all do.
        if infeasible.is_none() && self.model.closure().extension && !block.is_empty() {
            *classes = Classes {
                classes: vec![(0..block.len() as u32).collect()],
                ..Classes::default()
            };
        }
        infeasible
    }

    fn count(&self, block: &Block, classes: &Classes, look_alikes: u64) {
        let WorkContext {
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
        metrics.add_loss(block, classes, layout.qi_count());
    }
}
