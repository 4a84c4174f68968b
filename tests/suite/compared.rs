//! Two tables compared individual by individual: what is counted, how often files are read, and in which memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::DataType;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::register_all;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, printed, rows, spills};

/// Whose a record is, which of the classes or values it shows, and its sensitive value.
type Record = (Option<i32>, usize, Option<i32>);

/// What a class shows, and which values it covers; the last value is a missing one.
const CLASSES: [(Option<&str>, [bool; 4]); 5] = [
    (Some("*"), [true, true, true, true]),
    (None, [false, false, false, true]),
    (Some("[1, 2]"), [true, true, false, false]),
    (Some("{2, 5}"), [false, true, true, false]),
    (Some("[1, 9]"), [true, true, true, false]),
];

/// Original values; a missing one is no smallest.
const VALUES: [Option<i32>; 4] = [Some(1), Some(2), Some(5), None];

fn records(rng: &mut ChaCha8Rng, classes: usize) -> Vec<Record> {
    let people = rng.random_range(1..15);
    let names = rng.random_range(0..people);
    (0..rng.random_range(0..60))
        .map(|_| {
            let who = names + rng.random_range(0..people);
            // Most records of an individual agree.
            let class = match rng.random_bool(0.9) {
                true => (who as usize * 7 + 3) % classes,
                false => rng.random_range(0..classes),
            };
            let known = rng.random_bool(0.95);
            let what = rng.random_bool(0.9).then(|| rng.random_range(0..4));
            (known.then_some(who), class, what)
        })
        .collect()
}

/// Every count by its definition.
fn expected(published: &[Record], original: &[Record]) -> BTreeMap<&'static str, usize> {
    let people =
        |records: &[Record]| -> BTreeSet<i32> { records.iter().filter_map(|r| r.0).collect() };
    let pairs = |records: &[Record]| -> BTreeSet<(Option<i32>, Option<i32>)> {
        records.iter().map(|r| (r.0, r.2)).collect()
    };
    let (here, there) = (people(published), people(original));
    let shown: BTreeSet<(Option<i32>, usize)> = published.iter().map(|r| (r.0, r.1)).collect();
    let untrue = shown.iter().filter(|(who, class)| {
        let own = original.iter().filter(|r| r.0 == *who).map(|r| r.1);
        // Values are in order, so the first is the smallest, and the last is none.
        !who.is_some() || !own.min().is_some_and(|least| CLASSES[*class].1[least])
    });
    let several = here.iter().filter(|who| {
        let classes = shown.iter().filter(|(of, _)| *of == Some(**who));
        classes.count() > 1
    });
    let named = pairs(original).into_iter().filter(|(who, _)| who.is_some());
    let named: BTreeSet<_> = named.collect();
    let of_published = named.iter().filter(|(who, _)| here.contains(&who.unwrap()));
    let pairs = pairs(published);
    let mut expected = BTreeMap::from([
        ("individuals", here.len()),
        (
            "records_without_id",
            published.iter().filter(|r| r.0.is_none()).count(),
        ),
        ("individuals_in_several_classes", several.count()),
        ("original_individuals", there.len()),
        ("dropped_individuals", there.difference(&here).count()),
        ("added_individuals", here.difference(&there).count()),
        ("untrue_individuals", untrue.count()),
        ("invented_records", pairs.difference(&named).count()),
        (
            "lost_records",
            of_published.filter(|pair| !pairs.contains(pair)).count(),
        ),
    ]);
    let nameless = original.iter().filter(|r| r.0.is_none()).count();
    if nameless > 0 {
        expected.insert("original_records_without_id", nameless);
    }
    expected
}

/// Ids of a kind, with equal values in different bits where there are such.
fn ids(records: &[Record], kind: u32, rng: &mut ChaCha8Rng) -> ArrayRef {
    let texts = || -> ArrayRef {
        let texts = records
            .iter()
            .map(|r| Some(format!("somebody with the number {}", r.0?)));
        Arc::new(texts.collect::<StringArray>())
    };
    match kind {
        0 => Arc::new(records.iter().map(|r| r.0).collect::<Int32Array>()),
        1 => Arc::new(records.iter().map(|r| r.0).collect::<Date32Array>()),
        2 => {
            let mut float = |id: i32| match id {
                3 => f64::NAN,
                4 if rng.random_bool(0.5) => -0.0,
                4 => 0.0,
                _ => f64::from(id + 1) / 7.0,
            };
            let floats = records.iter().map(|r| r.0.map(&mut float));
            Arc::new(floats.collect::<Float64Array>())
        }
        // Texts of any type have the same ids.
        _ => {
            let dictionary =
                DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
            let types = [
                DataType::Utf8,
                DataType::LargeUtf8,
                DataType::Utf8View,
                dictionary,
            ];
            cast(&texts(), &types[rng.random_range(0..types.len())]).unwrap()
        }
    }
}

/// In some order and some parts of some batches.
fn table(batch: &RecordBatch, rng: &mut ChaCha8Rng) -> Arc<MemTable> {
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    match rng.random_range(0..3) {
        0 => order.shuffle(rng),
        1 => order.reverse(),
        _ => {}
    }
    let mut parts = vec![vec![]; rng.random_range(1..=16)];
    for rows in order.chunks(rng.random_range(1..=20)) {
        let at = rng.random_range(0..parts.len());
        parts[at].push(take_record_batch(batch, &UInt32Array::from(rows.to_vec())).unwrap());
    }
    Arc::new(MemTable::try_new(batch.schema(), parts).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_is_compared_with_himself() {
    for seed in 0..120 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut original = records(&mut rng, VALUES.len());
        let published = records(&mut rng, CLASSES.len());
        // Records of an individual stand together, or come as they come.
        if seed % 2 == 0 {
            original.sort();
        }
        let kind = rng.random_range(0..4);
        let values = |records: &[Record]| -> ArrayRef {
            Arc::new(records.iter().map(|r| r.2).collect::<Int32Array>())
        };
        let cells: ArrayRef = Arc::new(
            published
                .iter()
                .map(|r| CLASSES[r.1].0)
                .collect::<StringArray>(),
        );
        let exact: ArrayRef =
            Arc::new(original.iter().map(|r| VALUES[r.1]).collect::<Int32Array>());
        let batch = |records: &[Record], qi: ArrayRef, rng: &mut ChaCha8Rng| {
            let columns = [
                ("who", ids(records, kind, rng)),
                ("a", qi),
                ("what", values(records)),
            ];
            RecordBatch::try_from_iter_with_nullable(
                columns.map(|(name, column)| (name, column, true)),
            )
            .unwrap()
        };
        let config = SessionConfig::new()
            .with_target_partitions(rng.random_range(1..=4))
            .with_batch_size(rng.random_range(1..=40));
        let ctx = context(config);
        for (name, batch) in [
            ("p", batch(&published, cells, &mut rng)),
            ("o", batch(&original, exact, &mut rng)),
        ] {
            ctx.register_table(name, table(&batch, &mut rng)).unwrap();
        }
        let sql = "SELECT measure, CAST(value AS BIGINT) FROM audit(p, id => who, qi => [a], sensitive => what, \
                   original => o, same_ids => true) WHERE section = 'original' OR measure IN \
                   ('individuals', 'records_without_id', 'individuals_in_several_classes')";
        let audited = rows(&ctx, sql).await.unwrap().into_iter();
        let audited: BTreeMap<String, String> = audited
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        let expected = expected(&published, &original);
        let expected: BTreeMap<String, String> = expected
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count.to_string()))
            .collect();
        assert_eq!(audited, expected, "seed {seed}, ids of kind {kind}");
    }
}

/// Ids of types that are never equal: nobody is in both tables.
#[tokio::test(flavor = "multi_thread")]
async fn ids_of_other_types_are_other_ids() {
    let ctx = context(SessionConfig::new());
    let sql = "SELECT measure, CAST(value AS BIGINT) FROM audit((SELECT CAST(1 AS INT) AS who, '*' AS a, 2 AS what), \
               id => who, qi => [a], sensitive => what, original => (SELECT '1' AS who, 3 AS a, 2 AS what), \
               same_ids => true) WHERE section = 'original' AND value > 0";
    let found = rows(&ctx, sql).await.unwrap();
    let found: Vec<_> = found.iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        found,
        [
            "original_individuals 1",
            "dropped_individuals 1",
            "added_individuals 1",
            "untrue_individuals 1",
            "invented_records 1",
        ]
    );
}

async fn with_files(ctx: &SessionContext, folder: &std::path::Path) {
    for name in ["original", "published"] {
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{}'",
            folder.join(name).with_extension("parquet").display()
        );
        rows(ctx, &sql).await.unwrap();
    }
}

async fn written(folder: &std::path::Path) {
    let ctx = context(SessionConfig::new());
    let call = "anonymize_eir(sample_patients(6000), id => patient_id, qi => [birth_year, sex, race], \
                sensitive => diagnosis, l => 3, block => 1500, seed => 9)";
    for (name, from) in [("original", "sample_patients(6000)"), ("published", call)] {
        let file = folder.join(name).with_extension("parquet");
        let sql = format!("COPY (SELECT * FROM {from}) TO '{}'", file.display());
        rows(&ctx, &sql).await.unwrap();
    }
    with_files(&ctx, folder).await;
}

const ROLES: &str = "qi => [birth_year, sex, race], sensitive => diagnosis";

/// The same ids on both sides: the published individuals under the names of the original ones.
fn same_ids(published: &str) -> String {
    format!(
        "SELECT measure, value FROM audit({published}, id => patient_id, {ROLES}, original => original, \
         same_ids => true) WHERE section <> 'not protected'"
    )
}

fn scans(plan: &Arc<dyn ExecutionPlan>, of: &str) -> usize {
    let own = plan.name() == "DataSourceExec"
        && displayable(plan.as_ref())
            .one_line()
            .to_string()
            .contains(of);
    let below = plan.children().into_iter().map(|child| scans(child, of));
    usize::from(own) + below.sum::<usize>()
}

fn names(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let below = plan.children().into_iter().flat_map(names);
    let line = displayable(plan.as_ref()).one_line().to_string();
    std::iter::once(line).chain(below).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_as_often_as_said_and_records_are_not_joined() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    with_files(&ctx, folder.path()).await;
    for (sql, original, published) in CALLS {
        let sql = sql.replace("ROLES", ROLES);
        let plan = ctx.sql(&sql).await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        let found = [
            scans(&plan, "original.parquet"),
            scans(&plan, "published.parquet"),
        ];
        assert_eq!(found, [*original, *published], "{sql}");
        for line in names(&plan) {
            // Different sensitive values are few.
            let of_values = line.contains("__shown") || line.contains("gby=[__value@");
            assert!(
                of_values || !line.contains("JoinExec: mode"),
                "{line}: {sql}"
            );
            if line.starts_with("AggregateExec") {
                // Of the whole table, or by something of which there is little.
                let little = [
                    "gby=[]",
                    "gby=[__sensitive@",
                    "gby=[__class@",
                    "gby=[class@",
                ];
                let little = little.iter().any(|by| line.contains(by));
                assert!(of_values || little, "{line}: {sql}");
            }
        }
    }
}

/// A call, and how often it reads the files of the original and of the published table.
const CALLS: &[(&str, usize, usize)] = &[
    (
        "SELECT * FROM audit(published, id => individual, ROLES)",
        0,
        3,
    ),
    (
        "SELECT * FROM audit(published, id => individual, ROLES, original => (SELECT patient_id AS individual, birth_year, \
         sex, race, diagnosis FROM original), same_ids => true)",
        1,
        3,
    ),
    (
        "SELECT * FROM information_loss(original, published, id => individual, original_id => patient_id, ROLES)",
        3,
        3,
    ),
    (
        "SELECT * FROM information_loss(original, published, id => individual, original_id => patient_id, \
         qi => [birth_year, sex, race])",
        2,
        2,
    ),
    (
        "SELECT * FROM information_loss(original, published, id => individual, original_id => patient_id, \
         qi => [birth_year, sex, race], published_only => true)",
        0,
        3,
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_comparison_spills_and_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path()).await;
    // Shuffled, so that records of an individual do not stand together.
    let shuffled = "(SELECT * FROM original ORDER BY visit_date, diagnosis)";
    let roomy = context(SessionConfig::new());
    with_files(&roomy, folder.path()).await;
    let sql = same_ids(shuffled);
    let expected = rows(&roomy, &sql).await.unwrap();
    let mut spilled = false;
    for megabytes in [6, 8, 12] {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(megabytes << 20)))
            .with_temp_file_path(folder.path())
            .build_arc()
            .unwrap();
        let config = SessionConfig::new()
            .with_target_partitions(2)
            .with_batch_size(512)
            .with_sort_spill_reservation_bytes(64 * 1024);
        let tight = SessionContext::new_with_config_rt(config, runtime);
        register_all(&tight).unwrap();
        with_files(&tight, folder.path()).await;
        let plan = tight.sql(&sql).await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        let found = collect(Arc::clone(&plan), tight.task_ctx()).await;
        match found {
            Ok(found) => {
                assert_eq!(printed(&found), expected, "{megabytes} MB");
                spilled |= spills(&plan) > 0;
            }
            Err(error) => assert!(
                megabytes < 12 && crate::engine::is_exhausted(&error),
                "{error}"
            ),
        }
    }
    assert!(spilled, "no pool was tight");
}
