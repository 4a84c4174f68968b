//! Values that `${NAME}` brings into a job, in every key of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Told, run};

/// What all values have in them, however they are quoted or encoded.
const CORE: &str = "zq7xSecretC0re9v";

/// Values: a plain word, one with everything that is quoted or encoded somewhere, a statement, a path, and a number.
const VALUES: [&str; 5] = [
    CORE,
    "a'b\"zq7xSecretC0re9v %/\\<&>\u{fc}\n`x`",
    "SELECT zq7xSecretC0re9v, zq7xSecretC0re9v( FROM zq7xSecretC0re9v",
    "no/such/zq7xSecretC0re9v/folder/zq7xSecretC0re9v.csv",
    "s3://zq7xSecretC0re9v/zq7xSecretC0re9v",
];

const JOB: &str = "target = 'target'\ninput.people = 'people.csv'\n[publish]\nfunction = 'anonymize_eir'\nid = 'id'\n\
                   qi = ['age', 'sex']\nsensitive = 'disease'\nl = 2\n";

/// What a key that is a part of another needs beside it.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "ledger.",
        &["ledger.folder=ledger", "ledger.key='a key of the ledger'"],
    ),
    ("population.id", &["population.path=people.csv"]),
    ("publish.semi_sensitive", &["publish.k=2"]),
];

fn job(folder: &Path) {
    let mut people = "id,age,sex,disease\n".to_owned();
    for i in 0..60 {
        people += &format!("{i},{},{},d{}\n", 20 + i % 9, ["F", "M"][i % 2], i % 7);
    }
    fs::write(folder.join("people.csv"), people).unwrap();
    fs::write(folder.join("job.toml"), JOB).unwrap();
}

/// The keys of a job: those of its schema, which has the arguments of all functions.
fn keys() -> BTreeSet<String> {
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/job.schema.json"
    );
    let schema: Value = serde_json::from_slice(&fs::read(schema).unwrap()).unwrap();
    let mut keys = BTreeSet::new();
    keys_of(&schema, "", &mut keys);
    keys
}

fn keys_of(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    if !path.is_empty() {
        keys.insert(path.to_owned());
    }
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        keys_of(inner, &below(name), keys);
    }
    if schema["additionalProperties"].is_object() {
        keys_of(&schema["additionalProperties"], &below("people"), keys);
    }
    for any in schema["anyOf"].as_array().into_iter().flatten() {
        keys_of(any, path, keys);
    }
}

/// No eight characters of the value can be read, in whatever case.
fn nothing_shown(told: &Told, of: &str) {
    let core: Vec<char> = CORE.to_lowercase().chars().collect();
    for (name, text) in told.texts() {
        let text = text.to_lowercase();
        for part in core.windows(8) {
            let part: String = part.iter().collect();
            let line = text.lines().find(|line| line.contains(&part));
            assert!(line.is_none(), "{of}\n{name}: {line:?}");
        }
    }
}

#[test]
fn no_key_shows_a_value_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let keys = keys();
    assert!(
        keys.contains("input.people.path") && keys.contains("ledger.on_overlap"),
        "{keys:?}"
    );
    assert!(keys.len() > 35, "{keys:?}");
    let (mut wrong, mut replaced) = (0, 0);
    for key in &keys {
        for (at, value) in VALUES.iter().enumerate() {
            let form = match at {
                0 => "['${SECRET}', ['${SECRET}']]",
                1 => "{ age = '${SECRET}' }",
                _ => "'x${SECRET}'",
            };
            for form in ["'${SECRET}'", form]
                .into_iter()
                .take(if at < 3 { 2 } else { 1 })
            {
                let mut args = vec![["run", "plan"][at % 2], "job.toml"];
                let beside = BESIDE.iter().filter(|(begin, _)| key.starts_with(begin));
                args.extend(
                    beside
                        .flat_map(|(_, settings)| *settings)
                        .flat_map(|s| ["--set", s]),
                );
                let setting = format!("{key}={form}");
                args.extend(["--set", &setting]);
                let told = run(folder.path(), &args, &[("SECRET", value)]);
                let of = format!("{args:?} with {value:?}");
                // What is published holds what was asked for.
                assert_ne!(told.code, None, "{of}");
                nothing_shown(&told, &of);
                wrong += usize::from(told.code == Some(1));
                replaced += usize::from(told.stderr.contains("${SECRET}"));
            }
        }
    }
    assert!(
        wrong > 250 && replaced > 100,
        "{wrong} wrong, {replaced} replaced"
    );
}

/// What was said by these messages before, and what they say now.
#[test]
fn messages_show_the_name_in_place_of_the_value() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let ledger = ["ledger.folder=ledger", "ledger.key='a key of the ledger'"];
    for (settings, part) in [
        (&["report.format=${SECRET}"][..], "not \"${SECRET}\""),
        (
            &[ledger[0], ledger[1], "ledger.on_overlap=${SECRET}"],
            "not \"${SECRET}\"",
        ),
        (
            &["publish.function=${SECRET}"],
            "there is no function '${SECRET}'",
        ),
        (&["publish.id=${SECRET}"], "'${SECRET}'"),
        (&["publish.l=${SECRET}"], "'${SECRET}'"),
        (&["query=SELECT ${SECRET} FROM people"], "${SECRET}"),
        (&["input.people=${SECRET}.csv"], "${SECRET}.csv"),
        (&["target=ftp://${SECRET}/x"], "${SECRET}"),
        (&["ledger.folder=s3://x/${SECRET}", ledger[1]], "${SECRET}"),
    ] {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = ["run", "job.toml"].into_iter().chain(settings).collect();
        for value in [CORE, "longsecret-longwords", "k9"] {
            let told = run(folder.path(), &args, &[("SECRET", value)]);
            assert_eq!(told.code, Some(1), "{args:?}: {}", told.stdout);
            let said = told.stderr;
            assert!(
                said.contains(part) && !said.contains(value),
                "{args:?} with {value}: {said}"
            );
        }
    }
}

/// A job that is right: the release says what was asked for, where that is published; nothing else of the environment.
#[test]
fn a_release_shows_no_value_of_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    job(folder.path());
    let hidden = folder.path().join(CORE);
    fs::create_dir(&hidden).unwrap();
    fs::copy(folder.path().join("people.csv"), hidden.join("people.csv")).unwrap();
    for format in ["html", "md", "json"] {
        let args = [
            "run",
            "job.toml",
            "--format",
            format,
            "--set",
            "target=${SECRET}/target",
            "--set",
            "input.people=${SECRET}/people.csv",
            "--set",
            "population.path=${SECRET}/people.csv",
            "--set",
            "query=SELECT *, '${SECRET}' AS other FROM people WHERE disease <> '${SECRET}'",
            "--set",
            "publish.seed=${SECRET}",
            "--set",
            "ledger.folder=${SECRET}/ledger",
            "--set",
            "ledger.key=${SECRET}",
        ];
        let mut told = run(
            folder.path(),
            &args,
            &[("SECRET", CORE), ("RUST_LOG", "trace")],
        );
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        assert!(told.stdout.contains("${SECRET}/target/"), "{}", told.stdout);
        assert!(told.files.len() > 3, "{:?}", told.files);
        // The report, the manifest, the entry in the ledger, which tells where the release is, and the table.
        let url = format!("/{CORE}/target/\",");
        let mut entries = 0;
        for (_, text) in &mut told.files {
            entries += usize::from(text.contains(&url) && text.contains("sketch"));
            if text.contains("sketch") {
                *text = text.replace(&url, "");
            }
        }
        assert_eq!(entries, 1);
        nothing_shown(&told, format);
    }
}
