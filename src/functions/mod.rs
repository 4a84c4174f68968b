//! The SQL surface: what a call says, and how it becomes a plan.
//!
//! A call reaches us on one of two roads. [`relation::AnonymizeRelationPlanner`] sees the raw SQL, so that
//! arguments can be named and the first one can be a relation; [`table_function`] serves hosts that know only ordinary
//! table functions, with the arguments in a struct. Both read the same [`Argument`]s into the same
//! [`Spec`](crate::Spec) and give the same plan.

mod argument;
mod ast;
mod audits;
mod call;
mod input;
mod literal;
mod relation;
mod sample;
mod sample_patients;
mod table_function;

pub use argument::Argument;
pub use audits::{AUDITS, AuditArgument, AuditEntry, AuditTableFunction, RelationEntry};
pub(crate) use audits::{class_key, class_tuple, unique_sets, value_hash};
pub use call::{ARGUMENTS, ArgumentEntry, FUNCTIONS, FunctionEntry};
pub(crate) use input::{INPUT_FUNCTION, InputFunction};
pub use relation::AnonymizeRelationPlanner;
pub use sample_patients::sample_patients;
pub use table_function::AnonymizeTableFunction;
