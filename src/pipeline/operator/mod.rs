//! The operators. DataFusion's own scan, shuffle, sort, spill and write; these do the thinking.
//!
//! ```text
//! AnonymizeExec        forms classes block by block, verifies them, emits published rows
//!   OrderExec            by block and random order; the engine's sort where memory does not suffice
//!     RepartitionExec    by block, dealt out in turn         (DataFusion)
//!       BlockExec        gives each individual a block
//!         CoalescePartitionsExec                             (DataFusion)
//!           ProfileExec  domains and a sample of individuals
//!             PseudonymizeExec over the input
//!         IndividualsExec  one row per individual
//!           OrderExec      by random order
//!             RepartitionExec by random order                (DataFusion)
//!               PseudonymizeExec  replaces ids by keyed hashes
//!                 the input
//! ```
//!
//! Every operator is plain data, a [`Spec`](crate::Spec) and its children, so that plans can be sent to other machines.
//! Nothing is derived from a partition or batch number.

mod anonymize;
mod block;
mod classes;
mod collapse;
mod compare;
mod cover;
mod division;
mod gather;
mod individuals;
mod loss;
mod mask_errors;
mod outcome;
mod profile;
mod pseudonymize;
mod reader;
mod report;
mod sorted;

pub use anonymize::AnonymizeExec;
pub use block::BlockExec;
pub use classes::ClassesExec;
pub use collapse::CollapseExec;
pub use compare::CompareExec;
pub use cover::CoverExec;
pub use division::DivisionExec;
pub use gather::GatherExec;
pub use individuals::IndividualsExec;
pub use loss::LossExec;
pub use mask_errors::MaskErrorsExec;
pub use profile::ProfileExec;
pub use pseudonymize::PseudonymizeExec;
pub use report::ReportExec;
