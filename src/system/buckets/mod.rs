//! Groups for what is shown, and buckets for what is secret (LGB).

mod group_rows;
pub(crate) mod lgb;
mod release;
mod requirement;
mod schema;
mod secret_counts;
mod work;

pub(crate) use requirement::{LocalRequirement, SecretRule};
pub(crate) use schema::{BUCKET, BUCKETIZED, COUNT, GROUP};
pub(in crate::system) use secret_counts::SecretCounts;

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;

use self::secret_counts::counts_secrets;
use self::work::BucketWork;
use super::learn::{DomainLearner, Learner};
use super::properties::Groups;
use super::work::{BlockWork, WorkContext};
use super::{
    Blocks, Compared, FunctionEntry, Layout, ProfileColumns, ProfileReads, System, SystemProperties,
};
use crate::error;
use crate::spec::{BlockSize, BucketOptions, Choice, NullSensitive, Spec, SystemOptions};
use crate::table::coding::Kind;

#[derive(Debug)]
pub(in crate::system) struct Buckets;

pub(in crate::system) static LGB: FunctionEntry = FunctionEntry {
    name: "anonymize_lgb",
    help: "local generalization and bucketization: each individual says which of its values are secret",
    system: &Buckets,
    blocks: Blocks::Random,
    block: 400_000,
    several_sensitive: true,
};

static PROPERTIES: SystemProperties = SystemProperties {
    name: "buckets",
    one_record_each: true,
    generalizes: true,
    labels_sensitive_values: false,
    shows_division_only: false,
    // Values of buckets may have rows of their own.
    groups: Some(Groups {
        id: GROUP,
        rows: "individual IS NOT NULL",
        individuals: "count(*)",
    }),
    parameters: &[],
    refused: &[],
    told: &["strategy", "notation", "small_pattern", "output"],
    compared: Compared::Buckets,
};

impl System for Buckets {
    fn properties(&self) -> &'static SystemProperties {
        &PROPERTIES
    }

    fn options(&self) -> SystemOptions {
        SystemOptions::Buckets(BucketOptions::default())
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

    fn check_names(&self, spec: &Spec) -> Result<()> {
        schema::check_names(spec)
    }

    fn missing_sensitive(&self, spec: &Spec, records: u64) -> String {
        let semi = spec.semi_sensitive();
        let semi = semi.iter().map(|(name, _)| *name);
        let columns = spec.sensitive().iter().map(String::as_str).chain(semi);
        format!(
            "a secret value of '{}' is NULL in at least {}; leave them out with null_sensitive => 'drop_rows'",
            columns.collect::<Vec<_>>().join("' or '"),
            error::count(records, "record")
        )
    }

    fn published(&self, spec: &Spec, layout: &Layout) -> SchemaRef {
        schema::published(spec, layout)
    }

    /// All columns where secret values decide who is left out, or how large blocks are.
    fn profile_reads(&self, spec: &Spec, records: Option<usize>) -> Result<ProfileReads> {
        let incomplete = spec.null_sensitive != NullSensitive::Error;
        Ok(ProfileReads {
            columns: match incomplete || counts_secrets(spec, records)? {
                true => ProfileColumns::All,
                false => ProfileColumns::QuasiIdentifiers,
            },
            views: false,
        })
    }

    fn learner(
        &self,
        spec: &Arc<Spec>,
        kinds: &[Kind],
        columns: usize,
    ) -> Result<Box<dyn Learner>> {
        let counts = columns > 2 + kinds.len() && counts_secrets(spec, None)?;
        let secrets = counts.then(|| SecretCounts::new(spec)).transpose()?;
        Ok(Box::new(DomainLearner::try_new(spec, kinds, secrets)?))
    }

    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>> {
        Ok(Arc::new(BucketWork::try_new(context)?))
    }
}
