//! What no message, plan, report or file may show: values of cells when input is broken, and values of the environment.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod cells;
mod environment;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run of the program left to be read: its code, and what it said and wrote.
struct Told {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// Files that were not there before, by path.
    files: Vec<(PathBuf, String)>,
}

impl Told {
    /// All that can be read.
    fn texts(&self) -> impl Iterator<Item = (String, &str)> {
        let files = self.files.iter();
        let files = files.map(|(path, text)| (path.display().to_string(), text.as_str()));
        [
            ("stdout".to_owned(), self.stdout.as_str()),
            ("stderr".to_owned(), self.stderr.as_str()),
        ]
        .into_iter()
        .chain(files)
    }
}

/// Runs the program in a folder, and removes what it wrote.
fn run(folder: &Path, args: &[&str], environment: &[(&str, &str)]) -> Told {
    let before: BTreeSet<PathBuf> = below(folder).into_iter().collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command.current_dir(folder).env_remove("RUST_LOG");
    let done = command
        .args(args)
        .envs(environment.iter().copied())
        .output();
    let done = done.unwrap();
    let mut files = vec![];
    for path in below(folder) {
        if !before.contains(&path) {
            let bytes = fs::read(&path).unwrap_or_default();
            files.push((path.clone(), String::from_utf8_lossy(&bytes).into_owned()));
            fs::remove_file(path).unwrap();
        }
    }
    Told {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        files,
    }
}

/// All files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(below(&path)),
            false => files.push(path),
        }
    }
    files
}
