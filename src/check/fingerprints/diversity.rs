//! (k, l)-diversity of published fingerprints.

use std::fmt;

use super::shares::{most_alike, most_related};
use super::{FingerprintTally, ShownLabels};
use crate::check::ratio::Ratio;

/// What every release under (k, l)-diversity must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintRequirement {
    /// Individuals who share a published fingerprint.
    pub k: usize,
    /// At most one in l of a class may have the same values.
    pub l: usize,
    /// At most one in so many of a class have a value; not all of them, if it is not given.
    pub value_l: Option<usize>,
}

impl FingerprintRequirement {
    /// The requirement with parameters as they were written; `None` if one is missing or cannot be read.
    pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let count = |name: &str| parameter(name).map(|text| text.parse::<usize>().ok());
        Some(Self {
            k: count("k")??,
            l: count("l")??,
            value_l: match count("value_l") {
                Some(value_l) => Some(value_l?),
                None => None,
            },
        })
    }
}

/// What a release that satisfies its requirement attains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintsAttained {
    /// Individuals.
    pub individuals: usize,
    /// Classes.
    pub classes: usize,
    /// Different published fingerprints.
    pub fingerprints: usize,
    /// Individuals with the rarest fingerprint.
    pub rarest_fingerprint: usize,
    /// The largest share of a class that may have the same values.
    pub largest_fingerprint_share: Ratio,
    /// The largest share of a class that has a published value, something below it or something above it.
    pub largest_value_share: Ratio,
    /// The fewest individuals of one class with the same fingerprint: what is left to a reader who knows both.
    pub fewest_in_common: usize,
    /// Individuals whose fingerprint nobody else of their class has.
    pub alone_in_common: usize,
}

/// Why a release must not be published. Holds counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FingerprintViolation {
    /// Individuals who show more than one tuple of quasi-identifiers.
    SeveralTuples {
        /// Such individuals.
        individuals: usize,
    },
    /// Rows that repeat a value of an individual: how often would tell individuals apart (docs/theory/papers.md M3).
    RepeatedRows {
        /// Such rows.
        rows: usize,
    },
    /// Rows without a pseudonym or a value.
    Missing {
        /// Such rows.
        rows: usize,
    },
    /// Published labels that are not in the hierarchy.
    ForeignLabels {
        /// Such rows.
        rows: usize,
    },
    /// Fingerprints that too few share.
    RareFingerprints {
        /// Such fingerprints.
        fingerprints: usize,
        /// Individuals with the rarest.
        rarest: usize,
    },
    /// Classes in which too many may have the same values.
    FingerprintShare {
        /// Such classes.
        classes: usize,
        /// The largest share.
        share: Ratio,
    },
    /// Classes in which too many have a value.
    ValueShare {
        /// Such classes.
        classes: usize,
        /// The largest share.
        share: Ratio,
    },
}

/// Checks a release against (k, l)-diversity.
///
/// A release without rows has nothing that could violate anything, and passes.
///
/// # Errors
///
/// The first [`FingerprintViolation`] in the order of the requirement's parts.
pub fn verify_fingerprints(
    published: &ShownLabels,
    requirement: &FingerprintRequirement,
) -> Result<FingerprintsAttained, FingerprintViolation> {
    published.check_form()?;
    let mut tally = FingerprintTally::default();
    tally.add(published);
    let rarest = tally.check(requirement.k)?;
    let (mut fingerprint_share, mut value_share) = (Worst::default(), Worst::default());
    let (mut fewest, mut alone) = (usize::MAX, 0);
    for class in &published.classes {
        let counted = published.count(class);
        let n = class.len();
        fewest = counted.iter().map(|(_, n)| *n).fold(fewest, usize::min);
        alone += counted.iter().filter(|(_, n)| *n == 1).count();
        let most = most_alike(&counted, &published.tree);
        fingerprint_share.add(most, n, most * requirement.l <= n);
        let most = most_related(&counted, &published.tree);
        value_share.add(
            most,
            n,
            match requirement.value_l {
                Some(value_l) => most * value_l <= n,
                None => most < n,
            },
        );
    }
    if fingerprint_share.violating > 0 {
        return Err(FingerprintViolation::FingerprintShare {
            classes: fingerprint_share.violating,
            share: fingerprint_share.share(),
        });
    }
    if value_share.violating > 0 {
        return Err(FingerprintViolation::ValueShare {
            classes: value_share.violating,
            share: value_share.share(),
        });
    }
    Ok(FingerprintsAttained {
        individuals: published.classes.iter().map(Vec::len).sum(),
        classes: published.classes.len(),
        fingerprints: tally.len(),
        rarest_fingerprint: rarest,
        largest_fingerprint_share: fingerprint_share.share(),
        largest_value_share: value_share.share(),
        fewest_in_common: if published.classes.is_empty() {
            0
        } else {
            fewest
        },
        alone_in_common: alone,
    })
}

/// The largest share of any class, and how many classes have too large a one.
#[derive(Default)]
struct Worst {
    largest: Option<Ratio>,
    violating: usize,
}

impl Worst {
    fn add(&mut self, part: usize, whole: usize, holds: bool) {
        self.largest = self.largest.max(Some(Ratio::of(part, whole)));
        self.violating += usize::from(!holds);
    }

    fn share(&self) -> Ratio {
        self.largest.unwrap_or(Ratio::of(0, 1))
    }
}

impl fmt::Display for FingerprintViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |share: &Ratio| (share.numerator(), share.denominator());
        match self {
            Self::SeveralTuples { individuals } => write!(
                f,
                "{individuals} individuals show more than one tuple of quasi-identifiers"
            ),
            Self::RepeatedRows { rows } => write!(f, "{rows} rows repeat a value of an individual"),
            Self::Missing { rows } => {
                write!(f, "{rows} rows have no pseudonym or no sensitive value")
            }
            Self::ForeignLabels { rows } => {
                write!(
                    f,
                    "{rows} rows show a sensitive value that the hierarchy does not have"
                )
            }
            Self::RareFingerprints {
                fingerprints,
                rarest,
            } => write!(
                f,
                "{fingerprints} published fingerprints are shared by too few individuals, the rarest by {rarest}"
            ),
            Self::FingerprintShare { classes, share } => {
                let (part, whole) = counted(share);
                write!(
                    f,
                    "{classes} classes have a fingerprint that too many may have, at worst {part} of {whole}"
                )
            }
            Self::ValueShare { classes, share } => {
                let (part, whole) = counted(share);
                write!(
                    f,
                    "{classes} classes have a sensitive value that too many may have, at worst {part} of {whole}"
                )
            }
        }
    }
}
