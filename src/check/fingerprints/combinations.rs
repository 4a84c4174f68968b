//! The checker of (k, kᵐ)-anonymity: every class has k individuals, and any m labels that one of them shows are shown by k.

use std::collections::BTreeMap;
use std::fmt;

use super::{FingerprintViolation, ShownLabels};

/// What every release under (k, kᵐ)-anonymity must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CombinationRequirement {
    /// Individuals of a class, and those who show the same labels.
    pub k: usize,
    /// Labels that a reader may know.
    pub m: usize,
}

impl CombinationRequirement {
    /// The requirement with parameters as they were written; `None` if one is missing or cannot be read.
    pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let count = |name: &str| parameter(name)?.parse::<usize>().ok();
        Some(Self {
            k: count("k")?,
            m: count("m")?,
        })
    }
}

/// Why a release must not be published. Holds counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CombinationViolation {
    /// A fault of form.
    Form(FingerprintViolation),
    /// Classes with too few individuals.
    SmallClasses {
        /// Such classes.
        classes: usize,
        /// Individuals of the smallest.
        smallest: usize,
    },
    /// Combinations of labels that too few of a class show.
    RareCombinations {
        /// Such combinations.
        combinations: usize,
        /// Individuals with the rarest.
        rarest: usize,
    },
}

/// Checks a release against (k, kᵐ)-anonymity.
pub fn verify_combinations(
    published: &ShownLabels,
    requirement: &CombinationRequirement,
) -> Result<(), CombinationViolation> {
    published.check_form().map_err(CombinationViolation::Form)?;
    let small = published.classes.iter().map(Vec::len);
    let small = small.filter(|n| *n < requirement.k);
    if let Some(smallest) = small.clone().min() {
        return Err(CombinationViolation::SmallClasses {
            classes: small.count(),
            smallest,
        });
    }
    let (mut combinations, mut rarest) = (0, usize::MAX);
    for class in &published.classes {
        let mut shown: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        for set in class {
            let labels = &published.sets[*set as usize];
            choices(labels, requirement.m, &mut vec![], &mut |chosen| {
                *shown.entry(chosen.to_vec()).or_default() += 1;
            });
        }
        for n in shown.into_values().filter(|n| *n < requirement.k) {
            combinations += 1;
            rarest = rarest.min(n);
        }
    }
    match combinations {
        0 => Ok(()),
        _ => Err(CombinationViolation::RareCombinations {
            combinations,
            rarest,
        }),
    }
}

/// Every choice of one to `most` labels.
fn choices(labels: &[u32], most: usize, chosen: &mut Vec<u32>, found: &mut impl FnMut(&[u32])) {
    if chosen.len() == most {
        return;
    }
    for (at, label) in labels.iter().enumerate() {
        chosen.push(*label);
        found(chosen);
        choices(&labels[at + 1..], most, chosen, found);
        chosen.pop();
    }
}

impl fmt::Display for CombinationViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(fault) => fault.fmt(f),
            Self::SmallClasses { classes, smallest } => write!(
                f,
                "{classes} classes have too few individuals, the smallest {smallest}"
            ),
            Self::RareCombinations {
                combinations,
                rarest,
            } => write!(
                f,
                "{combinations} combinations of sensitive values are shown by too few of a class, the rarest by {rarest}"
            ),
        }
    }
}
