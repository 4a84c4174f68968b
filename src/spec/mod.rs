//! What to publish: one value that SQL, Rust and jobs all fill in, checked against the input before it runs.

mod choice;
mod key;
mod options;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use choice::{
    Choice, Contradictory, FingerprintRows, LocalStrategy, Notation, NullId, NullSensitive, Output,
    SmallPatterns,
};
pub(crate) use key::IdSpace;
pub use key::ReleaseKey;
pub use options::Secrecy;
pub(crate) use options::{
    AnatomyOptions, BucketOptions, CATEGORIES, ClassOptions, FingerprintOptions, SystemOptions,
};

use crate::error;
use crate::table::coding::Levels;
use datafusion::common::Result;

/// What is published about whom under which requirement.
///
/// ```
/// use datafusion_anonymize::Spec;
///
/// let spec = Spec::new("anonymize_eir")
///     .with_id("name")
///     .with_qi(["gender", "age", "postcode"])
///     .with_sensitive(["disease"])
///     .with_parameter("l", 3);
/// assert_eq!(spec.model()?.describe(), "EIR 3-diversity");
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spec {
    function: String,
    id: Option<String>,
    qi: Vec<String>,
    sensitive: Vec<String>,
    categorical: Vec<String>,
    domains: BTreeMap<String, GivenDomain>,
    hierarchies: BTreeMap<String, Levels>,
    one_row_per_individual: bool,
    /// Parameters of the model and options of the algorithm as they were written; checked when used.
    parameters: BTreeMap<String, String>,
    /// As given; else the function's own.
    algorithm: Option<String>,
    /// As given; else what the algorithm needs.
    block: Option<BlockSize>,
    pub(crate) notation: Notation,
    pub(crate) null_id: NullId,
    pub(crate) null_sensitive: NullSensitive,
    pub(crate) contradictory: Contradictory,
    pub(crate) normalize: bool,
    key: Option<ReleaseKey>,
    seeded: bool,
    /// What only the functions of one system are told.
    options: SystemOptions,
    /// Options that were given although they are another system's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    refused: BTreeSet<String>,
}

/// How many individuals an algorithm sees at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BlockSize {
    /// The whole table at once, as the papers do.
    All,
    /// Blocks of about this many similar individuals.
    Individuals(u64),
}

/// A column's domain as the publisher states it, independent of the data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GivenDomain {
    /// Smallest and largest value of a numeric column.
    Range(String, String),
    /// All values of a categorical column.
    Values(Vec<String>),
}

impl Spec {
    /// A spec for a function of the system whose options these are.
    pub(crate) fn of_system(function: String, options: SystemOptions) -> Self {
        Self {
            options,
            refused: BTreeSet::new(),
            function,
            id: None,
            qi: vec![],
            sensitive: vec![],
            categorical: vec![],
            domains: BTreeMap::new(),
            hierarchies: BTreeMap::new(),
            one_row_per_individual: false,
            parameters: BTreeMap::new(),
            algorithm: None,
            block: None,
            notation: Notation::default(),
            null_id: NullId::default(),
            null_sensitive: NullSensitive::default(),
            contradictory: Contradictory::default(),
            normalize: false,
            key: None,
            seeded: false,
        }
    }

    /// The same call of another function of the same system.
    pub(crate) fn of_function(&self, function: &str) -> Self {
        Self {
            function: function.to_owned(),
            ..self.clone()
        }
    }

    /// The column that tells individuals apart; replaced by a random pseudonym.
    pub fn with_id(mut self, column: impl Into<String>) -> Self {
        self.id = Some(column.into());
        self
    }

    /// The columns an attacker may know.
    pub fn with_qi<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        let named = columns.into_iter().map(Into::into).collect();
        self.qi = self.all_quasi_identifiers(named);
        self
    }

    /// The column to protect, or several where the function protects each.
    pub fn with_sensitive<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        self.sensitive = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Quasi-identifiers of a numeric type whose values are names, not amounts.
    pub fn with_categorical<T: Into<String>>(
        mut self,
        columns: impl IntoIterator<Item = T>,
    ) -> Self {
        self.categorical = columns.into_iter().map(Into::into).collect();
        self
    }

    /// States a column's domain instead of learning it from the data.
    pub fn with_domain(mut self, column: impl Into<String>, domain: GivenDomain) -> Self {
        self.domains.insert(column.into(), domain);
        self
    }

    /// Generalizes a quasi-identifier to labels of a hierarchy instead of intervals or sets.
    pub fn with_hierarchy(mut self, column: impl Into<String>, levels: Levels) -> Self {
        self.hierarchies.insert(column.into(), levels);
        self
    }

    /// Takes each record for an individual of its own, instead of an id.
    pub fn with_one_row_per_individual(mut self, one_row: bool) -> Self {
        self.one_row_per_individual = one_row;
        self
    }

    /// Sets a parameter of the model or an option of the algorithm.
    pub fn with_parameter(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.parameters.insert(name.into(), value.to_string());
        self
    }

    /// Chooses the algorithm.
    pub fn with_algorithm(mut self, name: impl Into<String>) -> Self {
        self.algorithm = Some(name.into());
        self
    }

    /// Sets the block size.
    pub fn with_block(mut self, block: BlockSize) -> Self {
        self.block = Some(block);
        self
    }

    /// Chooses how generalized values are published.
    pub fn with_notation(mut self, notation: Notation) -> Self {
        self.notation = notation;
        self
    }

    /// Chooses what happens to records without an id.
    pub fn with_null_id(mut self, choice: NullId) -> Self {
        self.null_id = choice;
        self
    }

    /// Chooses what happens to records without a sensitive value.
    pub fn with_null_sensitive(mut self, choice: NullSensitive) -> Self {
        self.null_sensitive = choice;
        self
    }

    /// Chooses what happens to individuals whose records disagree on a quasi-identifier.
    pub fn with_contradictory(mut self, choice: Contradictory) -> Self {
        self.contradictory = choice;
        self
    }

    /// Counts sensitive values that differ only in case, spacing or Unicode form as one value.
    pub fn with_normalize(mut self, normalize: bool) -> Self {
        self.normalize = normalize;
        self
    }

    /// Makes the release reproducible by whoever knows the seed. Leave it out for what you publish.
    pub fn with_seed(mut self, seed: impl ToString) -> Self {
        self.key = Some(ReleaseKey::from_seed(&seed.to_string()));
        self.seeded = true;
        self
    }

    /// The SQL function this spec belongs to; every message starts with it.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The id column.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The quasi-identifier columns.
    pub fn qi(&self) -> &[String] {
        &self.qi
    }

    /// The sensitive columns.
    pub fn sensitive(&self) -> &[String] {
        &self.sensitive
    }

    /// Domains stated by the publisher.
    pub fn domains(&self) -> &BTreeMap<String, GivenDomain> {
        &self.domains
    }

    /// Hierarchies by quasi-identifier.
    pub fn hierarchies(&self) -> &BTreeMap<String, Levels> {
        &self.hierarchies
    }

    /// Whether each record is an individual of its own.
    pub fn one_row_per_individual(&self) -> bool {
        self.one_row_per_individual
    }

    /// Whether a quasi-identifier of a numeric type is to be treated as names.
    pub(crate) fn is_categorical(&self, column: &str) -> bool {
        self.categorical.iter().any(|c| c == column)
    }

    pub(crate) fn categorical(&self) -> &[String] {
        &self.categorical
    }

    /// Draws a release key unless the spec has one already.
    pub(crate) fn with_key_drawn(mut self) -> Result<Self> {
        if self.key.is_none() {
            self.key = Some(ReleaseKey::random()?);
        }
        Ok(self)
    }

    /// The spec for one execution, whose releases share no pseudonym with those of another, unless there is a seed.
    pub(crate) fn at(&self, moment: Option<&[u8]>) -> Result<Self> {
        let mut spec = self.clone();
        if !self.seeded {
            spec.key = Some(match moment {
                Some(moment) => self.key()?.at(moment),
                None => ReleaseKey::random()?,
            });
        }
        Ok(spec)
    }

    /// The spec with a key of its own that stays the same however often it is planned.
    pub(crate) fn with_fixed_key(&self) -> Result<Self> {
        let mut spec = self.at(None)?;
        spec.seeded = true;
        Ok(spec)
    }

    /// Parameters of the model and options of the algorithm that were given, as they were written.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.parameters.iter();
        given.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn key(&self) -> Result<&ReleaseKey> {
        self.key
            .as_ref()
            .ok_or_else(|| error::call(&self.function, "the spec has no release key yet"))
    }

    /// A parameter of the model or an option of the algorithm, as it was written.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Whether the publisher gave a seed, so that the release can be reproduced.
    pub fn is_seeded(&self) -> bool {
        self.seeded
    }

    /// Whether an option was given that the function's system does not have.
    pub(crate) fn is_refused(&self, option: &str) -> bool {
        self.refused.contains(option)
    }

    /// Options that were given although they are another system's.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &str> {
        self.refused.iter().map(String::as_str)
    }

    /// The algorithm, if the call says one.
    pub(crate) fn given_algorithm(&self) -> Option<&str> {
        self.algorithm.as_deref()
    }

    /// The block size, if the call says one.
    pub(crate) fn given_block(&self) -> Option<BlockSize> {
        self.block
    }
}
