//! The logical nodes: an anonymization of its input; the measured classes, and the loss, of a published table.

mod anonymize;
mod classes;
mod cover;
mod filters;
mod frame;
mod loss;
mod report;

pub use anonymize::AnonymizeNode;
pub use classes::ClassesNode;
pub use cover::CoverNode;
pub use frame::anonymize;
pub use loss::LossNode;
pub use report::ReportNode;
pub(crate) use report::report;
