//! How frequent secret values are in the whole table, where it is divided into blocks that must be l-diverse each.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::common::Result;
use serde::{Deserialize, Serialize};

use super::lgb::Frequent;
use crate::spec::{BlockSize, Spec};
use crate::system::{RowColumns, SecretRule, Stage};
use crate::table::coding::rows;

/// Counts of the secret values of each attribute, in the order of the requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::system) struct SecretCounts(Vec<Frequent>);

/// Whether the profile must know secret values: the table may have several blocks, and nobody said how large they are.
pub(super) fn counts_secrets(spec: &Spec, records: Option<usize>) -> Result<bool> {
    let BlockSize::Individuals(block) = spec.block() else {
        return Ok(false);
    };
    let several = records.is_none_or(|records| records as u64 > block);
    // Values that are made alike are more frequent than they look.
    let as_they_are = !spec.block_is_given() && !spec.normalize;
    Ok(several && as_they_are)
}

impl SecretCounts {
    pub fn new(spec: &Spec) -> Result<Self> {
        let attributes = spec.local_requirement()?.attributes.len();
        Ok(Self(vec![Frequent::default(); attributes]))
    }

    /// Counts the records of a batch.
    pub fn update(&mut self, spec: &Spec, batch: &RecordBatch) -> Result<()> {
        let columns = RowColumns::new(spec, Stage::Tagged, batch.columns());
        let record = columns.record();
        let attributes = spec.local_requirement()?.attributes;
        let semi = attributes.iter().filter(|a| a.qi.is_some()).count();
        for (at, (attribute, counts)) in attributes.iter().zip(&mut self.0).enumerate() {
            let (values, flags) = match attribute.qi {
                Some(column) => (&columns.qi()[column], Some(&record.flags()[at])),
                None => (&record.sensitive()[at - semi], None),
            };
            let flags = flags.map(|flags| flags.as_boolean());
            let coded = rows(std::slice::from_ref(values))?;
            for (row, value) in coded.iter().enumerate() {
                let is_secret = flags.is_none_or(|f| f.is_null(row) || f.value(row));
                if is_secret && values.is_valid(row) {
                    counts.add(value.data());
                }
            }
        }
        Ok(())
    }

    pub fn merge(&mut self, other: Self) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            own.merge(other);
        }
    }

    pub fn size(&self) -> usize {
        self.0.iter().map(Frequent::size).sum()
    }

    /// The size of blocks in which no value is too frequent by chance: the one asked for, or a larger one; `None` for the whole
    /// table.
    pub fn block(&self, spec: &Spec, individuals: u64, asked: u64) -> Result<Option<u64>> {
        let mut blocks = individuals.div_ceil(asked.max(1)).max(1);
        let attributes = spec.local_requirement()?.attributes;
        for (attribute, counts) in attributes.iter().zip(&self.0) {
            let SecretRule::Diversity(l) = attribute.rule else {
                continue;
            };
            let most = match counts.smallest_block(l) {
                Some(0) => u64::MAX,
                Some(smallest) => counts.all() / smallest,
                None => 1,
            };
            blocks = blocks.min(most.max(1));
        }
        Ok((blocks > 1).then(|| individuals.div_ceil(blocks)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, BooleanArray, Int32Array, UInt64Array};

    use super::*;
    use crate::spec::Secrecy;

    fn spec(l: u32) -> Spec {
        Spec::new("anonymize_lgb")
            .with_id("id")
            .with_qi(["age"])
            .with_sensitive(["salary"])
            .with_semi_sensitive("age", Secrecy::Column("flag".to_owned()))
            .with_parameter("k", 2)
            .with_parameter("l", l)
    }

    #[test]
    fn blocks_leave_room_for_l() {
        // Half of the people keep one of 25 ages secret, all of them one of ten salaries.
        let numbers = |modulus: i32| -> ArrayRef {
            Arc::new(Int32Array::from_iter_values(
                (0..100_000).map(|i| i % modulus),
            ))
        };
        let orders: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..100_000));
        let flags = (0..100_000).map(|i| (i % 2 != 0).then_some(false));
        let flags: ArrayRef = Arc::new(flags.collect::<BooleanArray>());
        let batch = RecordBatch::try_from_iter([
            ("order", Arc::clone(&orders)),
            ("pseudonym", orders),
            ("age", numbers(50)),
            ("salary", numbers(10)),
            ("flag", flags),
        ]);
        let (first, second) = (batch.as_ref().unwrap().slice(0, 30_000), batch.unwrap());
        let second = second.slice(30_000, 70_000);
        let block = |l: u32| {
            let spec = spec(l);
            let mut counts = SecretCounts::new(&spec).unwrap();
            counts.update(&spec, &first).unwrap();
            let mut rest = SecretCounts::new(&spec).unwrap();
            rest.update(&spec, &second).unwrap();
            let sent = serde_json::to_vec(&rest).unwrap();
            counts.merge(serde_json::from_slice(&sent).unwrap());
            assert_eq!((counts.0[0].all(), counts.0[1].all()), (50_000, 100_000));
            assert_eq!(counts.0[0].at_most(), 2_000);
            counts.block(&spec, 100_000, 20_000).unwrap()
        };
        assert_eq!(block(3), Some(20_000), "as it was asked for");
        assert!(block(7).is_some_and(|size| size > 20_000), "larger");
        assert_eq!(block(10), None, "the whole table");
    }

    #[test]
    fn secrets_are_counted_only_where_blocks_depend_on_them() {
        let counts = |spec: &Spec, records| counts_secrets(spec, records).unwrap();
        let BlockSize::Individuals(block) = spec(3).block() else {
            panic!("blocks have a size unless somebody says otherwise");
        };
        let block = block as usize;
        assert!(counts(&spec(3), None) && counts(&spec(3), Some(block + 1)));
        assert!(!counts(&spec(3), Some(block)));
        let given = spec(3).with_block(BlockSize::Individuals(1_000));
        assert!(!counts(&given, None));
        assert!(!counts(&spec(3).with_t_of("salary", "0.5"), None));
    }
}
