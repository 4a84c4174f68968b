//! Writing a table of a release: Parquet files whose row groups never split a class.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, AsArray, BinaryArray, RecordBatch};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, UInt32Type};
use datafusion::common::{
    DataFusionError, Result, exec_datafusion_err, internal_datafusion_err, internal_err,
};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::object_store::buffered::BufWriter;
use datafusion::parquet::arrow::AsyncArrowWriter;
use datafusion::parquet::arrow::async_writer::AsyncFileWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::properties::WriterProperties;
use futures::StreamExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use super::place::{Place, random_name, staging_name};
use super::tables::{CLASS, ReleaseTable, TABLE};
use crate::table::coding;

/// A row group ends at the first class that begins after so many rows.
pub(super) const ROW_GROUP_ROWS: usize = 131_072;

/// Rows that are handed to the Parquet writer at once.
const STEP_ROWS: usize = 8192;

/// A file ends with the row group that makes it larger than this.
const FILE_BYTES: usize = 96 * 1024 * 1024;

/// What the footers of files say that wrote them, before its version.
pub(super) const WRITER: &str = "datafusion-anonymize ";

/// A file as it was handed to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// Its name in the place.
    pub name: String,
    pub records: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// Writes tables whose rows follow each other. Two more columns say to which table a row belongs, by its number, and
/// where it may be cut off: never between two rows with the same value. A row group ends at the first place for a cut
/// after `group` rows.
///
/// Rows reach the writer in steps of the same size, however they come, so that the same rows give the same bytes.
pub(super) async fn write(
    place: &Place,
    release: &str,
    tables: &[Arc<ReleaseTable>],
    mut rows: SendableRecordBatchStream,
    group: usize,
) -> Result<Vec<Vec<Written>>> {
    let mut written = vec![];
    let mut rest: Option<RecordBatch> = None;
    for (number, table) in (0..).zip(tables) {
        let mut steps = BatchCoalescer::new(rows.schema(), STEP_ROWS);
        let mut files = Files {
            place,
            release,
            group,
            table,
            open: None,
            last: None,
            written: vec![],
        };
        loop {
            let batch = match rest.take() {
                Some(batch) => Some(batch),
                None => rows.next().await.transpose()?,
            };
            let Some(batch) = batch else { break };
            let own = rows_of(&batch, number);
            let others = batch.num_rows() - own;
            rest = (others > 0).then(|| batch.slice(own, others));
            steps.push_batch(batch.slice(0, own))?;
            while let Some(step) = steps.next_completed_batch() {
                files.push(&step).await?;
            }
            if rest.is_some() {
                break;
            }
        }
        steps.finish_buffered_batch()?;
        while let Some(step) = steps.next_completed_batch() {
            files.push(&step).await?;
        }
        written.push(files.finish().await?);
    }
    match rest {
        None => Ok(written),
        Some(_) => internal_err!("publish: a row belongs to no table"),
    }
}

/// How many rows from the first on belong to a table.
fn rows_of(batch: &RecordBatch, number: u32) -> usize {
    let tables = batch.column_by_name(TABLE);
    let Some(tables) = tables.and_then(|tables| tables.as_primitive_opt::<UInt32Type>()) else {
        return 0;
    };
    let others = (0..tables.len()).find(|row| tables.is_null(*row) || tables.value(*row) != number);
    others.unwrap_or(tables.len())
}

/// The files of a table while they are written.
struct Files<'a> {
    place: &'a Place,
    release: &'a str,
    group: usize,
    table: &'a ReleaseTable,
    open: Option<OpenFile>,
    /// The class of the last row.
    last: Option<Vec<u8>>,
    written: Vec<Written>,
}

impl Files<'_> {
    async fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = &self.table.schema;
        let classes = classes_of(batch)?;
        let mut begin = 0;
        while begin < batch.num_rows() {
            let mut file = match self.open.take() {
                Some(file) => file,
                None => OpenFile::try_new(self.place, self.release, schema)?,
            };
            // Up to the end of the batch, unless the row group is full: then up to the end of the class.
            let end = if file.writer.in_progress_rows() >= self.group {
                class_end(classes, begin, self.last.as_deref())
            } else {
                batch.num_rows().min(begin + self.group)
            };
            if end > begin {
                let part = batch.slice(begin, end - begin);
                let columns = self.table.columns.iter().map(|c| part.column(*c).clone());
                let part = RecordBatch::try_new(Arc::clone(schema), columns.collect())?;
                file.write(&part).await?;
                self.last = Some(classes.value(end - 1).to_vec());
            }
            begin = end;
            let full = file.writer.in_progress_rows() >= self.group;
            let cut =
                begin < batch.num_rows() && Some(classes.value(begin)) != self.last.as_deref();
            if full && cut {
                file.writer.flush().await?;
                if file.writer.bytes_written() >= FILE_BYTES {
                    self.written.push(file.close().await?);
                    continue;
                }
            }
            self.open = Some(file);
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<Vec<Written>> {
        if let Some(file) = self.open.take() {
            self.written.push(file.close().await?);
        }
        Ok(self.written)
    }
}

/// The first row from `begin` on that has not the key `last`.
fn class_end(classes: &BinaryArray, begin: usize, last: Option<&[u8]>) -> usize {
    let Some(last) = last else { return begin };
    (begin..classes.len())
        .find(|row| classes.value(*row) != last)
        .unwrap_or(classes.len())
}

/// The key of each row's class.
fn classes_of(batch: &RecordBatch) -> Result<&BinaryArray> {
    let classes = batch.column_by_name(CLASS);
    let classes = classes.and_then(|classes| classes.as_binary_opt::<i32>());
    classes.ok_or_else(|| internal_datafusion_err!("publish: rows have no class"))
}

/// The same names and types, and nothing else of what a schema can carry.
pub(super) fn fresh<'a>(fields: impl Iterator<Item = &'a Arc<Field>>) -> SchemaRef {
    Arc::new(Schema::new(fields.map(bare).collect::<Vec<_>>()))
}

/// Columns of other nested types have no role, and what is published is built from intervals and lists.
fn bare(field: &Arc<Field>) -> Field {
    let inner = |fields: &Fields| fields.iter().map(bare).collect::<Vec<_>>().into();
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(inner(fields)),
        DataType::List(item) => DataType::List(Arc::new(bare(item))),
        other => other.clone(),
    };
    Field::new(field.name(), data_type, true)
}

struct OpenFile {
    name: String,
    records: u64,
    writer: AsyncArrowWriter<Upload>,
}

impl OpenFile {
    fn try_new(place: &Place, release: &str, schema: &SchemaRef) -> Result<Self> {
        let name = format!("{}/part-{}.parquet", staging_name(release), random_name()?);
        let properties = WriterProperties::builder()
            .set_created_by(WRITER.to_owned() + env!("CARGO_PKG_VERSION"))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            // Row groups end where we say.
            .set_max_row_group_row_count(None)
            .set_max_row_group_bytes(None)
            .build();
        let upload = Upload {
            inner: BufWriter::new(Arc::clone(place.store()), place.path_of(&name)),
            sha256: Sha256::new(),
            bytes: 0,
        };
        let writer = AsyncArrowWriter::try_new(upload, Arc::clone(schema), Some(properties))?;
        Ok(Self {
            name,
            records: 0,
            writer,
        })
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.records += batch.num_rows() as u64;
        Ok(self.writer.write(batch).await?)
    }

    async fn close(mut self) -> Result<Written> {
        self.writer
            .finish()
            .await
            .map_err(|e| failed(&self.name, &e))?;
        let upload = self.writer.into_inner();
        Ok(Written {
            name: self.name,
            records: self.records,
            bytes: upload.bytes,
            sha256: hex(&upload.sha256.finalize()),
        })
    }
}

fn failed(name: &str, error: &ParquetError) -> DataFusionError {
    exec_datafusion_err!("publish: cannot write {name}: {error}")
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    coding::hex(bytes, &mut vec![]).to_owned()
}

/// Counts and hashes what goes to the store, so that it can be compared with what came there.
struct Upload {
    inner: BufWriter,
    sha256: Sha256,
    bytes: u64,
}

impl AsyncFileWriter for Upload {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, ParquetResult<()>> {
        self.sha256.update(&bytes);
        self.bytes += bytes.len() as u64;
        Box::pin(async move { self.inner.put(bytes).await.map_err(external) })
    }

    fn complete(&mut self) -> BoxFuture<'_, ParquetResult<()>> {
        Box::pin(async move { self.inner.shutdown().await.map_err(external) })
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{ArrayRef, BinaryArray, Int64Array, UInt32Array};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::execution::runtime_env::RuntimeEnv;
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Classes of random sizes in batches of random sizes: no row group ends within a class, and none is needlessly long.
    #[tokio::test]
    async fn row_groups_end_between_classes() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..50 {
            let group = rng.random_range(1..20);
            let mut classes: Vec<i64> = vec![];
            for class in 0..rng.random_range(1..30) {
                let size = rng.random_range(1..15);
                classes.extend(std::iter::repeat_n(class, size));
            }
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().to_str().unwrap();
            let place = Place::find(&RuntimeEnv::default(), target).unwrap();
            let tables = [0, 1].map(|number| {
                Arc::new(ReleaseTable {
                    name: format!("table {number}"),
                    schema: fresh([Arc::new(Field::new("value", DataType::Int64, true))].iter()),
                    columns: vec![0],
                    class: vec![],
                    verifier: None,
                })
            });
            let first = rng.random_range(0..=classes.len());
            let stream = stream(&classes, first, &mut rng);
            let written = write(&place, "run", &tables, stream, group).await.unwrap();
            assert_eq!(
                written[0].iter().map(|f| f.records).sum::<u64>(),
                first as u64
            );
            let (files, classes) = match first < classes.len() {
                true => (&written[1], &classes[first..]),
                false => (&written[0], &classes[..first]),
            };
            assert_eq!(files.len(), 1);
            let bytes = place.read(&place.path_of(&files[0].name)).await.unwrap();
            let bytes = bytes.unwrap();
            assert_eq!(hex(&Sha256::digest(&bytes)), files[0].sha256);
            let open = || ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).unwrap();
            let (mut read, mut last) = (vec![], None);
            for at in 0..open().metadata().num_row_groups() {
                let reader = open().with_row_groups(vec![at]).build().unwrap();
                let mut rows: Vec<i64> = vec![];
                for batch in reader {
                    let batch = batch.unwrap();
                    assert_eq!(batch.num_columns(), 1);
                    let column = batch.column(0).as_primitive::<Int64Type>();
                    rows.extend(column.values());
                }
                assert!(last.is_none_or(|last| last < rows[0]), "a class is split");
                assert!(
                    rows.len() < group + 15 + group.max(15),
                    "{} rows",
                    rows.len()
                );
                last = rows.last().copied();
                read.extend(rows);
            }
            assert_eq!(read, classes);
        }
    }

    /// So many rows of the first table, then those of the second.
    fn stream(classes: &[i64], first: usize, rng: &mut ChaCha8Rng) -> SendableRecordBatchStream {
        let schema = Arc::new(Schema::new(vec![
            Field::new("value", DataType::Int64, true),
            Field::new("__table", DataType::UInt32, true),
            Field::new("__class", DataType::Binary, true),
        ]));
        let (mut batches, mut rest) = (vec![], classes);
        let mut tables = (0..classes.len()).map(|row| u32::from(row >= first));
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rng.random_range(1..=rest.len()));
            let keys: Vec<[u8; 8]> = now.iter().map(|class| class.to_be_bytes()).collect();
            let keys = BinaryArray::from_iter_values(keys.iter());
            let values = Int64Array::from(now.to_vec());
            let tables = UInt32Array::from_iter_values(tables.by_ref().take(now.len()));
            let columns: Vec<ArrayRef> = vec![Arc::new(values), Arc::new(tables), Arc::new(keys)];
            batches.push(Ok(
                RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
            ));
            rest = later;
        }
        Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter(batches),
        ))
    }

    #[test]
    fn schemas_are_made_anew() {
        let note = || [("note".to_owned(), "secret".to_owned())].into();
        let inner = Field::new("lo", DataType::Int64, false).with_metadata(note());
        let field = Field::new("age", DataType::Struct(vec![inner].into()), false);
        let field = Arc::new(field.with_metadata(note()));
        let made = fresh([&field].into_iter());
        assert!(!format!("{made:?}").contains("secret"));
    }
}
