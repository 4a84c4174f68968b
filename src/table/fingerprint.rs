//! Fingerprints: the set of sensitive values of each individual.

/// The sensitive values of many individuals, coded, in one flat buffer.
///
/// Each fingerprint is sorted and free of duplicates.
#[derive(Debug, Clone, Default)]
pub struct Fingerprints {
    offsets: Vec<u32>,
    codes: Vec<u32>,
}

impl Fingerprints {
    /// An empty collection.
    pub fn new() -> Self {
        Self {
            offsets: vec![0],
            codes: vec![],
        }
    }

    /// Appends the fingerprint of the next individual; sorts and deduplicates `codes`.
    pub fn push(&mut self, codes: &mut Vec<u32>) {
        codes.sort_unstable();
        codes.dedup();
        self.codes.extend_from_slice(codes);
        self.offsets.push(self.codes.len() as u32);
    }

    /// The fingerprint of one individual.
    pub fn of(&self, individual: u32) -> &[u32] {
        let i = individual as usize;
        &self.codes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Number of individuals.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no individual.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        (self.offsets.capacity() + self.codes.capacity()) * size_of::<u32>()
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
