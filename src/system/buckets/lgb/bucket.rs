//! Local buckets: who shares secrets with whom, and who shows whose (Li 2020, Algorithm 2).
//!
//! ```text
//!   owners of secret values ──► sorted by rank, random among equals
//!        │
//!        ├─ Diversity: ranges of values, each l-eligible      (ranges)
//!        │             buckets within each range              (assign)
//!        └─ Closeness: dealt like cards to buckets            (close)
//!        ▼
//!   buckets; inside each, every member shows the value of a random one
//! ```

mod assign;
mod close;
mod ranges;

use super::random::Random;
use super::{AttributePlace, Refusal, Rule, Unworkable};
use crate::algorithm::Cancel;

/// Stands for "no bucket" and "nobody".
const NONE: u32 = u32::MAX;

/// The buckets of one attribute, in no order to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    bucket_of: Vec<u32>,
    shows: Vec<u32>,
    offsets: Vec<u32>,
    members: Vec<u32>,
}

/// The owners of an attribute's secret values, sorted by value.
pub(super) struct Owners {
    /// Individuals by the rank of their value, in random order among equals.
    pub sorted: Vec<u32>,
    /// Where each different value begins in `sorted`, and the end.
    pub starts: Vec<usize>,
    /// The ranks of the different values.
    pub values: Vec<u32>,
}

/// Buckets before they are numbered: the members of each, one after the other.
#[derive(Default)]
pub(super) struct Drafts {
    pub members: Vec<u32>,
    /// One past the last member of each bucket.
    pub ends: Vec<u32>,
}

/// Puts the secret values of one attribute into buckets that satisfy `rule`.
///
/// `ranks` are those of all individuals, `owners` the individuals whose value is secret and published. The random
/// choices are those of the `stream` of `key`; no two attributes or blocks may use the same stream of one key.
///
/// # Errors
///
/// [`Unworkable::Diversity`] or [`Unworkable::Closeness`] with the best bound that works, if no buckets can satisfy the
/// rule (docs/theory/papers.md L2).
///
/// # Runtime
///
/// O(n log n) for n owners, and 16 bytes each.
pub fn bucketize(
    attribute: AttributePlace,
    ranks: &[u32],
    owners: Vec<u32>,
    rule: &Rule,
    key: &[u8; 32],
    stream: u64,
    cancel: &Cancel,
) -> Result<Buckets, Refusal> {
    let mut random = Random::new(key, stream);
    let owners = Owners::sort(owners, ranks, &mut random);
    let drafts = match rule {
        Rule::Diversity { l } => {
            let most = owners.counts().max().unwrap_or(0);
            if most as u128 * u128::from(*l) > owners.sorted.len() as u128 {
                let owners = owners.sorted.len();
                let (l, attribute) = (*l, attribute);
                let refusal = Unworkable::Diversity {
                    attribute,
                    l,
                    owners,
                    most,
                };
                return Err(refusal.into());
            }
            let mut drafts = Drafts::default();
            for range in ranges::divide(&owners, *l as usize, cancel)? {
                assign::assign(&owners, range, *l as usize, &mut drafts);
                cancel.check()?;
            }
            drafts
        }
        Rule::Closeness {
            t,
            order,
            reference,
        } => close::deal(&owners, *t, *order, reference.as_deref(), cancel)?.map_err(|best| {
            let (t, attribute) = (*t, attribute);
            Unworkable::Closeness { attribute, t, best }
        })?,
    };
    Ok(drafts.permute(ranks.len(), &mut random))
}

impl Owners {
    fn sort(mut owners: Vec<u32>, ranks: &[u32], random: &mut Random) -> Self {
        random.shuffle(&mut owners);
        let ranked = owners.iter().map(|owner| (ranks[*owner as usize], *owner));
        let mut ranked: Vec<(u32, u32)> = ranked.collect();
        // Stable, so that equals stay in random order.
        ranked.sort_by_key(|(rank, _)| *rank);
        let (mut starts, mut values) = (vec![], vec![]);
        for (at, (rank, owner)) in ranked.into_iter().enumerate() {
            if values.last() != Some(&rank) {
                values.push(rank);
                starts.push(at);
            }
            owners[at] = owner;
        }
        starts.push(owners.len());
        Self {
            sorted: owners,
            starts,
            values,
        }
    }

    /// How many owners have the value of this place.
    pub fn count(&self, value: usize) -> usize {
        self.starts[value + 1] - self.starts[value]
    }

    fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.values.len()).map(|value| self.count(value))
    }
}

impl Drafts {
    /// Ends the bucket of the members that were pushed last.
    pub fn close(&mut self) {
        self.ends.push(self.members.len() as u32);
    }

    /// Gives every member the value of a random one of its bucket, itself included (L4).
    fn permute(self, individuals: usize, random: &mut Random) -> Buckets {
        let mut bucket_of = vec![NONE; individuals];
        let mut shows = vec![NONE; individuals];
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        let mut begin = 0;
        let mut donors = vec![];
        for (bucket, end) in self.ends.iter().enumerate() {
            let members = &self.members[begin..*end as usize];
            donors.clear();
            donors.extend_from_slice(members);
            random.shuffle(&mut donors);
            for (member, donor) in members.iter().zip(&donors) {
                bucket_of[*member as usize] = bucket as u32;
                shows[*member as usize] = *donor;
            }
            begin = *end as usize;
            offsets.push(*end);
        }
        Buckets {
            bucket_of,
            shows,
            offsets,
            members: self.members,
        }
    }
}

impl Buckets {
    /// Number of buckets.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The members of a bucket, as they were put together: not an order to publish.
    pub fn members(&self, bucket: usize) -> &[u32] {
        &self.members[self.offsets[bucket] as usize..self.offsets[bucket + 1] as usize]
    }

    /// The bucket of an individual's value.
    pub fn of(&self, individual: u32) -> Option<usize> {
        match self.bucket_of[individual as usize] {
            NONE => None,
            bucket => Some(bucket as usize),
        }
    }

    /// Permuted in place: whose value an individual shows.
    pub fn shown(&self, individual: u32) -> Option<u32> {
        self.of(individual).map(|_| self.shows[individual as usize])
    }
}

#[cfg(test)]
mod tests;
