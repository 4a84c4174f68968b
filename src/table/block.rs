//! The individuals of one block, coded as integers: all that an algorithm sees of a table.

use std::sync::Arc;

use super::{Fingerprints, Hierarchy};

/// Code of a missing quasi-identifier value. NULL is a category of its own that shares a class only with
/// other NULLs or at full loss (a class with NULLs and values is suppressed in that column).
pub const NULL_CODE: u32 = u32::MAX;

/// A set of similar individuals from which an algorithm forms classes.
///
/// Individuals are numbered `0..len()`. The numbering *is* the random part of every algorithm: the engine sorts the
/// individuals of a block by a keyed hash of their id, so "select a random individual" is "take the next one", and
/// every tie goes to the smaller number. No algorithm needs a random generator, and the same key gives the same
/// classes whatever the order, the partitions or the batches of the input were.
#[derive(Debug, Clone)]
pub struct Block {
    quasi_identifiers: Vec<QuasiIdentifier>,
    fingerprints: Fingerprints,
    records: Vec<u32>,
    full: u64,
}

/// One coded quasi-identifier column.
#[derive(Debug, Clone)]
pub enum QuasiIdentifier {
    /// Ordered values on an integer scale; generalized to an interval.
    Numeric(Numeric),
    /// Unordered values; generalized to the set of attained values.
    Categorical(Categorical),
    /// Leaves of a hierarchy; generalized to the smallest node that covers them.
    Hierarchical(Hierarchical),
}

/// A numeric column: individual `i` covers `lo[i]..=hi[i]` (equal unless its records contradict each other).
/// Missing values have both ends [`NULL_CODE`].
#[derive(Debug, Clone)]
pub struct Numeric {
    /// Lower end per individual.
    pub lo: Vec<u32>,
    /// Upper end per individual.
    pub hi: Vec<u32>,
    /// Loss of widening an interval by one (Wang 2018, Eq. 11: 1 / (U − L)), in units of [`Block::full`].
    pub step: u64,
}

/// A categorical column: individual `i` has the codes `codes[offsets[i]..offsets[i + 1]]`, sorted, distinct, at
/// least one; one unless its records contradict each other.
#[derive(Debug, Clone)]
pub struct Categorical {
    /// `len() + 1` offsets into `codes`.
    pub offsets: Vec<u32>,
    /// Codes below `cardinality`, or [`NULL_CODE`].
    pub codes: Vec<u32>,
    /// Codes lie below this number.
    pub cardinality: u32,
    /// Loss of one more value in a set (Wang 2018, Eq. 12: 1 / (|X| − 1)), in units of [`Block::full`].
    pub step: u64,
}

/// A column with a hierarchy: individual `i` covers the leaves from `lo[i]` to `hi[i]` (equal unless its records
/// contradict each other). Missing values have both ends [`NULL_CODE`].
#[derive(Debug, Clone)]
pub struct Hierarchical {
    /// First leaf per individual.
    pub lo: Vec<u32>,
    /// Last leaf per individual.
    pub hi: Vec<u32>,
    /// The hierarchy, with what each node loses.
    pub tree: LossTree,
}

/// A hierarchy and the loss of publishing each of its nodes, in units of [`Block::full`]: nothing for a leaf, and never
/// less than for a node below. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LossTree {
    /// The hierarchy.
    pub hierarchy: Arc<Hierarchy>,
    /// Loss by node.
    pub losses: Arc<Vec<u64>>,
}

impl LossTree {
    /// Loss of publishing a node.
    pub fn loss(&self, node: u32) -> u64 {
        self.losses[node as usize]
    }

    /// Loss of publishing the smallest node that covers the leaves from `first` to `last`. It grows with the range.
    pub fn span_loss(&self, first: u32, last: u32) -> u64 {
        self.loss(self.hierarchy.covering(first, last))
    }
}

impl Categorical {
    /// The codes of one individual.
    pub fn of(&self, individual: u32) -> &[u32] {
        let i = individual as usize;
        &self.codes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
}

impl QuasiIdentifier {
    /// The column of these individuals, one after the other.
    pub fn select(&self, individuals: &[u32]) -> Self {
        let of = |codes: &[u32]| individuals.iter().map(|i| codes[*i as usize]).collect();
        match self {
            Self::Numeric(n) => Self::Numeric(Numeric {
                lo: of(&n.lo),
                hi: of(&n.hi),
                step: n.step,
            }),
            Self::Categorical(c) => {
                let (mut offsets, mut codes) = (vec![0], vec![]);
                for individual in individuals {
                    codes.extend_from_slice(c.of(*individual));
                    offsets.push(codes.len() as u32);
                }
                Self::Categorical(Categorical {
                    offsets,
                    codes,
                    cardinality: c.cardinality,
                    step: c.step,
                })
            }
            Self::Hierarchical(h) => Self::Hierarchical(Hierarchical {
                lo: of(&h.lo),
                hi: of(&h.hi),
                tree: h.tree.clone(),
            }),
        }
    }
}

impl Block {
    /// Puts a block together.
    ///
    /// `records` is the number of records published per individual; `full` is the loss of one suppressed cell, the
    /// common denominator of all losses.
    pub fn new(
        quasi_identifiers: Vec<QuasiIdentifier>,
        fingerprints: Fingerprints,
        records: Vec<u32>,
        full: u64,
    ) -> Self {
        debug_assert_eq!(fingerprints.len(), records.len());
        Self {
            quasi_identifiers,
            fingerprints,
            records,
            full,
        }
    }

    /// Gives the individuals other fingerprints, and one record each.
    pub fn set_fingerprints(&mut self, fingerprints: Fingerprints) {
        self.records = vec![1; fingerprints.len()];
        self.fingerprints = fingerprints;
    }

    /// Number of individuals.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the block has no individual.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The coded quasi-identifier columns.
    pub fn quasi_identifiers(&self) -> &[QuasiIdentifier] {
        &self.quasi_identifiers
    }

    /// The fingerprints of all individuals.
    pub fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }

    /// Number of records published for an individual: |R(p)|.
    pub fn records(&self, individual: u32) -> u32 {
        self.records[individual as usize]
    }

    /// Loss of one fully suppressed cell; every loss is an integer multiple of 1 / `full`.
    pub fn full(&self) -> u64 {
        self.full
    }
}
