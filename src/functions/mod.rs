//! The SQL surface: what a call says, and how it becomes a plan.
//!
//! A call reaches us on one of two roads. [`relation::AnonymizeRelationPlanner`] sees the raw SQL, so that
//! arguments can be named and the first one can be a relation; [`table_function`] serves hosts that know only ordinary
//! table functions, with the arguments in a struct. Both read the same [`Argument`]s into the same
//! [`Spec`](crate::Spec) and give the same plan.

mod argument;
mod ast;
mod call;
mod hierarchy;
mod input;
mod literal;
mod measure;
mod relation;
mod sample;
mod sample_patients;
mod table_function;

pub use argument::Argument;
pub use call::{ARGUMENTS, ArgumentEntry, FUNCTIONS, FunctionEntry};
pub(crate) use hierarchy::{HIERARCHY_FUNCTION, HierarchyFunction, NAME as HIERARCHY};
pub(crate) use input::{INPUT_FUNCTION, InputFunction};
pub use measure::{MEASURES, MeasureArgument, MeasureEntry, MeasureTableFunction, RelationEntry};
pub(crate) use measure::{class_key, class_tuple, unique_sets, value_hash};
pub use relation::AnonymizeRelationPlanner;
pub use sample_patients::sample_patients;
pub use table_function::AnonymizeTableFunction;
