//! Broken input, with a word in its cells that nobody may read afterwards.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use datafusion_anonymize::TABLE_FUNCTIONS;

use super::{Told, run};

/// In every cell that makes something fail.
const CANARY: &str = "zqcanary";

/// A place where a file or a table can be named, as a command. `FILE` is the file.
const PLACES: &[&[&str]] = &[
    &["init", "FILE"],
    &["init", "FILE", "--output", "made.toml"],
    &[
        "audit",
        "FILE",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
    ],
    &[
        "audit",
        "FILE",
        "--one-row-per-individual",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
        "--format",
        "json",
    ],
    &[
        "audit",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
        "--population",
        "FILE",
    ],
    &[
        "audit",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
        "--original",
        "FILE",
    ],
    &[
        "audit",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
        "--categories",
        "FILE",
    ],
    &[
        "audit",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
        "--hierarchy",
        "sex=FILE",
    ],
    &[
        "compare",
        "FILE",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
    ],
    &[
        "compare",
        "good.csv",
        "FILE",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--sensitive",
        "disease",
    ],
    &[
        "compare",
        "good.csv",
        "good.csv",
        "--id",
        "id",
        "--qi",
        "age,sex",
        "--hierarchy",
        "sex=FILE",
    ],
    &["run", "job.toml", "--set", "input.people=FILE"],
    &[
        "run",
        "job.toml",
        "--set",
        "input.people=FILE",
        "--set",
        "ledger={ folder = 'ledger', key = 'a key of the ledger' }",
    ],
    &[
        "run",
        "job.toml",
        "--set",
        "input.others=FILE",
        "--set",
        "query=SELECT people.* FROM people JOIN others USING (id)",
    ],
    &["run", "job.toml", "--set", "population.path=FILE"],
    &[
        "run",
        "job.toml",
        "--set",
        "population.sql=SELECT * FROM 'FILE'",
        "--set",
        "population.id=id",
    ],
    &[
        "run",
        "job.toml",
        "--set",
        "publish.hierarchy={ sex = 'FILE' }",
    ],
    &[
        "run",
        "job.toml",
        "--set",
        "publish.function=anonymize_p_sensitive",
        "--set",
        "publish.p=2",
        "--set",
        "publish.categories=FILE",
    ],
    &["plan", "job.toml", "--set", "input.people=FILE"],
    &[
        "plan",
        "job.toml",
        "--set",
        "publish.hierarchy={ sex = 'FILE' }",
    ],
    &["sql", "-q", "-c", "SELECT * FROM 'FILE'"],
    &["sql", "-q", "--format", "csv", "-c", "SELECT * FROM 'FILE'"],
    &[
        "sql",
        "-q",
        "-c",
        "CREATE EXTERNAL TABLE t STORED AS KIND LOCATION 'FILE'",
        "-c",
        "CREATE TABLE u AS SELECT * FROM t",
    ],
    &[
        "sql",
        "-q",
        "-c",
        "COPY (SELECT * FROM 'FILE') TO 'copy.json'",
    ],
    &["sql", "-q", "-c", "SELECT * FROM hierarchy('FILE')"],
    &[
        "sql",
        "-q",
        "-c",
        "SELECT * FROM hierarchy('FILE', column => disease, by => 'even(3)')",
    ],
    &[
        "sql",
        "-q",
        "-c",
        "SELECT * FROM hierarchy('good.csv', column => sex, by => 'FILE')",
    ],
];

/// Commands that read no table.
const WITHOUT_TABLE: [&str; 2] = ["demo", "help"];

/// Calls over a table whose disease cannot be computed, or with such a table beside a good one.
const CALLS: &[&str] = &[
    "anonymize_ir(BAD, id => id, qi => [age, sex], sensitive => disease, k => 2)",
    "anonymize_eir(BAD, id => id, qi => [age, sex], sensitive => disease, l => 2)",
    "anonymize_eir(BAD, id => disease, qi => [age, sex], sensitive => salary, l => 2)",
    "anonymize_eir(BAD, id => id, qi => [age, disease], sensitive => salary, l => 2)",
    "anonymize_eir(BAD, id => id, qi => [age, sex], sensitive => salary, keep => [disease], l => 2)",
    "anonymize_eir(good, id => id, qi => [age, sex], sensitive => disease, l => 2, hierarchy => {sex: bad})",
    "anonymize_eir_alpha_beta(BAD, id => id, qi => [age, sex], sensitive => disease, alpha => 0.9, beta => 0.9)",
    "anonymize_ir_alpha_beta(BAD, id => id, qi => [age, sex], sensitive => disease, alpha => 0.9, beta => 0.9)",
    "anonymize_p_sensitive(BAD, id => id, qi => [age, sex], sensitive => disease, k => 2, p => 2)",
    "anonymize_p_sensitive(good, id => id, qi => [age, sex], sensitive => disease, k => 2, p => 2, categories => bad)",
    "anonymize_lgb(BAD, id => id, qi => [age, sex], semi_sensitive => {age: hidden}, sensitive => disease, k => 2, l => 2)",
    "anonymize_kl(BAD, id => id, qi => [age], sensitive => disease, k => 2, l => 2, hierarchy => {disease: 'mask(1)'})",
    "anonymize_kkm(BAD, id => id, qi => [age], sensitive => disease, k => 2, m => 2, delta => 0.5, hierarchy => {disease: 'mask(1)'})",
    "anonymize_kl(BAD, id => id, qi => [age], sensitive => disease, k => 2, l => 2, hierarchy => {disease: 'even(2)'})",
    "anonymize_kl(BAD, id => id, qi => [age], sensitive => disease, k => 2, l => 2, hierarchy => {disease: 'co_occurrence(2)'})",
    "anatomize_slppa(BAD, id => id, qi => [age, sex], sensitive => disease, alpha => 1, beta => 0.5, gamma => 0.5, delta => 0.5)",
    "anatomize_division(BAD, id => id, qi => [age, sex], sensitive => disease, alpha => 1, beta => 0.5, gamma => 0.5, delta => 0.5)",
    "publish('target', (SELECT * FROM anonymize_eir(BAD, id => id, qi => [age, sex], sensitive => disease, l => 2)))",
    "audit(BAD, id => id, qi => [age, sex], sensitive => disease)",
    "audit(good, id => id, qi => [age, sex], sensitive => disease, original => BAD)",
    "audit(good, id => id, qi => [age, disease], sensitive => salary, population => BAD)",
    "audit(good, id => id, qi => [age, sex], sensitive => disease, categories => bad)",
    "audit(good, id => id, qi => [age, sex], sensitive => disease, hierarchy => {disease: bad})",
    "audit_classes(BAD, id => id, qi => [age, sex], sensitive => disease)",
    "vulnerable_classes(BAD, id => id, qi => [age, sex], sensitive => disease, l => 2)",
    "similarity_attack(BAD, id => id, qi => [age, sex], sensitive => disease, categories => [['1'], ['2']])",
    "similarity_attack(good, id => id, qi => [age, sex], sensitive => disease, categories => bad)",
    "information_loss(BAD, good, id => id, qi => [age, disease])",
    "information_loss(good, BAD, id => id, qi => [age, disease])",
    "query_error(BAD, good, qi => [age], sensitive => disease, queries => 5)",
    "query_error(good, BAD, qi => [age], sensitive => disease, queries => 5)",
    "query_error_summary(BAD, good, qi => [age], sensitive => disease, queries => 5)",
    "query_error_summary(good, BAD, qi => [age], sensitive => disease, queries => 5)",
    "audit_buckets((SELECT id AS individual, age, disease AS disease_bucketized, salary AS disease_bid FROM BAD))",
    "estimate(BAD, 'SELECT disease, count(*) FROM t WHERE age > 30 GROUP BY disease')",
    "estimate_sum((SELECT id AS individual, age, disease AS disease_bucketized, salary AS disease_bid FROM BAD), \
     'SELECT sum(disease) FROM t WHERE age > 30', qi => [age])",
    "hierarchy(BAD, column => disease, by => 'bins(5, 20)')",
    "hierarchy(BAD, column => disease, by => 'even(2)')",
    "hierarchy(BAD, column => disease, by => 'co_occurrence(2)', id => id)",
    "hierarchy(bad)",
    // No function of ours.
    "BAD",
    "good JOIN BAD ON good.id = bad.disease",
    "(SELECT max(disease) FROM BAD)",
];

/// What the disease of the bad table is computed by, and the types in which it comes.
const FAILING: &[&str] = &[
    "CAST(disease AS INT)",
    "CAST(disease AS DATE)",
    "arrow_cast(disease, 'Decimal128(9, 2)')",
    "to_timestamp(disease)",
    "CAST(disease AS BOOLEAN)",
];

/// Nobody may read the word, but in a release that could be made, and in its report of what it shows.
fn nothing_shown(told: &Told, of: &str) {
    let printed = |name: &str| ["stdout", "stderr"].contains(&name);
    let shown = |name: &str| told.code != Some(0) || printed(name);
    for (name, text) in told.texts().filter(|(name, _)| shown(name)) {
        let line = text.lines().find(|line| line.contains(CANARY));
        assert!(line.is_none(), "{of}\n{name}: {line:?}");
    }
}

/// A table in CSV: so many good rows, and then others.
fn csv(rows: usize, bad: &[u8]) -> Vec<u8> {
    let mut text = "id,age,sex,disease,salary,hidden\n".to_owned();
    for i in 0..rows {
        let sex = ["F", "M"][i % 2];
        let _ = writeln!(
            text,
            "{i},{},{sex},d{},{},{}",
            20 + i % 9,
            i % 7,
            i % 11,
            i % 3 == 0
        );
    }
    [text.as_bytes(), bad].concat()
}

/// The same in lines of JSON.
fn json(rows: usize, bad: &str) -> Vec<u8> {
    let mut text = String::new();
    for i in 0..rows {
        let _ = writeln!(
            text,
            "{{\"id\": {i}, \"age\": {}, \"sex\": \"F\", \"disease\": \"d{}\", \"salary\": 3, \"hidden\": true}}",
            20 + i % 9,
            i % 7
        );
    }
    (text + bad).into_bytes()
}

/// Files that are broken in several ways, with the word in them.
fn broken(folder: &Path) -> Vec<&'static str> {
    let row = format!("{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},{CANARY}");
    let late = csv(1100, format!("{row}\n").as_bytes());
    let bytes = csv(1100, format!("1,2,{CANARY}\u{e9},d,3,true\n").as_bytes());
    // The second byte of a letter is missing.
    let bytes = bytes.into_iter().filter(|b| *b != 0xa9).collect();
    let whole = fs::read(folder.join("good.parquet")).unwrap();
    let mut flipped = whole.clone();
    for at in (40..whole.len() / 2).step_by(7) {
        flipped[at] ^= 0x55;
    }
    let text = CANARY.repeat(40).into_bytes();
    let parquet = |length: u32| [b"PAR1", &text[..], &length.to_le_bytes(), b"PAR1"].concat();
    let files: Vec<(&str, Vec<u8>)> = vec![
        ("wide.csv", csv(20, format!("{row},{CANARY}\n").as_bytes())),
        (
            "later.csv",
            csv(1100, format!("{row},{CANARY}\n").as_bytes()),
        ),
        ("late.csv", late),
        ("bytes.csv", bytes),
        (
            "quote.csv",
            csv(1100, format!("1,\"{CANARY}\n{row}\n").as_bytes()),
        ),
        (
            "late.json",
            json(
                1100,
                &format!(
                    "{{\"id\": \"{CANARY}\", \"age\": \"{CANARY}\", \"disease\": [\"{CANARY}\"]}}\n"
                ),
            ),
        ),
        (
            "open.json",
            json(3, &format!("{{\"id\": \"{CANARY}\", \"age\": {CANARY}\n")),
        ),
        ("bare.json", format!("\"{CANARY}\"\n").into_bytes()),
        ("text.parquet", text.clone()),
        ("footer.parquet", parquet(100)),
        ("length.parquet", parquet(u32::MAX)),
        (
            "short.parquet",
            [&b"PAR1"[..], &[0xff; 4], b"PAR1"].concat(),
        ),
        ("cut.parquet", whole[..whole.len() - 20].to_vec()),
        ("flipped.parquet", flipped),
        ("text.arrow", text.clone()),
        ("head.arrow", [b"ARROW1\0\0", &text[..], b"ARROW1"].concat()),
        ("text.avro", text.clone()),
        ("head.avro", [b"Obj\x01", &text[..]].concat()),
    ];
    for (name, bytes) in &files {
        fs::write(folder.join(name), bytes).unwrap();
    }
    files.into_iter().map(|(name, _)| name).collect()
}

/// A folder with good tables and a good job.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("good.csv"), csv(60, b"")).unwrap();
    fs::write(
        at("canaries.csv"),
        csv(60, format!("77,31,F,{CANARY},3,true\n").as_bytes()),
    )
    .unwrap();
    let job = "target = 'target'\ninput.people = 'good.csv'\n[publish]\nfunction = 'anonymize_eir'\nid = 'id'\n\
               qi = ['age', 'sex']\nsensitive = 'disease'\nl = 2\n";
    fs::write(at("job.toml"), job).unwrap();
    let copy = format!(
        "COPY (SELECT *, '{CANARY}' || id AS name FROM 'good.csv') TO 'good.parquet' OPTIONS (compression 'uncompressed')"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command
        .current_dir(folder.path())
        .args(["sql", "-q", "-c", &copy]);
    assert!(command.status().unwrap().success());
    folder
}

/// Commands and options that name a file, as the program's help lists them.
#[test]
fn every_place_of_a_file_is_among_them() {
    let folder = tempfile::tempdir().unwrap();
    let help = |args: &[&str]| run(folder.path(), args, &[]).stdout;
    let commands = help(&["--help"]);
    let commands = commands.split_once("Commands:\n").unwrap().1;
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let command = line.split_whitespace().next().unwrap();
        let here = PLACES.iter().any(|place| place[0] == command);
        assert!(here || WITHOUT_TABLE.contains(&command), "{command}");
    }
    for command in ["audit", "compare"] {
        let help = help(&[command, "--help"]);
        for line in help.lines().filter(|line| line.contains("FILE")) {
            let Some(option) = line.trim().strip_prefix("--") else {
                continue;
            };
            let option = format!("--{}", option.split(' ').next().unwrap());
            let here = |place: &&&[&str]| place[0] == command && place.contains(&option.as_str());
            assert!(
                PLACES.iter().any(|place| here(&place)),
                "{command} {option}"
            );
        }
    }
    for name in TABLE_FUNCTIONS.iter().map(|f| f.name) {
        // They read no table, counts by the plan of `estimate`, and what the program has written.
        if ["sample_patients", "estimated", "release"].contains(&name) {
            continue;
        }
        let begin = format!("{name}(");
        assert!(CALLS.iter().any(|call| call.starts_with(&begin)), "{name}");
    }
}

#[test]
fn broken_files_show_no_cell() {
    let folder = folder();
    let mut failed = 0;
    let mut helped = 0;
    for (at, file) in broken(folder.path()).into_iter().enumerate() {
        let kind = file.split_once('.').unwrap().1.to_uppercase();
        for (number, place) in PLACES.iter().enumerate() {
            // Each process takes its time: what shows cells most easily everywhere, the others in turn.
            let everywhere = ["bytes.csv", "later.csv", "late.json", "text.parquet"];
            if !everywhere.contains(&file) && (number + at) % 3 > 0 {
                continue;
            }
            let args: Vec<String> = place
                .iter()
                .map(|arg| arg.replace("FILE", file).replace("KIND", &kind))
                .collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let told = run(folder.path(), &args, &[]);
            // A copy of a table that can be read has its cells.
            if told.code == Some(0) && place[0] == "sql" {
                continue;
            }
            nothing_shown(&told, &format!("{args:?}"));
            assert_ne!(told.code, Some(101), "{args:?}: {}", told.stderr);
            failed += usize::from(told.code != Some(0));
            helped += usize::from(told.stderr.contains("withheld"));
        }
    }
    assert!(
        failed > 150 && helped > 60,
        "{failed} failed, {helped} told why nothing is shown"
    );
}

#[test]
fn failing_expressions_show_no_cell() {
    let folder = folder();
    for (at, failing) in FAILING.iter().enumerate() {
        let views = [
            "CREATE VIEW good AS SELECT * FROM 'good.csv'".to_owned(),
            format!(
                "CREATE VIEW bad AS SELECT id, age, sex, {failing} AS disease, salary, hidden, age AS rank, {failing} AS value FROM 'canaries.csv'"
            ),
        ];
        for (number, call) in CALLS.iter().enumerate() {
            // Each call once with a cast to a number, and with one of the others.
            if at > 0 && number % (FAILING.len() - 1) != at - 1 {
                continue;
            }
            let sql = format!("SELECT * FROM {}", call.replace("BAD", "bad"));
            let args = ["sql", "-q", "-c", &views[0], &views[1], &sql];
            let told = run(folder.path(), &args, &[]);
            assert_eq!(told.code, Some(1), "{sql} with {failing}: {}", told.stdout);
            nothing_shown(&told, &format!("{sql} with {failing}"));
        }
    }
    let job = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let args: Vec<&str> = ["run", "job.toml"].into_iter().chain(settings).collect();
        let told = run(folder.path(), &args, &[]);
        assert_eq!(told.code, Some(1), "{args:?}: {}", told.stdout);
        nothing_shown(&told, &format!("{args:?}"));
        told.stderr
    };
    let bad = "input.people={ sql = \"SELECT * REPLACE (CAST(disease AS INT) AS disease) FROM 'canaries.csv'\" }";
    let said = job(&[bad]);
    assert!(
        said.contains("a value that cannot be cast to Int32") && said.contains("withheld"),
        "{said}"
    );
    let key = "ledger={ folder = 'ledger', key = 'a key of the ledger' }";
    job(&[bad, key, "publish.id=disease", "publish.sensitive=salary"]);
    job(&[
        "population.sql=SELECT age, sex, CAST(disease AS INT) AS id FROM 'canaries.csv'",
        "population.id=id",
    ]);
}

/// What is left of a message says where to look.
#[test]
fn messages_without_cells_still_help() {
    let folder = folder();
    broken(folder.path());
    let said = |args: &[&str]| run(folder.path(), args, &[]).stderr;
    for (args, parts) in [
        (
            &["init", "late.csv"][..],
            &["column 'age' of 'late.csv' is read as text"][..],
        ),
        (
            &["init", "wide.csv"],
            &[
                "cannot look at 'wide.csv'",
                "7 fields where 6 are expected",
                "withheld",
            ],
        ),
        (
            &["sql", "-c", "SELECT * FROM 'later.csv'"],
            &[
                "cannot read 'later.csv'",
                "7 fields where 6 are expected (line 1102 as the engine counts)",
            ],
        ),
        (
            &["sql", "-c", "SELECT * FROM 'text.parquet'"],
            &["no Parquet file"],
        ),
        (
            &[
                "sql",
                "-c",
                "SELECT CAST(disease AS INT) FROM 'canaries.csv'",
            ],
            &[
                "query: ",
                "cannot be cast to Int32",
                "shell",
                "reads 'canaries.csv'",
            ],
        ),
        (
            &[
                "sql",
                "-c",
                "CREATE EXTERNAL TABLE late STORED AS CSV LOCATION 'late.csv' OPTIONS ('format.has_header' 'true')",
                "SELECT * FROM anonymize_eir(late, id => id, qi => [age], sensitive => disease, l => 2)",
            ],
            &[
                "anonymize_eir: ",
                "as Int64 (line 1101 as the engine counts, column ",
            ],
        ),
        // Nothing is withheld that holds no cell.
        (
            &["sql", "-c", "SELECT nothing FROM 'good.csv'"],
            &["No field named nothing", "good.csv"],
        ),
        (&["sql", "-c", "SELEC 3"], &["found: SELEC"]),
        (
            &["sql", "-c", "SELECT * FROM 'missing.csv'"],
            &["missing.csv' not found"],
        ),
    ] {
        let said = said(args);
        for part in parts {
            assert!(said.contains(part), "{args:?}: {part}: {said}");
        }
    }
}

/// Who asks for more to be logged gets no cells either.
#[test]
fn logs_show_no_cell() {
    let folder = folder();
    for file in broken(folder.path()) {
        for place in [PLACES[0], PLACES[2], PLACES[11]] {
            let args: Vec<String> = place.iter().map(|arg| arg.replace("FILE", file)).collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let told = run(folder.path(), &args, &[("RUST_LOG", "trace")]);
            nothing_shown(&told, &format!("{args:?}"));
        }
    }
}
