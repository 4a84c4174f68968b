//! Groups for what is shown, and buckets for what is secret (LGB).

mod group_rows;
pub(crate) mod lgb;
mod requirement;
mod secret_counts;
mod work;

pub(crate) use requirement::{LocalRequirement, SecretAttribute, SecretRule};
pub(crate) use secret_counts::{SecretCounts, counts_secrets};
pub(crate) use work::{BucketWork, checked_rule};

use datafusion::common::Result;

use super::System;
use crate::spec::{BlockSize, BucketOptions, Choice, Spec, SystemOptions};

#[derive(Debug)]
pub(in crate::system) struct Buckets;

impl System for Buckets {
    fn options(&self) -> SystemOptions {
        SystemOptions::Buckets(BucketOptions::default())
    }

    fn one_record_each(&self) -> bool {
        true
    }

    fn block(&self, spec: &Spec, usual: u64) -> BlockSize {
        match spec.needs_whole_table() {
            true => BlockSize::All,
            false => BlockSize::Individuals(usual),
        }
    }

    fn describe(&self, spec: &Spec) -> Result<String> {
        spec.describe_local()
    }

    fn method_facts(&self, spec: &Spec) -> Vec<(&'static str, String)> {
        vec![("strategy", spec.strategy().name().to_owned())]
    }

    fn role_facts(&self, spec: &Spec) -> Vec<(&'static str, String)> {
        let semi = spec.semi_sensitive().into_iter();
        let semi: Vec<_> = semi.map(|(name, _)| name).collect();
        vec![
            ("semi_sensitive", format!("[{}]", semi.join(", "))),
            ("small_pattern", spec.small_pattern().name().to_owned()),
            ("output", spec.output().name().to_owned()),
        ]
    }

    fn validate(&self, spec: &Spec) -> Result<()> {
        spec.validate_local()
    }
}
