//! The hierarchy of published labels.

use datafusion::arrow::error::ArrowError;

use crate::check::codes::invalid;

/// Which labels lie below which: a walk enters a label, all below it, and leaves it.
#[derive(Debug)]
pub(crate) struct Tree {
    enter: Vec<u32>,
    leave: Vec<u32>,
    parents: Vec<Option<u32>>,
    pub(super) roots: Vec<bool>,
}

impl Tree {
    pub(crate) fn try_new(parents: &[Option<u32>]) -> Result<Self, ArrowError> {
        let mut children = vec![vec![]; parents.len()];
        for (label, parent) in (0..).zip(parents) {
            if let Some(parent) = parent {
                children[*parent as usize].push(label);
            }
        }
        let mut tree = Self {
            enter: vec![u32::MAX; parents.len()],
            leave: vec![0; parents.len()],
            parents: parents.to_vec(),
            roots: parents.iter().map(Option::is_none).collect(),
        };
        let mut entered = 0;
        let roots = (0..parents.len() as u32).filter(|label| parents[*label as usize].is_none());
        let mut open: Vec<(u32, bool)> = roots.map(|root| (root, false)).collect();
        while let Some((label, done)) = open.pop() {
            let at = label as usize;
            if done {
                tree.leave[at] = entered;
                continue;
            }
            tree.enter[at] = entered;
            entered += 1;
            open.push((label, true));
            open.extend(children[at].iter().map(|child| (*child, false)));
        }
        if (entered as usize) < parents.len() {
            return invalid("verify: labels of the hierarchy lie above themselves".to_string());
        }
        Ok(tree)
    }

    /// When the walk enters a label, and when it leaves it.
    pub(super) fn range(&self, label: u32) -> (u32, u32) {
        (self.enter[label as usize], self.leave[label as usize])
    }

    /// The labels above one.
    pub(super) fn above(&self, label: u32) -> impl Iterator<Item = u32> {
        let parent = |label: &u32| self.parents[*label as usize];
        std::iter::successors(parent(&label), parent)
    }

    /// Whether one is the other, or lies above or below it.
    pub(super) fn are_related(&self, a: u32, b: u32) -> bool {
        let above = |above: u32, below: u32| {
            let below = self.enter[below as usize];
            self.enter[above as usize] <= below && below < self.leave[above as usize]
        };
        above(a, b) || above(b, a)
    }

    pub(super) fn has_related(&self, set: &[u32], label: u32) -> bool {
        set.iter().any(|own| self.are_related(*own, label))
    }

    /// Whether some set of values can be described by both: each label of one is related to one of the other.
    pub(super) fn are_compatible(&self, a: &[u32], b: &[u32]) -> bool {
        a.iter().all(|label| self.has_related(b, *label))
            && b.iter().all(|label| self.has_related(a, *label))
    }
}
