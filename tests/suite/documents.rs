//! Every SQL in README and docs runs as printed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::{rows, with_patients};

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = docs
        .filter(|p| p.extension().is_some_and(|e| e == "md"))
        .collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = vec![];
    let mut open: Option<String> = None;
    for line in page.lines() {
        match &mut open {
            Some(_) if line.trim() == "```" => blocks.extend(open.take()),
            Some(block) => {
                block.push_str(line);
                block.push('\n');
            }
            None if line.trim() == format!("```{language}") => open = Some(String::new()),
            None => {}
        }
    }
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_in_pages_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut statements = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        // A session per page; files go to a folder of their own.
        let ctx = with_patients().await;
        let target = folder.path().join(page.file_stem().unwrap());
        for block in blocks(&text, "sql") {
            for statement in block.split(";\n").filter(|s| !s.trim().is_empty()) {
                let sql = statement.replace("'out/", &format!("'{}/", target.display()));
                if let Err(error) = rows(&ctx, &sql).await {
                    panic!("{}: {statement}\n{error}", page.display());
                }
                statements += 1;
            }
        }
    }
    assert!(statements >= 10, "only {statements} statements found");
}

#[test]
fn the_readme_is_short_and_has_the_two_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let ci = fs::read_to_string(root.join(".ci/run")).unwrap();
    assert!(readme.lines().count() <= 120);
    let commands: Vec<String> = blocks(&readme, "sh")
        .iter()
        .flat_map(|b| b.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for command in [
        "cargo run --bin anonymize -- demo",
        "cargo test --workspace",
    ] {
        let printed = commands
            .iter()
            .any(|c| c.split('#').next().unwrap().trim() == command);
        assert!(printed, "README has {command}");
        assert!(ci.lines().any(|l| l == command), ".ci/run runs {command}");
    }
}

#[test]
fn links_lead_somewhere() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = page.parent().unwrap().join(file);
            assert!(path.exists(), "{}: {target}", page.display());
        }
    }
}
