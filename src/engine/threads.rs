//! The threads that the partitions of one operator share.
//!
//! Blocks are the unit of parallel work; where there are fewer of them than threads, the work on one is divided here.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope, scope};

use parking_lot::{Condvar, Mutex};

/// A number of threads that all workers of an operator share. A worker takes one slot, and one more for each further
/// thread that it uses, as long as slots are free. Results never depend on how many were.
#[derive(Debug)]
pub struct Threads {
    slots: usize,
    taken: AtomicUsize,
}

impl Threads {
    /// With so many slots.
    pub fn new(slots: usize) -> Self {
        Self {
            slots,
            taken: AtomicUsize::new(0),
        }
    }

    /// A slot for work that is done in any case, also if none is free.
    pub fn take(&self) -> ThreadSlot<'_> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        ThreadSlot(self)
    }

    /// A free slot.
    pub fn take_free(&self) -> Option<ThreadSlot<'_>> {
        let one_more = |taken| (taken < self.slots).then_some(taken + 1);
        let order = Ordering::Relaxed;
        let taken = self.taken.fetch_update(order, order, one_more);
        taken.is_ok().then(|| ThreadSlot(self))
    }

    /// The results of `work` for each item, in the order of the items, by the thread that calls and by those whose slots
    /// are or become free. Items are begun in their order, so the largest should come first.
    pub fn each<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let items = items.into_iter().enumerate().collect();
        let mut done = self.all(items, |(at, item), _| (at, work(item)));
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }

    /// The results of `work` for each item and for those that are added while it is done, in no particular order.
    pub fn all<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T, &dyn Fn(T)) -> R + Sync,
    ) -> Vec<R> {
        let shared = Shared {
            threads: self,
            state: Mutex::new(State {
                waiting: items.into(),
                working: 0,
                done: vec![],
            }),
            changed: Condvar::new(),
            work,
        };
        scope(|scope| shared.help(scope, true));
        let done = shared.state.into_inner().done.into_iter();
        done.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    }
}

/// The place of one working thread; free again when dropped.
#[derive(Debug)]
pub struct ThreadSlot<'a>(&'a Threads);

impl Drop for ThreadSlot<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Items that several threads work on.
struct Shared<'a, T, R, W> {
    threads: &'a Threads,
    state: Mutex<State<T, R>>,
    /// There is a new item, or nobody works any more.
    changed: Condvar,
    work: W,
}

struct State<T, R> {
    waiting: VecDeque<T>,
    /// Items that are worked on.
    working: usize,
    done: Vec<thread::Result<R>>,
}

impl<T, R, W> Shared<'_, T, R, W>
where
    T: Send,
    R: Send,
    W: Fn(T, &dyn Fn(T)) -> R + Sync,
{
    /// Works until nothing waits, with everybody who is free; who stays, until nothing can come any more.
    fn help<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, stays: bool) {
        while let Some(item) = self.next(stays) {
            self.call(scope);
            let add = |item| self.add(scope, item);
            let result = catch_unwind(AssertUnwindSafe(|| (self.work)(item, &add)));
            let mut state = self.state.lock();
            state.done.push(result);
            state.working -= 1;
            self.changed.notify_one();
        }
    }

    fn next(&self, stays: bool) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(item) = state.waiting.pop_front() {
                state.working += 1;
                return Some(item);
            }
            if !stays || state.working == 0 {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn add<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, item: T) {
        self.state.lock().waiting.push_back(item);
        self.changed.notify_one();
        self.call(scope);
    }

    /// Calls somebody who is free, if an item waits.
    fn call<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let waits = !self.state.lock().waiting.is_empty();
        if waits && let Some(slot) = self.threads.take_free() {
            scope.spawn(move || {
                let _seat = slot;
                self.help(scope, false);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_never_more_than_there_are() {
        let threads = Threads::new(3);
        let block = threads.take();
        let (first, second) = (threads.take_free(), threads.take_free());
        assert!(first.is_some() && second.is_some() && threads.take_free().is_none());
        // A second block starts in any case; one thread less is left.
        let other = threads.take();
        drop(first);
        assert!(threads.take_free().is_none());
        drop(other);
        assert!(threads.take_free().is_some());
        drop((block, second));
        assert_eq!(threads.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn results_keep_the_order_of_their_items() {
        for slots in [1, 2, 8] {
            for items in [0, 1, 2, 1000] {
                let threads = Threads::new(slots);
                let _seat = threads.take();
                let most = AtomicUsize::new(0);
                let squares = threads.each((0..items).collect(), |item: u64| {
                    most.fetch_max(threads.taken.load(Ordering::Relaxed), Ordering::Relaxed);
                    item * item
                });
                let expected: Vec<u64> = (0..items).map(|item| item * item).collect();
                assert_eq!(squares, expected);
                assert!(most.into_inner() <= slots);
                assert_eq!(threads.taken.load(Ordering::Relaxed), 1);
            }
        }
    }

    #[test]
    fn a_seat_that_becomes_free_is_taken() {
        let threads = Threads::new(2);
        let _seat = threads.take();
        let other = Mutex::new(Some(threads.take()));
        let threads = threads.each((0..100).collect(), |item: u64| {
            if item == 3 {
                drop(other.lock().take());
            }
            thread::sleep(std::time::Duration::from_millis(1));
            thread::current().id()
        });
        assert!(threads[..4].iter().all(|id| *id == threads[0]));
        assert!(threads[4..].iter().any(|id| *id != threads[0]));
    }

    /// Every number up to `n` is halved until it is 1.
    #[test]
    fn what_is_added_is_done() {
        for slots in [1, 2, 8] {
            let threads = Threads::new(slots);
            let _seat = threads.take();
            let mut seen = threads.all(vec![1_000u64], |n, add| {
                if n > 1 {
                    add(n / 2);
                    add(n - n / 2);
                }
                n
            });
            seen.sort_unstable();
            assert_eq!(seen.iter().filter(|n| **n == 1).count(), 1_000);
            assert_eq!(seen.len(), 1_999);
            assert_eq!(threads.taken.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    #[should_panic(expected = "one of many")]
    fn a_panic_is_passed_on() {
        Threads::new(4).each((0..100).collect(), |item: u64| {
            assert!(item != 57, "one of many")
        });
    }
}
