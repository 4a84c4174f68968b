//! From a call to published rows: nodes of a logical plan, operators, and how plans are sent.

pub(crate) mod codec;
pub(crate) mod node;
pub(crate) mod operator;
mod summary;

pub use codec::{AnonymizeLogicalCodec, AnonymizePhysicalCodec};
pub use node::{
    AnonymizeNode, ClassesNode, CollapseNode, CompareNode, CoverNode, GatherNode, LossNode,
    Measured, MeasuredNode, ReportNode, anonymize,
};
pub(crate) use node::{coerced, compare, gather, report};
pub use operator::{
    AnonymizeExec, BlockExec, ClassesExec, CollapseExec, CompareExec, CoverExec, DivisionExec,
    GatherExec, IndividualsExec, LossExec, MaskErrorsExec, ProfileExec, PseudonymizeExec,
    ReportExec,
};
pub use summary::Summary;
