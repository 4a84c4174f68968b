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
