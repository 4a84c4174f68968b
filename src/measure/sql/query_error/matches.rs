//! `__workload_matches(workload, roles, …)`: the queries that any record of an individual matches, as bits.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

use super::answers::{called_with, unreadable};
use crate::measure::query_error::{Matching, Role};

/// The function, for plans.
pub(crate) fn workload_matches() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        Arc::new(AggregateUDF::new_from_impl(WorkloadMatches {
            signature: Signature::variadic_any(Volatility::Immutable),
        }))
    });
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WorkloadMatches {
    signature: Signature,
}

impl AggregateUDFImpl for WorkloadMatches {
    fn name(&self) -> &str {
        "__workload_matches"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[bits]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::Binary, true))])
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Bits::default()))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Bits::default()))
    }
}

/// Bits of each group.
#[derive(Debug, Default)]
struct Bits {
    columns: Vec<Matching>,
    /// Words per group, known with the workload or the first state.
    words: usize,
    bits: Vec<u64>,
    groups: usize,
}

impl Bits {
    fn grow(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
        self.bits.resize(self.groups * self.words, 0);
    }

    fn learn(&mut self, values: &[ArrayRef]) -> Result<()> {
        if !self.columns.is_empty() || values[0].is_empty() {
            return Ok(());
        }
        let (workload, roles) = called_with(values)?;
        self.words = workload.words();
        for role in roles {
            self.columns.push(match role {
                Role::Exact(column) => Matching::exact(&workload, column),
                Role::Published(column) => Matching::published(&workload, column),
                Role::Bits | Role::Groups | Role::Buckets | Role::Number => {
                    return internal_err!("bits and groups are not matched record by record");
                }
            });
        }
        Ok(())
    }

    /// Hands the bits of every row to `visit`.
    fn rows(&mut self, values: &[ArrayRef], mut visit: impl FnMut(usize, &[u64])) -> Result<()> {
        let codes = self
            .columns
            .iter_mut()
            .zip(&values[2..])
            .map(|(column, array)| column.read(array).map_err(unreadable))
            .collect::<Result<Vec<_>>>()?;
        let narrow = |matched: &mut [u64], column: usize, row: usize| {
            let bits = self.columns[column].bits(codes[column][row]);
            matched.iter_mut().zip(bits).for_each(|(m, b)| *m &= b);
        };
        // The records of an individual often stand together, and differ in the last column only.
        let last = self.columns.len().saturating_sub(1);
        let mut most = vec![u64::MAX; self.words];
        let mut matched = vec![0u64; self.words];
        for row in 0..values[0].len() {
            if row == 0
                || codes[..last]
                    .iter()
                    .any(|codes| codes[row] != codes[row - 1])
            {
                most.fill(u64::MAX);
                (0..last).for_each(|column| narrow(&mut most, column, row));
            }
            matched.copy_from_slice(&most);
            if last < self.columns.len() {
                narrow(&mut matched, last, row);
            }
            visit(row, &matched);
        }
        Ok(())
    }

    fn emit(&mut self, to: EmitTo) -> ArrayRef {
        let groups = match to {
            EmitTo::All => self.groups,
            EmitTo::First(groups) => groups.min(self.groups),
        };
        let mut builder = BinaryBuilder::with_capacity(groups, groups * self.words * 8);
        let mut bytes = Vec::with_capacity(self.words * 8);
        for group in 0..groups {
            bytes.clear();
            for word in &self.bits[group * self.words..][..self.words] {
                bytes.extend(word.to_le_bytes());
            }
            builder.append_value(&bytes);
        }
        self.bits.drain(..groups * self.words);
        self.groups -= groups;
        Arc::new(builder.finish())
    }

    fn unite(&mut self, states: &ArrayRef, group_of: impl Fn(usize) -> usize, groups: usize) {
        let states = states.as_binary::<i32>();
        let longest = states.iter().flatten().map(|b| b.len() / 8).max();
        if let Some(words) = longest
            && self.words == 0
        {
            self.words = words;
        }
        self.grow(groups);
        for (row, bytes) in states.iter().enumerate() {
            let at = group_of(row) * self.words;
            let words = bytes.unwrap_or_default().chunks_exact(8);
            for (bits, bytes) in self.bits[at..at + self.words].iter_mut().zip(words) {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                *bits |= u64::from_le_bytes(word);
            }
        }
    }

    fn update(
        &mut self,
        values: &[ArrayRef],
        group_of: impl Fn(usize) -> usize,
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        self.learn(values)?;
        self.grow(groups);
        let words = self.words;
        let mut all = std::mem::take(&mut self.bits);
        let done = self.rows(values, |row, matched| {
            if filter.is_none_or(|f| f.is_valid(row) && f.value(row)) {
                let bits = &mut all[group_of(row) * words..][..words];
                bits.iter_mut().zip(matched).for_each(|(a, b)| *a |= b);
            }
        });
        self.bits = all;
        done
    }

    fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Matching::size).sum();
        size_of_val(self) + columns + self.bits.capacity() * 8
    }
}

impl GroupsAccumulator for Bits {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.update(
            values,
            |row| group_indices[row],
            opt_filter,
            total_num_groups,
        )
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(self.emit(emit_to))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit(emit_to)])
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.unite(&values[0], |row| group_indices[row], total_num_groups);
        Ok(())
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        // Each row is a group of its own.
        let mut rows = Self::default();
        rows.update(values, |row| row, opt_filter, values[0].len())?;
        Ok(vec![rows.emit(EmitTo::All)])
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

impl Accumulator for Bits {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.update(values, |_| 0, None, 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.grow(1);
        ScalarValue::try_from_array(&self.emit(EmitTo::All), 0)
    }

    fn size(&self) -> usize {
        self.bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![Accumulator::evaluate(self)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.unite(&states[0], |_| 0, 1);
        Ok(())
    }
}
