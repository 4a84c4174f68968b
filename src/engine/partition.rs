//! Which partition works on which block.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::datatypes::UInt32Type;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column, Literal};
use datafusion::physical_plan::metrics::Time;
use datafusion::physical_plan::repartition::BatchPartitioner;

/// Deals blocks out to partitions in turn.
///
/// The engine shuffles by a hash, which gives one partition many blocks and another few: of eight blocks six may meet on one
/// core of two. So it is given a key to hash instead of the block's number: one of as many values as there are partitions,
/// which are such that each has a partition of its own. The key consists of the engine's own expressions and can be sent to
/// other machines. A shuffle to another number of partitions deals less evenly, and is right as well: all records of a block
/// have one key.
#[derive(Debug, Clone)]
pub(crate) struct BlockPartitioning {
    partitions: usize,
    /// The value that is shuffled to each partition; none if the block's number has to do.
    values: Arc<[u32]>,
}

/// Values that are tried at once, and how often.
const TRIED: u32 = 4_096;
const TRIES: u32 = 64;

impl BlockPartitioning {
    /// To so many partitions.
    pub(crate) fn new(partitions: usize) -> Result<Self> {
        let values = match partitions {
            0 | 1 => None,
            _ => own_partitions(partitions)?,
        };
        Ok(Self {
            partitions,
            values: values.unwrap_or_default().into(),
        })
    }

    pub(crate) fn partitions(&self) -> usize {
        self.partitions
    }

    /// What to shuffle by, given the block's number.
    pub(crate) fn key(&self, block: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let [others @ .., last] = &*self.values else {
            return Ok(block);
        };
        let partitions = literal(self.values.len() as u32);
        let turn = BinaryExpr::new(block, Operator::Modulo, partitions);
        let cases = (0..).zip(others);
        let cases = cases.map(|(turn, value)| (literal(turn), literal(*value)));
        let otherwise = Some(literal(*last));
        let key = CaseExpr::try_new(Some(Arc::new(turn)), cases.collect(), otherwise)?;
        Ok(Arc::new(key))
    }
}

fn literal(value: u32) -> Arc<dyn PhysicalExpr> {
    Arc::new(Literal::new(ScalarValue::UInt32(Some(value))))
}

/// A value for each partition, found by the engine's own shuffle.
fn own_partitions(partitions: usize) -> Result<Option<Vec<u32>>> {
    let value: Arc<dyn PhysicalExpr> = Arc::new(Column::new("value", 0));
    let mut shuffle =
        BatchPartitioner::new_hash_partitioner(vec![value], partitions, Time::default())?;
    let mut found = vec![None; partitions];
    for begin in (0..TRIES).map(|i| i * TRIED) {
        let tried = UInt32Array::from_iter_values(begin..begin + TRIED);
        let tried = RecordBatch::try_from_iter([("value", Arc::new(tried) as ArrayRef)])?;
        shuffle.partition(tried, |partition, rows| {
            let first = rows.column(0).as_primitive::<UInt32Type>().value(0);
            found[partition].get_or_insert(first);
            Ok(())
        })?;
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_gets_as_many_blocks_as_the_others() {
        for partitions in [1, 2, 3, 7, 8, 64, 300] {
            let key = BlockPartitioning::new(partitions).unwrap();
            let key = key.key(Arc::new(Column::new("block", 0))).unwrap();
            let mut shuffle =
                BatchPartitioner::new_hash_partitioner(vec![key], partitions, Time::default())
                    .unwrap();
            let (rounds, rows_each) = (5, 3);
            let blocks = (0..rounds * partitions as u32).flat_map(|block| [block; 3]);
            let blocks: ArrayRef = Arc::new(UInt32Array::from_iter_values(blocks));
            let blocks = RecordBatch::try_from_iter([("block", blocks)]).unwrap();
            let mut seen = vec![0; partitions];
            let deal = |partition: usize, rows: RecordBatch| {
                seen[partition] += rows.num_rows();
                let blocks = rows.column(0).as_primitive::<UInt32Type>().values();
                let turn = blocks[0] as usize % partitions;
                assert!(blocks.iter().all(|b| *b as usize % partitions == turn));
                Ok(())
            };
            shuffle.partition(blocks, deal).unwrap();
            assert_eq!(seen, vec![rounds as usize * rows_each; partitions]);
        }
    }
}
