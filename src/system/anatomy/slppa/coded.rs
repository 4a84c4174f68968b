//! A block's individuals, from Arrow arrays to codes.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::error::ArrowError;

use super::groups::DivideError;
use super::individuals::{CodedIndividuals, Prior};
use super::learned::Learned;
use crate::table::coding::{Numbers, places};

/// A block as [`Method::groups`](super::Method::groups) sees it.
#[derive(Debug)]
pub struct CodedBlock {
    /// The individuals.
    pub individuals: CodedIndividuals,
    /// How often their sensitive values, and all common ones, occur in the whole table.
    pub prior: Prior,
}

impl CodedBlock {
    /// Puts the [`ranks`] of a block's individuals together. Those of the sensitive column are followed by those of the
    /// values that are common in the whole table. `whole` says how many individuals of the whole table have the sensitive
    /// value of each.
    pub fn try_new(
        qi: Vec<Vec<u32>>,
        mut sensitive: Vec<u32>,
        whole: &[u64],
        learned: &Learned,
    ) -> Result<Self, DivideError> {
        let different = sensitive.iter().max().map_or(0, |rank| *rank as usize + 1);
        let mut counts = vec![0; different];
        let common = learned.common.iter().map(|(_, count)| count);
        for (rank, count) in sensitive.iter().zip(whole.iter().chain(common)) {
            counts[*rank as usize] = *count;
        }
        sensitive.truncate(whole.len());
        Ok(Self {
            prior: Prior::with_others(counts, learned.individuals)?,
            individuals: CodedIndividuals::try_new(qi, sensitive)?,
        })
    }
}

/// The ranks of a column's values, of which a missing one is the first. They are ranks in Arrow's row format, so the order of
/// ranks is the order of what is published.
pub fn ranks(column: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
    let numbers = Numbers::try_new(column)?;
    let rows = numbers.rows(column)?;
    let places = places(rows.num_rows(), |number| {
        let row = rows.row(number as usize);
        // Most are told apart without looking elsewhere.
        (begin(row.data()), row)
    });
    let others = u32::from(column.null_count() > 0);
    let rank = |number: u32| places.get(number as usize).map_or(0, |at| at + others);
    Ok(numbers.of.into_iter().map(rank).collect())
}

/// The first bytes as a number, in the order of bytes.
fn begin(bytes: &[u8]) -> u128 {
    let mut begin = [0; 16];
    let length = bytes.len().min(16);
    begin[..length].copy_from_slice(&bytes[..length]);
    u128::from_be_bytes(begin)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int32Array, StringArray};

    use super::super::Division;
    use super::*;
    use crate::table::coding::rows;

    #[test]
    fn codes_are_ranks_and_common_values_count_where_they_are_absent() {
        let ages: ArrayRef = Arc::new(Int32Array::from(vec![Some(40), None, Some(-2), Some(40)]));
        let salaries = ["d", "b", "d", "e"];
        let salaries: ArrayRef = Arc::new(StringArray::from_iter_values(
            salaries.into_iter().chain(["c", "d"]),
        ));
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
        let (ages, salaries) = (ranks(&ages).unwrap(), ranks(&salaries).unwrap());
        let coded = CodedBlock::try_new(vec![ages], salaries, &[40, 7, 40, 3], &learned).unwrap();
        // Missing comes first, as in the order of what is published.
        assert_eq!(coded.individuals.columns(), [[2, 0, 1, 2]]);
        assert_eq!(coded.individuals.sensitive(), [2, 0, 2, 3]);
        assert_eq!(coded.prior.counts(), [7, 30, 40, 3]);
        assert_eq!(coded.prior.individuals(), 100);
    }

    #[test]
    fn values_that_begin_alike_are_ranked_too() {
        let long = "a long beginning that all values share, ";
        let texts = ["c", "", "b", "a", "b"].map(|end| format!("{long}{end}"));
        let column: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        assert_eq!(ranks(&column).unwrap(), [3, 0, 2, 1, 2]);
        let reals: ArrayRef = Arc::new(Float64Array::from(vec![0.5, -2.0, 1e9, -1e9, -2.0]));
        assert_eq!(ranks(&reals).unwrap(), [2, 1, 3, 0, 1]);
    }
}
