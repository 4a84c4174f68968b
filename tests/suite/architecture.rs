//! Which room may call which.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms with what they may import of the crate, and whether they may know DataFusion beyond Arrow.
const RULES: &[(&str, &[&str], bool)] = &[
    ("table", &[], false),
    ("model", &["parallel", "table"], false),
    ("algorithm", &["model", "parallel", "table"], false),
    (
        "anatomize",
        &["algorithm", "coding", "model", "table"],
        false,
    ),
    (
        "fingerprint",
        &["algorithm", "model", "parallel", "table"],
        false,
    ),
    (
        "personalized",
        &["algorithm", "model", "parallel", "table"],
        false,
    ),
    ("verify", &[], false),
    ("generalized", &[], false),
    ("estimate", &["generalized"], false),
    ("coding", &["parallel", "table"], false),
    (
        "spec",
        &[
            "algorithm",
            "anatomize",
            "coding",
            "error",
            "model",
            "table",
        ],
        true,
    ),
    ("metric", &["generalized"], false),
    ("measure", &["verify"], false),
    ("logical", &["error", "measure", "spec"], true),
    (
        "physical",
        &[
            "algorithm",
            "anatomize",
            "coding",
            "error",
            "fingerprint",
            "generalized",
            "measure",
            "metric",
            "model",
            "parallel",
            "personalized",
            "spec",
            "table",
            "verify",
        ],
        true,
    ),
    (
        "release",
        &[
            "coding", "logical", "measure", "physical", "spec", "table", "verify",
        ],
        true,
    ),
    ("planner", &["logical", "physical", "release", "spec"], true),
    ("codec", &["logical", "measure", "physical", "spec"], true),
    (
        "functions",
        &[
            "algorithm",
            "coding",
            "error",
            "estimate",
            "fingerprint",
            "generalized",
            "logical",
            "measure",
            "model",
            "personalized",
            "release",
            "spec",
            "table",
        ],
        true,
    ),
];

#[test]
fn rooms_import_only_what_they_may() {
    let src = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut rooms = vec![];
    for entry in fs::read_dir(&src).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rooms.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    rooms.sort();
    let mut ruled: Vec<_> = RULES.iter().map(|(room, ..)| (*room).to_owned()).collect();
    ruled.sort();
    assert_eq!(rooms, ruled, "every room has a rule");

    let mut broken = vec![];
    for (room, allowed, engine) in RULES {
        for file in files_below(&src.join(room), "rs") {
            // Tests may use everything.
            if file.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for (number, line) in code.lines().enumerate() {
                if line.trim_start().starts_with("//") {
                    continue;
                }
                // Of rooms only their tests can use `repeatable`: it is not there otherwise.
                let foreign = imports(line, "crate::").any(|module| {
                    module != *room && !allowed.contains(&module) && module != "repeatable"
                });
                let engine_use = imports(line, "datafusion::").any(|m| m != "arrow") && !engine;
                if foreign || engine_use {
                    broken.push(format!(
                        "{}:{}: {}",
                        file.display(),
                        number + 1,
                        line.trim()
                    ));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The first segments of all paths in a line that start with `prefix`.
fn imports<'a>(line: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(prefix).map(move |(at, _)| {
        let rest = &line[at + prefix.len()..];
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        &rest[..end]
    })
}

/// All files below a folder whose names end so.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files
}
