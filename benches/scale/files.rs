//! What is left on the disk.

use std::fs;
use std::path::Path;

/// How many files there are in a folder and all below it.
pub fn below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .map(|path| if path.is_dir() { below(&path) } else { 1 })
        .sum()
}
