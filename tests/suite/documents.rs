//! Every SQL in README and docs runs as printed, and what pages point to is there.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::common::Result;
use datafusion::prelude::SessionContext;

use crate::engine::with_patients;
use crate::files;

/// All pages, also those in folders of the documentation.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = files::below(&root.join("docs"), "md");
    for page in ["CHANGELOG.md", "CONTRIBUTING.md", "README.md"] {
        pages.push(root.join(page));
    }
    pages
}

/// The text of the page of that name, in whichever folder of the documentation it is.
pub fn page(name: &str) -> String {
    let file = format!("{name}.md");
    let named: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.ends_with(&file))
        .collect();
    let [page] = &named[..] else {
        panic!("there must be one page {file}, not {named:?}");
    };
    fs::read_to_string(page).unwrap()
}

/// All fenced blocks of a page: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = vec![];
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match &mut open {
            Some(_) if line.trim() == "```" => blocks.extend(open.take()),
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
            None => {
                open = line
                    .trim()
                    .strip_prefix("```")
                    .map(|l| (l.to_owned(), String::new()))
            }
        }
    }
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_in_pages_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (mut statements, mut tables) = (0, 0);
    for (number, page) in pages().iter().enumerate() {
        let text = fs::read_to_string(page).unwrap();
        // A session per page; files go to a folder of their own.
        let ctx = with_patients().await;
        let target = folder.path().join(number.to_string());
        let blocks = blocks(&text);
        for (i, (_, block)) in blocks
            .iter()
            .enumerate()
            .filter(|(_, (language, _))| language == "sql")
        {
            let mut printed = String::new();
            for statement in block.split(";\n").filter(|s| !s.trim().is_empty()) {
                let sql = statement.replace("'out/", &format!("'{}/", target.display()));
                match run(&ctx, &sql).await {
                    Ok(result) => printed = result,
                    Err(error) => panic!("{}: {statement}\n{error}", page.display()),
                }
                statements += 1;
            }
            // A table right after the statement is its result, in any order of rows.
            if let Some((_, shown)) = blocks
                .get(i + 1)
                .filter(|(l, t)| l == "text" && is_result(t))
            {
                assert_eq!(
                    sorted(shown),
                    sorted(&printed),
                    "{}: {block}",
                    page.display()
                );
                tables += 1;
            }
        }
    }
    assert!(tables >= 2, "only {tables} results found");
    assert!(statements >= 10, "only {statements} statements found");
}

async fn run(ctx: &SessionContext, sql: &str) -> Result<String> {
    let batches = ctx.sql(sql).await?.collect().await?;
    let options = FormatOptions::default().with_null("NULL");
    Ok(pretty_format_batches_with_options(&batches, &options)?.to_string())
}

fn is_result(text: &str) -> bool {
    text.starts_with("+-") && !text.contains("plan_type")
}

fn sorted(table: &str) -> Vec<&str> {
    let mut lines: Vec<_> = table.trim().lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_readme_is_short_and_has_the_two_commands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let ci = fs::read_to_string(root.join(".ci/run")).unwrap();
    assert!(readme.lines().count() <= 120);
    let shell = blocks(&readme)
        .into_iter()
        .filter(|(language, _)| language == "sh");
    let commands: Vec<String> = shell
        .flat_map(|(_, b)| b.lines().map(str::to_owned).collect::<Vec<_>>())
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
    let (mut to_places, mut broken) = (0, vec![]);
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            if target.contains("://") {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.clone(),
                file => page.parent().unwrap().join(file),
            };
            let there = match place {
                "" => path.exists(),
                place => {
                    to_places += 1;
                    fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(place))
                }
            };
            if !there {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(to_places > 100, "only {to_places} links lead to a heading");
}

/// The places of a page that links can lead to: its headings, as browsers of Markdown name them, and its own anchors.
fn anchors(page: &str) -> HashSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let names = headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c => (c.is_alphanumeric() || "-_".contains(c)).then_some(c),
        });
        kept.collect()
    });
    let own = page.split("<a id=\"").skip(1);
    let own = own.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
    names.chain(own).collect()
}

/// The tests that papers.md names exist.
#[test]
fn tests_named_in_papers_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    for folder in ["src", "tests", "cli"] {
        for file in files::below(&root.join(folder), "rs") {
            code.push_str(&fs::read_to_string(file).unwrap());
        }
    }
    let papers = page("papers");
    let mut named = 0;
    for paragraph in papers.split("**Test:**").skip(1) {
        let paragraph = paragraph.split("\n\n").next().unwrap();
        for name in paragraph.split('`').skip(1).step_by(2) {
            if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && name.contains('_') {
                assert!(
                    code.contains(&format!("fn {name}(")),
                    "papers.md names {name}, which is no test"
                );
                named += 1;
            }
        }
    }
    assert!(named > 20, "only {named} tests are named");
}

/// Files and folders of the project in a text: words that begin with one of its folders. `a/{b,c}.rs` are two.
fn named<'a>(text: &'a str, folders: &'a [&str]) -> impl Iterator<Item = String> + 'a {
    let end = |c: char| !(c.is_ascii_alphanumeric() || "_-./*{},".contains(c));
    let words = text
        .split(end)
        .map(|word| word.trim_end_matches(['.', ',']));
    let words = words.filter(|word| {
        let folder = word.split_once('/').map(|(folder, _)| folder);
        folder.is_some_and(|folder| folders.contains(&folder))
    });
    words.flat_map(|word| match word.split_once('{') {
        Some((before, rest)) => {
            let (inner, after) = rest.split_once('}').unwrap_or((rest, ""));
            let all = inner.split(',').map(|one| format!("{before}{one}{after}"));
            all.collect()
        }
        None => vec![word.to_owned()],
    })
}

/// Whether there is such a file or folder. The last part of the path may have a `*`, for anything.
fn exists(root: &Path, path: &str) -> bool {
    let Some((before, after)) = path.split_once('*') else {
        return root.join(path).exists();
    };
    let (folder, begin) = before.rsplit_once('/').unwrap();
    let names = fs::read_dir(root.join(folder)).into_iter().flatten();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.any(|name| {
        name.strip_prefix(begin)
            .is_some_and(|rest| rest.ends_with(after))
    })
}

/// Pages name files of the source, and the source names pages: all of them exist.
#[test]
fn named_files_exist() {
    const FOLDERS: &[&str] = &["benches", "cli", "docs", "sql", "src", "tests"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut in_pages, mut in_code, mut missing) = (0, 0, vec![]);
    let mut look = |file: &Path, folders: &[&str]| {
        let text = fs::read_to_string(file).unwrap();
        let mut count = 0;
        for path in named(&text, folders) {
            count += 1;
            if !exists(root, &path) {
                missing.push(format!("{}: {path}", file.display()));
            }
        }
        count
    };
    for page in pages() {
        in_pages += look(&page, FOLDERS);
    }
    for folder in ["benches", "cli/src", "src"] {
        for extension in ["py", "rs"] {
            for file in files::below(&root.join(folder), extension) {
                in_code += look(&file, &["docs"]);
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(in_pages > 200, "only {in_pages} paths are in pages");
    assert!(in_code > 50, "only {in_code} paths are in code");
}

/// The page on architecture tells what each operator of the crate is for.
#[test]
fn operators_are_described() {
    let architecture = page("architecture");
    let mut operators = 0;
    for file in files::below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs") {
        let text = fs::read_to_string(&file).unwrap();
        for (_, rest) in text
            .match_indices("\nimpl ExecutionPlan for ")
            .map(|(at, found)| text.split_at(at + found.len()))
        {
            let name = rest.split(' ').next().unwrap();
            assert!(
                architecture.contains(&format!("\n| `{name}` |")),
                "{}: {name}",
                file.display()
            );
            operators += 1;
        }
    }
    assert!(operators > 10, "only {operators} operators are found");
}

#[test]
fn missing_files_are_seen() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text =
        "see `src/{lib,error}.rs`, (tests/suite/no.rs) and src/lib*, not /src/x or other/src.";
    let found: Vec<_> = named(text, &["src", "tests"]).collect();
    let there: Vec<_> = found.iter().map(|path| exists(root, path)).collect();
    assert_eq!(
        found,
        [
            "src/lib.rs",
            "src/error.rs",
            "tests/suite/no.rs",
            "src/lib*"
        ]
    );
    assert_eq!(there, [true, true, false, true]);
    assert!(!exists(root, "src/nothing*.rs"));
}
