//! What only functions that publish local groups and buckets are told.

use serde::{Deserialize, Serialize};

use super::SystemOptions;
use crate::spec::{LocalStrategy, Output, SmallPatterns, Spec};

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct BucketOptions {
    /// Semi-sensitive quasi-identifiers with what says whose values are secret, in the order given.
    semi_sensitive: Vec<(String, Secrecy)>,
    /// l of single attributes; the parameter `l` is that of all others.
    l: Vec<(String, String)>,
    /// t of single attributes, instead of an l.
    t: Vec<(String, String)>,
    strategy: LocalStrategy,
    small_pattern: SmallPatterns,
    output: Output,
}

/// What says whether a value is kept secret by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Secrecy {
    /// A boolean column of the input; NULL is secret.
    Column(String),
    /// All values, or none.
    All(bool),
    /// As it was written in quotes: a column, or a condition that becomes one when the call is planned.
    Written(String),
}

impl Spec {
    /// Makes a quasi-identifier semi-sensitive: its value is secret where the flag is true or NULL. Flags are never
    /// published.
    pub fn with_semi_sensitive(mut self, column: impl Into<String>, secrecy: Secrecy) -> Self {
        let column = column.into();
        match &mut self.options {
            SystemOptions::Buckets(own) => {
                if !self.qi.contains(&column) {
                    self.qi.push(column.clone());
                }
                own.semi_sensitive.push((column, secrecy));
            }
            _ => self.refuse("semi_sensitive", true),
        }
        self
    }

    /// Sets the l of one attribute with secret values; the parameter `l` is that of all others.
    pub fn with_l_of(mut self, column: impl Into<String>, l: impl ToString) -> Self {
        match &mut self.options {
            SystemOptions::Buckets(own) => own.l.push((column.into(), l.to_string())),
            _ => self.refuse("l_of", true),
        }
        self
    }

    /// Asks for t-closeness instead of l-diversity in the buckets of one attribute.
    pub fn with_t_of(mut self, column: impl Into<String>, t: impl ToString) -> Self {
        match &mut self.options {
            SystemOptions::Buckets(own) => own.t.push((column.into(), t.to_string())),
            _ => self.refuse("t_of", true),
        }
        self
    }

    /// Chooses how local groups are formed.
    pub fn with_strategy(mut self, strategy: LocalStrategy) -> Self {
        match &mut self.options {
            SystemOptions::Buckets(own) => own.strategy = strategy,
            _ => self.refuse("strategy", strategy != LocalStrategy::default()),
        }
        self
    }

    /// Chooses what happens to individuals who keep secret what fewer than k do.
    pub fn with_small_pattern(mut self, choice: SmallPatterns) -> Self {
        match &mut self.options {
            SystemOptions::Buckets(own) => own.small_pattern = choice,
            _ => self.refuse("small_pattern", choice != SmallPatterns::default()),
        }
        self
    }

    /// Chooses how buckets are published.
    pub fn with_output(mut self, output: Output) -> Self {
        match &mut self.options {
            SystemOptions::Buckets(own) => own.output = output,
            _ => self.refuse("output", output != Output::default()),
        }
        self
    }

    /// Quasi-identifiers, with those of `with_semi_sensitive` that are not among them.
    pub(crate) fn all_quasi_identifiers(&self, mut named: Vec<String>) -> Vec<String> {
        for (column, _) in self.given_semi_sensitive() {
            if !named.contains(column) {
                named.push(column.clone());
            }
        }
        named
    }

    /// Semi-sensitive quasi-identifiers and what says whose values are secret, in the order of the quasi-identifiers.
    pub fn semi_sensitive(&self) -> Vec<(&str, &Secrecy)> {
        let of = |qi: &String| {
            let mut semi = self.given_semi_sensitive().iter();
            semi.find(|(column, _)| column == qi)
        };
        let found = self.qi.iter().filter_map(of);
        found
            .map(|(column, flag)| (column.as_str(), flag))
            .collect()
    }

    /// The flags that were written in quotes, by column.
    pub(crate) fn written_flags(&self) -> Vec<(String, String)> {
        let written = |(column, secrecy): &(String, Secrecy)| match secrecy {
            Secrecy::Written(text) => Some((column.clone(), text.clone())),
            _ => None,
        };
        let all = self.given_semi_sensitive().iter();
        all.filter_map(written).collect()
    }

    /// Says in which column the flags of a semi-sensitive column are.
    pub(crate) fn with_flag(mut self, column: &str, flag: String) -> Self {
        if let SystemOptions::Buckets(own) = &mut self.options {
            let mut all = own.semi_sensitive.iter_mut();
            if let Some((_, secrecy)) = all.find(|(name, _)| name == column) {
                *secrecy = Secrecy::Column(flag);
            }
        }
        self
    }

    /// How local groups are formed.
    pub fn strategy(&self) -> LocalStrategy {
        self.buckets().map(|own| own.strategy).unwrap_or_default()
    }

    /// What happens to individuals who keep secret what fewer than k do.
    pub fn small_pattern(&self) -> SmallPatterns {
        self.buckets()
            .map(|own| own.small_pattern)
            .unwrap_or_default()
    }

    /// How buckets are published.
    pub fn output(&self) -> Output {
        self.buckets().map(|own| own.output).unwrap_or_default()
    }

    fn buckets(&self) -> Option<&BucketOptions> {
        match &self.options {
            SystemOptions::Buckets(own) => Some(own),
            _ => None,
        }
    }

    /// Semi-sensitive columns as they were given.
    pub(crate) fn given_semi_sensitive(&self) -> &[(String, Secrecy)] {
        self.buckets()
            .map_or(&[], |own| own.semi_sensitive.as_slice())
    }

    /// l of single attributes.
    pub(crate) fn l_of(&self) -> impl Iterator<Item = &(String, String)> {
        self.buckets().into_iter().flat_map(|own| &own.l)
    }

    /// t of single attributes.
    pub(crate) fn t_of(&self) -> impl Iterator<Item = &(String, String)> {
        self.buckets().into_iter().flat_map(|own| &own.t)
    }
}
