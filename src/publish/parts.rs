//! Written rows in the order of a key, a part at a time.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use futures::StreamExt;

use super::measuring::Measuring;
use super::read_back::WORK_FACTOR;
use super::writer::ROW_GROUP_ROWS;
use crate::measure::class_bytes;

/// Hands rows to a verifier that are sorted by their first column, never splitting those with the same value.
///
/// `whole` says that it must see all of them at once.
pub(super) async fn verify_parts<T: Send + 'static>(
    measuring: &Measuring,
    sql: &str,
    whole: bool,
    verify: Arc<dyn Fn(RecordBatch) -> Result<T> + Send + Sync>,
) -> Result<Vec<T>> {
    let reservation = MemoryConsumer::new("publish").register(&measuring.memory());
    let mut rows = measuring.stream(sql).await?;
    let (schema, mut found) = (rows.schema(), vec![]);
    let (mut batches, mut held, mut enough) = (vec![], 0, ROW_GROUP_ROWS);
    loop {
        let next = rows.next().await.transpose()?;
        let ended = next.is_none();
        if let Some(batch) = next {
            reservation.try_grow(WORK_FACTOR * batch.get_array_memory_size())?;
            held += batch.num_rows();
            batches.push(batch);
        }
        if !ended && (whole || held < enough) {
            continue;
        }
        let all = concat_batches(&schema, &batches)?;
        let end = if ended { held } else { last_key(&all)? };
        let part = all.slice(0, end);
        let rest = all.slice(end, held - end);
        held = rest.num_rows();
        // One key may have more rows than a part should have.
        enough = ROW_GROUP_ROWS.max(2 * held);
        reservation.try_resize(WORK_FACTOR * all.get_array_memory_size())?;
        batches = vec![rest];
        if part.num_rows() > 0 {
            let verify = Arc::clone(&verify);
            let task = SpawnedTask::spawn_blocking(move || verify(part));
            let done = task.join().await;
            found.push(done.map_err(|_| {
                exec_datafusion_err!("publish: the verification was interrupted")
            })??);
        }
        if ended {
            return Ok(found);
        }
    }
}

/// Where the rows with the last key begin.
fn last_key(rows: &RecordBatch) -> Result<usize> {
    let key = rows.columns().first();
    let key = key.ok_or_else(|| internal_datafusion_err!("publish: rows have no key"))?;
    let keys = class_bytes(std::slice::from_ref(key))?;
    let last = keys.iter().last().flatten();
    Ok(keys.iter().position(|key| key == last).unwrap_or(0))
}
