//! What was asked for, read a second time from the words of the call.
//!
//! The code that forms classes parses the same words on its own. An error made there, or a parameter that gets lost on its
//! way, cannot repeat itself here.

use std::fmt;

use datafusion::arrow::datatypes::DataType;

use super::buckets::BucketRule;
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
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(given, _)| given == name);
        found.next().map(|(_, text)| text.as_str())
    }

    /// The bounds that are given.
    pub(super) fn bounds(&self) -> Vec<&'static str> {
        let given = |name: &&str| self.parameter(name).is_some();
        BOUNDS.into_iter().filter(given).collect()
    }

    pub(super) fn unreadable(&self) -> Unreadable {
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

impl BucketRequirement {
    pub(super) fn read(asked: &Asked) -> Option<Self> {
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
