//! Sets over more values than a word has bits.

use super::shape::set_loss;
use crate::table::{Categorical, NULL_CODE};

/// A column of such sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wide<'a> {
    column: &'a Categorical,
}

/// The codes of some individuals, sorted, with the number of individuals that have each.
pub(super) type Codes = Vec<(u32, u32)>;

impl<'a> Wide<'a> {
    pub(super) fn new(column: &'a Categorical) -> Self {
        Self { column }
    }

    /// Counts the codes of one more individual.
    pub(super) fn include(&self, codes: &mut Codes, individual: u32) {
        for code in self.of(individual) {
            match codes.binary_search_by_key(code, |(code, _)| *code) {
                Ok(at) => codes[at].1 += 1,
                Err(at) => codes.insert(at, (*code, 1)),
            }
        }
    }

    fn of(&self, individual: u32) -> &[u32] {
        match self.column.of(individual) {
            [] => &[NULL_CODE],
            codes => codes,
        }
    }

    /// Loss of a record, with one individual less and one more.
    pub(super) fn loss(
        &self,
        codes: &Codes,
        less: Option<u32>,
        more: Option<u32>,
        full: u64,
    ) -> u64 {
        let held = |code: u32| match codes.binary_search_by_key(&code, |(code, _)| *code) {
            Ok(at) => codes[at].1,
            Err(_) => 0,
        };
        let (less, more) = (
            less.map_or(&[][..], |i| self.of(i)),
            more.map_or(&[][..], |i| self.of(i)),
        );
        let mut values = codes.len();
        let mut missing = codes.last().is_some_and(|(code, _)| *code == NULL_CODE);
        for code in less {
            if held(*code) == 1 && more.binary_search(code).is_err() {
                values -= 1;
                missing &= *code != NULL_CODE;
            }
        }
        for code in more {
            if held(*code) == 0 {
                values += 1;
                missing |= *code == NULL_CODE;
            }
        }
        match (missing, values) {
            (true, 0 | 1) => 0,
            (true, _) => full,
            (false, values) => set_loss(self.column.step, values as u64),
        }
    }
}
