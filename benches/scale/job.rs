//! One job, in a process of its own: from Parquet to Parquet.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{Summary, register_all};
use futures::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// What to write.
    pub sql: String,
    /// Where to.
    pub output: PathBuf,
    pub threads: usize,
    /// Memory of the engine in bytes.
    pub pool: Option<u64>,
    /// Whether to read the output again and hash its rows, instead of writing it.
    pub hash: bool,
}

/// What a job says of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Said {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub records: u64,
    pub loss: Option<f64>,
    pub classes: u64,
    pub blocks: u64,
    pub suppressed: u64,
    pub spills: usize,
    pub spilled_bytes: usize,
    /// A hash of all rows, whatever their order.
    pub rows: u64,
}

pub fn run(job: &str) -> Result<()> {
    let job: Job = serde_json::from_str(job).map_err(|e| exec_datafusion_err!("{e}"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(job.threads)
        .enable_all()
        .build()?;
    let said = runtime.block_on(async {
        if job.hash {
            hash(&job).await
        } else {
            write(&job).await
        }
    })?;
    let said = serde_json::to_string(&said).map_err(|e| exec_datafusion_err!("{e}"))?;
    println!("{said}");
    Ok(())
}

async fn write(job: &Job) -> Result<Said> {
    let ctx = session(job)?;
    if job.output.exists() {
        fs::remove_dir_all(&job.output)?;
    }
    let copy = format!(
        "COPY ({}) TO '{}/' STORED AS PARQUET",
        job.sql,
        job.output.display()
    );
    let begin = Instant::now();
    let plan = ctx.sql(&copy).await?.create_physical_plan().await?;
    collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    let summary = Summary::of(&plan);
    Ok(Said {
        seconds: begin.elapsed().as_secs_f64(),
        cpu_seconds: cpu_seconds(),
        records: 0,
        loss: summary.map(|s| s.information_loss),
        classes: summary.map_or(0, |s| s.classes),
        blocks: summary.map_or(0, |s| s.blocks),
        suppressed: summary.map_or(0, |s| s.suppressed),
        spills: sum(&plan, |m| m.spill_count()),
        spilled_bytes: sum(&plan, |m| m.spilled_bytes()),
        rows: 0,
    })
}

fn session(job: &Job) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_target_partitions(job.threads);
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = job.pool {
        let pool = FairSpillPool::new(bytes as usize);
        let most = std::num::NonZeroUsize::MIN.saturating_add(4);
        runtime = runtime.with_memory_pool(Arc::new(TrackConsumersPool::new(pool, most)));
        config = config.with_sort_spill_reservation_bytes(2 << 20);
    }
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc()?).enable_url_table();
    register_all(&ctx)?;
    Ok(ctx)
}

fn sum(
    plan: &Arc<dyn ExecutionPlan>,
    value: fn(&datafusion::physical_plan::metrics::MetricsSet) -> Option<usize>,
) -> usize {
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

async fn hash(job: &Job) -> Result<Said> {
    let ctx = session(job)?;
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
