//! Privacy models: what a class must satisfy to be published. One file each, and the list [`MODELS`].

mod alpha_beta;
mod eir_l;
mod hitting_set;
mod ir_k;
mod ir_kl;
mod kkm;
mod kl_diversity;
mod p_sensitive;
mod parameter;

use std::fmt::Debug;

use crate::table::{Block, NULL_CODE};

pub use kl_diversity::{Catalogue, KlDiversity, Shares};
pub use parameter::{Parameter, ParameterError, ParameterKind, Parameters, Ratio, Value};

/// A privacy requirement on classes.
pub trait Model: Debug + Send + Sync {
    /// The requirement with its parameters, as a reader of a report sees it: `EIR 3-diversity`.
    fn describe(&self) -> String;

    /// What keeps a satisfied class satisfied.
    fn closure(&self) -> Closure;

    /// No class with fewer individuals can satisfy the model.
    fn min_individuals(&self) -> usize;

    /// The counts of a class without members.
    fn tally(&self) -> Box<dyn Tally>;

    /// Whether any class can be formed from these members; if not, which parameter value could be.
    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible>;

    /// A stricter model whose classes are worth a try as well, if there is one: where small classes are valid, those formed
    /// first use up the members that the others need. Decides nothing about privacy: whatever satisfies the stricter
    /// model satisfies this one.
    fn stricter(&self) -> Option<Box<dyn Model>> {
        None
    }
}

/// What a model counts in one class, updated member by member.
pub trait Tally: Send {
    /// Counts one more member.
    fn add(&mut self, member: Member<'_>);

    /// Whether the class as counted satisfies the model. Exact, or a safe "no".
    fn satisfied(&mut self) -> bool;

    /// Whether a further member would bring a class that is not satisfied nearer to it, as far as can be told at
    /// little cost. Decides nothing about privacy: algorithms that look for good members ask it.
    fn helps(&self, member: Member<'_>) -> bool {
        let _ = member;
        true
    }

    /// Forgets all members.
    fn clear(&mut self);
}

/// One individual as a model sees it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member<'a> {
    /// Number of records published for the individual: |R(p)|.
    pub records: u32,
    /// The individual's sensitive values, coded, sorted, distinct: S(p).
    pub fingerprint: &'a [u32],
    /// The number of its records that show each value; one unless kept columns tell records apart.
    pub counts: &'a [u32],
    /// The sensitive attribute of each value; empty if there is one without categories.
    pub attributes: &'a [u8],
    /// The category of each value, 0 for the most sensitive; empty if there is one attribute without categories.
    pub categories: &'a [u32],
    /// The number of categories of each attribute.
    pub levels: &'a [u32],
}

impl<'a> Member<'a> {
    /// An individual of a block.
    pub fn of(block: &'a Block, individual: u32) -> Self {
        Self {
            records: block.records(individual),
            fingerprint: block.fingerprints().of(individual),
            counts: block.fingerprints().counts(individual),
            attributes: block.fingerprints().attributes(individual),
            categories: block.fingerprints().categories(individual),
            levels: block.fingerprints().levels(),
        }
    }
}

/// Which ways of growing a class keep the model satisfied (docs/theory/papers.md G7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closure {
    /// The union of two satisfied classes without a common individual is satisfied.
    pub union: bool,
    /// A satisfied class with one more individual is satisfied.
    pub extension: bool,
}

/// No class can satisfy the model; says which parameter value would work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Infeasible {
    /// The parameter to change.
    pub parameter: &'static str,
    /// The best value that can be reached, if any can.
    pub best: Option<Value>,
}

impl Infeasible {
    /// What could be said of the best value: a count or a weight is known to work, a share only not to be ruled out.
    pub fn advice(&self) -> String {
        let parameter = self.parameter;
        match self.best {
            Some(best @ (Value::Integer(_) | Value::Weight(_))) => {
                format!("the largest {parameter} that works is {best}")
            }
            Some(best @ Value::Ratio(_)) => {
                format!("the smallest {parameter} that may work is {best}")
            }
            None => format!("no other {parameter} works either"),
        }
    }

    /// Whether this came nearer to the requirement: a larger count or weight, or a smaller share.
    pub fn is_nearer_than(&self, other: &Infeasible) -> bool {
        match (self.best, other.best) {
            (Some(Value::Integer(mine)), Some(Value::Integer(theirs))) => mine > theirs,
            (Some(Value::Ratio(mine)), Some(Value::Ratio(theirs))) => mine < theirs,
            (Some(Value::Weight(mine)), Some(Value::Weight(theirs))) => mine > theirs,
            (mine, theirs) => mine.is_some() && theirs.is_none(),
        }
    }
}

impl Member<'_> {
    /// The values of which any choice of one record shows one for certain: none if a record's value is missing,
    /// because that record may be the one chosen (X3 in docs/theory/papers.md).
    pub fn certain(&self) -> &[u32] {
        match self.fingerprint.last() {
            Some(&NULL_CODE) => &[],
            _ => self.fingerprint,
        }
    }
}

/// A model in the list [`MODELS`]: arguments, error texts, help and documentation derive from it.
#[derive(Debug)]
pub struct ModelEntry {
    /// The name by which specs refer to the model.
    pub name: &'static str,
    /// The SQL function that offers it.
    pub function: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Its parameters; a function picks the model whose parameters are the ones given.
    pub parameters: &'static [Parameter],
    /// Builds the model from checked parameters.
    pub build: fn(&Parameters) -> Result<Box<dyn Model>, ParameterError>,
}

/// All models.
pub static MODELS: &[&ModelEntry] = &[
    &ir_k::ENTRY,
    &ir_kl::ENTRY,
    &alpha_beta::IR_ENTRY,
    &eir_l::ENTRY,
    &alpha_beta::EIR_ENTRY,
    &p_sensitive::ENTRY,
    &p_sensitive::PLUS_ENTRY,
    &p_sensitive::ALPHA_ENTRY,
    &kl_diversity::ENTRY,
    &kkm::ENTRY,
];

/// The model of that name.
pub fn find(name: &str) -> Option<&'static ModelEntry> {
    MODELS.iter().copied().find(|entry| entry.name == name)
}

/// The models a function offers.
pub fn offered_by(function: &str) -> impl Iterator<Item = &'static ModelEntry> {
    MODELS
        .iter()
        .copied()
        .filter(move |entry| entry.function == function)
}
