//! Classes: individuals that share all published quasi-identifiers.

pub(in crate::system) mod categories;
mod work;

pub(crate) use categories::column_categories;
pub(crate) use work::ClassWork;

use datafusion::common::Result;

use super::System;
use crate::algorithm::ALGORITHMS;
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
}
