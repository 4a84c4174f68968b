//! How long classes were formed, from the metrics of the operator that does it.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

/// Seconds in which classes were formed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Phase {
    /// Of all partitions together: the work.
    pub work: f64,
    /// Of the partition with the most: how long the phase takes where each partition has a core.
    pub wall: f64,
}

/// The phase of the first operator that forms classes in an executed plan.
pub fn forming(plan: &Arc<dyn ExecutionPlan>) -> Option<Phase> {
    if plan.name() != "AnonymizeExec" {
        return plan.children().into_iter().find_map(forming);
    }
    let mut partitions = BTreeMap::new();
    for metric in plan.metrics()?.iter() {
        if metric.value().name() == "time_forming_classes" {
            let seconds = metric.value().as_usize() as f64 / 1e9;
            *partitions.entry(metric.partition()).or_insert(0.0) += seconds;
        }
    }
    let seconds = || partitions.values().copied();
    Some(Phase {
        work: seconds().sum(),
        wall: seconds().fold(0.0, f64::max),
    })
}
