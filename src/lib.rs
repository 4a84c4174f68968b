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

mod algorithm;
mod call;
mod check;
mod engine;
mod error;
mod measure;
mod model;
mod pipeline;
mod planner;
pub mod publish;
mod register;
mod release;
#[cfg(test)]
mod repeatable;
mod spec;
mod system;
mod table;

pub use call::{
    AnonymizeRelationPlanner, AnonymizeTableFunction, Argument, ArgumentKind, ArgumentValue,
    DefaultValue, Function, TABLE_FUNCTIONS, call, enable_url_table, read_files, sample_patients,
};
pub use engine::{OrderExec, limit_memory};
pub use error::without_values;
pub use measure::{
    AuditCall, ClassesSpec, CollapseSpec, CompareSpec, CoverColumn, CoverSpec, GatherSpec,
    LossCall, LossColumn, LossLevels, LossSpec, Report, Versus,
};
pub use pipeline::{
    AnonymizeExec, AnonymizeLogicalCodec, AnonymizeNode, AnonymizePhysicalCodec, BlockExec,
    ClassesExec, ClassesNode, CollapseExec, CollapseNode, CompareExec, CompareNode, CoverExec,
    CoverNode, DivisionExec, GatherExec, GatherNode, IndividualsExec, LossExec, LossNode,
    MaskErrorsExec, Measured, MeasuredNode, Phase, ProfileExec, PseudonymizeExec, ReportExec,
    ReportNode, Step, Summary, anonymize, steps,
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
pub use system::{ANATOMY_ARGUMENTS, Blocks, FUNCTIONS, FunctionEntry, INDIVIDUAL};
pub use table::coding::{DateLevel, Levels};
pub use table::{Categories, Taxonomy};

/// What the tests and benchmarks of this crate look at, and nobody else: it may change at any time.
#[doc(hidden)]
pub mod internals {
    /// Ways to form classes.
    pub mod algorithm {
        pub use crate::algorithm::{
            ALGORITHMS, Algorithm, AlgorithmEntry, Cancel, Classes, Danonyir, find,
        };
    }

    /// The independent judge.
    pub mod check {
        pub use crate::check::{
            AnatomyBounds, AnatomyTable, Answer, BucketRule, BucketTable, ClassRequirement,
            CombinationRequirement, FingerprintRequirement, Listed, LocalColumn, Ratio,
            SensitiveColumn, SensitiveTable, Sensitivity, ShownBuckets, ShownClasses, ShownLabels,
            ShownTables, check_sensitivity, diversity, eir_diverse, flags_absent,
            rows_out_of_order, verify, verify_anatomy, verify_combinations, verify_fingerprints,
            verify_local,
        };
    }

    /// Measures of classes.
    pub mod measure {
        pub use crate::measure::{Measurer, Measures, Reference};
    }

    /// Privacy models.
    pub mod model {
        pub use crate::model::{
            MODELS, Member, Model, ParameterKind, Parameters, Tally, Value, find, offered_by,
        };
    }

    /// Groups and sub-tables of SLPPA.
    pub mod slppa {
        pub use crate::system::anatomy::slppa::{
            Associations, CodedIndividuals, DivideError, Division, DivisionStatistics, GroupBounds,
            Groups, MISSING, Method, Prior, RelativeErrors, Row, position_of_bytes,
            position_of_i64, publish,
        };
    }

    /// Coded tables.
    pub mod table {
        pub use crate::table::{
            Block, Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, Numeric,
            QuasiIdentifier, Region, Sensitive,
        };
    }
}
