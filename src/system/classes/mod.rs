//! Classes: individuals that share all published quasi-identifiers.

pub(in crate::system) mod categories;
mod work;

pub(crate) use categories::column_categories;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use self::work::ClassWork;
use super::work::{BlockWork, WorkContext};
use super::{Layout, System, missing_values};
use crate::algorithm::ALGORITHMS;
use crate::check::{Categories, References};
use crate::spec::{BlockSize, ClassOptions, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Classes;

impl System for Classes {
    fn options(&self) -> SystemOptions {
        SystemOptions::Classes(ClassOptions::default())
    }

    fn block(&self, _: &Spec, usual: u64) -> BlockSize {
        BlockSize::Individuals(usual)
    }

    fn default_algorithm(&self, spec: &Spec) -> &'static str {
        let labelled = |column: &String| spec.hierarchies().contains_key(column);
        let all = !spec.qi().is_empty() && spec.qi().iter().all(labelled);
        match all && spec.function() == super::function::P_SENSITIVE {
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
