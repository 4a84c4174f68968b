//! Reading back what was written, and verifying it from those bytes.

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sha2::{Digest, Sha256};
use std::sync::Arc;

use super::manifest::FileEntry;
use super::place::Place;
use super::tables::ReleaseTable;
use super::writer::{Written, hex};
use crate::check::FingerprintTally;
use crate::measure::class_bytes;

/// Reading a file needs its bytes, and a row group as columns, codes and classes.
pub(super) const WORK_FACTOR: usize = 4;

/// Reads all files of a table again, compares them with what was written, and verifies every row group.
///
/// A row group holds whole classes only, and a class is in one row group only, so to verify each of them is to verify
/// the table; that no individual is in two of them is left to the audit, which sorts.
pub(super) async fn check(
    place: &Place,
    table: &Arc<ReleaseTable>,
    files: &[Written],
    pool: &Arc<dyn MemoryPool>,
) -> Result<Vec<FileEntry>> {
    let reservation = MemoryConsumer::new("publish").register(pool);
    let mut seen = Seen::default();
    let mut entries = vec![];
    for file in files {
        // Reserved before it is read. What was seen so far stays.
        reservation.try_resize(size_of_file(file)? + seen.tally.memory())?;
        let bytes = place.read(&place.path_of(&file.name)).await?;
        let bytes = bytes.ok_or_else(|| differs(file, "is gone"))?;
        let (file, table) = (file.clone(), Arc::clone(table));
        let mut before = std::mem::take(&mut seen);
        let pooled = reservation.new_empty();
        let task = SpawnedTask::spawn_blocking(move || {
            same_bytes(&file, &bytes)?;
            let grow = |bytes: usize| pooled.try_resize(bytes);
            let row_groups = verify(&file, &bytes, &table, &mut before, &grow)?;
            let entry = FileEntry {
                table: table.name.clone(),
                path: file.name,
                records: file.records,
                row_groups,
                bytes: file.bytes,
                sha256: file.sha256,
            };
            Ok::<_, DataFusionError>((entry, before))
        });
        let (entry, now) = task
            .join()
            .await
            .map_err(|_| exec_datafusion_err!("publish: the verification was interrupted"))??;
        entries.push(entry);
        seen = now;
    }
    if let Some(verifier) = &table.verifier {
        verifier.verify_whole(&seen.tally)?;
    }
    Ok(entries)
}

fn size_of_file(file: &Written) -> Result<usize> {
    usize::try_from(file.bytes).map_err(|_| differs(file, "is too large to be read again"))
}

fn same_bytes(file: &Written, bytes: &Bytes) -> Result<()> {
    if bytes.len() as u64 != file.bytes {
        return Err(differs(file, "has another size than what was written"));
    }
    if hex(&Sha256::digest(bytes)) != file.sha256 {
        return Err(differs(file, "holds other bytes than what was written"));
    }
    Ok(())
}

/// What was seen of a table in the row groups so far.
#[derive(Debug, Default)]
struct Seen {
    /// The key of the last class.
    last: Option<Vec<u8>>,
    tally: FingerprintTally,
}

/// Verifies the row groups of a file; returns their number.
fn verify(
    file: &Written,
    bytes: &Bytes,
    table: &ReleaseTable,
    seen: &mut Seen,
    grow: &dyn Fn(usize) -> Result<()>,
) -> Result<u64> {
    // What the reader says may show values of the data.
    let broken = || internal_datafusion_err!("publish: {} cannot be read again", file.name);
    let open = || ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(|_| broken());
    let builder = open()?;
    if !same_types(builder.schema(), &table.schema) {
        return Err(differs(file, "has other columns than what was written"));
    }
    let groups: Vec<usize> = builder
        .metadata()
        .row_groups()
        .iter()
        .map(|group| usize::try_from(group.total_byte_size()).unwrap_or(usize::MAX / 8))
        .collect();
    // The caller has reserved what was seen before.
    let known = seen.tally.memory();
    let mut records = 0;
    for (group, size) in groups.iter().enumerate() {
        grow(WORK_FACTOR * size + (seen.tally.memory() - known))?;
        let reader = open()?.with_row_groups(vec![group]).build();
        let reader = reader.map_err(|_| broken())?;
        let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
        let rows = concat_batches(&table.schema, &batches)?;
        records += rows.num_rows() as u64;
        seen.last = in_order(file, table, &rows, seen.last.take())?;
        if let Some(verifier) = &table.verifier {
            verifier.verify(&rows, &mut seen.tally)?;
        }
    }
    grow(0)?;
    if records != file.records {
        return Err(differs(
            file,
            "holds another number of records than what was written",
        ));
    }
    Ok(groups.len() as u64)
}

/// Checks that classes stand together, that none of them began in an earlier row group, and that within a class rows
/// stand in the order of what they show.
fn in_order(
    file: &Written,
    table: &ReleaseTable,
    rows: &RecordBatch,
    last: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let columns: Vec<ArrayRef> = table
        .class
        .iter()
        .filter_map(|name| rows.column_by_name(name).cloned())
        .collect();
    let keys = class_bytes(&columns)?;
    if keys.is_empty() {
        return Ok(last);
    }
    let fresh = last.as_deref().is_none_or(|last| last < keys.value(0));
    let sorted = (1..keys.len()).all(|row| keys.value(row - 1) <= keys.value(row));
    if !fresh || !sorted {
        return Err(differs(file, "splits a class"));
    }
    let last = keys.value(keys.len() - 1).to_vec();
    let mut columns: Vec<ArrayRef> = vec![Arc::new(keys)];
    columns.extend(table.order().map(|column| rows.column(column).clone()));
    let fields = columns
        .iter()
        .map(|c| SortField::new(c.data_type().clone()));
    let shown = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
    if (1..shown.num_rows()).any(|row| shown.row(row - 1) > shown.row(row)) {
        return Err(differs(file, "has rows that are out of order"));
    }
    Ok(Some(last))
}

fn same_types(read: &SchemaRef, written: &Schema) -> bool {
    read.fields().len() == written.fields().len()
        && read
            .fields()
            .iter()
            .zip(written.fields())
            .all(|(a, b)| a.name() == b.name() && a.data_type().equals_datatype(b.data_type()))
}

fn differs(file: &Written, how: &str) -> DataFusionError {
    exec_datafusion_err!("publish: nothing is published, because {} {how}", file.name)
}
