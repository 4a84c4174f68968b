//! How far a run is, for whoever shows it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;

use crate::pipeline::{Phase, Step, steps};

/// How far a run is. Clones tell of the same run.
#[derive(Clone, Default)]
pub struct Progress(Arc<State>);

#[derive(Default)]
struct State {
    plan: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    written: AtomicU64,
    /// Phases after writing.
    later: Mutex<Vec<Step>>,
}

impl Progress {
    /// The phases up to the one that the run is in.
    pub fn steps(&self) -> Vec<Step> {
        let mut all = self.0.plan.lock().as_ref().map(steps).unwrap_or_default();
        let done = self.0.written.load(Ordering::Relaxed);
        let later = self.0.later.lock();
        if done > 0 {
            let of = (!later.is_empty()).then_some(done);
            let phase = Phase::Writing;
            all.push(Step { phase, done, of });
        }
        all.extend(later.iter());
        all
    }

    /// The plan that gives the rows begins to run.
    pub(super) fn begin(&self, plan: &Arc<dyn ExecutionPlan>) {
        *self.0.plan.lock() = Some(Arc::clone(plan));
    }

    /// So many rows more go to the writer.
    pub(super) fn add_written(&self, rows: usize) {
        self.0.written.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// A phase after writing begins.
    pub(super) fn enter(&self, phase: Phase, of: Option<u64>) {
        self.0.later.lock().push(Step { phase, done: 0, of });
    }

    /// So many records more are done in this phase.
    pub(super) fn add(&self, records: u64) {
        if let Some(step) = self.0.later.lock().last_mut() {
            step.done += records;
        }
    }

    /// The plan is no longer needed.
    pub(super) fn end(&self) {
        let steps = self.steps();
        *self.0.later.lock() = steps;
        *self.0.plan.lock() = None;
        self.0.written.store(0, Ordering::Relaxed);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.steps()).finish()
    }
}
