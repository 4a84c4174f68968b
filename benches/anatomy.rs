//! Anatomization of Census-Income from Parquet to Parquet beside the floor: the same engine, the same columns, sorted and
//! written. Then growth: the same rows several times over.
//!
//! `cargo bench --bench anatomy [-- copies …]`; data is read from ../shared/data, or from the folder ANONYMIZE_DATA. Prints the
//! median of alternating runs and the ratio to the floor.

#![allow(clippy::expect_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::register_all;

const QI: &str = "age, class_of_worker, detailed_industry_recode, education, wage_per_hour, marital_stat, \
    major_industry_code, race, sex, full_or_part_time_employment_stat";
const SENSITIVE: &str = "instance_weight";
const BOUNDS: &str = "alpha => 0.5, beta => 0.05, gamma => 0.005, delta => 0.05, tables => 3";
const INDIVIDUALS: usize = 299_285;

#[tokio::main]
async fn main() -> Result<()> {
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
    for copies in copies {
        let table = folder.path().join(format!("census-{copies}.parquet"));
        prepare(&file, &table, copies).await?;
        measure(&table, folder.path(), copies).await?;
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

/// Runs all jobs in turn.
async fn measure(table: &Path, folder: &Path, copies: usize) -> Result<()> {
    let input = format!("'{}'", table.display());
    let call = format!("{input}, id => id, qi => [{QI}], sensitive => {SENSITIVE}");
    let slppa = |rest: &str| format!("SELECT * FROM anatomize_slppa({call}, {BOUNDS}{rest})");
    let jobs = [
        (
            "floor: read, sort, write",
            format!("SELECT * FROM anonymize_input({input}) ORDER BY {SENSITIVE}"),
        ),
        ("slppa", slppa("")),
        ("slppa, block => 'all'", slppa(", block => 'all'")),
        ("slppa_similar", slppa(", method => 'slppa_similar'")),
        (
            "slicing",
            format!(
                "SELECT * FROM anatomize_slppa({call}, beta => 0.05, tables => 3, method => 'slicing')"
            ),
        ),
    ];
    let jobs = if copies == 1 { &jobs[..] } else { &jobs[..2] };
    let runs = if copies == 1 { 5 } else { 1 };
    let mut seconds = vec![vec![]; jobs.len()];
    for _ in 0..runs {
        for ((_, query), seconds) in jobs.iter().zip(&mut seconds) {
            let target = folder.join("out.parquet");
            let sql = format!("COPY ({query}) TO '{}'", target.display());
            let ctx = context()?;
            let begin = Instant::now();
            ctx.sql(&sql).await?.collect().await?;
            seconds.push(begin.elapsed().as_secs_f64());
            std::fs::remove_file(&target)?;
        }
    }
    println!("{} individuals", copies * INDIVIDUALS);
    let median = |seconds: &mut Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let floor = median(&mut seconds[0]);
    for ((name, _), seconds) in jobs.iter().zip(&mut seconds) {
        let time = median(seconds);
        println!("{name:26} {time:7.2} s  {:5.1} × floor", time / floor);
    }
    Ok(())
}
