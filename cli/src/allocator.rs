//! The allocator of the program.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set, mi_option_t};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay`: for how many milliseconds memory that was freed is kept for whoever wants some next.
const PURGE_DELAY: mi_option_t = 15;

/// Gives memory back as soon as it is freed. What is kept belongs to nobody's share of the engine's memory, and where
/// threads that sort, spill, form classes and write take turns, it may be as much as theirs.
pub fn keep_nothing() {
    keep_for(0);
}

/// Keeps memory for ten seconds: where it is not short, each step of a query can use what the one before had, which saves
/// the system a tenth of its time.
pub fn keep_for_reuse() {
    keep_for(10_000);
}

#[allow(unsafe_code)]
fn keep_for(milliseconds: c_long) {
    // Whoever says so in the environment knows better.
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the allocator reads this number whenever memory is freed, and may be told another one at any time.
        unsafe { mi_option_set(PURGE_DELAY, milliseconds) };
    }
}
