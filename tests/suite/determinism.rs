//! The same seed gives the same rows, byte by byte, however the work is divided.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_anonymize::{Summary, register_all};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::calls::{CALLS, call};
use crate::engine::{context, is_exhausted, make_wards, rows, spills};

/// With labels that are made from the records.
const MADE_LABELS: &str = "SELECT * FROM anonymize_kl(TABLE, id => patient_id, qi => [birth_year, sex, race], \
    sensitive => diagnosis, k => 2, l => 2, hierarchy => {diagnosis: labels}, block => BLOCK, seed => 11)";

const PARTITIONS: [usize; 5] = [1, 2, 3, 8, 64];

/// How the work is divided.
#[derive(Debug, Clone, Copy)]
struct Way<'a> {
    partitions: usize,
    batch_size: usize,
    records: Records<'a>,
    /// Memory of the engine in bytes, if it has a limit.
    pool: Option<usize>,
}

/// How the records of the input lie.
#[derive(Debug, Clone, Copy)]
enum Records<'a> {
    /// In memory, shuffled with this seed, in one more part than it says.
    Memory(u64),
    /// In the Parquet files of a folder.
    Files(&'a Path),
}

/// What is published: the rows as bytes, sorted, below the types of the columns.
struct Published {
    types: String,
    rows: Vec<Vec<u8>>,
    spills: usize,
    blocks: u64,
}

impl Published {
    /// However often something was spilled.
    fn is(&self, other: &Self) -> bool {
        (&self.types, &self.rows) == (&other.types, &other.rows)
    }
}

async fn publish(sql: &str, table: &RecordBatch, way: Way<'_>) -> Result<Published> {
    let config = SessionConfig::new()
        .with_target_partitions(way.partitions)
        .with_batch_size(way.batch_size)
        .with_sort_spill_reservation_bytes(0);
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = way.pool {
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    }
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
    register_all(&ctx)?;
    match way.records {
        Records::Memory(seed) => {
            let parts = shuffled(table, seed).into_iter().map(|part| vec![part]);
            let table = MemTable::try_new(table.schema(), parts.collect())?;
            ctx.register_table("t", Arc::new(table))?;
        }
        Records::Files(folder) => {
            let folder = folder.display().to_string();
            let files = ParquetReadOptions::default();
            ctx.register_parquet("t", folder, files).await?;
        }
    }
    make_wards(&ctx).await;
    if sql.contains("labels") {
        let labels = "CREATE VIEW labels AS SELECT * FROM hierarchy(t, column => diagnosis, \
                      by => 'co_occurrence(5)', id => patient_id)";
        rows(&ctx, labels).await?;
    }
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let fields = plan.schema().fields().clone();
    let sorted = fields.iter().map(|f| SortField::new(f.data_type().clone()));
    let converter = RowConverter::new(sorted.collect())?;
    let mut rows = vec![];
    for batch in batches {
        let converted = converter.convert_columns(batch.columns())?;
        rows.extend(converted.iter().map(|row| row.data().to_vec()));
    }
    rows.sort();
    Ok(Published {
        types: format!("{fields:?}"),
        rows,
        spills: spills(&plan),
        blocks: Summary::of(&plan).map_or(0, |s| s.blocks),
    })
}

/// The records in a random order, in one more part than the seed says.
fn shuffled(table: &RecordBatch, seed: u64) -> Vec<RecordBatch> {
    let mut order: Vec<u32> = (0..table.num_rows() as u32).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let parts = order.chunks(1 + order.len() / (1 + seed as usize));
    let parts = parts.map(|rows| UInt32Array::from(rows.to_vec()));
    parts
        .map(|rows| take_record_batch(table, &rows).unwrap())
        .collect()
}

async fn patients(individuals: u64) -> RecordBatch {
    let ctx = context(SessionConfig::new());
    let sample = format!("SELECT * FROM sample_patients({individuals}, 5)");
    let batches = ctx.sql(&sample).await.unwrap().collect().await.unwrap();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// Whether a call takes each record for an individual, of which there are many more then.
fn by_record(sql: &str) -> bool {
    sql.contains("one_row_per_individual")
}

/// All calls over the table `t`, with several blocks each.
fn calls() -> impl Iterator<Item = String> {
    let calls = CALLS.iter().chain([&MADE_LABELS]);
    calls.map(|query| call(query, "t", if by_record(query) { "980" } else { "100" }))
}

/// What every way must publish.
async fn expected(sql: &str, table: &RecordBatch) -> Published {
    let way = Way {
        partitions: 1,
        batch_size: 8192,
        records: Records::Memory(0),
        pool: None,
    };
    let published = publish(sql, table, way).await.unwrap();
    assert!(published.rows.len() > 200, "{sql}");
    assert!(published.blocks > 1, "{sql}");
    published
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_batches_and_order_do_not_matter() {
    let table = patients(240).await;
    let mut combinations = 0;
    for sql in calls() {
        let expected = expected(&sql, &table).await;
        for partitions in PARTITIONS {
            for (batch_size, seed) in [(1, 1), (7, 2), (8192, 3)] {
                // The engine merges sorted batches of one row in time that grows with the square of their number.
                if batch_size == 1 && by_record(&sql) && partitions < 8 {
                    continue;
                }
                let way = Way {
                    partitions,
                    batch_size,
                    records: Records::Memory(seed),
                    pool: None,
                };
                let published = publish(&sql, &table, way).await.unwrap();
                assert!(published.is(&expected), "{way:?}: {sql}");
                combinations += 1;
            }
        }
    }
    assert_eq!(combinations, 126);
}

/// Writes the shuffled records into so many files whose names say nothing about their order, in row groups of so many
/// records.
fn write(table: &RecordBatch, folder: PathBuf, files: u64, group: usize) -> PathBuf {
    std::fs::create_dir(&folder).unwrap();
    for (i, part) in shuffled(table, files - 1).iter().enumerate() {
        let file = File::create(folder.join(format!("{}.parquet", (i * 7) % 10))).unwrap();
        let properties = WriterProperties::builder();
        let properties = properties.set_max_row_group_row_count(Some(group)).build();
        let mut writer = ArrowWriter::try_new(file, part.schema(), Some(properties)).unwrap();
        writer.write(part).unwrap();
        writer.close().unwrap();
    }
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn files_do_not_matter() {
    let table = patients(240).await;
    let folder = tempfile::tempdir().unwrap();
    let layouts = [(1, 10_000), (3, 50), (10, 500)];
    let layouts = layouts.map(|(files, group)| {
        let name = folder.path().join(files.to_string());
        write(&table, name, files, group)
    });
    let mut combinations = 0;
    for sql in calls() {
        let expected = expected(&sql, &table).await;
        for partitions in PARTITIONS {
            let way = Way {
                partitions,
                // In turn, so that in the end each has met each.
                batch_size: [7, 8192][combinations % 2],
                records: Records::Files(&layouts[combinations % layouts.len()]),
                pool: None,
            };
            let published = publish(&sql, &table, way).await.unwrap();
            assert!(published.is(&expected), "{way:?}: {sql}");
            combinations += 1;
        }
    }
    assert_eq!(combinations, 45);
}

#[tokio::test(flavor = "multi_thread")]
async fn spilling_does_not_matter() {
    let table = patients(480).await;
    // A sort spills when a batch comes that does not fit beside others, so batches are small, as the table is.
    let ways = [
        (1, 64, 700),
        (2, 7, 900),
        (3, 64, 1_200),
        (8, 7, 2_000),
        (64, 64, 8_000),
    ];
    let mut combinations = 0;
    for sql in calls() {
        let expected = expected(&sql, &table).await;
        let mut spilled = 0;
        for (partitions, batch_size, kilobytes) in ways {
            let mut way = Way {
                partitions,
                batch_size,
                records: Records::Memory(2),
                pool: Some(kilobytes << 10),
            };
            // How much is needed depends on who comes first.
            let mut tries = 0;
            let published = loop {
                match publish(&sql, &table, way).await {
                    Err(error) if tries < 6 && is_exhausted(&error) => {
                        tries += 1;
                        way.pool = way.pool.map(|bytes| bytes + bytes / 4);
                    }
                    published => break published.unwrap(),
                }
            };
            assert!(published.is(&expected), "{way:?}: {sql}");
            spilled += usize::from(published.spills > 0);
            combinations += 1;
        }
        // A pool that had to grow may have become large enough.
        assert!(spilled >= 3, "only {spilled} have spilled: {sql}");
    }
    assert_eq!(combinations, 45);
}
