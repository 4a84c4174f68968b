//! Publish tables about people from Apache DataFusion: every guarantee counts individuals, also where one person has
//! many records.
//!
//! ```text
//!   SQL   FROM anonymize_eir(patients, id => name, qi => […], sensitive => disease, l => 3)
//!   Rust  anonymize(frame, Spec::new("anonymize_eir")…)
//!     └──────────┬─────────┘
//!                ▼
//!        spec        one validated value: column roles, model and parameters, algorithm and options
//!                ▼
//!        pipeline    AnonymizeNode { input plan, spec }
//!                ▼
//!                    PseudonymizeExec → IndividualsExec → BlockExec → AnonymizeExec
//! ```

pub mod algorithm;
mod call;
pub mod check;
mod engine;
mod error;
pub mod measure;
pub mod model;
mod pipeline;
mod planner;
pub mod publish;
mod register;
#[cfg(test)]
mod repeatable;
mod spec;
pub mod system;
pub mod table;

pub use call::{
    ARGUMENTS, AnonymizeRelationPlanner, AnonymizeTableFunction, ArgumentEntry, AuditTableFunction,
    arguments_of, sample_patients,
};
pub use engine::OrderExec;
pub use error::without_values;
pub use measure::sql::audits::{AUDITS, AuditArgument, AuditEntry, RelationEntry};
pub use measure::{
    AuditCall, ClassesSpec, CoverColumn, CoverSpec, LossCall, LossColumn, LossLevels, LossSpec,
    Report, Versus,
};
pub use pipeline::{
    AnonymizeExec, AnonymizeLogicalCodec, AnonymizeNode, AnonymizePhysicalCodec, BlockExec,
    ClassesExec, ClassesNode, CoverExec, CoverNode, DivisionExec, IndividualsExec, LossExec,
    LossNode, MaskErrorsExec, Measured, MeasuredNode, ProfileExec, PseudonymizeExec, ReportExec,
    ReportNode, Summary, anonymize,
};
pub use planner::{
    AnonymizePlanner, AnonymizeQueryPlanner, MaskErrors, OrderInMemory, SpreadInput,
};
pub use register::{SessionStateBuilderExt, register_all};
pub use spec::{
    BlockSize, Choice, Contradictory, FingerprintRows, GivenDomain, LocalStrategy, Notation,
    NullId, NullSensitive, Output, Secrecy, SmallPatterns, Spec,
};
pub use system::anatomy::sub_tables;
pub use system::{ANATOMY_ARGUMENTS, Blocks, FUNCTIONS, Form, FunctionEntry, INDIVIDUAL};
pub use table::coding::{DateLevel, Levels};
