//! The logical nodes: an anonymization of its input; the measured classes, and the loss, of a published table.

mod anonymize;
mod coerced;
mod compare;
mod filters;
mod frame;
mod measured;
mod report;

pub use anonymize::AnonymizeNode;
pub(crate) use coerced::coerced;
pub(crate) use compare::{compare, gather};
pub use frame::anonymize;
pub use measured::{
    ClassesNode, CollapseNode, CompareNode, CoverNode, GatherNode, LossNode, Measured, MeasuredNode,
};
pub use report::ReportNode;
pub(crate) use report::report;
