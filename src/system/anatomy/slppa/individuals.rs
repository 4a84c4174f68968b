//! Individuals as anatomization sees them, and the sensitive column of the whole table.

use super::division::Division;
use super::groups::DivideError;
use super::mix::NumberMap;

/// Coded individuals, one record each.
///
/// Individuals are numbered from 0 in a random order that the caller made with a key. Equal values of a column have
/// equal codes, and a missing value is a value of its own. For [`publish`](super::publish()) and for Slicing codes must
/// also keep the order of values: codes by order of appearance would tell who stands beside whom (docs/theory/papers.md S8).
#[derive(Debug, Clone)]
pub struct CodedIndividuals {
    columns: Vec<Vec<u32>>,
    sensitive: Vec<u32>,
}

/// How often each sensitive value occurs in the whole table, by its code: the belief before publication (Yao 2021,
/// Definition 4). A block's groups are compared with it, not with the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prior {
    counts: Vec<u64>,
    individuals: u64,
}

/// The most individuals a whole table may have; keeps δ's products within 128 bits.
const MOST_INDIVIDUALS: u64 = 1 << 48;

impl CodedIndividuals {
    /// Puts coded columns together.
    pub fn try_new(columns: Vec<Vec<u32>>, sensitive: Vec<u32>) -> Result<Self, DivideError> {
        if columns.iter().any(|c| c.len() != sensitive.len()) {
            return Err(DivideError::Malformed("columns differ in length"));
        }
        if u32::try_from(sensitive.len()).is_err() {
            return Err(DivideError::Malformed(
                "more individuals than 32 bits count",
            ));
        }
        Ok(Self { columns, sensitive })
    }

    /// Number of individuals.
    pub fn len(&self) -> usize {
        self.sensitive.len()
    }

    /// Whether there is no individual.
    pub fn is_empty(&self) -> bool {
        self.sensitive.is_empty()
    }

    /// The codes of the quasi-identifier columns.
    pub fn columns(&self) -> &[Vec<u32>] {
        &self.columns
    }

    /// The codes of the sensitive column.
    pub fn sensitive(&self) -> &[u32] {
        &self.sensitive
    }

    /// Per sub-table a number for every individual, which those with the same sub-tuple share.
    pub(super) fn sub_tuples(&self, division: &Division) -> Result<Vec<SubTuples>, DivideError> {
        if division.columns() != self.columns.len() {
            return Err(DivideError::Malformed(
                "the division has another number of columns",
            ));
        }
        let of = |table: &Vec<usize>| {
            let mut codes = vec![0; self.len()];
            let mut distinct = 1;
            for column in table {
                distinct = refine(&mut codes, &self.columns[*column]);
            }
            let counts = counted(&codes, distinct);
            SubTuples { codes, counts }
        };
        Ok(division.tables().iter().map(of).collect())
    }
}

/// Numbers of sub-tuples.
#[derive(Debug)]
pub(super) struct SubTuples {
    /// The number of each individual's.
    pub codes: Vec<u32>,
    /// How many individuals have each.
    pub counts: Vec<u64>,
}

/// Tells apart whom a further column tells apart; how many numbers there are then.
fn refine(codes: &mut [u32], column: &[u32]) -> usize {
    let mut numbers: NumberMap<u32> = NumberMap::default();
    for (code, value) in codes.iter_mut().zip(column) {
        let next = numbers.len() as u32;
        let key = u64::from(*code) << 32 | u64::from(*value);
        *code = *numbers.entry(key).or_insert(next);
    }
    numbers.len()
}

impl Prior {
    /// From the number of individuals with each sensitive value, by its code.
    pub fn try_new(counts: Vec<u64>) -> Result<Self, DivideError> {
        let individuals: u128 = counts.iter().map(|n| u128::from(*n)).sum();
        match u64::try_from(individuals) {
            Ok(individuals) if individuals <= MOST_INDIVIDUALS => Ok(Self {
                counts,
                individuals,
            }),
            _ => Err(DivideError::Malformed(
                "more individuals than 48 bits count",
            )),
        }
    }

    /// From the number of individuals with some sensitive values. The others are in no group, and none of them has a share
    /// of more than δ, so that it makes no difference to a group whether it lacks them.
    pub fn with_others(counts: Vec<u64>, individuals: u64) -> Result<Self, DivideError> {
        let known = Self::try_new(counts)?;
        if known.individuals > individuals || individuals > MOST_INDIVIDUALS {
            return Err(DivideError::Malformed(
                "sensitive values have more individuals than there are",
            ));
        }
        Ok(Self {
            individuals,
            ..known
        })
    }

    /// The prior of a table that is all there is; its sensitive codes are below the number of individuals.
    pub fn of(individuals: &CodedIndividuals) -> Result<Self, DivideError> {
        let most = individuals.sensitive.iter().max();
        let values = most.map_or(0, |code| *code as usize + 1);
        if values > individuals.len() {
            return Err(DivideError::Malformed("sensitive codes have gaps"));
        }
        Self::try_new(counted(&individuals.sensitive, values))
    }

    /// How many individuals have each sensitive value.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many individuals there are.
    pub fn individuals(&self) -> u64 {
        self.individuals
    }

    /// A block is a part of the whole table.
    pub(super) fn covers(&self, individuals: &CodedIndividuals) -> Result<(), DivideError> {
        let known = |code: &u32| (*code as usize) < self.counts.len();
        let block = || counted(&individuals.sensitive, self.counts.len());
        if individuals.sensitive.iter().all(known)
            && block()
                .iter()
                .zip(&self.counts)
                .all(|(part, whole)| part <= whole)
        {
            Ok(())
        } else {
            Err(DivideError::NotAPart)
        }
    }
}

fn counted(codes: &[u32], values: usize) -> Vec<u64> {
    let mut counts = vec![0; values];
    for code in codes {
        counts[*code as usize] += 1;
    }
    counts
}
