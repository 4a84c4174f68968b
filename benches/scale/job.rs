//! One job, in a process of its own: from Parquet to Parquet.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryPool, TrackConsumersPool, UnboundedMemoryPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{Summary, limit_memory, register_all};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use crate::data::temporary;
use crate::files;
use crate::phase::{Phase, forming};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The statement.
    pub sql: String,
    /// Folders that it writes, removed before.
    pub outputs: Vec<PathBuf>,
    pub threads: usize,
    /// Memory of the engine in bytes.
    pub pool: Option<u64>,
    pub work: Work,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Work {
    /// Run the statement to its end, and forget the rows of its result.
    Run,
    /// Hash the rows of its result.
    Hash,
    /// Drop its stream after so many milliseconds, and wait until everything has ended.
    Drop(u64),
}

/// What a job says of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Said {
    /// From planning to the end; of a dropped stream, from the drop to the end of all work.
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub records: u64,
    pub loss: Option<f64>,
    pub classes: u64,
    pub blocks: u64,
    pub suppressed: u64,
    pub spills: usize,
    pub spilled_bytes: usize,
    /// Forming classes, where the plan shows it.
    pub forming: Option<Phase>,
    /// A hash of all rows, whatever their order.
    pub rows: u64,
    /// Of a dropped stream: temporary files and bytes of memory that are left.
    pub left: (usize, usize),
    /// Of a dropped stream: whether it had ended before.
    pub ended_before: bool,
}

pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).map_err(|e| exec_datafusion_err!("{e}"))?;
    for output in job.outputs.iter().filter(|output| output.exists()) {
        fs::remove_dir_all(output)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(job.threads)
        .enable_all()
        .build()?;
    let said = match job.work {
        Work::Run => runtime.block_on(complete(&job))?,
        Work::Hash => runtime.block_on(hash(&job))?,
        Work::Drop(after) => {
            let pool = pool(&job);
            let after = Duration::from_millis(after);
            let abandoned = runtime.block_on(abandon(&job, Arc::clone(&pool), after))?;
            // Waits for the work on blocks.
            drop(runtime);
            Said {
                seconds: abandoned.map_or(0.0, |at| at.elapsed().as_secs_f64()),
                left: (files::below(&temporary()), pool.reserved()),
                ended_before: abandoned.is_none(),
                ..Said::default()
            }
        }
    };
    let said = serde_json::to_string(&said).map_err(|e| exec_datafusion_err!("{e}"))?;
    println!("{said}");
    Ok(())
}

async fn complete(job: &Job) -> Result<Said> {
    let ctx = session(job, pool(job))?;
    let begin = Instant::now();
    let plan = ctx.sql(&job.sql).await?.create_physical_plan().await?;
    let mut rows = execute_stream(Arc::clone(&plan), ctx.task_ctx())?;
    while let Some(batch) = rows.next().await {
        batch?;
    }
    let summary = Summary::of(&plan);
    Ok(Said {
        seconds: begin.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds(),
        loss: summary.map(|s| s.information_loss),
        classes: summary.map_or(0, |s| s.classes),
        blocks: summary.map_or(0, |s| s.blocks),
        suppressed: summary.map_or(0, |s| s.suppressed),
        spills: sum(&plan, MetricsSet::spill_count),
        spilled_bytes: sum(&plan, MetricsSet::spilled_bytes),
        forming: forming(&plan),
        ..Said::default()
    })
}

async fn hash(job: &Job) -> Result<Said> {
    let ctx = session(job, pool(job))?;
    let plan = ctx.sql(&job.sql).await?.create_physical_plan().await?;
    let mut stream = execute_stream(plan, ctx.task_ctx())?;
    let fields = stream.schema().fields().clone();
    let fields = fields.iter().map(|f| SortField::new(f.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let mut said = Said::default();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        said.records += batch.num_rows() as u64;
        for row in &converter.convert_columns(batch.columns())? {
            let hash = blake3::hash(row.data());
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&hash.as_bytes()[..8]);
            said.rows = said.rows.wrapping_add(u64::from_be_bytes(bytes));
        }
    }
    Ok(said)
}

/// Drops the stream after some time; says when, unless it had ended before.
async fn abandon(job: &Job, pool: Arc<dyn MemoryPool>, after: Duration) -> Result<Option<Instant>> {
    let ctx = session(job, pool)?;
    let work = async {
        let plan = ctx.sql(&job.sql).await?.create_physical_plan().await?;
        collect(plan, ctx.task_ctx()).await
    };
    match tokio::time::timeout(after, work).await {
        Ok(ended) => ended.map(|_| None),
        Err(_) => Ok(Some(Instant::now())),
    }
}

fn pool(job: &Job) -> Arc<dyn MemoryPool> {
    match job.pool {
        Some(bytes) => {
            let pool = FairSpillPool::new(bytes as usize);
            let most = NonZeroUsize::MIN.saturating_add(4);
            Arc::new(TrackConsumersPool::new(pool, most))
        }
        None => Arc::new(UnboundedMemoryPool::default()),
    }
}

fn session(job: &Job, pool: Arc<dyn MemoryPool>) -> Result<SessionContext> {
    let mut config = SessionConfig::from_env()?.with_target_partitions(job.threads);
    let mut runtime = RuntimeEnvBuilder::new().with_temp_file_path(temporary());
    if let Some(bytes) = job.pool {
        (config, runtime) = limit_memory(config, runtime, bytes as usize)?;
    }
    let runtime = runtime.with_memory_pool(pool);
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc()?).enable_url_table();
    register_all(&ctx)?;
    Ok(ctx)
}

fn sum(plan: &Arc<dyn ExecutionPlan>, value: fn(&MetricsSet) -> Option<usize>) -> usize {
    let own = plan.metrics().and_then(|m| value(&m)).unwrap_or_default();
    let children = plan.children().into_iter();
    own + children.map(|child| sum(child, value)).sum::<usize>()
}

/// User and system time of this process so far.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|t| t.parse::<u64>().ok()).sum();
    // A hundred ticks per second on every Linux of today.
    ticks as f64 / 100.0
}
