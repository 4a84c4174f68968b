//! Distinct cells of a column, and which of them each row shows.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::{partition, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, SortField};
use hashbrown::HashMap;

use super::{Cell, Reader};

/// A column that was read: its distinct cells, and which of them each row shows.
#[derive(Debug, Clone, PartialEq)]
pub struct CellColumn {
    /// The distinct cells, in the order of their first row.
    pub cells: Vec<Cell>,
    /// The cell of each row.
    pub codes: Vec<u32>,
}

impl CellColumn {
    /// The cell of a row.
    pub fn cell(&self, row: usize) -> &Cell {
        &self.cells[self.codes[row] as usize]
    }
}

/// Reads a column batch by batch and remembers the cells it has seen.
#[derive(Debug)]
pub struct Interner {
    reader: Reader,
    codes: HashMap<Box<[u8]>, u32>,
    null: Option<u32>,
    cells: Vec<Cell>,
    converter: Option<(DataType, RowConverter)>,
}

impl Interner {
    /// Nothing seen yet.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader,
            codes: HashMap::new(),
            null: None,
            cells: vec![],
            converter: None,
        }
    }

    /// The distinct cells so far; codes are positions in here.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub(super) fn into_cells(self) -> Vec<Cell> {
        self.cells
    }

    /// Forgets all cells.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.null = None;
        self.cells.clear();
    }

    /// The codes of a batch's rows.
    pub fn read(&mut self, array: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        let mut fresh: Vec<u32> = vec![];
        let codes = match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                self.intern(array.len(), &mut fresh, |i| {
                    texts.is_valid(i).then(|| texts.value(i).as_bytes())
                })
            }
            DataType::Utf8View => {
                let texts = array.as_string_view();
                self.intern(array.len(), &mut fresh, |i| {
                    texts.is_valid(i).then(|| texts.value(i).as_bytes())
                })
            }
            other => {
                let (_, converter) = match &mut self.converter {
                    Some(known) if known.0 == *other => known,
                    slot => slot.insert((
                        other.clone(),
                        RowConverter::new(vec![SortField::new(other.clone())])?,
                    )),
                };
                // Records of a class often follow each other: only the first of equal ones is converted.
                let runs = partition(std::slice::from_ref(array))?.ranges();
                let firsts = UInt32Array::from_iter_values(runs.iter().map(|r| r.start as u32));
                let rows = converter.convert_columns(&[take(array, &firsts, None)?])?;
                let mut of_runs = vec![];
                let run_codes = self.intern(runs.len(), &mut of_runs, |i| Some(rows.row(i).data()));
                fresh.extend(of_runs.iter().map(|run| firsts.value(*run as usize)));
                let codes = runs.iter().zip(run_codes);
                codes
                    .flat_map(|(run, code)| std::iter::repeat_n(code, run.len()))
                    .collect()
            }
        };
        let seen = take(array, &UInt32Array::from(fresh), None)?;
        let cells = self.reader.cells(&seen)?;
        self.cells.extend(cells);
        Ok(codes)
    }

    fn intern<'a>(
        &mut self,
        rows: usize,
        fresh: &mut Vec<u32>,
        bytes: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> Vec<u32> {
        let known = self.cells.len();
        let mut codes = Vec::with_capacity(rows);
        let mut last: Option<(Option<&[u8]>, u32)> = None;
        for i in 0..rows {
            let key = bytes(i);
            // Records of a class often follow each other.
            if let Some((previous, code)) = last
                && previous == key
            {
                codes.push(code);
                continue;
            }
            let next = (known + fresh.len()) as u32;
            let code = match key {
                None => *self.null.get_or_insert(next),
                Some(key) => match self.codes.get(key) {
                    Some(code) => *code,
                    None => {
                        self.codes.insert(key.into(), next);
                        next
                    }
                },
            };
            if code == next {
                fresh.push(i as u32);
            }
            last = Some((key, code));
            codes.push(code);
        }
        codes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::StringArray;

    use super::*;

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn batches_share_cells() -> Result<(), ArrowError> {
        let mut interner = Interner::new(Reader::new());
        assert_eq!(
            interner.read(&texts(&[Some("a"), None, Some("a")]))?,
            [0, 1, 0]
        );
        assert_eq!(
            interner.read(&texts(&[Some("b"), Some("a"), None]))?,
            [2, 0, 1]
        );
        assert_eq!(interner.cells().len(), 3);
        interner.clear();
        assert_eq!(interner.read(&texts(&[Some("b")]))?, [0]);
        Ok(())
    }
}
