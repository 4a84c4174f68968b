//! How far up its hierarchy a label stands, for the distortion ratio.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

/// The heights of the labels of a hierarchy (Sun 2011, Section 5).
///
/// A leaf has height 0, and the root of each leaf's own chain its depth. Where chains differ in length, a label stands for
/// the mean over its leaves.
#[derive(Debug, Clone, Default)]
pub struct Heights {
    labels: HashMap<Box<str>, Sum>,
    whole: Sum,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    height: u64,
    depth: u64,
    leaves: u64,
}

impl Heights {
    /// Reads a hierarchy given as rows `leaf, level1, level2, …`, one per leaf. A row may end early, with NULLs.
    pub fn try_new(columns: &[ArrayRef]) -> Result<Self, ArrowError> {
        let columns = columns
            .iter()
            .map(|column| cast(column, &DataType::Utf8))
            .collect::<Result<Vec<_>, _>>()?;
        let mut heights = Self::default();
        let rows = columns.first().map_or(0, |c| c.len());
        for row in 0..rows {
            let mut chain: Vec<&str> = vec![];
            for column in &columns {
                let column = column.as_string::<i32>();
                // A label that repeats the one below it is the same node.
                if column.is_valid(row) && chain.last() != Some(&column.value(row)) {
                    chain.push(column.value(row));
                }
            }
            let Some(depth) = chain.len().checked_sub(1) else {
                continue;
            };
            for (height, label) in chain.into_iter().enumerate() {
                let sum = heights.labels.entry(label.into()).or_default();
                sum.add(height as u64, depth as u64);
            }
            heights.whole.add(depth as u64, depth as u64);
        }
        Ok(heights)
    }

    /// The height of a label, and the largest that it could have; a label that the hierarchy does not know stands at its
    /// top, as one that says nothing does.
    pub fn of(&self, label: Option<&str>) -> (f64, f64) {
        let sum = label.and_then(|label| self.labels.get(label));
        sum.unwrap_or(&self.whole).means()
    }
}

impl Sum {
    fn add(&mut self, height: u64, depth: u64) {
        self.height += height;
        self.depth += depth;
        self.leaves += 1;
    }

    fn means(&self) -> (f64, f64) {
        let leaves = self.leaves.max(1) as f64;
        (self.height as f64 / leaves, self.depth as f64 / leaves)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::StringArray;

    use super::*;

    #[test]
    fn heights_of_chains_of_different_lengths() {
        let column =
            |values: [Option<&str>; 3]| -> ArrayRef { Arc::new(StringArray::from_iter(values)) };
        let heights = Heights::try_new(&[
            column([Some("14246"), Some("14249"), Some("abroad")]),
            column([Some("1424*"), Some("1424*"), Some("*")]),
            column([Some("*"), Some("*"), None]),
        ])
        .unwrap();
        assert_eq!(heights.of(Some("14246")), (0.0, 2.0));
        assert_eq!(heights.of(Some("1424*")), (1.0, 2.0));
        assert_eq!(heights.of(Some("abroad")), (0.0, 1.0));
        assert_eq!(heights.of(Some("*")), (5.0 / 3.0, 5.0 / 3.0));
        assert_eq!(heights.of(Some("unknown")), heights.of(None));
    }
}
