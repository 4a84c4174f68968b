//! (k, l)-diversity, its part about classes: no published fingerprint is held by more than 1/l of a class, and no
//! published value by all of it.
//!
//! The other part, that every published fingerprint is shared by at least k individuals, concerns the whole table and is
//! settled before classes are formed (`fingerprint/`). From then on the sensitive values of an individual are nodes of
//! the sensitive column's hierarchy, and this model sees those.

mod catalogue;
mod tally;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use self::catalogue::Catalogue;
use self::tally::Diversity;
use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterError, ParameterKind,
    Parameters, Tally, Value,
};

/// (k, l)-diversity of classes in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "kl_diversity",
    function: "anonymize_kl",
    help: "every published fingerprint is shared by k individuals and held by at most 1/l of a class",
    parameters: &[K, L, VALUE_L],
    build: |parameters| Ok(Box::new(KlDiversity::try_new(parameters)?)),
};

/// The parameter k, which the fingerprint step settles.
const K: Parameter = Parameter {
    name: "k",
    kind: ParameterKind::Integer {
        min: 2,
        max: 1_000_000,
    },
    required: true,
    help: "smallest number of individuals who share a published fingerprint",
};

const L: Parameter = Parameter {
    name: "l",
    kind: ParameterKind::Integer { min: 2, max: 1000 },
    required: true,
    help: "a fingerprint is held by at most 1/l of the individuals of a class",
};

const VALUE_L: Parameter = Parameter {
    name: "value_l",
    kind: ParameterKind::Integer { min: 2, max: 1000 },
    required: false,
    help: "a published value is held by at most 1/value_l of the individuals of a class; by default not by all",
};

/// (k, l)-diversity of classes (Gong et al. 2017, Definition 5 (2)).
///
/// # Guarantee
/// Of n individuals in a class,
///
/// - at most n / l may have the same set of sensitive values. Fingerprints are nodes of a hierarchy, and different ones
///   can describe the same set: `{A, b2}` and `{a1, b2}`, if a1 lies below A. Those are counted together
///   (docs/theory/papers.md M2);
/// - for every published value but the root, at most n / `value_l` have it, or something below it, or something above it,
///   which may be it; without `value_l`, not all of them (M1). Without this, l different fingerprints may all have one
///   value in common.
///
/// An individual without values counts for nothing (E4).
///
/// # Limits
/// A reader who knows both quasi-identifiers and sensitive values of an individual is not kept from finding it (M6).
#[derive(Debug, Clone)]
pub struct KlDiversity {
    k: u64,
    l: u64,
    value_l: Option<u64>,
    published: Option<Arc<Catalogue>>,
}

impl KlDiversity {
    /// The model over values that are compared as they are, without a hierarchy.
    fn try_new(parameters: &Parameters) -> Result<Self, ParameterError> {
        Ok(Self {
            k: parameters.integer("k")?,
            l: parameters.integer("l")?,
            value_l: parameters.integer("value_l").ok(),
            published: None,
        })
    }

    /// The model over published fingerprints: each member's fingerprint is one code, the number of its published
    /// fingerprint in the catalogue.
    pub fn over(
        parameters: &Parameters,
        published: Arc<Catalogue>,
    ) -> Result<Self, ParameterError> {
        Ok(Self {
            published: Some(published),
            ..Self::try_new(parameters)?
        })
    }

    /// How common the most common fingerprint and value of these individuals are.
    pub fn shares(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Shares {
        self.counted(members).shares()
    }

    fn counted(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Diversity {
        let mut tally = self.new_tally();
        for member in members {
            tally.add(member);
        }
        tally
    }

    fn new_tally(&self) -> Diversity {
        Diversity::new(self.l, self.value_l, self.published.clone())
    }
}

/// How common the most common fingerprint and value of a class are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// Individuals of the class.
    pub individuals: u64,
    /// Most individuals whose fingerprints can describe the same set.
    pub fingerprint: u64,
    /// Most individuals who have a published value, something below it or something above it.
    pub value: u64,
}

impl Shares {
    /// The largest l at which these individuals are a class.
    pub fn largest_l(&self) -> u64 {
        self.individuals.checked_div(self.fingerprint).unwrap_or(0)
    }

    /// The largest `value_l` at which they are; 1 stands for the default if it is met.
    pub fn largest_value_l(&self) -> u64 {
        match self.individuals.checked_div(self.value) {
            None => self.individuals.min(1),
            Some(1) => u64::from(self.value < self.individuals),
            Some(l) => l,
        }
    }
}

impl Model for KlDiversity {
    fn describe(&self) -> String {
        let (k, l) = (self.k, self.l);
        match self.value_l {
            Some(value_l) => {
                format!("({k}, {l})-diversity with values held by at most 1/{value_l}")
            }
            None => format!("({k}, {l})-diversity"),
        }
    }

    /// A union is safe for fingerprints, and for values that not all members may have: a value is published in one of
    /// both classes, where one member does not have it. A share of values is not: `{A}` among others, and a class of
    /// `{a1}`, `{a2}`, … where A is not published and all members have something below it.
    fn closure(&self) -> Closure {
        Closure {
            union: self.value_l.is_none() || self.published.is_none(),
            extension: false,
        }
    }

    fn min_individuals(&self) -> usize {
        self.l.max(self.value_l.unwrap_or(2)) as usize
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::new(self.new_tally())
    }

    /// Necessary conditions only: members may meet them, and still no class may.
    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        let different = self.counted(members).different() as u64;
        if different >= self.l {
            return Ok(());
        }
        Err(Infeasible {
            parameter: "l",
            best: (different >= 2).then_some(Value::Integer(different)),
        })
    }
}
