//! From a call to published rows: nodes of a logical plan, operators, and how plans are sent.

pub(crate) mod codec;
pub(crate) mod node;
pub(crate) mod operator;
mod summary;

pub use codec::{AnonymizeLogicalCodec, AnonymizePhysicalCodec};
pub use node::{
    AnonymizeNode, ClassesNode, CollapseNode, CompareNode, CoverNode, LossNode, Measured,
    MeasuredNode, ReportNode, anonymize,
};
pub(crate) use node::{coerced, compare, report};
pub use operator::{
    AnonymizeExec, BlockExec, ClassesExec, CollapseExec, CompareExec, CoverExec, DivisionExec,
    IndividualsExec, LossExec, MaskErrorsExec, ProfileExec, PseudonymizeExec, ReportExec,
};
pub use summary::Summary;
