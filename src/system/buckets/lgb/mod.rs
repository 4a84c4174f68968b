//! Personalized privacy: each individual says which of its own values are secret (Li, He and Sun 2020, LGB).
//!
//! ```text
//!   People ──► Patterns    individuals by what they keep secret; small patterns are dropped or masked
//!                 │
//!        ┌────────┴─────────┐
//!        ▼                  ▼
//!    bucketize           generalize
//!    secret values       the other quasi-identifiers,
//!    per attribute       per pattern
//!        │                  │
//!     Buckets            Groups of at least k
//!        └────────┬─────────┘
//!                 ▼
//!             Anonymized ──► Loss
//! ```
//!
//! A group publishes one tuple of generalized quasi-identifiers. A bucket publishes its members and its values without
//! saying which belong together: permuted in place, or as two tables.
//!
//! # Blocks
//!
//! The order of the steps is fixed: who is published is decided before buckets are formed, because a member who
//! disappears from a bucket leaves it with fewer values. After that buckets and groups do not depend on each other.
//!
//! A block is a random sample of the table, and all of [`anonymize`] runs inside it: a block of similar individuals may
//! hold too many equal secrets though the table does not. A bucket is valid by itself, so blocks do not disturb each other as
//! long as no two share a bucket id, which whoever publishes them gives: the union of two l-unique buckets is not l-unique (docs/theory/papers.md G7). A pattern of
//! fewer than k in its block is small there, whatever other blocks have. A block in which a rule cannot hold is refused, with
//! the bound that would have worked; [`Frequent`] says how large blocks must be for that not to happen by chance.
//!
//! t-closeness per block needs the distribution of the whole table as [`Rule::Closeness`]'s reference; without it a
//! block is compared with itself, which says nothing about other blocks.

mod bucket;
#[cfg(test)]
mod example;
mod frequent;
mod group;
mod loss;
mod pattern;
mod people;
mod random;
mod refusal;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use crate::algorithm::Cancel;
use crate::engine::threads::Threads;

pub use bucket::{Buckets, bucketize};
pub use frequent::Frequent;
pub use group::{Group, generalize};
pub use loss::GroupLoss;
pub use pattern::{Patterns, Treatment};
pub use people::{LgbInput, QiInput, Rule, SecretCells, SensitiveInput, ValueOrder};
pub use refusal::{AttributePlace, Refusal, Unworkable};

use self::group::Set;

/// How local groups are formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Multi-dimensional partition (Li 2020, Algorithm 3): quick, even groups.
    Mdp,
    /// Little loss (Li 2020, Algorithm 4): narrower groups, some five times the time.
    Ncp,
}

/// What happens to patterns of fewer than k individuals (docs/theory/papers.md L1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmallPattern {
    /// Their individuals are not published.
    Drop,
    /// They are pooled, and every semi-sensitive column on which they differ is blank for all of them; if they are fewer
    /// than k together, they are not published.
    Mask,
}

/// What is asked for, besides the rules of the attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Smallest number of individuals in a local group.
    pub k: usize,
    /// How local groups are formed.
    pub strategy: Strategy,
    /// What happens to smaller patterns.
    pub small_pattern: SmallPattern,
}

/// What is published of [`LgbInput`], by their numbers. Flags are in it only as far as patterns show them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anonymized {
    /// Who is published, by pattern, and who is not.
    pub patterns: Patterns,
    /// The local groups. Every published individual is in one of them.
    pub groups: Vec<Group>,
    /// The buckets of each attribute with secret values, in the order of [`LgbInput::attributes`].
    pub buckets: Vec<Buckets>,
}

/// Work that does not depend on other work, once it is decided who is published.
#[derive(Clone, Copy)]
enum Task {
    /// The buckets of an attribute.
    Bucketize(usize),
    /// The groups of a pattern.
    Generalize(usize),
}

/// The result of a task.
enum Done {
    Buckets(Buckets),
    Groups(usize, Vec<Set>),
}

impl Task {
    /// How many individuals the task looks at, at most.
    fn individuals(self, people: &LgbInput, patterns: &Patterns) -> usize {
        match self {
            Self::Bucketize(_) => people.individuals(),
            Self::Generalize(pattern) => patterns.patterns[pattern].members.len(),
        }
    }

    fn run(
        self,
        people: &LgbInput,
        patterns: &Patterns,
        request: &Request,
        key: &[u8; 32],
        cancel: &Cancel,
    ) -> Result<Done, Refusal> {
        match self {
            Self::Bucketize(at) => {
                let secret = &people.secrets()[at];
                let owners = patterns.owners(people, at);
                let stream = 1 + at as u64;
                let (attribute, ranks, rule) = (secret.attribute, people.ranks(at), &secret.rule);
                let buckets = bucketize(attribute, ranks, owners, rule, key, stream, cancel)?;
                Ok(Done::Buckets(buckets))
            }
            Self::Generalize(at) => {
                let pattern = &patterns.patterns[at];
                let members = pattern.members.clone();
                let (k, strategy) = (request.k, request.strategy);
                let treatments = &pattern.treatments;
                let groups = generalize(people, treatments, members, k, strategy, cancel)?;
                Ok(Done::Groups(at, groups))
            }
        }
    }
}

/// Local generalization and bucketization (Li 2020, Algorithm 1).
///
/// The result depends on the people, the request and the key alone. `key` is secret and must not be used for other people:
/// two blocks with one key would get related ids and orders.
///
/// # Guarantee
///
/// Every group has at least k members of one pattern; every secret value that is published is in one bucket, and
/// every bucket satisfies the rule of its attribute; inside a bucket each of the possible orders of its values is equally
/// likely, independently for each bucket and attribute.
///
/// # Errors
///
/// [`Refusal::Unworkable`] if an attribute's rule cannot be satisfied; no rule is ever relaxed. That nobody is
/// published is not an error here, because a block may have only small patterns: see [`Patterns::largest`].
pub fn anonymize(
    people: &LgbInput,
    request: &Request,
    key: &[u8; 32],
    threads: &Threads,
    cancel: &Cancel,
) -> Result<Anonymized, Refusal> {
    let patterns = Patterns::of(people, request.k, request.small_pattern);
    let mut tasks: Vec<Task> = (0..people.attributes().len())
        .map(Task::Bucketize)
        .collect();
    tasks.extend((0..patterns.patterns.len()).map(Task::Generalize));
    // The largest first, so that no core is left with it at the end; the buckets stay in the order of their attributes.
    tasks.sort_by_key(|task| Reverse(task.individuals(people, &patterns)));
    let work = |task: Task| task.run(people, &patterns, request, key, cancel);
    let (mut buckets, mut sets) = (vec![], vec![]);
    for done in threads.each(tasks, work) {
        match done? {
            Done::Buckets(formed) => buckets.push(formed),
            Done::Groups(pattern, formed) => sets.push((pattern, formed)),
        }
    }
    sets.sort_unstable_by_key(|(pattern, _)| *pattern);
    let mut groups = vec![];
    for (pattern, formed) in sets {
        let treatments = patterns.patterns[pattern].treatments.iter();
        let blank = treatments.filter(|t| **t == Treatment::Blank).count() as u64;
        let blank = people.full().saturating_mul(blank);
        groups.extend(formed.into_iter().map(|set: Set| Group {
            pattern,
            members: set.members,
            loss: set.loss.saturating_add(blank),
        }));
    }
    Ok(Anonymized {
        patterns,
        groups,
        buckets,
    })
}
