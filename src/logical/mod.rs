//! The logical nodes: an anonymization of its input, and the measured classes of a published table.

mod anonymize;
mod classes;
mod frame;

pub use anonymize::AnonymizeNode;
pub use classes::ClassesNode;
pub use frame::anonymize;
