//! Fingerprints: the set of sensitive values of each individual.

use std::ops::Range;

/// The sensitive values of many individuals, coded, in one flat buffer.
///
/// Each fingerprint is sorted and free of duplicates; beside each value stands the number of records that show it.
#[derive(Debug, Clone, Default)]
pub struct Fingerprints {
    offsets: Vec<u32>,
    codes: Vec<u32>,
    counts: Vec<u32>,
}

impl Fingerprints {
    /// An empty collection.
    pub fn new() -> Self {
        Self {
            offsets: vec![0],
            codes: vec![],
            counts: vec![],
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
