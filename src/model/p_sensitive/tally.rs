//! What the sensitivity models count in a class.

use super::{Distinct, PSensitive};
use crate::model::{Member, Ratio, Tally};
use crate::table::NULL_CODE;

/// One sensitive value of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub attribute: u8,
    code: u32,
    /// `None` if the value is missing or has no category.
    pub category: Option<u32>,
}

impl Shown {
    /// What p counts; nothing if the value is missing (docs/theory/papers.md X3).
    pub fn counted(&self, distinct: Distinct) -> Option<u32> {
        match distinct {
            Distinct::Values => Some(self.code).filter(|code| *code != NULL_CODE),
            Distinct::Categories => self.category,
        }
    }
}

/// The sensitive values of a member. Attributes and categories are there only where the table has them.
pub(super) fn values<'a>(member: &Member<'a>) -> impl Iterator<Item = Shown> + use<'a> {
    let member = *member;
    (0..member.fingerprint.len()).map(move |i| {
        let code = member.fingerprint[i];
        let category = member.categories.get(i).copied();
        Shown {
            attribute: member.attributes.get(i).copied().unwrap_or(0),
            code,
            category: category.filter(|c| code != NULL_CODE && *c != NULL_CODE),
        }
    })
}

/// Counts of a class.
pub(super) struct ClassCounts {
    model: PSensitive,
    individuals: u64,
    attributes: Vec<AttributeTally>,
}

/// Counts of one sensitive attribute.
#[derive(Default)]
pub(super) struct AttributeTally {
    /// Different values or categories, no more than p of them.
    different: Vec<u32>,
    /// m − 1, by which weights are divided.
    steps: u64,
    /// Total weight of the individuals, in units of 1 / `steps`.
    weight: u64,
    /// Individuals with a value of each category; the last count is of missing values.
    holders: Vec<u64>,
    most_common: u64,
    /// Category of the most sensitive value of the member at hand.
    lightest: Option<u32>,
    /// The member up to which a category's holders are counted.
    counted: Vec<u64>,
}

impl ClassCounts {
    pub fn new(model: PSensitive) -> Self {
        Self {
            model,
            individuals: 0,
            attributes: vec![],
        }
    }

    pub fn individuals(&self) -> u64 {
        self.individuals
    }

    pub fn attributes(&self) -> &[AttributeTally] {
        &self.attributes
    }

    /// The weight of the lightest attribute if that is less than α; `None` inside if weights are not defined.
    pub fn too_light(&self) -> Option<Option<Ratio>> {
        let alpha = self.model.alpha?;
        let light = self.attributes.iter().filter(|a| !a.weighs(alpha));
        let weights = light.map(|a| Ratio::new(a.weight, a.steps));
        weights.min()
    }

    fn grow(&mut self, member: &Member<'_>) {
        let levels = member.levels;
        while self.attributes.len() < levels.len().max(1) {
            let categories = levels.get(self.attributes.len()).copied().unwrap_or(0);
            self.attributes.push(AttributeTally {
                steps: u64::from(categories.saturating_sub(1)),
                holders: vec![0; categories as usize + 1],
                counted: vec![0; categories as usize + 1],
                ..AttributeTally::default()
            });
        }
    }
}

impl Tally for ClassCounts {
    fn add(&mut self, member: Member<'_>) {
        self.individuals += 1;
        self.grow(&member);
        let weighs = self.model.alpha.is_some();
        if weighs {
            let none = |a: &mut AttributeTally| a.lightest = None;
            self.attributes.iter_mut().for_each(none);
        }
        for value in values(&member) {
            let Some(attribute) = self.attributes.get_mut(usize::from(value.attribute)) else {
                continue;
            };
            if let Some(counted) = value.counted(self.model.distinct) {
                attribute.note(counted, self.model.p);
            }
            if weighs {
                attribute.weigh(value.category);
            }
            if self.model.max_share.is_some() {
                attribute.hold(value.category, self.individuals);
            }
        }
        if weighs {
            for attribute in &mut self.attributes {
                attribute.weight += u64::from(attribute.lightest.unwrap_or(0));
            }
        }
    }

    fn satisfied(&mut self) -> bool {
        let model = &self.model;
        self.individuals >= model.size()
            && self.attributes.iter().all(|attribute| {
                let shares = |share: Ratio| share.at_least(attribute.most_common, self.individuals);
                attribute.different.len() as u64 >= model.p
                    && model.alpha.is_none_or(|alpha| attribute.weighs(alpha))
                    && model.max_share.is_none_or(shares)
            })
    }

    /// First a new value or category where there are too few, then weight.
    fn helps(&self, member: Member<'_>) -> bool {
        let (p, distinct) = (self.model.p, self.model.distinct);
        let lacks = |attribute: &AttributeTally| (attribute.different.len() as u64) < p;
        if self.attributes.iter().any(lacks) {
            return values(&member).any(|value| {
                let attribute = self.attributes.get(usize::from(value.attribute));
                let new = |a: &AttributeTally, v| lacks(a) && !a.different.contains(&v);
                let counted = value.counted(distinct);
                attribute.is_some_and(|a| counted.is_some_and(|v| new(a, v)))
            });
        }
        self.too_light().is_none() || values(&member).all(|v| v.category.is_some_and(|c| c > 0))
    }

    fn clear(&mut self) {
        self.individuals = 0;
        self.attributes.iter_mut().for_each(AttributeTally::clear);
    }
}

impl AttributeTally {
    fn note(&mut self, counted: u32, p: u64) {
        if (self.different.len() as u64) < p && !self.different.contains(&counted) {
            self.different.push(counted);
        }
    }

    /// Takes a value of the member at hand into account: it weighs what its most sensitive value weighs, and a missing
    /// one may be the most sensitive.
    fn weigh(&mut self, category: Option<u32>) {
        let category = category.unwrap_or(0);
        self.lightest = Some(self.lightest.map_or(category, |known| known.min(category)));
    }

    fn hold(&mut self, category: Option<u32>, member: u64) {
        let missing = self.holders.len().saturating_sub(1);
        let at = category.map_or(missing, |c| c as usize).min(missing);
        if self.counted[at] < member {
            self.counted[at] = member;
            self.holders[at] += 1;
            self.most_common = self.most_common.max(self.holders[at]);
        }
    }

    /// Whether the total weight is at least α, exactly. Without two categories nothing weighs anything.
    fn weighs(&self, alpha: Ratio) -> bool {
        self.steps > 0
            && u128::from(self.weight) * u128::from(alpha.denominator())
                >= u128::from(alpha.numerator()) * u128::from(self.steps)
    }

    fn clear(&mut self) {
        self.different.clear();
        self.weight = 0;
        self.most_common = 0;
        self.holders.fill(0);
        self.counted.fill(0);
    }
}
