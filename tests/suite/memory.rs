//! Bounded memory, and an end when nobody waits.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::Result;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{Summary, register_all};
use futures::StreamExt;

use crate::calls::{CALLS, call};
use crate::engine::{is_exhausted, make_wards, printed, spills};

const SAMPLE: &str = "sample_patients(12000)";

/// Memory for the sorts and blocks of all calls, from enough for most to hardly enough for any.
const POOLS: [usize; 6] = [10 << 20, 7 << 20, 5 << 20, 4 << 20, 3 << 20, 2 << 20];

async fn limited(pool: Arc<dyn MemoryPool>, folder: &Path) -> SessionContext {
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
    make_wards(&ctx).await;
    ctx
}

async fn run(
    ctx: &SessionContext,
    sql: &str,
) -> Result<(Arc<dyn ExecutionPlan>, Vec<Vec<String>>)> {
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let mut rows = printed(&collect(Arc::clone(&plan), ctx.task_ctx()).await?);
    rows.sort();
    Ok((plan, rows))
}

/// Files below a folder.
fn files(folder: &Path) -> usize {
    let folders = std::fs::read_dir(folder).unwrap().flatten();
    folders
        .flat_map(|d| std::fs::read_dir(d.path()))
        .flatten()
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_pool_spills_and_gives_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    for query in CALLS {
        let sql = call(query, SAMPLE, "700");
        let roomy = limited(Arc::new(GreedyMemoryPool::new(1 << 30)), folder.path()).await;
        let (plan, expected) = run(&roomy, &sql).await.unwrap();
        assert_eq!(spills(&plan), 0, "{sql}");
        if let Some(summary) = Summary::of(&plan) {
            assert!(summary.individuals >= 12_000, "{sql}");
            assert!(summary.blocks > 10, "{sql}");
        }

        let mut spilled = false;
        for bytes in POOLS {
            let tight = limited(Arc::new(FairSpillPool::new(bytes)), folder.path()).await;
            // Where less than one block fits, that is said; another test looks at it.
            if let Ok((plan, rows)) = run(&tight, &sql).await {
                assert!(rows == expected, "spilling changed the release: {sql}");
                spilled |= spills(&plan) > 0;
            }
        }
        assert!(spilled, "no pool was tight: {sql}");
        no_file_is_left(folder.path()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_small_a_pool_is_an_error_that_names_who_wanted_more() {
    let folder = tempfile::tempdir().unwrap();
    for query in CALLS {
        let sql = call(query, SAMPLE, "700");
        for bytes in [1 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10] {
            let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
            let ctx = limited(Arc::clone(&pool), folder.path()).await;
            let error = run(&ctx, &sql).await.unwrap_err();
            assert!(is_exhausted(&error), "{error}: {sql}");
            let text = error.find_root().strip_backtrace();
            assert!(wanted_by(&text).is_some(), "{text}: {sql}");
            ends(&pool, folder.path()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_does_not_fit_names_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    // The calls with the largest block: elsewhere a sort may be the first to want too much.
    for query in &CALLS[..2] {
        let sql = call(query, SAMPLE, "'all'");
        let mut names = false;
        for bytes in POOLS {
            let ctx = limited(Arc::new(FairSpillPool::new(bytes)), folder.path()).await;
            if let Err(error) = run(&ctx, &sql).await {
                assert!(is_exhausted(&error), "{error}: {sql}");
                let text = error.find_root().strip_backtrace();
                let wanted = wanted_by(&text) == Some("AnonymizeExec[");
                // What can be done is said, too.
                names |= wanted && error.strip_backtrace().contains("smaller blocks need less");
            }
        }
        assert!(names, "{sql}");
    }
}

/// Who can want more memory than there is: our operators, and the engine's below and between them.
const CONSUMERS: [&str; 9] = [
    "AnonymizeExec[",
    "IndividualsExec[",
    "ProfileExec[",
    "TableProfile",
    "ExternalSorter[",
    "ExternalSorterMerge[",
    "RepartitionExec[",
    "RepartitionMerge[",
    "SortPreservingMergeExec[",
];

/// The consumer that an error of the engine's pool names.
fn wanted_by(error: &str) -> Option<&'static str> {
    let (_, named) = error.split_once(" for ")?;
    CONSUMERS.into_iter().find(|name| named.starts_with(name))
}

/// Waits until all memory was given back and no temporary file is left.
async fn ends(pool: &Arc<dyn MemoryPool>, folder: &Path) {
    soon("memory is given back", || pool.reserved() == 0).await;
    no_file_is_left(folder).await;
}

async fn no_file_is_left(folder: &Path) {
    soon("no temporary file is left", || files(folder) == 0).await;
}

/// The bound is against hanging, not a claim about speed.
async fn soon(what: &str, happened: impl Fn() -> bool) {
    let begin = Instant::now();
    while !happened() {
        assert!(begin.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_stream_ends_the_work() {
    let folder = tempfile::tempdir().unwrap();
    // A block of all, so that the work on it takes long; and small blocks with little memory, so that sorts spill.
    let pools: [(Arc<dyn MemoryPool>, &str); 2] = [
        (Arc::new(GreedyMemoryPool::new(1 << 30)), "'all'"),
        (Arc::new(FairSpillPool::new(16 << 20)), "1500"),
    ];
    for (pool, block) in pools {
        for query in CALLS {
            let ctx = limited(Arc::clone(&pool), folder.path()).await;
            let sql = call(query, "sample_patients(200000)", block);
            let plan = ctx.sql(&sql).await.unwrap();
            let plan = plan.create_physical_plan().await.unwrap();
            let mut stream = execute_stream(plan, ctx.task_ctx()).unwrap();
            let first = tokio::time::timeout(Duration::from_millis(700), stream.next()).await;
            assert!(
                first.is_err(),
                "the work was done before it could be cancelled: {sql}"
            );
            drop(stream);
            ends(&pool, folder.path()).await;
        }
    }
}

/// Dropped while blocks are worked on, whose results nobody will take.
#[tokio::test(flavor = "multi_thread")]
async fn dropping_the_stream_ends_the_work_on_blocks() {
    let folder = tempfile::tempdir().unwrap();
    for query in CALLS {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        let ctx = limited(Arc::clone(&pool), folder.path()).await;
        let sql = call(query, SAMPLE, "700");
        let plan = ctx.sql(&sql).await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        let mut stream = execute_stream(plan, ctx.task_ctx()).unwrap();
        assert!(stream.next().await.unwrap().unwrap().num_rows() > 0);
        drop(stream);
        ends(&pool, folder.path()).await;
    }
}
