//! Members of a pattern, divided into smaller and smaller sets.

use std::ops::Range;

use crate::algorithm::{Cancel, Cancelled};
use crate::system::buckets::lgb::people::{CodedColumn, Seen};
use crate::table::NULL_CODE;

/// The members with their ranks, in an order in which each set stands together: what looks at a set reads memory from
/// one end to the other, however large the table is.
pub(super) struct Sets<'a> {
    pub columns: Vec<&'a CodedColumn>,
    members: Vec<u32>,
    /// Per column the rank of each member.
    ranks: Vec<Vec<u32>>,
    seen: Seen,
    sorted: Vec<u32>,
    right: Vec<u32>,
}

/// A set that stays whole.
#[derive(Debug)]
pub struct Set {
    /// The individuals, in the order of their numbers.
    pub members: Vec<u32>,
    /// What each of them loses in all columns.
    pub loss: u64,
}

impl<'a> Sets<'a> {
    pub fn new(columns: Vec<&'a CodedColumn>, members: Vec<u32>) -> Self {
        let of =
            |column: &&CodedColumn| members.iter().map(|m| column.ranks[*m as usize]).collect();
        Self {
            ranks: columns.iter().map(of).collect(),
            columns,
            members,
            seen: Seen::default(),
            sorted: vec![],
            right: vec![],
        }
    }

    /// Divides all members: `halve` brings the left part of a set to its front and says how many it has, or that the set
    /// stays whole.
    pub fn divide(
        mut self,
        cancel: &Cancel,
        mut halve: impl FnMut(&mut Self, Range<usize>) -> Option<usize>,
    ) -> Result<Vec<Set>, Cancelled> {
        let mut groups = vec![];
        let whole = 0..self.members.len();
        let mut open = Vec::from([whole]);
        while let Some(set) = open.pop() {
            cancel.check()?;
            match halve(&mut self, set.clone()) {
                Some(left) => {
                    open.push(set.start + left..set.end);
                    open.push(set.start..set.start + left);
                }
                None if set.is_empty() => {}
                None => {
                    let columns = 0..self.columns.len();
                    let losses = columns.map(|column| self.width(column, set.clone()).0);
                    let loss = losses.fold(0, u64::saturating_add);
                    let mut members = self.members[set].to_vec();
                    members.sort_unstable();
                    groups.push(Set { members, loss });
                }
            }
        }
        Ok(groups)
    }

    /// The ranks of a set in one column.
    pub fn ranks(&self, column: usize, set: Range<usize>) -> &[u32] {
        &self.ranks[column][set]
    }

    /// The loss of a set in one column, and whether its values differ there.
    pub fn width(&mut self, column: usize, set: Range<usize>) -> (u64, bool) {
        self.columns[column].loss(&self.ranks[column][set], &mut self.seen)
    }

    /// The columns in which the members of a set differ, the widest first; of equally wide ones the first column.
    pub fn widest(&mut self, set: Range<usize>) -> Vec<usize> {
        let mut widths: Vec<(u64, usize)> = vec![];
        for column in 0..self.columns.len() {
            let (loss, differ) = self.width(column, set.clone());
            if differ {
                widths.push((loss, column));
            }
        }
        widths.sort_unstable_by_key(|(width, column)| (u64::MAX - width, *column));
        widths.into_iter().map(|(_, column)| column).collect()
    }

    /// Cuts a set across the first of its columns that allows it; how many are in the left part. The columns are all in
    /// which its members differ.
    pub fn cut_first(&mut self, columns: &[usize], set: Range<usize>, k: usize) -> Option<usize> {
        let mut cuts = columns.iter();
        let left = cuts.find_map(|column| self.below_bound(*column, set.clone(), k))?;
        Some(self.separate(set, &left, columns.iter().copied()))
    }

    /// Whether each member of a set is on the left of the [`Sets::bound`] of a column.
    pub fn below_bound(&mut self, column: usize, set: Range<usize>, k: usize) -> Option<Vec<bool>> {
        let bound = self.bound(column, set.clone(), k)?;
        let ranks = self.ranks(column, set).iter();
        Some(ranks.map(|rank| *rank < bound).collect())
    }

    /// What the members of each part of a set lose in one column, each.
    pub fn losses_of_parts(&mut self, column: usize, set: Range<usize>, left: &[bool]) -> [u64; 2] {
        let ranks = &self.ranks[column][set];
        self.columns[column].losses_of_parts(ranks, left, &mut self.seen)
    }

    /// Where to cut a column of a set so that both parts have `k`: the smallest rank of the right part.
    ///
    /// Missing values are parted from the others wherever that is allowed, because together they show nothing. Else the
    /// cut lies beside the median: above it as printed, or below it if that is the more even of those allowed.
    fn bound(&mut self, column: usize, set: Range<usize>, k: usize) -> Option<u32> {
        let ranks = &self.ranks[column][set];
        let n = ranks.len();
        let allowed = |left: usize| left >= k && n - left >= k;
        let present = ranks.iter().filter(|rank| **rank != NULL_CODE).count();
        if present < n && allowed(present) {
            return Some(NULL_CODE);
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(ranks);
        let (_, median, _) = self.sorted.select_nth_unstable(n.checked_sub(1)? / 2);
        let median = *median;
        let below = ranks.iter().filter(|rank| **rank < median).count();
        let with = ranks.iter().filter(|rank| **rank <= median).count();
        [(with, median.saturating_add(1)), (below, median)]
            .into_iter()
            .filter(|(left, _)| allowed(*left))
            .min_by_key(|(left, _)| left.abs_diff(n - left))
            .map(|(_, bound)| bound)
    }

    /// Brings the members of a set with `left` to its front, both parts in the order they had; how many they are. In all
    /// but `columns` they must be alike.
    pub fn separate(
        &mut self,
        set: Range<usize>,
        left: &[bool],
        columns: impl IntoIterator<Item = usize>,
    ) -> usize {
        for column in columns {
            separate(&mut self.ranks[column][set.clone()], left, &mut self.right);
        }
        separate(&mut self.members[set], left, &mut self.right)
    }
}

fn separate(items: &mut [u32], left: &[bool], right: &mut Vec<u32>) -> usize {
    right.clear();
    right.resize(items.len(), 0);
    let mut front = 0;
    // Both sides are written and one is kept: which one it is cannot be foretold.
    for (at, is_left) in left.iter().enumerate().take(items.len()) {
        let item = items[at];
        items[front] = item;
        right[at - front] = item;
        front += usize::from(*is_left);
    }
    let behind = items.len() - front;
    items[front..].copy_from_slice(&right[..behind]);
    front
}
