//! The similarity attack: what a reader learns where all values of a class fall into one category.

use crate::check::classes::{Records, by_class, individuals, shown};

/// What the similarity attack learns from a release (Sun 2010, Section 7.1.2 and Table 10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Similarity {
    /// All classes.
    pub classes: usize,
    /// Classes whose values, of some attribute, fall into one category.
    pub vulnerable_classes: usize,
    /// Their records, for which the category is known.
    pub exposed_records: usize,
    /// Their individuals.
    pub exposed_individuals: usize,
}

/// Counts classes in which the known values of a sensitive attribute all have the same category, and whom they expose.
///
/// Missing values say nothing: a class is vulnerable if the others agree, and only those who have one of them are
/// exposed. Values without a category are taken as missing.
pub fn similarity_attack(records: &Records<'_>) -> Similarity {
    let classes = by_class(records);
    let mut found = Similarity {
        classes: classes.len(),
        ..Similarity::default()
    };
    for of_class in classes.values() {
        let exposing = records.attributes.iter().filter(|attribute| {
            let shown = shown(records, attribute, of_class);
            shown.categories.len() == 1
        });
        // A record may be exposed by several attributes, and counts once.
        let mut exposed: Vec<usize> = exposing
            .flat_map(|attribute| {
                of_class
                    .iter()
                    .filter(|r| attribute.category_of(**r).is_some())
            })
            .copied()
            .collect();
        exposed.sort_unstable();
        exposed.dedup();
        found.vulnerable_classes += usize::from(!exposed.is_empty());
        found.exposed_records += exposed.len();
        found.exposed_individuals += individuals(records, &exposed).len();
    }
    found
}

impl crate::check::classes::ShownAttribute {
    fn category_of(&self, record: usize) -> Option<u32> {
        let value = self.value.get(record).copied().flatten()?;
        self.category.get(value as usize).copied().flatten()
    }
}
