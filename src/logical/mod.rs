//! The logical node: an anonymization of its input.

mod anonymize;
mod frame;

pub use anonymize::AnonymizeNode;
pub use frame::anonymize;
