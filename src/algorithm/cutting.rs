//! Cutting a whole into classes, with all threads that are free.

use std::ops::Range;

use super::{Cancel, Cancelled};
use crate::engine::threads::Threads;

/// Parts of fewer individuals are not handed to another thread.
const WORTH_HANDING_ON: usize = 2048;

/// Individuals that are cut into classes, each of which is a range of them.
pub(super) trait Cutting: Send + Sized {
    /// How many individuals there are.
    fn individuals(&self) -> usize;

    /// Replaces a class by its parts, which are added to `open`; `false` if no cut is allowed.
    fn split(&mut self, class: Range<usize>, open: &mut Vec<Range<usize>>) -> bool;

    /// The individuals of one class, to be cut elsewhere.
    fn part(&self, class: Range<usize>) -> Self;

    /// The members of a class, ascending.
    fn members(&self, class: Range<usize>) -> Vec<u32>;
}

/// The classes, in the order of their first members. With `threads`, of which the caller holds
/// a slot, free slots are used; the classes are the same.
pub(super) fn cut_up<C: Cutting>(
    whole: C,
    threads: Option<&Threads>,
    cancel: &Cancel,
) -> Result<Vec<Vec<u32>>, Cancelled> {
    let parts = match threads {
        Some(threads) => threads.all(vec![whole], |part, add| cut(part, Some(add), cancel)),
        None => vec![cut(whole, None, cancel)],
    };
    let mut classes = vec![];
    for part in parts {
        classes.append(&mut part?);
    }
    classes.sort_unstable_by_key(|class| class.first().copied());
    Ok(classes)
}

/// The classes of a part but for those that are handed to others.
fn cut<C: Cutting>(
    mut part: C,
    others: Option<&dyn Fn(C)>,
    cancel: &Cancel,
) -> Result<Vec<Vec<u32>>, Cancelled> {
    let mut classes = vec![];
    let mut open: Vec<Range<usize>> = std::iter::once(0..part.individuals()).collect();
    while let Some(class) = open.pop() {
        cancel.check()?;
        let before = open.len();
        if !part.split(class.clone(), &mut open) {
            classes.push(part.members(class));
            continue;
        }
        let Some(others) = others else {
            continue;
        };
        // One of the parts stays.
        for at in (before + 1..open.len()).rev() {
            if open[at].len() >= WORTH_HANDING_ON {
                others(part.part(open.swap_remove(at)));
            }
        }
    }
    Ok(classes)
}
