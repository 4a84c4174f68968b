//! The order of a column whose values have none: by how frequent they are in a class.

use std::cmp::Reverse;

use crate::table::{Categorical, NULL_CODE};

/// Sorts classes by the frequency of their values, frequent ones first: a few values for many individuals lose least.
/// Missing values come last, and before them those of individuals with some missing values.
pub(super) struct Frequency {
    /// By code: members that have it, then its rank; 0 for codes that are not in `ranked`.
    ranks: Vec<u32>,
    ranked: Vec<u32>,
    starts: Vec<usize>,
    buffer: Vec<u32>,
}

impl Frequency {
    /// For codes below `codes`.
    pub(super) fn new(codes: usize) -> Self {
        Self {
            ranks: vec![0; codes],
            ranked: vec![],
            starts: vec![],
            buffer: vec![],
        }
    }

    /// Where an individual of the class that was sorted last stands: by its rarest value.
    pub(super) fn rank(&self, column: &Categorical, individual: u32) -> u32 {
        let values = self.ranked.len() as u32;
        match column.of(individual) {
            [] | [NULL_CODE] => values + 1,
            [.., NULL_CODE] => values,
            [code] => self.ranks[*code as usize],
            codes => {
                let ranks = codes.iter().map(|code| self.ranks[*code as usize]);
                ranks.max().unwrap_or(0)
            }
        }
    }

    /// Sorts the members of a class; members of equal rank keep their order.
    pub(super) fn sort(&mut self, column: &Categorical, members: &mut [u32]) {
        for code in self.ranked.drain(..) {
            self.ranks[code as usize] = 0;
        }
        for code in members.iter().flat_map(|member| column.of(*member)) {
            if *code != NULL_CODE {
                let count = &mut self.ranks[*code as usize];
                if *count == 0 {
                    self.ranked.push(*code);
                }
                *count += 1;
            }
        }
        let counts = &self.ranks;
        self.ranked
            .sort_unstable_by_key(|code| (Reverse(counts[*code as usize]), *code));
        for (rank, code) in self.ranked.iter().enumerate() {
            self.ranks[*code as usize] = rank as u32;
        }
        self.starts.clear();
        self.starts.resize(self.ranked.len() + 3, 0);
        for member in members.iter() {
            let rank = self.rank(column, *member) as usize;
            self.starts[rank + 1] += 1;
        }
        for rank in 1..self.starts.len() {
            self.starts[rank] += self.starts[rank - 1];
        }
        self.buffer.clear();
        self.buffer.extend_from_slice(members);
        for at in 0..self.buffer.len() {
            let member = self.buffer[at];
            let rank = self.rank(column, member) as usize;
            members[self.starts[rank]] = member;
            self.starts[rank] += 1;
        }
    }
}
