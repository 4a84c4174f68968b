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

/// One curve: name, function with its other parameters, algorithm.
type Curve = (&'static str, &'static str, &'static str);

const CURVES: [Curve; 3] = [
    ("1:M-generalization, best cut", "anonymize_kl", "best_cut"),
    ("1:M-generalization, Mondrian", "anonymize_kl", "mondrian"),
    ("RMR", "anonymize_kkm", "mondrian"),
];

/// What a release must satisfy, and how many individuals there are.
#[derive(Clone, Copy)]
struct Point {
    k: usize,
    l: usize,
    individuals: usize,
}

struct Axis {
    name: &'static str,
    fixed: &'static str,
    points: Vec<(f64, Point)>,
}

/// What is measured of one release.
#[derive(Clone, Copy)]
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

fn axes(all: usize) -> Vec<Axis> {
    let point = |k, l, individuals| Point { k, l, individuals };
    let sizes = [all / 5, 2 * all / 5, 3 * all / 5, 4 * all / 5, all];
    vec![
        Axis {
            name: "k",
            fixed: "l = 5",
            points: [5, 10, 25, 50, 100]
                .map(|k| (k as f64, point(k, 5, all)))
                .to_vec(),
        },
        Axis {
            name: "l",
            fixed: "k = 10",
            points: [2, 4, 5, 6, 8, 10]
                .map(|l| (l as f64, point(10, l, all)))
                .to_vec(),
        },
        Axis {
            name: "n",
            fixed: "k = 10, l = 5",
            points: sizes.map(|n| (n as f64, point(10, 5, n))).to_vec(),
        },
    ]
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
             time is that of the whole query. RMR: m = 2, delta = 0.65 as in the paper, from classes by Mondrian.",
            table.individuals
        ),
    );
    let mut all = vec![];
    for axis in axes(table.individuals) {
        let mut curves = vec![];
        for curve in CURVES {
            let mut measured = vec![];
            for (_, point) in &axis.points {
                measured.push(runtime.block_on(measure(&ctx, &table, curve, *point))?);
            }
            println!("{} {}", axis.name, curve.0);
            curves.push(measured);
        }
        all.push((axis, curves));
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
            let series = CURVES.iter().zip(curves).map(|(curve, measured)| {
                let x = axis.points.iter().map(|p| p.0);
                let points = x.zip(measured.iter().map(value)).collect();
                (curve.0.to_owned(), points)
            });
            let plot = Plot {
                title: format!("Figure {figure}: {label} by {} ({})", axis.name, axis.fixed),
                x: axis.name.to_owned(),
                y: label.to_owned(),
                series: series.collect(),
            };
            page.add(&format!("{name}_{}", axis.name), &plot)?;
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
    (_, function, algorithm): Curve,
    point: Point,
) -> Result<Measured> {
    let Point { k, l, individuals } = point;
    let qi = table.qi.join(", ");
    let parameters = match function {
        "anonymize_kl" => format!("k => {k}, l => {l}"),
        _ => format!("k => {k}, m => 2, delta => 0.65, block => 'all'"),
    };
    let some = format!(
        "(SELECT * FROM t WHERE person_id IN (SELECT DISTINCT person_id FROM t ORDER BY reverse(CAST(person_id AS VARCHAR)) LIMIT {individuals}))"
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
