//! The allocator of the program: one that gives back single pages, wherever they are, so that what a query holds is not much
//! more than what its operators have reserved.

use tikv_jemalloc_ctl::{arenas, raw};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A thread that gives memory back in time, also that of threads which have ended. Where memory is not short, large pages,
/// and what is freed is kept for ten seconds, also large pieces, so that each step of a query can use what the one before
/// had. Asking the system for memory takes up to a third of the time otherwise.
///
/// The allocator reads this when the program starts, and after it what `_RJEM_MALLOC_CONF` says.
#[allow(unsafe_code)]
// SAFETY: the allocator looks for text that ends with a zero under this name, which nobody else gives.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static CONFIGURATION: &u8 =
    &b"background_thread:true,thp:always,oversize_threshold:0,dirty_decay_ms:10000\0"[0];

/// For how many milliseconds freed memory is kept where it is short.
const SHORTLY: isize = 100;

/// Keeps little. What is kept belongs to nobody's share of the engine's memory, and where threads that sort, spill, form
/// classes and write take turns, it may be as much as theirs.
pub fn keep_little() {
    // Whoever says so in the environment knows better.
    if std::env::var_os("_RJEM_MALLOC_CONF").is_some() {
        return;
    }
    // Parts of the memory that there are, of which some are not used yet; and those to come.
    let parts = arenas::narenas::read().unwrap_or_default();
    let parts = (0..parts).map(|part| format!("arena.{part}.dirty_decay_ms\0"));
    for name in parts.chain(["arenas.dirty_decay_ms\0".to_owned()]) {
        set(&name, SHORTLY);
    }
    no_large_pages();
}

#[allow(unsafe_code)]
fn set(name: &str, milliseconds: isize) {
    // SAFETY: the name ends with a zero and belongs to a number of this type, which may be written at any time.
    let _of_a_part_not_used_yet = unsafe { raw::write(name.as_bytes(), milliseconds) };
}

/// A large page is there as soon as a part of it is used.
#[allow(unsafe_code)]
fn no_large_pages() {
    // SAFETY: this process only, and only how its memory is made of pages.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
