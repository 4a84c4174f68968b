//! How a column is generalized level by level: a given taxonomy, or one of the built-in ways.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::table::Taxonomy;

/// The levels of a column's hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Levels {
    /// Given label by label.
    Tree(#[serde(with = "rows")] Arc<Taxonomy>),
    /// Numbers in bins of these widths, each a multiple of the one before.
    Bins(Vec<String>),
    /// Codes of which so many characters at the end are replaced by `*`.
    Mask(Vec<u32>),
    /// Dates and timestamps by these parts of the calendar, each coarser than the one before.
    Dates(Vec<DateLevel>),
}

/// A part of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DateLevel {
    /// `2026-11-16`
    Day,
    /// `2026-11`
    Month,
    /// `2026-Q4`
    Quarter,
    /// `2026`
    Year,
    /// `2020s`
    Decade,
}

/// All parts of the calendar, with their names in SQL.
const DATE_LEVELS: [(&str, DateLevel); 5] = [
    ("day", DateLevel::Day),
    ("month", DateLevel::Month),
    ("quarter", DateLevel::Quarter),
    ("year", DateLevel::Year),
    ("decade", DateLevel::Decade),
];

/// What can be written for a built-in hierarchy.
pub const BUILT_IN: &str = "'bins(5, 20)', 'mask', 'mask(1, 3)', 'dates' or 'dates(month, year)'";

impl Levels {
    /// Reads a built-in hierarchy as it is written in SQL; `None` if the text names something else.
    pub fn built_in(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        let (name, items) = match text.split_once('(') {
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(items) => (name.trim(), Some(items)),
                None => return Ok(None),
            },
            None => (text, None),
        };
        let items: Vec<&str> = match items {
            Some(items) => items.split(',').map(str::trim).collect(),
            None => vec![],
        };
        match name.to_ascii_lowercase().as_str() {
            "bins" => Self::bins(&items).map(Some),
            "mask" => Self::mask(&items).map(Some),
            "dates" => Self::dates(&items).map(Some),
            _ => Ok(None),
        }
    }

    fn bins(widths: &[&str]) -> Result<Self, String> {
        if widths.is_empty() {
            return Err("bins need their widths, such as bins(5, 20)".to_owned());
        }
        Ok(Self::Bins(widths.iter().map(|w| (*w).to_owned()).collect()))
    }

    fn mask(characters: &[&str]) -> Result<Self, String> {
        if characters.is_empty() {
            return Ok(Self::Mask(vec![1, 2, 3, 4]));
        }
        let numbers: Option<Vec<u32>> = characters.iter().map(|c| c.parse().ok()).collect();
        numbers
            .filter(|n| n[0] > 0 && n.is_sorted_by(|a, b| a < b))
            .map(Self::Mask)
            .ok_or_else(|| "mask takes rising numbers of characters, such as mask(1, 3)".to_owned())
    }

    fn dates(names: &[&str]) -> Result<Self, String> {
        use DateLevel::*;
        if names.is_empty() {
            return Ok(Self::Dates(vec![Day, Month, Quarter, Year]));
        }
        let level = |name: &&str| {
            let mut all = DATE_LEVELS.iter();
            all.find(|(n, _)| n.eq_ignore_ascii_case(name))
                .map(|(_, level)| *level)
        };
        let levels: Option<Vec<DateLevel>> = names.iter().map(level).collect();
        levels
            .filter(|l| l.is_sorted_by(|a, b| a < b))
            .map(Self::Dates)
            .ok_or_else(|| {
                "dates takes some of day, month, quarter, year and decade, in this order".to_owned()
            })
    }

    /// The given taxonomy, if it is one.
    pub fn tree(&self) -> Option<&Arc<Taxonomy>> {
        match self {
            Self::Tree(taxonomy) => Some(taxonomy),
            _ => None,
        }
    }
}

/// As written in SQL; of a given taxonomy only that there is one.
impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tree(_) => f.write_str("given"),
            Self::Bins(widths) => write!(f, "bins({})", widths.join(", ")),
            Self::Mask(characters) => {
                let characters: Vec<_> = characters.iter().map(u32::to_string).collect();
                write!(f, "mask({})", characters.join(", "))
            }
            Self::Dates(levels) => {
                let name = |level: &DateLevel| DATE_LEVELS[*level as usize].0;
                let names: Vec<_> = levels.iter().map(name).collect();
                write!(f, "dates({})", names.join(", "))
            }
        }
    }
}

/// A taxonomy is sent as rows of labels, and checked again when it arrives.
mod rows {
    use super::*;

    pub fn serialize<S: Serializer>(
        taxonomy: &Arc<Taxonomy>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let leaves = 0..taxonomy.tree().leaves();
        serializer.collect_seq(leaves.map(|leaf| taxonomy.chain(leaf).collect::<Vec<_>>()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<Taxonomy>, D::Error> {
        let rows: Vec<Vec<String>> = Deserialize::deserialize(deserializer)?;
        let taxonomy = Taxonomy::from_rows(&rows).map_err(serde::de::Error::custom)?;
        Ok(Arc::new(taxonomy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_hierarchies_are_read_and_printed() {
        for text in [
            "bins(5, 20)",
            "mask(1, 3)",
            "dates(month, year)",
            "dates(day, month, quarter, year, decade)",
        ] {
            let levels = Levels::built_in(text).unwrap().unwrap();
            assert_eq!(levels.to_string(), text);
        }
        let mask = Levels::built_in(" Mask ").unwrap().unwrap();
        assert_eq!(mask, Levels::Mask(vec![1, 2, 3, 4]));
        for other in ["zip.csv", "zip_codes", "s3://bucket/bins(5", "bin(5)"] {
            assert_eq!(Levels::built_in(other), Ok(None));
        }
        for wrong in [
            "bins",
            "mask(0)",
            "mask(3, 1)",
            "mask(x)",
            "dates(year, month)",
            "dates(week)",
        ] {
            assert!(Levels::built_in(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_taxonomy_survives_being_sent() {
        let rows = [vec!["b", "x", "*"], vec!["a", "x", "*"], vec!["c", "*"]];
        let taxonomy = Taxonomy::from_rows(&rows).unwrap();
        let levels = Levels::Tree(Arc::new(taxonomy));
        let sent = serde_json::to_string(&levels).unwrap();
        assert_eq!(serde_json::from_str::<Levels>(&sent).unwrap(), levels);
        assert_eq!(levels.to_string(), "given");
    }
}
