//! The QI partition: individuals by which of their values they keep secret (Li 2020, Definition 7).

use hashbrown::HashMap;

use super::{AttributePlace, LgbInput, SmallPattern};

/// What happens to one column of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// Nobody in the pattern keeps the value secret: generalized per local group.
    Generalized,
    /// Everybody does: in a local bucket.
    Bucketized,
    /// Some do: shown in no way, neither as value nor as bucket (docs/theory/papers.md L1).
    Blank,
}

/// Individuals whose quasi-identifiers are treated in the same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Per quasi-identifier.
    pub treatments: Vec<Treatment>,
    /// Its individuals, in the order of their numbers.
    pub members: Vec<u32>,
}

/// Everybody, by pattern.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patterns {
    /// Patterns of at least k individuals.
    pub patterns: Vec<Pattern>,
    /// Individuals of smaller patterns who are not published.
    pub dropped: Vec<u32>,
    /// The largest k that publishes anybody: the size of the largest pattern, or of all that may be pooled.
    pub largest: usize,
}

impl Patterns {
    /// Partitions everybody. Patterns of fewer than k are never published as they are (L1): the printed algorithms
    /// test the size of a set only when they divide it.
    pub fn of(people: &LgbInput, k: usize, small: SmallPattern) -> Self {
        let mut result = Self {
            largest: match small {
                SmallPattern::Drop => 0,
                SmallPattern::Mask => people.individuals(),
            },
            ..Self::default()
        };
        let mut minor: Vec<(u64, Vec<u32>)> = vec![];
        for (word, members) in by_word(people) {
            result.largest = result.largest.max(members.len());
            if members.len() >= k.max(1) {
                let treatments = treatments(people, word, word);
                result.patterns.push(Pattern {
                    treatments,
                    members,
                });
            } else {
                minor.push((word, members));
            }
        }
        let all = minor
            .iter()
            .fold(u64::MAX, |common, (word, _)| common & word);
        let any = minor.iter().fold(0, |union, (word, _)| union | word);
        let mut members: Vec<u32> = minor.into_iter().flat_map(|(_, members)| members).collect();
        members.sort_unstable();
        match small {
            SmallPattern::Mask if members.len() >= k.max(1) => result.patterns.push(Pattern {
                treatments: treatments(people, all, any),
                members,
            }),
            SmallPattern::Mask | SmallPattern::Drop => result.dropped = members,
        }
        result
    }

    /// The individuals whose value of an attribute goes into a bucket, by the attribute's place in
    /// [`LgbInput::attributes`], in the order of their numbers.
    pub fn owners(&self, people: &LgbInput, attribute: usize) -> Vec<u32> {
        let attribute = people.attributes().nth(attribute);
        let own = |pattern: &&Pattern| match attribute {
            Some(AttributePlace::QuasiIdentifier(column)) => {
                pattern.treatments[column] == Treatment::Bucketized
            }
            Some(AttributePlace::Sensitive(_)) => true,
            None => false,
        };
        let patterns = self.patterns.iter().filter(own);
        let mut is_owner = vec![false; people.individuals()];
        for member in patterns.flat_map(|pattern| &pattern.members) {
            is_owner[*member as usize] = true;
        }
        let owners = (0..).zip(is_owner).filter(|(_, is_owner)| *is_owner);
        owners.map(|(individual, _)| individual).collect()
    }
}

/// Individuals by their flags, one bit per semi-sensitive column, in the order of the words.
fn by_word(people: &LgbInput) -> Vec<(u64, Vec<u32>)> {
    let mut words = vec![0u64; people.individuals()];
    let flags = people.secrets().iter().filter_map(|s| s.flags.as_deref());
    for (bit, flags) in flags.enumerate() {
        for (word, secret) in words.iter_mut().zip(flags) {
            *word |= u64::from(*secret) << bit;
        }
    }
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut sets: Vec<(u64, Vec<u32>)> = vec![];
    for (individual, word) in words.into_iter().enumerate() {
        let place = *places.entry(word).or_insert(sets.len());
        if place == sets.len() {
            sets.push((word, vec![]));
        }
        sets[place].1.push(individual as u32);
    }
    sets.sort_unstable_by_key(|(word, _)| *word);
    sets
}

/// Treatments where the bits of `all` are secret for everybody and those of `any` for somebody.
fn treatments(people: &LgbInput, all: u64, any: u64) -> Vec<Treatment> {
    let mut treatments = vec![Treatment::Generalized; people.quasi_identifiers()];
    for (bit, secret) in people.secrets().iter().enumerate() {
        if let AttributePlace::QuasiIdentifier(column) = secret.attribute {
            treatments[column] = match (all >> bit & 1, any >> bit & 1) {
                (1, _) => Treatment::Bucketized,
                (_, 1) => Treatment::Blank,
                _ => Treatment::Generalized,
            };
        }
    }
    treatments
}
