//! Groups by little loss (Li 2020, Algorithm 4): divide between two distant seeds, as the top-down algorithm of Xu 2006.
//!
//! A group never loses more than one that holds it, so every division that leaves k on both sides is worth making. The
//! printed algorithm gives up where a side falls short of k; here that side is filled up with its nearest from the other
//! side, as Xu 2006 does. Where cutting one column beside its median leaves less loss than the seeds do, the cut is taken.
//! Seeds serve small sets best: in large ones both sides soon reach everywhere, overlap, and are not worth their time. Which
//! column of a large set to cut is judged by some of its members.

use std::ops::Range;

use super::sets::Sets;
use crate::system::buckets::lgb::people::{CodedColumn, Extent};

/// How often a seed is replaced by the member that is farthest from the other one.
const SEED_ROUNDS: usize = 3;

/// Sets of more than so many times k are cut, if any column allows it. Measured on Adult and Census-Income with k of 5 and
/// 10: the loss is least, within 1 %, from 8 to 16. Where no column allows a cut, almost all members are alike, so that
/// few divisions follow: the time stays near linear.
const SEED_SETS: usize = 12;

/// Sets of more than so many are judged by so many of their members. Measured on Census-Income with k of 5 and 10: the loss is
/// least, within 1 %, from 64 to 256, and 4 to 6 % less than by all members, whose extremes hide what most of them have. In a
/// tenth of that table it is up to 1.6 % more.
const SAMPLE: usize = 128;

/// Divides a set into two parts of at least `k` with little loss; how many are in the left one. `None` if the set is
/// smaller than 2k or all its members are alike.
pub(super) fn halve(sets: &mut Sets, set: Range<usize>, k: usize) -> Option<usize> {
    if set.len() < 2 * k {
        return None;
    }
    // Where all members are alike, nothing is lost, now or later.
    // A division that loses too much shows it soonest in the widest columns.
    let widest = sets.widest(set.clone());
    let mut columns = widest.clone();
    columns.sort_unstable();
    if set.len() > SAMPLE && set.len() > k.saturating_mul(SEED_SETS) {
        let cuts = by_sample(sets, &columns, &widest, set.clone());
        if let Some(left) = sets.cut_first(&cuts, set.clone(), k) {
            return Some(left);
        }
    }
    let mut best: Option<(u128, Vec<bool>)> = None;
    for column in &columns {
        if let Some(left) = sets.below_bound(*column, set.clone(), k) {
            offer(&mut best, sets, &widest, set.clone(), left);
        }
    }
    if best.is_none() || set.len() <= k.saturating_mul(SEED_SETS) {
        let part = Part {
            sets,
            columns: &columns,
            set: set.clone(),
        };
        let left = part.between_seeds(k)?;
        offer(&mut best, sets, &widest, set.clone(), left);
    }
    best.map(|(_, left)| sets.separate(set, &left, columns))
}

/// The columns of a large set, those first after whose cut its members lose least, as far as the first of them tell: they
/// stand in random order.
fn by_sample(
    sets: &mut Sets,
    columns: &[usize],
    widest: &[usize],
    set: Range<usize>,
) -> Vec<usize> {
    let sample = set.start..set.start + SAMPLE;
    let mut cuts: Vec<(u128, usize)> = vec![];
    for column in columns {
        let mut loss = u128::MAX;
        if let Some(left) = sets.below_bound(*column, sample.clone(), 1) {
            let lost = loss_after(sets, widest, sample.clone(), &left, u128::MAX);
            loss = lost.unwrap_or(loss);
        }
        cuts.push((loss, *column));
    }
    cuts.sort_unstable();
    cuts.into_iter().map(|(_, column)| column).collect()
}

/// Keeps the division after which the members lose least; the first of several.
fn offer(
    best: &mut Option<(u128, Vec<bool>)>,
    sets: &mut Sets,
    columns: &[usize],
    set: Range<usize>,
    left: Vec<bool>,
) {
    let least = best.as_ref().map_or(u128::MAX, |(least, _)| *least);
    if let Some(loss) = loss_after(sets, columns, set, &left, least) {
        *best = Some((loss, left));
    }
}

/// What all members lose after a division, if it is less than `least`.
fn loss_after(
    sets: &mut Sets,
    columns: &[usize],
    set: Range<usize>,
    left: &[bool],
    least: u128,
) -> Option<u128> {
    let in_left = left.iter().filter(|l| **l).count() as u128;
    let in_right = left.len() as u128 - in_left;
    let mut loss = 0;
    for column in columns {
        let [of_left, of_right] = sets.losses_of_parts(*column, set.clone(), left);
        loss += u128::from(of_left) * in_left + u128::from(of_right) * in_right;
        if loss >= least {
            return None;
        }
    }
    Some(loss)
}

/// A set that is divided between two of its members, by the columns in which they differ. Members are places in it.
struct Part<'a> {
    sets: &'a Sets<'a>,
    columns: &'a [usize],
    set: Range<usize>,
}

impl Part<'_> {
    /// Gives every member to the seed whose side loses less by it; `None` if all members are alike.
    fn between_seeds(&self, k: usize) -> Option<Vec<bool>> {
        let (a, b) = self.seeds()?;
        let (mut left, mut right) = (self.side(a), self.side(b));
        for at in (0..self.set.len()).filter(|at| ![a, b].contains(at)) {
            let (to_left, to_right) = (self.added_loss(&left, at), self.added_loss(&right, at));
            // A tie goes to the smaller side.
            let is_left = (to_left, left.members.len()) <= (to_right, right.members.len());
            let side = if is_left { &mut left } else { &mut right };
            for ((column, rank), (extent, loss)) in self.ranks(at).zip(&mut side.extents) {
                *loss = column.loss_with(extent, rank);
                extent.include(rank);
            }
            side.members.push(at);
        }
        self.fill_up(&mut left, &mut right, k);
        self.fill_up(&mut right, &mut left, k);
        let mut is_left = vec![false; self.set.len()];
        for at in left.members {
            is_left[at] = true;
        }
        Some(is_left)
    }

    /// Two members far from each other; `None` if all are alike.
    fn seeds(&self) -> Option<(usize, usize)> {
        // Members stand in random order.
        let (mut a, mut b) = (0, 0);
        for _ in 0..SEED_ROUNDS {
            let seed = self.side(b);
            let mut farthest = (0, b);
            for at in 0..self.set.len() {
                let distance = self.added_loss(&seed, at);
                if distance > farthest.0 {
                    farthest = (distance, at);
                }
            }
            if farthest.0 == 0 {
                return None;
            }
            (a, b) = (b, farthest.1);
        }
        Some((a, b))
    }

    fn side(&self, seed: usize) -> Side {
        let ranks = self.ranks(seed);
        Side {
            extents: ranks
                .map(|(column, rank)| (column.extent(rank), 0))
                .collect(),
            members: vec![seed],
        }
    }

    /// What all members of a side and the new one lose more when it joins.
    fn added_loss(&self, side: &Side, member: usize) -> u128 {
        let members = side.members.len() as u128;
        let extents = self.ranks(member).zip(&side.extents);
        let added = extents.map(|((column, rank), (extent, loss))| {
            let joined = column.loss_with(extent, rank);
            members * u128::from(joined - loss) + u128::from(joined)
        });
        added.sum()
    }

    /// Takes the nearest members of the other side until this one has `k`.
    fn fill_up(&self, side: &mut Side, other: &mut Side, k: usize) {
        let missing = k.saturating_sub(side.members.len());
        if missing == 0 {
            return;
        }
        let distance = |member: &usize| (self.added_loss(side, *member), *member);
        let mut near: Vec<(u128, usize)> = other.members.iter().map(distance).collect();
        near.sort_unstable();
        let keep = near.split_off(missing.min(near.len()));
        side.members
            .extend(near.into_iter().map(|(_, member)| member));
        other.members = keep.into_iter().map(|(_, member)| member).collect();
    }

    /// The columns with the rank of a member in each.
    fn ranks(&self, member: usize) -> impl Iterator<Item = (&CodedColumn, u32)> + '_ {
        let at = self.set.start + member;
        let rank = move |column: usize| self.sets.ranks(column, at..at + 1)[0];
        let columns = self.columns.iter();
        columns.map(move |column| (self.sets.columns[*column], rank(*column)))
    }
}

/// A part that grows around its seed.
struct Side {
    /// What its members publish in each column, and what each of them loses there.
    extents: Vec<(Extent, u64)>,
    members: Vec<usize>,
}
