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
//!        logical     AnonymizeNode { input plan, spec }
//!                ▼
//!        physical    PseudonymizeExec → IndividualsExec → BlockExec → AnonymizeExec
//! ```

pub mod algorithm;
pub mod anatomize;
mod codec;
mod coding;
mod error;
mod estimate;
pub mod fingerprint;
mod functions;
pub mod generalized;
mod logical;
mod measure;
pub mod metric;
pub mod model;
mod parallel;
pub mod personalized;
mod physical;
mod planner;
mod register;
pub mod release;
#[cfg(test)]
mod repeatable;
mod spec;
pub mod table;
pub mod verify;

pub use codec::{AnonymizeLogicalCodec, AnonymizePhysicalCodec};
pub use coding::{DateLevel, Levels};
pub use error::without_values;
pub use functions::{
    ARGUMENTS, AUDITS, AnonymizeRelationPlanner, AnonymizeTableFunction, ArgumentEntry,
    AuditArgument, AuditEntry, AuditTableFunction, RelationEntry, arguments_of, sample_patients,
};
pub use logical::{
    AnonymizeNode, ClassesNode, CoverNode, LossNode, Measured, MeasuredNode, ReportNode, anonymize,
    sub_tables,
};
pub use measure::{
    AuditCall, ClassesSpec, CoverColumn, CoverSpec, LossCall, LossColumn, LossLevels, LossSpec,
    Report, Versus,
};
pub use physical::{
    AnonymizeExec, BlockExec, ClassesExec, CoverExec, DivisionExec, IndividualsExec, LossExec,
    MaskErrorsExec, OrderExec, ProfileExec, PseudonymizeExec, ReportExec, Summary,
};
pub use planner::{
    AnonymizePlanner, AnonymizeQueryPlanner, MaskErrors, OrderInMemory, SpreadInput,
};
pub use register::{SessionStateBuilderExt, register_all};
pub use spec::{
    ANATOMY_ARGUMENTS, BlockSize, Blocks, Choice, Contradictory, FUNCTIONS, FingerprintRows, Form,
    FunctionEntry, GivenDomain, INDIVIDUAL, LocalStrategy, Notation, NullId, NullSensitive, Output,
    Secrecy, SmallPatterns, Spec,
};
