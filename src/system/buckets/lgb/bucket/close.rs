//! Buckets that look like the whole: t-closeness for attributes with few values.
//!
//! Li 2020 uses t-closeness for an attribute of two values and gives no algorithm. This one is ours: the owners, sorted
//! by value, are dealt like cards to B buckets, the i-th to bucket i mod B. So each bucket gets ⌊c / B⌋ or ⌈c / B⌉ of
//! every stretch of c neighbouring values, and is as like the whole as whole numbers allow. B is the largest number for
//! which every bucket passes.

use super::{Drafts, Owners};
use crate::algorithm::{Cancel, Cancelled};
use crate::model::Ratio;
use crate::system::buckets::lgb::ValueOrder;

/// Steps of the bound that a refusal proposes.
const STEPS: u128 = 1_000_000;

/// Deals all owners to as many buckets as pass; the smallest t that works if not even one does.
pub(super) fn deal(
    owners: &Owners,
    t: Ratio,
    order: ValueOrder,
    reference: Option<&[u64]>,
    cancel: &Cancel,
) -> Result<Result<Drafts, Option<Ratio>>, Cancelled> {
    let individuals = owners.sorted.len();
    if individuals == 0 {
        return Ok(Ok(Drafts::default()));
    }
    let target = Target::new(owners, order, reference);
    if owners.values.len() < 2 {
        return Ok(Err(None));
    }
    if !target.admits(1, 0, t) {
        return Ok(Err(target.distance(1, 0).and_then(Distance::rounded_up)));
    }
    let mut buckets = 1;
    let mut tried = usize::MAX;
    for size in 2..=individuals {
        let number = individuals / size;
        if number == tried {
            continue;
        }
        tried = number;
        cancel.check()?;
        if (0..number).all(|bucket| target.admits(number, bucket, t)) {
            buckets = number;
            break;
        }
    }
    let mut drafts = Drafts::default();
    for bucket in 0..buckets {
        drafts
            .members
            .extend(owners.sorted.iter().skip(bucket).step_by(buckets));
        drafts.close();
    }
    Ok(Ok(drafts))
}

/// What buckets are compared with.
struct Target {
    order: ValueOrder,
    /// Per value of the owners or of the reference, in their order: owners and reference up to and with this value.
    cumulative: Vec<(usize, u64)>,
    individuals: usize,
    whole: u64,
}

/// A distance as a fraction.
#[derive(Clone, Copy)]
struct Distance {
    numerator: u128,
    denominator: u128,
}

impl Target {
    fn new(owners: &Owners, order: ValueOrder, reference: Option<&[u64]>) -> Self {
        let individuals = owners.sorted.len();
        let mut cumulative = vec![];
        let mut whole = 0;
        match reference {
            None => {
                let ends = owners.starts[1..].iter();
                cumulative.extend(ends.map(|end| (*end, *end as u64)));
                whole = individuals as u64;
            }
            Some(counts) => {
                let last = owners.values.last().map_or(0, |rank| *rank as usize + 1);
                let mut place = 0;
                for rank in 0..counts.len().max(last) {
                    let count = counts.get(rank).copied().unwrap_or(0);
                    let own = owners.values.get(place) == Some(&(rank as u32));
                    place += usize::from(own);
                    whole += count;
                    if own || count > 0 {
                        cumulative.push((owners.starts[place], whole));
                    }
                }
            }
        }
        Self {
            order,
            cumulative,
            individuals,
            whole,
        }
    }

    /// Whether a bucket lies within t and holds two different values.
    fn admits(&self, buckets: usize, bucket: usize, t: Ratio) -> bool {
        let mut values = 0;
        let mut before = 0;
        for (end, _) in &self.cumulative {
            let until = dealt(*end, buckets, bucket);
            values += usize::from(until > before);
            before = until;
        }
        values >= 2
            && self
                .distance(buckets, bucket)
                .is_some_and(|distance| distance.is_at_most(t))
    }

    /// How far a bucket is from the reference; `None` beyond 128 bits.
    fn distance(&self, buckets: usize, bucket: usize) -> Option<Distance> {
        let size = dealt(self.individuals, buckets, bucket) as u128;
        let whole = u128::from(self.whole);
        let (mut sum, mut before) = (0u128, (0, 0));
        for (end, reference) in &self.cumulative {
            let until = (dealt(*end, buckets, bucket), *reference);
            let (own, theirs) = match self.order {
                // Li 2007: the sum over all values of what lies up to each.
                ValueOrder::Numeric => until,
                ValueOrder::Nominal => (until.0 - before.0, until.1 - before.1),
            };
            let difference = (own as u128 * whole).abs_diff(u128::from(theirs) * size);
            sum = sum.checked_add(difference)?;
            before = until;
        }
        let parts = match self.order {
            ValueOrder::Nominal => 2,
            ValueOrder::Numeric => (self.cumulative.len() as u128).saturating_sub(1),
        };
        Some(Distance {
            numerator: sum,
            denominator: size.checked_mul(whole)?.checked_mul(parts)?,
        })
    }
}

impl Distance {
    fn is_at_most(self, t: Ratio) -> bool {
        let left = self.numerator.checked_mul(u128::from(t.denominator()));
        let right = self.denominator.checked_mul(u128::from(t.numerator()));
        // Numbers too large to compare count as too far.
        matches!((left, right), (Some(left), Some(right)) if left <= right && self.denominator > 0)
    }

    fn rounded_up(self) -> Option<Ratio> {
        let steps = self.numerator.checked_mul(STEPS)?;
        let steps = steps.checked_add(self.denominator.checked_sub(1)?)? / self.denominator;
        Ratio::new(u64::try_from(steps).ok()?, STEPS as u64)
    }
}

/// How many of the first `cards` a bucket is dealt.
fn dealt(cards: usize, buckets: usize, bucket: usize) -> usize {
    (cards + buckets - 1 - bucket) / buckets
}
