//! Jobs: from a file to a verified release, also when the program is killed.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "../../tests/suite/json_schema.rs"]
mod json_schema;

const JOB: &str = r#"
target = "out"
[input]
patients = { sql = "SELECT * FROM sample_patients(individuals => 400, seed => 1)" }
[publish]
function = "anonymize_eir"
id = "patient_id"
qi = ["sex", "birth_year"]
sensitive = "diagnosis"
l = 3
"#;

/// A job over a table in which every value can be found again.
const CANARIES: &str = r#"
target = "out"
input.people = "in.parquet"
[publish]
function = "anonymize_eir"
id = "who"
qi = ["city", "income"]
sensitive = "disease"
l = 3
seed = "seedcanary"
"#;

/// Counts in a browser the bars of each chart that have an area and a color.
const MEASURE: &str = r#"<script>
const seen = rect => {
  const box = rect.getBoundingClientRect(), fill = getComputedStyle(rect).fill;
  return box.width >= 1 && box.height >= 1 && !["none", "rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"].includes(fill);
};
const charts = [...document.querySelectorAll("svg")];
document.body.dataset.bars = charts.map(c => [...c.querySelectorAll("rect.after")].filter(seen).length).join(",");
</script>"#;

fn anonymize(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command.current_dir(folder).env_remove("RUST_LOG");
    command
}

fn job(folder: &Path) {
    fs::write(folder.join("job.toml"), JOB).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ok(output: Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

/// The manifest, with its files there in full; none if nothing is visible.
fn manifest(target: &Path) -> Option<Value> {
    let bytes = fs::read(target.join("manifest.json")).ok()?;
    let manifest: Value = serde_json::from_slice(&bytes).expect("a manifest is complete");
    for file in manifest["files"].as_array().unwrap() {
        let path = target.join(file["path"].as_str().unwrap());
        assert_eq!(
            fs::metadata(path).unwrap().len(),
            file["bytes"].as_u64().unwrap()
        );
    }
    Some(manifest)
}

#[test]
fn a_job_is_published_once_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let said = ok(anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap());
    assert!(said.starts_with("published 400 individuals"), "{said}");
    assert!(
        said.contains("EIR 3-diversity from the written bytes, and true of the input"),
        "{said}"
    );
    assert!(manifest(&folder.path().join("out")).is_some());
    let report = fs::read_to_string(folder.path().join("job.report.html")).unwrap();
    assert!(report.starts_with("<!doctype html>") && report.ends_with("</html>\n"));
    let again = anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap();
    assert!(refused(again).contains("holds a release already"));
    let other = [
        "run",
        "job.toml",
        "--set",
        "target=other",
        "--set",
        "publish.l=4",
        "--format",
        "md",
    ];
    ok(anonymize(folder.path()).args(other).output().unwrap());
    let manifest = manifest(&folder.path().join("other")).unwrap();
    assert_eq!(manifest["model"], "EIR 4-diversity");
    let report = fs::read_to_string(folder.path().join("job.report.md")).unwrap();
    assert!(report.starts_with("# Release report: EIR 4-diversity"));
}

/// With a population ten times as large, a journalist finds people with less than the prosecutor's risk.
#[test]
fn what_misses_a_required_level_is_reported_and_not_published() {
    let folder = tempfile::tempdir().unwrap();
    let required = format!("{JOB}[require]\nk = 2\nprosecutor_max = 0.0001\n");
    fs::write(folder.path().join("job.toml"), required).unwrap();
    let run = |settings: &[&str]| {
        let mut command = anonymize(folder.path());
        command
            .args(["run", "job.toml", "--format", "md"])
            .args(settings);
        command.output().unwrap()
    };
    let missed = run(&[]);
    let said = text(&missed.stderr);
    assert_eq!(missed.status.code(), Some(3), "{said}");
    assert!(
        said.starts_with(
            "error: nothing is published: prosecutor_max must be at most 0.0001, but is "
        ),
        "{said}"
    );
    assert!(manifest(&folder.path().join("out")).is_none());
    let report = fs::read_to_string(folder.path().join("job.report.md")).unwrap();
    assert!(
        report.contains("**Not published: a required level is missed."),
        "{report}"
    );
    assert!(
        report.contains("- reached: k must be at least 2, and is "),
        "{report}"
    );
    let unknown = run(&["--set", "require.prosecutor_maximum=0.1"]);
    assert!(
        refused(unknown)
            .contains("there is no level 'prosecutor_maximum'; did you mean 'prosecutor_max'?")
    );
    let wrong = run(&["--set", "require.k=many"]);
    assert!(refused(wrong).contains("require.k must be a number"));
    ok(run(&["--set", "require.prosecutor_max=1"]));
    let published = manifest(&folder.path().join("out")).unwrap();
    assert_eq!(published["required"].as_array().unwrap().len(), 2);
    assert_eq!(published["required"][1]["passed"], true);
    assert!(
        !fs::read_to_string(folder.path().join("job.report.md"))
            .unwrap()
            .contains("Not published")
    );
}

#[test]
fn phases_are_told_to_machines() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let output = anonymize(folder.path())
        .args(["run", "job.toml", "--progress", "json"])
        .output()
        .unwrap();
    let told = text(&output.stderr);
    ok(output);
    let lines: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let phases: Vec<_> = lines
        .iter()
        .map(|line| line["phase"].as_str().unwrap())
        .collect();
    assert_eq!(
        phases,
        [
            "reading",
            "gathering",
            "forming",
            "writing",
            "verifying",
            "comparing"
        ]
    );
    let published = manifest(&folder.path().join("out")).unwrap();
    let records = |at: usize| lines[at]["records"].as_u64().unwrap();
    assert_eq!(
        records(3),
        published["counts"]["records_out"].as_u64().unwrap()
    );
    assert_eq!(
        (records(0), records(2), records(4)),
        (records(1), records(3), records(3))
    );
    assert!(
        lines
            .iter()
            .all(|line| line["seconds"].as_f64().unwrap() >= 0.0)
    );
    // Nothing is told where nobody asks, and no terminal is there.
    let other = anonymize(folder.path())
        .args(["run", "job.toml", "--set", "target=other"])
        .output()
        .unwrap();
    assert!(text(&other.stderr).is_empty(), "{}", text(&other.stderr));
}

#[test]
fn a_release_is_an_input() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let run = |args: &[&str]| anonymize(folder.path()).args(args).output().unwrap();
    ok(run(&["run", "job.toml"]));
    let roles = [
        "--id",
        "individual",
        "--qi",
        "sex,birth_year",
        "--sensitive",
        "diagnosis",
    ];
    for target in ["out", "out/", "./out"] {
        let audit = [&["audit", target], &roles[..], &["--require", "eir_l=3"]].concat();
        assert!(ok(run(&audit)).contains("eir_l"), "{target}");
        let count = format!("SELECT count(DISTINCT individual) AS n FROM '{target}'");
        let counted = ok(run(&["sql", "-q", "--format", "csv", "-c", &count]));
        assert_eq!(counted, "n\n400\n", "{target}");
    }
    let copy =
        "COPY (SELECT * FROM sample_patients(individuals => 400, seed => 1)) TO 'patients.parquet'";
    ok(run(&["sql", "-q", "-c", copy]));
    let compare = [
        &[
            "compare",
            "patients.parquet",
            "out",
            "--original-id",
            "patient_id",
        ],
        &roles[..],
    ]
    .concat();
    assert!(ok(run(&compare)).contains("nloss"));
    // It is no input of another release.
    let again = fs::read_to_string(folder.path().join("job.toml")).unwrap();
    let again = again
        .replace("patients = {", "#")
        .replace("\"out\"", "\"next\"");
    let again = again.replace("[input]", "[input]\npatients = \"out\"");
    let again = again
        .replace("patient_id", "individual")
        .replace("qi = [\"sex\", \"birth_year\"]", "qi = []");
    fs::write(folder.path().join("again.toml"), again).unwrap();
    let said = refused(run(&["run", "again.toml"]));
    assert!(
        said.contains("is itself a release") || said.contains("qi"),
        "{said}"
    );
    assert!(manifest(&folder.path().join("next")).is_none());
}

/// People with codes that begin with zeros, others in which letters come late, whole and other numbers.
const PEOPLE: &str = "SELECT value AS id, lpad(CAST(value * 7 % 40 AS VARCHAR), 5, '0') AS postcode, \
    20 + value % 50 AS age, CASE WHEN value < 1900 THEN CAST(value % 8 AS VARCHAR) ELSE 'N' END AS code, \
    CAST(value % 30 AS DOUBLE) / 4 AS weight FROM range(0, 2000)";

/// A job over files, with the names of its columns.
fn job_over(input: &str) -> String {
    format!(
        "target = \"out\"\n{input}\n[publish]\nfunction = \"anonymize_eir\"\nid = \"id\"\nqi = [\"age\", \"postcode\", \
         \"weight\"]\nsensitive = \"code\"\nl = 3\nseed = \"5\"\n[report]\nenabled = false\n"
    )
}

#[test]
fn all_formats_give_the_same_release() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| anonymize(folder.path()).args(args).output().unwrap();
    let mut seen = vec![];
    for (file, options) in [
        ("people.parquet", ""),
        ("people.csv", ""),
        (
            "people.csv.gz",
            " STORED AS CSV OPTIONS ('format.compression' 'gzip')",
        ),
        ("people.json", ""),
        ("people.arrow", ""),
    ] {
        ok(run(&[
            "sql",
            "-q",
            "-c",
            &format!("COPY ({PEOPLE}) TO '{file}'{options}"),
        ]));
        let job = job_over(&format!("input.people = \"{file}\""))
            .replace("\"out\"", &format!("\"{file}.out\""));
        fs::write(folder.path().join("job.toml"), job).unwrap();
        let said = ok(run(&["run", "job.toml"]));
        // CSV has no types, so that somebody should know what was made of it.
        let noted = said.contains(&format!(
            "note      column 'code' of '{file}' is read as text: its values are of different kinds"
        )) && said.contains(&format!(
            "column 'postcode' of '{file}' is read as text: it has values with zeros in front"
        ));
        assert_eq!(noted, file.contains(".csv"), "{file}: {said}");
        let manifest = manifest(&folder.path().join(format!("{file}.out"))).unwrap();
        seen.push((file, manifest["files"][0]["sha256"].clone()));
    }
    for (file, sha256) in &seen {
        assert_eq!(*sha256, seen[0].1, "{file}");
    }
}

/// From a file to a report, and back from the release.
#[test]
fn columns_of_a_job_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| anonymize(folder.path()).args(args).output().unwrap();
    let long = "x".repeat(200);
    for (at, names) in [
        ["Patient", "Age", "Größe", "Diagnose"],
        ["a.id", "a.age", "order", "quoted \"x\""],
        ["trailing ", " leading", "gid", "count"],
        ["__id", "__qi_age", &long, "individuals"],
        ["individual", "select", "lo", "label"],
    ]
    .iter()
    .enumerate()
    {
        let sql = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let [id, qi, more, sensitive] = names.map(sql);
        for file in ["people.csv", "people.parquet"] {
            let copy = format!(
                "COPY (SELECT value AS {id}, 20 + value % 40 AS {qi}, value % 3 AS {more}, 'd' || (value * 7 % 12) AS {sensitive} \
                 FROM range(0, 90)) TO '{file}'"
            );
            ok(run(&["sql", "-q", "-c", &copy]));
            let target = format!("{at}.{file}.out");
            let list = |names: &[&str]| serde_json::to_string(names).unwrap();
            let [id, qi, more, sensitive] = *names;
            let job = format!(
                "target = \"{target}\"\ninput.people = \"{file}\"\npopulation.path = \"{file}\"\npopulation.id = {}\n\
                 [publish]\nfunction = \"anonymize_eir\"\nid = {}\nqi = {}\nsensitive = {}\nl = 2\n[require]\nk = 2\n",
                list(&[id]).trim_matches(['[', ']']),
                list(&[id]).trim_matches(['[', ']']),
                list(&[qi, more]),
                list(&[sensitive]).trim_matches(['[', ']']),
            );
            fs::write(folder.path().join("job.toml"), job).unwrap();
            let said = ok(run(&["run", "job.toml"]));
            assert!(
                said.starts_with("published 90 individuals"),
                "{names:?}: {said}"
            );
            ok(run(&["plan", "job.toml", "--vary", "l=2"]));
            let columns = format!("{qi},{more}");
            let roles = [
                "--id",
                "individual",
                "--qi",
                &columns,
                "--sensitive",
                sensitive,
            ];
            let original = [
                "--original",
                file,
                "--original-id",
                id,
                "--population",
                file,
                "--population-id",
                id,
            ];
            let audit = ok(run(
                &[&["audit", &target], &roles[..], &original[..]].concat()
            ));
            assert!(audit.contains("journalist_max"), "{names:?}: {audit}");
            let compare = [&["compare", file, &target, "--original-id", id], &roles[..]].concat();
            assert!(ok(run(&compare)).contains("nloss"), "{names:?}");
        }
    }
}

#[test]
fn a_job_states_types() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| anonymize(folder.path()).args(args).output().unwrap();
    for file in ["people.csv", "people.parquet"] {
        ok(run(&[
            "sql",
            "-q",
            "-c",
            &format!("COPY ({PEOPLE}) TO '{file}'"),
        ]));
        let input = format!(
            "[input.people]\npath = \"{file}\"\ntypes = {{ postcode = \"integer\", age = \"text\" }}"
        );
        let job = job_over(&input).replace("\"out\"", &format!("\"{file}.out\""));
        fs::write(folder.path().join("job.toml"), job).unwrap();
        let said = ok(run(&["run", "job.toml"]));
        assert!(!said.contains("'postcode'"), "{said}");
        let types = format!(
            "SELECT count(postcode['lo']) + count(array_length(age)) > 0 AS fits FROM '{file}.out'"
        );
        assert_eq!(
            ok(run(&["sql", "-q", "--format", "csv", "-c", &types])),
            "fits\ntrue\n"
        );
    }
    for (types, expected) in [
        (
            "{ postcod = \"text\" }",
            "types: 'people.csv' has no column 'postcod'; did you mean 'postcode'?",
        ),
        (
            "{ postcode = \"code\" }",
            "input.people.types.postcode must be one of \"text\", \"integer\"",
        ),
        ("3", "input.people.types must be a table"),
    ] {
        let job = job_over(&format!(
            "[input.people]\npath = \"people.csv\"\ntypes = {types}"
        ));
        fs::write(folder.path().join("job.toml"), job).unwrap();
        let said = refused(run(&["run", "job.toml"]));
        assert!(said.contains(expected), "{types}: {said}");
    }
    let job = job_over("[input.people]\nsql = \"SELECT 1\"\ntypes = { a = \"text\" }");
    fs::write(folder.path().join("job.toml"), job).unwrap();
    assert!(refused(run(&["run", "job.toml"])).contains("input.people.types is for files"));
}

#[test]
fn clauses_that_would_be_ignored_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (query, clause) in [
        ("SELECT * FROM patients TABLESAMPLE (10)", "TABLESAMPLE"),
        (
            "SELECT * FROM (SELECT * FROM patients) TABLESAMPLE (10)",
            "TABLESAMPLE",
        ),
        (
            "SELECT p.* FROM patients WITH ORDINALITY AS p",
            "WITH ORDINALITY",
        ),
    ] {
        fs::write(
            folder.path().join("job.toml"),
            format!("query = \"{query}\"\n{JOB}"),
        )
        .unwrap();
        let run = anonymize(folder.path())
            .args(["run", "job.toml"])
            .output()
            .unwrap();
        let said = refused(run);
        assert!(
            said.contains(&format!("{clause} is not supported")),
            "{query}: {said}"
        );
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn a_population_bounds_the_journalist() {
    let folder = tempfile::tempdir().unwrap();
    let people = "SELECT sex, birth_year FROM sample_patients(individuals => 4000, seed => 1)";
    let population = format!("{JOB}\n[population]\nsql = '{people}'\n");
    fs::write(folder.path().join("job.toml"), population).unwrap();
    let run = |settings: &[&str]| {
        let mut command = anonymize(folder.path());
        command
            .args(["run", "job.toml", "--format", "md"])
            .args(settings);
        command.output().unwrap()
    };
    ok(run(&[]));
    let manifest = manifest(&folder.path().join("out")).unwrap();
    let measure = |name: &str| {
        let audit = manifest["audit"].as_array().unwrap().iter();
        let mut found = audit.filter(|m| m["measure"] == name);
        found.next().unwrap()["value"].as_f64().unwrap()
    };
    assert!(measure("journalist_max") < measure("prosecutor_max"));
    let labelled = "publish.hierarchy={ birth_year = 'bins(5, 20)' }";
    let said = refused(run(&["--set", "target=other", "--set", labelled]));
    assert!(
        said.contains("'birth_year' is published as labels"),
        "{said}"
    );
    let said = refused(run(&["--set", "population.path=x"]));
    assert!(
        said.contains("population needs either path or sql"),
        "{said}"
    );
}

/// Several tables of one release, from a job.
#[test]
fn a_job_may_publish_several_tables() {
    let folder = tempfile::tempdir().unwrap();
    let people = r#"
        target = "out"
        [input]
        people = { sql = "SELECT value AS id, 20 + value % 40 AS age, value % 7 AS job, value % 3 = 0 AS hidden, value % 30 AS salary FROM range(0, 600)" }
        [publish]
        id = "id"
        qi = ["age", "job"]
        sensitive = "salary"
    "#;
    let slppa = "function = 'anatomize_slppa'\nalpha = 1.0\nbeta = 0.1\ngamma = 0.1\ndelta = 0.1\ntables = 2";
    let lgb = "function = 'anonymize_lgb'\nk = 5\nl = 3\nsemi_sensitive = { age = 'hidden' }\noutput = 'detached'";
    for (arguments, tables, words) in [
        (
            slppa,
            ["qi_1", "qi_2", "sa"],
            "the links between them are cut",
        ),
        (
            lgb,
            ["individuals", "age_buckets", "salary_buckets"],
            "is in a bucket of at least 3 people",
        ),
    ] {
        fs::write(
            folder.path().join("job.toml"),
            format!("{people}\n{arguments}"),
        )
        .unwrap();
        let said = anonymize(folder.path()).args(["run", "job.toml"]).output();
        let said = ok(said.unwrap());
        assert!(said.contains("groups, in 3 tables"), "{said}");
        let manifest = manifest(&folder.path().join("out")).unwrap();
        let named = manifest["tables"].as_array().unwrap().iter();
        let named: Vec<_> = named.map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(named, tables);
        for file in manifest["files"].as_array().unwrap() {
            assert!(tables.contains(&file["table"].as_str().unwrap()));
        }
        let report = fs::read_to_string(folder.path().join("job.report.html")).unwrap();
        assert!(
            report.contains(words) && report.contains("What is not protected"),
            "{words}"
        );
        fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

/// Two tables that a query joins.
#[test]
fn a_job_may_join_its_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let sample = "sample_patients(individuals => 300, seed => 1)";
    for (columns, file) in [
        ("patient_id, diagnosis", "visits"),
        ("DISTINCT patient_id, sex, birth_year", "people"),
    ] {
        let copy = format!("COPY (SELECT {columns} FROM {sample}) TO '{file}.parquet'");
        let copied = anonymize(folder.path())
            .args(["sql", "-q", "-c", &copy])
            .output();
        ok(copied.unwrap());
    }
    let job = r#"
target = "out"
query = "SELECT * FROM visits JOIN people USING (patient_id)"
[input]
visits = "visits*.parquet"
people = "people.parquet"
[publish]
function = "anonymize_eir"
id = "patient_id"
qi = ["sex", "birth_year"]
sensitive = "diagnosis"
l = 3
"#;
    fs::write(folder.path().join("job.toml"), job).unwrap();
    let said = anonymize(folder.path()).args(["run", "job.toml"]).output();
    let said = ok(said.unwrap());
    assert!(said.starts_with("published 300 individuals"), "{said}");
    assert!(said.contains("true of the input"), "{said}");
    let unsaid = job.replace("query =", "# query =");
    fs::write(folder.path().join("job.toml"), unsaid).unwrap();
    let said = anonymize(folder.path()).args(["run", "job.toml"]).output();
    assert!(refused(said.unwrap()).contains("query is missing"));
}

#[test]
fn the_example_and_the_page_fit_the_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/reference/job.schema.json")).unwrap();
    let page = include_str!("../../docs/guide/job.md");
    let page = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    for job in [include_str!("../../docs/patients.toml"), page, JOB] {
        let job: toml::Table = job.parse().unwrap();
        let job = serde_json::to_value(job).unwrap();
        assert_eq!(json_schema::faults(&schema, &job), Vec::<String>::new());
    }
    let wrong = serde_json::json!({"target": "x", "input": {}, "publish": {"function": "anonymize_ir"}, "rport": {}});
    assert_eq!(json_schema::faults(&schema, &wrong).len(), 1);
}

#[test]
fn what_is_wrong_with_a_job_is_said_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    for (setting, said) in [
        ("publish.functoin=x", "there is no argument 'functoin'"),
        ("taget=x", "there is no key 'taget'; did you mean 'target'?"),
        ("publish.function=anonymize_eri", "anonymize_eri"),
        ("publish.qi=['sxe']", "sxe"),
        ("input.patients=missing.parquet", "missing.parquet"),
        (
            "report.file=job.toml/r.html",
            "report.file cannot be written",
        ),
        ("ledger.folder=l", "ledger.key is missing"),
        ("publish.l=399", "cannot be reached"),
    ] {
        let output = anonymize(folder.path())
            .args(["run", "job.toml", "--set", setting])
            .output()
            .unwrap();
        let error = refused(output);
        assert!(
            error.starts_with("error: ") && error.contains(said),
            "{setting}: {error}"
        );
        assert!(manifest(&folder.path().join("out")).is_none(), "{setting}");
    }
    let left = fs::read_dir(folder.path().join("out"))
        .map(|d| d.count())
        .unwrap_or(0);
    assert_eq!(left, 0);
}

#[test]
fn init_suggests_and_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let copy =
        "COPY (SELECT * FROM sample_patients(individuals => 300, seed => 1)) TO 'visits.parquet'";
    ok(anonymize(folder.path())
        .args(["sql", "-q", "-c", copy])
        .output()
        .unwrap());
    let made = anonymize(folder.path())
        .args(["init", "visits.parquet", "-o", "job.toml"])
        .output()
        .unwrap();
    ok(made);
    let text = fs::read_to_string(folder.path().join("job.toml")).unwrap();
    assert!(
        text.contains("# id = \"patient_id\"") && text.contains("\"birth_year\""),
        "{text}"
    );
    let again = anonymize(folder.path())
        .args(["init", "visits.parquet", "-o", "job.toml"])
        .output()
        .unwrap();
    assert!(refused(again).contains("cannot write 'job.toml'"));
    let run = anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap();
    assert!(refused(run).contains("id is missing"));
    // With the suggestions taken it runs.
    let decided = text
        .replace("# id =", "id =")
        .replace("# qi =", "qi =")
        .replace("# sensitive =", "sensitive =");
    fs::write(folder.path().join("job.toml"), decided).unwrap();
    let run = anonymize(folder.path())
        .args([
            "run",
            "job.toml",
            "--set",
            "publish.qi=['sex', 'birth_year']",
        ])
        .output();
    ok(run.unwrap());
    // No value of the table is in the job.
    let ids = "SELECT DISTINCT patient_id FROM 'visits.parquet'";
    let ids = ok(anonymize(folder.path())
        .args(["sql", "--format", "csv", "-q", "-c", ids])
        .output()
        .unwrap());
    for id in ids.lines().skip(1) {
        assert!(!text.contains(id), "a value is in the job");
    }
}

#[test]
fn plan_shows_what_values_cost_and_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let args = [
        "plan",
        "job.toml",
        "--vary",
        "l=2,4,8,300",
        "--sample",
        "200",
    ];
    let said = ok(anonymize(folder.path()).args(args).output().unwrap());
    assert!(said.starts_with("on a sample of 200 individuals"), "{said}");
    let losses: Vec<f64> = said
        .lines()
        .filter(|line| {
            ["2", "4", "8"].contains(&line.split_whitespace().next().unwrap_or_default())
        })
        .map(|line| line.split_whitespace().nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(losses.len(), 3, "{said}");
    assert!(losses[0] <= losses[2], "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
    let plot = fs::read_to_string(folder.path().join("job.plan.svg")).unwrap();
    assert_eq!(plot.matches("<circle").count(), 3);
    assert!(!folder.path().join("out").exists());
}

/// Forms without classes, and several sensitive columns; what is wrong with a job is not taken for a value out of reach.
#[test]
fn plan_knows_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let people = "SELECT value AS id, 20 + value % 40 AS age, value % 7 AS job, value % 3 = 0 AS hidden, \
                  value % 30 AS salary, value % 11 AS ward FROM range(0, 600)";
    let plan = |publish: &str, args: &[&str]| {
        let job = format!(
            "target = 'out'\ninput.people.sql = '{people}'\n[publish]\nid = 'id'\nqi = ['age', 'job']\n{publish}"
        );
        fs::write(folder.path().join("job.toml"), job).unwrap();
        let mut command = anonymize(folder.path());
        command
            .args(["plan", "job.toml", "--sample", "500"])
            .args(args);
        command.output().unwrap()
    };
    let lgb = "sensitive = 'salary'\nfunction = 'anonymize_lgb'\nk = 5\nl = 3\nsemi_sensitive = { age = 'hidden' }";
    let slppa = "sensitive = 'salary'\nfunction = 'anatomize_slppa'\nbeta = 0.2\ngamma = 0.5\nmethod = 'asn'";
    let several =
        "sensitive = ['salary', 'ward']\nfunction = 'anonymize_p_sensitive'\np = 3\nk = 5";
    for (publish, values, reached) in [
        (lgb, "l=2,3,400", ["2", "3"]),
        (slppa, "beta=0.2,0.5,0.01", ["0.2", "0.5"]),
        (several, "p=2,3,400", ["2", "3"]),
    ] {
        let said = ok(plan(publish, &["--vary", values]));
        for value in reached {
            let line = said
                .lines()
                .find(|l| l.trim_start().starts_with(&format!("{value} ")));
            let line: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
            let [_, loss, _, "%", groups, smallest, risk] = line[..] else {
                panic!("{value}: {said}");
            };
            let number = |text: &str| text.parse::<f64>().unwrap();
            assert!(number(loss) > 0.0, "{said}");
            assert!(number(groups) > 1.0 && number(smallest) >= 2.0, "{said}");
            let average = number(groups) / 500.0;
            assert!((number(risk) - average).abs() < 1e-3, "{said}");
        }
        let last = values.rsplit(',').next().unwrap();
        let line = said
            .lines()
            .find(|l| l.trim_start().starts_with(&format!("{last} ")));
        let line = line.unwrap_or_default();
        assert!(
            line.contains("cannot be reached") || line.contains("is impossible"),
            "{said}"
        );
    }
    let said = refused(plan(&several.replace("'ward'", "'wrad'"), &[]));
    assert!(
        said.contains("wrad") && !said.contains("can be reached"),
        "{said}"
    );
    let said = refused(plan(several, &["--vary", "p=400,500"]));
    assert!(
        said.contains("none of these values can be reached"),
        "{said}"
    );
}

/// What a run warns of is shown, whatever else is logged: by the program, and by `publish` in a shell.
#[test]
fn warnings_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let ledger =
        "[ledger]\nfolder = 'ledger'\nkey = 'a secret of 24 characters'\non_overlap = 'warn'";
    fs::write(folder.path().join("job.toml"), format!("{JOB}{ledger}")).unwrap();
    let run = |target: &str, l: &str| {
        let mut run = anonymize(folder.path());
        let target = format!("target={target}");
        run.args(["run", "job.toml", "--set", &target, "--set", l]);
        let run = run.output().unwrap();
        let said = text(&run.stderr);
        ok(run);
        said
    };
    let first = run("first", "publish.l=3");
    assert!(!first.contains("warning"), "{first}");
    for (target, l, how) in [
        (
            "second",
            "publish.l=3",
            "with the same arguments and the same query",
        ),
        ("third", "publish.l=4", "with other arguments"),
    ] {
        let said = run(target, l);
        let warned = said
            .lines()
            .find(|line| line.starts_with("warning: ledger: "));
        let warned = warned.unwrap_or_else(|| panic!("{said}"));
        assert!(
            warned.contains("about 100 %") && warned.contains(how),
            "{warned}"
        );
    }
    let alike = "SELECT * FROM publish('fourth', (SELECT * FROM anonymize_eir((SELECT patient_id, sex, birth_year, \
                 diagnosis || CASE WHEN sex = 'F' THEN 'x' ELSE 'X' END AS diagnosis \
                 FROM sample_patients(individuals => 300, seed => 1)), id => patient_id, qi => [sex], sensitive => diagnosis, l => 2)))";
    let shell = anonymize(folder.path())
        .args(["sql", "-q", "-c", alike])
        .output()
        .unwrap();
    let said = text(&shell.stderr);
    ok(shell);
    assert!(
        said.contains("warning: ") && said.contains("normalize"),
        "{said}"
    );
}

/// Two programs at once may not both publish the same people with different parameters.
#[test]
fn two_programs_at_once_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.toml"), JOB).unwrap();
    for round in 0..6 {
        let start = |name: &str, l: u32| {
            let settings = [
                format!("target={round}{name}"),
                format!("publish.l={l}"),
                format!("ledger.folder=ledger{round}"),
                "ledger.key=a secret of 24 characters".to_owned(),
                "report.enabled=false".to_owned(),
            ];
            let mut run = anonymize(folder.path());
            run.args(["run", "job.toml"]);
            for setting in &settings {
                run.args(["--set", setting]);
            }
            run.stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let runs = [start("a", 3), start("b", 4)].map(|run| run.wait_with_output().unwrap());
        let made = runs.iter().filter(|run| run.status.success()).count();
        let said = runs.map(|run| text(&run.stderr)).concat();
        assert!(
            made == 1 && said.contains("with other arguments"),
            "{made}: {said}"
        );
    }
}

/// Every value is a token that can be found again. What may be published is in the files; nothing else is anywhere.
#[test]
fn nothing_secret_gets_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let copy = "COPY (SELECT 'idcanary' || (value / 4) AS who, 'citycanary' || (value / 400) AS city, value / 4 % 50 AS income, \
                'diseasecanary' || (value % 97) AS disease, 'othercanary' || value AS unnamedcolumn FROM range(0, 4000)) \
                TO 'in.parquet'";
    ok(anonymize(folder.path())
        .args(["sql", "-q", "-c", copy])
        .output()
        .unwrap());
    let ledger = "[ledger]\nfolder = 'ledger'\nkey = '${LEDGER_KEY}'";
    fs::write(at("job.toml"), format!("{CANARIES}{ledger}")).unwrap();
    fs::create_dir(at("tmp")).unwrap();
    let run = anonymize(folder.path())
        .args(["run", "job.toml"])
        .env("RUST_LOG", "trace")
        .env("TMPDIR", at("tmp"))
        .env("LEDGER_KEY", "keycanary-keycanary-keycanary")
        .output()
        .unwrap();
    let logged = text(&run.stderr) + &text(&run.stdout);
    ok(run);
    let ids = ["idcanary", "othercanary", "seedcanary", "keycanary"];
    for secret in ids.iter().chain(&["citycanary", "diseasecanary"]) {
        let line = logged.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "log: {line:?}");
    }
    let manifest = fs::read_to_string(at("out/manifest.json")).unwrap();
    let report = fs::read_to_string(at("job.report.html")).unwrap();
    let entries = fs::read_dir(at("ledger")).unwrap();
    let mut entries = entries.map(|entry| entry.unwrap().path());
    let entry = entries.find(|path| path.extension().is_some_and(|e| e == "json"));
    let ledger = fs::read_to_string(entry.unwrap()).unwrap();
    for (name, text) in [
        ("manifest", &manifest),
        ("report", &report),
        ("ledger", &ledger),
    ] {
        for secret in ids
            .iter()
            .chain(&["diseasecanary", "unnamedcolumn", "\"who\""])
        {
            assert!(!text.contains(secret), "{name}: {secret}");
        }
    }
    assert!(!manifest.contains("citycanary") && report.contains("citycanary"));
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let file = at("out").join(manifest["files"][0]["path"].as_str().unwrap());
    let bytes = text(&fs::read(&file).unwrap());
    let dump = format!("SELECT * FROM '{}'", file.display());
    let rows = ok(anonymize(folder.path())
        .args(["sql", "-q", "--format", "nd-json", "-c", &dump])
        .output()
        .unwrap());
    assert!(rows.contains("diseasecanary") && rows.contains("citycanary"));
    for secret in ids.iter().chain(&["unnamedcolumn", "\"who\""]) {
        assert!(
            !bytes.contains(secret) && !rows.contains(secret),
            "file: {secret}"
        );
    }
    assert_eq!(
        fs::read_dir(at("tmp")).unwrap().count(),
        0,
        "spill files are gone"
    );
}

/// The same for functions of other forms, and in the other formats of reports.
#[test]
fn nothing_secret_gets_out_of_any_form() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let copies = [
        "COPY (SELECT 'idcanary' || value AS who, 'citycanary' || (value % 20) AS city, 20 + value % 50 AS income, \
         'diseasecanary' || (value % 40) AS disease, value % 3 = 0 AS flagcanary, 'othercanary' || value AS unnamedcolumn \
         FROM range(0, 1200)) TO 'in.parquet'",
        "COPY (SELECT 'diseasecanary' || value AS level_0, 'groupcanary' || (value / 10) AS level_1, 'allcanary' AS level_2 \
         FROM range(0, 40)) TO 'diseases.parquet'",
    ];
    for copy in copies {
        let copied = anonymize(folder.path())
            .args(["sql", "-q", "-c", copy])
            .output();
        ok(copied.unwrap());
    }
    fs::create_dir(at("tmp")).unwrap();
    let forms = [
        "function = 'anonymize_kl'\nk = 3\nl = 2\nhierarchy = { disease = 'diseases.parquet' }",
        "function = 'anonymize_lgb'\nk = 3\nl = 2\nsemi_sensitive = { income = 'flagcanary' }",
        "function = 'anonymize_lgb'\nk = 3\nl = 2\nsemi_sensitive = { income = 'flagcanary' }\noutput = 'detached'",
        "function = 'anatomize_slppa'\nalpha = 1.0\nbeta = 0.2\ngamma = 0.5\ndelta = 0.5",
    ];
    let secrets = [
        "idcanary",
        "othercanary",
        "seedcanary",
        "flagcanary",
        "unnamedcolumn",
        "\"who\"",
    ];
    for (form, format) in forms.iter().zip(["md", "json", "html", "json"]) {
        let job = format!(
            "target = 'out'\ninput.people = 'in.parquet'\n[publish]\nid = 'who'\nqi = ['city', 'income']\n\
             sensitive = 'disease'\nseed = 'seedcanary'\n{form}"
        );
        fs::write(at("job.toml"), job).unwrap();
        let run = anonymize(folder.path())
            .args(["run", "job.toml", "--format", format])
            .env("RUST_LOG", "trace")
            .env("TMPDIR", at("tmp"))
            .output()
            .unwrap();
        let logged = text(&run.stderr) + &text(&run.stdout);
        ok(run);
        let line = logged.lines().find(|line| line.contains("canary"));
        assert!(line.is_none(), "{form}: log: {line:?}");
        let told = fs::read_to_string(at("out/manifest.json")).unwrap();
        let report = fs::read_to_string(at(&format!("job.report.{format}"))).unwrap();
        assert!(report.len() > 2000, "{form}");
        assert!(!told.contains("canary"), "{form}: manifest");
        for secret in secrets.iter().chain(&["diseasecanary", "groupcanary"]) {
            assert!(!report.contains(secret), "{form}: report: {secret}");
        }
        let manifest: Value = serde_json::from_str(&told).unwrap();
        let mut shown = String::new();
        for file in manifest["files"].as_array().unwrap() {
            let file = at("out").join(file["path"].as_str().unwrap());
            shown += &text(&fs::read(&file).unwrap());
            let dump = format!("SELECT * FROM '{}'", file.display());
            let args = ["sql", "-q", "--format", "nd-json", "-c", &dump];
            shown += &ok(anonymize(folder.path()).args(args).output().unwrap());
        }
        assert!(shown.contains("citycanary"), "{form}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{form}: files: {secret}");
        }
        assert_eq!(fs::read_dir(at("tmp")).unwrap().count(), 0, "{form}");
        fs::remove_dir_all(at("out")).unwrap();
    }
}

/// A release that spills, looked at while it does: the folder is private, holds no id and no column without a role, and is
/// gone in the end. Values with pseudonyms may be there, and show that there was something to be seen.
#[cfg(unix)]
#[test]
fn what_a_release_spills_is_private_and_has_no_ids() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let copy = "COPY (SELECT 'idcanary' || (value / 4) AS who, value / 4 % 50 AS income, 'citycanary' || (value / 4 % 20) AS city, \
                'diseasecanary' || (value % 97) AS disease, 'othercanary' || value AS unnamedcolumn \
                FROM range(0, 200000)) TO 'in.parquet'";
    ok(anonymize(folder.path())
        .args(["sql", "-q", "-c", copy])
        .output()
        .unwrap());
    let limits = "block = 1000\n[run]\nmemory = '64m'\npartitions = 2";
    fs::write(at("job.toml"), format!("{CANARIES}{limits}")).unwrap();
    fs::create_dir(at("tmp")).unwrap();
    let mut child = anonymize(folder.path())
        .args(["run", "job.toml", "--format", "json"])
        .env("RUST_LOG", "trace")
        .env("TMPDIR", at("tmp"))
        .env(
            "DATAFUSION_EXECUTION_SORT_SPILL_RESERVATION_BYTES",
            "1000000",
        )
        .stdout(fs::File::create(at("stdout")).unwrap())
        .stderr(fs::File::create(at("stderr")).unwrap())
        .spawn()
        .unwrap();
    let secrets = ["idcanary", "othercanary", "seedcanary", "unnamedcolumn"];
    let mut spilled = false;
    let status = loop {
        for entry in fs::read_dir(at("tmp")).unwrap().flatten() {
            let mode = fs::metadata(entry.path()).map(|m| m.permissions().mode() & 0o777);
            assert!(mode.is_err() || mode.unwrap() == 0o700);
        }
        for bytes in files_below(&at("tmp")) {
            spilled |= contains(&bytes, "diseasecanary");
            for secret in secrets {
                assert!(!contains(&bytes, secret), "spilled: {secret}");
            }
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    let read = |name: &str| fs::read_to_string(at(name)).unwrap_or_default();
    let logged = read("stderr") + &read("stdout");
    assert!(spilled, "nothing was spilled");
    assert_eq!(
        fs::read_dir(at("tmp")).unwrap().count(),
        0,
        "spill files are gone"
    );
    // Whether the measures fit into so little memory or not: nothing is told, and a release is complete or absent.
    let visible = manifest(&at("out")).is_some();
    assert_eq!(status.success(), visible, "{logged}");
    let told = logged + &read("out/manifest.json") + &read("job.report.json");
    for secret in secrets.iter().chain(&["diseasecanary"]) {
        assert!(!told.contains(secret), "{secret}");
    }
}

/// The bytes of all files below a folder that can be read at this moment.
#[cfg(unix)]
fn files_below(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => files_below(&path),
        false => fs::read(path).into_iter().collect(),
    };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[cfg(unix)]
fn contains(bytes: &[u8], token: &str) -> bool {
    bytes.windows(token.len()).any(|w| w == token.as_bytes())
}

/// Told to end at any moment: the release is there as a whole, or there is nothing beside the job, no staging and no half
/// report.
#[cfg(unix)]
#[test]
fn interrupted_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let run = || {
        let mut command = anonymize(folder.path());
        command
            .args(["run", "job.toml"])
            .env("TMPDIR", folder.path().join("tmp"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let clear = || {
        let _ = fs::remove_dir_all(folder.path().join("out"));
        let _ = fs::remove_file(folder.path().join("job.report.html"));
    };
    let start = Instant::now();
    assert!(run().status().unwrap().success());
    let whole = start.elapsed();
    let (rounds, mut interrupted, mut staged) = (12, 0, 0);
    for round in 0..rounds {
        clear();
        let mut child = run().spawn().unwrap();
        // Over the whole run, but after the program has begun to listen.
        let moment = whole.mul_f64(0.1 + 0.95 * f64::from(round) / f64::from(rounds));
        sleep(moment);
        staged += fs::read_dir(folder.path().join("out"))
            .map_or(0, Iterator::count)
            .min(1);
        let name = if round % 2 == 0 { "-INT" } else { "-TERM" };
        let _ = Command::new("kill")
            .args([name, &child.id().to_string()])
            .status();
        let code = child.wait().unwrap().code();
        if code == Some(0) {
            continue;
        }
        assert!([Some(130), Some(143)].contains(&code), "{code:?}");
        interrupted += 1;
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "job.report.html");
        names.sort();
        let out = folder.path().join("out");
        let expected = if out.exists() {
            vec!["job.toml", "out", "tmp"]
        } else {
            vec!["job.toml", "tmp"]
        };
        assert_eq!(names, expected, "after {moment:?} of {whole:?}");
        assert_eq!(fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
        let inside = fs::read_dir(&out).map_or(0, Iterator::count);
        let wanted = if manifest(&out).is_some() { 2 } else { 0 };
        assert_eq!(inside, wanted, "after {moment:?} of {whole:?}");
    }
    println!("{interrupted} of {rounds} were interrupted, {staged} while something was staged");
    assert!(interrupted > 0 && staged > 0);
}

/// Killed at random moments: the manifest is absent or complete, and the next run sweeps what is left.
/// ANONYMIZE_KILLS=200 runs it longer.
#[test]
fn killed_at_any_moment() {
    let kills: u32 = std::env::var("ANONYMIZE_KILLS").map_or(8, |n| n.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let out = folder.path().join("out");
    let start = Instant::now();
    ok(anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap());
    let whole = start.elapsed();
    fs::remove_dir_all(&out).unwrap();
    let (mut visible, mut left) = (0, 0);
    for round in 0..kills {
        let mut child = anonymize(folder.path())
            .args(["run", "job.toml"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the run, and somewhat beyond its end.
        sleep(whole.mul_f64(f64::from(round) / f64::from(kills) * 1.1) + Duration::from_millis(5));
        child.kill().unwrap();
        child.wait().unwrap();
        if manifest(&out).is_some() {
            visible += 1;
            fs::remove_dir_all(&out).unwrap();
        } else if fs::read_dir(&out).is_ok_and(|mut d| d.next().is_some()) {
            left += 1;
        }
    }
    println!(
        "{kills} killed: {visible} visible and complete, {left} left staging, the others nothing"
    );
    ok(anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap());
    let manifest = manifest(&out).unwrap();
    let mut names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let data = format!("data-{}", manifest["release"].as_str().unwrap());
    assert_eq!(names, [data, "manifest.json".to_owned()]);
}

/// The report in a browser: it draws something, complains about nothing, and asks for nothing. Needs Chromium; `.ci/run`
/// installs it, and elsewhere the test says that it did not look.
#[test]
fn the_report_opens_in_a_browser() {
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let found = browsers.iter().find(|b| {
        Command::new(b)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    });
    let Some(browser) = found else {
        assert!(
            std::env::var_os("ANONYMIZE_NEEDS_BROWSER").is_none(),
            "there is no Chromium"
        );
        println!("not looked at: there is no Chromium");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    ok(anonymize(folder.path())
        .args(["run", "job.toml"])
        .output()
        .unwrap());
    let page = format!("file://{}", folder.path().join("job.report.html").display());
    let shot = folder.path().join("shot.png");
    let log = folder.path().join("net.json");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--window-size=900,3000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("--screenshot={}", shot.display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(["--enable-logging=stderr", "--v=0", &page])
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(!said.contains("CONSOLE"), "{said}");
    assert!(
        fs::metadata(&shot).unwrap().len() > 30_000,
        "the picture is empty: {said}"
    );
    // The same page, which says itself how its charts are laid out: every chart has bars that can be seen.
    let html = fs::read_to_string(folder.path().join("job.report.html")).unwrap();
    let measured = html.replace("Content-Security-Policy", "x-none") + MEASURE;
    let copy = folder.path().join("measured.html");
    fs::write(&copy, measured).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", copy.display()))
        .output()
        .unwrap();
    let page = text(&output.stdout);
    let bars = page
        .split("data-bars=\"")
        .nth(1)
        .and_then(|p| p.split('"').next());
    let bars: Vec<u32> = bars
        .unwrap_or_default()
        .split(',')
        .flat_map(str::parse)
        .collect();
    assert!(
        bars.len() >= 4 && bars.iter().all(|n| *n >= 1),
        "{bars:?}: {}",
        text(&output.stderr)
    );
    let log = fs::read_to_string(log).unwrap();
    for line in log.lines().filter(|line| line.contains("\"url\":\"http")) {
        let own = ["google", "gstatic", "gvt1", "chromium"]
            .iter()
            .any(|host| line.contains(host));
        assert!(own, "the page asks for something: {line}");
    }
}
