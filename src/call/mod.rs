//! The SQL surface: what a call says, and how it becomes a plan.
//!
//! A call reaches us on one of two roads. [`AnonymizeRelationPlanner`] sees the raw SQL, so that
//! arguments can be named and the first one can be a relation; [`table_function`] serves hosts that know only ordinary
//! table functions, with the arguments in a struct. Both read the same [`ArgumentValue`](value::ArgumentValue)s into the same
//! [`Spec`](crate::Spec) and give the same plan.

mod anonymize;
mod publish;
mod release;
mod sample;
mod sample_patients;
pub(crate) mod source;
mod sql;
mod table_function;
pub(crate) mod value;

pub use anonymize::{ARGUMENTS, ArgumentEntry, arguments_of};
pub(crate) use release::{NAME as RELEASE, ReleaseFunction};
pub use sample_patients::sample_patients;
pub(crate) use source::categories::{CATEGORIES_FUNCTION, CategoriesFunction};
pub use source::files::read_files;
pub(crate) use source::hierarchy::{HIERARCHY_FUNCTION, HierarchyFunction, NAME as HIERARCHY};
pub(crate) use source::input::{INPUT_FUNCTION, InputFunction};
pub use source::url_tables::enable_url_table;
pub use sql::AnonymizeRelationPlanner;
pub use table_function::{AnonymizeTableFunction, AuditTableFunction};

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;

/// Registers the scalar and aggregate functions.
pub(crate) fn register_expressions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    registry.register_udf(crate::measure::sql::match_fraction())?;
    registry.register_udf(Arc::new(crate::measure::sql::relative_error()))?;
    registry.register_udf(crate::measure::sql::known_fraction())?;
    registry.register_udaf(crate::measure::sql::estimate_count())?;
    registry.register_udaf(crate::measure::sql::column_values())?;
    registry.register_udaf(crate::measure::sql::bucket_distance())?;
    registry.register_udaf(crate::measure::sql::bucket_sum())?;
    registry.register_udaf(crate::measure::sql::fixed_sum())?;
    registry.register_udaf(crate::measure::sql::expected_members())?;
    crate::measure::sql::register(registry)
}
