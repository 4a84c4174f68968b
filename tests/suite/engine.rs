//! What the other modules share: contexts, tables, results.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::register_all;

use crate::calls::wards;

/// A context with our functions.
pub fn context(config: SessionConfig) -> SessionContext {
    let ctx = SessionContext::new_with_config(config);
    register_all(&ctx).unwrap();
    ctx
}

/// A context with the table `patients` of the paper's running example.
pub async fn with_patients() -> SessionContext {
    with_patients_in(2).await
}

/// The same with so many partitions.
pub async fn with_patients_in(partitions: usize) -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(partitions));
    for statement in include_str!("../../sql/patients.sql").split(';') {
        if !statement.trim().is_empty() {
            ctx.sql(statement).await.unwrap().collect().await.unwrap();
        }
    }
    ctx
}

/// Makes the hierarchy of wards that some calls of all functions use.
pub async fn make_wards(ctx: &SessionContext) {
    rows(ctx, &wards()).await.unwrap();
}

/// Runs a query.
pub async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>> {
    Ok(printed(&ctx.sql(sql).await?.collect().await?))
}

/// Every cell as text.
pub fn printed(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in batches {
        let formats: Vec<_> = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap())
            .collect();
        for i in 0..batch.num_rows() {
            rows.push(formats.iter().map(|f| f.value(i).to_string()).collect());
        }
    }
    rows
}

/// Whether the engine had too little memory.
pub fn is_exhausted(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// How often the operators of a plan spilled.
pub fn spills(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan
        .metrics()
        .and_then(|m| m.spill_count())
        .unwrap_or_default();
    own + plan.children().into_iter().map(spills).sum::<usize>()
}

/// For how many seeds below `seeds` a check says yes; two run at a time.
pub async fn count_of<F>(seeds: u64, check: fn(u64) -> F) -> u64
where
    F: Future<Output = bool> + Send + 'static,
{
    let workers = 2;
    let tasks = (0..workers).map(|worker| {
        tokio::spawn(async move {
            let mut count = 0;
            for seed in (0..seeds).filter(|s| s % workers == worker) {
                count += u64::from(check(seed).await);
            }
            count
        })
    });
    let mut count = 0;
    for task in tasks.collect::<Vec<_>>() {
        count += task.await.unwrap();
    }
    count
}
