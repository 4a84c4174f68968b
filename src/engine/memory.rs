//! Memory for blocks: a partition that finds none waits for the others, as long as one of them goes on.

use std::pin::pin;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// What can be done about it.
const ADVICE: &str = "a block does not fit into the memory that is left; smaller blocks need less";

/// The memory of all partitions of one operator.
///
/// Blocks are large, so that the pool may have room for one, but not for as many as there are partitions. Who waits relies
/// on the others being read, as the engine's own operators do. If all others wait already, it must give back what it holds; who
/// holds nothing then is told that memory is exhausted.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    partitions: Mutex<Partitions>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Partitions {
    going_on: usize,
    waiting: usize,
    /// How often those who waited were woken.
    turn: u64,
}

/// Whether memory could be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grown {
    /// It is.
    Yes,
    /// It is not: all others wait, for what this partition holds among other things.
    OthersWait,
}

/// One partition that shares the memory, until it is dropped.
#[derive(Debug)]
pub(crate) struct PartitionMemory {
    shared: Arc<SharedMemory>,
    reservation: MemoryReservation,
}

/// A partition that waits.
struct Waiting<'a> {
    shared: &'a SharedMemory,
    since: u64,
}

impl Partitions {
    /// Whether nobody would go on if the last one waited for the others.
    fn would_stop(&self) -> bool {
        self.going_on == 1 && self.waiting > 0
    }
}

impl SharedMemory {
    /// A partition begins, with nothing reserved yet.
    pub fn enter(self: &Arc<Self>, reservation: MemoryReservation) -> PartitionMemory {
        self.partitions.lock().going_on += 1;
        PartitionMemory {
            shared: Arc::clone(self),
            reservation,
        }
    }

    /// Everybody tries again.
    fn wake(&self, partitions: &mut Partitions) {
        partitions.going_on += std::mem::take(&mut partitions.waiting);
        partitions.turn += 1;
        self.freed.notify_waiters();
    }
}

impl PartitionMemory {
    /// Reserves more, if need be when others have given some back. Who holds nothing gets it, sooner or later, or the error.
    pub async fn grow(&self, bytes: usize) -> Result<Grown> {
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            // From here on nothing is missed.
            freed.as_mut().enable();
            let waiting = {
                let mut partitions = self.shared.partitions.lock();
                match self.reservation.try_grow(bytes) {
                    Ok(()) => return Ok(Grown::Yes),
                    Err(_) if partitions.would_stop() && self.reservation.size() > 0 => {
                        return Ok(Grown::OthersWait);
                    }
                    Err(exhausted) if partitions.going_on == 1 => {
                        return Err(exhausted.context(ADVICE));
                    }
                    Err(_) => {
                        partitions.going_on -= 1;
                        partitions.waiting += 1;
                        Waiting {
                            shared: &self.shared,
                            since: partitions.turn,
                        }
                    }
                }
            };
            freed.await;
            drop(waiting);
        }
    }

    /// Gives back what is more than so many bytes.
    pub fn shrink_to(&self, bytes: usize) {
        let mut partitions = self.shared.partitions.lock();
        let more = self.reservation.size().saturating_sub(bytes);
        self.reservation.shrink(more);
        self.shared.wake(&mut partitions);
    }
}

impl Drop for PartitionMemory {
    fn drop(&mut self) {
        let mut partitions = self.shared.partitions.lock();
        self.reservation.free();
        partitions.going_on -= 1;
        self.shared.wake(&mut partitions);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut partitions = self.shared.partitions.lock();
        // Otherwise it was woken.
        if partitions.turn == self.since {
            partitions.waiting -= 1;
            partitions.going_on += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use futures::FutureExt;

    use super::*;

    fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(bytes))
    }

    fn partitions<const N: usize>(pool: &Arc<dyn MemoryPool>) -> [PartitionMemory; N] {
        let shared = Arc::new(SharedMemory::default());
        [(); N].map(|()| shared.enter(MemoryConsumer::new("block").register(pool)))
    }

    #[tokio::test]
    async fn who_finds_no_memory_waits_for_who_goes_on() {
        let pool = pool(100);
        let [a, b] = partitions(&pool);
        a.grow(80).await.unwrap();
        b.grow(20).await.unwrap();
        let mut waits = Box::pin(b.grow(60));
        assert!(waits.as_mut().now_or_never().is_none());
        // Not enough, then enough.
        a.shrink_to(50);
        assert!(waits.as_mut().now_or_never().is_none());
        a.shrink_to(10);
        waits.as_mut().now_or_never().unwrap().unwrap();
        drop(waits);
        assert_eq!(pool.reserved(), 90);
        drop((a, b));
        assert_eq!(pool.reserved(), 0);
    }

    #[tokio::test]
    async fn the_last_that_goes_on_is_told() {
        let pool = pool(100);
        let [a, b, c] = partitions(&pool);
        for partition in [&a, &b, &c] {
            partition.grow(30).await.unwrap();
        }
        let mut first = Box::pin(a.grow(20));
        let mut second = Box::pin(b.grow(20));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        // Nobody would be left to give something back.
        let told = c.grow(20).now_or_never().unwrap();
        assert_eq!(told.unwrap(), Grown::OthersWait);
        // So it does; there is memory for both now.
        c.shrink_to(0);
        first.as_mut().now_or_never().unwrap().unwrap();
        second.as_mut().now_or_never().unwrap().unwrap();
        drop((first, second));
        // What it holds itself is no help any more.
        let mut first = Box::pin(a.grow(20));
        let mut second = Box::pin(b.grow(20));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(c.grow(20).now_or_never().unwrap().is_err());
    }

    #[tokio::test]
    async fn who_stops_waiting_counts_again() {
        let pool = pool(100);
        let [a, b] = partitions(&pool);
        a.grow(90).await.unwrap();
        assert!(b.grow(20).now_or_never().is_none());
        let partitions = || {
            let partitions = a.shared.partitions.lock();
            (partitions.going_on, partitions.waiting)
        };
        assert_eq!(partitions(), (2, 0));
        // Woken, and dropped before it could try again.
        let mut waits = Box::pin(b.grow(20));
        assert!(waits.as_mut().now_or_never().is_none());
        assert_eq!(partitions(), (1, 1));
        a.shrink_to(85);
        assert_eq!(partitions(), (2, 0));
        drop(waits);
        assert_eq!(partitions(), (2, 0));
        let last = Arc::clone(&a.shared);
        drop((a, b));
        assert_eq!(last.partitions.lock().going_on, 0);
    }

    /// Many partitions on several threads, each with blocks that fill the pool alone.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn blocks_as_large_as_the_pool_take_turns() {
        let pool = pool(100);
        let partitions: [PartitionMemory; 8] = partitions(&pool);
        let tasks = partitions.into_iter().map(|partition| {
            tokio::spawn(async move {
                for _ in 0..50 {
                    partition.grow(10).await?;
                    // All eight read; 20 are left for one of them at a time.
                    assert_eq!(partition.grow(20).await?, Grown::Yes);
                    tokio::time::sleep(Duration::from_micros(50)).await;
                    partition.shrink_to(0);
                }
                Ok::<_, datafusion::common::DataFusionError>(())
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap().unwrap();
        }
        assert_eq!(pool.reserved(), 0);
    }
}
