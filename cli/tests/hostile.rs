//! Paths under which the program would overwrite what it reads or publish what is for the publisher, and names of columns and
//! files that would be taken for something else.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn anonymize(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command.current_dir(folder).env_remove("RUST_LOG");
    command.args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(output: &Output) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

/// All files below a folder, with what they hold.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(files(&path));
        } else if let Ok(bytes) = fs::read(&path) {
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

/// A folder with `in.parquet`, `data/a.parquet`, and links to both.
#[cfg(unix)]
fn inputs() -> tempfile::TempDir {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let copy =
        "COPY (SELECT * FROM sample_patients(individuals => 100, seed => 1)) TO 'in.parquet'";
    ok(anonymize(folder.path(), &["sql", "-q", "-c", copy]));
    let at = |name: &str| folder.path().join(name);
    for name in ["data", "hierarchies"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::copy(at("in.parquet"), at("data/a.parquet")).unwrap();
    fs::write(at("hierarchies/sex.csv"), "M,*\nF,*\n").unwrap();
    symlink("data", at("linked")).unwrap();
    symlink("in.parquet", at("link.parquet")).unwrap();
    fs::hard_link(at("in.parquet"), at("hard.parquet")).unwrap();
    folder
}

/// A job with some lines before and after its publication.
fn job(folder: &Path, before: &str, publish: &str, after: &str) {
    let target = match before.contains("target") {
        true => "",
        false => "target = 'out'\n",
    };
    let input = match before.contains("input.p") {
        true => "",
        false => "input.p = 'in.parquet'\n",
    };
    let job = format!(
        "{target}{input}{before}\n[publish]\nfunction = 'anonymize_eir'\nid = 'patient_id'\nqi = ['sex', 'birth_year']\n\
         sensitive = 'diagnosis'\nl = 2\n{publish}\n{after}\n"
    );
    fs::write(folder.join("job.toml"), job).unwrap();
}

/// A report replaces reports only, and lies neither in the release nor in the ledger nor among what the job reads.
#[cfg(unix)]
#[test]
fn a_report_replaces_nothing_else() {
    let folder = inputs();
    let here = folder.path().to_str().unwrap().to_owned();
    let ledger =
        |folder: &str| format!("[ledger]\nfolder = '{folder}'\nkey = '0123456789abcdef'\n");
    let in_here = format!("{here}/in.parquet");
    let target_url = format!("target = 'file://{here}/out'");
    let cases = [
        // Files that are there.
        ("", "", "", "in.parquet", "holds something else"),
        ("", "", "", "./new/../in.parquet", "holds something else"),
        ("", "", "", in_here.as_str(), "holds something else"),
        ("", "", "", "link.parquet", "holds something else"),
        ("", "", "", "hard.parquet", "holds something else"),
        ("", "", "", "job.toml", "holds something else"),
        (
            "",
            "hierarchy.sex = 'hierarchies/sex.csv'",
            "",
            "hierarchies/sex.csv",
            "holds something else",
        ),
        (
            "population = { path = 'data/a.parquet', id = 'patient_id' }",
            "",
            "",
            "data/a.parquet",
            "holds something else",
        ),
        ("", "", "", "data", "is no file"),
        ("", "", "", "/dev/null", "is no file"),
        // Files that would become a part of what is read.
        ("input.p = 'data'", "", "", "data/report.html", "in a table"),
        (
            "input.p = 'data/'",
            "",
            "",
            "linked/report.html",
            "in a table",
        ),
        (
            "input.p = 'linked/'",
            "",
            "",
            "data/below/report.html",
            "in a table",
        ),
        (
            "input.p = 'data/*.parquet'",
            "",
            "",
            "data/report.parquet",
            "in a table",
        ),
        (
            "input.p = { sql = \"SELECT * FROM 'data/'\" }",
            "",
            "",
            "data/report.html",
            "in a table",
        ),
        (
            "query = \"SELECT * FROM p WHERE patient_id IN (SELECT patient_id FROM 'data/')\"",
            "",
            "",
            "data/report.html",
            "in a table",
        ),
        (
            "population = { path = 'data/', id = 'patient_id' }",
            "",
            "",
            "data/report.html",
            "in a table",
        ),
        (
            "",
            "hierarchy.sex = 'hierarchies/'",
            "",
            "hierarchies/report.html",
            "in a table",
        ),
        // Files that would be published, or taken for an entry.
        ("", "", "", "out/report.html", "in the target"),
        ("", "", "", "new/../out/report.html", "in the target"),
        ("", "", "", "out", "in the target"),
        ("target = 'out/2026'", "", "", "out", "in the target"),
        (
            target_url.as_str(),
            "",
            "",
            "out/report.html",
            "in the target",
        ),
        (
            "target = 'linked/out'",
            "",
            "",
            "data/out/report.html",
            "in the target",
        ),
        ("", "", "led", "led/report.html", "in the ledger"),
        // Other places.
        ("", "", "", "s3://bucket/report.html", "is a URL"),
        ("", "", "", "", "is empty"),
        ("", "", "", " ", "is empty"),
        // A release and a ledger among what is read, and in each other.
        (
            "target = 'linked/out'\ninput.p = 'data/'",
            "",
            "",
            "report.html",
            "lie in each other",
        ),
        (
            "target = 'data/out'\ninput.p = 'linked/'",
            "",
            "",
            "report.html",
            "lie in each other",
        ),
        ("", "", "out/led", "report.html", "lie in each other"),
        (
            "input.p = 'data/'",
            "",
            "linked",
            "report.html",
            "the ledger lies in the input",
        ),
    ];
    for (before, publish, led, file, expected) in cases {
        let led = if led.is_empty() {
            String::new()
        } else {
            ledger(led)
        };
        job(
            folder.path(),
            before,
            publish,
            &format!("{led}[report]\nfile = '{file}'"),
        );
        let there = files(folder.path());
        let said = refused(&anonymize(folder.path(), &["run", "job.toml"]));
        assert!(said.contains(expected), "{before} {file}: {said}");
        assert_eq!(files(folder.path()), there, "{before} {file}");
        assert!(!folder.path().join("out").exists(), "{before} {file}");
    }
    // Beside all of this, and in place of an earlier one in any format, also behind a link.
    job(
        folder.path(),
        "input.p = 'data/*.parquet'",
        "",
        "[report]\nfile = 'data/report.html'",
    );
    std::os::unix::fs::symlink("data/report.html", folder.path().join("report.html")).unwrap();
    let report = folder.path().join("data/report.html");
    for (target, file, format, beginning) in [
        ("target=one", "data/report.html", "html", "<!doctype html>"),
        ("target=two", "data/report.html", "md", "# Release report: "),
        ("target=three", "report.html", "json", "{\n  \"manifest\""),
        ("target=four", "report.html", "html", "<!doctype html>"),
    ] {
        let file = format!("report.file={file}");
        let format = format!("report.format={format}");
        let settings = [
            "run", "job.toml", "--set", target, "--set", &file, "--set", &format,
        ];
        ok(anonymize(folder.path(), &settings));
        assert!(fs::read_to_string(&report).unwrap().starts_with(beginning));
    }
    assert!(folder.path().join("report.html").is_symlink());
}

/// The same for the plots of `plan` and the jobs of `init`.
#[cfg(unix)]
#[test]
fn plots_and_jobs_replace_nothing_else() {
    let folder = inputs();
    job(folder.path(), "input.p = 'data/'", "", "");
    let there = files(folder.path());
    for (file, expected) in [
        ("in.parquet", "holds something else"),
        ("link.parquet", "holds something else"),
        ("job.toml", "holds something else"),
        ("linked/plan.svg", "in a table"),
        ("out/plan.svg", "in the target"),
        ("https://x/plan.svg", "is a URL"),
    ] {
        let said = refused(&anonymize(
            folder.path(),
            &["plan", "job.toml", "--plot", file],
        ));
        assert!(
            said.contains(&format!("--plot {expected}")) || said.contains(expected),
            "{file}: {said}"
        );
    }
    for (table, file, expected) in [
        ("in.parquet", "in.parquet", "lies in the table"),
        ("in.parquet", "link.parquet", "lies in the table"),
        ("data", "linked/job.toml", "lies in the table"),
        ("data/*.parquet", "data/b.parquet", "lies in the table"),
        ("in.parquet", "job.toml", "cannot write"),
    ] {
        let said = refused(&anonymize(folder.path(), &["init", table, "-o", file]));
        assert!(said.contains(expected), "{file}: {said}");
    }
    assert_eq!(files(folder.path()), there);
    for _ in 0..2 {
        let plan = ["plan", "job.toml", "--sample", "50", "--vary", "l=2"];
        ok(anonymize(folder.path(), &plan));
    }
}

/// Names that would be keys of a job, an option of the terminal, markup, a link, a variable of the environment, or two names.
const ID: &str = "patient_id\n[publish]\nl = 1 #";
const AGE: &str = "age \u{1b}[31m|`x`\r\n| a | b |";
const SEX: &str = "sex \"x\\ </title><script>alert(1)</script>";
const YEAR: &str = "year ${PATH} $${PATH} \u{202e}";
const DISEASE: &str = "diagnosis' ](http://evil.example) **b**, \"y \u{7f}\u{2028} ";

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a text acts on a terminal or the text around it.
fn acts(text: &str) -> bool {
    let acts = |c: char| c != '\n' && (c.is_control() || ['\u{202e}', '\u{2028}'].contains(&c));
    text.contains(acts)
}

#[test]
fn names_stay_names_from_the_job_to_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let table = "in put's \"x\" ${PATH}.parquet";
    let copy = format!(
        "COPY (SELECT 'p' || value AS {}, 20 + value % 40 AS {}, CASE WHEN value % 2 = 0 THEN 'F<b>' ELSE 'M|`x' END AS {}, \
         1950 + value % 30 AS {}, 'd' || (value % 12) AS {}, named_struct('a\n# b', 1) AS other FROM range(0, 300)) TO '{}'",
        quoted(ID),
        quoted(AGE),
        quoted(SEX),
        quoted(YEAR),
        quoted(DISEASE),
        table.replace('\'', "''")
    );
    ok(anonymize(folder.path(), &["sql", "-q", "-c", &copy]));
    ok(anonymize(folder.path(), &["init", table, "-o", "job.toml"]));
    let job = fs::read_to_string(at("job.toml")).unwrap();
    assert!(!acts(&job), "{job}");
    let parsed: toml::Table = job.parse().unwrap();
    let keys = |table: &str| -> Vec<&String> { parsed[table].as_table().unwrap().keys().collect() };
    assert_eq!(keys("publish"), ["function", "l"]);
    assert_eq!(keys("input"), ["table"]);
    assert_eq!(parsed.len(), 4, "{job}");

    // With the suggestions taken it means the same columns.
    let mut decided = job;
    for key in ["id", "qi", "sensitive"] {
        decided = decided.replace(&format!("\n# {key} ="), &format!("\n{key} ="));
    }
    fs::write(at("job.toml"), &decided).unwrap();
    let planned = anonymize(
        folder.path(),
        &["plan", "job.toml", "--sample", "100", "--vary", "l=2"],
    );
    ok(planned);
    for format in ["html", "md", "json"] {
        let target = format!("target=as {format}");
        let run = ["run", "job.toml", "--format", format, "--set", &target];
        let said = anonymize(folder.path(), &run);
        assert!(!acts(&text(&said.stderr)), "{said:?}");
        ok(said);
        let manifest = fs::read(at(&format!("as {format}/manifest.json"))).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["roles"]["qi"], serde_json::json!([AGE, SEX, YEAR]));
        assert_eq!(manifest["roles"]["sensitive"], serde_json::json!([DISEASE]));
        let report = fs::read_to_string(at(&format!("job.report.{format}"))).unwrap();
        if format == "json" {
            serde_json::from_str::<serde_json::Value>(&report).unwrap();
            continue;
        }
        assert!(!acts(&report), "{format}");
        for markup in ["<script", "F<b>", "](http://evil", "**b**", "|`x"] {
            let text = format == "html" && !markup.contains('<');
            assert!(
                text || !report.contains(markup) || report.contains(&format!("\\{markup}")),
                "{format}: {markup}"
            );
        }
        assert!(report.contains("alert(1)"), "{format}");
    }
    // Every row of a table in the text has the cells of its head.
    let report = fs::read_to_string(at("job.report.md")).unwrap();
    let mut cells = None;
    for line in report.lines() {
        let bars = line
            .replace("\\\\", "")
            .replace("\\|", "")
            .matches('|')
            .count();
        if !line.starts_with('|') {
            assert_eq!(bars, 0, "{line}");
            cells = None;
        } else {
            assert_eq!(*cells.get_or_insert(bars), bars, "{line}");
        }
    }

    // What is printed about columns, and of a name that is not there.
    let manifest = fs::read(at("as md/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let published = manifest["files"][0]["path"].as_str().unwrap();
    let published = format!("as md/{published}");
    let qi = format!("{AGE},{SEX},{YEAR}");
    let compare = [
        "compare",
        table,
        published.as_str(),
        "--id",
        "individual",
        "--original-id",
        ID,
        "--qi",
        &qi,
    ];
    let said = ok(anonymize(folder.path(), &compare));
    assert!(said.contains("age \\u{1b}[31m") && !acts(&said), "{said}");
    let audit = [
        "audit",
        published.as_str(),
        "--id",
        "individual",
        "--qi",
        "none\u{1b}[2J",
        "--sensitive",
        DISEASE,
    ];
    let said = refused(&anonymize(folder.path(), &audit));
    assert!(said.contains("none\\u{1b}[2J") && !acts(&said), "{said}");
}
