//! Independent pieces of work on a block, on all cores.
//!
//! Blocks are the unit of parallel work; where a function wants few large ones, the work on one is divided here.

use std::panic::resume_unwind;
use std::thread::{available_parallelism, scope};

use parking_lot::Mutex;

/// The results of `work` for each item, in the order of the items, however many threads there are. Items are begun in
/// their order, so the largest should come first.
pub fn each<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = available_parallelism().map_or(1, usize::from);
    if threads.min(items.len()) < 2 {
        return items.into_iter().map(work).collect();
    }
    let threads = threads.min(items.len());
    let waiting = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let mut done = vec![];
        loop {
            let Some((at, item)) = waiting.lock().next() else {
                return done;
            };
            done.push((at, work(item)));
        }
    };
    let mut done = scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut done = worker();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_their_items() {
        for items in [0, 1, 2, 1000] {
            let squares = each((0..items).collect(), |item: u64| item * item);
            assert!(
                squares
                    .iter()
                    .enumerate()
                    .all(|(at, square)| *square == (at * at) as u64)
            );
            assert_eq!(squares.len() as u64, items);
        }
    }

    #[test]
    #[should_panic(expected = "one of many")]
    fn a_panic_is_passed_on() {
        each((0..100).collect(), |item: u64| {
            assert!(item != 57, "one of many")
        });
    }
}
