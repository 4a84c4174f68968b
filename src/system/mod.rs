//! The four ways in which something is published: classes, fingerprints, buckets, and anatomized tables.

pub mod anatomy;
pub(crate) mod buckets;
pub(crate) mod classes;
pub(crate) mod fingerprints;
mod function;
mod layout;
mod spec;
mod stated;
pub(crate) mod work;

use std::fmt::Debug;

use datafusion::common::Result;

pub use anatomy::{ANATOMY_ARGUMENTS, SUBTABLE};
pub(crate) use anatomy::{GID, NOT_FOR_ANATOMY, TIMES};
pub(crate) use buckets::{LocalRequirement, SecretAttribute, SecretRule};
pub(crate) use classes::column_categories;
pub(crate) use fingerprints::sensitive_tree;
pub use function::{Blocks, FUNCTIONS, Form, FunctionEntry};
pub use layout::INDIVIDUAL;
pub(crate) use layout::{
    BUCKET, BUCKETIZED, COUNT, GROUP, Layout, PSEUDONYM_BYTES, canonical_projection, check_levels,
    find_column, flag_name, given_tree, kind_of, tagged_schema,
};
pub(crate) use stated::{StatedDomain, stated_domains};

use crate::algorithm::ALGORITHMS;
use crate::spec::{BlockSize, Spec, SystemOptions};

/// What sets one way of publishing apart from the others. Which of its functions is called, a system reads from the spec.
pub(crate) trait System: Debug + Send + Sync {
    /// Its options before any is given.
    fn options(&self) -> SystemOptions;

    /// Whether an individual has one record only.
    fn one_record_each(&self) -> bool {
        false
    }

    /// Whether quasi-identifiers are generalized, and so have a notation.
    fn generalizes(&self) -> bool {
        true
    }

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
}
