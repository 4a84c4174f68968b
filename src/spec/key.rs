//! The release key: the only source of randomness of a release.

use std::fmt;

use datafusion::common::{Result, exec_datafusion_err};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher24;

/// A 256-bit secret from which pseudonyms and every random choice of a release derive.
///
/// It is drawn from the operating system when a call is planned, and combined with the time of execution: a CTE named
/// twice in a query is one release, while a view or a prepared statement is a new one for every query. It is never
/// printed.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReleaseKey([u8; 32]);

/// The two secrets of one individual: both halves of one keyed hash, so neither tells anything about the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Position of the individual in every random order. Not published.
    pub order: u64,
    /// The published pseudonym.
    pub pseudonym: [u8; 16],
}

impl ReleaseKey {
    /// A key from the operating system's random generator.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|e| exec_datafusion_err!("no randomness from the operating system: {e}"))?;
        Ok(Self(bytes))
    }

    /// The key of a seed. Whoever knows the seed can reproduce the release, pseudonyms included, from the input.
    pub fn from_seed(seed: &str) -> Self {
        Self(blake3::derive_key(
            "datafusion-anonymize 2026 release key from seed",
            seed.as_bytes(),
        ))
    }

    /// The key of one execution of a plan, told apart from others by `moment`.
    pub(crate) fn at(&self, moment: &[u8]) -> Self {
        Self(*blake3::keyed_hash(&self.0, moment).as_bytes())
    }

    /// The key of the random choices in one block.
    pub(crate) fn of_block(&self, block: u32) -> [u8; 32] {
        let mut material = self.0.to_vec();
        material.extend(block.to_be_bytes());
        blake3::derive_key("datafusion-anonymize 2026 choices in a block", &material)
    }

    /// The secrets of the individual whose id has these bytes.
    pub(crate) fn tag(&self, id: &[u8]) -> Tag {
        let hash = blake3::keyed_hash(&self.0, id);
        let bytes = hash.as_bytes();
        let (mut order, mut pseudonym) = ([0; 8], [0; 16]);
        order.copy_from_slice(&bytes[..8]);
        pseudonym.copy_from_slice(&bytes[8..24]);
        Tag {
            order: u64::from_be_bytes(order),
            pseudonym,
        }
    }
}

/// Published ids of groups and buckets: a keyed permutation of block and number, so that ids of one kind differ
/// however many blocks there are, and say nothing about the order in which they were given.
pub(crate) struct IdSpace {
    /// Numbers are hashed by SipHash, which is made for them and much faster than what hashes ids of any length.
    hasher: SipHasher24,
    block: u32,
}

/// Rounds of the permutation: four make a Feistel network of random functions a strong one (Luby and Rackoff 1988).
const ROUNDS: u32 = 4;

impl IdSpace {
    /// The ids of one block.
    pub fn new(key: &ReleaseKey, block: u32) -> Self {
        let key = blake3::derive_key("datafusion-anonymize 2026 ids in a release", &key.0);
        let mut half = [0; 16];
        half.copy_from_slice(&key[..16]);
        let hasher = SipHasher24::new_with_key(&half);
        Self { hasher, block }
    }

    /// The id of a group or bucket by its kind and its number in the block.
    pub fn id(&self, kind: u32, number: u32) -> u64 {
        let (mut left, mut right) = (self.block, number);
        for round in 0..ROUNDS {
            let mut input = [0; 12];
            input[..4].copy_from_slice(&kind.to_be_bytes());
            input[4..8].copy_from_slice(&round.to_be_bytes());
            input[8..].copy_from_slice(&right.to_be_bytes());
            let hash = self.hasher.hash(&input);
            (left, right) = (right, left ^ (hash as u32));
        }
        (u64::from(left) << 32) | u64::from(right)
    }
}

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReleaseKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_kind_differ_in_all_blocks_and_have_no_order() {
        let key = ReleaseKey::from_seed("ids");
        let mut ids = vec![];
        for block in 0..8 {
            let space = IdSpace::new(&key, block);
            ids.extend((0..5_000).map(|number| space.id(1, number)));
            assert_ne!(space.id(1, 0), space.id(2, 0));
        }
        let rising = ids.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!(rising.abs_diff(ids.len() / 2) < 500, "{rising}");
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert_ne!(key.of_block(0), key.of_block(1));
    }

    #[test]
    fn keys_differ_and_stay_secret() {
        let (a, b) = (ReleaseKey::random().unwrap(), ReleaseKey::random().unwrap());
        assert_ne!(a, b);
        assert_ne!(a.tag(b"Mike"), b.tag(b"Mike"));
        assert_eq!(a.tag(b"Mike"), a.tag(b"Mike"));
        assert_eq!(ReleaseKey::from_seed("42"), ReleaseKey::from_seed("42"));
        assert_eq!(format!("{a:?}"), "ReleaseKey(secret)");
    }
}
