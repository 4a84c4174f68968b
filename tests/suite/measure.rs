//! Measures: the same whatever the partitions, in little memory, on another machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::verify::{Measurer, Measures, Published, Reference, diversity};
use datafusion_anonymize::{AUDITS, AnonymizeLogicalCodec, AnonymizePhysicalCodec, register_all};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, printed, rows, with_patients};

/// Tables that go through SQL; the measures themselves are compared with brute force in `src/verify/measures.rs`.
const TABLES: u64 = 25;

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_in_sql_is_that_of_the_verifier() {
    for seed in 0..TABLES {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let records: Vec<(i32, i32, Option<i32>)> = (0..rng.random_range(1..=60))
            .map(|_| {
                let who = rng.random_range(0..20);
                let known = rng.random_bool(0.95);
                (who % 4, who, known.then(|| rng.random_range(0..7)))
            })
            .collect();
        let expected = expected(&records);

        let config = SessionConfig::new()
            .with_target_partitions(rng.random_range(1..=4))
            .with_batch_size(rng.random_range(1..=40));
        let ctx = context(config);
        let parts = rng.random_range(1..=3usize);
        let batches: Vec<Vec<RecordBatch>> = (0..parts)
            .map(|part| vec![batch(records.iter().skip(part).step_by(parts))])
            .collect();
        let table = MemTable::try_new(batches[0][0].schema(), batches).unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        let sql = "SELECT measure, value FROM audit(t, id => who, qi => [a, b], sensitive => what)";
        let audited: BTreeMap<String, String> = rows(&ctx, sql)
            .await
            .unwrap()
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        for (measure, value) in expected {
            let attained: f64 = audited[measure].parse().unwrap();
            assert!(
                (attained - value).abs() < 1e-9,
                "seed {seed}: {measure} is {attained}, not {value}"
            );
        }
    }
}

fn batch<'a>(records: impl Iterator<Item = &'a (i32, i32, Option<i32>)>) -> RecordBatch {
    let records: Vec<_> = records.collect();
    let text = |f: &dyn Fn(i32) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            records.iter().map(|r| f(r.0)),
        ))
    };
    RecordBatch::try_from_iter_with_nullable([
        (
            "who",
            Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.1))) as ArrayRef,
            true,
        ),
        ("a", text(&|class| format!("[{}, 9]", class / 2)), true),
        ("b", text(&|class| format!("{}*", class % 2)), true),
        (
            "what",
            Arc::new(Int32Array::from_iter(records.iter().map(|r| r.2))),
            true,
        ),
    ])
    .unwrap()
}

/// What the verifier says of the whole table at once.
fn expected(records: &[(i32, i32, Option<i32>)]) -> Vec<(&'static str, f64)> {
    let class: ArrayRef = Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.0)));
    let who: ArrayRef = Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.1)));
    let what: ArrayRef = Arc::new(Int32Array::from_iter(records.iter().map(|r| r.2)));
    let published = Published::from_columns(&[class], &who, &what).unwrap();
    let mut values: Vec<i32> = records.iter().filter_map(|r| r.2).collect();
    values.sort_unstable();
    let counts: Vec<u64> = values
        .chunk_by(|a, b| a == b)
        .map(|c| c.len() as u64)
        .collect();
    values.dedup();
    let numbers: Vec<u32> = published
        .examples()
        .iter()
        .map(|&record| match records[record as usize].2 {
            Some(value) => values.binary_search(&value).unwrap() as u32,
            None => u32::MAX,
        })
        .collect();
    let reference = Reference::new(&counts, true);
    let mut measurer = Measurer::new(&published, &reference, Some(&numbers));
    let classes: Vec<Measures> = published.classes().map(|c| measurer.measure(&c)).collect();
    let least = |f: &dyn Fn(&Measures) -> f64| classes.iter().map(f).fold(f64::MAX, f64::min);
    let most = |f: &dyn Fn(&Measures) -> f64| classes.iter().map(f).fold(f64::MIN, f64::max);
    let total = |f: &dyn Fn(&Measures) -> usize| classes.iter().map(f).sum::<usize>() as f64;
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let mut expected = vec![
        ("records", records.len() as f64),
        ("individuals", total(&|m| m.individuals)),
        ("classes", classes.len() as f64),
        ("k", least(&|m| m.individuals as f64)),
        ("distinct_l", least(&|m| m.values as f64)),
        ("entropy_l", least(&|m| m.entropy_l)),
        ("recursive_l", least(&|m| m.recursive_l as f64)),
        ("t_equal", most(&|m| m.t_equal)),
        ("t_ordered", most(&|m| m.t_ordered.unwrap())),
        (
            "eir_beta",
            most(&|m| share(m.most_individuals_with_a_value, m.individuals)),
        ),
        (
            "ir_beta",
            most(&|m| share(m.most_records_with_a_value, m.records)),
        ),
        (
            "individuals_without_value",
            total(&|m| m.individuals_without_value),
        ),
        ("duplicate_records", total(&|m| m.duplicate_records)),
    ];
    if let Ok(Some(l)) = diversity(&published) {
        expected.push(("eir_l", l.size() as f64));
    }
    expected
}

const PUBLISHED: &str = "CREATE TABLE published AS SELECT * FROM anonymize_eir(sample_patients(12000), \
    id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, l => 3, block => 1500, seed => 9)";
const ROLES: &str = "id => individual, qi => [birth_year, sex, race], sensitive => diagnosis";

fn limited(pool: Arc<dyn MemoryPool>, folder: &Path) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .with_temp_file_path(folder)
        .build_arc()
        .unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(512)
        .with_sort_spill_reservation_bytes(64 * 1024);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    register_all(&ctx).unwrap();
    ctx
}

fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|m| m.spill_count());
    own.unwrap_or_default() + plan.children().into_iter().map(spills).sum::<usize>()
}

async fn with_published(ctx: &SessionContext, file: &Path) {
    let sql = format!(
        "CREATE EXTERNAL TABLE published STORED AS PARQUET LOCATION '{}'",
        file.display()
    );
    rows(ctx, &sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_spills_and_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("published.parquet");
    let roomy = limited(Arc::new(GreedyMemoryPool::new(1 << 30)), folder.path());
    let copy = PUBLISHED.replace("CREATE TABLE published AS ", "COPY (");
    rows(&roomy, &format!("{copy}) TO '{}'", file.display()))
        .await
        .unwrap();
    with_published(&roomy, &file).await;
    let audit = format!("SELECT measure, value FROM audit(published, {ROLES}, l => 4)");
    let expected = rows(&roomy, &audit).await.unwrap();

    let tight = limited(Arc::new(FairSpillPool::new(8 << 20)), folder.path());
    with_published(&tight, &file).await;
    let plan = tight.sql(&audit).await.unwrap();
    let plan = plan.create_physical_plan().await.unwrap();
    let audited = printed(&collect(Arc::clone(&plan), tight.task_ctx()).await.unwrap());
    assert!(spills(&plan) > 0, "the pool was not tight");
    assert_eq!(audited, expected);

    // One class of everybody does not fit, and says so.
    let all = audit
        .replace("[birth_year, sex, race]", "[everybody]")
        .replace(
            "audit(published",
            "audit((SELECT *, 1 AS everybody FROM published)",
        );
    let error = rows(&tight, &all).await.unwrap_err().strip_backtrace();
    assert!(error.contains("ClassesExec"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn measuring_plans_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let file = folder.path().join("published.parquet");
    let copy = PUBLISHED
        .replace("12000", "300")
        .replace("CREATE TABLE published AS ", "COPY (");
    rows(&ctx, &format!("{copy}) TO '{}'", file.display()))
        .await
        .unwrap();
    with_published(&ctx, &file).await;
    let queries = [
        format!("SELECT * FROM audit(published, {ROLES}, l => 4) WHERE random() < 2"),
        format!("SELECT * FROM audit_classes(published, {ROLES}, seed => 1)"),
        format!("SELECT * FROM vulnerable_classes(published, {ROLES}, l => 4, seed => 1)"),
        "SELECT * FROM information_loss(published, published, id => individual, qi => [diagnosis])"
            .to_owned(),
    ];
    for sql in &queries {
        let mut expected = rows(&ctx, sql).await.unwrap();
        expected.sort();
        let frame = ctx.sql(sql).await.unwrap();
        let logical = frame.clone().into_optimized_plan().unwrap();
        let codec = AnonymizeLogicalCodec::default();
        let bytes = logical_plan_to_bytes_with_extension_codec(&logical, &codec).unwrap();
        let task = ctx.task_ctx();
        let back = logical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
        assert_eq!(
            logical.display_indent().to_string(),
            back.display_indent().to_string()
        );
        let plan = ctx.state().create_physical_plan(&back).await.unwrap();
        let codec = AnonymizePhysicalCodec::default();
        let bytes = physical_plan_to_bytes_with_extension_codec(plan, &codec).unwrap();
        let plan = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
        let mut sent = printed(&collect(plan, ctx.task_ctx()).await.unwrap());
        sent.sort();
        assert_eq!(sent, expected, "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_class_is_shown() {
    let ctx = with_patients().await;
    let roles = "id => name, qi => [gender, age, postcode], sensitive => disease";
    let mut shown = String::new();
    for sql in [
        format!("SELECT * FROM audit(patients, {roles}, l => 1)"),
        format!("SELECT * FROM audit_classes(patients, {roles}, seed => 'SECRET-SEED')"),
        format!("SELECT * FROM vulnerable_classes(patients, {roles}, l => 1)"),
        format!("EXPLAIN SELECT * FROM audit_classes(patients, {roles}, seed => 'SECRET-SEED')"),
        format!(
            "EXPLAIN VERBOSE SELECT * FROM audit(patients, {roles}, categories => [['HIV'], ['Flu']])"
        ),
    ] {
        shown.push_str(&format!("{:?}", rows(&ctx, &sql).await.unwrap()));
    }
    for cell in ["Mike", "Tina", "10085", "10070", "Syphilis", "SECRET-SEED"] {
        assert!(!shown.contains(cell), "{cell}");
    }
}

#[test]
fn every_measure_has_a_page_with_its_arguments() {
    for entry in AUDITS {
        let page = format!("{}/docs/{}.md", env!("CARGO_MANIFEST_DIR"), entry.name);
        let text = std::fs::read_to_string(&page).unwrap_or_else(|_| panic!("{page} is missing"));
        let arguments = entry.arguments.iter().map(|a| a.name);
        for name in arguments.chain(entry.relations.iter().map(|r| r.name)) {
            assert!(text.contains(&format!("| `{name}` |")), "{page}: {name}");
        }
    }
}
