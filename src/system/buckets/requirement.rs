//! What `anonymize_lgb` is asked for: whose values are secret, and what local groups and buckets must satisfy.

use datafusion::common::Result;

use crate::error;
use crate::model::Ratio;
use crate::spec::{BlockSize, Contradictory, NullSensitive, Spec};

/// Most semi-sensitive columns.
const MOST_SEMI_SENSITIVE: usize = 64;

/// Largest k and l.
const LARGEST: u64 = 1_000_000;

/// What local groups and buckets must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalRequirement {
    /// Smallest number of individuals in a local group.
    pub k: usize,
    /// The attributes with secret values: semi-sensitive quasi-identifiers in their order, then sensitive columns.
    pub attributes: Vec<SecretAttribute>,
}

/// An attribute with secret values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretAttribute {
    pub name: String,
    /// Its place among the quasi-identifiers, if it is one of them.
    pub qi: Option<usize>,
    pub rule: SecretRule,
}

/// What every bucket of an attribute must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretRule {
    /// Each value at most once in a bucket of at least so many.
    Diversity(u32),
    /// A distribution near that of all secret values: as it was written, and read.
    Closeness(String, Ratio),
}

impl Spec {
    /// Whether any bucket is compared with the whole table, so that a block must be all of it.
    pub(super) fn needs_whole_table(&self) -> bool {
        self.t_of().next().is_some()
    }

    /// What local groups and buckets must satisfy, checked.
    pub(crate) fn local_requirement(&self) -> Result<LocalRequirement> {
        let function = self.function();
        let whole = |argument: &str, of: &str, text: &str| {
            let number = text.parse::<u64>().ok();
            number.filter(|n| (2..=LARGEST).contains(n)).ok_or_else(|| {
                let message = format!("{of}must be a whole number from 2 to {LARGEST}, not {text}");
                error::argument(function, argument, message)
            })
        };
        let missing = |argument: &str, help: String| {
            error::argument(function, argument, format!("is missing: {help}"))
        };
        let k = self.parameter("k").ok_or_else(|| {
            missing(
                "k",
                "smallest number of individuals in a local group".into(),
            )
        })?;
        let k = whole("k", "", k)? as usize;

        let semi = self.semi_sensitive();
        let place = |name: &str| self.qi().iter().position(|qi| qi == name);
        let names = semi
            .iter()
            .map(|(name, _)| ((*name).to_owned(), place(name)))
            .chain(self.sensitive().iter().map(|name| (name.clone(), None)));
        let mut attributes: Vec<SecretAttribute> = vec![];
        for (name, qi) in names {
            let l = self.l_of().find(|(n, _)| *n == name);
            let t = self.t_of().find(|(n, _)| *n == name);
            let text = |(_, text): &(String, String)| text.clone();
            let rule = match (l.map(text), t.map(text)) {
                (Some(_), Some(_)) => {
                    let message = format!("is given for '{name}', which has an l already");
                    return Err(error::argument(function, "t", message));
                }
                (_, Some(t)) => {
                    let share = t.parse::<Ratio>().ok();
                    let share = share.filter(|r| r.numerator() <= r.denominator());
                    let share = share.ok_or_else(|| {
                        let message = format!("of '{name}' must be a share from 0 to 1, not {t}");
                        error::argument(function, "t", message)
                    })?;
                    SecretRule::Closeness(t, share)
                }
                (l, None) => {
                    let l = l.or_else(|| self.parameter("l").map(str::to_owned));
                    let l = l.ok_or_else(|| {
                        let help = format!("give an l, or a t, for the secret values of '{name}'");
                        missing("l", help)
                    })?;
                    SecretRule::Diversity(whole("l", &format!("of '{name}' "), &l)? as u32)
                }
            };
            attributes.push(SecretAttribute { name, qi, rule });
        }
        Ok(LocalRequirement { k, attributes })
    }

    /// Checks what can be checked without the input.
    pub(super) fn validate_local(&self) -> Result<()> {
        let refuse = |argument: &str, message: String| {
            Err(error::argument(self.function(), argument, message))
        };
        let semi = self.given_semi_sensitive();
        if semi.is_empty() && self.sensitive().is_empty() {
            let message = "is missing: name the columns to protect, or those of which some values \
                           are secret in semi_sensitive";
            return refuse("sensitive", message.to_owned());
        }
        if semi.len() > MOST_SEMI_SENSITIVE {
            let message = format!("has more than {MOST_SEMI_SENSITIVE} columns");
            return refuse("semi_sensitive", message);
        }
        if let Some((name, _)) = semi
            .iter()
            .enumerate()
            .find_map(|(i, one)| semi[..i].iter().find(|other| other.0 == one.0))
        {
            return refuse("semi_sensitive", format!("names column '{name}' twice"));
        }
        if self.is_refused("keep") {
            let message = "is not possible here: whoever knows a kept value would tell who is in \
                           which bucket, and permuted values would stand beside it";
            return refuse("keep", message.to_owned());
        }
        if self.contradictory != Contradictory::Error {
            let message = "is not possible here: each individual has one record";
            return refuse("contradictory", message.to_owned());
        }
        if self.null_sensitive == NullSensitive::Conservative {
            let message = "must be 'error' or 'drop_rows': a missing value cannot be in a bucket";
            return refuse("null_sensitive", message.to_owned());
        }
        let requirement = self.local_requirement()?;
        let named = self.l_of().map(|(name, _)| ("l", name));
        let named = named.chain(self.t_of().map(|(name, _)| ("t", name)));
        for (argument, name) in named {
            let attributes = || requirement.attributes.iter().map(|a| a.name.as_str());
            if attributes().all(|a| a != name) {
                let nearest = error::did_you_mean(name, attributes());
                let message = format!("names column '{name}', which has no secret values{nearest}");
                return refuse(argument, message);
            }
        }
        if let Some(name) = self
            .parameters()
            .map(|(name, _)| name)
            .find(|p| !["k", "l"].contains(p))
        {
            return Err(error::call(
                self.function(),
                format!("there is no argument '{name}'"),
            ));
        }
        if self.needs_whole_table() && self.block() != BlockSize::All {
            let message =
                "must be 'all', or left out, with t: buckets are compared with the whole table";
            return refuse("block", message.to_owned());
        }
        self.validate_block()
    }

    /// The requirement as a reader of a report sees it.
    pub(super) fn describe_local(&self) -> Result<String> {
        let requirement = self.local_requirement()?;
        let mut parts = vec![format!("{}-anonymity in local groups", requirement.k)];
        for attribute in &requirement.attributes {
            let name = &attribute.name;
            parts.push(match &attribute.rule {
                SecretRule::Diversity(l) => format!("{l}-diversity in buckets of {name}"),
                SecretRule::Closeness(t, _) => format!("{t}-closeness in buckets of {name}"),
            });
        }
        Ok(parts.join(", "))
    }
}
