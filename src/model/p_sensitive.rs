//! p-sensitive, p⁺-sensitive and (p, α)-sensitive k-anonymity: bounds on how alike the sensitive values of a class are,
//! as values, as categories and by their weight (Sun, Sun, Wang 2010).

mod tally;

use std::collections::HashSet;

use self::tally::{ClassCounts, values};
use super::ir_k::{K, enough_individuals};
use super::{
    Closure, Infeasible, Member, Model, ModelEntry, Parameter, ParameterError, ParameterKind,
    Parameters, Ratio, Tally, Value,
};

/// p-sensitive k-anonymity in the list of models.
pub static ENTRY: ModelEntry = ModelEntry {
    name: "p_sensitive_k_anonymity",
    function: FUNCTION,
    help: "every class has at least k individuals and p different values of each sensitive attribute",
    parameters: &[K, P],
    build: |parameters| PSensitive::build(parameters, Distinct::Values),
};

/// p⁺-sensitive k-anonymity in the list of models.
pub static PLUS_ENTRY: ModelEntry = ModelEntry {
    name: "p_plus_sensitive_k_anonymity",
    function: FUNCTION,
    help: "every class has at least k individuals and p different categories of each sensitive attribute",
    parameters: &[K, P, CATEGORIES, MAX_CATEGORY_SHARE],
    build: |parameters| PSensitive::build(parameters, Distinct::Categories),
};

/// (p, α)-sensitive k-anonymity in the list of models.
pub static ALPHA_ENTRY: ModelEntry = ModelEntry {
    name: "p_alpha_sensitive_k_anonymity",
    function: FUNCTION,
    help: "every class has at least k individuals and p different values of each sensitive attribute, whose weights \
           add up to at least alpha",
    parameters: &[K, P, CATEGORIES, ALPHA, MAX_CATEGORY_SHARE],
    build: |parameters| PSensitive::build(parameters, Distinct::Values),
};

const FUNCTION: &str = "anonymize_p_sensitive";

const P: Parameter = Parameter {
    name: "p",
    kind: ParameterKind::Integer {
        min: 2,
        max: 1_000_000,
    },
    required: true,
    help: "smallest number of different sensitive values, or of their categories, in a class",
};

/// The engine reads the categories and passes on how many there are; of several attributes, the smallest number.
const CATEGORIES: Parameter = Parameter {
    name: "categories",
    kind: ParameterKind::Integer {
        min: 2,
        max: 1_000_000,
    },
    required: true,
    help: "categories of the sensitive values, from the most to the least sensitive",
};

const ALPHA: Parameter = Parameter {
    name: "alpha",
    kind: ParameterKind::Weight,
    required: true,
    help: "smallest total weight of a class, where the most sensitive category weighs 0 and the least sensitive 1",
};

const MAX_CATEGORY_SHARE: Parameter = Parameter {
    name: "max_category_share",
    kind: ParameterKind::Share,
    required: false,
    help: "largest share of a class's individuals with a value of one category",
};

/// What p counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distinct {
    /// Definitions 2 and 4.
    Values,
    /// Definition 3.
    Categories,
}

/// p-sensitive, p⁺-sensitive and (p, α)-sensitive k-anonymity (Sun 2010, Definitions 2, 3 and 4).
///
/// # Guarantee
/// A class has at least max(k, p) individuals (docs/theory/papers.md P8) and, for each sensitive attribute, p different values
/// or categories. With α, the weights of its individuals add up to at least α for each attribute; an individual weighs
/// what its most sensitive value weighs. Neither bounds how common one category is (P1): `max_category_share` does.
///
/// A missing value is never one of the p, weighs nothing, and is a category of its own for `max_category_share`.
#[derive(Debug, Clone, Copy)]
struct PSensitive {
    k: u64,
    p: u64,
    distinct: Distinct,
    alpha: Option<Ratio>,
    max_share: Option<Ratio>,
}

impl PSensitive {
    fn build(
        parameters: &Parameters,
        distinct: Distinct,
    ) -> Result<Box<dyn Model>, ParameterError> {
        let p = parameters.integer("p")?;
        let categories = parameters.integer("categories").ok();
        if let (Distinct::Categories, Some(categories)) = (distinct, categories)
            && p > categories
        {
            return Err(ParameterError {
                parameter: "p".to_owned(),
                message: format!("must be at most {categories}, the number of categories, not {p}"),
            });
        }
        Ok(Box::new(Self {
            k: parameters.integer("k")?,
            p,
            distinct,
            alpha: parameters.weight("alpha").ok(),
            max_share: parameters.ratio("max_category_share").ok(),
        }))
    }

    /// The smallest class (docs/theory/papers.md P8).
    fn size(&self) -> u64 {
        self.k.max(self.p)
    }
}

impl Model for PSensitive {
    fn describe(&self) -> String {
        let (k, p) = (self.k, self.p);
        let mut text = match (self.alpha, self.distinct) {
            (Some(alpha), _) => format!("({p}, {alpha})-sensitive {k}-anonymity"),
            (None, Distinct::Values) => format!("{p}-sensitive {k}-anonymity"),
            (None, Distinct::Categories) => format!("{p}⁺-sensitive {k}-anonymity"),
        };
        if let Some(share) = self.max_share {
            text += &format!(" with at most {share} of one category");
        }
        text
    }

    /// More members add values, categories and weight (docs/theory/papers.md G7), but may raise the share of a category. The
    /// share of a union lies between those of its parts.
    fn closure(&self) -> Closure {
        Closure {
            union: true,
            extension: self.max_share.is_none(),
        }
    }

    fn min_individuals(&self) -> usize {
        // No individual weighs more than 1.
        let weight = self
            .alpha
            .map_or(0, |a| a.numerator().div_ceil(a.denominator()));
        let shares = self.max_share.and_then(|share| share.ceil_of_inverse());
        let individuals = self.size().max(weight).max(shares.unwrap_or(0));
        usize::try_from(individuals).unwrap_or(usize::MAX)
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::new(ClassCounts::new(*self))
    }

    /// Exact without `max_category_share`, where all individuals together are the best class (docs/theory/papers.md P6); with
    /// it, necessary conditions only.
    fn feasible(&self, members: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        let mut counts = ClassCounts::new(*self);
        let (mut different, mut categories) = (vec![], vec![]);
        for member in members {
            counts.add(member);
            different.resize_with(counts.attributes().len(), HashSet::new);
            categories.resize_with(counts.attributes().len(), HashSet::new);
            for value in values(&member) {
                let attribute = usize::from(value.attribute);
                different[attribute].extend(value.counted(self.distinct));
                categories[attribute].insert(value.category);
            }
        }
        enough_individuals(self.k, counts.individuals())?;
        let fewest = different
            .iter()
            .map(|d: &HashSet<u32>| d.len() as u64)
            .min();
        let reached = fewest.unwrap_or(0).min(counts.individuals());
        if reached < self.p {
            return Err(Infeasible {
                parameter: "p",
                best: (reached >= 2).then_some(Value::Integer(reached)),
            });
        }
        if let Some(lightest) = counts.too_light() {
            return Err(Infeasible {
                parameter: "alpha",
                best: lightest.filter(|w| w.numerator() > 0).map(Value::Weight),
            });
        }
        let fewest = categories
            .iter()
            .map(|c: &HashSet<Option<u32>>| c.len() as u64)
            .min();
        let even = fewest.and_then(|n| Ratio::new(1, n));
        match (self.max_share, even) {
            (Some(share), Some(even)) if share < even => Err(Infeasible {
                parameter: "max_category_share",
                best: (even.denominator() >= 2).then_some(Value::Ratio(even)),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
