//! Sub-tables of exact values that only group ids link (SLPPA).

mod requirement;
pub mod slppa;
mod sub_tables;
mod work;

pub use requirement::{ANATOMY_ARGUMENTS, SUBTABLE};
pub(crate) use requirement::{GID, NOT_FOR_ANATOMY, TIMES};
pub use sub_tables::sub_tables;
pub(crate) use work::AnatomyWork;

use datafusion::common::Result;

use super::System;
use crate::spec::{AnatomyOptions, BlockSize, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Anatomy;

impl System for Anatomy {
    fn options(&self) -> SystemOptions {
        SystemOptions::Anatomy(AnatomyOptions::default())
    }

    fn one_record_each(&self) -> bool {
        true
    }

    fn generalizes(&self) -> bool {
        false
    }

    fn block(&self, spec: &Spec, usual: u64) -> BlockSize {
        BlockSize::Individuals(match spec.divides_similar() {
            true => requirement::SIMILAR_BLOCK,
            false => usual,
        })
    }

    fn describe(&self, spec: &Spec) -> Result<String> {
        spec.describe_anatomy()
    }

    fn method_facts(&self, spec: &Spec) -> Vec<(&'static str, String)> {
        spec.anatomy_facts()
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_anatomy()
    }
}
