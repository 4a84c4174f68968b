//! The fingerprint step with its test: whether classes can be formed from what it publishes.

use std::fmt;
use std::sync::Arc;

use super::{Generalized, SensitiveStep, UNPUBLISHED};
use crate::algorithm::{Cancel, Cancelled};
use crate::engine::threads::Threads;
use crate::model::{Catalogue, KlDiversity, Member, ParameterError, Parameters, Shares, Value};
use crate::table::{Fingerprints, Hierarchy};

/// Fingerprints as they will be published, and the model for classes of them.
#[derive(Debug)]
pub struct Prepared {
    /// What each individual publishes.
    pub generalized: Generalized,
    /// The model for classes, over the numbers of `generalized`.
    pub model: KlDiversity,
    /// How common the most common fingerprint and value of the whole table are.
    pub shares: Shares,
}

/// The parameters cannot be reached together; says which can (docs/theory/papers.md M4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// Individuals with sensitive values.
    pub individuals: u64,
    /// The largest l that works with the given k.
    pub largest_l: Option<u64>,
    /// The largest k that works with the given l, if the given one does not.
    pub largest_k: Option<u64>,
    /// The largest `value_l` that works with the given k, if the given one, or the default, does not: 1 for the default.
    pub largest_value_l: Option<u64>,
}

/// Generalizes fingerprints of leaf positions by k with a sensitive step, and tests that the whole table satisfies the model: if it did not,
/// cutting it into classes could not begin, and the printed algorithm would publish it as it is.
pub fn prepare(
    step: &dyn SensitiveStep,
    parameters: &Parameters,
    fingerprints: &Fingerprints,
    tree: &Arc<Hierarchy>,
    threads: &Threads,
    cancel: &Cancel,
) -> Result<Result<Prepared, Unreachable>, Failure> {
    let (k, l) = (parameters.integer("k")?, parameters.integer("l")?);
    let value_l = parameters.integer("value_l").ok();
    let attempt = |k: u64| attempt(step, parameters, k, fingerprints, tree, threads, cancel);
    let prepared = attempt(k)?;
    let shares = prepared.shares;
    let values_work = shares.individuals == 0 || shares.largest_value_l() >= value_l.unwrap_or(1);
    if shares.largest_l() >= l && values_work {
        return Ok(Ok(prepared));
    }
    let has_values = |i: &u32| !fingerprints.of(*i).is_empty();
    let individuals = (0..fingerprints.len() as u32).filter(has_values).count() as u64;
    let largest_k = match shares.largest_l() >= l {
        true => None,
        false => largest_below(k.min(individuals + 1), |k| {
            Ok(attempt(k)?.shares.largest_l() >= l)
        })?,
    };
    Ok(Err(Unreachable {
        individuals,
        largest_l: Some(shares.largest_l()).filter(|l| *l >= 2),
        largest_k,
        largest_value_l: (!values_work).then(|| shares.largest_value_l()),
    }))
}

fn attempt(
    step: &dyn SensitiveStep,
    parameters: &Parameters,
    k: u64,
    fingerprints: &Fingerprints,
    tree: &Arc<Hierarchy>,
    threads: &Threads,
    cancel: &Cancel,
) -> Result<Prepared, Failure> {
    let share = usize::try_from(k).unwrap_or(usize::MAX);
    let generalized = step.generalize(share, fingerprints, tree, threads, cancel)?;
    let catalogue = Catalogue::new(Arc::clone(tree), generalized.sets.clone(), threads);
    let mut parameters = parameters.clone();
    parameters.set("k", Value::Integer(k));
    let model = KlDiversity::over(&parameters, Arc::new(catalogue))?;
    let published = generalized.of.iter().filter(|set| **set != UNPUBLISHED);
    let shares = model.shares(&mut published.map(|set| Member {
        records: 1,
        fingerprint: std::slice::from_ref(set),
        counts: &[1],
        ..Member::default()
    }));
    Ok(Prepared {
        generalized,
        model,
        shares,
    })
}

/// The largest k of at least 2 and below `k` that was seen to work, found by halving. Fewer fingerprints are shared by
/// more, so that larger ones work less often, but not always.
fn largest_below(
    k: u64,
    works: impl Fn(u64) -> Result<bool, Failure>,
) -> Result<Option<u64>, Failure> {
    let (mut known, mut low, mut high) = (None, 2, k);
    while low < high {
        let middle = low + (high - low) / 2;
        if works(middle)? {
            known = Some(middle);
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(known)
}

/// Why fingerprints were not prepared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Nobody waits any more.
    Cancelled,
    /// A parameter is missing.
    Parameter(ParameterError),
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<ParameterError> for Failure {
    fn from(error: ParameterError) -> Self {
        Self::Parameter(error)
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut advice = vec![];
        if let Some(l) = self.largest_l {
            advice.push(format!("with this k the largest l that works is {l}"));
        }
        if let Some(k) = self.largest_k {
            advice.push(format!("with this l the largest k found to work is {k}"));
        }
        match self.largest_value_l {
            None => {}
            Some(0) => advice.push("one value is published of everybody".to_owned()),
            Some(1) => advice.push("no value_l works, but leaving it out does".to_owned()),
            Some(l) => advice.push(format!("the largest value_l that works is {l}")),
        }
        match advice.is_empty() {
            true => write!(f, "no k and l work for {} individuals", self.individuals),
            false => f.write_str(&advice.join("; ")),
        }
    }
}
