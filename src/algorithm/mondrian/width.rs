//! How wide a class is in each column.

use crate::table::{Block, Categorical, NULL_CODE, QuasiIdentifier};

/// Measures classes. The width of a column is what a record of the class loses there, so that columns of all kinds
/// compare, and a column with missing and present values is as wide as can be.
pub(super) struct Ruler<'a> {
    block: &'a Block,
    columns: Vec<usize>,
    widths: Vec<u64>,
    /// The class in which a code was last seen, by code.
    seen: Vec<u64>,
    class: u64,
}

impl<'a> Ruler<'a> {
    pub(super) fn new(block: &'a Block) -> Self {
        let columns = block.quasi_identifiers();
        let codes = columns.iter().map(|column| match column {
            QuasiIdentifier::Categorical(c) => c.cardinality as usize,
            _ => 0,
        });
        Self {
            block,
            columns: vec![],
            widths: vec![0; columns.len()],
            seen: vec![0; codes.max().unwrap_or(0)],
            class: 0,
        }
    }

    /// The columns in which members differ; the first of equally wide ones first.
    pub(super) fn widest_first(&mut self, members: &[u32]) -> &[usize] {
        let block = self.block;
        for (number, column) in block.quasi_identifiers().iter().enumerate() {
            self.widths[number] = match column {
                QuasiIdentifier::Numeric(n) => match ends(&n.lo, &n.hi, members) {
                    Ends::Mixed => block.full(),
                    Ends::Missing => 0,
                    Ends::Within(lo, hi) => n.step.saturating_mul(u64::from(hi - lo)),
                },
                QuasiIdentifier::Hierarchical(h) => match ends(&h.lo, &h.hi, members) {
                    Ends::Mixed => block.full(),
                    Ends::Missing => 0,
                    Ends::Within(lo, hi) => h.tree.span_loss(lo, hi),
                },
                QuasiIdentifier::Categorical(c) => match self.values(c, members) {
                    Values::Mixed => block.full(),
                    Values::Different(n) => c.step.saturating_mul(n.saturating_sub(1)),
                },
            };
        }
        self.columns.clear();
        let widths = &self.widths;
        self.columns
            .extend((0..widths.len()).filter(|column| widths[*column] > 0));
        self.columns
            .sort_by_key(|column| std::cmp::Reverse(widths[*column]));
        &self.columns
    }

    fn values(&mut self, column: &Categorical, members: &[u32]) -> Values {
        self.class += 1;
        let (mut missing, mut different) = (false, 0);
        for code in members.iter().flat_map(|member| column.of(*member)) {
            if *code == NULL_CODE {
                missing = true;
            } else if self.seen[*code as usize] != self.class {
                self.seen[*code as usize] = self.class;
                different += 1;
            }
        }
        match missing && different > 0 {
            true => Values::Mixed,
            false => Values::Different(different),
        }
    }
}

enum Values {
    Mixed,
    Different(u64),
}

/// Where the values of a class lie.
pub(super) enum Ends {
    /// Some are missing and some are not.
    Mixed,
    /// All are missing.
    Missing,
    /// Between these, both attained.
    Within(u32, u32),
}

/// The ends of a class in a column of ranges.
pub(super) fn ends(lo: &[u32], hi: &[u32], members: &[u32]) -> Ends {
    let (mut first, mut last) = (NULL_CODE, 0);
    for member in members {
        first = first.min(lo[*member as usize]);
        last = last.max(hi[*member as usize]);
    }
    match (first, last) {
        (NULL_CODE, _) => Ends::Missing,
        (_, NULL_CODE) => Ends::Mixed,
        (lo, hi) => Ends::Within(lo, hi),
    }
}
