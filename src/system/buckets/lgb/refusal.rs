//! Why a table cannot be anonymized as asked, and what could be asked instead.

use std::fmt;

use crate::algorithm::Cancelled;
use crate::model::Ratio;

/// A column by its place among its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributePlace {
    /// A semi-sensitive quasi-identifier, by its place among the quasi-identifiers.
    QuasiIdentifier(usize),
    /// A sensitive column, by its place among those.
    Sensitive(usize),
}

/// A request that no release can satisfy. Holds counts and bounds only, never a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unworkable {
    /// The input does not fit together: an error of the caller.
    Shape(&'static str),
    /// An attribute asks for l below 2.
    Bounds {
        /// The attribute.
        attribute: AttributePlace,
    },
    /// Secret values that are missing.
    MissingSecrets {
        /// The attribute.
        attribute: AttributePlace,
        /// Individuals whose secret is missing.
        individuals: usize,
    },
    /// The secret values of an attribute are not l-eligible (docs/theory/papers.md L2).
    Diversity {
        /// The attribute.
        attribute: AttributePlace,
        /// What was asked for.
        l: u32,
        /// Secret values.
        owners: usize,
        /// How often the most frequent of them occurs.
        most: usize,
    },
    /// The secret values of an attribute are further than t from the reference, or all the same.
    Closeness {
        /// The attribute.
        attribute: AttributePlace,
        /// What was asked for.
        t: Ratio,
        /// The smallest t that works, rounded up to millionths; `None` if all secret values are the same.
        best: Option<Ratio>,
    },
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request cannot be satisfied.
    Unworkable(Unworkable),
    /// Nobody waits for the result any more.
    Cancelled,
}

impl Unworkable {
    /// The attribute that refuses, if it is one.
    pub fn attribute(&self) -> Option<AttributePlace> {
        match *self {
            Self::Shape(_) => None,
            Self::Bounds { attribute }
            | Self::MissingSecrets { attribute, .. }
            | Self::Diversity { attribute, .. }
            | Self::Closeness { attribute, .. } => Some(attribute),
        }
    }

    /// The largest l that works for the attribute; `None` if none from 2 on does, or l is not the matter.
    pub fn largest_l(&self) -> Option<usize> {
        match *self {
            Self::Diversity { owners, most, .. } => Some(owners / most.max(1)).filter(|l| *l >= 2),
            _ => None,
        }
    }
}

impl fmt::Display for Unworkable {
    /// Without the name of the attribute, which the caller knows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape(what) => f.write_str(what),
            Self::Bounds { .. } => f.write_str("l must be at least 2"),
            Self::MissingSecrets { individuals, .. } => {
                write!(f, "{individuals} individuals have no value to keep secret")
            }
            Self::Diversity {
                l, owners, most, ..
            } => {
                write!(
                    f,
                    "l = {l} is impossible: one value is {most} of the {owners} secret values, "
                )?;
                match self.largest_l() {
                    Some(best) => write!(f, "the largest l that works is {best}"),
                    None => f.write_str("no l works; t may"),
                }
            }
            Self::Closeness { t, best, .. } => {
                write!(f, "t = {t} is impossible: ")?;
                match best {
                    Some(best) => write!(f, "the smallest t that works is {best}"),
                    None => f.write_str("all secret values are the same, no t works"),
                }
            }
        }
    }
}

impl std::error::Error for Unworkable {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unworkable(unworkable) => unworkable.fmt(f),
            Self::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Unworkable> for Refusal {
    fn from(unworkable: Unworkable) -> Self {
        Self::Unworkable(unworkable)
    }
}

impl From<Cancelled> for Refusal {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}
