//! Figures 4–7 of Gong et al. 2017: information loss and time of 1:M-generalization by k, l and n, beside the baseline.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::register_all;

use crate::page::Page;
use crate::plot::Plot;
use crate::trend::{Claim, Trend};

/// One curve: how it is called, the function and algorithm, and the parameter that is the same in all its points: l where
/// k changes, k where l or n does.
struct Curve {
    name: String,
    function: &'static str,
    algorithm: &'static str,
    other: usize,
}

/// What a release must satisfy, of how many individuals, and which sample of them.
#[derive(Clone, Copy)]
struct Point {
    k: usize,
    l: usize,
    individuals: usize,
    sample: usize,
}

struct Axis {
    name: &'static str,
    fixed: &'static str,
    at: Vec<usize>,
    /// Each point is the mean over so many samples.
    samples: usize,
    curves: Vec<Curve>,
}

/// What is measured of one release.
#[derive(Clone, Copy, Default)]
struct Measured {
    qi: f64,
    sensitive: f64,
    seconds: f64,
}

/// The table at hand.
struct Table {
    qi: &'static [&'static str],
    categorical: &'static str,
    labels: String,
    individuals: usize,
}

/// The curves of an axis: the optimiser once, the others with both values of the parameter that does not change.
fn curves(parameter: &str, others: [usize; 2]) -> Vec<Curve> {
    let kl = |name: &str, algorithm, other| Curve {
        name: format!("{name}, {parameter} = {other}"),
        function: "anonymize_kl",
        algorithm,
        other,
    };
    let [first, second] = others;
    let mut curves = vec![
        kl("1:M, optimized", "optimized", first),
        kl("1:M, best cut", "best_cut", first),
        kl("1:M, best cut", "best_cut", second),
        kl("1:M, Mondrian", "mondrian", first),
        kl("1:M, Mondrian", "mondrian", second),
    ];
    // It knows no l.
    let rmr = |name: String, other| Curve {
        name,
        function: "anonymize_kkm",
        algorithm: "mondrian",
        other,
    };
    match parameter {
        "l" => curves.push(rmr("RMR".to_owned(), first)),
        _ => curves.extend(others.map(|k| rmr(format!("RMR, k = {k}"), k))),
    }
    curves
}

fn axes(all: usize) -> Vec<Axis> {
    vec![
        Axis {
            name: "k",
            fixed: "l = 5 and 10",
            at: vec![5, 10, 25, 50, 100],
            samples: 1,
            curves: curves("l", [5, 10]),
        },
        Axis {
            name: "l",
            fixed: "k = 10 and 50",
            at: vec![2, 4, 5, 6, 8, 10],
            samples: 1,
            curves: curves("k", [10, 50]),
        },
        Axis {
            name: "n",
            fixed: "k = 10 and 50, l = 5",
            at: vec![all / 5, 2 * all / 5, 3 * all / 5, 4 * all / 5, all],
            samples: 3,
            curves: curves("k", [10, 50]),
        },
    ]
}

/// The parameters of a point of a curve.
fn point(axis: &Axis, curve: &Curve, at: usize, sample: usize, all: usize) -> Point {
    let (k, l, individuals) = match axis.name {
        "k" => (at, curve.other, all),
        "l" => (curve.other, at, all),
        _ => (curve.other, 5, at),
    };
    Point {
        k,
        l,
        individuals,
        sample,
    }
}

/// What the paper says of a measure along an axis (Sections 6.2 and 6.3).
fn claim(measure: &str, axis: &str) -> Claim {
    let (says, trend) = match (measure, axis) {
        ("qid_ncp" | "sa_ncp", "k") => ("it increases with k.", Trend::Rises),
        ("qid_ncp", "l") => ("it increases with l.", Trend::Rises),
        ("sa_ncp", "l") => ("it does not depend on l.", Trend::Stays),
        ("qid_ncp" | "sa_ncp", _) => ("it falls as the table grows.", Trend::Falls),
        (_, "k") => ("it falls slightly with k.", Trend::Falls),
        (_, "l") => ("it hardly changes with l.", Trend::Stays),
        _ => ("it grows about linearly.", Trend::Rises),
    };
    Claim {
        says,
        trend,
        of: "1:M",
    }
}

/// Measures and writes all figures.
pub fn figures(folder: &Path) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let ctx = SessionContext::new();
    register_all(&ctx)?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let real = data.join("informs2005_1m.parquet").exists();
    let table = runtime.block_on(load(&ctx, &data, real))?;
    let source = match real {
        true => "`informs2005_1m` with its even hierarchy of diagnoses of fan-out 5",
        false => "`sample_patients(20000)` with an even hierarchy of diagnoses of fan-out 5",
    };
    let mut page = Page::new(
        folder,
        "one_to_many",
        "Figures 4–7 of Gong et al. 2017, measured",
        &format!(
            "Releases of {source}, {} individuals, seed 1. The paper's tables are not public, so only trends can be compared. \
             QID-NCP is the mean of values by counts over all cells of individuals, SA-NCP the mean over published labels; \
             time is that of the whole query. By n each point but the last is the mean over three random samples. RMR: m = 2, \
             delta = 0.65 as in the paper, from classes by Mondrian. SA-NCP per original value cannot be measured from a \
             release alone, which does not say whose value is whose ([M9](../papers.md#m9)).",
            table.individuals
        ),
    );
    let mut all = vec![];
    for axis in axes(table.individuals) {
        let mut measured = vec![];
        for curve in &axis.curves {
            let mut means = vec![];
            for at in &axis.at {
                // All of them are one sample only.
                let samples = if *at == table.individuals {
                    1
                } else {
                    axis.samples
                };
                let mut sum = Measured::default();
                for sample in 0..samples {
                    let point = point(&axis, curve, *at, sample, table.individuals);
                    let one = runtime.block_on(measure(&ctx, &table, curve, point))?;
                    sum.qi += one.qi / samples as f64;
                    sum.sensitive += one.sensitive / samples as f64;
                    sum.seconds += one.seconds / samples as f64;
                }
                means.push(sum);
            }
            println!("{} {}", axis.name, curve.name);
            measured.push(means);
        }
        all.push((axis, measured));
    }
    type Value = fn(&Measured) -> f64;
    let measures: [(&str, &str, Value); 3] = [
        ("qid_ncp", "QID-NCP", |m| m.qi),
        ("sa_ncp", "SA-NCP", |m| m.sensitive),
        ("time", "seconds", |m| m.seconds),
    ];
    for (name, label, value) in measures {
        for (axis, curves) in &all {
            let figure = match (name, axis.name) {
                ("time", _) => 7,
                (_, "k") => 4,
                (_, "l") => 5,
                _ => 6,
            };
            let series = axis.curves.iter().zip(curves).map(|(curve, measured)| {
                let x = axis.at.iter().map(|at| *at as f64);
                let points = x.zip(measured.iter().map(value)).collect();
                (curve.name.clone(), points)
            });
            let plot = Plot {
                title: format!("Figure {figure}: {label} by {} ({})", axis.name, axis.fixed),
                x: axis.name.to_owned(),
                y: label.to_owned(),
                series: series.collect(),
            };
            page.add(&format!("{name}_{}", axis.name), &plot)?;
            page.say(&claim(name, axis.name).sentence(&plot));
        }
    }
    page.write()
}

async fn load(ctx: &SessionContext, data: &Path, real: bool) -> Result<Table> {
    let file = |name: &str| data.join(name).display().to_string();
    let (sql, qi, categorical): (String, &[&str], &str) = match real {
        true => (
            format!(
                "SELECT * FROM anonymize_input('{}')",
                file("informs2005_1m.parquet")
            ),
            &[
                "birth_month",
                "birth_year",
                "education_years",
                "income",
                "race",
            ],
            "race",
        ),
        false => (
            "SELECT *, patient_id AS person_id, diagnosis AS icd9 FROM sample_patients(20000, 1)"
                .to_owned(),
            &["birth_month", "birth_year", "education_years", "race"],
            "race",
        ),
    };
    ctx.sql(&format!("CREATE TABLE t AS {sql}"))
        .await?
        .collect()
        .await?;
    let labels = match real {
        true => file("hierarchies/informs_icd9_even.csv"),
        false => {
            let sql = "CREATE TABLE labels AS SELECT * FROM hierarchy(t, column => icd9, by => 'even(5)')";
            ctx.sql(sql).await?.collect().await?;
            "labels".to_owned()
        }
    };
    // The leaves below each label.
    let rows = ctx
        .sql(&format!("SELECT * FROM hierarchy('{labels}')"))
        .await?;
    let levels = rows.schema().field_names();
    let level = |name: &String| {
        let name = name.rsplit('.').next().unwrap_or_default();
        format!(
            "SELECT {name} AS label, count(*) AS leaves FROM hierarchy('{labels}') GROUP BY {name}"
        )
    };
    let sizes: Vec<String> = levels.iter().map(level).collect();
    ctx.sql(&format!("CREATE TABLE sizes AS {}", sizes.join(" UNION ")))
        .await?
        .collect()
        .await?;
    let individuals = number(ctx, "SELECT count(DISTINCT person_id) FROM t").await?;
    Ok(Table {
        qi,
        categorical,
        labels,
        individuals: individuals as usize,
    })
}

async fn measure(
    ctx: &SessionContext,
    table: &Table,
    curve: &Curve,
    point: Point,
) -> Result<Measured> {
    let (function, algorithm) = (curve.function, curve.algorithm);
    let Point {
        k,
        l,
        individuals,
        sample,
    } = point;
    let qi = table.qi.join(", ");
    let parameters = match function {
        "anonymize_kl" => format!("k => {k}, l => {l}"),
        _ => format!("k => {k}, m => 2, delta => 0.65, block => 'all'"),
    };
    // By their last digits, in an order that is another one for each sample.
    let digits = ["0123456789", "7302918465", "4918503276"][sample % 3];
    let some = format!(
        "(SELECT * FROM t WHERE person_id IN \
         (SELECT person_id FROM (SELECT DISTINCT person_id FROM t) ORDER BY \
         translate(reverse(CAST(person_id AS VARCHAR)), '0123456789', '{digits}'), person_id \
         LIMIT {individuals}))"
    );
    let _ = ctx.deregister_table("original")?;
    ctx.sql(&format!("CREATE TABLE original AS SELECT * FROM {some}"))
        .await?
        .collect()
        .await?;
    let sql = format!(
        "SELECT * FROM {function}(original, id => person_id, qi => [{qi}], sensitive => icd9, categorical => [{}], \
         hierarchy => {{icd9: '{}'}}, {parameters}, algorithm => '{algorithm}', seed => 1)",
        table.categorical, table.labels
    );
    let plan = ctx.sql(&sql).await?.create_physical_plan().await?;
    let begin = Instant::now();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let _ = ctx.deregister_table("release")?;
    let release = MemTable::try_new(plan.schema(), vec![batches])?;
    ctx.register_table("release", Arc::new(release))?;
    let of_qi = format!(
        "SELECT value FROM information_loss((SELECT DISTINCT person_id, {qi} FROM original), \
         (SELECT DISTINCT individual, {qi} FROM release), id => individual, original_id => person_id, qi => [{qi}], \
         categorical => [{}]) WHERE measure = 'ncp_count' AND \"column\" IS NULL",
        table.categorical
    );
    let of_labels = "SELECT avg(CASE leaves WHEN 1 THEN 0 ELSE leaves END) / (SELECT max(leaves) FROM sizes) \
                     FROM release JOIN sizes ON icd9 = label";
    Ok(Measured {
        qi: number(ctx, &of_qi).await?,
        sensitive: number(ctx, of_labels).await?,
        seconds,
    })
}

async fn number(ctx: &SessionContext, sql: &str) -> Result<f64> {
    let batches = ctx.sql(sql).await?.collect().await?;
    let column = batches.iter().find(|batch| batch.num_rows() > 0);
    let column = column.map(|batch| Arc::clone(batch.column(0)));
    let column = column.ok_or_else(|| DataFusionError::Internal("no result".to_owned()))?;
    Ok(cast(&column, &DataType::Float64)?
        .as_primitive::<Float64Type>()
        .value(0))
}
