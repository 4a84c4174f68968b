//! Groups by little loss (Li 2020, Algorithm 4): divide between two distant seeds, as the top-down algorithm of Xu 2006.
//!
//! A group never loses more than one that holds it, so every division that leaves k on both sides is worth making. The
//! printed algorithm gives up where a side falls short of k; here that side is filled up with its nearest from the other
//! side, as Xu 2006 does. Where cutting one column beside its median leaves less loss than the seeds do, the cut is taken.
//! Seeds serve small sets best: in large ones both sides soon reach everywhere, overlap, and are not worth their time.

use std::ops::Range;

use super::sets::Sets;
use crate::table::Region;

/// How often a seed is replaced by the member that is farthest from the other one.
const SEED_ROUNDS: usize = 3;

/// Sets of more than so many times k are cut, if any column allows it. Measured on Adult and Census-Income with k of 5 and
/// 10: the loss is least, within 1 %, from 8 to 16. Where no column allows a cut, almost all members are alike, so that
/// few divisions follow: the time stays near linear.
const SEED_SETS: usize = 12;

/// Divides a set into two parts of at least `k` with little loss; how many are in the left one. `None` if the set is
/// smaller than 2k or all its members are alike.
pub(super) fn halve(sets: &mut Sets, set: Range<usize>, k: usize) -> Option<usize> {
    if set.len() < 2 * k {
        return None;
    }
    // Where all members are alike, nothing is lost, now or later.
    let columns = 0..sets.columns.len();
    let columns = columns.filter(|column| sets.width(*column, set.clone()).1);
    let columns: Vec<usize> = columns.collect();
    let mut best: Option<(u128, Vec<bool>)> = None;
    for column in &columns {
        if let Some(bound) = sets.bound(*column, set.clone(), k) {
            let ranks = sets.ranks(*column, set.clone());
            let left = ranks.iter().map(|rank| *rank < bound).collect();
            offer(&mut best, sets, &columns, set.clone(), left);
        }
    }
    if best.is_none() || set.len() <= k.saturating_mul(SEED_SETS) {
        let part = Part {
            sets,
            columns: &columns,
            set: set.clone(),
        };
        let left = part.between_seeds(k)?;
        offer(&mut best, sets, &columns, set.clone(), left);
    }
    best.map(|(_, left)| sets.separate(set, &left, columns))
}

/// Keeps the division after which the members lose least; the first of several.
fn offer(
    best: &mut Option<(u128, Vec<bool>)>,
    sets: &mut Sets,
    columns: &[usize],
    set: Range<usize>,
    left: Vec<bool>,
) {
    let size = left.iter().filter(|l| **l).count();
    let (mut left_loss, mut right_loss) = (0, 0);
    for column in columns {
        let [of_left, of_right] = sets.losses_of_parts(*column, set.clone(), &left);
        left_loss += u128::from(of_left);
        right_loss += u128::from(of_right);
    }
    let loss = left_loss * size as u128 + right_loss * (left.len() - size) as u128;
    if best.as_ref().is_none_or(|(least, _)| loss < *least) {
        *best = Some((loss, left));
    }
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
            for ((column, example), region) in self.examples(at).zip(&mut side.regions) {
                region.include(&self.sets.columns[column].block, example);
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
        let region =
            |(column, example): (usize, u32)| Region::of(&self.sets.columns[column].block, example);
        Side {
            regions: self.examples(seed).map(region).collect(),
            members: vec![seed],
        }
    }

    /// What all members of a side and the new one lose more when it joins.
    fn added_loss(&self, side: &Side, member: usize) -> u128 {
        let examples = self.examples(member).zip(&side.regions);
        examples
            .map(|((column, example), region)| {
                region.distance_to(&self.sets.columns[column].block, example)
            })
            .sum()
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

    /// Per column somebody with the value of a member.
    fn examples(&self, member: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let at = self.set.start + member;
        self.columns.iter().map(move |column| {
            let rank = self.sets.ranks(*column, at..at + 1)[0];
            (*column, self.sets.columns[*column].example(rank))
        })
    }
}

/// A part that grows around its seed.
struct Side {
    regions: Vec<Region>,
    members: Vec<usize>,
}
