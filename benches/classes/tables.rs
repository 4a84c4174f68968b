//! Tables for the benchmark, read by DataFusion and coded as an algorithm sees them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_anonymize::internals::table::{
    Block, Categorical, Fingerprints, Numeric, QuasiIdentifier,
};
use datafusion_anonymize::register_all;

/// Names the folder with `informs2005_1m.parquet` and `adult.parquet`, where it is not beside the project.
const FOLDER: &str = "ANONYMIZE_DATA";
const BESIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");

/// The project's own sample.
pub async fn sample(individuals: usize) -> Result<Block> {
    let ctx = SessionContext::new();
    register_all(&ctx)?;
    let sql = format!(
        "SELECT patient_id, birth_month, birth_year, sex, race, education_years, marital_status, poverty, hispanic, \
         diagnosis FROM sample_patients(individuals => {individuals}, seed => 1)"
    );
    read(&ctx, &sql, &[0, 1, 4]).await
}

/// The INFORMS 2005 table, or so many of its individuals, if it is there.
pub async fn informs(individuals: Option<usize>) -> Result<Option<Block>> {
    let some = individuals.map(|n| {
        format!(
            "WHERE person_id IN (SELECT DISTINCT person_id FROM t ORDER BY person_id LIMIT {n})"
        )
    });
    let sql = format!(
        "SELECT person_id, birth_month, birth_year, sex, race, education_years, marital_status, poverty_category, \
         hispanic, icd9 FROM t {}",
        some.unwrap_or_default()
    );
    file("informs2005_1m.parquet", &sql, &[0, 1, 4, 6]).await
}

/// The training part of Adult without rows that lack a value; nobody has a sensitive value.
const ADULT: &str = "SELECT row_id, sex, age, race, marital_status, education, native_country, workclass, occupation, \
    'none' AS nothing FROM t WHERE split = 'train' \
    AND workclass IS NOT NULL AND occupation IS NOT NULL AND native_country IS NOT NULL \
    AND workclass <> '?' AND occupation <> '?' AND native_country <> '?'";

/// Adult, if it is there.
pub async fn adult() -> Result<Option<Block>> {
    file("adult.parquet", ADULT, &[1]).await
}

/// A session of two partitions with the same rows as the table `adult`, if they are there.
pub async fn adult_session() -> Result<Option<SessionContext>> {
    let config = SessionConfig::new().with_target_partitions(2);
    let Some(ctx) = session("adult.parquet", config).await? else {
        return Ok(None);
    };
    register_all(&ctx)?;
    let table = format!("CREATE TABLE adult AS {ADULT}");
    ctx.sql(&table).await?.collect().await?;
    Ok(Some(ctx))
}

async fn file(name: &str, sql: &str, numeric: &[usize]) -> Result<Option<Block>> {
    match session(name, SessionConfig::new()).await? {
        Some(ctx) => read(&ctx, sql, numeric).await.map(Some),
        None => Ok(None),
    }
}

/// A session with a file as the table `t`, if it is there.
async fn session(name: &str, config: SessionConfig) -> Result<Option<SessionContext>> {
    let folder = std::env::var_os(FOLDER).unwrap_or_else(|| BESIDE.into());
    let path = PathBuf::from(folder).join(name);
    if !path.exists() {
        return Ok(None);
    }
    let ctx = SessionContext::new_with_config(config);
    ctx.register_parquet("t", path.to_string_lossy(), ParquetReadOptions::default())
        .await?;
    Ok(Some(ctx))
}

/// Codes a query: an id, quasi-identifiers, of which some are `numeric`, a sensitive value.
async fn read(ctx: &SessionContext, sql: &str, numeric: &[usize]) -> Result<Block> {
    let mut people: BTreeMap<(u64, String), (Vec<String>, Vec<u32>)> = BTreeMap::new();
    let mut sensitive: HashMap<String, u32> = HashMap::new();
    for batch in ctx.sql(sql).await?.collect().await? {
        let columns = batch.columns().iter();
        let texts = columns.map(|column| Ok(cast(column, &DataType::Utf8)?));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let last = texts.len() - 1;
        let text =
            |column: usize, row: usize| texts[column].as_string::<i32>().value(row).to_owned();
        for row in 0..batch.num_rows() {
            let id = text(0, row);
            let codes = sensitive.len() as u32;
            let code = *sensitive.entry(text(last, row)).or_insert(codes);
            let person = people.entry((scatter(&id), id)).or_insert_with(|| {
                let values = (1..last).map(|column| text(column, row));
                (values.collect(), vec![])
            });
            person.1.push(code);
        }
    }
    Ok(code(people.into_values().collect(), numeric))
}

/// A number without order, as the engine numbers individuals.
fn scatter(id: &str) -> u64 {
    let hash = id.bytes().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    (hash ^ hash >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

fn code(people: Vec<(Vec<String>, Vec<u32>)>, numeric: &[usize]) -> Block {
    let columns = people.first().map_or(0, |(values, _)| values.len());
    let coded: Vec<(Vec<u32>, u64)> = (0..columns)
        .map(|c| {
            let values = people.iter().map(|(values, _)| values[c].as_str());
            if numeric.contains(&c) {
                numbers(values)
            } else {
                categories(values)
            }
        })
        .collect();
    let full = coded
        .iter()
        .map(|(_, steps)| *steps)
        .fold(1, common_multiple);
    let step = |steps: u64| full.checked_div(steps).unwrap_or(0);
    let column = |(c, (codes, steps)): (usize, (Vec<u32>, u64))| {
        if numeric.contains(&c) {
            QuasiIdentifier::Numeric(Numeric {
                lo: codes.clone(),
                hi: codes,
                step: step(steps),
            })
        } else {
            QuasiIdentifier::Categorical(Categorical {
                offsets: (0..=codes.len() as u32).collect(),
                codes,
                cardinality: steps as u32 + 1,
                step: step(steps),
            })
        }
    };
    let columns = coded.into_iter().enumerate().map(column).collect();
    let mut fingerprints = Fingerprints::new();
    let mut records = vec![];
    for (_, mut values) in people {
        values.sort_unstable();
        values.dedup();
        records.push(values.len() as u32);
        fingerprints.push(&mut values);
    }
    Block::new(columns, fingerprints, records, full)
}

fn numbers<'a>(values: impl Iterator<Item = &'a str>) -> (Vec<u32>, u64) {
    let values: Vec<i64> = values.map(|v| v.parse().expect("a whole number")).collect();
    let least = values.iter().copied().min().unwrap_or(0);
    let most = values.iter().copied().max().unwrap_or(0);
    let codes = values.iter().map(|value| (value - least) as u32).collect();
    (codes, (most - least) as u64)
}

fn categories<'a>(values: impl Iterator<Item = &'a str>) -> (Vec<u32>, u64) {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let codes = values
        .map(|value| {
            let next = known.len() as u32;
            *known.entry(value).or_insert(next)
        })
        .collect();
    (codes, known.len().saturating_sub(1) as u64)
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    if b == 0 { a } else { a / x * b }
}
