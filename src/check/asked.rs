//! What was asked for, read a second time from the words of the call.
//!
//! The code that forms classes parses the same words on its own. An error made there, or a parameter that gets lost on its
//! way, cannot repeat itself here.

use std::fmt;

use datafusion::arrow::datatypes::DataType;

use super::anatomy::AnatomyBounds;
use super::buckets::BucketRule;
use super::classes::{ClassRequirement, Sensitivity};
use super::fingerprints::{CombinationRequirement, FingerprintRequirement};
use super::ratio::Ratio;

/// A call of an anonymizing function as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Its SQL name.
    pub function: String,
    /// Names and texts of the parameters that are for all columns.
    pub parameters: Vec<(String, String)>,
    /// Names, columns and texts of those that are for one column.
    pub of_columns: Vec<(String, String, String)>,
    /// The quasi-identifiers.
    pub qi: Vec<String>,
    /// Those of them that are compared as names.
    pub categorical: Vec<String>,
    /// Those of them of which some values are secret.
    pub semi_sensitive: Vec<String>,
    /// The sensitive columns.
    pub sensitive: Vec<String>,
    /// Whether spellings of one sensitive value count as one.
    pub normalize: bool,
}

/// Why a requirement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a release must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// Counts of each class.
    Counts(ClassRequirement),
    /// Values and categories of each class.
    Sensitivity(Sensitivity),
    /// Who shares all labels.
    Fingerprints(FingerprintRequirement),
    /// Who shares any few labels.
    Combinations(CombinationRequirement),
    /// Local groups and buckets.
    Buckets(BucketRequirement),
    /// Groups that link sub-tables.
    Tables(AnatomyBounds),
}

/// What local groups and buckets must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketRequirement {
    /// Smallest number of individuals in a local group.
    pub k: usize,
    /// Quasi-identifiers of which no value is secret.
    pub plain: Vec<String>,
    /// Semi-sensitive quasi-identifiers in their order, then sensitive columns.
    pub attributes: Vec<BucketAttribute>,
}

/// A column with secret values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAttribute {
    /// Its name.
    pub name: String,
    /// Whether it is a quasi-identifier, of which some values are shown.
    pub semi_sensitive: bool,
    bound: BucketBound,
    categorical: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BucketBound {
    Diversity(usize),
    Closeness(Ratio),
}

impl BucketAttribute {
    /// The rule for buckets with values of this type.
    pub fn rule(&self, values: &DataType) -> BucketRule {
        match self.bound {
            BucketBound::Diversity(l) => BucketRule::Diversity { l },
            BucketBound::Closeness(t) => BucketRule::Closeness {
                t,
                ordered: !self.categorical && (values.is_numeric() || values.is_temporal()),
            },
        }
    }

    /// Whether buckets are compared with all of them.
    pub fn is_of_whole_table(&self) -> bool {
        matches!(self.bound, BucketBound::Closeness(_))
    }
}

/// Names of parameters that bound what is published. A call may give those of its requirement only.
const BOUNDS: [&str; 11] = [
    "k",
    "l",
    "value_l",
    "m",
    "p",
    "categories",
    "alpha",
    "beta",
    "gamma",
    "delta",
    "max_category_share",
];

impl Asked {
    fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(given, _)| given == name);
        found.next().map(|(_, text)| text.as_str())
    }

    /// The bounds that are given.
    fn bounds(&self) -> Vec<&'static str> {
        let given = |name: &&str| self.parameter(name).is_some();
        BOUNDS.into_iter().filter(given).collect()
    }

    fn unreadable(&self) -> Unreadable {
        Unreadable(format!(
            "the verifier cannot read what {} is asked for: {}",
            self.function,
            self.bounds().join(", ")
        ))
    }

    fn of_column(&self, parameter: &str, column: &str) -> Option<&str> {
        let mut found = self.of_columns.iter();
        let found = found.find(|(name, of, _)| name == parameter && of == column);
        found.map(|(_, _, text)| text.as_str())
    }
}

impl Requirement {
    /// Reads what a call asks for.
    ///
    /// # Errors
    ///
    /// If the function is not known, a bound is missing, cannot be read or is not one of the function's.
    pub fn read(asked: &Asked) -> Result<Self, Unreadable> {
        Self::try_read(asked).ok_or_else(|| asked.unreadable())
    }

    fn try_read(asked: &Asked) -> Option<Self> {
        let text = |name: &str| asked.parameter(name);
        let bounds = asked.bounds();
        let function = asked.function.as_str();
        if let Some(counts) = ClassRequirement::asked(function, &bounds, text) {
            return Some(Self::Counts(counts));
        }
        if let Some(of_values) = Sensitivity::asked(function, &bounds, text) {
            return Some(Self::Sensitivity(of_values));
        }
        match (function, bounds.as_slice()) {
            ("anonymize_kl", ["k", "l"] | ["k", "l", "value_l"]) => {
                FingerprintRequirement::read(text).map(Self::Fingerprints)
            }
            // delta bounds how the baseline searches, not what it publishes.
            ("anonymize_kkm", ["k", "m", "delta"]) => {
                CombinationRequirement::read(text).map(Self::Combinations)
            }
            ("anonymize_lgb", ["k"] | ["k", "l"]) => {
                BucketRequirement::read(asked).map(Self::Buckets)
            }
            ("anatomize_slppa", given) => {
                let required: &[&str] = match text("method").unwrap_or("slppa") {
                    "slppa" | "slppa_similar" => &["alpha", "beta", "gamma", "delta"],
                    "asn" => &["beta", "gamma"],
                    "slicing" => &["beta"],
                    _ => return None,
                };
                let own = ["alpha", "beta", "gamma", "delta"];
                let all = required.iter().all(|name| given.contains(name));
                let known = given.iter().all(|name| own.contains(name));
                let bounds = AnatomyBounds::read(text).filter(|_| all && known);
                bounds.map(Self::Tables)
            }
            _ => None,
        }
    }
}

impl BucketRequirement {
    fn read(asked: &Asked) -> Option<Self> {
        let secret = |qi: &&String| asked.semi_sensitive.contains(qi);
        let semi = asked.qi.iter().filter(secret).map(|name| (name, true));
        let sensitive = asked.sensitive.iter().map(|name| (name, false));
        let mut attributes = vec![];
        for (name, semi_sensitive) in semi.chain(sensitive) {
            let l = asked.of_column("l", name);
            let bound = match (l, asked.of_column("t", name)) {
                (Some(_), Some(_)) => return None,
                (None, Some(t)) => BucketBound::Closeness(Ratio::or_zero(t).ok()?),
                (l, None) => {
                    BucketBound::Diversity(l.or_else(|| asked.parameter("l"))?.parse().ok()?)
                }
            };
            attributes.push(BucketAttribute {
                name: name.clone(),
                semi_sensitive,
                bound,
                categorical: asked.categorical.contains(name),
            });
        }
        Some(Self {
            k: asked.parameter("k")?.parse().ok()?,
            plain: asked.qi.iter().filter(|qi| !secret(qi)).cloned().collect(),
            attributes,
        })
    }
}
