//! The SQL surface: what a call says, and how it becomes a plan.
//!
//! All functions are in one list, [`TABLE_FUNCTIONS`]. A call reaches us on one of two roads: [`AnonymizeRelationPlanner`] sees
//! the raw SQL, so that arguments can be named and relations among them; [`table_function`] serves hosts that know only ordinary
//! table functions, with the arguments in a struct. Both become the same [`Arguments`](arguments::Arguments) and give the same
//! plan.

mod anonymize;
pub(crate) mod arguments;
mod functions;
mod hierarchy;
mod publish;
mod release;
mod sample;
mod sample_patients;
pub(crate) mod source;
mod sql;
mod table_function;
pub(crate) mod value;

pub use arguments::{Argument, ArgumentKind, DefaultValue, Function};
pub use functions::TABLE_FUNCTIONS;
pub use sample_patients::sample_patients;
pub(crate) use source::categories::{CATEGORIES_FUNCTION, CategoriesFunction};
pub use source::files::read_files;
pub(crate) use source::hierarchy::{HIERARCHY_FUNCTION, HierarchyFunction};
pub(crate) use source::input::{INPUT_FUNCTION, InputFunction};
pub(crate) use source::release::{RELEASE_FUNCTION, ReleaseFunction};
pub use source::url_tables::enable_url_table;
pub use sql::AnonymizeRelationPlanner;
pub use table_function::{AnonymizeTableFunction, call};
pub use value::ArgumentValue;

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
