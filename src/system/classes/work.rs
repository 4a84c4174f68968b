//! Classes: individuals that share their published quasi-identifiers.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};

use crate::algorithm::{Algorithm, Classes};
use crate::check::{self, ClassRequirement, Listed, SensitiveColumn, SensitiveTable, Sensitivity};
use crate::model::{Member, Model};
use crate::spec::Spec;
use crate::system::column_categories;
use crate::system::work::{
    BlockDone, BlockWork, PublishedRows, WorkContext, individuals, learned_of,
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
    twin: Twin,
}

/// The verifier's own reading of the spec.
enum Twin {
    /// What is counted in a class.
    Counts(ClassRequirement),
    /// What is counted of each sensitive attribute, and how many individuals a class has.
    Sensitivity(Sensitivity),
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
    fn run(&self, rows: RecordBatch) -> Result<BlockDone> {
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
        let infeasible = if classes.classes.is_empty() {
            let mut members = (0..block.len() as u32).map(|i| Member::of(block, i));
            self.model.feasible(&mut members).err()
        } else {
            None
        };
        let members = block.len() as u64;
        // The verifier knows nothing but what is published, and needs memory of its own.
        drop((individuals, encoded, classes));
        let timer = metrics.verifying.timer();
        self.verify(&published)?;
        timer.done();
        Ok(BlockDone {
            published: Box::new(published),
            individuals: members,
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
            twin: twin(&context.spec)?,
            context,
        })
    }

    /// Checks the published rows with code that knows nothing of how they came about.
    fn verify(&self, published: &PublishedRecords) -> Result<()> {
        match &self.twin {
            Twin::Counts(requirement) => self.verify_counts(published, 0, requirement),
            Twin::Sensitivity(requirement) => {
                let k = requirement.individuals();
                for column in 0..self.categories.len() {
                    self.verify_counts(published, column, &ClassRequirement::IrK { k })?;
                }
                self.verify_sensitivity(published, requirement)
            }
        }
    }

    fn verify_counts(
        &self,
        published: &PublishedRecords,
        sensitive: usize,
        requirement: &ClassRequirement,
    ) -> Result<()> {
        let rows = check::ShownClasses::try_new(
            &published.tuples,
            published.tuple_of_record.values(),
            &published.individual,
            &self.counted(&published.records[sensitive])?,
        )?;
        let attained = check::verify(&rows, requirement);
        attained.map_err(|violation| self.context.failed(&violation))?;
        Ok(())
    }

    /// Sensitive values as they are told apart.
    fn counted(&self, values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self.context.spec.normalize {
            true => check::one_spelling(values),
            false => Ok(ArrayRef::clone(values)),
        }
    }

    fn verify_sensitivity(
        &self,
        published: &PublishedRecords,
        requirement: &Sensitivity,
    ) -> Result<()> {
        let columns = self.categories.iter().zip(&published.records);
        let columns = columns.map(|(categories, values)| SensitiveColumn {
            values,
            listed: categories.as_ref().map(|c| Listed {
                values: &c.values,
                category: &c.category,
                categories: c.categories,
            }),
        });
        let table = SensitiveTable::try_new(
            &published.tuples,
            published.tuple_of_record.values(),
            &published.individual,
            &columns.collect::<Vec<_>>(),
        )?;
        if table.uncategorised_records > 0 {
            return Err(self.context.failed(&"it has values without a category"));
        }
        let attained = check::check_sensitivity(&table.records(), requirement)
            .map_err(|violation| self.context.failed(&violation))?;
        let spec = &self.context.spec;
        if let Some(of_values) = requirement.of_values().filter(|_| spec.normalize) {
            let sensitive = published.records[..self.categories.len()].iter();
            let spelled = sensitive.map(check::one_spelling);
            let spelled = spelled.collect::<Result<Vec<_>, _>>()?;
            let columns = spelled.iter().map(|values| SensitiveColumn {
                values,
                listed: None,
            });
            let table = SensitiveTable::try_new(
                &published.tuples,
                published.tuple_of_record.values(),
                &published.individual,
                &columns.collect::<Vec<_>>(),
            )?;
            check::check_sensitivity(&table.records(), &of_values)
                .map_err(|violation| self.context.failed(&violation))?;
        }
        let bounded = spec.parameter("max_category_share").is_some();
        if spec.parameter("alpha").is_some() && !bounded && attained.classes > 0 {
            let share = attained.largest_category_share;
            log::warn!(
                "{}: alpha bounds no share: in a class, {} of {} individuals have a value of one category; \
                 max_category_share bounds it",
                spec.function(),
                share.numerator(),
                share.denominator(),
            );
        }
        Ok(())
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

fn twin(spec: &Spec) -> Result<Twin> {
    let name = spec.model_entry()?.name;
    let parameter = |parameter: &str| spec.parameter(parameter);
    let counts = || ClassRequirement::named(name, parameter).map(Twin::Counts);
    let sensitivity = Sensitivity::named(name, parameter).map(Twin::Sensitivity);
    sensitivity
        .or_else(counts)
        .ok_or_else(|| internal_datafusion_err!("the verifier does not know the model '{name}'"))
}
