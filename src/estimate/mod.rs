//! Counting with uncertainty: sums that do not depend on order, and random workloads of count queries.

mod fixed;

pub use fixed::Fixed;
