//! Categories of sensitive values, ordered from the most to the least sensitive.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// A partition of sensitive values into ordered categories S₁, …, S_m (Sun 2010, Section 3); numbered from 0, the most
/// sensitive. Sent as lists, and checked again when they arrive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Lists", into = "Lists")]
pub struct Categories {
    labels: Vec<String>,
    of: BTreeMap<String, u32>,
}

/// Categories with their values, the most sensitive first.
type Lists = Vec<(String, Vec<String>)>;

/// Categories could not be made; says how many entries are wrong, never which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CategoryError {
    /// Fewer than two categories: with one, no weight is defined and nothing can be told apart (docs/theory/papers.md P3).
    TooFew(usize),
    /// Categories without a value.
    Empty(usize),
    /// Categories that are given more than once.
    RepeatedLabels(usize),
    /// Values in more than one category.
    RepeatedValues(usize),
    /// Rows without a rank: the order of a table's rows means nothing.
    Unranked(usize),
    /// Categories with several ranks.
    SeveralRanks(usize),
    /// Categories that share their rank with another one.
    SharedRanks(usize),
}

/// One row of a table of categories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryRow<S> {
    /// The place of the category, smaller is more sensitive.
    pub rank: Option<u64>,
    /// The category.
    pub category: S,
    /// A value in it.
    pub value: S,
}

impl Categories {
    /// Categories with their values, the most sensitive first.
    pub fn from_lists<S: AsRef<str>>(lists: &[(S, Vec<S>)]) -> Result<Self, CategoryError> {
        if lists.len() < 2 {
            return Err(CategoryError::TooFew(lists.len()));
        }
        let mut labels = HashSet::new();
        let repeated = |(label, _): &&(S, Vec<S>)| !labels.insert(label.as_ref().to_owned());
        let repeated = lists.iter().filter(repeated).count();
        refuse(repeated, CategoryError::RepeatedLabels)?;
        let empty = lists.iter().filter(|(_, values)| values.is_empty()).count();
        refuse(empty, CategoryError::Empty)?;
        let mut of: BTreeMap<String, u32> = BTreeMap::new();
        let mut torn = HashSet::new();
        for (category, (_, values)) in (0u32..).zip(lists) {
            for value in values.iter().map(AsRef::as_ref) {
                let known = *of.entry(value.to_owned()).or_insert(category);
                if known != category {
                    torn.insert(value);
                }
            }
        }
        refuse(torn.len(), CategoryError::RepeatedValues)?;
        Ok(Self {
            labels: lists.iter().map(|(l, _)| l.as_ref().to_owned()).collect(),
            of,
        })
    }

    /// Categories from a table, which has no order but that of its ranks.
    pub fn from_rows<S: AsRef<str>>(rows: &[CategoryRow<S>]) -> Result<Self, CategoryError> {
        let unranked = rows.iter().filter(|row| row.rank.is_none()).count();
        refuse(unranked, CategoryError::Unranked)?;
        let mut ranks: BTreeMap<&str, HashSet<u64>> = BTreeMap::new();
        let mut ranked: BTreeMap<u64, (&str, Vec<&str>)> = BTreeMap::new();
        for row in rows {
            let (category, value) = (row.category.as_ref(), row.value.as_ref());
            let rank = row.rank.unwrap_or_default();
            ranks.entry(category).or_default().insert(rank);
            ranked
                .entry(rank)
                .or_insert((category, vec![]))
                .1
                .push(value);
        }
        let several = ranks.values().filter(|r| r.len() > 1).count();
        refuse(several, CategoryError::SeveralRanks)?;
        // Every category has one rank, so there are fewer ranks exactly if some are shared.
        refuse(ranks.len() - ranked.len(), CategoryError::SharedRanks)?;
        let lists: Vec<(&str, Vec<&str>)> = ranked.into_values().collect();
        Self::from_lists(&lists)
    }

    /// Number of categories, at least two: m.
    pub fn len(&self) -> u32 {
        self.labels.len() as u32
    }

    /// There are two at least.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The category of a value. Without one, the value must be refused: it is never "not sensitive" (docs/theory/papers.md
    /// P3).
    pub fn of(&self, value: &str) -> Option<u32> {
        self.of.get(value).copied()
    }

    /// The name of a category.
    pub fn label(&self, category: u32) -> &str {
        &self.labels[category as usize]
    }

    /// All values with their categories, in the order of the values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.of
            .iter()
            .map(|(value, category)| (value.as_str(), *category))
    }
}

impl TryFrom<Lists> for Categories {
    type Error = CategoryError;

    fn try_from(lists: Lists) -> Result<Self, CategoryError> {
        Self::from_lists(&lists)
    }
}

impl From<Categories> for Lists {
    fn from(categories: Categories) -> Self {
        let empty = categories.labels.into_iter().map(|label| (label, vec![]));
        let mut lists: Lists = empty.collect();
        for (value, category) in categories.of {
            lists[category as usize].1.push(value);
        }
        lists
    }
}

fn refuse(wrong: usize, error: fn(usize) -> CategoryError) -> Result<(), CategoryError> {
    match wrong {
        0 => Ok(()),
        n => Err(error(n)),
    }
}

impl fmt::Display for CategoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let have = |n: usize, one: &str, many: &str| match n {
            1 => format!("1 {one} has"),
            n => format!("{n} {many} have"),
        };
        let categories = |n: usize| have(n, "category", "categories");
        match *self {
            Self::TooFew(n) => write!(
                f,
                "there must be at least 2 categories, from the most to the least sensitive, not {n}"
            ),
            Self::Empty(n) => write!(f, "{} no values", categories(n)),
            Self::RepeatedLabels(n) => write!(f, "{} been given more than once", categories(n)),
            Self::RepeatedValues(n) => {
                write!(f, "{} more than one category", have(n, "value", "values"))
            }
            Self::Unranked(n) => write!(
                f,
                "{} no rank; say the order, 1 for the most sensitive category",
                have(n, "row", "rows")
            ),
            Self::SeveralRanks(n) => write!(f, "{} more than one rank", categories(n)),
            Self::SharedRanks(n) => write!(f, "{} the rank of another one", categories(n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(rank: impl Into<Option<u64>>, category: &str, value: &str) -> CategoryRow<String> {
        CategoryRow {
            rank: rank.into(),
            category: category.to_owned(),
            value: value.to_owned(),
        }
    }

    #[test]
    fn lists_and_ranked_rows_give_the_same_categories() {
        let lists = Categories::from_lists(&[
            ("top secret", vec!["HIV", "Cancer"]),
            ("secret", vec!["Phthisis"]),
            ("non secret", vec!["Flu"]),
        ]);
        let rows = Categories::from_rows(&[
            row(7, "non secret", "Flu"),
            row(1, "top secret", "Cancer"),
            row(2, "secret", "Phthisis"),
            row(1, "top secret", "HIV"),
        ]);
        assert_eq!(lists, rows);
        let categories = lists.unwrap();
        assert_eq!((categories.len(), categories.label(1)), (3, "secret"));
        let of = |value| categories.of(value);
        assert_eq!((of("HIV"), of("Flu"), of("flu")), (Some(0), Some(2), None));
        assert_eq!(categories.iter().count(), 4);
        let sent = serde_json::to_string(&categories).unwrap();
        assert_eq!(
            serde_json::from_str::<Categories>(&sent).unwrap(),
            categories
        );
        assert!(serde_json::from_str::<Categories>(r#"[["all",["Flu"]]]"#).is_err());
    }

    #[test]
    fn unordered_missing_and_single_categories_are_refused() {
        // docs/theory/papers.md P3.
        use CategoryError::*;
        let lists = |lists: &[(&'static str, Vec<&'static str>)]| Categories::from_lists(lists);
        let rows = |rows: &[CategoryRow<String>]| Categories::from_rows(rows);
        assert_eq!(lists(&[]), Err(TooFew(0)));
        assert_eq!(lists(&[("all", vec!["Flu"])]), Err(TooFew(1)));
        assert_eq!(
            rows(&[row(1, "all", "Flu"), row(1, "all", "HIV")]),
            Err(TooFew(1))
        );
        assert_eq!(lists(&[("a", vec!["x"]), ("b", vec![])]), Err(Empty(1)));
        assert_eq!(
            lists(&[("a", vec!["x"]), ("a", vec!["y"])]),
            Err(RepeatedLabels(1))
        );
        assert_eq!(
            lists(&[("a", vec!["x", "x", "z"]), ("b", vec!["x", "y"])]),
            Err(RepeatedValues(1))
        );
        assert_eq!(
            rows(&[row(None, "a", "x"), row(2, "b", "y"), row(None, "b", "z")]),
            Err(Unranked(2))
        );
        assert_eq!(
            rows(&[row(1, "a", "x"), row(2, "b", "y"), row(3, "b", "z")]),
            Err(SeveralRanks(1))
        );
        assert_eq!(
            rows(&[row(1, "a", "x"), row(1, "b", "y"), row(2, "c", "z")]),
            Err(SharedRanks(1))
        );
        for error in [
            TooFew(1),
            Empty(1),
            RepeatedLabels(2),
            RepeatedValues(1),
            Unranked(3),
            SeveralRanks(1),
            SharedRanks(2),
        ] {
            let text = error.to_string();
            assert!(text.contains(char::is_numeric), "{text}");
        }
    }
}
