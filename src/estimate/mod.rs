//! Counting with uncertainty: sums that do not depend on order, and random workloads of count queries.

mod answers;
mod fixed;
mod matching;
mod summary;
mod workload;

pub use answers::{Answers, Role};
pub use fixed::Fixed;
pub use matching::Matching;
pub use summary::{Summary, relative_error};
pub use workload::{Attribute, Draw, Predicate, Workload};
