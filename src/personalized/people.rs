//! What the anonymizer sees of a table: one record per individual, coded, with each owner's wishes.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Attribute, Unworkable};
use crate::model::Ratio;
use crate::table::{Block, Fingerprints, NULL_CODE, QuasiIdentifier, Region};

/// Most semi-sensitive quasi-identifiers: a pattern of flags is one machine word.
pub const MAX_SEMI_SENSITIVE: usize = 64;

/// The individuals of one block, or of the whole table, with one record each (docs/papers.md L10).
///
/// Individuals are numbered `0..individuals()` in a random order, as in [`Block`]; ties go to the smaller number.
#[derive(Debug, Clone)]
pub struct People {
    individuals: usize,
    columns: Vec<Column>,
    secrets: Vec<Secret>,
    full: u64,
}

/// A quasi-identifier, plain or semi-sensitive (Li 2020, Definitions 1 and 3).
#[derive(Debug, Clone)]
pub struct QiColumn<'a> {
    /// The coded column, by which values are generalized and losses measured. One value per individual.
    pub values: Cow<'a, QuasiIdentifier>,
    /// The rank of each individual's value in the order of the column: numbers by size, other values by their
    /// hierarchy and then by their bytes (L3). Equal values have equal ranks; missing ones have [`NULL_CODE`].
    pub ranks: Vec<u32>,
    /// Present for a semi-sensitive column.
    pub wishes: Option<Wishes>,
}

/// What the owners of a semi-sensitive column's values want.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// Whether each individual keeps its value secret. Never published.
    pub secret: Vec<bool>,
    /// What the buckets of the secret values must satisfy.
    pub rule: Rule,
}

/// A sensitive column: everybody's value is secret (Li 2020, Definition 2).
#[derive(Debug, Clone)]
pub struct SensitiveColumn {
    /// The rank of each individual's value, as in [`QiColumn::ranks`].
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
        order: Order,
        /// Number of individuals by rank in the whole table, where this is only a part of it; else the secret values
        /// at hand are the reference.
        reference: Option<Arc<[u64]>>,
    },
}

/// How far two distributions are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// All values are equally far from each other: the variational distance.
    Nominal,
    /// Values are as far apart as their places in the order: the ordered earth mover's distance.
    Numeric,
}

/// A quasi-identifier ready for regions of its own.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The column alone, so that a pattern of flags is a choice of columns; with somebody for each rank, because equal
    /// ranks are equal values, and last somebody without a value.
    pub block: Block,
    /// The rank of every individual.
    pub ranks: Vec<u32>,
    /// The place of whoever has no value, and the number of ranks.
    without: u32,
    /// Whether a region depends on its smallest and largest rank alone.
    is_ordered: bool,
}

/// An attribute with secret values.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    pub attribute: Attribute,
    /// For sensitive columns; those of semi-sensitive ones stand in their [`Column`].
    ranks: Vec<u32>,
    /// For semi-sensitive columns.
    pub flags: Option<Vec<bool>>,
    pub rule: Rule,
}

impl People {
    /// Puts the columns together; `full` is the loss of one suppressed cell, in which the columns' steps are counted.
    ///
    /// # Errors
    ///
    /// [`Unworkable::Shape`] if columns differ in length or there are too many semi-sensitive ones,
    /// [`Unworkable::MissingSecrets`] if a secret value is missing (X3), [`Unworkable::Bounds`] for l below 2.
    pub fn try_new(
        individuals: usize,
        quasi_identifiers: Vec<QiColumn<'_>>,
        sensitive: Vec<SensitiveColumn>,
        full: u64,
    ) -> Result<Self, Unworkable> {
        let mut columns = Vec::with_capacity(quasi_identifiers.len());
        let mut secrets = vec![];
        for (at, column) in quasi_identifiers.into_iter().enumerate() {
            if let Some(wishes) = column.wishes {
                let secret = Secret {
                    attribute: Attribute::QuasiIdentifier(at),
                    ranks: vec![],
                    flags: Some(wishes.secret),
                    rule: wishes.rule,
                };
                secret.check(individuals, &column.ranks)?;
                secrets.push(secret);
            }
            let values = column.values.as_ref();
            columns.push(Column::try_new(individuals, values, column.ranks, full)?);
        }
        if secrets.len() > MAX_SEMI_SENSITIVE {
            return Err(Unworkable::Shape("too many semi-sensitive columns"));
        }
        for (at, column) in sensitive.into_iter().enumerate() {
            let secret = Secret {
                attribute: Attribute::Sensitive(at),
                ranks: column.ranks,
                flags: None,
                rule: column.rule,
            };
            secret.check(individuals, &secret.ranks)?;
            secrets.push(secret);
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
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = Attribute> + '_ {
        self.secrets.iter().map(|secret| secret.attribute)
    }

    /// The ranks of an attribute with secret values, by its place in [`People::attributes`].
    pub fn ranks(&self, attribute: usize) -> &[u32] {
        match self.secrets[attribute].attribute {
            Attribute::QuasiIdentifier(column) => &self.columns[column].ranks,
            Attribute::Sensitive(_) => &self.secrets[attribute].ranks,
        }
    }

    pub(super) fn columns(&self) -> &[Column] {
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

impl Column {
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
        let is_ordered = !matches!(values, QuasiIdentifier::Categorical(_));
        Ok(Self {
            block: Block::new(vec![values.select(&examples)], none, records, full),
            ranks,
            without,
            is_ordered,
        })
    }

    /// Somebody in the column's block whose value has this rank.
    pub fn example(&self, rank: u32) -> u32 {
        rank.min(self.without)
    }

    /// What individuals with these ranks publish, and whether their values differ; `None` without any.
    pub fn region(
        &self,
        ranks: impl Iterator<Item = u32>,
        seen: &mut Seen,
    ) -> Option<(Region, bool)> {
        if self.is_ordered {
            let mut span = Span::default();
            ranks.for_each(|rank| span.add(rank));
            return self.region_of_span(span);
        }
        seen.clear(self.without as usize);
        let mut region: Option<Region> = None;
        for rank in ranks {
            if !seen.insert(rank) {
                continue;
            }
            match &mut region {
                Some(region) => region.include(&self.block, self.example(rank)),
                None => region = Some(Region::of(&self.block, self.example(rank))),
            }
        }
        region.map(|region| (region, seen.distinct() > 1))
    }

    /// What the members of each part of a set lose in this column, each: those for whom `left` holds, and the others.
    pub fn losses_of_parts(&self, ranks: &[u32], left: &[bool], seen: &mut Seen) -> [u64; 2] {
        let loss = |region: Option<(Region, bool)>| region.map_or(0, |(region, _)| region.loss());
        if self.is_ordered {
            let mut spans = [Span::default(), Span::default()];
            for (rank, left) in ranks.iter().zip(left) {
                spans[usize::from(!left)].add(*rank);
            }
            return spans.map(|span| loss(self.region_of_span(span)));
        }
        [true, false].map(|side| {
            let own = ranks.iter().zip(left).filter(|(_, left)| **left == side);
            loss(self.region(own.map(|(rank, _)| *rank), seen))
        })
    }

    fn region_of_span(&self, span: Span) -> Option<(Region, bool)> {
        let (first, differ) = match (span.lo < NULL_CODE, span.missing) {
            (false, false) => return None,
            (false, true) => (NULL_CODE, false),
            (true, missing) => (span.lo, missing || span.lo < span.hi),
        };
        let mut region = Region::of(&self.block, self.example(first));
        if span.lo < span.hi {
            region.include(&self.block, self.example(span.hi));
        }
        if differ && span.missing {
            region.include(&self.block, self.example(NULL_CODE));
        }
        Some((region, differ))
    }
}

/// The smallest and the largest of some ranks, and whether one is missing.
#[derive(Debug, Clone, Copy)]
struct Span {
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
    fn add(&mut self, rank: u32) {
        let is_missing = rank == NULL_CODE;
        self.missing |= is_missing;
        self.lo = self.lo.min(rank);
        self.hi = self.hi.max(if is_missing { 0 } else { rank });
    }
}

/// The ranks seen in one set after the other.
#[derive(Debug, Default)]
pub(super) struct Seen {
    turn: u32,
    turns: Vec<u32>,
    missing: u32,
    distinct: usize,
}

impl Seen {
    fn clear(&mut self, ranks: usize) {
        if self.turns.len() < ranks {
            self.turns.resize(ranks, 0);
        }
        self.distinct = 0;
        self.turn = match self.turn.checked_add(1) {
            Some(turn) => turn,
            None => {
                self.turns.fill(0);
                self.missing = 0;
                1
            }
        };
    }

    /// Whether the rank is new in this set.
    fn insert(&mut self, rank: u32) -> bool {
        let turn = match self.turns.get_mut(rank as usize) {
            Some(turn) => turn,
            None => &mut self.missing,
        };
        let new = *turn != self.turn;
        *turn = self.turn;
        self.distinct += usize::from(new);
        new
    }

    /// Number of different ranks in the last set, a missing value counted as one.
    pub fn distinct(&self) -> usize {
        self.distinct
    }
}
