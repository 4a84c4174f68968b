//! Anatomization of Census-Income from Parquet to Parquet beside the floor: the same engine, the same columns, sorted by id
//! and written. Then growth: the same rows several times over, and the exponent of the time by their number.
//!
//! `cargo bench --bench anatomy [-- copies …]`; data is read from ../shared/data, or from the folder ANONYMIZE_DATA. Prints the
//! median of alternating runs and the ratio to the floor, the time in which groups were formed and its ratio to that of
//! SLPPA, and the mean relative error of random count queries (RECQ) by `query_error`.

#![allow(clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::Result;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::register_all;
use tikv_jemallocator::Jemalloc;

/// As in the program.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const QI: &str = "age, class_of_worker, detailed_industry_recode, education, wage_per_hour, marital_stat, \
    major_industry_code, race, sex, full_or_part_time_employment_stat";
const SENSITIVE: &str = "instance_weight";
const BOUNDS: &str = "alpha => 0.5, beta => 0.05, gamma => 0.005, delta => 0.05, tables => 3";
/// Wider α and γ.
const WIDE: &str = "alpha => 0.9, beta => 0.05, gamma => 0.05, delta => 0.05, tables => 3";
/// The bounds that Slicing has too, and δ.
const BETA_AND_DELTA: &str = "alpha => 1, beta => 0.05, gamma => 1, delta => 0.05, tables => 3";
const INDIVIDUALS: usize = 299_285;

/// For how long freed memory is kept, as in the program.
const KEPT: (&str, &str) = (
    "_RJEM_MALLOC_CONF",
    "background_thread:true,thp:always,oversize_threshold:0,dirty_decay_ms:10000",
);

fn main() -> Result<()> {
    if std::env::var_os(KEPT.0).is_some() {
        return tokio::runtime::Runtime::new()?.block_on(measure_all());
    }
    // The allocator reads it when a process starts.
    let mut again = Command::new(std::env::current_exe()?);
    let status = again
        .args(std::env::args_os().skip(1))
        .env(KEPT.0, KEPT.1)
        .status()?;
    std::process::exit(status.code().unwrap_or(1))
}

async fn measure_all() -> Result<()> {
    let data = match std::env::var_os("ANONYMIZE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
    };
    let file = data.join("census_income_kdd.parquet");
    if !file.exists() {
        println!("no Census-Income in {}", data.display());
        return Ok(());
    }
    let given: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let copies = if given.is_empty() {
        vec![1, 4, 17]
    } else {
        given
    };
    let folder = tempfile::tempdir()?;
    let mut times: Vec<(usize, f64)> = vec![];
    for copies in copies {
        let table = folder.path().join(format!("census-{copies}.parquet"));
        prepare(&file, &table, copies).await?;
        times.push((copies, measure(&table, folder.path(), copies).await?));
    }
    if let ([(few, before), ..], [.., (many, after)]) = (times.as_slice(), times.as_slice())
        && many > few
    {
        let exponent = (after / before).ln() / (*many as f64 / *few as f64).ln();
        println!("slppa from {few} to {many} copies: time grows as individuals^{exponent:.2}");
    }
    Ok(())
}

fn context() -> Result<SessionContext> {
    let ctx = SessionContext::new();
    register_all(&ctx)?;
    Ok(ctx)
}

/// Writes the rows so many times over, each with an id of its own.
async fn prepare(file: &Path, table: &Path, copies: usize) -> Result<()> {
    let numbers: Vec<String> = (0..copies).map(|n| format!("({n})")).collect();
    let sql = format!(
        "COPY (SELECT row_number() OVER () AS id, c.* \
         FROM (SELECT {QI}, {SENSITIVE} FROM anonymize_input('{}')) c CROSS JOIN (VALUES {}) v(n)) TO '{}'",
        file.display(),
        numbers.join(", "),
        table.display()
    );
    context()?.sql(&sql).await?.collect().await?;
    Ok(())
}

/// What a job took.
#[derive(Clone, Copy)]
struct Taken {
    seconds: f64,
    /// In which groups were formed.
    forming: f64,
}

/// Runs all jobs in turn; returns the seconds of SLPPA.
async fn measure(table: &Path, folder: &Path, copies: usize) -> Result<f64> {
    let input = format!("'{}'", table.display());
    let call = format!("{input}, id => id, qi => [{QI}], sensitive => {SENSITIVE}");
    let method = |rest: &str| format!("SELECT * FROM anatomize_slppa({call}, {rest}, seed => 1)");
    let jobs = [
        (
            "floor: read, sort, write",
            format!("SELECT * FROM anonymize_input({input}) ORDER BY id"),
        ),
        ("slppa", method(BOUNDS)),
        (
            "slppa, block => 'all'",
            method(&format!("{BOUNDS}, block => 'all'")),
        ),
        (
            "slppa_similar",
            method(&format!("{BOUNDS}, method => 'slppa_similar'")),
        ),
        (
            "slppa_similar, wide α and γ",
            method(&format!("{WIDE}, method => 'slppa_similar'")),
        ),
        (
            "slppa_similar, only β and δ",
            method(&format!("{BETA_AND_DELTA}, method => 'slppa_similar'")),
        ),
        (
            "slicing",
            method("beta => 0.05, tables => 3, method => 'slicing'"),
        ),
        (
            "asn",
            method("beta => 0.05, gamma => 0.005, method => 'asn'"),
        ),
    ];
    let jobs = if copies == 1 { &jobs[..] } else { &jobs[..2] };
    let runs = if copies == 1 { 5 } else { 1 };
    let mut taken = vec![vec![]; jobs.len()];
    for _ in 0..runs {
        for ((_, query), taken) in jobs.iter().zip(&mut taken) {
            taken.push(run(query, &folder.join("out.parquet")).await?);
        }
    }
    println!("{} individuals", copies * INDIVIDUALS);
    let median = |taken: &[Taken], of: fn(&Taken) -> f64| {
        let mut values: Vec<f64> = taken.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let floor = median(&taken[0], |t| t.seconds);
    let forming = median(&taken[1], |t| t.forming);
    for ((name, _), taken) in jobs.iter().zip(&taken) {
        let (seconds, own) = (median(taken, |t| t.seconds), median(taken, |t| t.forming));
        print!("{name:28} {seconds:7.2} s  {:5.1} × floor", seconds / floor);
        match own > 0.0 {
            true => println!("  groups {own:8.3} s  {:6.1} × slppa", own / forming),
            false => println!(),
        }
    }
    if copies == 1 {
        errors(&input, &jobs[1..]).await?;
    }
    Ok(median(&taken[1], |t| t.seconds))
}

/// Runs a query into a file.
async fn run(query: &str, target: &Path) -> Result<Taken> {
    let sql = format!("COPY ({query}) TO '{}'", target.display());
    let ctx = context()?;
    let begin = Instant::now();
    let plan = ctx.sql(&sql).await?.create_physical_plan().await?;
    collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    std::fs::remove_file(target)?;
    Ok(Taken {
        seconds,
        forming: forming(&plan),
    })
}

/// The seconds in which groups were formed, over all partitions.
fn forming(plan: &Arc<dyn ExecutionPlan>) -> f64 {
    let metrics = plan.metrics();
    let own = metrics.and_then(|m| m.sum_by_name("time_forming_classes"));
    let own = own.map_or(0.0, |time| time.as_usize() as f64 / 1e9);
    own + plan.children().into_iter().map(forming).sum::<f64>()
}

/// The mean relative error of random count queries, the same for all methods. The sensitive column, which has too many
/// values for random sets, is asked for by range as any other.
async fn errors(input: &str, jobs: &[(&str, String)]) -> Result<()> {
    for (name, query) in jobs.iter().filter(|(name, _)| !name.contains("block")) {
        let ctx = context()?;
        let release = format!("CREATE TABLE published AS {query}");
        ctx.sql(&release).await?.collect().await?;
        for dimensions in [2, 3, 5] {
            let sql = format!(
                "SELECT mean FROM query_error_summary({input}, published, qi => [{QI}, {SENSITIVE}], queries => 1000, \
                 dimensions => {dimensions}, selectivity => 0.1, seed => 5)"
            );
            let batches = ctx.sql(&sql).await?.collect().await?;
            let mean = batches[0].column(0).as_primitive::<Float64Type>().value(0);
            println!("{name:28} RECQ {mean:.4}, {dimensions} columns");
        }
    }
    Ok(())
}
