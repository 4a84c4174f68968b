//! Answers to all queries of a workload over an anatomized table (Yao 2021, Eq. 11).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::error::ArrowError;

use super::{Fixed, Matching, Workload};

/// Evaluates a workload over groups, each a list of structs: sub-table, number of members, and the workload's columns,
/// which are NULL where a sub-table does not have them.
///
/// In a group of m members of which n₁, n₂, … satisfy a query's conditions on each sub-table, n₁/m · n₂/m · … · m are
/// expected to satisfy all.
#[derive(Debug)]
pub struct GroupAnswers {
    workload: Arc<Workload>,
    columns: Vec<Matching>,
    sums: Vec<Fixed>,
    members: u64,
}

/// A sub-table of one group.
#[derive(Debug, Default)]
struct SubTable {
    members: f64,
    /// Members that match each query.
    matching: Vec<f64>,
    /// The columns that it has.
    has: Vec<bool>,
    rows: Vec<usize>,
}

impl GroupAnswers {
    /// Nothing counted yet.
    pub fn new(workload: &Arc<Workload>) -> Self {
        let columns = 0..workload.attributes.len();
        Self {
            columns: columns.map(|c| Matching::exact(workload, c)).collect(),
            sums: vec![Fixed::default(); workload.queries.len()],
            members: 0,
            workload: Arc::clone(workload),
        }
    }

    /// Adds the groups of a batch.
    pub fn add(&mut self, groups: &ArrayRef) -> Result<(), ArrowError> {
        let wrong = || ArrowError::SchemaError("groups are lists of structs".to_owned());
        let groups = groups.as_list_opt::<i32>().ok_or_else(wrong)?;
        let rows = groups.values().as_struct_opt().ok_or_else(wrong)?;
        let [tables, counts, columns @ ..] = rows.columns() else {
            return Err(wrong());
        };
        let tables = cast(tables, &DataType::Utf8)?;
        let tables = tables.as_string::<i32>();
        let counts = cast(counts, &DataType::Float64)?;
        let counts = counts.as_primitive::<Float64Type>();
        let mut codes = vec![];
        for (matching, column) in self.columns.iter_mut().zip(columns) {
            codes.push(matching.read(column)?);
        }
        for group in groups.value_offsets().windows(2) {
            let (from, to) = (group[0] as usize, group[1] as usize);
            let mut parts: HashMap<&str, SubTable> = HashMap::new();
            for row in (from..to).filter(|row| tables.is_valid(*row)) {
                let part = parts.entry(tables.value(row)).or_default();
                part.has.resize(columns.len(), false);
                for (has, column) in part.has.iter_mut().zip(columns) {
                    *has |= column.is_valid(row);
                }
                part.members += counts.value(row);
                part.rows.push(row);
            }
            let mut parts: Vec<(&str, SubTable)> = parts.into_iter().collect();
            parts.sort_unstable_by_key(|(name, _)| *name);
            for (_, part) in &mut parts {
                part.matching.resize(self.sums.len(), 0.0);
                for row in std::mem::take(&mut part.rows) {
                    let of = codes.iter().map(|codes| codes[row]);
                    let own = self.columns.iter().zip(of).zip(&part.has);
                    let own = own.filter(|(_, has)| **has).map(|(column, _)| column);
                    let matched = self.all(own);
                    visit(&matched, |query| {
                        if let Some(matching) = part.matching.get_mut(query) {
                            *matching += counts.value(row);
                        }
                    });
                }
            }
            self.finish(&parts);
        }
        Ok(())
    }

    /// Bits of the queries that some values may match.
    fn all<'a>(&self, values: impl Iterator<Item = (&'a Matching, u32)>) -> Vec<u64> {
        let mut matched = vec![u64::MAX; self.workload.words()];
        for (column, code) in values {
            let bits = column.bits(code);
            matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
        }
        matched
    }

    fn finish(&mut self, parts: &[(&str, SubTable)]) {
        let members = parts.iter().map(|(_, part)| part.members);
        let members = members.fold(0.0, f64::max);
        if members <= 0.0 {
            return;
        }
        self.members += members as u64;
        // A column without any value in the group satisfies nothing.
        let empty: Vec<usize> = (0..self.columns.len())
            .filter(|c| !parts.iter().any(|(_, part)| part.has[*c]))
            .collect();
        let shares = members.powi(parts.len() as i32 - 1);
        for (query, sum) in self.sums.iter_mut().enumerate() {
            let asked = &self.workload.queries[query];
            if asked.iter().any(|(column, _)| empty.contains(column)) {
                continue;
            }
            let product: f64 = parts.iter().map(|(_, part)| part.matching[query]).product();
            if product > 0.0 {
                sum.add(product / shares);
            }
        }
    }

    /// The answers so far.
    pub fn sums(&self) -> &[Fixed] {
        &self.sums
    }

    /// Members so far.
    pub fn rows(&self) -> u64 {
        self.members
    }

    /// Bytes in use.
    pub fn size(&self) -> usize {
        let columns: usize = self.columns.iter().map(Matching::size).sum();
        columns + self.sums.len() * size_of::<Fixed>()
    }
}

/// Every query whose bit is set.
pub fn visit(bits: &[u64], mut query: impl FnMut(usize)) {
    for (word, bits) in bits.iter().enumerate() {
        let mut bits = *bits;
        while bits != 0 {
            query(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}
