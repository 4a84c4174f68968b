//! What measuring functions share: options as plain data, keys of classes, and the figures of a class as columns.
//!
//! ```text
//! records   __class, __individual, __sensitive          one row per record of the published table
//! values    __sensitive, __records, __category          the sensitive values of the whole table, small
//! classes   class, individuals, records, …              one row per class, see [`class_schema`]
//! compared  published_individuals, …                one row of counts per partition, see [`compare_schema`]
//! losses    published, glm_0, ncp_count_0, …            one row of sums per partition, see [`loss_schema`]
//! ```

mod bucket_sum;
pub(crate) mod cells;
mod class;
mod classes;
mod compare;
mod cover;
mod distance;
mod keys;
mod loss;
pub(crate) mod query_error;
mod related;
mod report;
#[cfg(test)]
mod similarity;
pub(crate) mod sql;

pub use bucket_sum::{Estimate, Hits};
pub use class::{Measurer, Measures, Reference, eir_l};
pub use related::LabelPlaces;
#[cfg(test)]
pub use similarity::{Similarity, similarity_attack};

pub(crate) use classes::{ClassRow, ClassRows, class_schema};
pub use classes::{ClassesSpec, Versus};
pub(crate) use compare::{COUNTS, collapse_schema, compare_schema, gather_schema, plain_type};
pub use compare::{CollapseSpec, CompareSpec, GatherSpec};
pub(crate) use cover::cover_schema;
pub use cover::{CoverColumn, CoverSpec};
pub(crate) use distance::BucketDistances;
pub(crate) use keys::{ClassKey, class_bytes};
pub use loss::{LossColumn, LossLevels, LossSpec};
pub(crate) use loss::{SCALE, inside_name, loss_schema, sum_names};
pub use report::{AuditCall, LossCall, Report};
