//! Hierarchies: which leaves a label stands for.

use std::collections::HashMap;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::point::points;
use super::{Cell, Point};

/// The labels of a hierarchy with the leaves below each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabelCells {
    leaves: HashMap<Box<str>, Cell>,
    domain: Option<Cell>,
}

impl LabelCells {
    /// Reads a hierarchy given as rows `leaf, level1, level2, …`, one per leaf. A row may end early, with NULLs. Leaves
    /// are values of the given type; others stand for nothing.
    pub fn try_new(columns: &[ArrayRef], value_type: &DataType) -> Result<Self, ArrowError> {
        let Some((leaf, levels)) = columns.split_first() else {
            return Ok(Self::default());
        };
        let leaves = points(&cast(leaf, value_type)?)?;
        let mut chains = vec![vec![]; leaves.len()];
        for column in std::iter::once(leaf).chain(levels) {
            let names = cast(column, &DataType::Utf8)?;
            for (chain, name) in chains.iter_mut().zip(names.as_string::<i32>()) {
                chain.extend(name.map(str::to_owned));
            }
        }
        Ok(Self::of(leaves, &chains))
    }

    /// The labels of chains from a leaf to the root. A leaf without a value stands for nothing.
    pub(super) fn of<S: AsRef<str>>(leaves: Vec<Option<Point>>, chains: &[Vec<S>]) -> Self {
        let mut below: HashMap<Box<str>, Vec<_>> = HashMap::new();
        for (leaf, chain) in leaves.iter().zip(chains) {
            let Some(leaf) = leaf else { continue };
            for name in chain {
                let below = below.entry(name.as_ref().into()).or_default();
                below.push(leaf.clone());
            }
        }
        let below = below
            .into_iter()
            .map(|(name, leaves)| (name, Cell::set(leaves)));
        Self {
            leaves: below.collect(),
            domain: Some(Cell::set(leaves.into_iter().flatten())),
        }
    }

    /// These labels, each with what it stands for, over a domain.
    pub fn from_cells(cells: impl IntoIterator<Item = (Box<str>, Cell)>, domain: Cell) -> Self {
        Self {
            leaves: cells.into_iter().collect(),
            domain: Some(domain),
        }
    }

    /// All labels with what they stand for, in their order.
    pub fn cells(&self) -> Vec<(&str, &Cell)> {
        let mut cells: Vec<_> = self.leaves.iter().map(|(l, c)| (l.as_ref(), c)).collect();
        cells.sort_unstable_by_key(|(label, _)| *label);
        cells
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

    use super::*;

    #[test]
    fn a_label_stands_for_its_leaves() -> Result<(), ArrowError> {
        let column =
            |values: [Option<&str>; 3]| Arc::new(StringArray::from_iter(values)) as ArrayRef;
        let labels = LabelCells::try_new(
            &[
                column([Some("Lyon"), Some("Bonn"), Some("Nice")]),
                column([Some("France"), Some("Germany"), Some("France")]),
                column([Some("*"), Some("*"), Some("*")]),
            ],
            &DataType::Utf8,
        )?;
        let france = labels.cell("France").map(Cell::values);
        assert_eq!(france, Some(Some(2)));
        assert_eq!(labels.cell("*"), labels.domain());
        assert_eq!(labels.cell("Bonn"), Some(&Cell::exact(Point::text("Bonn"))));
        assert_eq!(labels.cell("Spain"), None);
        Ok(())
    }
}
