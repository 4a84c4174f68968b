//! What one pass over a table learns for anatomizing it.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::Rows;
use hashbrown::HashMap;

use super::division::{Division, DivisionError};
use super::learned::{AnatomyRequest, SubTables};
use super::requirement::{Infeasible, Shortfall};
use super::statistics::{
    Associations, DivisionStatistics, MISSING, Numbered, position_of_bytes, position_of_f64,
    position_of_i64,
};
use crate::model::Ratio;
use crate::table::coding::{Keys, Kind, Numbers};

/// How often each sensitive value occurs, and how the quasi-identifiers hang together.
///
/// Profiles of parts of a table merge into the profile of the whole, in any order. Sensitive values are held as bytes in
/// Arrow's comparable row format, all of them: δ is against the whole table (docs/theory/papers.md S2).
#[derive(Debug, Clone)]
pub struct TableProfile {
    statistics: DivisionStatistics,
    values: Box<Counts>,
    individuals: u64,
}

/// Numbers of individuals by sensitive value.
#[derive(Debug, Clone, Default)]
struct Counts {
    /// By values that are a word.
    words: HashMap<u64, u64>,
    /// By others that fit into a number.
    short: HashMap<u128, u64>,
    long: HashMap<Box<[u8]>, u64>,
    /// Bytes of all long values.
    bytes: usize,
}

impl Counts {
    fn add(&mut self, value: &[u8], individuals: u64) {
        if let Some(word) = word(value) {
            *self.words.entry(word).or_insert(0) += individuals;
        } else if let Some(short) = packed(value) {
            *self.short.entry(short).or_insert(0) += individuals;
        } else if let Some(count) = self.long.get_mut(value) {
            *count += individuals;
        } else {
            self.bytes += value.len();
            self.long.insert(value.into(), individuals);
        }
    }

    fn get(&self, value: &[u8]) -> Option<u64> {
        match (word(value), packed(value)) {
            (Some(word), _) => self.words.get(&word).copied(),
            (_, Some(short)) => self.short.get(&short).copied(),
            _ => self.long.get(value).copied(),
        }
    }

    fn len(&self) -> usize {
        self.words.len() + self.short.len() + self.long.len()
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        let short = self.words.values().chain(self.short.values());
        short.chain(self.long.values()).copied()
    }

    fn for_each(&self, mut work: impl FnMut(&[u8], u64)) {
        for (value, individuals) in &self.words {
            let mut bytes = [PRESENT; 9];
            bytes[1..].copy_from_slice(&value.to_be_bytes());
            work(&bytes, *individuals);
        }
        for (value, individuals) in &self.short {
            let bytes = value.to_be_bytes();
            let length = usize::from(bytes[SHORT]);
            work(&bytes[..length.min(SHORT)], *individuals);
        }
        for (value, individuals) in &self.long {
            work(value, *individuals);
        }
    }

    /// Bytes held, roughly.
    fn size(&self) -> usize {
        self.bytes + self.len() * 48
    }
}

/// The first byte of a value that is not missing.
const PRESENT: u8 = 1;

/// A value as a word, if it is one: a number of 64 bits.
fn word(value: &[u8]) -> Option<u64> {
    match value {
        [PRESENT, word @ ..] => Some(u64::from_be_bytes(word.try_into().ok()?)),
        _ => None,
    }
}

/// Most bytes of a value that is held as a number.
const SHORT: usize = 15;

/// A value as a number, if it is short: its bytes, and how many they are.
fn packed(value: &[u8]) -> Option<u128> {
    let mut bytes = [0; SHORT + 1];
    bytes
        .get_mut(..SHORT)?
        .get_mut(..value.len())?
        .copy_from_slice(value);
    bytes[SHORT] = value.len() as u8;
    Some(u128::from_be_bytes(bytes))
}

impl TableProfile {
    /// The profile of nobody.
    pub fn new(columns: usize) -> Self {
        Self {
            statistics: DivisionStatistics::new(columns),
            values: Box::default(),
            individuals: 0,
        }
    }

    /// Counts individuals by their quasi-identifiers and their sensitive values, none of which is missing.
    pub fn update(
        &mut self,
        kinds: &[Kind],
        qi: &[ArrayRef],
        sensitive: &Rows,
    ) -> Result<(), ArrowError> {
        let columns = qi
            .iter()
            .zip(kinds)
            .map(|(column, kind)| numbered(column, *kind))
            .collect::<Result<Vec<_>, ArrowError>>()?;
        self.statistics.count(sensitive.num_rows(), &columns);
        for value in sensitive {
            self.values.add(value.data(), 1);
        }
        self.individuals += sensitive.num_rows() as u64;
        Ok(())
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        self.statistics.size() + self.values.size()
    }

    /// How many individuals there are.
    pub fn individuals(&self) -> u64 {
        self.individuals
    }

    /// How many different sensitive values there are.
    pub fn different_values(&self) -> usize {
        self.values.len()
    }

    /// How many individuals have a sensitive value, given in Arrow's row format.
    pub fn having(&self, value: &[u8]) -> Option<u64> {
        self.values.get(value)
    }

    /// How many individuals have the most frequent sensitive value.
    pub fn most_frequent(&self) -> u64 {
        self.values.counts().max().unwrap_or(0)
    }

    /// The entropy of the sensitive values in bits.
    pub fn entropy(&self) -> f64 {
        let mut counts: Vec<u64> = self.values.counts().collect();
        counts.sort_unstable();
        let terms = counts.into_iter().map(|count| {
            let share = count as f64 / self.individuals as f64;
            -share * share.log2()
        });
        terms.fold(0.0, |sum, term| sum + term)
    }

    /// Weights and coefficients of the quasi-identifiers.
    pub fn associations(&self) -> Associations {
        self.statistics.finish()
    }

    /// How many individuals have the most frequent tuple of these columns, at most.
    pub fn tuple_at_most(&self, columns: &[usize]) -> u64 {
        self.statistics.tuple_at_most(columns)
    }

    /// The division that is asked for.
    pub fn division(&self, ask: &AnatomyRequest) -> Result<Division, DivisionError> {
        match &ask.sub_tables {
            SubTables::Given(division) => Ok(division.clone()),
            SubTables::Number(tables) => ask.method.division(&self.associations(), *tables),
        }
    }

    /// Whether β can be reached at all: exactly if no sensitive value's share of the whole table is more than β.
    pub fn feasible(&self, ask: &AnatomyRequest) -> Result<(), Infeasible> {
        let most = self.most_frequent();
        if ask.requirements.beta.at_least(most, self.individuals) {
            return Ok(());
        }
        let best = Ratio::new(most, self.individuals).map(|best| Shortfall::Beta { best });
        Err(Infeasible {
            shortfalls: best.into_iter().collect(),
        })
    }

    /// The sensitive values with more individuals than this, and how many the most frequent of the others has.
    pub(super) fn values_above(&self, individuals: u64) -> (Vec<(Vec<u8>, u64)>, u64) {
        let (mut above, mut most) = (vec![], 0);
        self.values.for_each(|value, count| {
            if count > individuals {
                above.push((value.to_vec(), count));
            } else {
                most = most.max(count);
            }
        });
        above.sort_unstable();
        (above, most)
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        self.values.counts()
    }

    /// The profile as bytes, to be sent.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let statistics = serde_json::to_vec(&self.statistics).ok()?;
        let mut bytes = (statistics.len() as u64).to_le_bytes().to_vec();
        bytes.extend(statistics);
        bytes.extend((self.values.words.len() as u64).to_le_bytes());
        self.values.for_each(|value, individuals| {
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
            bytes.extend(individuals.to_le_bytes());
        });
        Some(bytes)
    }

    /// Adds a profile that was sent; `None` if that is no profile.
    pub fn merge_bytes(&mut self, mut bytes: &[u8]) -> Option<()> {
        let statistics: DivisionStatistics = serde_json::from_slice(part(&mut bytes)?).ok()?;
        self.statistics.merge(statistics);
        let words = usize::try_from(number(&mut bytes)?).ok()?;
        // Each takes 25 bytes; those of two parts are mostly the same.
        let words = words.min(bytes.len() / 25);
        let known = self.values.words.len();
        self.values.words.reserve(words.saturating_sub(known));
        while !bytes.is_empty() {
            let value = part(&mut bytes)?;
            let individuals = number(&mut bytes)?;
            self.values.add(value, individuals);
            self.individuals += individuals;
        }
        Some(())
    }
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (part, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

/// The values of a column, each different one with its position.
fn numbered(column: &ArrayRef, kind: Kind) -> Result<Numbered, ArrowError> {
    let numbers = Numbers::try_new(column)?;
    let positions = positions(&numbers.values(column)?, kind)?;
    Ok(Numbered::of_values(positions, numbers.of))
}

/// The position of each value.
fn positions(column: &ArrayRef, kind: Kind) -> Result<Vec<u64>, ArrowError> {
    let keys = Keys::try_new(column, kind)?;
    let integer = |value: i128| {
        let small = i64::try_from(value).map(position_of_i64);
        small.unwrap_or_else(|_| position_of_bytes(&value.to_be_bytes()))
    };
    Ok(match &keys {
        Keys::Integer(values) => values
            .iter()
            .map(|value| value.map_or(MISSING, integer))
            .collect(),
        Keys::Real(values) => values
            .iter()
            .map(|value| value.map_or(MISSING, position_of_f64))
            .collect(),
        Keys::Bytes(names) => {
            let rows = names.rows.iter();
            let known: Vec<u64> = rows.map(|row| position_of_bytes(row.data())).collect();
            let position = |number: &u32| known.get(*number as usize).copied().unwrap_or(MISSING);
            names.numbers.of.iter().map(position).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int32Array, StringArray};

    use super::*;
    use crate::table::coding::rows;

    const KINDS: [Kind; 3] = [Kind::Integer, Kind::Real, Kind::Categorical];

    fn profile(range: std::ops::Range<i32>) -> TableProfile {
        let ages: ArrayRef = Arc::new(Int32Array::from_iter(
            range.clone().map(|i| (i % 11 != 0).then_some(i % 90)),
        ));
        let incomes: ArrayRef = Arc::new(Float64Array::from_iter(
            range.clone().map(|i| Some(f64::from(i % 7) / 3.0)),
        ));
        let jobs: ArrayRef = Arc::new(StringArray::from_iter(
            range
                .clone()
                .map(|i| (i % 13 != 0).then(|| format!("job {}", i % 5))),
        ));
        let salaries: ArrayRef = Arc::new(StringArray::from_iter_values(
            range.map(|i| format!("{}", i % 17)),
        ));
        let mut profile = TableProfile::new(3);
        profile
            .update(&KINDS, &[ages, incomes, jobs], &rows(&[salaries]).unwrap())
            .unwrap();
        profile
    }

    fn counted(profile: &TableProfile) -> Vec<(Vec<u8>, u64)> {
        profile.values_above(0).0
    }

    #[test]
    fn parts_merge_into_the_whole_and_can_be_sent() {
        let whole = profile(0..2_000);
        assert_eq!((whole.individuals(), whole.different_values()), (2_000, 17));
        for cut in [0, 1, 700, 2_000] {
            let mut merged = profile(cut..2_000);
            let sent = profile(0..cut).to_bytes().unwrap();
            merged.merge_bytes(&sent).unwrap();
            assert_eq!(counted(&merged), counted(&whole));
            assert_eq!(merged.individuals(), whole.individuals());
            assert_eq!(merged.associations(), whole.associations());
            assert_eq!(merged.entropy(), whole.entropy());
        }
        let cut_short = &whole.to_bytes().unwrap();
        let cut_short = &cut_short[..cut_short.len() - 1];
        assert!(TableProfile::new(3).merge_bytes(cut_short).is_none());
    }

    #[test]
    fn values_of_any_length_are_told_apart() {
        let values: Vec<Vec<u8>> = (0..40)
            .flat_map(|length| [vec![0; length], vec![1; length + 1]])
            .collect();
        let mut counts = Counts::default();
        for (value, individuals) in values.iter().zip(1..) {
            counts.add(value, individuals);
            counts.add(value, 1);
        }
        counts.add(&[7; 15], 5);
        assert_eq!(counts.len(), 81);
        assert_eq!((counts.words.len(), counts.short.len()), (1, 31));
        for (value, individuals) in values.iter().zip(1..) {
            assert_eq!(counts.get(value), Some(individuals + 1));
        }
        assert_eq!(counts.get(&[7; 15]), Some(5));
        assert_eq!(counts.get(&[7; 16]), None);
        let mut seen = vec![];
        counts.for_each(|value, _| seen.push(value.to_vec()));
        seen.sort();
        let mut expected = [values, vec![vec![7; 15]]].concat();
        expected.sort();
        assert_eq!(seen, expected);
    }

    #[test]
    fn tuples_are_never_more_frequent_than_said() {
        let profile = profile(0..2_000);
        // One of 90 ages; one of 5 jobs; one of 7 incomes with one of 5 jobs.
        assert!((20..=182).contains(&profile.tuple_at_most(&[0])));
        let most = |columns: &[usize]| profile.tuple_at_most(columns);
        assert!(most(&[2]) >= 370 && most(&[2]) <= 400);
        assert!(most(&[1, 2]) >= 53 && most(&[1, 2]) <= 60);
        assert!(most(&[0, 1, 2]) <= most(&[1, 2]));
    }
}
