//! p-sensitive, p⁺-sensitive and (p, α)-sensitive k-anonymity by their definitions (Sun, Sun, Wang 2010, Definitions 2,
//! 3 and 4), on published records.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::check::ratio::Ratio;

pub use table::{Listed, SensitiveColumn, SensitiveTable};

/// Published records: the class, the individual and the sensitive values of each.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// The class of each record.
    pub class: &'a [u32],
    /// The individual of each record.
    pub individual: &'a [u32],
    /// The sensitive attributes.
    pub attributes: &'a [ShownAttribute],
}

/// A sensitive attribute of published records.
#[derive(Debug, Clone, Default)]
pub struct ShownAttribute {
    /// The value of each record; `None` if it is missing.
    pub value: Vec<Option<u32>>,
    /// The category of each value, 0 for the most sensitive, where values have one.
    pub category: Vec<Option<u32>>,
    /// Number of categories: m.
    pub categories: u32,
}

/// The requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sensitivity {
    k: usize,
    p: usize,
    /// Whether p counts categories.
    of_categories: bool,
    /// Smallest total weight.
    alpha: Option<Decimal>,
    /// Largest share of one category.
    max_category_share: Option<Ratio>,
}

/// A decimal number above 0, `digits / scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u64,
    scale: u64,
}

/// What a release that satisfies its requirement attains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensitivityAttained {
    /// Classes.
    pub classes: usize,
    /// Individuals in the smallest class.
    pub smallest_class: usize,
    /// The fewest different values of an attribute in a class.
    pub fewest_values: usize,
    /// The fewest different categories; 0 if there are no categories.
    pub fewest_categories: usize,
    /// The largest share of a class's individuals who have a value of one category, which neither p nor α bounds
    /// (docs/theory/papers.md P1); 0 if there are no categories.
    pub largest_category_share: Ratio,
}

/// What is wrong with the first class that violates the requirement, and how many do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensitivityViolation {
    /// All classes.
    pub classes: usize,
    /// Those that violate it.
    pub violating: usize,
    /// Individuals in the first of them.
    pub individuals: usize,
    /// What the first of them misses.
    pub shortfall: SensitivityShortfall,
}

/// By how much a class misses the requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SensitivityShortfall {
    /// Too few individuals.
    Individuals,
    /// Too few different values of an attribute.
    Values {
        /// How many there are.
        values: usize,
    },
    /// Too few different categories of an attribute.
    Categories {
        /// How many there are.
        categories: usize,
    },
    /// Too small a total weight of an attribute.
    Weight {
        /// The weight, in parts of m − 1.
        weight: u64,
        /// m − 1.
        of: u64,
    },
    /// A category that too many have.
    CategoryShare {
        /// Those with a value of it, of all.
        share: Ratio,
    },
}

impl Sensitivity {
    /// The requirement that a function means by its bounds, which stand in the order of the list of all bounds.
    pub(crate) fn asked<'a>(
        function: &str,
        bounds: &[&str],
        parameter: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let model = match (function, bounds) {
            ("anonymize_p_sensitive", ["k", "p"]) => "p_sensitive_k_anonymity",
            (
                "anonymize_p_sensitive",
                ["k", "p", "categories"] | ["k", "p", "categories", "max_category_share"],
            ) => "p_plus_sensitive_k_anonymity",
            (
                "anonymize_p_sensitive",
                ["k", "p", "categories", "alpha"]
                | ["k", "p", "categories", "alpha", "max_category_share"],
            ) => "p_alpha_sensitive_k_anonymity",
            _ => return None,
        };
        Self::named(model, parameter)
    }

    /// The requirement of a model by its name, with parameters as they were written; `None` if there is no such
    /// requirement or a parameter cannot be read.
    pub fn named<'a>(name: &str, parameter: impl Fn(&str) -> Option<&'a str>) -> Option<Self> {
        let count = |name: &str| parameter(name)?.parse::<usize>().ok();
        let share = match parameter("max_category_share") {
            Some(text) => Some(text.parse::<Ratio>().ok()?),
            None => None,
        };
        let (of_categories, weighs) = match name {
            "p_sensitive_k_anonymity" => (false, false),
            "p_plus_sensitive_k_anonymity" => (true, false),
            "p_alpha_sensitive_k_anonymity" => (false, true),
            _ => return None,
        };
        Some(Self {
            k: count("k")?,
            p: count("p")?,
            of_categories,
            alpha: match weighs {
                true => Some(Decimal::read(parameter("alpha")?)?),
                false => None,
            },
            max_category_share: share,
        })
    }

    /// What must hold of values whatever their categories; `None` if it does not count values.
    pub fn of_values(&self) -> Option<Self> {
        let values = Self {
            alpha: None,
            max_category_share: None,
            ..*self
        };
        (!self.of_categories).then_some(values)
    }

    /// The smallest class: p different values need p individuals (docs/theory/papers.md P8).
    pub fn individuals(&self) -> usize {
        self.k.max(self.p)
    }
}

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = [whole, fraction].concat();
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let read = Self {
            digits: digits.parse().ok().filter(|d| plain && *d > 0)?,
            scale: 10u64.checked_pow(fraction.len().try_into().ok()?)?,
        };
        Some(read)
    }
}

/// What one class shows of one attribute: the values and categories of each individual.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    values: BTreeSet<u32>,
    pub(crate) categories: BTreeSet<u32>,
    /// Per individual, the categories of its values; `None` for a missing value or one without a category.
    of: BTreeMap<u32, BTreeSet<Option<u32>>>,
}

/// Checks that every class satisfies the requirement, for each sensitive attribute.
///
/// A missing value is never one of the p, its individual weighs nothing, and it is a category of its own for the largest
/// share (docs/theory/papers.md X3). An individual weighs what its most sensitive value weighs.
///
/// # Errors
///
/// What the first class that violates the requirement misses; the order of classes is that of their numbers.
pub fn check_sensitivity(
    records: &Records<'_>,
    requirement: &Sensitivity,
) -> Result<SensitivityAttained, SensitivityViolation> {
    let classes = by_class(records);
    let mut attained = SensitivityAttained {
        classes: classes.len(),
        smallest_class: usize::MAX,
        fewest_values: usize::MAX,
        fewest_categories: usize::MAX,
        largest_category_share: Ratio::of(0, 1),
    };
    let mut violation: Option<SensitivityViolation> = None;
    for of_class in classes.values() {
        let individuals = individuals(records, of_class);
        attained.smallest_class = attained.smallest_class.min(individuals.len());
        let mut result = match individuals.len() < requirement.individuals() {
            true => Err(SensitivityShortfall::Individuals),
            false => Ok(()),
        };
        for attribute in records.attributes {
            let shown = shown(records, attribute, of_class);
            let share = shown.largest_share(individuals.len());
            attained.fewest_values = attained.fewest_values.min(shown.values.len());
            attained.fewest_categories = attained.fewest_categories.min(shown.categories.len());
            if attribute.categories > 0 {
                attained.largest_category_share = attained.largest_category_share.max(share);
            }
            result = result.and_then(|()| shown.check(requirement, attribute, share));
        }
        if let Err(shortfall) = result {
            let first = SensitivityViolation {
                classes: classes.len(),
                violating: 0,
                individuals: individuals.len(),
                shortfall,
            };
            violation.get_or_insert(first).violating += 1;
        }
    }
    if classes.is_empty() || records.attributes.is_empty() {
        (attained.fewest_values, attained.fewest_categories) = (0, 0);
    }
    if classes.is_empty() {
        attained.smallest_class = 0;
    }
    match violation {
        Some(violation) => Err(violation),
        None => Ok(attained),
    }
}

impl Shown {
    /// The largest share of individuals who have a value of one category; a missing value is one.
    fn largest_share(&self, individuals: usize) -> Ratio {
        let mut holders: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        for category in self.of.values().flatten() {
            *holders.entry(*category).or_default() += 1;
        }
        Ratio::of(holders.into_values().max().unwrap_or(0), individuals)
    }

    fn check(
        &self,
        requirement: &Sensitivity,
        attribute: &ShownAttribute,
        share: Ratio,
    ) -> Result<(), SensitivityShortfall> {
        if requirement.of_categories {
            let categories = self.categories.len();
            if categories < requirement.p {
                return Err(SensitivityShortfall::Categories { categories });
            }
        } else {
            let values = self.values.len();
            if values < requirement.p {
                return Err(SensitivityShortfall::Values { values });
            }
        }
        if let Some(alpha) = requirement.alpha {
            // A set of categories begins with `None`, if it has it, or else the most sensitive.
            let weight = |of: &BTreeSet<Option<u32>>| of.first().copied().flatten().unwrap_or(0);
            let weight: u64 = self.of.values().map(|of| u64::from(weight(of))).sum();
            let of = u64::from(attribute.categories.saturating_sub(1));
            let enough = u128::from(weight) * u128::from(alpha.scale)
                >= u128::from(alpha.digits) * u128::from(of);
            if of == 0 || !enough {
                return Err(SensitivityShortfall::Weight { weight, of });
            }
        }
        match requirement.max_category_share {
            Some(most) if most < share => Err(SensitivityShortfall::CategoryShare { share }),
            _ => Ok(()),
        }
    }
}

/// The records of each class.
pub(crate) fn by_class(records: &Records<'_>) -> BTreeMap<u32, Vec<usize>> {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (record, class) in records.class.iter().enumerate() {
        classes.entry(*class).or_default().push(record);
    }
    classes
}

pub(crate) fn individuals(records: &Records<'_>, of_class: &[usize]) -> BTreeSet<u32> {
    of_class
        .iter()
        .map(|record| records.individual[*record])
        .collect()
}

pub(crate) fn shown(
    records: &Records<'_>,
    attribute: &ShownAttribute,
    of_class: &[usize],
) -> Shown {
    let mut shown = Shown::default();
    for record in of_class {
        let value = attribute.value[*record];
        let category = value.and_then(|v| attribute.category.get(v as usize).copied().flatten());
        shown.values.extend(value);
        shown.categories.extend(category);
        let of = shown.of.entry(records.individual[*record]).or_default();
        of.insert(category);
    }
    shown
}

impl fmt::Display for Sensitivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (k, p) = (self.k, self.p);
        match (self.alpha, self.of_categories) {
            (Some(_), _) => write!(f, "({p}, α)-sensitive {k}-anonymity")?,
            (None, true) => write!(f, "{p}⁺-sensitive {k}-anonymity")?,
            (None, false) => write!(f, "{p}-sensitive {k}-anonymity")?,
        }
        match self.max_category_share {
            Some(share) => write!(f, " with at most {share} of one category"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SensitivityViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            classes,
            violating,
            individuals,
            shortfall,
        } = self;
        write!(
            f,
            "{violating} of {classes} classes violate it; the first of them, with {individuals} individuals, "
        )?;
        match shortfall {
            SensitivityShortfall::Individuals => f.write_str("has too few"),
            SensitivityShortfall::Values { values } => {
                write!(f, "has {values} different values of a sensitive attribute")
            }
            SensitivityShortfall::Categories { categories } => {
                write!(
                    f,
                    "has {categories} different categories of a sensitive attribute"
                )
            }
            SensitivityShortfall::Weight { weight, of } => {
                write!(f, "weighs {weight}/{of} in a sensitive attribute")
            }
            SensitivityShortfall::CategoryShare { share } => write!(
                f,
                "has a category that {} of {} have a value of",
                share.numerator(),
                share.denominator()
            ),
        }
    }
}

#[cfg(test)]
mod tests;
