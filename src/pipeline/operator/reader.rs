//! Blocks of sorted rows, one at a time.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::spill_file::SpillFile;
use datafusion::physical_plan::{SendableRecordBatchStream, SpillManager};
use futures::{StreamExt, TryStreamExt};

use crate::engine::threads::Threads;
use crate::engine::{Grown, PartitionMemory, sliced_size};
use crate::system::blocks_of;

/// What the work on a block needs, in bytes per byte of input: the input in one piece, codes, index and results.
const WORK_FACTOR: usize = 4;

/// Cuts the sorted input into blocks.
///
/// Blocks are learned from a sample, so one may be larger than asked where many individuals have the same
/// quasi-identifiers. Then it is cut along the random order, wherever three times the size are left, after twice the size:
/// never where batches happen to end.
///
/// Where the memory does not suffice for all partitions, rows wait in a file until others have done their work.
pub(super) struct BlockReader {
    input: SendableRecordBatchStream,
    /// Individuals per block, if not all.
    size: Option<usize>,
    /// Parts of the block being read; with the first rows of the next one last, once they are seen.
    pending: Vec<RecordBatch>,
    /// Rows in there.
    rows: usize,
    memory: PartitionMemory,
    spills: SpillManager,
    /// Reading keeps a core busy, too: it is what the sort below has left to do.
    threads: Arc<Threads>,
}

impl BlockReader {
    /// Over rows that are sorted by block.
    pub fn new(
        input: SendableRecordBatchStream,
        size: Option<usize>,
        memory: PartitionMemory,
        spills: SpillManager,
        threads: Arc<Threads>,
    ) -> Self {
        Self {
            input,
            size,
            pending: vec![],
            rows: 0,
            memory,
            spills,
            threads,
        }
    }

    /// The rows of the next block, once there is memory to work on them.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(length) = self.complete() {
                return self.take(length).await.map(Some);
            }
            let read = {
                let _seat = self.threads.take();
                self.input.next().await
            };
            match read {
                Some(batch) => {
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        self.reserve(sliced_size(&batch)).await?;
                        self.rows += batch.num_rows();
                        self.pending.push(batch);
                    }
                }
                None if self.pending.is_empty() => return Ok(None),
                None => return self.take(self.rows).await.map(Some),
            }
        }
    }

    /// Gives back the memory of the block that was last returned, except for what it publishes.
    pub fn worked(&mut self, published: usize) {
        let held: usize = self.pending.iter().map(sliced_size).sum();
        self.memory.shrink_to(held + published);
    }

    /// How many of the rows at hand are the next block, once that is certain.
    fn complete(&self) -> Option<usize> {
        let (first, last) = (self.pending.first()?, self.pending.last()?);
        let others = last.num_rows() - run_length(last, first_block(first));
        let held = self.rows - others;
        match self.size {
            Some(size) if held >= size.saturating_mul(3) => Some(2 * size),
            _ => (others > 0).then_some(held),
        }
    }

    /// The first rows at hand, in one piece.
    async fn take(&mut self, length: usize) -> Result<RecordBatch> {
        let held: usize = self.first(length).iter().map(sliced_size).sum();
        self.reserve((WORK_FACTOR - 1) * held).await?;
        let taken = concat_batches(self.spills.schema(), &self.first(length))?;
        let mut skipped = length;
        let rest = self.pending.drain(..).filter_map(|batch| {
            let rows = skipped.min(batch.num_rows());
            skipped -= rows;
            (rows < batch.num_rows()).then(|| batch.slice(rows, batch.num_rows() - rows))
        });
        self.pending = rest.collect();
        self.rows -= length;
        Ok(taken)
    }

    /// The first rows at hand, as they came.
    fn first(&self, length: usize) -> Vec<RecordBatch> {
        let mut wanted = length;
        let first = self.pending.iter().map_while(|batch| {
            let rows = wanted.min(batch.num_rows());
            wanted -= rows;
            (rows > 0).then(|| batch.slice(0, rows))
        });
        first.collect()
    }

    /// Reserves memory, if need be after others. If these wait for what is held here, it goes to a file meanwhile.
    async fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.memory.grow(bytes).await? == Grown::OthersWait {
            let held: usize = self.pending.iter().map(sliced_size).sum();
            let file = self.put_aside().await?;
            self.memory.shrink_to(0);
            // Who holds nothing is in nobody's way.
            self.memory.grow(held + bytes).await?;
            if let Some(file) = file {
                let rows = self.spills.read_spill_as_stream(file, None)?;
                self.pending = rows.try_collect().await?;
            }
        }
        Ok(())
    }

    /// Writes the rows at hand to a file.
    async fn put_aside(&mut self) -> Result<Option<Arc<dyn SpillFile>>> {
        let rows = std::mem::take(&mut self.pending);
        let spills = self.spills.clone();
        let written = SpawnedTask::spawn_blocking(move || {
            spills.spill_record_batch_and_finish(&rows, "rows of a block that waits for memory")
        });
        let interrupted = |_| exec_datafusion_err!("rows were not written to their end");
        written.join().await.map_err(interrupted)?
    }
}

fn first_block(batch: &RecordBatch) -> u32 {
    blocks_of(batch).value(0)
}

/// How many rows at the beginning of a batch belong to a block.
fn run_length(batch: &RecordBatch, block: u32) -> usize {
    let blocks = blocks_of(batch).values();
    blocks.partition_point(|b| *b <= block)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, AsArray, UInt32Array};
    use datafusion::arrow::datatypes::UInt32Type;
    use datafusion::execution::memory_pool::{
        GreedyMemoryPool, MemoryConsumer, MemoryPool, UnboundedMemoryPool,
    };
    use datafusion::execution::runtime_env::RuntimeEnv;
    use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;
    use crate::engine::SharedMemory;

    /// Blocks of 100 from blocks of these lengths, cut into batches; and how often rows were put aside.
    fn reader(
        lengths: &[usize],
        batch: usize,
        memory: PartitionMemory,
    ) -> (BlockReader, SpillMetrics) {
        let block = (0..).zip(lengths).flat_map(|(b, n)| vec![b; *n]);
        let block: ArrayRef = Arc::new(block.collect::<UInt32Array>());
        let row: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..block.len() as u32));
        let all = RecordBatch::try_from_iter([("block", block), ("row", row)]).unwrap();
        let schema = all.schema();
        let starts = (0..all.num_rows()).step_by(batch);
        let batches: Vec<_> = starts
            .map(|at| Ok(all.slice(at, batch.min(all.num_rows() - at))))
            .collect();
        let input = futures::stream::iter(batches);
        let input = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), input));
        let metrics = SpillMetrics::new(&ExecutionPlanMetricsSet::new(), 0);
        let spills = SpillManager::new(Arc::new(RuntimeEnv::default()), metrics.clone(), schema);
        let threads = Arc::new(Threads::new(1));
        let reader = BlockReader::new(input, Some(100), memory, spills, threads);
        (reader, metrics)
    }

    /// First rows and lengths of all blocks.
    async fn blocks(mut reader: BlockReader) -> Result<Vec<(u32, usize)>> {
        let mut found = vec![];
        while let Some(block) = reader.next().await? {
            let rows = block.column(1).as_primitive::<UInt32Type>().values();
            assert!(rows.is_sorted_by(|a, b| a + 1 == *b));
            found.push((rows[0], block.num_rows()));
            tokio::task::yield_now().await;
            reader.worked(0);
        }
        Ok(found)
    }

    const LENGTHS: [usize; 5] = [99, 299, 300, 1, 699];
    const EXPECTED: [(u32, usize); 8] = [
        (0, 99),
        (99, 299),
        (398, 200),
        (598, 100),
        (698, 1),
        (699, 200),
        (899, 200),
        (1_099, 299),
    ];
    const BATCHES: [usize; 6] = [1, 7, 64, 100, 301, 8_192];

    #[tokio::test]
    async fn large_blocks_are_cut_wherever_batches_end() {
        for batch in BATCHES {
            let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
            let memory = MemoryConsumer::new("test").register(&pool);
            let memory = Arc::new(SharedMemory::default()).enter(memory);
            let (reader, spilled) = reader(&LENGTHS, batch, memory);
            assert_eq!(blocks(reader).await.unwrap(), EXPECTED);
            assert_eq!(pool.reserved(), 0);
            assert_eq!(spilled.spill_file_count.value(), 0);
        }
    }

    /// The largest block and its work have 299 × 8 × 4 bytes. Of three that are read at the same time none can be worked on,
    /// unless others give their rows away meanwhile.
    #[tokio::test]
    async fn rows_wait_in_files_while_others_are_worked_on() {
        let mut put_aside = 0;
        for batch in [1, 7, 64, 100] {
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(299 * 8 * 4 + 500 * 8));
            let shared = Arc::new(SharedMemory::default());
            let partition = |_| shared.enter(MemoryConsumer::new("test").register(&pool));
            let readers: Vec<_> = (0..3)
                .map(partition)
                .map(|partition| reader(&LENGTHS, batch, partition))
                .collect();
            let spilled: Vec<_> = readers.iter().map(|(_, spilled)| spilled.clone()).collect();
            let all = readers.into_iter().map(|(reader, _)| blocks(reader));
            for found in futures::future::join_all(all).await {
                assert_eq!(found.unwrap(), EXPECTED, "batches of {batch}");
            }
            assert_eq!(pool.reserved(), 0);
            let files = spilled.iter().map(|s| s.spill_file_count.value());
            put_aside += files.sum::<usize>();
        }
        assert!(put_aside > 0);
    }

    #[tokio::test]
    async fn a_block_that_does_not_fit_alone_is_refused() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(299 * 8 * 3));
        let shared = Arc::new(SharedMemory::default());
        let readers = [(); 2].map(|()| {
            let memory = shared.enter(MemoryConsumer::new("test").register(&pool));
            reader(&LENGTHS, 64, memory).0
        });
        let found = futures::future::join_all(readers.map(blocks)).await;
        assert!(found.iter().all(Result::is_err));
        assert_eq!(pool.reserved(), 0);
    }
}
