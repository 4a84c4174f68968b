//! How much memory the program takes, seen from outside, where its input does not fit into what it may take.
//!
//! Small by default. At full scale, 45 million records in 256 MB, which takes hours:
//! `ANONYMIZE_FULL_SCALE=1 cargo test --release -p anonymize --test memory -- --nocapture`
//! Names of functions instead of `1`, with commas between them, run these alone.

#![cfg(target_os = "linux")] // where a process has a page in /proc
#![allow(clippy::expect_used)] // a test that cannot start the program has failed

#[path = "../../tests/suite/calls.rs"]
mod calls;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use futures::StreamExt;

use calls::{CALLS, call, wards};

struct Scale {
    individuals: u64,
    block: &'static str,
    /// The engine's memory in MB.
    pool: u64,
    calls: Vec<&'static str>,
}

impl Scale {
    fn chosen() -> Self {
        if let Ok(functions) = std::env::var("ANONYMIZE_FULL_SCALE") {
            return Self {
                individuals: 5_000_000,
                block: "25000",
                pool: 256,
                calls: match functions.as_str() {
                    "1" => CALLS.to_vec(),
                    some => calls_of(some),
                },
            };
        }
        Self {
            individuals: 20_000,
            block: "1000",
            pool: 16,
            calls: calls_of("anonymize_eir,anonymize_ir,anatomize_slppa"),
        }
    }

    /// The most resident memory of the program, in MB.
    fn bound(&self) -> u64 {
        self.pool * 13 / 10 + 300
    }
}

/// The calls of functions, given by their names.
fn calls_of(functions: &str) -> Vec<&'static str> {
    let calls_of = |name: &str| {
        let begin = format!("SELECT * FROM {name}(");
        let calls = CALLS.iter().filter(|call| call.starts_with(&begin));
        let calls: Vec<_> = calls.copied().collect();
        assert!(!calls.is_empty(), "there is no call of {name}");
        calls
    };
    functions.split(',').flat_map(calls_of).collect()
}

/// What one run shows.
struct Seen {
    /// The largest resident memory, in MB.
    peak: u64,
    stdout: String,
}

#[tokio::test]
async fn memory_is_bounded_and_what_is_published_does_not_depend_on_it() {
    let scale = Scale::chosen();
    let folder = tempfile::tempdir().expect("folder");
    let of = |name: &str| folder.path().join(name).display().to_string();
    let patients = format!(
        "COPY (SELECT * FROM sample_patients({}, 1)) TO '{}/' STORED AS PARQUET",
        scale.individuals,
        of("patients")
    );
    run(folder.path(), &patients, &scale, false);
    let table = format!("'{}/'", of("patients"));
    for query in &scale.calls {
        let query = call(query, &table, scale.block);
        let copy = |output| {
            format!(
                "EXPLAIN ANALYZE COPY ({query}) TO '{}/' STORED AS PARQUET",
                of(output)
            )
        };
        let limited = run(folder.path(), &copy("limited"), &scale, true);
        let roomy = run(folder.path(), &copy("roomy"), &scale, false);
        println!(
            "{} MB, without limit {} MB: {query}",
            limited.peak, roomy.peak
        );
        assert!(
            limited.peak <= scale.bound(),
            "{} MB: {query}",
            limited.peak
        );
        assert!(spilled(&limited.stdout), "{}", limited.stdout);
        assert!(!spilled(&roomy.stdout), "{}", roomy.stdout);
        let rows = rows(&of("limited")).await;
        assert!(rows.0 > scale.individuals, "{rows:?}: {query}");
        assert_eq!(rows, self::rows(&of("roomy")).await, "{query}");
        for output in ["limited", "roomy"] {
            fs::remove_dir_all(of(output)).expect("folder");
        }
    }
}

#[test]
fn measuring_is_bounded_too() {
    let scale = Scale::chosen();
    // It needs less.
    let scale = Scale {
        pool: scale.pool * 3 / 4,
        ..scale
    };
    let folder = tempfile::tempdir().expect("folder");
    let published = folder.path().join("published");
    let sample = format!("sample_patients({}, 1)", scale.individuals);
    let publish = format!(
        "COPY ({}) TO '{}/' STORED AS PARQUET",
        call(CALLS[0], &sample, scale.block),
        published.display()
    );
    run(folder.path(), &publish, &scale, false);
    let audit = format!(
        "SELECT * FROM audit('{}/', id => individual, qi => [birth_year, sex, race], sensitive => diagnosis)",
        published.display()
    );
    let explain = format!("EXPLAIN ANALYZE {audit}");
    let limited = run(folder.path(), &audit, &scale, true);
    let explained = run(folder.path(), &explain, &scale, true);
    let roomy = run(folder.path(), &audit, &scale, false);
    println!(
        "{} MB, without limit {} MB: {audit}",
        limited.peak, roomy.peak
    );
    assert!(limited.peak <= scale.bound(), "{} MB", limited.peak);
    assert!(spilled(&explained.stdout), "{}", explained.stdout);
    assert_eq!(limited.stdout, roomy.stdout);
}

/// Runs a statement in the program, with little memory or as much as it wants.
fn run(folder: &Path, sql: &str, scale: &Scale, limited: bool) -> Seen {
    let stdout = folder.join("stdout");
    let mut command = Command::new(env!("CARGO_BIN_EXE_anonymize"));
    command
        .args(["sql", "-q", "--format", "csv"])
        .env("TMPDIR", folder)
        .env("DATAFUSION_EXECUTION_TARGET_PARTITIONS", "2")
        .stdout(File::create(&stdout).expect("file"))
        .stderr(Stdio::inherit());
    if limited {
        command.args(["-m", &format!("{}m", scale.pool)]);
    }
    command.args(["-c", &wards(), "-c", sql]);
    let mut child = command.spawn().expect("start");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        if let Some(ended) = child.try_wait().expect("a child") {
            break ended;
        }
        peak = peak.max(high_water_mark(&status));
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(ended.success(), "{sql}");
    Seen {
        peak,
        stdout: fs::read_to_string(stdout).expect("file"),
    }
}

/// The kernel's own record of a process's largest resident memory, in MB.
fn high_water_mark(status: &str) -> u64 {
    let status = fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default().div_ceil(1024)
}

/// Whether an operator of an analyzed plan has spilled.
fn spilled(plan: &str) -> bool {
    let mut counts = plan.split("spill_count=").skip(1);
    counts.any(|count| !count.starts_with('0'))
}

/// How many rows there are in a folder, and a hash of them, whatever their order.
async fn rows(folder: &str) -> (u64, u64) {
    let ctx = SessionContext::new();
    let files = ParquetReadOptions::default();
    let table = ctx.read_parquet(folder, files).await.expect("files");
    let mut stream = table.execute_stream().await.expect("a stream");
    let fields = stream.schema().fields().clone();
    let fields = fields.iter().map(|f| SortField::new(f.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).expect("types");
    let (mut count, mut sum) = (0, 0u64);
    while let Some(batch) = stream.next().await {
        let batch = batch.expect("rows");
        let rows = converter.convert_columns(batch.columns()).expect("rows");
        for row in &rows {
            let mut hasher = DefaultHasher::new();
            hasher.write(row.data());
            sum = sum.wrapping_add(hasher.finish());
        }
        count += batch.num_rows() as u64;
    }
    (count, sum)
}
