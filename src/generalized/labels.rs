//! Hierarchies: which leaves a label stands for.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::Cell;
use super::point::points;

/// The labels of a hierarchy with the leaves below each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Labels {
    leaves: HashMap<Box<str>, Cell>,
    domain: Option<Cell>,
}

impl Labels {
    /// Reads a hierarchy given as rows `leaf, level1, level2, …`, one per leaf. A row may end early, with NULLs.
    pub fn try_new(columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let Some((leaf, levels)) = columns.split_first() else {
            return Ok(Self::default());
        };
        let leaves = points(leaf)?;
        let mut below: HashMap<Box<str>, Vec<_>> = HashMap::new();
        for column in std::iter::once(leaf).chain(levels) {
            let names = cast(column, &DataType::Utf8)?;
            let names = names.as_string::<i32>();
            for (name, leaf) in names.iter().zip(&leaves) {
                if let (Some(name), Some(leaf)) = (name, leaf) {
                    below.entry(name.into()).or_default().push(leaf.clone());
                }
            }
        }
        let domain = Cell::set(leaves.into_iter().flatten());
        Ok(Self {
            leaves: below
                .into_iter()
                .map(|(name, leaves)| (name, Cell::set(leaves)))
                .collect(),
            domain: Some(domain),
        })
    }

    /// What a label stands for.
    pub fn cell(&self, label: &str) -> Option<&Cell> {
        self.leaves.get(label)
    }

    /// All leaves.
    pub fn domain(&self) -> Option<&Cell> {
        self.domain.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::StringArray;

    use super::super::Point;
    use super::*;

    #[test]
    fn a_label_stands_for_its_leaves() -> Result<(), ArrowError> {
        let column =
            |values: [Option<&str>; 3]| Arc::new(StringArray::from_iter(values)) as ArrayRef;
        let labels = Labels::try_new(&[
            column([Some("Lyon"), Some("Bonn"), Some("Nice")]),
            column([Some("France"), Some("Germany"), Some("France")]),
            column([Some("*"), Some("*"), Some("*")]),
        ])?;
        let france = labels.cell("France").map(Cell::values);
        assert_eq!(france, Some(Some(2)));
        assert_eq!(labels.cell("*"), labels.domain());
        assert_eq!(labels.cell("Bonn"), Some(&Cell::exact(Point::text("Bonn"))));
        assert_eq!(labels.cell("Spain"), None);
        Ok(())
    }
}
