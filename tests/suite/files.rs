//! Files of a folder and of all folders in it. The tests of the program use it too.

use std::fs;
use std::path::{Path, PathBuf};

/// All files below a folder whose names end in this, in the order of their names.
pub fn below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    files
}
