//! Counting with uncertainty: sums that do not depend on order, and random workloads of count queries.

mod answers;
mod fixed;
mod groups;
mod matching;
mod planes;
mod summary;
mod totals;
mod workload;

pub use answers::{Answers, Role};
pub use fixed::Fixed;
pub use groups::{GroupAnswers, visit};
pub use matching::Matching;
pub use summary::{Summary, relative_error, relative_width};
pub use totals::Totals;
pub use workload::{Draw, Predicate, Workload, WorkloadColumn};
