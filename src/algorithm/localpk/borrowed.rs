//! Members that children lend to those who are left behind and are no valid class alone.

use super::split::Child;
use crate::algorithm::trees::Tree;

/// The members of the children that make up a class of `enough` with those who are left and lose least by it, in
/// ascending order; at a tie those with the smaller numbers, which are random. `None` if no child can spare them.
///
/// Always fewer than `enough`: so no class can be formed of them alone, and one that is formed with others covers more
/// than their child.
pub(super) fn borrowed_members(
    trees: &[Tree],
    left: &[u32],
    children: &[Child],
    enough: usize,
) -> Option<Vec<u32>> {
    let most = enough.saturating_sub(1);
    // Where they are enough, but no valid class by their sensitive values, new ones come without a look at these.
    let need = match enough.saturating_sub(left.len()) {
        0 => most,
        need => need.min(most),
    };
    if need == 0 {
        return None;
    }
    let hull = hull(trees, left)?;
    let mut candidates: Vec<(u64, u32)> = vec![];
    for (_, members) in children.iter().filter(|(_, m)| m.len() >= need + enough) {
        candidates.extend(members.iter().map(|m| (added(trees, &hull, *m), *m)));
    }
    if candidates.len() < need {
        return None;
    }
    candidates.select_nth_unstable(need - 1);
    let mut borrowed: Vec<u32> = candidates[..need].iter().map(|(_, m)| *m).collect();
    borrowed.sort_unstable();
    Some(borrowed)
}

/// The smallest node of each column that covers the individuals.
fn hull(trees: &[Tree], individuals: &[u32]) -> Option<Vec<u32>> {
    let (first, rest) = individuals.split_first()?;
    let node = |tree: &Tree| {
        let join = |node: u32, i: &u32| match tree.start(*i) {
            start if start == node => node,
            start => tree.join(node, start),
        };
        rest.iter().fold(tree.start(*first), join)
    };
    Some(trees.iter().map(node).collect())
}

/// What a record loses when an individual joins.
fn added(trees: &[Tree], hull: &[u32], individual: u32) -> u64 {
    let loss = |(tree, node): (&Tree, &u32)| match tree.start(individual) {
        start if start == *node => tree.loss(start),
        start => tree.loss(tree.join(*node, start)),
    };
    trees
        .iter()
        .zip(hull)
        .map(loss)
        .fold(0, u64::saturating_add)
}
