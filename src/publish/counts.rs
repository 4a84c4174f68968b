//! Counts of people in a manifest: what is too small to be told is hidden.

use crate::pipeline::Summary;
use crate::release::{Count, Counts};

/// Hides what is too small, and what it could be computed from.
pub(super) fn told(hidden_below: u64, summary: &Summary) -> Counts {
    let published = summary.individuals.saturating_sub(summary.suppressed);
    let suppressed = Count::hidden_below(hidden_below, summary.suppressed);
    let hidden = matches!(suppressed, Count::Hidden { .. });
    let total = |count| {
        if hidden {
            Count::Hidden { hidden_below }
        } else {
            Count::hidden_below(hidden_below, count)
        }
    };
    Counts {
        hidden_below,
        individuals_in: total(summary.individuals),
        individuals_out: published,
        individuals_suppressed: suppressed,
        records_in: total(summary.records_in),
        records_out: summary.records_out,
        classes: summary.classes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_and_what_tells_them_are_hidden() {
        let summary = |suppressed| Summary {
            individuals: 100,
            suppressed,
            records_in: 300,
            records_out: 290,
            ..Summary::default()
        };
        let hidden = Count::Hidden { hidden_below: 5 };
        let counts = told(5, &summary(4));
        assert_eq!(counts.individuals_suppressed, hidden);
        assert_eq!(counts.individuals_in, hidden);
        assert_eq!(counts.records_in, hidden);
        assert_eq!(counts.individuals_out, 96);
        let counts = told(5, &summary(5));
        assert_eq!(counts.individuals_suppressed, Count::Exact(5));
        assert_eq!(counts.individuals_in, Count::Exact(100));
        let counts = told(5, &summary(0));
        assert_eq!(counts.individuals_suppressed, Count::Exact(0));
    }
}
