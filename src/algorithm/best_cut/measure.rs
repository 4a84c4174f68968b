//! What is minimized.

use crate::table::{Block, QuasiIdentifier};

/// A measure of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutMeasure {
    /// Loss of records by the width of what they publish: an interval [a, b] loses b − a.
    Records,
    /// Loss of individuals by the number of values they may have: b − a + 1, and nothing if that is one.
    Individuals,
}

impl CutMeasure {
    /// How much an individual weighs.
    pub(super) fn weight(self, block: &Block, individual: u32) -> u64 {
        match self {
            Self::Records => u64::from(block.records(individual)),
            Self::Individuals => 1,
        }
    }

    /// What steps lose in each column; those of a hierarchy are in its nodes.
    pub(super) fn steps(self, block: &Block) -> Vec<Steps> {
        let step = |column: &QuasiIdentifier| match column {
            QuasiIdentifier::Numeric(n) => n.step,
            QuasiIdentifier::Categorical(c) => c.step,
            QuasiIdentifier::Hierarchical(_) => 0,
        };
        let columns = block.quasi_identifiers().iter();
        columns
            .map(|c| Steps::new(self, step(c), block.full()))
            .collect()
    }
}

/// The loss of so many steps from the first to the last value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    step: u64,
    /// Lost by the first step beside its length.
    first: u64,
}

impl Steps {
    fn new(measure: CutMeasure, step: u64, full: u64) -> Self {
        match measure {
            CutMeasure::Records => Self { step, first: 0 },
            CutMeasure::Individuals => {
                // A step is full / (values − 1); by counts it is full / values.
                let (step, full) = (u128::from(step), u128::from(full));
                let step = (step * full).checked_div(step + full).unwrap_or(0) as u64;
                Self { step, first: step }
            }
        }
    }

    pub(super) fn loss(self, steps: u32) -> u64 {
        match steps {
            0 => 0,
            _ => self
                .first
                .saturating_add(self.step.saturating_mul(u64::from(steps))),
        }
    }
}
