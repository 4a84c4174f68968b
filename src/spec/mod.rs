//! What to publish: one value that SQL, Rust and jobs all fill in, checked against the input before it runs.

mod anatomy;
mod categories;
mod choice;
mod fingerprints;
mod function;
mod given;
mod key;
mod layout;
mod local;
mod options;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use anatomy::NOT_FOR_ANATOMY;
pub use anatomy::{ANATOMY_ARGUMENTS, SUBTABLE};
pub(crate) use anatomy::{GID, TIMES};
pub(crate) use categories::column_categories;
pub use choice::{
    Choice, Contradictory, FingerprintRows, LocalStrategy, Notation, NullId, NullSensitive, Output,
    SmallPatterns,
};
pub(crate) use fingerprints::sensitive_tree;
pub use function::{Blocks, FUNCTIONS, Form, FunctionEntry};
pub(crate) use given::{StatedDomain, stated_domains};
pub(crate) use key::IdSpace;
pub use key::ReleaseKey;
pub use layout::INDIVIDUAL;
pub(crate) use layout::{
    BUCKET, BUCKETIZED, COUNT, GROUP, Layout, PSEUDONYM_BYTES, canonical_projection, check_levels,
    find_column, flag_name, given_tree, kind_of, tagged_schema,
};

pub(crate) use local::{LocalRequirement, SecretAttribute, SecretRule};
pub use options::Secrecy;

use options::SystemOptions;

use crate::algorithm::{self, Algorithm};
use crate::error;
use crate::model::{self, Model, ModelEntry, Parameter, Parameters};
use crate::table::coding::Levels;
use datafusion::common::Result;

/// Sensitive columns that one call may protect.
const MOST_SENSITIVE: usize = 100;

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
    /// A spec for one of the anonymizing functions, such as `anonymize_eir`.
    pub fn new(function: impl Into<String>) -> Self {
        let function = function.into();
        Self {
            options: function::options(&function),
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

    /// What the function does.
    pub fn entry(&self) -> Result<&'static FunctionEntry> {
        let entry = FUNCTIONS.iter().find(|f| f.name == self.function);
        entry.ok_or_else(|| error::call(&self.function, "there is no such function"))
    }

    /// What the function publishes, if there is one.
    pub(crate) fn form(&self) -> Option<Form> {
        self.entry().ok().map(|entry| entry.form)
    }

    /// Whether an individual has one record only.
    pub(crate) fn one_record_each(&self) -> bool {
        self.form() == Some(Form::Buckets) || self.is_anatomy()
    }

    /// Whether counting records counts individuals: each has one, or the input is refused when they are gathered.
    pub(crate) fn counts_records(&self) -> bool {
        self.one_row_per_individual || self.one_record_each()
    }

    /// Whether all records of an individual must be seen before it is known whether it is left out. What is learned of the
    /// table is then learned of gathered individuals: nothing may depend on those that are left out.
    pub(crate) fn profiles_individuals(&self) -> bool {
        let incomplete = self.null_sensitive != NullSensitive::Error;
        let left_out = match self.contradictory {
            Contradictory::Error => false,
            Contradictory::Drop => true,
            Contradictory::Cover => incomplete,
        };
        left_out && !self.counts_records()
    }

    /// Whether records know their block before they are gathered: blocks are parts of the random order, and each record is
    /// an individual that keeps its order.
    pub(crate) fn routes_records(&self) -> bool {
        let random = self.entry().is_ok_and(|e| e.blocks == Blocks::Random);
        random && self.one_record_each() && !self.one_row_per_individual
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

    /// The block size.
    pub fn block(&self) -> BlockSize {
        let whole = algorithm::find(self.algorithm_name()).is_some_and(|a| a.whole_table)
            || fingerprints::needs_whole_table(self);
        let default = match self.entry() {
            Ok(_) if self.divides_similar() => BlockSize::Individuals(anatomy::SIMILAR_BLOCK),
            Ok(entry) if !whole && !self.needs_whole_table() => BlockSize::Individuals(entry.block),
            _ => BlockSize::All,
        };
        self.block.unwrap_or(default)
    }

    /// Whether the call says how large a block is.
    pub(crate) fn block_is_given(&self) -> bool {
        self.block.is_some()
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

    /// The algorithm's name.
    pub fn algorithm_name(&self) -> &str {
        match &self.algorithm {
            Some(name) => name,
            None => {
                let labelled = |c: &String| self.hierarchies.contains_key(c);
                let all = !self.qi.is_empty() && self.qi.iter().all(labelled);
                function::default_algorithm(&self.function, all)
            }
        }
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

    /// The model that the given parameters select.
    pub fn model(&self) -> Result<Box<dyn Model>> {
        let entry = self.model_entry()?;
        (entry.build)(&self.model_parameters()?)
            .map_err(|e| error::argument(&self.function, &e.parameter, e.message))
    }

    /// The parameters of the model.
    pub(crate) fn model_parameters(&self) -> Result<Parameters> {
        self.parse(self.model_entry()?.parameters)
    }

    /// The requirement with its parameters, as a reader of a report sees it.
    pub fn describe(&self) -> Result<String> {
        match self.entry()?.form {
            Form::Buckets => self.describe_local(),
            Form::Anatomy | Form::Division => self.describe_anatomy(),
            Form::Classes | Form::Fingerprints | Form::Combinations => Ok(self.model()?.describe()),
        }
    }

    /// The entry of the model that the given parameters select.
    pub(crate) fn model_entry(&self) -> Result<&'static ModelEntry> {
        self.entry()?;
        let offered: Vec<_> = model::offered_by(&self.function).collect();
        let chosen = offered.iter().copied().find(|entry| {
            let given = |p: &Parameter| self.parameters.contains_key(p.name);
            let others = offered.iter().flat_map(|o| o.parameters);
            let foreign = others.filter(|p| entry.parameters.iter().all(|own| own.name != p.name));
            entry.parameters.iter().all(|p| given(p) || !p.required)
                && !foreign.into_iter().any(given)
        });
        chosen.ok_or_else(|| {
            let combinations: Vec<_> = offered
                .iter()
                .map(|entry| {
                    let names: Vec<_> = entry.parameters.iter().map(|p| p.name).collect();
                    format!("{} ({})", names.join(", "), entry.help)
                })
                .collect();
            error::call(
                &self.function,
                format!(
                    "give the parameters of one model: {}",
                    combinations.join("; or ")
                ),
            )
        })
    }

    /// The algorithm with its options.
    pub fn algorithm(&self) -> Result<Box<dyn Algorithm>> {
        let entry = self.algorithm_entry()?;
        let model = self.model()?;
        (entry.serves)(model.as_ref()).map_err(|reason| {
            error::argument(
                &self.function,
                "algorithm",
                format!(
                    "'{}' cannot give {}: {reason}",
                    entry.name,
                    model.describe()
                ),
            )
        })?;
        let options = self.parse(entry.options)?;
        (entry.build)(&options)
            .map_err(|e| error::argument(&self.function, &e.parameter, e.message))
    }

    pub(crate) fn algorithm_entry(&self) -> Result<&'static algorithm::AlgorithmEntry> {
        algorithm::find(self.algorithm_name()).ok_or_else(|| {
            let names: Vec<_> = algorithm::ALGORITHMS.iter().map(|a| a.name).collect();
            error::argument(
                &self.function,
                "algorithm",
                format!(
                    "must be one of '{}', not '{}'{}",
                    names.join("', '"),
                    self.algorithm_name(),
                    error::did_you_mean(self.algorithm_name(), names.iter().copied())
                ),
            )
        })
    }

    /// Names and numbers only: what EXPLAIN may show. Never the key, the seed or a stated domain.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("model", self.describe().unwrap_or_default())];
        match self.form() {
            Some(Form::Buckets) => facts.push(("strategy", self.strategy().name().to_owned())),
            Some(Form::Anatomy | Form::Division) => facts.extend(self.anatomy_facts()),
            _ => facts.push(("algorithm", self.algorithm_name().to_owned())),
        }
        facts.extend([
            match &self.id {
                Some(id) => ("id", id.clone()),
                None => ("one_row_per_individual", "true".to_owned()),
            },
            ("qi", format!("[{}]", self.qi.join(", "))),
            (
                "sensitive",
                match self.sensitive.as_slice() {
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(", ")),
                },
            ),
        ]);
        if self.form() == Some(Form::Buckets) {
            let semi = self.semi_sensitive();
            let semi: Vec<_> = semi.into_iter().map(|(name, _)| name).collect();
            facts.push(("semi_sensitive", format!("[{}]", semi.join(", "))));
            facts.push(("small_pattern", self.small_pattern().name().to_owned()));
            facts.push(("output", self.output().name().to_owned()));
        }
        if !self.keep().is_empty() {
            facts.push(("keep", format!("[{}]", self.keep().join(", "))));
        }
        if !self.hierarchies.is_empty() {
            let columns = self.hierarchies.iter();
            let shown: Vec<_> = columns
                .map(|(c, levels)| format!("{c}: {levels}"))
                .collect();
            facts.push(("hierarchy", format!("{{{}}}", shown.join(", "))));
        }
        if !self.categories().is_empty() {
            let columns = self.categories().iter();
            let shown: Vec<_> = columns
                .map(|(c, of)| format!("{c}: {}", of.len()))
                .collect();
            facts.push(("categories", format!("{{{}}}", shown.join(", "))));
        }
        if !self.is_anatomy() {
            facts.push(("notation", self.notation.name().to_owned()));
        }
        let seed = if self.seeded { "given" } else { "random" };
        facts.push(("seed", seed.to_owned()));
        facts
    }

    /// Checks everything that can be checked without the input: roles, parameters, options.
    pub fn validate(&self) -> Result<()> {
        self.validate_given()?;
        match self.refused.first() {
            Some(option) => Err(error::call(
                &self.function,
                format!("with_{option} is not for this function; leave it out"),
            )),
            None => Ok(()),
        }
    }

    /// Whether an option was given that the function's system does not have.
    fn is_refused(&self, option: &str) -> bool {
        self.refused.contains(option)
    }

    fn validate_given(&self) -> Result<()> {
        if self.id.is_some() && self.one_row_per_individual {
            return Err(error::argument(
                &self.function,
                "one_row_per_individual",
                "says that each record is an individual of its own; leave it out where there is an id",
            ));
        }
        if self.sensitive.len() > 1 && !self.entry()?.several_sensitive {
            return Err(error::argument(
                &self.function,
                "sensitive",
                format!("must be one column, not {}", self.sensitive.len()),
            ));
        }
        if self.entry()?.form == Form::Buckets {
            self.validate_local()?;
            return self.validate_block();
        }
        if self.is_anatomy() {
            return self.validate_anatomy();
        }
        if self.sensitive.len() > MOST_SENSITIVE {
            return Err(error::argument(
                &self.function,
                "sensitive",
                format!(
                    "must be at most {MOST_SENSITIVE} columns, not {}",
                    self.sensitive.len()
                ),
            ));
        }
        categories::check(self)?;
        let model = self.model_entry()?;
        let algorithm = self.algorithm_entry()?;
        let known = || model.parameters.iter().chain(algorithm.options);
        for name in self.parameters.keys() {
            if known().all(|p| p.name != name.as_str()) {
                let nearest = error::did_you_mean(name, known().map(|p| p.name));
                return Err(error::call(
                    &self.function,
                    format!("there is no argument '{name}'{nearest}"),
                ));
            }
        }
        self.algorithm()?;
        if self.block() != BlockSize::All && algorithm.whole_table {
            return Err(error::argument(
                &self.function,
                "block",
                format!(
                    "must be 'all', or left out, for algorithm '{}'",
                    algorithm.name
                ),
            ));
        }
        if self.block() != BlockSize::All && !self.model()?.closure().union {
            return Err(error::argument(
                &self.function,
                "block",
                "must be 'all' for this model, because two of its classes with the same values may not form a third",
            ));
        }
        self.validate_block()
    }

    fn validate_block(&self) -> Result<()> {
        if self.block() != BlockSize::All && self.needs_whole_table() {
            return Err(error::argument(
                &self.function,
                "block",
                "must be 'all', or left out, with t: buckets are compared with the whole table",
            ));
        }
        if self.block() == BlockSize::Individuals(0) {
            return Err(error::argument(
                &self.function,
                "block",
                "must be 'all' or a number of individuals of at least 1, not 0",
            ));
        }
        fingerprints::check(self)
    }

    /// Reads the given values of declared parameters.
    fn parse(&self, declared: &[Parameter]) -> Result<Parameters> {
        let mut parameters = Parameters::default();
        for parameter in declared {
            match self.parameters.get(parameter.name) {
                Some(text) => {
                    let value = parameter
                        .parse(text)
                        .map_err(|e| error::argument(&self.function, &e.parameter, e.message))?;
                    parameters.set(parameter.name, value);
                }
                None if parameter.required => {
                    return Err(error::argument(
                        &self.function,
                        parameter.name,
                        format!("is missing: {}", parameter.help),
                    ));
                }
                None => {}
            }
        }
        Ok(parameters)
    }
}

/// The facts on one line.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = self.facts();
        let facts: Vec<_> = facts
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        f.write_str(&facts.join(", "))
    }
}
