//! Measures: the same whatever the partitions, in little memory, on another machine.

use std::path::Path;
use std::sync::Arc;

use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{AnonymizeLogicalCodec, AnonymizePhysicalCodec, register_all};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};

use crate::engine::{context, printed, rows, with_patients};

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

    // One class of everybody does not fit, and says so. With several partitions, a sort beside it may be refused first.
    rows(&tight, "SET datafusion.execution.target_partitions = 1")
        .await
        .unwrap();
    let all = audit
        .replace("[birth_year, sex, race]", "[everybody]")
        .replace(
            "audit(published",
            "audit((SELECT *, 1 AS everybody FROM published)",
        );
    let error = rows(&tight, &all).await.unwrap_err().strip_backtrace();
    assert!(error.contains("ClassesExec"), "{error}");
}

/// The other measures in pools of falling size, of which so many megabytes are enough: the same rows, or the engine says
/// that they do not fit.
#[tokio::test(flavor = "multi_thread")]
async fn measures_run_in_little_memory() {
    const STANDSTILL: std::time::Duration = std::time::Duration::from_secs(60);
    let folder = tempfile::tempdir().unwrap();
    let roomy = limited(Arc::new(GreedyMemoryPool::new(1 << 30)), folder.path());
    let copies = [
        (
            "published",
            PUBLISHED.replace("CREATE TABLE published AS ", ""),
        ),
        (
            "original",
            "SELECT * FROM sample_patients(12000)".to_owned(),
        ),
    ];
    let file = |name: &str| folder.path().join(format!("{name}.parquet"));
    for (name, query) in &copies {
        let copy = format!("COPY ({query}) TO '{}'", file(name).display());
        rows(&roomy, &copy).await.unwrap();
    }
    let with_tables = async |ctx: &SessionContext| {
        for (name, _) in &copies {
            let place = file(name);
            let place = place.display();
            let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{place}'");
            rows(ctx, &sql).await.unwrap();
        }
    };
    with_tables(&roomy).await;
    let both = "original, published, qi => [birth_year, sex, race], sensitive => diagnosis";
    let queries = [
        (
            format!("SELECT * FROM audit_classes(published, {ROLES}, seed => 1)"),
            32,
        ),
        (
            format!(
                "SELECT measure, \"column\", value FROM information_loss({both}, id => individual, \
                 original_id => patient_id)"
            ),
            64,
        ),
        (
            format!("SELECT query, prec, est FROM query_error({both}, queries => 200, seed => 7)"),
            32,
        ),
        (
            "SELECT * FROM estimate(published, 'SELECT diagnosis, count(*) FROM published WHERE birth_year > 1960 \
             AND sex = ''F'' GROUP BY diagnosis')"
                .to_owned(),
            32,
        ),
    ];
    for (sql, enough) in queries {
        let mut expected = rows(&roomy, &sql).await.unwrap();
        expected.sort();
        assert!(!expected.is_empty());
        for megabytes in [64, 32, 16, 8, 4, 2, 1] {
            let tight = limited(
                Arc::new(GreedyMemoryPool::new(megabytes << 20)),
                folder.path(),
            );
            with_tables(&tight).await;
            let ended = tokio::time::timeout(STANDSTILL, rows(&tight, &sql)).await;
            match ended.unwrap_or_else(|_| panic!("{megabytes} MB: a standstill: {sql}")) {
                Ok(mut found) => {
                    found.sort();
                    assert!(alike(&found, &expected), "{megabytes} MB: {sql}");
                }
                Err(error) => {
                    let said = error.strip_backtrace();
                    assert!(said.contains("Resources exhausted"), "{said}: {sql}");
                    assert!(megabytes < enough, "{megabytes} MB: {said}: {sql}");
                }
            }
        }
    }
}

/// Equal, but for the order in which floats were added.
fn alike(a: &[Vec<String>], b: &[Vec<String>]) -> bool {
    let same = |a: &String, b: &String| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
        _ => a == b,
    };
    let rows = |(a, b): (&Vec<String>, &Vec<String>)| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
    };
    a.len() == b.len() && a.iter().zip(b).all(rows)
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
