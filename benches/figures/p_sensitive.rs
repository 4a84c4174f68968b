//! Figures 2–5 and Table 10 of Sun et al. 2010: time, distortion, discernability, class size, similarity attack.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::register_all;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::page::Page;
use crate::plot::Plot;
use crate::trend::{Claim, Trend};

/// The paper's Table 4.
const CONDITIONS: [&str; 8] = [
    "HIV",
    "Cancer",
    "Phthisis",
    "Hepatitis",
    "Obesity",
    "Asthma",
    "Flu",
    "Indigestion",
];

const CATEGORIES: &str =
    "[['HIV', 'Cancer'], ['Phthisis', 'Hepatitis'], ['Obesity', 'Asthma'], ['Flu', 'Indigestion']]";

/// The quasi-identifiers of Table 9 in its order, and their hierarchies.
const ADULT: [&str; 7] = [
    "age",
    "workclass",
    "education",
    "native_country",
    "marital_status",
    "race",
    "sex",
];

/// The quasi-identifiers of Census-Income, and their hierarchies.
const CENSUS: [&str; 7] = [
    "age",
    "class_of_worker",
    "education",
    "marital_stat",
    "major_industry_code",
    "race",
    "sex",
];

/// The same number of columns of the sample table, and how a hierarchy of each is made.
const SAMPLE: [(&str, &str); 7] = [
    ("birth_year", "bins(5, 10, 20)"),
    ("race", "mask(1)"),
    ("education_years", "bins(2, 4, 8)"),
    ("marital_status", "mask(1)"),
    ("birth_month", "bins(3, 6)"),
    ("hispanic", "mask(1)"),
    ("sex", "mask(1)"),
];

/// What is asked for.
#[derive(Clone, Copy)]
struct Call {
    /// 1, 2 or 3 as the paper counts them.
    model: u8,
    algorithm: &'static str,
    qi: usize,
    k: u32,
    p: u32,
    alpha: u32,
}

/// The paper's defaults.
const DEFAULT: Call = Call {
    model: 2,
    algorithm: "localpk",
    qi: 7,
    k: 3,
    p: 2,
    alpha: 1,
};

/// What is measured of one release.
#[derive(Clone, Copy, Default)]
struct Measured {
    seconds: f64,
    distortion: f64,
    dm: f64,
    cavg: f64,
    vulnerable: f64,
    exposed: f64,
}

/// A table of people with a random condition.
struct People {
    ctx: SessionContext,
    columns: Vec<String>,
    hierarchies: Vec<String>,
    about: String,
}

impl People {
    /// A third of Census-Income, if it is there.
    async fn census(data: &Path) -> Result<Option<Self>> {
        let file = data.join("census_income_kdd.parquet");
        if !file.exists() {
            return Ok(None);
        }
        let query = format!(
            "SELECT {} FROM anonymize_input('{}') WHERE row_id % 3 = 0 ORDER BY row_id",
            CENSUS.join(", "),
            file.display()
        );
        let about = "a third of `census_income_kdd`";
        let levels = CENSUS.map(|name| {
            let file = data.join(format!("hierarchies/census_income_{name}.csv"));
            format!("hierarchy('{}')", file.display())
        });
        Self::of(&query, &CENSUS, &levels, about).await.map(Some)
    }

    async fn load(data: &Path) -> Result<Self> {
        let adult = data.join("adult.parquet");
        let (query, names, about) = if adult.exists() {
            let columns = ADULT.join(", ");
            let query = format!(
                "SELECT {columns} FROM anonymize_input('{}') WHERE workclass IS NOT NULL AND occupation IS NOT NULL \
                 AND native_country IS NOT NULL ORDER BY row_id",
                adult.display()
            );
            (query, ADULT.to_vec(), "`adult`, complete records")
        } else {
            let names: Vec<&str> = SAMPLE.iter().map(|(name, _)| *name).collect();
            let columns = names.join(", ");
            let query = format!(
                "SELECT {columns} FROM (SELECT DISTINCT patient_id, {columns} FROM sample_patients(20000, 1)) ORDER BY patient_id"
            );
            (query, names, "`sample_patients(20000)`, one record each")
        };
        let levels = names.iter().map(|name| {
            let file = data.join(format!("hierarchies/adult_{name}.csv"));
            if adult.exists() && file.exists() {
                return format!("hierarchy('{}')", file.display());
            }
            let by = SAMPLE.iter().find(|(n, _)| n == name);
            let by = by.map_or("mask", |(_, by)| by);
            format!("hierarchy(people, column => {name}, by => '{by}')")
        });
        let levels: Vec<String> = levels.collect();
        Self::of(&query, &names, &levels, about).await
    }

    /// The people of a query, with a relation for the hierarchy of each column.
    async fn of(query: &str, names: &[&str], levels: &[String], about: &str) -> Result<Self> {
        let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        register_all(&ctx)?;
        let people = with_conditions(&ctx, query).await?;
        let records = people.num_rows();
        let table = MemTable::try_new(people.schema(), vec![vec![people]])?;
        ctx.register_table("people", Arc::new(table))?;
        let mut hierarchies = vec![];
        for (name, from) in names.iter().zip(levels) {
            // As tables, which all functions read.
            let make = format!("CREATE TABLE levels_of_{name} AS SELECT * FROM {from}");
            ctx.sql(&make).await?.collect().await?;
            hierarchies.push(format!("levels_of_{name}"));
        }
        Ok(Self {
            ctx,
            columns: names.iter().map(|name| (*name).to_owned()).collect(),
            hierarchies,
            about: format!("{about} ({records})"),
        })
    }

    async fn measure(&self, call: Call) -> Result<Measured> {
        let qi = format!("[{}]", self.columns[..call.qi].join(", "));
        let levels = self.columns[..call.qi].iter().zip(&self.hierarchies);
        let levels: Vec<String> = levels.map(|(c, h)| format!("{c}: '{h}'")).collect();
        let hierarchy = format!("{{{}}}", levels.join(", "));
        let mut parameters = format!("k => {}, p => {}", call.k, call.p);
        if call.model > 1 {
            let _ = write!(parameters, ", categories => {CATEGORIES}");
        }
        if call.model > 2 {
            let _ = write!(parameters, ", alpha => {}", call.alpha);
        }
        let sql = format!(
            "SELECT * FROM anonymize_p_sensitive(people, id => id, qi => {qi}, sensitive => health, {parameters}, \
             hierarchy => {hierarchy}, algorithm => '{}', block => 'all', seed => 1)",
            call.algorithm
        );
        let frame = self.ctx.sql(&sql).await?;
        let begin = Instant::now();
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await?;
        let seconds = begin.elapsed().as_secs_f64();
        let _ = self.ctx.deregister_table("release")?;
        let release = MemTable::try_new(schema, vec![batches])?;
        self.ctx.register_table("release", Arc::new(release))?;
        let loss = |measure: &str| {
            format!(
                "SELECT value FROM information_loss(people, release, id => individual, original_id => id, qi => {qi}, \
                 hierarchy => {hierarchy}, k => {}) WHERE measure = '{measure}' AND \"column\" IS NULL",
                call.k
            )
        };
        let attack = |figure: &str| {
            format!(
                "SELECT coalesce({figure}, 0) FROM similarity_attack(release, id => individual, qi => {qi}, \
                 sensitive => health, categories => {CATEGORIES})"
            )
        };
        Ok(Measured {
            seconds,
            distortion: self.number(&loss("distortion_ratio")).await?,
            dm: self.number(&loss("dm")).await?,
            cavg: self.number(&loss("cavg")).await?,
            vulnerable: self.number(&attack("count(*)")).await?,
            exposed: self.number(&attack("sum(exposed_records)")).await?,
        })
    }

    async fn number(&self, sql: &str) -> Result<f64> {
        let batches = self.ctx.sql(sql).await?.collect().await?;
        let column = batches.first().map(|batch| Arc::clone(batch.column(0)));
        let column =
            column.ok_or_else(|| DataFusionError::Internal(format!("no result: {sql}")))?;
        Ok(cast(&column, &DataType::Float64)?
            .as_primitive::<Float64Type>()
            .value(0))
    }
}

/// The rows of a query with a number and a random condition each; the same ones every time.
async fn with_conditions(ctx: &SessionContext, query: &str) -> Result<RecordBatch> {
    let frame = ctx.sql(query).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let people = concat_batches(&schema, &frame.collect().await?)?;
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let n = people.num_rows();
    let conditions = (0..n).map(|_| CONDITIONS[rng.random_range(0..CONDITIONS.len())]);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..n as i64));
    let health: ArrayRef = Arc::new(StringArray::from_iter_values(conditions));
    let mut fields: Vec<Field> = vec![Field::new("id", DataType::Int64, false)];
    fields.extend(people.schema().fields().iter().map(|f| f.as_ref().clone()));
    fields.push(Field::new("health", DataType::Utf8, false));
    let mut columns = vec![ids];
    columns.extend_from_slice(people.columns());
    columns.push(health);
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// One figure: its curves, and what changes along its axis.
struct Figure {
    name: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    points: Vec<u32>,
    curves: Vec<(&'static str, Call)>,
    at: fn(Call, u32) -> Call,
    value: fn(&Measured) -> f64,
    /// Whether it is of the paper's second table.
    census: bool,
    claim: Option<Claim>,
}

const MODELS: [&str; 3] = ["p-sensitive", "p⁺-sensitive", "(p, α)-sensitive"];

fn models(base: Call, which: &[u8]) -> Vec<(&'static str, Call)> {
    let curve = |model: &u8| {
        (
            MODELS[usize::from(*model) - 1],
            Call {
                model: *model,
                ..base
            },
        )
    };
    which.iter().map(curve).collect()
}

/// The paper compares its algorithm with clustering under p-sensitive k-anonymity; Incognito is what it started from.
fn algorithms() -> Vec<(&'static str, Call)> {
    let plain = Call {
        model: 1,
        ..DEFAULT
    };
    vec![
        ("localpk, p⁺", DEFAULT),
        (
            "localpk, (p, α)",
            Call {
                model: 3,
                ..DEFAULT
            },
        ),
        (
            "clustering, p",
            Call {
                algorithm: "optimized",
                ..plain
            },
        ),
        (
            "incognito, p⁺",
            Call {
                algorithm: "incognito",
                ..DEFAULT
            },
        ),
    ]
}

fn all() -> Vec<Figure> {
    let four = Call {
        p: 4,
        alpha: 4,
        ..DEFAULT
    };
    let qi = |call: Call, x: u32| Call {
        qi: x as usize,
        ..call
    };
    let alpha = |call: Call, x: u32| Call { alpha: x, ..call };
    let k = |call: Call, x: u32| Call { k: x, ..call };
    let figure = |name, title, x, y| Figure {
        name,
        title,
        x,
        y,
        points: vec![],
        curves: vec![],
        at: qi,
        value: |m| m.seconds,
        census: false,
        claim: None,
    };
    let claim = |says, trend, of| Some(Claim { says, trend, of });
    let ks = vec![2, 4, 6, 8, 10];
    let by_k = |name, title, y, value, claim| Figure {
        points: ks.clone(),
        curves: algorithms(),
        at: k,
        value,
        census: true,
        claim,
        ..figure(name, title, "k", y)
    };
    vec![
        Figure {
            points: (2..=7).collect(),
            curves: models(four, &[1, 2, 3]),
            claim: claim("p⁺ is faster than (p, α).", Trend::Below(MODELS[2]), "p⁺"),
            ..figure(
                "time_qi",
                "Figure 2 (a): time by quasi-identifiers (k = 3, p = 4, α = 4)",
                "quasi-identifiers",
                "seconds",
            )
        },
        Figure {
            points: (2..=4).collect(),
            curves: models(DEFAULT, &[1, 2, 3]),
            at: |call, x| Call {
                p: x,
                alpha: x,
                ..call
            },
            claim: claim("p⁺ is faster than (p, α).", Trend::Below(MODELS[2]), "p⁺"),
            ..figure(
                "time_p",
                "Figure 2 (b): time by p = α (k = 3)",
                "p = α",
                "seconds",
            )
        },
        Figure {
            points: (2..=7).collect(),
            curves: models(DEFAULT, &[1, 2, 3]),
            value: |m| m.distortion,
            claim: claim(
                "it almost always increases with the quasi-identifiers.",
                Trend::Rises,
                "",
            ),
            ..figure(
                "distortion_qi",
                "Figure 3 (a): distortion ratio by quasi-identifiers (k = 3, p = 2, α = 1)",
                "quasi-identifiers",
                "distortion ratio",
            )
        },
        Figure {
            points: (1..=6).collect(),
            curves: models(DEFAULT, &[2, 3]),
            at: alpha,
            value: |m| m.distortion,
            claim: claim(
                "it decreases with α, which there is weaker the larger it is.",
                Trend::Falls,
                "α",
            ),
            ..figure(
                "distortion_alpha",
                "Figure 3 (b): distortion ratio by α (k = 3, p = 2)",
                "α",
                "distortion ratio",
            )
        },
        by_k(
            "distortion_k",
            "Figure 4 (a): distortion ratio by k (p = 2, α = 1)",
            "distortion ratio",
            |m| m.distortion,
            claim(
                "both models by local recoding are better than clustering under p-sensitivity.",
                Trend::Below("clustering, p"),
                "localpk",
            ),
        ),
        by_k(
            "dm_k",
            "Figure 4 (b): discernability by k (p = 2, α = 1)",
            "discernability",
            |m| m.dm,
            claim(
                "both models by local recoding are better than clustering under p-sensitivity.",
                Trend::Below("clustering, p"),
                "localpk",
            ),
        ),
        by_k(
            "cavg_k",
            "Figure 4 (c): normalized average class size by k (p = 2, α = 1)",
            "CAVG",
            |m| m.cavg,
            claim("an algorithm hardly changes with k.", Trend::Stays, ""),
        ),
        by_k(
            "time_k",
            "Figure 5 (a): time by k (p = 2, α = 1)",
            "seconds",
            |m| m.seconds,
            claim(
                "the time of all algorithms increases with k.",
                Trend::Rises,
                "",
            ),
        ),
        Figure {
            points: (1..=6).collect(),
            curves: models(DEFAULT, &[2, 3]),
            at: alpha,
            census: true,
            claim: claim(
                "local recoding takes less time with a larger α.",
                Trend::Falls,
                "α",
            ),
            ..figure(
                "time_alpha",
                "Figure 5 (b): time by α (k = 3, p = 2)",
                "α",
                "seconds",
            )
        },
    ]
}

/// Measures and writes all figures.
pub fn figures(folder: &Path) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let people = runtime.block_on(People::load(&data))?;
    let census = runtime.block_on(People::census(&data))?;
    let second = census.as_ref().unwrap_or(&people);
    let mut page = Page::new(
        folder,
        "p_sensitive",
        "Figures 2–5 and Table 10 of Sun et al. 2010, measured",
        &format!(
            "Releases of {}, seven quasi-identifiers with hierarchies and a random condition of eight in four categories, by \
             a fixed seed; `block => 'all'`, one thread. Figures 4 and 5 are of {}, because the paper's CENSUS table is not public. α is the least total weight, so larger is stricter; the paper's Section 7 says the \
             contrary ([P2](../papers.md#p2)). Time is that of the whole query.",
            people.about, second.about
        ),
    );
    let mut known: Vec<(String, Measured)> = vec![];
    for figure in all() {
        let mut series = vec![];
        let people = if figure.census { second } else { &people };
        for (name, base) in &figure.curves {
            let mut points = vec![];
            for x in &figure.points {
                let call = (figure.at)(*base, *x);
                let key = format!(
                    "{}{}{}{}-{}-{}-{}",
                    people.about, call.model, call.algorithm, call.qi, call.k, call.p, call.alpha
                );
                let measured = match known.iter().find(|(k, _)| *k == key) {
                    Some((_, measured)) => *measured,
                    None => runtime.block_on(people.measure(call))?,
                };
                known.push((key, measured));
                points.push((f64::from(*x), (figure.value)(&measured)));
            }
            series.push(((*name).to_owned(), points));
        }
        println!("{}", figure.name);
        let plot = Plot {
            title: figure.title.to_owned(),
            x: figure.x.to_owned(),
            y: figure.y.to_owned(),
            series,
        };
        page.add(figure.name, &plot)?;
        if let Some(claim) = &figure.claim {
            page.say(&claim.sentence(&plot));
        }
    }
    page.say(&runtime.block_on(attacks(&people))?);
    page.write()
}

/// Table 10: classes whose values fall into one category, and their records.
async fn attacks(people: &People) -> Result<String> {
    let mut text = "## Table 10: the similarity attack\n\n\
         Classes whose values fall into one category, and the records they expose.\n\n\
         | k, p | p-sensitive | p⁺-sensitive | (p, 1)-sensitive |\n|---|---|---|---|"
        .to_owned();
    for (k, p) in [(3, 2), (4, 2), (3, 3), (4, 3)] {
        let _ = write!(text, "\n| {k}, {p} |");
        for model in 1..=3 {
            let measured = people
                .measure(Call {
                    model,
                    k,
                    p,
                    ..DEFAULT
                })
                .await?;
            let _ = write!(
                text,
                " {} classes, {} records |",
                measured.vulnerable, measured.exposed
            );
        }
    }
    Ok(text)
}
