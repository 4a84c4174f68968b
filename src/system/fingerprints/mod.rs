//! Classes with published fingerprints: sets of labels in the place of sensitive values.

pub(in crate::system) mod requirement;
mod rmr_work;
pub(crate) mod sets;
mod work;

pub(crate) use requirement::sensitive_tree;
pub(crate) use rmr_work::RmrWork;
pub(crate) use work::FingerprintWork;

use datafusion::common::Result;

use super::{Form, System};
use crate::algorithm::ALGORITHMS;
use crate::spec::{BlockSize, FingerprintOptions, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Fingerprints;

impl System for Fingerprints {
    fn options(&self) -> SystemOptions {
        SystemOptions::Fingerprints(FingerprintOptions::default())
    }

    fn block(&self, spec: &Spec, usual: u64) -> BlockSize {
        match requirement::needs_whole_table(spec) {
            true => BlockSize::All,
            false => BlockSize::Individuals(usual),
        }
    }

    fn default_algorithm(&self, spec: &Spec) -> &'static str {
        match spec.form() {
            Some(Form::Combinations) => "best_cut",
            _ => ALGORITHMS[0].name,
        }
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_classes()?;
        requirement::check(spec)
    }
}
