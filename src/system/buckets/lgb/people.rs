//! What the anonymizer sees of a table: one record per individual, coded, and which of its cells each owner wants kept secret.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AttributePlace, Unworkable};
use crate::model::Ratio;
use crate::table::{Block, Fingerprints, NULL_CODE, QuasiIdentifier, loss_of_two};

/// Most semi-sensitive quasi-identifiers: a pattern of flags is one machine word.
pub const MAX_SEMI_SENSITIVE: usize = 64;

/// The individuals of one block, or of the whole table, with one record each (docs/theory/papers.md L10).
///
/// Individuals are numbered `0..individuals()` in a random order, as in [`Block`]; ties go to the smaller number.
#[derive(Debug, Clone)]
pub struct LgbInput {
    individuals: usize,
    columns: Vec<CodedColumn>,
    secrets: Vec<Secret>,
    full: u64,
}

/// A quasi-identifier, plain or semi-sensitive (Li 2020, Definitions 1 and 3).
#[derive(Debug, Clone)]
pub struct QiInput<'a> {
    /// The coded column, by which values are generalized and losses measured. One value per individual.
    pub values: Cow<'a, QuasiIdentifier>,
    /// The rank of each individual's value in the order of the column: numbers by size, other values by their
    /// hierarchy and then by their bytes (L3). Equal values have equal ranks; missing ones have [`NULL_CODE`].
    pub ranks: Vec<u32>,
    /// Present for a semi-sensitive column.
    pub secret_cells: Option<SecretCells>,
}

/// What the owners of a semi-sensitive column's values want.
#[derive(Debug, Clone)]
pub struct SecretCells {
    /// Whether each individual keeps its value secret. Never published.
    pub secret: Vec<bool>,
    /// The ranks by which buckets tell values apart, if not by those of the column: spellings of one value share a rank.
    pub ranks: Option<Vec<u32>>,
    /// What the buckets of the secret values must satisfy.
    pub rule: Rule,
}

/// A sensitive column: everybody's value is secret (Li 2020, Definition 2).
#[derive(Debug, Clone)]
pub struct SensitiveInput {
    /// The rank of each individual's value, as in [`QiInput::ranks`].
    pub ranks: Vec<u32>,
    /// What the buckets must satisfy.
    pub rule: Rule,
}

/// What every bucket of an attribute must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Each value at most once in a bucket of at least `l` (Li 2020, Corollary 2).
    Diversity {
        /// At least 2: a bucket of one would show a secret beside its owner.
        l: u32,
    },
    /// The bucket's distribution lies within `t` of the reference, and it holds at least two different values.
    Closeness {
        /// The largest distance.
        t: Ratio,
        /// How the distance is measured.
        order: ValueOrder,
        /// Number of individuals by rank in the whole table, where this is only a part of it; else the secret values
        /// at hand are the reference.
        reference: Option<Arc<[u64]>>,
    },
}

/// How far two distributions are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrder {
    /// All values are equally far from each other: the variational distance.
    Nominal,
    /// Values are as far apart as their places in the order: the ordered earth mover's distance.
    Numeric,
}

/// A quasi-identifier ready for regions of its own.
#[derive(Debug, Clone)]
pub(super) struct CodedColumn {
    /// The column alone, so that a pattern of flags is a choice of columns; with somebody for each rank, because equal
    /// ranks are equal values, and last somebody without a value.
    pub block: Block,
    /// The rank of every individual.
    pub ranks: Vec<u32>,
    /// The place of whoever has no value, and the number of ranks.
    without: u32,
    measure: Extents,
}

/// How what a set of individuals loses depends on their ranks.
#[derive(Debug, Clone, Copy)]
enum Extents {
    /// On the smallest and the largest.
    Span,
    /// On the number of different ones, each but the first of which is a step, where all fit into the bits of a word.
    Few { step: u64 },
    /// The same, where they do not.
    Many { step: u64 },
}

/// An attribute with secret values.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    pub attribute: AttributePlace,
    /// None where they are those of the [`CodedColumn`].
    ranks: Option<Vec<u32>>,
    /// For semi-sensitive columns.
    pub flags: Option<Vec<bool>>,
    pub rule: Rule,
}

impl LgbInput {
    /// Puts the columns together; `full` is the loss of one suppressed cell, in which the columns' steps are counted.
    ///
    /// # Errors
    ///
    /// [`Unworkable::Shape`] if columns differ in length or there are too many semi-sensitive ones,
    /// [`Unworkable::MissingSecrets`] if a secret value is missing (X3), [`Unworkable::Bounds`] for l below 2.
    pub fn try_new(
        individuals: usize,
        quasi_identifiers: Vec<QiInput<'_>>,
        sensitive: Vec<SensitiveInput>,
        full: u64,
    ) -> Result<Self, Unworkable> {
        let mut columns = Vec::with_capacity(quasi_identifiers.len());
        let mut secrets = vec![];
        for (at, column) in quasi_identifiers.into_iter().enumerate() {
            if let Some(secret_cells) = column.secret_cells {
                let secret = Secret {
                    attribute: AttributePlace::QuasiIdentifier(at),
                    ranks: secret_cells.ranks,
                    flags: Some(secret_cells.secret),
                    rule: secret_cells.rule,
                };
                let ranks = secret.ranks.as_ref().unwrap_or(&column.ranks);
                secret.check(individuals, ranks)?;
                secrets.push(secret);
            }
            let values = column.values.as_ref();
            columns.push(CodedColumn::try_new(
                individuals,
                values,
                column.ranks,
                full,
            )?);
        }
        if secrets.len() > MAX_SEMI_SENSITIVE {
            return Err(Unworkable::Shape("too many semi-sensitive columns"));
        }
        for (at, column) in sensitive.into_iter().enumerate() {
            let secret = Secret {
                attribute: AttributePlace::Sensitive(at),
                ranks: None,
                flags: None,
                rule: column.rule,
            };
            secret.check(individuals, &column.ranks)?;
            secrets.push(Secret {
                ranks: Some(column.ranks),
                ..secret
            });
        }
        Ok(Self {
            individuals,
            columns,
            secrets,
            full,
        })
    }

    /// Number of individuals.
    pub fn individuals(&self) -> usize {
        self.individuals
    }

    /// Number of quasi-identifiers.
    pub fn quasi_identifiers(&self) -> usize {
        self.columns.len()
    }

    /// Loss of one cell that shows nothing.
    pub fn full(&self) -> u64 {
        self.full
    }

    /// The attributes with secret values: semi-sensitive quasi-identifiers, then sensitive columns.
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = AttributePlace> + '_ {
        self.secrets.iter().map(|secret| secret.attribute)
    }

    /// The ranks of an attribute with secret values, by its place in [`LgbInput::attributes`].
    pub fn ranks(&self, attribute: usize) -> &[u32] {
        let secret = &self.secrets[attribute];
        match (&secret.ranks, secret.attribute) {
            (Some(ranks), _) => ranks,
            (None, AttributePlace::QuasiIdentifier(column)) => &self.columns[column].ranks,
            (None, AttributePlace::Sensitive(_)) => &[],
        }
    }

    pub(super) fn columns(&self) -> &[CodedColumn] {
        &self.columns
    }

    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }
}

impl Secret {
    fn check(&self, individuals: usize, ranks: &[u32]) -> Result<(), Unworkable> {
        let flags = self.flags.as_deref();
        if ranks.len() != individuals || flags.is_some_and(|flags| flags.len() != individuals) {
            return Err(Unworkable::Shape("a column has another length"));
        }
        let attribute = self.attribute;
        if matches!(self.rule, Rule::Diversity { l } if l < 2) {
            return Err(Unworkable::Bounds { attribute });
        }
        let is_secret = |i: usize| flags.is_none_or(|flags| flags[i]);
        let missing = (0..individuals).filter(|i| ranks[*i] == NULL_CODE && is_secret(*i));
        match missing.count() {
            0 => Ok(()),
            individuals => Err(Unworkable::MissingSecrets {
                attribute,
                individuals,
            }),
        }
    }
}

impl CodedColumn {
    fn try_new(
        individuals: usize,
        values: &QuasiIdentifier,
        ranks: Vec<u32>,
        full: u64,
    ) -> Result<Self, Unworkable> {
        if ranks.len() != individuals {
            return Err(Unworkable::Shape("a column has another length"));
        }
        let largest = ranks.iter().filter(|rank| **rank != NULL_CODE).max();
        let without = largest.map_or(0, |rank| *rank + 1);
        // Ranks that nobody has are never asked for.
        let mut examples = vec![
            0;
            if individuals == 0 {
                0
            } else {
                without as usize + 1
            }
        ];
        for (individual, rank) in (0..).zip(&ranks) {
            examples[(*rank).min(without) as usize] = individual;
        }
        let none = examples.iter().map(|_| []).collect::<Fingerprints>();
        let records = vec![1; examples.len()];
        let measure = match values {
            QuasiIdentifier::Categorical(c) if without <= FEW => Extents::Few { step: c.step },
            QuasiIdentifier::Categorical(c) => Extents::Many { step: c.step },
            QuasiIdentifier::Numeric(_) | QuasiIdentifier::Hierarchical(_) => Extents::Span,
        };
        Ok(Self {
            block: Block::new(vec![values.select(&examples)], none, records, full),
            ranks,
            without,
            measure,
        })
    }

    /// What individuals with these ranks lose each, and whether their values differ.
    pub fn loss(&self, ranks: &[u32], seen: &mut Seen) -> (u64, bool) {
        match self.measure {
            Extents::Span => {
                let mut span = Span::default();
                ranks.iter().for_each(|rank| span.add(*rank));
                (self.loss_of_span(span), span.differs())
            }
            Extents::Few { step } => {
                let values = ranks.iter().fold(0, |values, rank| values | bit(*rank));
                (self.loss_of_set(step, values), values.count_ones() > 1)
            }
            Extents::Many { step } => {
                let (missing, distinct) = seen.count(self.without, ranks.iter().copied());
                let differ = distinct + usize::from(missing) > 1;
                (self.loss_of_many(step, missing, distinct), differ)
            }
        }
    }

    /// What the members of each part of a set lose in this column, each: those for whom `left` holds, and the others.
    pub fn losses_of_parts(&self, ranks: &[u32], left: &[bool], seen: &mut Seen) -> [u64; 2] {
        let members = ranks.iter().zip(left);
        // Each member counts on both sides, on one of them as nobody: which one it is cannot be foretold.
        match self.measure {
            Extents::Span => {
                let (mut left, mut right) = (Span::default(), Span::default());
                for (rank, is_left) in members {
                    left.add_if(*rank, *is_left);
                    right.add_if(*rank, !is_left);
                }
                [left, right].map(|span| self.loss_of_span(span))
            }
            Extents::Few { step } => {
                let (mut left, mut right) = (0, 0);
                for (rank, is_left) in members {
                    let (value, all) = (bit(*rank), u64::from(*is_left).wrapping_neg());
                    left |= value & all;
                    right |= value & !all;
                }
                [left, right].map(|values| self.loss_of_set(step, values))
            }
            Extents::Many { step } => [true, false].map(|side| {
                let own = members.clone().filter(|(_, left)| **left == side);
                let own = own.map(|(rank, _)| *rank);
                let (missing, distinct) = seen.count(self.without, own);
                self.loss_of_many(step, missing, distinct)
            }),
        }
    }

    /// What somebody with a rank publishes alone.
    pub fn extent(&self, rank: u32) -> Extent {
        match self.measure {
            Extents::Span => {
                let mut span = Span::default();
                span.add(rank);
                Extent::Span(span)
            }
            Extents::Few { .. } => Extent::Few(bit(rank)),
            Extents::Many { .. } => Extent::Many(vec![rank]),
        }
    }

    /// What each individual loses who publishes an extent, after it was widened by a rank.
    pub fn loss_with(&self, extent: &Extent, rank: u32) -> u64 {
        match (self.measure, extent) {
            (_, Extent::Span(span)) => {
                let mut span = *span;
                span.add(rank);
                self.loss_of_span(span)
            }
            (Extents::Few { step }, Extent::Few(values)) => {
                self.loss_of_set(step, values | bit(rank))
            }
            (Extents::Many { step } | Extents::Few { step }, Extent::Many(ranks)) => {
                let missing = rank == NULL_CODE || ranks.last() == Some(&NULL_CODE);
                let more = ranks.binary_search(&rank).is_err();
                let all = ranks.len() + usize::from(more);
                self.loss_of_many(step, missing, all - usize::from(missing))
            }
            // An extent is that of its own column.
            (Extents::Many { .. } | Extents::Span, _) => self.block.full(),
        }
    }

    fn loss_of_span(&self, span: Span) -> u64 {
        match (span.lo < NULL_CODE, span.missing) {
            (false, _) => 0,
            (true, true) => self.block.full(),
            (true, false) => match &self.block.quasi_identifiers()[0] {
                // Asked for so often that it is worth a shorter way.
                QuasiIdentifier::Numeric(n) => {
                    let (lo, hi) = (n.lo[span.lo as usize], n.hi[span.hi as usize]);
                    n.step.saturating_mul(u64::from(hi.saturating_sub(lo)))
                }
                _ => loss_of_two(&self.block, 0, span.lo, span.hi),
            },
        }
    }

    fn loss_of_set(&self, step: u64, values: u64) -> u64 {
        let missing = values & bit(NULL_CODE);
        let distinct = (values ^ missing).count_ones() as usize;
        self.loss_of_many(step, missing > 0, distinct)
    }

    fn loss_of_many(&self, step: u64, missing: bool, distinct: usize) -> u64 {
        match (distinct, missing) {
            (0, _) => 0,
            (_, true) => self.block.full(),
            (distinct, false) => step.saturating_mul(distinct as u64 - 1),
        }
    }
}

/// What several individuals publish in one column, if they publish the same.
#[derive(Debug, Clone)]
pub(super) enum Extent {
    Span(Span),
    Few(u64),
    /// Ascending, a missing one last.
    Many(Vec<u32>),
}

impl Extent {
    /// Widens it by a rank.
    pub fn include(&mut self, rank: u32) {
        match self {
            Self::Span(span) => span.add(rank),
            Self::Few(values) => *values |= bit(rank),
            Self::Many(ranks) => {
                if let Err(at) = ranks.binary_search(&rank) {
                    ranks.insert(at, rank);
                }
            }
        }
    }
}

/// Ranks that a set of bits has room for, beside a missing one.
const FEW: u32 = 63;

/// The bit of a rank in a set of few.
fn bit(rank: u32) -> u64 {
    1 << rank.min(FEW)
}

/// The smallest and the largest of some ranks, and whether one is missing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    lo: u32,
    hi: u32,
    missing: bool,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            lo: NULL_CODE,
            hi: 0,
            missing: false,
        }
    }
}

impl Span {
    fn differs(&self) -> bool {
        self.lo < NULL_CODE && (self.missing || self.lo < self.hi)
    }

    fn add(&mut self, rank: u32) {
        self.add_if(rank, true);
    }

    fn add_if(&mut self, rank: u32, counts: bool) {
        let is_missing = rank == NULL_CODE;
        self.missing |= is_missing & counts;
        self.lo = self.lo.min(if counts { rank } else { NULL_CODE });
        self.hi = self.hi.max(if is_missing | !counts { 0 } else { rank });
    }
}

/// The ranks seen in one set after the other.
#[derive(Debug, Default)]
pub(super) struct Seen {
    turn: u32,
    turns: Vec<u32>,
}

impl Seen {
    fn clear(&mut self, ranks: usize) {
        if self.turns.len() < ranks {
            self.turns.resize(ranks, 0);
        }
        self.turn = match self.turn.checked_add(1) {
            Some(turn) => turn,
            None => {
                self.turns.fill(0);
                1
            }
        };
    }

    /// Whether some of the ranks, all below `ranks`, are missing, and how many different others there are.
    fn count(&mut self, ranks: u32, set: impl Iterator<Item = u32>) -> (bool, usize) {
        self.clear(ranks as usize);
        let (mut missing, mut distinct) = (false, 0);
        for rank in set {
            match self.turns.get_mut(rank as usize) {
                Some(turn) => {
                    distinct += usize::from(*turn != self.turn);
                    *turn = self.turn;
                }
                None => missing = true,
            }
        }
        (missing, distinct)
    }
}
