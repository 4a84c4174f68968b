//! Anatomized tables as a reader of the release sees them, group by group.

use std::ops::Range;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::compute::{cast, concat, partition, take};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::arrow::error::ArrowError;

use super::super::codes::{codes, invalid};
use super::super::ratio::Ratio;
use super::natural::Natural;
use super::rows_out_of_order;

/// A published table: one row per group and different tuple, with the number of individuals that show it.
#[derive(Debug, Clone, Copy)]
pub struct AnatomyTable<'a> {
    /// The group's id.
    pub gid: &'a ArrayRef,
    /// The columns that are published together; one for the table of sensitive values.
    pub columns: &'a [ArrayRef],
    /// How many individuals of the group show the tuple.
    pub count: &'a ArrayRef,
}

/// A published table that was read: how many individuals its rows count, group by group.
#[derive(Debug)]
pub struct AnatomyCounts {
    /// Rows that follow each other and have the same id.
    runs: Vec<Run>,
    /// The id of each run.
    ids: ArrayRef,
    /// The counts of all rows, 0 for rows that are at fault.
    counts: Vec<u64>,
    out_of_order: usize,
    repeated: usize,
    no_gid: usize,
    no_count: usize,
}

#[derive(Debug)]
struct Run {
    rows: Range<usize>,
    individuals: u64,
    most: u64,
}

impl AnatomyTable<'_> {
    /// Reads the table on its own. Several can be read side by side.
    pub fn read(&self) -> Result<AnatomyCounts, ArrowError> {
        let rows = self.gid.len();
        if self.count.len() != rows || self.columns.iter().any(|c| c.len() != rows) {
            return invalid("verify: columns of an anatomized table differ in length".to_owned());
        }
        // Rows that come one after the other in their order are all different.
        let out_of_order = rows_out_of_order(self)?;
        let mut repeated = 0;
        if out_of_order > 0 {
            let mut columns = vec![self.gid.clone()];
            columns.extend(self.columns.iter().cloned());
            let (_, different) = codes(&columns)?;
            repeated = rows - different;
        }
        let mut counts = numbers(self.count)?;
        let (mut no_gid, mut no_count) = (0, 0);
        let mut runs = vec![];
        for rows in partition(std::slice::from_ref(self.gid))?.ranges() {
            let counts = &mut counts[rows.clone()];
            if self.gid.is_null(rows.start) {
                no_gid += rows.len();
                counts.fill(0);
                continue;
            }
            no_count += counts.iter().filter(|count| **count == 0).count();
            runs.push(Run {
                rows,
                individuals: counts.iter().fold(0, |sum, n| n.saturating_add(sum)),
                most: counts.iter().copied().max().unwrap_or(0),
            });
        }
        let firsts = UInt64Array::from_iter_values(runs.iter().map(|run| run.rows.start as u64));
        Ok(AnatomyCounts {
            ids: take(self.gid, &firsts, None)?,
            runs,
            counts,
            out_of_order,
            repeated,
            no_gid,
            no_count,
        })
    }
}

/// Anatomized tables, grouped.
#[derive(Debug)]
pub struct ShownTables {
    pub(super) groups: Vec<Group>,
    /// How many individuals of the whole table have each sensitive value, by code.
    prior: Vec<u64>,
    /// How many individuals the whole table has.
    pub(super) whole: u64,
    /// How many individuals the most frequent of the values has that are neither here nor in the prior.
    most_of_others: u64,
    /// Codes of sensitive values, the most frequent of the whole table first.
    by_frequency: Vec<u32>,
    /// Rows that do not come after the one before them in their table.
    out_of_order: usize,
    pub(super) faults: Faults,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    /// The number of individuals by each sub-table, then by the table of sensitive values.
    pub individuals: Vec<u64>,
    /// The count of the most frequent tuple of each sub-table, then of the most frequent sensitive value.
    pub most: Vec<u64>,
    /// Sensitive values by code, with their counts.
    values: Vec<(u32, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    pub no_gid: usize,
    pub no_count: usize,
    pub repeated: usize,
    pub beyond_prior: usize,
    pub unknown_table: usize,
    pub stray: usize,
}

impl ShownTables {
    /// Reads tables as they are published; the sensitive values of all groups together are the whole table's.
    pub fn try_new(
        sub_tables: &[AnatomyTable<'_>],
        sensitive: AnatomyTable<'_>,
    ) -> Result<Self, ArrowError> {
        Self::read(sub_tables, sensitive, None)
    }

    /// Reads the tables of some groups only. `values` and `counts` are the sensitive values of the whole table with
    /// their numbers of individuals, each value once.
    pub fn with_prior(
        sub_tables: &[AnatomyTable<'_>],
        sensitive: AnatomyTable<'_>,
        values: &ArrayRef,
        counts: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        Self::read(sub_tables, sensitive, Some((values, counts)))
    }

    /// The same of tables that were read: the sub-tables and at last that of the sensitive values `shown`.
    pub fn of_counts(
        tables: &[AnatomyCounts],
        shown: &[ArrayRef],
        values: &ArrayRef,
        counts: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        Self::grouped(tables, shown, Some((values, counts)))
    }

    /// How many rows of all tables do not come after the one before them by group id and columns. Where the tables are
    /// sorted by what they publish, 0, the order of rows says nothing that the rows do not.
    pub fn rows_out_of_order(&self) -> usize {
        self.out_of_order
    }

    /// Says that the whole table has further individuals, with values that no group has: `individuals` of them, and
    /// `most` with the most frequent of these values.
    pub fn and_others(mut self, individuals: u64, most: u64) -> Self {
        self.whole = self.whole.saturating_add(individuals);
        self.most_of_others = most;
        self
    }

    pub(super) fn read(
        sub_tables: &[AnatomyTable<'_>],
        sensitive: AnatomyTable<'_>,
        whole: Option<(&ArrayRef, &ArrayRef)>,
    ) -> Result<Self, ArrowError> {
        let tables = sub_tables.iter().chain([&sensitive]);
        let tables = tables
            .map(AnatomyTable::read)
            .collect::<Result<Vec<_>, _>>()?;
        Self::grouped(&tables, sensitive.columns, whole)
    }

    fn grouped(
        tables: &[AnatomyCounts],
        shown: &[ArrayRef],
        whole: Option<(&ArrayRef, &ArrayRef)>,
    ) -> Result<Self, ArrowError> {
        let ([values], Some(sensitive)) = (shown, tables.last()) else {
            return invalid("verify: a table of sensitive values has one column".to_owned());
        };
        if values.len() != sensitive.counts.len() {
            return invalid("verify: columns of an anatomized table differ in length".to_owned());
        }
        let ids: Vec<&dyn Array> = tables.iter().map(|table| table.ids.as_ref()).collect();
        let (ids, groups) = codes(&[concat(&ids)?])?;
        let mut anatomy = Self {
            groups: vec![Group::default(); groups],
            prior: vec![],
            whole: 0,
            most_of_others: 0,
            by_frequency: vec![],
            out_of_order: 0,
            faults: Faults::default(),
        };
        let mut rest = ids.as_slice();
        for (number, table) in tables.iter().enumerate() {
            let (ids, others) = rest.split_at(table.runs.len());
            anatomy.count(number, table, ids);
            rest = others;
        }
        // The last table is that of sensitive values.
        let ids = &ids[ids.len() - sensitive.runs.len()..];
        anatomy.read_values(values, sensitive, ids, whole)?;
        Ok(anatomy)
    }

    /// Counts the groups of one table, given the group of each run.
    fn count(&mut self, number: usize, table: &AnatomyCounts, ids: &[u32]) {
        self.out_of_order += table.out_of_order;
        self.faults.repeated += table.repeated;
        self.faults.no_gid += table.no_gid;
        self.faults.no_count += table.no_count;
        for (run, id) in table.runs.iter().zip(ids) {
            let group = &mut self.groups[*id as usize];
            group.individuals.resize(number + 1, 0);
            group.most.resize(number + 1, 0);
            group.individuals[number] = group.individuals[number].saturating_add(run.individuals);
            group.most[number] = group.most[number].max(run.most);
        }
    }

    fn read_values(
        &mut self,
        values: &ArrayRef,
        table: &AnatomyCounts,
        ids: &[u32],
        whole: Option<(&ArrayRef, &ArrayRef)>,
    ) -> Result<(), ArrowError> {
        let known = whole.map(|(known, _)| known.as_ref());
        let all: Vec<&dyn Array> = [values.as_ref()].into_iter().chain(known).collect();
        let (numbered, different) = codes(&[concat(&all)?])?;
        let mut shown = vec![0u64; different];
        for (run, id) in table.runs.iter().zip(ids) {
            let group = &mut self.groups[*id as usize];
            for row in run.rows.clone() {
                let (value, count) = (numbered[row], table.counts[row]);
                shown[value as usize] = shown[value as usize].saturating_add(count);
                if count > 0 {
                    group.values.push((value, count));
                }
            }
        }
        self.prior = match whole {
            None => shown,
            Some((known, given)) => {
                if known.len() != given.len() {
                    return invalid("verify: values and counts differ in length".to_owned());
                }
                let mut prior = vec![0u64; different];
                for (row, count) in numbers(given)?.into_iter().enumerate() {
                    let value = numbered[values.len() + row] as usize;
                    prior[value] = prior[value].saturating_add(count);
                }
                let beyond = shown.iter().zip(&prior).filter(|(here, all)| here > all);
                self.faults.beyond_prior = beyond.count();
                prior
            }
        };
        self.whole = self
            .prior
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count));
        self.by_frequency = (0..different as u32).collect();
        let frequency = |value: &u32| self.prior[*value as usize];
        self.by_frequency
            .sort_by_key(|value| std::cmp::Reverse(frequency(value)));
        Ok(())
    }
}

/// Whole numbers; 0 where there is none, or a negative one.
fn numbers(array: &ArrayRef) -> Result<Vec<u64>, ArrowError> {
    let numbers = cast(array, &DataType::UInt64)?;
    let numbers = numbers.as_primitive::<UInt64Type>();
    Ok(numbers.iter().map(|number| number.unwrap_or(0)).collect())
}

/// The product, if it is small enough.
fn small_product(mut factors: impl Iterator<Item = u64>) -> Option<u128> {
    factors.try_fold(1u128, |product, factor| {
        product.checked_mul(u128::from(factor))
    })
}

/// The product, however large.
fn product(factors: impl Iterator<Item = u64>) -> Natural {
    factors.fold(Natural::from(1u64), |product, factor| {
        product.times(&Natural::from(factor))
    })
}

impl Group {
    pub fn size(&self) -> u64 {
        self.individuals.first().copied().unwrap_or(0)
    }

    pub fn tuples(&self) -> &[u64] {
        self.most.split_last().map_or(&[], |(_, tuples)| tuples)
    }

    pub fn most_frequent_value(&self) -> u64 {
        self.most.last().copied().unwrap_or(0)
    }

    /// Π c · denominator ≤ n^(k + 1) · numerator.
    pub fn within_gamma(&self, gamma: Ratio) -> bool {
        let sizes = self.most.iter().map(|_| self.size());
        let left = || self.most.iter().copied().chain([gamma.denominator()]);
        let right = || sizes.clone().chain([gamma.numerator()]);
        match (small_product(left()), small_product(right())) {
            (Some(left), Some(right)) => left <= right,
            _ => product(left()) <= product(right()),
        }
    }
}

impl ShownTables {
    /// How far each sensitive value's share of the group is from its share of the whole table: |c · L − H · n|. Of the
    /// values that the group lacks only the most frequent one matters.
    pub(super) fn distances(&self, group: &Group) -> impl Iterator<Item = u128> {
        let (whole, size) = (u128::from(self.whole), u128::from(group.size()));
        let mut present: Vec<u32> = group.values.iter().map(|(value, _)| *value).collect();
        present.sort_unstable();
        let lacks = |value: &&u32| present.binary_search(value).is_err();
        let known = self.by_frequency.iter().find(lacks);
        let known = known.map_or(0, |value| self.prior[*value as usize]);
        let absent = (known.max(self.most_of_others), 0);
        let present = group.values.iter();
        let present = present.map(|(value, count)| (self.prior[*value as usize], *count));
        // Products of two numbers of 64 bits.
        present.chain([absent]).map(move |(before, count)| {
            (u128::from(before) * size).abs_diff(u128::from(count) * whole)
        })
    }

    /// |c · L − H · n| · denominator ≤ n · L · numerator, for every value.
    pub(super) fn within_delta(&self, group: &Group, delta: Ratio) -> bool {
        let allowed = || [group.size(), self.whole, delta.numerator()].into_iter();
        let denominator = delta.denominator();
        let Some(largest) = self.distances(group).max() else {
            return true;
        };
        let scaled = largest.checked_mul(u128::from(denominator));
        match (scaled, small_product(allowed())) {
            (Some(scaled), Some(allowed)) => scaled <= allowed,
            _ => Natural::from(largest).times(&Natural::from(denominator)) <= product(allowed()),
        }
    }
}
