//! Mondrian: halving individuals along their quasi-identifiers while both halves satisfy the bounds.

use super::counter::{Rules, Tally};
use super::groups::DivideError;
use super::individuals::CodedIndividuals;
use crate::algorithm::Cancel;

/// Regions of similar individuals, each of which satisfies the rules if all individuals together do.
///
/// A region is cut at the median of the column in which it is widest, by its span of codes against that of all; if
/// either part would violate the rules, along the next widest column (docs/theory/papers.md M7). Ties go to the smaller column.
pub(super) fn regions(
    individuals: &CodedIndividuals,
    rules: &Rules<'_>,
    tally: &mut Tally,
    cancel: &Cancel,
) -> Result<Vec<Vec<u32>>, DivideError> {
    let mut all: Vec<u32> = (0..individuals.len() as u32).collect();
    let columns = individuals.columns();
    let mut run = Run {
        columns,
        spans: columns.iter().map(|column| span(column, &all)).collect(),
        tally,
        rules,
    };
    let mut regions = vec![];
    let mut open = vec![all.as_mut_slice()];
    while let Some(members) = open.pop() {
        cancel.check()?;
        match run.cut(members) {
            Some(at) => {
                let (left, right) = members.split_at_mut(at);
                open.push(right);
                open.push(left);
            }
            None => regions.push(members.to_vec()),
        }
    }
    Ok(regions)
}

struct Run<'a> {
    columns: &'a [Vec<u32>],
    /// The span of each column over all individuals.
    spans: Vec<u64>,
    rules: &'a Rules<'a>,
    tally: &'a mut Tally,
}

impl Run<'_> {
    /// Orders the members so that they can be cut at the returned place; `None` if no cut is allowed.
    fn cut(&mut self, members: &mut [u32]) -> Option<usize> {
        let mut columns: Vec<(usize, u64)> = (0..self.spans.len())
            .map(|column| (column, span(&self.columns[column], members)))
            .filter(|(_, span)| *span > 0)
            .collect();
        columns.sort_by(|(a, span), (b, other)| {
            let wide = |span: u64, of: usize| u128::from(span) * u128::from(self.spans[of]);
            wide(*other, *a).cmp(&wide(*span, *b))
        });
        let mut columns = columns.into_iter();
        columns.find_map(|(column, _)| self.halve(column, members))
    }

    /// Cuts above the median, or below it if nobody is above.
    fn halve(&mut self, column: usize, members: &mut [u32]) -> Option<usize> {
        let codes = &self.columns[column];
        let code = |member: &u32| codes[*member as usize];
        let middle = (members.len() - 1) / 2;
        let (_, median, _) = members.select_nth_unstable_by_key(middle, |m| (code(m), *m));
        let median = code(median);
        let at = match partition(members, |member| code(member) <= median) {
            at if at < members.len() => at,
            _ => partition(members, |member| code(member) < median),
        };
        let (left, right) = members.split_at(at);
        (self.satisfies(left) && self.satisfies(right)).then_some(at)
    }

    fn satisfies(&mut self, members: &[u32]) -> bool {
        self.tally.count(self.rules, members);
        !members.is_empty() && self.tally.fault(self.rules).is_none()
    }
}

fn span(codes: &[u32], members: &[u32]) -> u64 {
    let (mut low, mut high) = (u32::MAX, 0);
    for member in members {
        let code = codes[*member as usize];
        low = low.min(code);
        high = high.max(code);
    }
    u64::from(high.saturating_sub(low))
}

/// Moves the members that are inside to the front; how many they are.
fn partition(members: &mut [u32], inside: impl Fn(&u32) -> bool) -> usize {
    let mut end = 0;
    for at in 0..members.len() {
        if inside(&members[at]) {
            members.swap(end, at);
            end += 1;
        }
    }
    end
}
