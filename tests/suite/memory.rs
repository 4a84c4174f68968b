//! Bounded memory, and an end when nobody waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{Summary, register_all};
use futures::StreamExt;

use crate::engine::printed;

const RELEASE: &str = "SELECT * FROM anonymize_eir(sample_patients(24000), id => patient_id, \
    qi => [birth_year, sex, race, education_years], sensitive => diagnosis, keep => [ward, visit_date], l => 3, \
    block => 1500, seed => 9)";

fn limited(pool: Arc<dyn MemoryPool>, folder: &std::path::Path) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        .with_temp_file_path(folder)
        .build_arc()
        .unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .with_batch_size(1024)
        .with_sort_spill_reservation_bytes(256 * 1024);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    register_all(&ctx).unwrap();
    ctx
}

async fn run(
    ctx: &SessionContext,
) -> datafusion::common::Result<(Arc<dyn ExecutionPlan>, Vec<Vec<String>>)> {
    let plan = ctx.sql(RELEASE).await?.create_physical_plan().await?;
    let mut rows = printed(&collect(Arc::clone(&plan), ctx.task_ctx()).await?);
    rows.sort();
    Ok((plan, rows))
}

fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan
        .metrics()
        .and_then(|m| m.spill_count())
        .unwrap_or_default();
    own + plan.children().into_iter().map(spills).sum::<usize>()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_pool_spills_and_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let roomy = limited(Arc::new(GreedyMemoryPool::new(1 << 30)), folder.path());
    let (plan, expected) = run(&roomy).await.unwrap();
    assert_eq!(spills(&plan), 0);
    let summary = Summary::of(&plan).unwrap();
    assert_eq!((summary.individuals, summary.blocks > 10), (24_000, true));

    let tight = limited(Arc::new(FairSpillPool::new(16 << 20)), folder.path());
    let (plan, rows) = run(&tight).await.unwrap();
    assert!(spills(&plan) > 0, "the pool was not tight");
    assert!(rows == expected, "spilling changed the release");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_small_a_pool_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = limited(Arc::new(FairSpillPool::new(64 << 10)), folder.path());
    let error = run(&ctx).await.unwrap_err().strip_backtrace();
    assert!(
        error.contains("Resources exhausted") || error.contains("memory"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_does_not_fit_names_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = limited(Arc::new(FairSpillPool::new(16 << 20)), folder.path());
    let sql = RELEASE.replace("block => 1500", "block => 'all'");
    let error = ctx
        .sql(&sql)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap_err()
        .strip_backtrace();
    assert!(error.contains("AnonymizeExec"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_stream_ends_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
    let ctx = limited(Arc::clone(&pool), folder.path());
    let sql = RELEASE
        .replace("24000", "200000")
        .replace("block => 1500", "block => 'all'");
    let plan = ctx
        .sql(&sql)
        .await
        .unwrap()
        .create_physical_plan()
        .await
        .unwrap();
    let mut stream = execute_stream(plan, ctx.task_ctx()).unwrap();
    let first = tokio::time::timeout(Duration::from_millis(700), stream.next()).await;
    assert!(
        first.is_err(),
        "the work was done before it could be cancelled"
    );
    drop(stream);
    let begin = Instant::now();
    while pool.reserved() > 0 && begin.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(pool.reserved(), 0, "memory is given back");
    let left = std::fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .flat_map(|d| std::fs::read_dir(d.path()));
    assert_eq!(left.flatten().count(), 0, "no temporary file is left");
}
