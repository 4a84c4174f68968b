//! Fingerprints: the set of sensitive values of each individual.

use std::ops::Range;

/// The sensitive values of many individuals, coded, in one flat buffer.
///
/// Each fingerprint is sorted and free of duplicates; beside each value stands the number of records that show it.
/// Where there are several sensitive attributes, or values have categories, these stand beside it too.
#[derive(Debug, Clone, Default)]
pub struct Fingerprints {
    offsets: Vec<u32>,
    codes: Vec<u32>,
    counts: Vec<u32>,
    /// Empty if there is one attribute without categories.
    attributes: Vec<u8>,
    categories: Vec<u32>,
    levels: Vec<u32>,
}

/// One sensitive value of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sensitive {
    /// The value; [`NULL_CODE`](super::NULL_CODE) if it is missing. Values of different attributes may share a code.
    pub code: u32,
    /// The attribute it is a value of.
    pub attribute: u8,
    /// Its category, 0 for the most sensitive; [`NULL_CODE`](super::NULL_CODE) if it is missing or has none.
    pub category: u32,
}

impl Fingerprints {
    /// An empty collection.
    pub fn new() -> Self {
        Self {
            offsets: vec![0],
            codes: vec![],
            counts: vec![],
            attributes: vec![],
            categories: vec![],
            levels: vec![],
        }
    }

    /// An empty collection of values of so many attributes as there are `levels`, which are their numbers of
    /// categories; 0 for an attribute without categories.
    pub fn with_levels(levels: Vec<u32>) -> Self {
        Self {
            levels,
            ..Self::new()
        }
    }

    /// Appends the fingerprint of the next individual, given the code of each of its records; sorts and deduplicates
    /// `codes`.
    pub fn push(&mut self, codes: &mut Vec<u32>) {
        codes.sort_unstable();
        let counts = codes.chunk_by(|a, b| a == b).map(|same| same.len() as u32);
        self.counts.extend(counts);
        codes.dedup();
        self.codes.extend_from_slice(codes);
        self.offsets.push(self.codes.len() as u32);
    }

    /// As [`Fingerprints::push`], for values with their attributes and categories.
    pub fn push_sensitive(&mut self, values: &mut Vec<Sensitive>) {
        values.sort_unstable();
        let counts = values.chunk_by(|a, b| a == b).map(|same| same.len() as u32);
        self.counts.extend(counts);
        values.dedup();
        self.codes.extend(values.iter().map(|v| v.code));
        self.attributes.extend(values.iter().map(|v| v.attribute));
        self.categories.extend(values.iter().map(|v| v.category));
        self.offsets.push(self.codes.len() as u32);
    }

    /// The attribute of each value of an individual's fingerprint; nothing if there is one attribute without
    /// categories.
    pub fn attributes(&self, individual: u32) -> &[u8] {
        match self.attributes.is_empty() {
            true => &[],
            false => &self.attributes[self.range(individual)],
        }
    }

    /// The category of each value of an individual's fingerprint, [`NULL_CODE`](super::NULL_CODE) if it has none;
    /// nothing if there is one attribute without categories.
    pub fn categories(&self, individual: u32) -> &[u32] {
        match self.categories.is_empty() {
            true => &[],
            false => &self.categories[self.range(individual)],
        }
    }

    /// The number of categories of each attribute; nothing if there is one attribute without categories.
    pub fn levels(&self) -> &[u32] {
        &self.levels
    }

    /// The fingerprint of one individual.
    pub fn of(&self, individual: u32) -> &[u32] {
        &self.codes[self.range(individual)]
    }

    /// The number of records that show each value of an individual's fingerprint.
    pub fn counts(&self, individual: u32) -> &[u32] {
        &self.counts[self.range(individual)]
    }

    fn range(&self, individual: u32) -> Range<usize> {
        let i = individual as usize;
        self.offsets[i] as usize..self.offsets[i + 1] as usize
    }

    /// Number of individuals.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no individual.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<const N: usize> FromIterator<[u32; N]> for Fingerprints {
    fn from_iter<I: IntoIterator<Item = [u32; N]>>(iter: I) -> Self {
        let mut all = Self::new();
        for codes in iter {
            all.push(&mut codes.to_vec());
        }
        all
    }
}
