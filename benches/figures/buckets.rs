//! Figures 5–8 of Li et al. 2020: discernibility, NCP, query error, and the density of secret values.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{Summary, register_all};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::page::Page;
use crate::plot::Plot;

/// Individuals, as many as in the paper.
const INDIVIDUALS: usize = 31_055;

const KS: [usize; 3] = [5, 8, 10];
const LS: [usize; 5] = [2, 4, 6, 8, 10];
const STRATEGIES: [&str; 2] = ["mdp", "ncp"];

/// Shares of secret values, in per cent; the second is that of the other figures.
const DENSITIES: [usize; 4] = [10, 20, 30, 40];

/// Random queries per release, each with predicates on four columns.
const QUERIES: usize = 100;

/// A column of the queries, with its kind.
type Column = (&'static str, bool);

/// The table: where it comes from, how it is made, and its columns with predicates, of which true are numbers.
struct Source {
    name: &'static str,
    sql: String,
    columns: [Column; 8],
}

fn source(data: &Path) -> Source {
    let census = data.join("census_income_kdd.parquet");
    if census.exists() {
        return Source {
            name: "Census-Income (KDD), people with an occupation; the weight of a record stands for the salary",
            sql: format!(
                "SELECT row_id AS id, age, sex, detailed_occupation_recode AS occupation, education, marital_stat, race, \
                 detailed_household_summary AS household, weeks_worked_in_year AS weeks, \
                 CAST(round(instance_weight) AS BIGINT) AS salary FROM anonymize_input('{}') \
                 WHERE detailed_occupation_recode > 0 ORDER BY row_id * 7919 % 299285 LIMIT {INDIVIDUALS}",
                census.display()
            ),
            columns: [
                ("age", true),
                ("sex", false),
                ("occupation", false),
                ("education", false),
                ("marital_stat", false),
                ("race", false),
                ("household", false),
                ("weeks", true),
            ],
        };
    }
    Source {
        name: "`sample_patients`, the first record of each patient; the month of birth and the year make up an occupation \
               and a salary",
        sql: format!(
            "SELECT patient_id AS id, 2010 - min(birth_year) AS age, min(sex) AS sex, \
             min(birth_month * 7 + birth_year) % 60 AS occupation, min(marital_status) AS education, \
             min(hispanic) AS marital_stat, min(race) AS race, min(ward) AS household, min(education_years) AS weeks, \
             min(birth_year * birth_month * 31) % 719 AS salary FROM sample_patients({INDIVIDUALS}, 1) GROUP BY patient_id"
        ),
        columns: [
            ("age", true),
            ("sex", false),
            ("occupation", false),
            ("education", false),
            ("marital_stat", false),
            ("race", false),
            ("household", false),
            ("weeks", true),
        ],
    }
}

/// What is measured of one release.
#[derive(Clone, Copy)]
struct Measured {
    discernibility: f64,
    ncp: f64,
    error: f64,
    seconds: f64,
}

/// Measures and writes all figures.
pub fn figures(folder: &Path) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let ctx = SessionContext::new();
    register_all(&ctx)?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let source = source(&data);
    runtime.block_on(load(&ctx, &source))?;
    let queries = runtime.block_on(queries(&ctx, &source))?;
    let mut page = Page::new(
        folder,
        "buckets",
        "Figures 5–8 of Li et al. 2020, measured",
        &format!(
            "Releases of {INDIVIDUALS} individuals of {}. Semi-sensitive are age, sex (with t = 0.2) and occupation, 20 % of \
             each secret at random unless said otherwise; five more columns are quasi-identifiers, the salary is sensitive. \
             The paper's table is not public, so only trends can be compared. NCP is the mean over cells that are \
             generalized, from 0 to 1. R_error is the mean of (upper − lower) / truth over {QUERIES} random sums of the \
             salary with predicates on four columns, where the truth is not 0.",
            source.name
        ),
    );
    let mut all = vec![];
    for strategy in STRATEGIES {
        let measured = measure_all(&runtime, &ctx, strategy, 20, &queries)?;
        println!("{strategy}");
        all.push(measured);
    }
    type Value = fn(&Measured) -> f64;
    let figures: [(&str, &str, usize, Value); 4] = [
        ("discernibility", "C_DM in millions", 5, |m| {
            m.discernibility / 1e6
        }),
        ("ncp", "NCP", 6, |m| m.ncp),
        ("error", "R_error", 7, |m| m.error),
        ("time", "seconds", 0, |m| m.seconds),
    ];
    for (name, label, figure, value) in figures {
        for (strategy, measured) in STRATEGIES.iter().zip(&all) {
            let title = match figure {
                0 => format!("Time of a release, {strategy}"),
                figure => format!("Figure {figure}: {label} by l, {strategy}"),
            };
            page.add(
                &format!("{name}_{strategy}"),
                &plot(title, label, measured, value),
            )?;
        }
    }
    for density in DENSITIES {
        let measured = match density {
            20 => all[0].clone(),
            _ => measure_all(&runtime, &ctx, "mdp", density, &queries)?,
        };
        println!("{density} %");
        let title = format!("Figure 8: R_error by l, {density} % secret, mdp");
        page.add(
            &format!("density_{density}"),
            &plot(title, "R_error", &measured, |m| m.error),
        )?;
    }
    page.say(&ratios(&all));
    page.write()
}

/// One curve per k over l.
fn plot(
    title: String,
    label: &str,
    measured: &[Vec<Measured>],
    value: fn(&Measured) -> f64,
) -> Plot {
    let series = KS.iter().zip(measured).map(|(k, points)| {
        let points = LS.iter().map(|l| *l as f64).zip(points.iter().map(value));
        (format!("k = {k}"), points.collect())
    });
    Plot {
        title,
        x: "l".to_owned(),
        y: label.to_owned(),
        series: series.collect(),
    }
}

async fn load(ctx: &SessionContext, source: &Source) -> Result<()> {
    ctx.sql(&format!("CREATE TABLE plain AS {}", source.sql))
        .await?
        .collect()
        .await?;
    // Draws in a thousandth per record and column, the same in every run.
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let batches = ctx.sql("SELECT id FROM plain").await?.collect().await?;
    let mut drawn = vec![];
    for batch in batches {
        let draw = |_| {
            let numbers = (0..batch.num_rows()).map(|_| rng.random_range(0..1000));
            Arc::new(Int32Array::from_iter_values(numbers)) as ArrayRef
        };
        let [age, sex, occupation] = [0, 1, 2].map(draw);
        drawn.push(RecordBatch::try_from_iter([
            ("drawn_for", Arc::clone(batch.column(0))),
            ("age_draw", age),
            ("sex_draw", sex),
            ("occupation_draw", occupation),
        ])?);
    }
    let schema = drawn[0].schema();
    ctx.register_table("draws", Arc::new(MemTable::try_new(schema, vec![drawn])?))?;
    let sql = "CREATE TABLE t AS SELECT plain.*, age_draw, sex_draw, occupation_draw \
               FROM plain JOIN draws ON plain.id = drawn_for";
    ctx.sql(sql).await?.collect().await?;
    Ok(())
}

/// Random conditions on four columns with the true sums.
async fn queries(ctx: &SessionContext, source: &Source) -> Result<Vec<(String, f64)>> {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut values = vec![];
    for (column, _) in source.columns {
        let sql = format!("SELECT DISTINCT CAST({column} AS VARCHAR) FROM t ORDER BY 1");
        let mut found = vec![];
        for batch in ctx.sql(&sql).await?.collect().await? {
            let column = datafusion::arrow::compute::cast(
                batch.column(0),
                &datafusion::arrow::datatypes::DataType::Utf8,
            )?;
            found.extend(
                column
                    .as_string::<i32>()
                    .iter()
                    .flatten()
                    .map(str::to_owned),
            );
        }
        values.push(found);
    }
    let mut queries = vec![];
    while queries.len() < QUERIES {
        let mut columns: Vec<usize> = (0..source.columns.len()).collect();
        let mut conditions = vec![];
        for _ in 0..4 {
            let column = columns.swap_remove(rng.random_range(0..columns.len()));
            let (name, number) = source.columns[column];
            let numeric = number || name == "occupation";
            let quoted = |v: &String| if numeric { v.clone() } else { format!("'{v}'") };
            conditions.push(if number {
                let how = ["<", ">", "<=", ">=", "<>"]
                    .choose(&mut rng)
                    .unwrap_or(&"<");
                let value = values[column].choose(&mut rng).map(quoted);
                format!("{name} {how} {}", value.unwrap_or_default())
            } else {
                let most = values[column].len().max(2);
                let mut chosen: Vec<String> = values[column].iter().map(quoted).collect();
                chosen.shuffle(&mut rng);
                chosen.truncate(most.div_ceil(2));
                format!("{name} IN ({})", chosen.join(", "))
            });
        }
        let condition = conditions.join(" AND ");
        let truth = numbers(ctx, &format!("SELECT sum(salary) FROM t WHERE {condition}")).await?;
        if truth.first().is_some_and(|truth| *truth > 0.0) {
            queries.push((condition, truth[0]));
        }
    }
    Ok(queries)
}

fn measure_all(
    runtime: &tokio::runtime::Runtime,
    ctx: &SessionContext,
    strategy: &str,
    density: usize,
    queries: &[(String, f64)],
) -> Result<Vec<Vec<Measured>>> {
    let point =
        |k: usize, l: usize| runtime.block_on(measure(ctx, strategy, density, k, l, queries));
    let curve = |k: &usize| LS.iter().map(|l| point(*k, *l)).collect::<Result<Vec<_>>>();
    KS.iter().map(curve).collect()
}

async fn measure(
    ctx: &SessionContext,
    strategy: &str,
    density: usize,
    k: usize,
    l: usize,
    queries: &[(String, f64)],
) -> Result<Measured> {
    let flag = |column: &str| format!("{column}: '{column}_draw < {}'", density * 10);
    let flags = ["age", "sex", "occupation"].map(flag).join(", ");
    let sql = format!(
        "SELECT * FROM anonymize_lgb(t, id => id, qi => [age, sex, occupation, education, marital_stat, race, household, \
         weeks], categorical => [occupation], semi_sensitive => {{{flags}}}, sensitive => salary, k => {k}, \
         l => {{age: {l}, occupation: {l}, salary: {l}}}, t => {{sex: 0.2}}, strategy => '{strategy}', seed => 1)"
    );
    let plan = ctx.sql(&sql).await?.create_physical_plan().await?;
    let begin = Instant::now();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let summary =
        Summary::of(&plan).ok_or_else(|| DataFusionError::Internal("no summary".to_owned()))?;
    let _ = ctx.deregister_table("release")?;
    let release = MemTable::try_new(plan.schema(), vec![batches])?;
    ctx.register_table("release", Arc::new(release))?;
    let audit = "SELECT value FROM audit_buckets(release) WHERE measure = 'discernibility'";
    let mut error = 0.0;
    for (condition, truth) in queries {
        let query =
            format!("SELECT sum(salary) FROM release WHERE {condition}").replace('\'', "''");
        let sql = format!("SELECT upper - lower FROM estimate_sum(release, '{query}')");
        error += numbers(ctx, &sql).await?[0] / truth;
    }
    Ok(Measured {
        discernibility: numbers(ctx, audit).await?[0],
        ncp: summary.information_loss,
        error: error / queries.len() as f64,
        seconds,
    })
}

/// The first column of a result.
async fn numbers(ctx: &SessionContext, sql: &str) -> Result<Vec<f64>> {
    let mut found = vec![];
    for batch in ctx.sql(sql).await?.collect().await? {
        let column = datafusion::arrow::compute::cast(
            batch.column(0),
            &datafusion::arrow::datatypes::DataType::Float64,
        )?;
        found.extend(column.as_primitive::<Float64Type>().iter().flatten());
    }
    if found.is_empty() {
        found.push(0.0);
    }
    Ok(found)
}

/// What the paper says in ratios.
fn ratios(all: &[Vec<Vec<Measured>>]) -> String {
    let ratio = |value: fn(&Measured) -> f64| {
        let (mdp, ncp) = (all[0].concat(), all[1].concat());
        let ratios = mdp
            .iter()
            .zip(&ncp)
            .map(|(mdp, ncp)| value(ncp) / value(mdp));
        let (lo, hi) = ratios.fold((f64::MAX, f64::MIN), |(lo, hi), r| (lo.min(r), hi.max(r)));
        format!("{lo:.2} to {hi:.2}")
    };
    format!(
        "## Ratios, ncp : mdp\n\n\
         | | here | the paper |\n|---|---|---|\n\
         | NCP | {} | 0.83 to 0.86 |\n\
         | C_DM | {} | above 1 |\n\
         | R_error | {} | 1 and above, nearing 1 as l grows |\n\
         | time | {} | – |",
        ratio(|m| m.ncp),
        ratio(|m| m.discernibility),
        ratio(|m| m.error),
        ratio(|m| m.seconds)
    )
}
