//! What a [`Spec`] means: the function, model and algorithm it names, and whether they fit.

use std::fmt;

use datafusion::common::{Result, internal_datafusion_err};

use super::classes::PROPERTIES as CLASSES;
use super::classes::categories;
use super::function::{self, Blocks, FunctionEntry};
use super::{Layout, SystemProperties};
use crate::algorithm::{self, ALGORITHMS, Algorithm};
use crate::check::{Asked, Verifier};
use crate::error;
use crate::model::{self, Model, ModelEntry, Parameter, Parameters};
use crate::spec::{
    BlockSize, Choice, ClassOptions, Contradictory, NullSensitive, Spec, SystemOptions,
};

/// Sensitive columns that one call may protect.
const MOST_SENSITIVE: usize = 100;

impl Spec {
    /// A spec for one of the anonymizing functions, such as `anonymize_eir`.
    pub fn new(function: impl Into<String>) -> Self {
        let function = function.into();
        // That a function is unknown is told by `entry`.
        let options = match function::find(&function) {
            Some(entry) => entry.system.options(),
            None => SystemOptions::Classes(ClassOptions::default()),
        };
        Self::of_system(function, options)
    }

    /// What the function does.
    pub fn entry(&self) -> Result<&'static FunctionEntry> {
        function::find(self.function())
            .ok_or_else(|| error::call(self.function(), "there is no such function"))
    }

    /// What sets the system of the function apart. That a function is unknown is told by `entry`.
    pub(crate) fn properties(&self) -> &'static SystemProperties {
        let entry = self.entry();
        entry.map_or(&CLASSES, |entry| entry.system.properties())
    }

    /// Whether an individual has one record only.
    pub(crate) fn one_record_each(&self) -> bool {
        self.properties().one_record_each
    }

    /// Whether counting records counts individuals: each has one, or the input is refused when they are gathered.
    pub(crate) fn counts_records(&self) -> bool {
        self.one_row_per_individual() || self.one_record_each()
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
        random && self.one_record_each() && !self.one_row_per_individual()
    }

    /// The block size.
    pub fn block(&self) -> BlockSize {
        let whole = algorithm::find(self.algorithm_name()).is_some_and(|a| a.whole_table);
        let default = match self.entry() {
            Ok(entry) if !whole => entry.system.block(self, entry.block),
            _ => BlockSize::All,
        };
        self.given_block().unwrap_or(default)
    }

    /// Whether the call says how large a block is.
    pub(crate) fn block_is_given(&self) -> bool {
        self.given_block().is_some()
    }

    /// The algorithm's name.
    pub fn algorithm_name(&self) -> &str {
        match (self.given_algorithm(), self.entry()) {
            (Some(name), _) => name,
            (None, Ok(entry)) => entry.system.default_algorithm(self),
            (None, Err(_)) => ALGORITHMS[0].name,
        }
    }

    /// The model that the given parameters select.
    pub fn model(&self) -> Result<Box<dyn Model>> {
        let entry = self.model_entry()?;
        (entry.build)(&self.model_parameters()?)
            .map_err(|e| error::argument(self.function(), &e.parameter, e.message))
    }

    /// The parameters of the model.
    pub(crate) fn model_parameters(&self) -> Result<Parameters> {
        self.parse(self.model_entry()?.parameters)
    }

    /// The requirement with its parameters, as a reader of a report sees it.
    pub fn describe(&self) -> Result<String> {
        self.entry()?.system.describe(self)
    }

    /// The entry of the model that the given parameters select.
    pub(crate) fn model_entry(&self) -> Result<&'static ModelEntry> {
        self.entry()?;
        let offered: Vec<_> = model::offered_by(self.function()).collect();
        let chosen = offered.iter().copied().find(|entry| {
            let given = |p: &Parameter| self.parameter(p.name).is_some();
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
                self.function(),
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
                self.function(),
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
            .map_err(|e| error::argument(self.function(), &e.parameter, e.message))
    }

    pub(crate) fn algorithm_entry(&self) -> Result<&'static algorithm::AlgorithmEntry> {
        algorithm::find(self.algorithm_name()).ok_or_else(|| {
            let names: Vec<_> = algorithm::ALGORITHMS.iter().map(|a| a.name).collect();
            error::argument(
                self.function(),
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

    /// The call as it was written, for the verifier, which reads it on its own.
    pub(crate) fn asked(&self) -> Asked {
        let of = |parameter: &str, (column, text): &(String, String)| {
            (parameter.to_owned(), column.clone(), text.clone())
        };
        let l = self.l_of().map(|given| of("l", given));
        Asked {
            function: self.function().to_owned(),
            parameters: self
                .parameters()
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect(),
            of_columns: l.chain(self.t_of().map(|given| of("t", given))).collect(),
            qi: self.qi().to_vec(),
            categorical: self.categorical().to_vec(),
            semi_sensitive: self
                .semi_sensitive()
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect(),
            sensitive: self.sensitive().to_vec(),
            normalize: self.normalize,
        }
    }

    /// The judge of what is published for a call.
    pub(crate) fn verifier(&self, asked: &Asked, layout: &Layout) -> Result<Verifier> {
        let references = self.entry()?.system.references(self, layout)?;
        Verifier::of(asked, references).map_err(|reason| {
            internal_datafusion_err!(
                "{}: nothing is published, because {reason}",
                self.function()
            )
        })
    }

    /// Names and numbers only: what EXPLAIN may show. Never the key, the seed or a stated domain.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("model", self.describe().unwrap_or_default())];
        let system = self.entry().ok().map(|entry| entry.system);
        facts.extend(system.map(|s| s.method_facts(self)).unwrap_or_default());
        facts.extend([
            match self.id() {
                Some(id) => ("id", id.to_owned()),
                None => ("one_row_per_individual", "true".to_owned()),
            },
            ("qi", format!("[{}]", self.qi().join(", "))),
            (
                "sensitive",
                match self.sensitive() {
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(", ")),
                },
            ),
        ]);
        facts.extend(system.map(|s| s.role_facts(self)).unwrap_or_default());
        if !self.keep().is_empty() {
            facts.push(("keep", format!("[{}]", self.keep().join(", "))));
        }
        if !self.hierarchies().is_empty() {
            let columns = self.hierarchies().iter();
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
        if system.is_some_and(|s| s.properties().generalizes) {
            facts.push(("notation", self.notation.name().to_owned()));
        }
        let seed = if self.is_seeded() { "given" } else { "random" };
        facts.push(("seed", seed.to_owned()));
        facts
    }

    /// Checks everything that can be checked without the input: roles, parameters, options.
    pub fn validate(&self) -> Result<()> {
        self.validate_given()?;
        match self.refused().next() {
            Some(option) => Err(error::call(
                self.function(),
                format!("with_{option} is not for this function; leave it out"),
            )),
            None => Ok(()),
        }
    }

    fn validate_given(&self) -> Result<()> {
        if self.id().is_some() && self.one_row_per_individual() {
            return Err(error::argument(
                self.function(),
                "one_row_per_individual",
                "says that each record is an individual of its own; leave it out where there is an id",
            ));
        }
        if self.sensitive().len() > 1 && !self.entry()?.several_sensitive {
            return Err(error::argument(
                self.function(),
                "sensitive",
                format!("must be one column, not {}", self.sensitive().len()),
            ));
        }
        self.entry()?.system.validate(self)
    }

    /// Checks what functions that form classes share.
    pub(super) fn validate_classes(&self) -> Result<()> {
        if self.sensitive().len() > MOST_SENSITIVE {
            return Err(error::argument(
                self.function(),
                "sensitive",
                format!(
                    "must be at most {MOST_SENSITIVE} columns, not {}",
                    self.sensitive().len()
                ),
            ));
        }
        categories::check(self)?;
        let model = self.model_entry()?;
        let algorithm = self.algorithm_entry()?;
        let known = || model.parameters.iter().chain(algorithm.options);
        for name in self.parameters().map(|(name, _)| name) {
            if known().all(|p| p.name != name) {
                let nearest = error::did_you_mean(name, known().map(|p| p.name));
                return Err(error::call(
                    self.function(),
                    format!("there is no argument '{name}'{nearest}"),
                ));
            }
        }
        self.algorithm()?;
        if self.block() != BlockSize::All && algorithm.whole_table {
            return Err(error::argument(
                self.function(),
                "block",
                format!(
                    "must be 'all', or left out, for algorithm '{}'",
                    algorithm.name
                ),
            ));
        }
        if self.block() != BlockSize::All && !self.model()?.closure().union {
            return Err(error::argument(
                self.function(),
                "block",
                "must be 'all' for this model, because two of its classes with the same values may not form a third",
            ));
        }
        self.validate_block()
    }

    /// Checks the size of a block.
    pub(super) fn validate_block(&self) -> Result<()> {
        if self.block() == BlockSize::Individuals(0) {
            return Err(error::argument(
                self.function(),
                "block",
                "must be 'all' or a number of individuals of at least 1, not 0",
            ));
        }
        Ok(())
    }

    /// Reads the given values of declared parameters.
    fn parse(&self, declared: &[Parameter]) -> Result<Parameters> {
        let mut parameters = Parameters::default();
        for parameter in declared {
            match self.parameter(parameter.name) {
                Some(text) => {
                    let value = parameter
                        .parse(text)
                        .map_err(|e| error::argument(self.function(), &e.parameter, e.message))?;
                    parameters.set(parameter.name, value);
                }
                None if parameter.required => {
                    return Err(error::argument(
                        self.function(),
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
