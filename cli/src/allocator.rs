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
#[allow(unsafe_code)]
pub fn keep_nothing() {
    // Whoever says so in the environment knows better.
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        let at_once: c_long = 0;
        // SAFETY: the allocator reads this number whenever memory is freed, and may be told another one at any time.
        unsafe { mi_option_set(PURGE_DELAY, at_once) };
    }
}
