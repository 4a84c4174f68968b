//! Threads that all work on blocks of one operator shares.
//!
//! Blocks are the unit of parallel work; where there are fewer of them than threads, the work on one is divided here.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope, scope};

use parking_lot::Mutex;

/// So many threads for all who work at the same time. Who works has a seat; who could use another thread takes a free
/// seat for it, if there is one. What is computed never depends on it.
#[derive(Debug)]
pub struct Crew {
    seats: usize,
    taken: AtomicUsize,
}

impl Crew {
    /// With so many seats.
    pub fn new(seats: usize) -> Self {
        Self {
            seats,
            taken: AtomicUsize::new(0),
        }
    }

    /// A seat for work that is done in any case, also if none is free.
    pub fn take(&self) -> Seat<'_> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Seat(self)
    }

    /// A free seat.
    pub fn take_free(&self) -> Option<Seat<'_>> {
        let one_more = |taken| (taken < self.seats).then_some(taken + 1);
        let order = Ordering::Relaxed;
        let taken = self.taken.fetch_update(order, order, one_more);
        taken.is_ok().then(|| Seat(self))
    }

    /// The results of `work` for each item, in the order of the items, by the thread that calls and by those whose seats
    /// are or become free. Items are begun in their order, so the largest should come first.
    pub fn each<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let shared = Shared {
            crew: self,
            waiting: Mutex::new(items.into_iter().enumerate()),
            done: Mutex::new(vec![]),
            work,
        };
        scope(|scope| shared.help(scope));
        let mut done = shared.done.into_inner();
        done.sort_unstable_by_key(|(at, _)| *at);
        let results = done.into_iter().map(|(_, result)| result);
        results
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    }
}

/// A thread of a crew that works; free again when dropped.
#[derive(Debug)]
pub struct Seat<'a>(&'a Crew);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Items that several threads work on.
struct Shared<'a, I, R, W> {
    crew: &'a Crew,
    waiting: Mutex<I>,
    done: Mutex<Vec<(usize, thread::Result<R>)>>,
    work: W,
}

impl<T, R, I, W> Shared<'_, I, R, W>
where
    T: Send,
    R: Send,
    I: ExactSizeIterator<Item = (usize, T)> + Send,
    W: Fn(T) -> R + Sync,
{
    /// Works until nothing waits, with everybody who is free.
    fn help<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        loop {
            let (next, more) = {
                let mut waiting = self.waiting.lock();
                (waiting.next(), waiting.len() > 0)
            };
            let Some((at, item)) = next else {
                return;
            };
            if more && let Some(seat) = self.crew.take_free() {
                scope.spawn(move || {
                    let _seat = seat;
                    self.help(scope);
                });
            }
            let result = catch_unwind(AssertUnwindSafe(|| (self.work)(item)));
            self.done.lock().push((at, result));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_never_more_than_there_are() {
        let crew = Crew::new(3);
        let block = crew.take();
        let (first, second) = (crew.take_free(), crew.take_free());
        assert!(first.is_some() && second.is_some() && crew.take_free().is_none());
        // A second block starts in any case; one thread less is left.
        let other = crew.take();
        drop(first);
        assert!(crew.take_free().is_none());
        drop(other);
        assert!(crew.take_free().is_some());
        drop((block, second));
        assert_eq!(crew.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn results_keep_the_order_of_their_items() {
        for seats in [1, 2, 8] {
            for items in [0, 1, 2, 1000] {
                let crew = Crew::new(seats);
                let _seat = crew.take();
                let most = AtomicUsize::new(0);
                let squares = crew.each((0..items).collect(), |item: u64| {
                    most.fetch_max(crew.taken.load(Ordering::Relaxed), Ordering::Relaxed);
                    item * item
                });
                let expected: Vec<u64> = (0..items).map(|item| item * item).collect();
                assert_eq!(squares, expected);
                assert!(most.into_inner() <= seats);
                assert_eq!(crew.taken.load(Ordering::Relaxed), 1);
            }
        }
    }

    #[test]
    fn a_seat_that_becomes_free_is_taken() {
        let crew = Crew::new(2);
        let _seat = crew.take();
        let other = Mutex::new(Some(crew.take()));
        let threads = crew.each((0..100).collect(), |item: u64| {
            if item == 3 {
                drop(other.lock().take());
            }
            thread::sleep(std::time::Duration::from_millis(1));
            thread::current().id()
        });
        assert!(threads[..4].iter().all(|id| *id == threads[0]));
        assert!(threads[4..].iter().any(|id| *id != threads[0]));
    }

    #[test]
    #[should_panic(expected = "one of many")]
    fn a_panic_is_passed_on() {
        Crew::new(4).each((0..100).collect(), |item: u64| {
            assert!(item != 57, "one of many")
        });
    }
}
