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
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::page::Page;
use crate::plot::Plot;

/// Individuals, as many as in the paper.
const INDIVIDUALS: usize = 31_055;

const KS: [usize; 3] = [5, 8, 10];
/// As in the paper.
const LS: [usize; 7] = [5, 8, 10, 12, 15, 18, 20];
const STRATEGIES: [&str; 2] = ["mdp", "ncp"];

/// More different occupations than this cannot be in every bucket: the most frequent one is too frequent.
const MOST_OCCUPATIONS: usize = 10;

/// Shares of secret values, in per cent; the second is that of the other figures.
const DENSITIES: [usize; 4] = [10, 20, 30, 40];

/// Random queries per release, each with predicates on four columns that take half of the domain.
const QUERIES: usize = 500;

/// The table: where it comes from, and how it is made.
struct Source {
    name: &'static str,
    sql: String,
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
    let mut page = Page::new(
        folder,
        "buckets",
        "Figures 5–8 of Li et al. 2020, measured",
        &format!(
            "Releases of {INDIVIDUALS} individuals of {}. Semi-sensitive are age, sex (with t = 0.2) and occupation, 20 % of \
             each secret at random unless said otherwise; five more columns are quasi-identifiers, the salary is sensitive. \
             l of the occupation is at most {MOST_OCCUPATIONS}, because a larger one is infeasible here. \
             The paper's table is not public, so only trends can be compared; a sentence below each figure says which of \
             them hold. NCP is the mean over cells that are generalized, from 0 to 1. R_error is the mean of \
             (upper − lower) / truth over {QUERIES} random sums of the salary by `query_error`, each with predicates on four \
             columns that take half of the domain, where the truth is not 0.",
            source.name
        ),
    );
    let mut all = vec![];
    for strategy in STRATEGIES {
        let measured = measure_all(&runtime, &ctx, strategy, 20)?;
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
        match figure {
            5 => page.say(&of_discernibility(&all)),
            6 => page.say(&of_ncp(&all)),
            7 => page.say(&of_error(&all)),
            _ => {}
        }
    }
    let mut densities = vec![];
    for density in DENSITIES {
        let measured = match density {
            20 => all[0].clone(),
            _ => measure_all(&runtime, &ctx, "mdp", density)?,
        };
        println!("{density} %");
        let title = format!("Figure 8: R_error by l, {density} % secret, mdp");
        page.add(
            &format!("density_{density}"),
            &plot(title, "R_error", &measured, |m| m.error),
        )?;
        densities.push(measured.concat());
    }
    page.say(&of_density(&densities));
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

fn measure_all(
    runtime: &tokio::runtime::Runtime,
    ctx: &SessionContext,
    strategy: &str,
    density: usize,
) -> Result<Vec<Vec<Measured>>> {
    let point = |k: usize, l: usize| runtime.block_on(measure(ctx, strategy, density, k, l));
    let curve = |k: &usize| LS.iter().map(|l| point(*k, *l)).collect::<Result<Vec<_>>>();
    KS.iter().map(curve).collect()
}

async fn measure(
    ctx: &SessionContext,
    strategy: &str,
    density: usize,
    k: usize,
    l: usize,
) -> Result<Measured> {
    let occupations = l.min(MOST_OCCUPATIONS);
    let flag = |column: &str| format!("{column}: '{column}_draw < {}'", density * 10);
    let flags = ["age", "sex", "occupation"].map(flag).join(", ");
    let sql = format!(
        "SELECT * FROM anonymize_lgb(t, id => id, qi => [age, sex, occupation, education, marital_stat, race, household, \
         weeks], categorical => [occupation], semi_sensitive => {{{flags}}}, sensitive => salary, k => {k}, \
         l => {{age: {l}, occupation: {occupations}, salary: {l}}}, t => {{sex: 0.2}}, strategy => '{strategy}', seed => 1)"
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
    let error = format!(
        "SELECT r_mean FROM query_error_summary(t, release, qi => [age, sex, occupation, education, marital_stat, race, \
         household, weeks], categorical => [occupation], sum => salary, queries => {QUERIES}, dimensions => 4, \
         selectivity => 0.0625)"
    );
    Ok(Measured {
        discernibility: numbers(ctx, audit).await?[0],
        ncp: summary.information_loss,
        error: numbers(ctx, &error).await?[0],
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

/// How often a value is larger than the one before.
fn rises(curves: impl Iterator<Item = Vec<f64>>) -> String {
    let (mut up, mut all) = (0, 0);
    for curve in curves {
        up += curve.windows(2).filter(|pair| pair[1] > pair[0]).count();
        all += curve.len() - 1;
    }
    format!("{up} of {all} steps")
}

fn of_discernibility(all: &[Vec<Vec<Measured>>]) -> String {
    let curves = all.iter().flatten();
    let same = curves.clone().all(|curve| {
        let first = curve[0].discernibility;
        curve.iter().all(|m| m.discernibility == first)
    });
    let (mdp, ncp) = (all[0].concat(), all[1].concat());
    let pairs = mdp.iter().zip(&ncp);
    let lower = pairs.filter(|(mdp, ncp)| mdp.discernibility < ncp.discernibility);
    format!(
        "The paper: l does not change C_DM. Here: {}. The paper: C_DM of mdp is much lower than that of ncp. Here: in {} of {} \
         points.",
        if same { "it does not" } else { "it does" },
        lower.count(),
        mdp.len()
    )
}

fn of_ncp(all: &[Vec<Vec<Measured>>]) -> String {
    let (mdp, ncp) = (all[0].concat(), all[1].concat());
    let lower = mdp
        .iter()
        .zip(&ncp)
        .map(|(mdp, ncp)| 1.0 - ncp.ncp / mdp.ncp);
    let (lo, hi) = lower.fold((f64::MAX, f64::MIN), |(lo, hi), r| (lo.min(r), hi.max(r)));
    format!(
        "The paper: NCP of ncp is lower than that of mdp by 14 to 17 %. Here: by {:.0} to {:.0} %.",
        100.0 * lo,
        100.0 * hi
    )
}

fn of_error(all: &[Vec<Vec<Measured>>]) -> String {
    let curves = all.iter().flatten();
    let by_l = rises(curves.map(|curve| curve.iter().map(|m| m.error).collect()));
    let by_k = all.iter().flat_map(|measured| {
        (0..LS.len()).map(|l| measured.iter().map(|curve| curve[l].error).collect())
    });
    let first = |strategy: usize| all[strategy].iter().map(|curve| curve[0].error);
    let lower = first(0).zip(first(1)).filter(|(mdp, ncp)| mdp < ncp);
    format!(
        "The paper: R_error grows with k. Here: in {}. The paper: it grows with l. Here: in {by_l}; larger buckets hold more \
         hits, which are rounded once per bucket, so that bounds may also become narrower. The paper: at small l mdp has less \
         than ncp. Here: for {} of {} k.",
        rises(by_k),
        lower.count(),
        KS.len()
    )
}

fn of_density(densities: &[Vec<Measured>]) -> String {
    let points = densities.first().map_or(0, Vec::len);
    let by_density = (0..points).map(|at| densities.iter().map(|d| -d[at].error).collect());
    format!(
        "The paper: R_error falls as more values are secret. Here: in {}.",
        rises(by_density)
    )
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
