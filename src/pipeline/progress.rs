//! How far a plan is that anonymizes, from the metrics of its operators while it runs.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::operator::{AnonymizeExec, IndividualsExec, ProfileExec, PseudonymizeExec};
use super::summary::find;

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The quasi-identifiers are read, to learn their domains.
    Reading,
    /// All columns are read, and the records of each individual gathered.
    Gathering,
    /// Classes or groups are formed and verified.
    Forming,
    /// Files are written.
    Writing,
    /// Files are read again and verified.
    Verifying,
    /// The release is measured, and compared with the input.
    Comparing,
}

impl Phase {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Gathering => "gathering",
            Self::Forming => "forming",
            Self::Writing => "writing",
            Self::Verifying => "verifying",
            Self::Comparing => "comparing",
        }
    }
}

/// How far a phase is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The phase.
    pub phase: Phase,
    /// Records that are done.
    pub done: u64,
    /// Of how many, if that is known.
    pub of: Option<u64>,
}

/// The phases of a plan up to the one it is in; none if it has no function that anonymizes.
pub fn steps(plan: &Arc<dyn ExecutionPlan>) -> Vec<Step> {
    let (Some(profile), Some(gather), Some(form)) = (
        find::<ProfileExec>(plan),
        find::<IndividualsExec>(plan),
        find::<AnonymizeExec>(plan),
    ) else {
        return vec![];
    };
    let read = tagged(profile);
    let step = |phase, done, of| Step { phase, done, of };
    let mut steps = vec![step(Phase::Reading, read, None)];
    if records(profile) == 0 {
        return steps;
    }
    let gathered = tagged(gather);
    steps.push(step(Phase::Gathering, gathered, Some(read)));
    if gathered >= read {
        steps.push(step(Phase::Forming, records(form), Some(read)));
    }
    steps
}

/// Records that got a pseudonym below an operator.
fn tagged(operator: &dyn ExecutionPlan) -> u64 {
    let below = operator.children().into_iter();
    let tagged = below.filter_map(|plan| find::<PseudonymizeExec>(plan));
    tagged.map(|operator| records(operator)).sum()
}

fn records(operator: &dyn ExecutionPlan) -> u64 {
    let metrics = operator.metrics();
    metrics.and_then(|m| m.output_rows()).unwrap_or_default() as u64
}
