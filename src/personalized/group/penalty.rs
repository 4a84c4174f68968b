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
    let mut best: Option<(u128, Vec<bool>)> = None;
    for column in 0..sets.columns.len() {
        if let Some(bound) = sets.bound(column, set.clone(), k) {
            let ranks = sets.ranks(column, set.clone());
            let left = ranks.iter().map(|rank| *rank < bound).collect();
            offer(&mut best, sets, set.clone(), left);
        }
    }
    if best.is_none() || set.len() <= k.saturating_mul(SEED_SETS) {
        let left = between_seeds(sets, set.clone(), k)?;
        offer(&mut best, sets, set.clone(), left);
    }
    best.map(|(_, left)| sets.separate(set, &left))
}

/// Keeps the division after which the members lose least; the first of several.
fn offer(
    best: &mut Option<(u128, Vec<bool>)>,
    sets: &mut Sets,
    set: Range<usize>,
    left: Vec<bool>,
) {
    let size = left.iter().filter(|l| **l).count();
    let (mut left_loss, mut right_loss) = (0, 0);
    for column in 0..sets.columns.len() {
        let [of_left, of_right] = sets.losses_of_parts(column, set.clone(), &left);
        left_loss += u128::from(of_left);
        right_loss += u128::from(of_right);
    }
    let loss = left_loss * size as u128 + right_loss * (left.len() - size) as u128;
    if best.as_ref().is_none_or(|(least, _)| loss < *least) {
        *best = Some((loss, left));
    }
}

/// Gives every member to the seed whose side loses less by it; `None` if all members are alike.
fn between_seeds(sets: &Sets, set: Range<usize>, k: usize) -> Option<Vec<bool>> {
    let (a, b) = seeds(sets, &set)?;
    let (mut left, mut right) = (Side::new(sets, &set, a), Side::new(sets, &set, b));
    for at in (0..set.len()).filter(|at| ![a, b].contains(at)) {
        let to_left = left.added_loss(sets, &set, at);
        let to_right = right.added_loss(sets, &set, at);
        // A tie goes to the smaller side.
        if (to_left, left.members.len()) <= (to_right, right.members.len()) {
            left.add(sets, &set, at);
        } else {
            right.add(sets, &set, at);
        }
    }
    left.fill_up(sets, &set, &mut right, k);
    right.fill_up(sets, &set, &mut left, k);
    let mut is_left = vec![false; set.len()];
    for at in left.members {
        is_left[at] = true;
    }
    Some(is_left)
}

/// Two members far from each other, by their places in the set; `None` if all are alike.
fn seeds(sets: &Sets, set: &Range<usize>) -> Option<(usize, usize)> {
    // Members stand in random order.
    let (mut a, mut b) = (0, 0);
    for _ in 0..SEED_ROUNDS {
        let seed = Side::new(sets, set, b);
        let mut farthest = (0, b);
        for at in 0..set.len() {
            let distance = seed.added_loss(sets, set, at);
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

/// A part that grows around its seed. Members are places in the set.
struct Side {
    regions: Vec<Region>,
    members: Vec<usize>,
}

impl Side {
    fn new(sets: &Sets, set: &Range<usize>, seed: usize) -> Self {
        let region = |(at, example): (usize, u32)| Region::of(&sets.columns[at].block, example);
        Self {
            regions: examples(sets, set, seed).enumerate().map(region).collect(),
            members: vec![seed],
        }
    }

    /// What all members and the new one lose more when it joins.
    fn added_loss(&self, sets: &Sets, set: &Range<usize>, member: usize) -> u128 {
        let examples = examples(sets, set, member).enumerate();
        examples
            .map(|(at, example)| self.regions[at].distance_to(&sets.columns[at].block, example))
            .sum()
    }

    fn add(&mut self, sets: &Sets, set: &Range<usize>, member: usize) {
        for (at, example) in examples(sets, set, member).enumerate() {
            self.regions[at].include(&sets.columns[at].block, example);
        }
        self.members.push(member);
    }

    /// Takes the nearest members of the other side until this one has `k`.
    fn fill_up(&mut self, sets: &Sets, set: &Range<usize>, other: &mut Side, k: usize) {
        let missing = k.saturating_sub(self.members.len());
        if missing == 0 {
            return;
        }
        let distance = |member: &usize| (self.added_loss(sets, set, *member), *member);
        let mut near: Vec<(u128, usize)> = other.members.iter().map(distance).collect();
        near.sort_unstable();
        let keep = near.split_off(missing.min(near.len()));
        self.members
            .extend(near.into_iter().map(|(_, member)| member));
        other.members = keep.into_iter().map(|(_, member)| member).collect();
    }
}

/// Per column somebody with the value of a member.
fn examples<'a>(
    sets: &'a Sets,
    set: &Range<usize>,
    member: usize,
) -> impl Iterator<Item = u32> + 'a {
    let at = set.start + member;
    (0..sets.columns.len()).map(move |c| sets.columns[c].example(sets.ranks(c, at..at + 1)[0]))
}
