//! What others build on: the names that the crate exports, its functions and their arguments, and the schemas of its files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use datafusion_anonymize::TABLE_FUNCTIONS;
use serde_json::Value;

use super::{golden, part};

fn project(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The public names of a file: of `pub use a::{b, c}` b and c, wherever they come from, and public modules.
fn exports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for item in code.split_inclusive(';') {
        let Some((_, item)) = item.split_once("\npub ") else {
            continue;
        };
        let item = item.trim_end_matches(';');
        match item.strip_prefix("use ") {
            Some(tree) => {
                let (_, listed) = tree.split_once('{').unwrap_or(("", tree));
                let words = listed.trim_end_matches('}').split(',').map(str::trim);
                let words = words.filter(|word| !word.is_empty());
                names.extend(words.map(|word| word.rsplit("::").next().unwrap().to_owned()));
            }
            None => {
                names.insert(item.to_owned());
            }
        }
    }
    names
}

#[test]
fn golden_exports() {
    let listed = |path: &str| {
        let names: Vec<_> = exports(&project(path)).into_iter().collect();
        part(path, &names.join("\n"))
    };
    let text: String = ["src/lib.rs", "src/publish/mod.rs"].map(listed).concat();
    golden("exports", &text);
    let names = exports("mod c;\npub use a::{B, C,\n};\npub mod d;\npub use x::y::Z;\n");
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        ["B", "C", "Z", "mod d"]
    );
}

/// Functions with their arguments, in the order in which they are told.
#[test]
fn golden_arguments() {
    let mut text = String::new();
    for function in TABLE_FUNCTIONS.iter() {
        let lines = function.arguments.iter();
        let lines: String = lines
            .map(|argument| format!("{}: {}\n", argument.name, argument.described()))
            .collect();
        text += &part(&format!("{}: {}", function.name, function.help), &lines);
    }
    golden("arguments", &text);
}

/// The schemas, a line for each thing that they say, in the order of its path.
#[test]
fn golden_schemas() {
    for name in ["job", "manifest"] {
        let schema = project(&format!("docs/reference/{name}.schema.json"));
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let mut lines = vec![];
        flatten("", &schema, &mut lines);
        lines.sort();
        golden(&format!("schema_of_{name}"), &lines.join("\n"));
    }
}

fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                flatten(&format!("{path}/{key}"), value, lines);
            }
        }
        value => lines.push(format!("{path}: {value}")),
    }
}
