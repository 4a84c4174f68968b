//! A block's individuals, from Arrow arrays to codes.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::Rows;
use hashbrown::HashMap;

use super::individuals::{Individuals, Prior};
use super::learned::Learned;
use crate::coding::{Numbers, places, rows};

/// A block as [`Method::groups`](super::Method::groups) sees it.
#[derive(Debug)]
pub struct CodedBlock {
    /// The individuals.
    pub individuals: Individuals,
    /// How often their sensitive values, and all common ones, occur in the whole table.
    pub prior: Prior,
}

impl CodedBlock {
    /// Codes the quasi-identifiers and the sensitive values of a block's individuals. `whole` says how many individuals of
    /// the whole table have the sensitive value of each.
    ///
    /// Codes are ranks in the order of Arrow's row format, so the order of codes is the order of what is published.
    pub fn try_new(
        qi: &[ArrayRef],
        sensitive: &ArrayRef,
        whole: &[u64],
        learned: &Learned,
    ) -> Result<Self, ArrowError> {
        let columns = qi
            .iter()
            .map(ranks)
            .collect::<Result<Vec<_>, ArrowError>>()?;
        let values = rows(std::slice::from_ref(sensitive))?;
        let ranks = Ranks::of(&values, learned.common.iter().map(|(v, _)| v.as_slice()));
        let mut counts = vec![0; ranks.different()];
        for (value, count) in &learned.common {
            counts[ranks.rank(value) as usize] = *count;
        }
        for (code, count) in ranks.codes.iter().zip(whole) {
            counts[*code as usize] = *count;
        }
        let malformed = |e: super::DivideError| ArrowError::InvalidArgumentError(e.to_string());
        Ok(Self {
            prior: Prior::with_others(counts, learned.individuals).map_err(malformed)?,
            individuals: Individuals::try_new(columns, ranks.codes).map_err(malformed)?,
        })
    }
}

/// The ranks of a column's values, of which a missing one is the first.
fn ranks(column: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
    let numbers = Numbers::try_new(column)?;
    let rows = numbers.rows(column)?;
    let places = places(numbers.first.len(), |number| rows.row(number as usize));
    let others = u32::from(column.null_count() > 0);
    let rank = |number: u32| places.get(number as usize).map_or(0, |at| at + others);
    Ok(numbers.of.into_iter().map(rank).collect())
}

/// Values numbered in their order, among others.
struct Ranks<'a> {
    codes: Vec<u32>,
    ranks: HashMap<&'a [u8], u32>,
}

impl<'a> Ranks<'a> {
    /// Ranks of values, among themselves and some others.
    fn of(values: &'a Rows, others: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut numbers: HashMap<&[u8], u32> = HashMap::new();
        let mut number = |value: &'a [u8]| {
            let next = numbers.len() as u32;
            *numbers.entry(value).or_insert(next)
        };
        others.into_iter().for_each(|other| {
            number(other);
        });
        let mut codes: Vec<u32> = values.iter().map(|value| number(value.data())).collect();
        let mut sorted: Vec<(&[u8], u32)> = numbers.into_iter().collect();
        sorted.sort_unstable();
        let mut rank_of = vec![0; sorted.len()];
        for (rank, (_, number)) in (0u32..).zip(&sorted) {
            rank_of[*number as usize] = rank;
        }
        for code in &mut codes {
            *code = rank_of[*code as usize];
        }
        let ranks = sorted.into_iter().map(|(value, _)| value).zip(0..);
        Self {
            codes,
            ranks: ranks.collect(),
        }
    }

    fn different(&self) -> usize {
        self.ranks.len()
    }

    fn rank(&self, value: &[u8]) -> u32 {
        self.ranks.get(value).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, StringArray};

    use super::*;
    use crate::anatomize::Division;

    #[test]
    fn codes_are_ranks_and_common_values_count_where_they_are_absent() {
        let ages: ArrayRef = Arc::new(Int32Array::from(vec![Some(40), None, Some(-2), Some(40)]));
        let salaries: ArrayRef = Arc::new(StringArray::from(vec!["d", "b", "d", "e"]));
        let common: ArrayRef = Arc::new(StringArray::from(vec!["c", "d"]));
        let common = rows(&[common]).unwrap();
        let learned = Learned {
            division: Division::each(1),
            individuals: 100,
            common: vec![
                (common.row(0).data().to_vec(), 30),
                (common.row(1).data().to_vec(), 40),
            ],
            most_of_others: 7,
            blocks: 2,
        };
        let coded = CodedBlock::try_new(&[ages], &salaries, &[40, 7, 40, 3], &learned).unwrap();
        // Missing comes first, as in the order of what is published.
        assert_eq!(coded.individuals.columns(), [[2, 0, 1, 2]]);
        assert_eq!(coded.individuals.sensitive(), [2, 0, 2, 3]);
        assert_eq!(coded.prior.counts(), [7, 30, 40, 3]);
        assert_eq!(coded.prior.individuals(), 100);
    }
}
