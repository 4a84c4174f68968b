//! Classes: individuals that share all published quasi-identifiers.

pub(in crate::system) mod categories;
mod release;
mod work;

pub(crate) use categories::column_categories;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use self::work::ClassWork;
use super::work::{BlockWork, WorkContext};
use super::{Blocks, Compared, FunctionEntry, Layout, System, SystemProperties, missing_values};
use crate::algorithm::ALGORITHMS;
use crate::check::{Categories, References};
use crate::spec::{BlockSize, ClassOptions, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Classes;

pub(in crate::system) static IR: FunctionEntry = FunctionEntry {
    name: "anonymize_ir",
    help: "identity-reserved models: individuals are counted, not records",
    system: &Classes,
    blocks: Blocks::Similar,
    block: 25_000,
    several_sensitive: false,
};

pub(in crate::system) static EIR: FunctionEntry = FunctionEntry {
    name: "anonymize_eir",
    help: "enhanced identity-reserved models: what one record of each individual could tell, whichever it is",
    system: &Classes,
    blocks: Blocks::Similar,
    block: 25_000,
    several_sensitive: false,
};

pub(in crate::system) static P_SENSITIVE: FunctionEntry = FunctionEntry {
    name: "anonymize_p_sensitive",
    help: "p-sensitive models: different sensitive values, or categories of them, in every class",
    system: &Classes,
    blocks: Blocks::Similar,
    block: 25_000,
    several_sensitive: true,
};

pub(in crate::system) static PROPERTIES: SystemProperties = SystemProperties {
    name: "classes",
    one_record_each: false,
    generalizes: true,
    labels_sensitive_values: false,
    shows_division_only: false,
    groups: None,
    parameters: &[],
    refused: &[],
    told: &["algorithm", "notation"],
    compared: Compared::Records,
};

impl System for Classes {
    fn properties(&self) -> &'static SystemProperties {
        &PROPERTIES
    }

    fn options(&self) -> SystemOptions {
        SystemOptions::Classes(ClassOptions::default())
    }

    fn block(&self, _: &Spec, usual: u64) -> BlockSize {
        BlockSize::Individuals(usual)
    }

    fn default_algorithm(&self, spec: &Spec) -> &'static str {
        let labelled = |column: &String| spec.hierarchies().contains_key(column);
        let all = !spec.qi().is_empty() && spec.qi().iter().all(labelled);
        match all && spec.function() == P_SENSITIVE.name {
            true => "localpk",
            false => ALGORITHMS[0].name,
        }
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_classes()
    }

    fn missing_sensitive(&self, spec: &Spec, records: u64) -> String {
        missing_values(spec, records)
            + ", or publish them without counting them as a value with 'conservative'"
    }

    fn published(&self, _: &Spec, layout: &Layout) -> SchemaRef {
        layout.of_classes(layout.record_fields().clone())
    }

    fn references(&self, spec: &Spec, layout: &Layout) -> Result<References> {
        let categories = column_categories(spec, layout)?.into_iter();
        let categories = categories.map(|of| {
            of.map(|of| Categories {
                values: of.values,
                category: of.category,
                categories: of.categories,
            })
        });
        Ok(References {
            categories: categories.collect(),
            labels: None,
        })
    }

    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>> {
        Ok(Arc::new(ClassWork::try_new(context)?))
    }
}
