//! The program as others meet it: arguments, standard streams, exit codes.

#![allow(clippy::expect_used)] // a test that cannot start the program has failed

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

mod golden;

#[path = "../../tests/suite/files.rs"]
#[allow(clippy::unwrap_used)] // a test that cannot read the pages has failed
mod files;

const SAMPLE: &str = "sample_patients(individuals => 300, seed => 1)";

#[test]
fn help_of_the_program() {
    insta::assert_snapshot!(stdout(&anonymize(&["--help"])));
}

#[test]
fn help_of_sql() {
    insta::assert_snapshot!(stdout(&anonymize(&["sql", "--help"])));
}

#[test]
fn help_of_demo() {
    insta::assert_snapshot!(stdout(&anonymize(&["demo", "--help"])));
}

#[test]
fn version() {
    let version = stdout(&anonymize(&["--version"]));
    assert_eq!(
        version.trim(),
        concat!("anonymize ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn no_command_and_unknown_flags_are_wrong_usage() {
    for args in [
        &[][..],
        &["sql", "--no-such-flag"],
        &["demo", "--l", "1"],
        &["dem"],
    ] {
        let output = anonymize(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
    }
    for args in [
        &["sql", "-c", ""][..],
        &["sql", "-f", "no-such-file.sql"],
        &["sql", "-p", "no-such-folder"],
        &["sql", "-m", "much"],
        &["sql", "-b", "0"],
        &["sql", "--format", "xml"],
    ] {
        let output = anonymize(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn formats() {
    let query = "SELECT 1 AS a, 'x,y' AS b UNION ALL SELECT 2, NULL ORDER BY a";
    let print = |format| stdout(&succeeds(&["sql", "-q", "--format", format, "-c", query]));
    assert_eq!(print("csv"), "a,b\n1,\"x,y\"\n2,\n");
    assert_eq!(print("tsv"), "a\tb\n1\tx,y\n2\t\n");
    assert_eq!(print("json"), "[{\"a\":1,\"b\":\"x,y\"},{\"a\":2}]\n");
    assert_eq!(print("nd-json"), "{\"a\":1,\"b\":\"x,y\"}\n{\"a\":2}\n");
    let table = "\
+---+------+
| a | b    |
+---+------+
| 1 | x,y  |
| 2 | NULL |
+---+------+
";
    assert_eq!(print("table"), table);
    assert_eq!(print("automatic"), table);
}

/// Rows of ours that cannot all be made: the last records have no id.
const FAILS: &str = "SELECT * FROM anonymize_eir((SELECT CASE WHEN value < 90000 THEN value END AS id, value % 40 AS age, \
    value % 7 AS disease FROM range(0, 90010)), id => id, qi => [age], sensitive => disease, l => 2, notation => 'text')";

#[cfg(unix)]
#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| path(&folder.path().join(name)).to_owned();
    std::fs::write(at("old.csv"), "kept\n").unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    std::fs::write(at("folder/old.csv"), "kept\n").unwrap();
    let names = || -> BTreeSet<_> {
        let inner = below(&folder.path().join("folder"));
        below(folder.path()).into_iter().chain(inner).collect()
    };
    let before = names();
    for target in ["new.parquet", "new.csv", "old.csv", "folder/", "newfolder/"] {
        let sql = format!("COPY ({FAILS}) TO '{}' STORED AS CSV", at(target));
        let output = anonymize(&["sql", "-c", &sql]);
        assert_eq!(output.status.code(), Some(1), "{target}");
        assert!(
            stderr(&output).contains("is NULL in at least 10 records"),
            "{target}: {}",
            stderr(&output)
        );
        assert_eq!(names(), before, "{target}");
    }
    for kept in ["old.csv", "folder/old.csv"] {
        assert_eq!(std::fs::read_to_string(at(kept)).unwrap(), "kept\n");
    }
    // One that succeeds replaces what it names, and leaves nothing else.
    let works = FAILS.replace("90010", "90000");
    succeeds(&[
        "sql",
        "-c",
        &format!("COPY ({works}) TO '{}'", at("old.csv")),
    ]);
    assert_ne!(std::fs::read_to_string(at("old.csv")).unwrap(), "kept\n");
    assert_eq!(names(), before);
}

#[test]
fn csv_has_no_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder.path().join("out.csv")).to_owned();
    let typed = FAILS
        .replace("90010", "90000")
        .replace(", notation => 'text'", "");
    let copied = anonymize(&["sql", "-c", &format!("COPY ({typed}) TO '{file}'")]);
    let printed = anonymize(&["sql", "--format", "csv", "-c", &typed]);
    for output in [copied, printed] {
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("column 'age' has intervals or sets, and CSV has no form for them; write notation => 'text'"), "{said}");
        assert!(stdout(&output).is_empty());
    }
    assert_eq!(entries(folder.path()), 0);
}

#[test]
fn results_without_rows_keep_their_form() {
    let query = "SELECT 1 AS a, 2 AS b WHERE false";
    let print = |format| stdout(&succeeds(&["sql", "-q", "--format", format, "-c", query]));
    assert_eq!(print("csv"), "a,b\n");
    assert_eq!(print("json"), "[]\n");
    assert_eq!(print("nd-json"), "");
    let create = [
        "sql",
        "-q",
        "--format",
        "json",
        "-c",
        "CREATE VIEW v AS SELECT 1",
    ];
    assert_eq!(stdout(&succeeds(&create)), "");
}

#[test]
fn only_results_are_on_stdout() {
    let output = succeeds(&["sql", "--format", "csv", "-c", "SELECT 1 AS a"]);
    assert_eq!(stdout(&output), "a\n1\n");
    assert!(stderr(&output).starts_with("1 row(s) fetched."));
    let quiet = succeeds(&["sql", "-q", "--format", "csv", "-c", "SELECT 1 AS a"]);
    assert_eq!(
        (stdout(&quiet), stderr(&quiet)),
        ("a\n1\n".into(), String::new())
    );
}

#[test]
fn tables_are_cut_at_maxrows_other_formats_are_not() {
    let query = "SELECT value FROM generate_series(1, 30000)";
    let table = succeeds(&["sql", "--maxrows", "3", "-c", query]);
    assert_eq!(stdout(&table).lines().count(), 3 + 3 + 3 + 1);
    assert!(stderr(&table).contains("First 3 displayed"));
    let csv = stdout(&succeeds(&[
        "sql",
        "--maxrows",
        "3",
        "--format",
        "csv",
        "-c",
        query,
    ]));
    assert_eq!(csv.lines().count(), 30_001);
    let settings = stdout(&succeeds(&["sql", "--maxrows", "3", "-c", "SHOW ALL"]));
    assert!(settings.lines().count() > 50);
}

#[test]
fn the_first_failing_statement_is_the_last() {
    let script = "SELECT 1 AS one; SELECT no_such_column; SELECT 3 AS three";
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("script.sql");
    fs::write(&file, script.replace("; ", ";\n")).expect("script");
    let (file, csv) = (path(&file), "csv");

    for output in [
        anonymize(&["sql", "-q", "--format", csv, "-c", script]),
        anonymize(&[
            "sql",
            "-q",
            "--format",
            csv,
            "-c",
            "SELECT 1 AS one",
            "-c",
            &script[17..],
        ]),
        anonymize(&["sql", "-q", "--format", csv, "-f", file]),
        piped(&["sql", "-q", "--format", csv], script),
    ] {
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stdout(&output), "one\n1\n");
        assert!(
            stderr(&output).starts_with("error: "),
            "{}",
            stderr(&output)
        );
        assert!(stderr(&output).contains("no_such_column"));
    }
}

#[test]
fn a_syntax_error_stops_a_script_before_it_begins() {
    let output = anonymize(&["sql", "-q", "-c", "SELECT 1; SELEC 2"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).starts_with("error: "));
}

#[test]
fn files_run_before_commands_and_may_name_an_interpreter() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("view.sql");
    fs::write(
        &file,
        "#!/usr/bin/env -S anonymize sql -f\n-- a view\nCREATE VIEW v AS SELECT 7 AS a",
    )
    .expect("script");
    let output = succeeds(&[
        "sql",
        "-q",
        "--format",
        "csv",
        "-c",
        "SELECT * FROM v",
        "-f",
        path(&file),
    ]);
    assert_eq!(stdout(&output), "a\n7\n");
}

#[test]
fn data_path_is_where_tables_are_found() {
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("t.csv"), "a\n5\n").expect("table");
    let query = "SELECT a FROM 't.csv'";
    let args = [
        "sql",
        "-q",
        "--format",
        "csv",
        "-p",
        path(folder.path()),
        "-c",
        query,
    ];
    assert_eq!(stdout(&succeeds(&args)), "a\n5\n");
}

#[test]
fn standard_input_can_carry_data() {
    let query =
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/dev/stdin'; SELECT sum(a) AS s FROM t";
    let output = piped(&["sql", "-q", "--format", "csv", "-c", query], "a\n1\n2\n");
    assert_eq!(stdout(&output), "s\n3\n", "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_panic() {
    for args in [
        &[
            "sql",
            "--format",
            "csv",
            "-c",
            "SELECT value FROM generate_series(1, 1000000)",
        ][..],
        &["sql", "-c", "SELECT 1"],
        &["demo", "--individuals", "100"],
    ] {
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("end");
        assert_eq!(
            output.status.code(),
            Some(141),
            "{args:?} {}",
            stderr(&output)
        );
        let said = stderr(&output);
        assert!(!said.contains("mistake in the program"), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_program_at_once() {
    let query = "SELECT count(*) FROM generate_series(1, 1000000000000) WHERE value % 7 = 8";
    let child = command(&["sql", "-c", query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    std::thread::sleep(Duration::from_secs(2));
    signal("INT", &child);
    let output = child.wait_with_output().expect("end");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(stdout(&output), "");
}

/// Records of more individuals than the memory holds. An option of the runtime gives the engine other folders.
const SPILLING: &str = "SET datafusion.runtime.max_spill_merge_fan_in = 8; \
    SET datafusion.execution.sort_spill_reservation_bytes = 1000000; \
    SELECT * FROM anonymize_eir(sample_patients(100000), id => patient_id, qi => [birth_year, sex, race], \
    sensitive => diagnosis, l => 3, block => 1000)";

/// A program that has begun to spill into a folder.
#[cfg(unix)]
fn spilling(folder: &Path) -> std::process::Child {
    let memory = ["-m", "24m", "--mem-pool-type", "fair"];
    let before = below(folder);
    let child = command(&["sql", "-q", "-c", SPILLING])
        .args(memory)
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start");
    let begin = Instant::now();
    // A program has a folder of its own, and the engine one in that.
    let spilled = || {
        let own = below(folder).into_iter().filter(|f| !before.contains(f));
        own.flat_map(|f| below(&f)).any(|f| entries(&f) > 0)
    };
    while !spilled() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "nothing was spilled"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// Spilled records are as secret as the input.
#[cfg(unix)]
#[test]
fn signals_leave_no_spilled_file() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let folder = tempfile::tempdir().expect("folder");
        let child = spilling(folder.path());
        signal(name, &child);
        let sent = Instant::now();
        let output = child.wait_with_output().expect("end");
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(sent.elapsed() < Duration::from_secs(10), "it did not end");
        assert_eq!(stderr(&output), "", "{name}");
        assert_eq!(entries(folder.path()), 0, "{name} left something behind");
    }
}

/// Nobody can clean up after being killed: the next program does, and leaves those alone that live.
#[cfg(unix)]
#[test]
fn what_a_killed_program_spilled_is_removed_by_the_next() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("folder");
    let of = |name: &str| folder.path().join(name);
    // Not ours: another name, no lock, or a link to somewhere else.
    let elsewhere = tempfile::tempdir().expect("folder");
    fs::write(elsewhere.path().join("spill.lock"), "").expect("file");
    fs::create_dir(of("other")).expect("folder");
    fs::write(of("other").join("spill.lock"), "").expect("file");
    fs::create_dir(of("anonymize-notes")).expect("folder");
    std::os::unix::fs::symlink(elsewhere.path(), of("anonymize-link")).expect("link");
    let others = entries(folder.path());

    let mut killed = spilling(folder.path());
    signal("STOP", &killed);
    let found = fs::read_dir(folder.path()).expect("folder").flatten();
    let strange = |name: &str| ["other", "anonymize-notes", "anonymize-link"].contains(&name);
    let own = found.map(|entry| entry.path());
    let own: Vec<_> = own
        .filter(|path| !strange(&path.file_name().unwrap_or_default().to_string_lossy()))
        .collect();
    let mode = fs::metadata(&own[0]).expect("folder").permissions().mode();
    assert_eq!((own.len(), mode & 0o777), (1, 0o700));
    let mut alive = spilling(folder.path());
    signal("STOP", &alive);
    assert_eq!(entries(folder.path()), others + 2);
    killed.kill().expect("kill");
    killed.wait().expect("end");
    assert_eq!(entries(folder.path()), others + 2, "it could not clean up");
    let next = |expected: usize| {
        let output = command(&["sql", "-q", "-c", "SELECT 1"])
            .env("TMPDIR", folder.path())
            .output();
        assert!(output.expect("the program starts").status.success());
        assert_eq!(entries(folder.path()), others + expected);
    };
    next(1);
    assert!(alive.try_wait().expect("a child").is_none(), "it lives");
    alive.kill().expect("kill");
    alive.wait().expect("end");
    next(0);
}

#[test]
fn other_ends_leave_no_temporary_file() {
    let folder = tempfile::tempdir().expect("folder");
    let run = |sql: &str| {
        let mut command = command(&["sql", "-q", "--format", "csv", "-c", sql]);
        let output = command.env("TMPDIR", folder.path()).output();
        output.expect("the program starts").status.code()
    };
    assert_eq!(run("SELECT 1"), Some(0));
    assert_eq!(run("SELECT no_such_column"), Some(1));
    let mut child = command(&["sql", "-c", "SELECT value FROM generate_series(1, 1000000)"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    drop(child.stdout.take());
    child.wait().expect("end");
    assert_eq!(entries(folder.path()), 0);
}

#[cfg(unix)]
fn signal(name: &str, child: &std::process::Child) {
    let kill = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[cfg(unix)]
fn below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn sample_patients_are_the_same_for_the_same_seed() {
    let query = format!("SELECT * FROM {SAMPLE} ORDER BY patient_id, diagnosis");
    let print = |batch_size| {
        stdout(&succeeds(&[
            "sql", "-q", "--format", "csv", "-b", batch_size, "-c", &query,
        ]))
    };
    let rows = print("8192");
    assert!(rows.starts_with(
        "patient_id,birth_month,birth_year,sex,race,education_years,marital_status,poverty,hispanic,\
         ward,visit_date,diagnosis\n"
    ));
    assert_eq!(rows, print("100"));
}

#[test]
fn anonymized_classes_have_at_least_l_individuals() {
    let query = format!(
        "SELECT min(n) >= 3 AS safe, sum(n) <= 300 AS nobody_twice FROM (\
           SELECT count(DISTINCT individual) AS n FROM anonymize_eir((SELECT * FROM {SAMPLE}), \
             id => patient_id, qi => [birth_year, sex], sensitive => diagnosis, l => 3, notation => 'text') \
           GROUP BY birth_year, sex)"
    );
    let output = succeeds(&["sql", "-q", "--format", "csv", "-c", &query]);
    assert_eq!(stdout(&output), "safe,nobody_twice\ntrue,true\n");
}

#[test]
fn demo_writes_parquet_and_explains() {
    let folder = tempfile::tempdir().expect("folder");
    let target = folder.path().join("published");
    let args = [
        "demo",
        "--individuals",
        "500",
        "--seed",
        "5",
        "--output",
        path(&target),
    ];

    let output = succeeds(&args);
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    for part in [
        "Before: 500 ",
        "After: ",
        "What is guaranteed",
        "What it cost",
        "anonymize_eir(",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let files = fs::read_dir(&target).expect("written");
    assert!(
        files
            .flatten()
            .all(|file| file.path().extension().is_some_and(|e| e == "parquet"))
    );
    let count = format!(
        "SELECT count(DISTINCT individual) > 0 AS some FROM '{}/'",
        path(&target)
    );
    let some = succeeds(&["sql", "-q", "--format", "csv", "-c", &count]);
    assert_eq!(stdout(&some), "some\ntrue\n");

    let again = anonymize(&args);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(stdout(&again), "");
    assert!(
        stderr(&again).starts_with("error: the output folder"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_failed_demo_leaves_no_files() {
    let folder = tempfile::tempdir().expect("folder");
    let target = folder.path().join("published");
    // Two patients can never make a class with 100 different diagnoses.
    let output = anonymize(&[
        "demo",
        "--individuals",
        "2",
        "--l",
        "100",
        "--output",
        path(&target),
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).starts_with("error: "));
    assert!(!target.exists());
}

/// A folder with the files that the pages speak of.
fn folder_of_the_examples(root: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| folder.path().join(name);
    fs::create_dir_all(inside("sql")).expect("a folder");
    fs::create_dir_all(inside("docs")).expect("a folder");
    for file in ["sql/patients.sql", "docs/patients.toml"] {
        fs::copy(root.join(file), inside(file)).expect("a file");
    }
    for target in ["visits.parquet", "visits/part.parquet"] {
        let query = format!(
            "COPY (SELECT patient_id AS patient, birth_year AS age, sex, race AS postcode, diagnosis AS disease FROM {SAMPLE}) \
             TO '{}'",
            inside(target).display()
        );
        succeeds(&["sql", "-c", &query]);
    }
    folder
}

#[test]
fn warnings_are_on_stderr() {
    let query = "SELECT * FROM anonymize_eir((SELECT * FROM (VALUES ('a', 30, 'HIV'), ('b', 31, 'hiv '), ('c', 32, 'Flu')) \
                 AS t(id, age, disease)), id => id, qi => [age], sensitive => disease, l => 2, seed => 1)";
    let output = succeeds(&["sql", "-q", "--format", "json", "-c", query]);
    let warning = stderr(&output);
    assert!(
        warning.starts_with("warning: anonymize_eir: sensitive column 'disease' counts 1 more"),
        "{warning}"
    );
    assert!(
        !warning.contains("HIV") && !warning.contains("hiv"),
        "{warning}"
    );
}

/// Every line of a shell block in README and docs that calls the program runs as printed.
#[test]
fn commands_in_pages_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = files::below(&root.join("docs"), "md");
    pages.push(root.join("README.md"));
    let mut commands = 0;
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for block in text.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            if !block.contains("anonymize ") || block.contains("cargo test") {
                continue;
            }
            let program = env!("CARGO_BIN_EXE_anonymize");
            let script = block
                .replace("cargo run --bin anonymize -- ", &format!("{program} "))
                .replace("\nanonymize ", &format!("\n{program} "));
            let script = match script.strip_prefix("anonymize ") {
                Some(rest) => format!("{program} {rest}"),
                None => script,
            };
            let folder = folder_of_the_examples(&root);
            let status = Command::new("bash")
                .args(["-euc", &script])
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(
                status.is_ok_and(|s| s.success()),
                "{}: {block}",
                page.display()
            );
            commands += 1;
        }
    }
    assert!(commands >= 2, "only {commands} commands found");
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command.args(args).stdin(Stdio::null());
    command
}

fn anonymize(args: &[&str]) -> Output {
    command(args).output().expect("the program starts")
}

fn succeeds(args: &[&str]) -> Output {
    let output = anonymize(args);
    assert!(output.status.success(), "{args:?}\n{}", stderr(&output));
    output
}

/// Runs the program with text on its standard input.
fn piped(args: &[&str], input: &str) -> Output {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn help_of_audit() {
    insta::assert_snapshot!(stdout(&anonymize(&["audit", "--help"])));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(stdout(&anonymize(&["run", "--help"])));
}

#[test]
fn help_of_plan() {
    insta::assert_snapshot!(stdout(&anonymize(&["plan", "--help"])));
}

#[test]
fn help_of_init() {
    insta::assert_snapshot!(stdout(&anonymize(&["init", "--help"])));
}

#[test]
fn help_of_compare() {
    insta::assert_snapshot!(stdout(&anonymize(&["compare", "--help"])));
}

/// A table made elsewhere, row by row: each class has four records, but one of them one individual only.
const ELSEWHERE: &str = "\
who,age,sex,disease
1,30-39,*,Flu
2,30-39,*,HIV
3,30-39,*,Cancer
4,30-39,*,Asthma
5,40-49,F,Flu
5,40-49,F,HIV
5,40-49,F,Cancer
5,40-49,F,Asthma
";

#[test]
fn audit_of_a_table_made_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("published.csv");
    fs::write(&file, ELSEWHERE).expect("a file");
    let file = file.to_str().expect("a path");
    let by = |id: &[&str], more: &[&str]| {
        let common = ["audit", file, "--qi", "age,sex", "--sensitive", "disease"];
        anonymize(&[&common[..], id, more].concat())
    };
    // By rows all is well, by individuals it is not.
    let rows = ["--one-row-per-individual"];
    let output = by(&rows, &["--require", "k=4", "--require", "eir_l=4"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = by(
        &["--id", "who"],
        &["--require", "k=4", "--require", "eir_l=4"],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("error: k must be at least 4, but is 1"),
        "{said}"
    );
    assert!(
        said.contains("error: eir_l must be at least 4, but is 1"),
        "{said}"
    );
    let printed = stdout(&output);
    let k = printed.lines().find(|line| line.starts_with("  k "));
    assert!(k.is_some_and(|k| k.contains(" 1 ")), "{printed}");

    let json = stdout(&by(&["--id", "who"], &["--format", "json", "--l", "2"]));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = json.as_array().expect("an array");
    let value = |measure: &str| {
        let row = rows.iter().find(|row| row["measure"] == measure);
        row.and_then(|row| row["value"].as_f64())
    };
    assert_eq!(value("k"), Some(1.0));
    assert_eq!(value("k_records"), Some(4.0));
    assert_eq!(value("vulnerable_classes"), Some(0.0));

    // Under (0.5, 0.5) the class of one person is not even identity-reserved; nobody is vulnerable.
    let shares = ["--alpha", "0.5", "--beta", "0.5", "--memory-limit", "64m"];
    let output = by(&["--id", "who"], &shares);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(
        printed.contains("satisfy IR (0.5, 0.5)-anonymity"),
        "{printed}"
    );
    let tiny = by(&["--id", "who"], &["-m", "1k"]);
    assert_eq!(tiny.status.code(), Some(1));
    assert!(
        stderr(&tiny).contains("Resources exhausted"),
        "{}",
        stderr(&tiny)
    );

    let output = by(&["--id", "who"], &["--require", "kk=4"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no level 'kk'"));
    let output = by(&["--id", "whom"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("did you mean 'who'?"),
        "{}",
        stderr(&output)
    );
    for wrong in [
        &["--require", "k"][..],
        &["--format", "xml"],
        &["--k", "3"],
        &["--alpha", "0.5"],
        &["--alpha", "0.5", "--beta", "2"],
        &["--alpha", "0.5", "--beta", "0.5", "--l", "2"],
        &["--memory-limit", "much"],
    ] {
        assert_eq!(
            by(&["--id", "who"], wrong).status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
    assert_eq!(by(&[], &[]).status.code(), Some(2), "no id");
}

#[test]
fn faults_miss_every_required_level() {
    let folder = tempfile::tempdir().expect("a folder");
    let audit = |text: &str, more: &[&str]| {
        let file = folder.path().join("published.csv");
        fs::write(&file, text).expect("a file");
        let file = file.to_str().expect("a path");
        let roles = ["--id", "who", "--qi", "age", "--sensitive", "disease"];
        anonymize(&[&["audit", file][..], &roles, more].concat())
    };
    let nameless = "who,age,disease\n1,30,Flu\n2,30,HIV\n,30,Cancer\n,30,Asthma\n";
    let output = audit(nameless, &["--require", "k=2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.starts_with("error: records_without_id is 2, "),
        "{said}"
    );
    let allowed = ["--require", "k=2", "--require", "records_without_id=2"];
    assert_eq!(audit(nameless, &allowed).status.code(), Some(0));
    assert_eq!(audit(nameless, &[]).status.code(), Some(0));
    let twice = "who,age,disease\n1,30,Flu\n2,30,HIV\n1,40,Flu\n3,40,HIV\n";
    let output = audit(twice, &["--require", "k=2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.starts_with("error: individuals_in_several_classes is 1, "),
        "{said}"
    );
}

#[test]
fn audit_with_categories() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("a file");
        file.to_str().expect("a path").to_owned()
    };
    let published = path("published.csv", ELSEWHERE);
    let ranks = "rank,value\n1,HIV\n1,Cancer\n2,Asthma\n3,Flu\n";
    let ranks = path("categories.csv", ranks);
    let by = |categories: &[&str], levels: &[&str]| {
        let common = [
            "audit",
            &published,
            "--qi",
            "age,sex",
            "--sensitive",
            "disease",
        ];
        let levels = levels.iter().flat_map(|level| ["--require", level]);
        let levels: Vec<_> = levels.collect();
        let alone = ["--one-row-per-individual"];
        anonymize(&[&common[..], &alone, categories, &levels].concat())
    };
    for categories in [ranks.as_str(), "HIV,Cancer;Asthma;Flu"] {
        let categories = ["--categories", categories];
        let output = by(&categories, &["p=4", "p_plus=3", "p_alpha=1.5"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = by(&categories, &["p=5", "p_plus=3", "p_alpha=2"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            stderr(&output).trim(),
            "error: p must be at least 5, but is 4\nerror: p_alpha must be at least 2, but is 1.5"
        );
    }
    let output = by(&[], &["p_plus=3"]);
    assert!(stderr(&output).contains("there is no level 'p_plus'"));
    let output = by(&["--categories", "nowhere.csv"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("categories cannot be used"));
}

#[test]
fn compare_two_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let original = folder.path().join("original.csv");
    let published = folder.path().join("published.csv");
    fs::write(&original, "name,age,disease\na,30,x\nb,35,y\nc,40,z\n").expect("a file");
    let text = "who,age,disease\n1,\"[30, 35]\",x\n2,\"[30, 35]\",y\n";
    fs::write(&published, text).expect("a file");
    let paths = [&original, &published].map(|path| path.to_str().expect("a path"));
    let by = |more: &[&str]| {
        let common = [
            "--id",
            "who",
            "--original-id",
            "name",
            "--qi",
            "age",
            "--sensitive",
            "disease",
        ];
        anonymize(&[&["compare", paths[0], paths[1]][..], &common, more].concat())
    };
    // Two of three lose half, the third is lost in full: 2/3.
    let output = by(&["--require", "nloss=0.7"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("0.6667"), "{}", stdout(&output));
    // Of a domain from 20 to 40 they lose a quarter: (2 · 1/4 + 1) / 3.
    let output = by(&["--domain", "age=20,40", "--memory-limit", "64m"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("0.5000"), "{}", stdout(&output));
    // Everybody shows the label above the own disease, which stands for two of three.
    let diseases = folder.path().join("diseases.csv");
    fs::write(&diseases, "x;bad;*\ny;bad;*\nz;*\n").expect("a file");
    let diseases = format!("disease={}", diseases.to_str().expect("a path"));
    let broad = folder.path().join("broad.csv");
    fs::write(&broad, "name,age,disease\na,30,bad\nb,35,bad\nc,40,z\n").expect("a file");
    let same = [
        "compare",
        paths[0],
        broad.to_str().expect("a path"),
        "--id",
        "name",
        "--same-ids",
        "--qi",
        "age",
        "--sensitive",
        "disease",
        "--hierarchy",
        &diseases,
    ];
    let output = anonymize(&same);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = stdout(&output);
    let own = printed
        .lines()
        .find(|line| line.contains("sa_ncp_original"));
    assert!(own.is_some_and(|line| line.contains("0.4444")), "{printed}");
    for wrong in [&["--domain", "age"][..], &["--domain", "age="]] {
        assert_eq!(by(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let audited = anonymize(&[
        "audit",
        paths[1],
        "--id",
        "who",
        "--qi",
        "age",
        "--sensitive",
        "disease",
        "--original",
        paths[0],
        "--original-id",
        "name",
        "--require",
        "untraceable_individuals=0",
        "--require",
        "dropped_individuals=0",
    ]);
    assert_eq!(
        stderr(&audited).trim(),
        "error: dropped_individuals must be at most 0, but is 1"
    );
    let labels = folder.path().join("labels.csv");
    fs::write(&labels, "30;young;*\n35;young;*\n40;old;*\n").expect("a file");
    let labelled = folder.path().join("labelled.csv");
    fs::write(
        &labelled,
        "who,age,disease\n1,young,x\n2,young,y\n3,young,z\n",
    )
    .expect("a file");
    let labels = format!("age={}", labels.to_str().expect("a path"));
    let audited = anonymize(&[
        "audit",
        labelled.to_str().expect("a path"),
        "--id",
        "who",
        "--qi",
        "age",
        "--sensitive",
        "disease",
        "--original",
        paths[0],
        "--original-id",
        "name",
        "--hierarchy",
        &labels,
        "--require",
        "untraceable_individuals=0",
    ]);
    assert_eq!(
        stderr(&audited).trim(),
        "error: untraceable_individuals must be at most 0, but is 1"
    );
    let output = by(&["--require", "nloss=0.6", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json[0]["column"], "age");
}
