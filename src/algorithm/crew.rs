//! Threads that several runs of an algorithm share.

use std::sync::atomic::{AtomicUsize, Ordering};

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
}

/// A thread of a crew that works; free again when dropped.
#[derive(Debug)]
pub struct Seat<'a>(&'a Crew);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
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
}
