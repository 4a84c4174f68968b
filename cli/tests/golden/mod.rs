//! Golden files of the program: what it says to jobs that are wrong, and what it prints of good ones. They are with the
//! others in `tests/suite/golden/snapshots/`; how to make them anew is told in `tests/suite/golden/mod.rs`.

use std::fs;
use std::path::Path;

use url::Url;

use super::{command, stderr, stdout};
use record::golden;

#[path = "../../../tests/suite/golden/record.rs"]
mod record;

const JOB: &str = r#"
target = "out"
[input]
patients = { sql = "SELECT * FROM sample_patients(individuals => 250, seed => 1)" }
[publish]
function = "anonymize_eir"
id = "patient_id"
qi = ["sex", "birth_year"]
sensitive = "diagnosis"
l = 3
seed = 11
"#;

/// Settings that spoil the job.
const WRONG: &[&str] = &[
    "taget=x",
    "target=",
    "target=3",
    "target=[1]",
    "target=nowhere://x",
    "target=job.toml",
    "input=x",
    "input.patients=3",
    "input.patients=missing.parquet",
    "input.patients.sql=SELEC",
    "input.patients.path=x",
    "input.patients.sqll=x",
    "input.more=missing.csv",
    "query=SELECT nothing FROM patients",
    "query=3",
    "publish=3",
    "publish.function=anonymize_eri",
    "publish.function=audit",
    "publish.function=3",
    "publish.functoin=x",
    "publish.id=patent_id",
    "publish.qi=['sxe']",
    "publish.qi=3",
    "publish.qi={a = 1}",
    "publish.l=249",
    "publish.l=1",
    "publish.l=x",
    "publish.k=3",
    "publish.block=0",
    "publish.notation=prose",
    "publish.hierarchy={ birth_year = 'bins(0)' }",
    "publish.domain={ birth_year = [1990, 2000] }",
    "publish.input=patients",
    "report.file=job.toml/r.html",
    "report.format=pdf",
    "report.fiel=x",
    "ledger.folder=l",
    "ledger={ folder = 'l', key = 'short' }",
    "ledger={ folder = 'l', key = '${GOLDEN_NOT_SET}' }",
    "ledger={ folder = 's3://bucket/l', key = 'a secret of 24 characters' }",
    "ledger={ folder = 'l', key = 'a secret of 24 characters', on_overlap = 'laugh' }",
    "population.path=x",
    "population={ sql = 'SELECT sex FROM patients' }",
    "population={ path = 'x', sql = 'SELECT 1' }",
    "population={ sql = 'SELECT sex, birth_year FROM patients', id = 'who' }",
    "run.memory=much",
    "run.partitions=0",
    "run.partitons=2",
    "rport.file=x",
    "=3",
    "publish",
];

/// What the program says when it is run in a folder, without what differs from run to run.
fn said(folder: &Path, args: &[&str]) -> String {
    let mut command = command(args);
    // One partition, so that nothing depends on the cores of the machine.
    let command = command
        .current_dir(folder)
        .env_remove("RUST_LOG")
        .env("DATAFUSION_EXECUTION_TARGET_PARTITIONS", "1");
    let output = command.output().expect("the program starts");
    let text = format!(
        "exit {}\n{}{}",
        output.status.code().expect("a code"),
        stdout(&output),
        stderr(&output)
    );
    let real = fs::canonicalize(folder).expect("a folder");
    let url = Url::from_file_path(&real).expect("a whole path");
    let text = text.replace(url.path(), "FOLDER");
    let text = text.replace(&real.display().to_string(), "FOLDER");
    let lines = text.lines().map(|line| match line.split_once(" time to ") {
        Some((before, what)) => {
            let what = what.trim_end_matches(|c: char| !c.is_ascii_digit());
            let what = what.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            format!("{before} time to {what}TIME\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn golden_messages_about_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("job.toml"), JOB).expect("a job");
    let mut text = String::new();
    for setting in WRONG {
        let said = said(folder.path(), &["run", "job.toml", "--set", setting]);
        assert!(!said.starts_with("exit 0"), "{setting}: {said}");
        text += &format!("## {setting}\n{said}\n");
    }
    for (name, job) in [
        ("no table", "3 = "),
        ("without a target", &JOB.replace("target", "# target")),
        (
            "without an input",
            &JOB.replace("patients =", "# patients ="),
        ),
        ("without a function", &JOB.replace("function", "# function")),
        ("without an id", &JOB.replace("id =", "# id =")),
        ("without roles", &JOB.replace("qi =", "# qi =")),
        ("a date", &JOB.replace("l = 3", "l = 2020-01-01")),
    ] {
        fs::write(folder.path().join("wrong.toml"), job).expect("a job");
        let said = said(folder.path(), &["run", "wrong.toml"]);
        assert!(!said.starts_with("exit 0"), "{name}: {said}");
        text += &format!("## {name}\n{said}\n");
    }
    text += &format!("## no file\n{}\n", said(folder.path(), &["run", "no.toml"]));
    golden("program_messages_about_jobs", &text);
}

/// From a table to a job, a plan and a release; then audited and compared with its input.
#[test]
fn golden_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("job.toml"), JOB).expect("a job");
    let copy =
        "COPY (SELECT * FROM sample_patients(individuals => 250, seed => 1)) TO 'visits.parquet'";
    let mut text = String::new();
    let mut run = |args: &[&str]| {
        let said = said(folder.path(), args);
        assert!(said.starts_with("exit 0"), "{args:?}: {said}");
        text += &format!("## anonymize {}\n{said}\n", args.join(" "));
    };
    run(&["sql", "-q", "-c", copy]);
    run(&["init", "visits.parquet", "-o", "made.toml"]);
    run(&["plan", "job.toml", "--vary", "l=2,4,300", "--sample", "250"]);
    run(&["run", "job.toml"]);
    run(&["run", "job.toml", "--set", "target=other", "--format", "md"]);
    let data = fs::read_dir(at("out")).expect("a release").flatten();
    let data = data.map(|entry| entry.path()).find(|path| path.is_dir());
    fs::rename(data.expect("its files"), at("data")).expect("a folder");
    let roles = [
        "--id",
        "individual",
        "--qi",
        "sex,birth_year",
        "--sensitive",
        "diagnosis",
    ];
    run(&[&["audit", "data/"][..], &roles, &["--l", "4"]].concat());
    let compare = [
        "compare",
        "visits.parquet",
        "data/",
        "--original-id",
        "patient_id",
    ];
    run(&[&compare[..], &roles].concat());
    run(&[
        "demo",
        "--individuals",
        "250",
        "--seed",
        "5",
        "--output",
        "shown",
    ]);
    for file in ["made.toml", "job.plan.svg"] {
        let made = fs::read_to_string(at(file))
            .expect("a file")
            .replace("><", ">\n<");
        text += &format!("## {file}\n{made}\n");
    }
    golden("program_output", &text);
}
