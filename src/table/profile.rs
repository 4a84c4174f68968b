//! A profile of the input: domains, and a sample of individuals that does not depend on the input's order.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use datafusion::arrow::array::{ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

use super::coding::{Domain, Domains, Key, Keys, Kind};

/// Individuals in the sample: enough for a few hundred blocks.
const SAMPLE: usize = 8_192;

/// Distinct values of a categorical column that are counted exactly; beyond, their number is estimated. A column with
/// more is too much to mask.
pub const EXACT_VALUES: usize = 1 << 16;

/// What is learned from one pass over the quasi-identifiers. Profiles of parts of the input merge into the profile of
/// the whole, in any order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Profile {
    columns: Vec<Summary>,
    /// The individuals with the smallest order: a uniform sample, because the order is a keyed hash of the id.
    sample: BTreeMap<u64, Sampled>,
    /// Whether each record is an individual of its own. The order is then a hash of its quasi-identifiers.
    one_row: bool,
    /// Whether the sample holds values, or only counts.
    with_values: bool,
    /// Records seen.
    records: u64,
}

/// Quasi-identifiers in the sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The values.
    pub keys: Vec<Key>,
    /// How many individuals have them: one unless each record is an individual.
    pub individuals: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Summary {
    Integer(Option<(i128, i128)>),
    Real(Option<(f64, f64)>),
    Categories(Distinct),
    Values(BTreeSet<String>),
}

/// Counts distinct values: the set of their hashes while small, the smallest hashes beyond (a KMV sketch).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Distinct {
    hashes: BTreeSet<u64>,
    has_null: bool,
    #[serde(skip)]
    seen: HashSet<Vec<u8>>,
}

impl Profile {
    /// The profile of no records.
    pub fn new(kinds: &[Kind], one_row: bool) -> Self {
        Self::sampling(kinds, one_row, true)
    }

    /// The profile of no records, for blocks that look at no value: its sample only tells how many individuals there are.
    pub fn counting(kinds: &[Kind], one_row: bool) -> Self {
        Self::sampling(kinds, one_row, false)
    }

    fn sampling(kinds: &[Kind], one_row: bool, with_values: bool) -> Self {
        let columns = kinds.iter().map(|kind| match kind {
            Kind::Integer => Summary::Integer(None),
            Kind::Real => Summary::Real(None),
            Kind::Categorical => Summary::Categories(Distinct::default()),
            Kind::Masked => Summary::Values(BTreeSet::new()),
        });
        Self {
            columns: columns.collect(),
            sample: BTreeMap::new(),
            one_row,
            with_values,
            records: 0,
        }
    }

    /// Adds records, given by the order of their individuals and their quasi-identifiers.
    pub fn update(
        &mut self,
        kinds: &[Kind],
        order: &UInt64Array,
        qi: &[ArrayRef],
    ) -> Result<(), ArrowError> {
        let keys = qi
            .iter()
            .zip(kinds)
            .map(|(array, kind)| Keys::try_new(array, *kind))
            .collect::<Result<Vec<_>, _>>()?;
        self.records += order.len() as u64;
        for (summary, keys) in self.columns.iter_mut().zip(&keys) {
            summary.update(keys);
        }
        for (i, order) in order.values().iter().enumerate() {
            let beyond = |(last, _): (&u64, _)| order > last;
            if self.sample.len() == SAMPLE && self.sample.last_key_value().is_some_and(beyond) {
                continue;
            }
            let sampled_keys = keys.iter().filter(|_| self.with_values);
            let keys = sampled_keys.map(|k| k.key(i)).collect();
            let sampled = Sampled {
                keys,
                individuals: 1,
            };
            self.insert(*order, sampled);
        }
        Ok(())
    }

    fn insert(&mut self, order: u64, sampled: Sampled) {
        match self.sample.entry(order) {
            Entry::Vacant(new) => {
                new.insert(sampled);
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                if self.one_row {
                    known.individuals += sampled.individuals;
                }
                // Records of one individual may disagree: the smallest tuple wins, whichever comes first.
                if sampled.keys < known.keys {
                    known.keys = sampled.keys;
                }
            }
        }
        if self.sample.len() > SAMPLE {
            self.sample.pop_last();
        }
    }

    /// Adds the profile of another part of the input.
    pub fn merge(&mut self, other: Profile) {
        for (mine, theirs) in self.columns.iter_mut().zip(other.columns) {
            mine.merge(theirs);
        }
        self.records += other.records;
        for (order, sampled) in other.sample {
            self.insert(order, sampled);
        }
    }

    /// The domains of the quasi-identifiers.
    pub fn domains(&self) -> Domains {
        Domains(self.columns.iter().map(Summary::domain).collect())
    }

    /// Number of individuals, exact while they all fit into the sample, else estimated from the sample's density.
    pub fn individuals(&self) -> u64 {
        match self.sample.last_key_value() {
            _ if self.one_row => self.records,
            Some((last, _)) if self.sample.len() == SAMPLE => estimate(SAMPLE, *last),
            _ => self.sample.len() as u64,
        }
    }

    /// The sample: orders with their quasi-identifiers.
    pub fn sample(&self) -> impl Iterator<Item = (u64, &Sampled)> {
        self.sample.iter().map(|(order, sampled)| (*order, sampled))
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        let keys = self.sample.len() * (64 + self.columns.len() * (size_of::<Key>() + 16));
        let values = self.columns.iter().map(|c| match c {
            Summary::Categories(d) => d.hashes.len() * 16 + d.seen.len() * 64,
            Summary::Values(values) => values.len() * 64,
            _ => 32,
        });
        keys + values.sum::<usize>()
    }

    /// Makes the profile ready to be sent.
    pub fn finish(&mut self) {
        for column in &mut self.columns {
            if let Summary::Categories(distinct) = column {
                distinct.settle();
            }
        }
    }
}

/// n from the k-th smallest of n uniform hashes: (k − 1) / (h / 2⁶⁴).
fn estimate(k: usize, largest: u64) -> u64 {
    let density = (u128::from(k as u64) - 1) << 64;
    u64::try_from(density / u128::from(largest.max(1))).unwrap_or(u64::MAX)
}

impl Summary {
    fn update(&mut self, keys: &Keys) {
        match (self, keys) {
            (Summary::Integer(range), Keys::Integer(values)) => {
                for v in values.iter().flatten() {
                    let (lo, hi) = range.get_or_insert((v, v));
                    (*lo, *hi) = ((*lo).min(v), (*hi).max(v));
                }
            }
            (Summary::Real(range), Keys::Real(values)) => {
                // Infinite values are coded as the ends of the finite range.
                for v in values.iter().flatten().filter(|v| v.is_finite()) {
                    let (lo, hi) = range.get_or_insert((*v, *v));
                    (*lo, *hi) = (lo.min(*v), hi.max(*v));
                }
            }
            (Summary::Categories(distinct), Keys::Bytes(names)) => {
                distinct.has_null |= names.column.null_count() > 0;
                for row in &names.rows {
                    distinct.insert(row.data());
                }
            }
            (Summary::Values(values), Keys::Bytes(names)) => {
                let texts = names.column.as_string::<i32>();
                for first in &names.numbers.first {
                    let value = texts.value(*first as usize);
                    if values.len() <= EXACT_VALUES && !values.contains(value) {
                        values.insert(value.to_owned());
                    }
                }
            }
            _ => {}
        }
    }

    fn merge(&mut self, other: Summary) {
        match (self, other) {
            (Summary::Integer(mine), Summary::Integer(Some((lo, hi)))) => {
                let (a, b) = mine.get_or_insert((lo, hi));
                (*a, *b) = ((*a).min(lo), (*b).max(hi));
            }
            (Summary::Real(mine), Summary::Real(Some((lo, hi)))) => {
                let (a, b) = mine.get_or_insert((lo, hi));
                (*a, *b) = (a.min(lo), b.max(hi));
            }
            (Summary::Categories(mine), Summary::Categories(theirs)) => mine.merge(theirs),
            (Summary::Values(mine), Summary::Values(theirs)) => {
                for value in theirs {
                    if mine.len() <= EXACT_VALUES {
                        mine.insert(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn domain(&self) -> Domain {
        match self {
            Summary::Integer(Some((lo, hi))) => Domain::Integer(*lo, *hi),
            Summary::Real(Some((lo, hi))) => Domain::Real(*lo, *hi),
            Summary::Categories(distinct) => Domain::Categories(distinct.count()),
            Summary::Values(values) => Domain::Values(values.iter().cloned().collect()),
            _ => Domain::Empty,
        }
    }
}

impl Distinct {
    fn insert(&mut self, value: &[u8]) {
        if !self.seen.contains(value) {
            self.seen.insert(value.to_vec());
            if self.seen.len() > EXACT_VALUES {
                self.settle();
            }
        }
    }

    /// Turns values into hashes.
    fn settle(&mut self) {
        for value in self.seen.drain() {
            let hash = blake3::hash(&value);
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&hash.as_bytes()[..8]);
            self.hashes.insert(u64::from_be_bytes(bytes));
        }
        self.trim();
    }

    fn merge(&mut self, mut other: Distinct) {
        self.settle();
        other.settle();
        self.hashes.extend(other.hashes);
        self.has_null |= other.has_null;
        self.trim();
    }

    fn trim(&mut self) {
        while self.hashes.len() > EXACT_VALUES {
            self.hashes.pop_last();
        }
    }

    fn count(&self) -> u64 {
        let mut settled = self.clone();
        settled.settle();
        match settled.hashes.last() {
            Some(last) if settled.hashes.len() == EXACT_VALUES => estimate(EXACT_VALUES, *last),
            _ => settled.hashes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int32Array, StringArray};

    use super::*;

    const KINDS: [Kind; 2] = [Kind::Integer, Kind::Categorical];

    fn profile(rows: &[(u64, i32, &str)]) -> Profile {
        let order = UInt64Array::from_iter_values(rows.iter().map(|r| r.0));
        let age: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|r| r.1)));
        let code: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|r| r.2)));
        let mut profile = Profile::new(&KINDS, false);
        profile.update(&KINDS, &order, &[age, code]).unwrap();
        profile.finish();
        profile
    }

    #[test]
    fn parts_merge_into_the_whole_in_any_order() {
        let rows: Vec<_> = (0..20_000u64)
            .map(|i| {
                (
                    i.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                    (i % 90) as i32,
                    ["a", "b", "c"][i as usize % 3],
                )
            })
            .collect();
        let whole = profile(&rows);
        let (left, right) = rows.split_at(7_001);
        for parts in [[left, right], [right, left]] {
            let mut merged = profile(parts[0]);
            merged.merge(profile(parts[1]));
            assert_eq!(merged.domains(), whole.domains());
            assert_eq!(merged.sample, whole.sample);
            assert_eq!(merged.individuals(), whole.individuals());
        }
        assert_eq!(
            whole.domains().0,
            [Domain::Integer(0, 89), Domain::Categories(3)]
        );
        let n = whole.individuals() as f64;
        assert!((n / 20_000.0 - 1.0).abs() < 0.05, "{n}");
    }

    #[test]
    fn survives_being_sent() {
        let sent = profile(&[(7, -3, "x"), (u64::MAX, 12, "y")]);
        let received: Profile =
            serde_json::from_slice(&serde_json::to_vec(&sent).unwrap()).unwrap();
        assert_eq!(received.domains(), sent.domains());
        assert_eq!(received.sample, sent.sample);
    }
}
