//! Which queries of a workload a value may match: for each distinct value of a column, once.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::error::ArrowError;

use super::workload::{has, set};
use super::{Predicate, Workload};
use crate::measure::cells::{Cell, Interner, Point, Reader};

/// Memory for the values of one column; beyond it, they are forgotten and read again.
const MAX_BYTES: usize = 32 << 20;

/// One column of a table, exact or published, against all queries at once.
///
/// Per distinct value: a bit for each query that it may match (queries that do not ask for this column among them), and
/// the shares for those that ask.
#[derive(Debug)]
pub struct Matching {
    workload: Arc<Workload>,
    interner: Interner,
    /// The queries that ask for this column, in order, with their predicates' positions in the query.
    asking: Vec<(u32, u32)>,
    /// The position of a query in `asking`.
    slots: Vec<u32>,
    /// Bits of queries that do not ask.
    open: Box<[u64]>,
    /// Bits per distinct value.
    bits: Vec<u64>,
    /// Shares per distinct value and asking query; none for exact columns, whose shares are the bits.
    shares: Option<Vec<f64>>,
    domain: Cell,
}

impl Matching {
    /// A column of the original table, or one that is published as it is.
    pub fn exact(workload: &Arc<Workload>, column: usize) -> Self {
        let value_type = workload.attributes[column].value_type.clone();
        let reader = Reader::new().with_type(value_type).plain();
        Self::new(workload, column, reader, false)
    }

    /// A generalized column.
    pub fn published(workload: &Arc<Workload>, column: usize) -> Self {
        let attribute = &workload.attributes[column];
        let mut reader = Reader::new().with_type(attribute.value_type.clone());
        if let Some(labels) = &attribute.labels {
            reader = reader.with_labels(Arc::clone(labels));
        }
        Self::new(workload, column, reader, true)
    }

    fn new(workload: &Arc<Workload>, column: usize, reader: Reader, shares: bool) -> Self {
        let mut asking = vec![];
        let mut slots = vec![u32::MAX; workload.queries.len()];
        let mut open = vec![0; workload.words()];
        for (number, query) in workload.queries.iter().enumerate() {
            match query.iter().position(|(c, _)| *c == column) {
                Some(at) => {
                    slots[number] = asking.len() as u32;
                    asking.push((number as u32, at as u32));
                }
                None => set(&mut open, number),
            }
        }
        Self {
            workload: Arc::clone(workload),
            interner: Interner::new(reader),
            asking,
            slots,
            open: open.into(),
            bits: vec![],
            shares: shares.then(Vec::new),
            domain: workload.attributes[column].domain.clone(),
        }
    }

    /// The codes of a batch's rows, valid until the next batch is read.
    pub fn read(&mut self, array: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
        if self.size() > MAX_BYTES {
            self.interner.clear();
            self.bits.clear();
            self.shares.iter_mut().for_each(Vec::clear);
        }
        let codes = self.interner.read(array)?;
        let words = self.workload.words().max(1);
        for code in self.bits.len() / words..self.interner.cells().len() {
            self.add(code);
        }
        Ok(codes)
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let shares = self.shares.as_ref().map_or(0, Vec::capacity);
        8 * (self.bits.capacity() + shares)
    }

    /// The queries that a value may match.
    pub fn bits(&self, code: u32) -> &[u64] {
        let words = self.workload.words();
        &self.bits[code as usize * words..][..words]
    }

    /// How likely a value matches a query that it may match.
    pub fn share(&self, code: u32, query: usize) -> f64 {
        match (&self.shares, self.slots[query]) {
            (Some(shares), slot) if slot != u32::MAX => {
                shares[code as usize * self.asking.len() + slot as usize]
            }
            _ => 1.0,
        }
    }

    fn add(&mut self, code: usize) {
        let cell = self.interner.cells()[code].clone();
        let members = Members::of(&cell, &self.domain);
        let start = self.bits.len();
        self.bits.extend(self.open.iter());
        // Words of a workload without queries.
        self.bits.resize(start + self.open.len().max(1), 0);
        for (number, at) in &self.asking {
            let (_, predicate) = &self.workload.queries[*number as usize][*at as usize];
            let share = members.share(predicate);
            if share > 0.0 {
                set(&mut self.bits[start..], *number as usize);
            }
            if let Some(shares) = &mut self.shares {
                shares.push(share);
            }
        }
    }
}

/// What a cell may stand for, prepared for many predicates.
enum Members {
    /// Values of the domain by position, of so many values in all.
    Positions(Vec<usize>, usize),
    Cell(Cell),
}

impl Members {
    fn of(cell: &Cell, domain: &Cell) -> Self {
        let Cell::Set(values) = domain else {
            return Members::Cell(cell.within(domain));
        };
        let position = |point: &Point| values.binary_search(point).ok();
        match cell {
            Cell::Missing => Members::Positions(vec![], 1),
            Cell::Set(points) => {
                let known = points.iter().filter_map(position).collect();
                Members::Positions(known, points.len())
            }
            // Whatever else it is, it stands for the values of the domain that it covers.
            cell => {
                let covered: Vec<usize> = (0..values.len())
                    .filter(|i| cell.covers(Some(&values[*i])))
                    .collect();
                let count = covered.len().max(1);
                Members::Positions(covered, count)
            }
        }
    }

    fn share(&self, predicate: &Predicate) -> f64 {
        match (self, predicate) {
            (Members::Positions(positions, all), Predicate::Values(bits)) => {
                let taken = positions.iter().filter(|at| has(bits, **at)).count();
                taken as f64 / *all as f64
            }
            // A cell without a known extent outside any domain matches nothing that is asked of the domain.
            (Members::Cell(cell), Predicate::Range(selection)) => {
                cell.share(selection).unwrap_or(0.0)
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringArray;

    use super::super::workload::tests::{draw, example};
    use super::*;

    #[test]
    fn shares_are_those_of_the_cells() -> Result<(), ArrowError> {
        let workload = example(draw(100, 2, true));
        let texts = ["[10, 29]", "*", "7", "{1, 2, 60}"];
        let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let mut matching = Matching::published(&workload, 0);
        let codes = matching.read(&array)?;
        let cells = Reader::new()
            .with_type(workload.attributes[0].value_type.clone())
            .read(&array)?;
        for (row, code) in codes.iter().enumerate() {
            let cell = cells.cell(row).within(&workload.attributes[0].domain);
            for (q, query) in workload.queries.iter().enumerate() {
                let expected = match query.iter().find(|(c, _)| *c == 0) {
                    Some((_, Predicate::Range(s))) => cell.share(s).unwrap_or(-1.0),
                    _ => 1.0,
                };
                assert_eq!(matching.share(*code, q), expected);
                assert_eq!(has(matching.bits(*code), q), expected > 0.0);
            }
        }
        Ok(())
    }

    #[test]
    fn names_match_by_their_place_in_the_domain() -> Result<(), ArrowError> {
        let workload = example(draw(100, 2, true));
        let texts = vec![Some("{a, d}"), Some("b"), Some("x"), None, Some("*")];
        let array: ArrayRef = Arc::new(StringArray::from(texts));
        let mut matching = Matching::published(&workload, 3);
        let codes = matching.read(&array)?;
        for (q, query) in workload.queries.iter().enumerate() {
            let Some((_, Predicate::Values(bits))) = query.last() else {
                continue;
            };
            let bit = |i| f64::from(u8::from(has(bits, i)));
            let shares: Vec<f64> = codes.iter().map(|c| matching.share(*c, q)).collect();
            let all = (bit(0) + bit(1) + bit(2) + bit(3)) / 4.0;
            assert_eq!(shares, [(bit(0) + bit(3)) / 2.0, bit(1), 0.0, 0.0, all]);
        }
        Ok(())
    }
}
