//! The logical nodes: an anonymization of its input; the measured classes, and the loss, of a published table.

mod anonymize;
mod classes;
mod filters;
mod frame;
mod loss;

pub use anonymize::AnonymizeNode;
pub use classes::ClassesNode;
pub use frame::anonymize;
pub use loss::LossNode;
