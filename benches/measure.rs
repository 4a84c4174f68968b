//! An audit against the groupings in it, and a workload of random count queries at once against the same queries asked
//! one by one in SQL. Tables are Parquet files.
//!
//! `cargo bench --bench measure -- [individuals] [queries]` (defaults: 50,000 and 1,000)

#![allow(clippy::expect_used, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use datafusion_anonymize::register_all;

const COLUMNS: &str = "birth_month, birth_year, sex, race, education_years, marital_status";
/// Queries that are asked one by one; asking all would take long.
const ALONE: usize = 100;
/// How often the audit is timed.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() {
    let mut numbers = std::env::args().filter_map(|a| a.parse::<usize>().ok());
    let individuals = numbers.next().unwrap_or(50_000);
    let queries = numbers.next().unwrap_or(1_000);
    let ctx = SessionContext::new();
    register_all(&ctx).expect("functions are registered");

    let folder = tempfile::tempdir().expect("a folder for the tables");
    let patients = format!("SELECT * FROM sample_patients({individuals})");
    write(&ctx, folder.path(), "original", &patients).await;
    let anonymized = format!(
        "SELECT * FROM anonymize_eir(original, id => patient_id, qi => [{COLUMNS}], sensitive => diagnosis, \
         l => 3, seed => 1)"
    );
    let took = write(&ctx, folder.path(), "published", &anonymized).await;
    let (counted, _) = run(&ctx, "SELECT count(*)::DOUBLE FROM original").await;
    let records = counted[0].column(0).as_primitive::<Float64Type>().value(0);
    println!("{records} records, published in {took:.2?}");
    audit(&ctx).await;

    for (count, what, who) in [
        ("records", "count(*)", "count(*)"),
        (
            "individuals",
            "count(DISTINCT patient_id)",
            "count(DISTINCT individual)",
        ),
    ] {
        let call = |queries: usize, function: &str, more: &str| {
            format!(
                "SELECT * FROM {function}(original, published, id => patient_id, qi => [{COLUMNS}], \
                 sensitive => diagnosis, queries => {queries}, dimensions => 2, selectivity => 0.1, \
                 seed => 7, count => '{count}'{more})"
            )
        };
        let mut rounds = vec![];
        for _ in 0..ROUNDS {
            rounds.push(run(&ctx, &call(queries, "query_error_summary", "")).await.1);
        }
        rounds.sort_unstable();
        let at_once = rounds[ROUNDS / 2];
        let (report, _) = run(
            &ctx,
            &call(ALONE, "query_error", ", show_predicates => true"),
        )
        .await;
        let predicates: Vec<String> = report
            .iter()
            .flat_map(|batch| {
                let texts = batch.column(2).as_string::<i32>();
                texts
                    .iter()
                    .flatten()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        let (mut exact, mut estimated) = (Duration::ZERO, Duration::ZERO);
        for predicate in &predicates {
            let sql = format!("SELECT {what} FROM original WHERE {predicate}");
            exact += run(&ctx, &sql).await.1;
            let query = format!("SELECT {who} FROM published WHERE {predicate}");
            let query = query.replace('\'', "''");
            let sql = format!("SELECT * FROM estimate(published, '{query}')");
            estimated += run(&ctx, &sql).await.1;
        }
        let scale = queries as f64 / predicates.len() as f64;
        let (exact, estimated) = (exact.as_secs_f64() * scale, estimated.as_secs_f64() * scale);
        let at_once = at_once.as_secs_f64();
        println!(
            "{count}: {queries} queries at once {at_once:.2} s; one by one (from {ALONE} queries) {exact:.1} s in \
             SQL for the exact counts, {:.0} times as long, and {estimated:.1} s by estimate(), together {:.0} times",
            exact / at_once,
            (exact + estimated) / at_once
        );
    }
}

/// Writes the result of a query to Parquet and registers the file.
async fn write(ctx: &SessionContext, folder: &Path, name: &str, query: &str) -> Duration {
    let file = folder.join(format!("{name}.parquet"));
    let file = file.to_str().expect("a path in UTF-8");
    let (_, took) = run(ctx, &format!("COPY ({query}) TO '{file}'")).await;
    let options = ParquetReadOptions::default();
    let registered = ctx.register_parquet(name, file, options).await;
    registered.expect("the file can be read");
    took
}

/// The audit, and the groupings that give what it says of classes and individuals but for the hitting sets.
async fn audit(ctx: &SessionContext) {
    let audit = format!(
        "SELECT * FROM audit(published, id => individual, qi => [{COLUMNS}], sensitive => diagnosis)"
    );
    let groups = format!(
        "SELECT count(*), min(people), max(people), min(values_), sum(records) FROM (\
           SELECT {COLUMNS}, count(DISTINCT individual) AS people, count(DISTINCT diagnosis) AS values_, \
             count(*) AS records FROM published GROUP BY {COLUMNS}) AS classes \
         CROSS JOIN (SELECT max(most) AS most FROM (\
           SELECT {COLUMNS}, max(n) AS most FROM (\
             SELECT {COLUMNS}, diagnosis, count(*) AS n FROM published GROUP BY {COLUMNS}, diagnosis) \
           GROUP BY {COLUMNS})) AS shares \
         CROSS JOIN (SELECT max(n) AS longest FROM (\
           SELECT {COLUMNS}, individual, count(*) AS n FROM published GROUP BY {COLUMNS}, individual)) AS people"
    );
    let one_group = format!(
        "SELECT count(*), min(people), max(people), min(values_), sum(records) FROM (\
           SELECT {COLUMNS}, count(DISTINCT individual) AS people, count(DISTINCT diagnosis) AS values_, \
             count(*) AS records FROM published GROUP BY {COLUMNS})"
    );
    let mut times = [vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        for (sql, times) in [&audit, &groups, &one_group].into_iter().zip(&mut times) {
            times.push(run(ctx, sql).await.1);
        }
    }
    let [audit, groups, one_group] = times.map(|mut times| {
        times.sort_unstable();
        times[ROUNDS / 2].as_secs_f64()
    });
    println!(
        "audit {audit:.2} s; GROUP BY of the classes, of their values and of their individuals {groups:.2} s \
         (medians of {ROUNDS}): {:.2} times as long; one GROUP BY of the classes {one_group:.2} s: {:.2} times",
        audit / groups,
        audit / one_group
    );
}

async fn run(ctx: &SessionContext, sql: &str) -> (Vec<RecordBatch>, Duration) {
    let start = Instant::now();
    let frame = ctx.sql(sql).await.expect("the query is planned");
    let batches = frame.collect().await.expect("the query runs");
    (batches, start.elapsed())
}
