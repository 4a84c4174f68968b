//! The SQL surface: what a call says, and how it becomes a plan.
//!
//! A call reaches us on one of two roads. [`relation::AnonymizeRelationPlanner`] sees the raw SQL, so that
//! arguments can be named and the first one can be a relation; [`table_function`] serves hosts that know only ordinary
//! table functions, with the arguments in a struct. Both read the same [`Argument`]s into the same
//! [`Spec`](crate::Spec) and give the same plan.

mod argument;
mod ast;
mod audit_buckets;
mod audits;
mod bucket_distance;
mod bucket_sum;
mod call;
mod categories;
mod column_values;
mod domain;
mod estimate;
mod estimate_count;
mod estimated;
mod hierarchy;
mod input;
mod known_fraction;
mod literal;
mod load;
mod match_fraction;
mod measure;
mod publish;
mod query_error;
mod relation;
mod relative_error;
mod sample;
mod sample_patients;
mod table_function;

pub use argument::Argument;
pub use audits::{AUDITS, AuditArgument, AuditEntry, AuditTableFunction, RelationEntry};
pub(crate) use audits::{class_key, class_tuple, unique_sets, value_hash};
pub use call::{ARGUMENTS, ArgumentEntry, arguments_of};
pub(crate) use categories::{CATEGORIES_FUNCTION, CategoriesFunction};
pub(crate) use estimated::EstimateCounts;
pub(crate) use hierarchy::{HIERARCHY_FUNCTION, HierarchyFunction, NAME as HIERARCHY};
pub(crate) use input::{INPUT_FUNCTION, InputFunction};
pub(crate) use measure::{MEASURES, MeasureTableFunction};
pub use relation::AnonymizeRelationPlanner;
pub use sample_patients::sample_patients;
pub use table_function::AnonymizeTableFunction;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;

/// Registers the scalar and aggregate functions.
pub(crate) fn register_expressions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    registry.register_udf(match_fraction::match_fraction())?;
    registry.register_udf(Arc::new(relative_error::relative_error()))?;
    registry.register_udf(known_fraction::known_fraction())?;
    registry.register_udaf(estimate_count::estimate_count())?;
    registry.register_udaf(column_values::column_values())?;
    registry.register_udaf(bucket_distance::bucket_distance())?;
    registry.register_udaf(bucket_sum::bucket_sum())?;
    registry.register_udaf(bucket_sum::fixed_sum())?;
    registry.register_udaf(estimate::expected_members())?;
    query_error::register(registry)
}
