//! The four ways in which something is published: classes, fingerprints, buckets, and anatomized tables.

pub mod anatomy;
pub(crate) mod buckets;
mod canonical;
pub(crate) mod classes;
pub(crate) mod fingerprints;
mod function;
mod known;
mod layout;
pub(crate) mod learn;
mod properties;
mod release;
mod spec;
mod stated;
pub(crate) mod work;

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::common::Result;

pub use anatomy::{ANATOMY_ARGUMENTS, SUBTABLE};
pub(crate) use anatomy::{GID, TIMES};
pub(crate) use buckets::{BUCKET, BUCKETIZED, COUNT, GROUP, LocalRequirement, SecretRule};
pub(crate) use canonical::{canonical_projection, check_levels, find_column, kind_of};
pub(crate) use classes::column_categories;
pub(crate) use fingerprints::sensitive_tree;
pub(crate) use function::system_of;
pub use function::{Blocks, FunctionEntry};
pub(crate) use known::Known;
pub use layout::INDIVIDUAL;
pub(crate) use layout::{
    BLOCK, Layout, PSEUDONYM_BYTES, RecordColumns, RowColumns, Stage, blocks_of, flag_name,
    given_trees, has_records, id_and_others, profiled_columns, qi_fields, tagged_schema,
};
pub(crate) use properties::{Compared, SystemProperties};
pub(crate) use release::{ReleaseFacts, ReleaseWords, TableLayout};
pub(crate) use stated::{StatedDomain, stated_domains};

use crate::algorithm::ALGORITHMS;
use crate::check::References;
use crate::error;
use crate::spec::{BlockSize, NullSensitive, Spec, SystemOptions};
use crate::table::coding::Kind;
use learn::{DomainLearner, Learned, LearnedDomains, Learner};
use release::SystemRelease;
use work::{BlockWork, WorkContext};

/// All anonymizing functions. Which models each offers is said by [`MODELS`](crate::model::MODELS).
pub static FUNCTIONS: &[&FunctionEntry] = &[
    &classes::IR,
    &classes::EIR,
    &buckets::LGB,
    &classes::P_SENSITIVE,
    &anatomy::SLPPA,
    &anatomy::DIVISION,
    &fingerprints::KL,
    &fingerprints::KKM,
];

/// What sets one way of publishing apart from the others. Which of its functions is called, a system reads from the spec.
pub(crate) trait System: SystemRelease + Debug + Send + Sync {
    /// What can be said of it without a call.
    fn properties(&self) -> &'static SystemProperties;

    /// Its options before any is given.
    fn options(&self) -> SystemOptions;

    /// The block size unless a call says otherwise; the function's is `usual`.
    fn block(&self, spec: &Spec, usual: u64) -> BlockSize;

    /// The algorithm unless a call says otherwise.
    fn default_algorithm(&self, _spec: &Spec) -> &'static str {
        ALGORITHMS[0].name
    }

    /// The requirement with its parameters, as a reader of a report sees it.
    fn describe(&self, spec: &Spec) -> Result<String> {
        Ok(spec.model()?.describe())
    }

    /// How the requirement is reached, as EXPLAIN may show it.
    fn method_facts(&self, spec: &Spec) -> Vec<(&'static str, String)> {
        vec![("algorithm", spec.algorithm_name().to_owned())]
    }

    /// What EXPLAIN may show of further roles.
    fn role_facts(&self, _spec: &Spec) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Checks what can be checked without the input.
    fn validate(&self, spec: &Spec) -> Result<()>;

    /// Checks that no two published columns have one name.
    fn check_names(&self, _spec: &Spec) -> Result<()> {
        Ok(())
    }

    /// Why so many records without a sensitive value are refused, and what to do about it.
    fn missing_sensitive(&self, spec: &Spec, records: u64) -> String {
        missing_values(spec, records)
    }

    /// What is published.
    fn published(&self, spec: &Spec, layout: &Layout) -> SchemaRef;

    /// What rows of blocks say beside the individual.
    fn block_columns(&self) -> Vec<Field> {
        vec![]
    }

    /// What is read, in a pass of its own, to learn of the whole table. The number of records is told if it is known.
    fn profile_reads(&self, spec: &Spec, _records: Option<usize>) -> Result<ProfileReads> {
        Ok(ProfileReads {
            columns: match spec.null_sensitive {
                NullSensitive::Error => ProfileColumns::QuasiIdentifiers,
                _ => ProfileColumns::Sensitive,
            },
            views: false,
        })
    }

    /// Learns from one partition. It may have sensitive values and flags, or quasi-identifiers only.
    fn learner(
        &self,
        spec: &Arc<Spec>,
        kinds: &[Kind],
        _has_records: bool,
    ) -> Result<Box<dyn Learner>> {
        Ok(Box::new(DomainLearner::try_new(spec, kinds, None)?))
    }

    /// Unites what all partitions learned.
    fn learned(&self, spec: &Spec, kinds: &[Kind]) -> Box<dyn Learned> {
        Box::new(LearnedDomains::new(spec, kinds))
    }

    /// What published values stand for: the verifier looks it up where the work does.
    fn references(&self, _spec: &Spec, _layout: &Layout) -> Result<References> {
        Ok(References::default())
    }

    /// The work on blocks.
    fn work(&self, context: WorkContext) -> Result<Arc<dyn BlockWork>>;
}

/// What is read of an input in canonical form to learn of the whole table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProfileReads {
    pub columns: ProfileColumns,
    /// Texts as views, where the scan has them: counting them needs no copies.
    pub views: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileColumns {
    /// The id and the quasi-identifiers.
    QuasiIdentifiers,
    /// These, and the sensitive columns.
    Sensitive,
    All,
}

/// What is said of sensitive columns with missing values.
fn missing_values(spec: &Spec, records: u64) -> String {
    format!(
        "sensitive column '{}' is NULL in at least {}; leave them out with null_sensitive => 'drop_rows'",
        spec.sensitive().join("' or '"),
        error::count(records, "record")
    )
}
