//! Sums of a column over the records that match each query of a workload.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::error::ArrowError;

use super::groups::visit;
use super::{Fixed, Matching, Workload};

/// Evaluates a workload of sums over batches of exact values: the workload's columns in order, then the summed numbers.
#[derive(Debug)]
pub struct Totals {
    workload: Arc<Workload>,
    columns: Vec<Matching>,
    sums: Vec<Fixed>,
    rows: u64,
}

impl Totals {
    /// Nothing added yet.
    pub fn new(workload: &Arc<Workload>) -> Self {
        let columns = 0..workload.attributes.len();
        Self {
            columns: columns.map(|c| Matching::exact(workload, c)).collect(),
            sums: vec![Fixed::default(); workload.queries.len()],
            rows: 0,
            workload: Arc::clone(workload),
        }
    }

    /// Adds the rows of a batch; a missing number adds nothing.
    pub fn add(&mut self, arrays: &[ArrayRef]) -> Result<(), ArrowError> {
        let Some((numbers, columns)) = arrays.split_last() else {
            return Ok(());
        };
        let numbers = cast(numbers, &DataType::Float64)?;
        let mut codes = vec![];
        for (matching, column) in self.columns.iter_mut().zip(columns) {
            codes.push(matching.read(column)?);
        }
        let mut matched = vec![0u64; self.workload.words()];
        for (row, number) in numbers.as_primitive::<Float64Type>().iter().enumerate() {
            let Some(number) = number else {
                continue;
            };
            matched.fill(u64::MAX);
            for (matching, codes) in self.columns.iter().zip(&codes) {
                let bits = matching.bits(codes[row]);
                matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
            }
            visit(&matched, |query| {
                if let Some(sum) = self.sums.get_mut(query) {
                    sum.add(number);
                }
            });
        }
        self.rows += numbers.len() as u64;
        Ok(())
    }

    /// The answers so far.
    pub fn sums(&self) -> &[Fixed] {
        &self.sums
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(Matching::size).sum();
        columns + self.sums.len() * size_of::<Fixed>()
    }
}
