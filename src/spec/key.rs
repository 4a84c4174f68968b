//! The release key: the only source of randomness of a release.

use std::fmt;

use datafusion::common::{Result, exec_datafusion_err};
use serde::{Deserialize, Serialize};

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

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReleaseKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
