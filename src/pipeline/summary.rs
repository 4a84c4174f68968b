//! What a finished plan has to tell.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

use super::operator::{AnonymizeExec, IndividualsExec};

/// Counts of an anonymization, read from the metrics of its executed plan.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Summary {
    /// Records read.
    pub records_in: u64,
    /// Records published.
    pub records_out: u64,
    /// Records that repeated another one of the same individual and were published once.
    pub duplicates: u64,
    /// Individuals read.
    pub individuals: u64,
    /// Individuals that are not published, also those that the call leaves out because of their records.
    pub suppressed: u64,
    /// Classes formed.
    pub classes: u64,
    /// Blocks worked on.
    pub blocks: u64,
    /// Normalized information loss (Wang 2018, Eq. 15) from 0 to 1; suppressed individuals count as lost.
    pub information_loss: f64,
    /// The same of published individuals only.
    pub published_loss: f64,
}

impl Summary {
    /// The summary of the first anonymization in an executed plan.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let metrics = find::<AnonymizeExec>(plan)?.metrics()?;
        let gathered = find::<IndividualsExec>(plan)?.metrics()?;
        let published = |name: &str| count(&metrics, name);
        let gathered = |name: &str| count(&gathered, name);
        let dropped = gathered("dropped_individuals");
        Some(Self {
            records_in: gathered("records"),
            records_out: metrics.output_rows().unwrap_or_default() as u64,
            duplicates: gathered("duplicate_records"),
            individuals: published("individuals") + dropped,
            suppressed: published("suppressed_individuals") + dropped,
            classes: published("classes"),
            blocks: published("blocks"),
            information_loss: loss(&metrics, "information_loss"),
            published_loss: loss(&metrics, "published_loss"),
        })
    }
}

/// The first operator of this type in a plan.
pub(super) fn find<T: ExecutionPlan>(plan: &Arc<dyn ExecutionPlan>) -> Option<&T> {
    let here = plan.as_ref().downcast_ref::<T>();
    here.or_else(|| plan.children().into_iter().find_map(find::<T>))
}

fn count(metrics: &MetricsSet, name: &str) -> u64 {
    metrics
        .sum_by_name(name)
        .map_or(0, |value| value.as_usize() as u64)
}

fn loss(metrics: &MetricsSet, name: &str) -> f64 {
    match metrics.sum_by_name(name) {
        Some(MetricValue::Ratio { ratio_metrics, .. }) if ratio_metrics.total() > 0 => {
            ratio_metrics.part() as f64 / ratio_metrics.total() as f64
        }
        _ => 0.0,
    }
}
