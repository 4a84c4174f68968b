//! A table of a release: the files that its manifest names, in its order, and nothing else that lies there.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::datasource::TableType;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingTableUrl, PartitionedFile};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::object_store::path::Path;
use datafusion::object_store::{self, ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use futures::future::try_join_all;
use sha2::{Digest, Sha256};

use super::SPEAKER;
use super::manifest::{FileEntry, MANIFEST, Manifest, TableEntry};
use crate::error;

/// Files that are asked for at once.
const AT_ONCE: usize = 16;

/// A table of a release, to be read through the manifest.
#[derive(Debug, Clone)]
pub struct ReadRelease {
    target: String,
    table: Option<String>,
    verify: bool,
}

impl ReadRelease {
    /// The release in a folder, or at the URL of one.
    pub fn from(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            table: None,
            verify: false,
        }
    }

    /// Names the table; a release with one table needs no name.
    pub fn with_table(mut self, table: Option<String>) -> Self {
        self.table = table;
        self
    }

    /// Compares all bytes with the SHA-256 in the manifest, and not only the sizes of files.
    pub fn with_verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// The table.
    ///
    /// # Errors
    ///
    /// If there is no release, if it has no such table, or if a file is missing or is another one than the manifest says.
    pub async fn open(&self, state: &SessionState) -> Result<Arc<dyn TableProvider>> {
        let place = ListingTableUrl::parse(format!("{}/", self.target.trim_end_matches('/')));
        let place = place.map_err(|e| {
            let reason = e.strip_backtrace();
            refused(format!("'{}' cannot be read: {reason}", self.target))
        })?;
        let Ok(store) = Session::runtime_env(state).object_store(&place) else {
            let store = place.object_store();
            return Err(refused(format!(
                "'{}' cannot be read: the session has no object store for {store}",
                self.target
            )));
        };
        match store.get(&place.prefix().clone().join(MANIFEST)).await {
            Ok(found) => self.opened(state, place, store, found.bytes().await?).await,
            Err(object_store::Error::NotFound { .. }) => Err(refused(format!(
                "there is no release at '{}': it has no {MANIFEST}",
                self.target
            ))),
            Err(error) => Err(error.into()),
        }
    }

    /// The table, if a path or URL is that of a release with one table.
    pub(crate) async fn open_if_any(
        &self,
        state: &SessionState,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let Ok(place) = ListingTableUrl::parse(&self.target) else {
            return Ok(None);
        };
        let file = place
            .prefix()
            .filename()
            .is_some_and(|name| name.contains('.'));
        if place.get_glob().is_some() || (file && !place.is_collection()) {
            return Ok(None);
        }
        let Ok(store) = Session::runtime_env(state).object_store(&place) else {
            return Ok(None);
        };
        let manifest = place.prefix().clone().join(MANIFEST);
        let Ok(found) = store.get(&manifest).await else {
            return Ok(None);
        };
        let bytes = found.bytes().await?;
        // Other programs write files of this name, too.
        if Manifest::from_json(&bytes).is_err()
            && !has_staging(store.as_ref(), place.prefix()).await
        {
            return Ok(None);
        }
        let place = match place.is_collection() {
            true => place,
            false => ListingTableUrl::parse(format!("{}/", self.target))?,
        };
        self.opened(state, place, store, bytes).await.map(Some)
    }

    async fn opened(
        &self,
        state: &SessionState,
        place: ListingTableUrl,
        store: Arc<dyn ObjectStore>,
        manifest: Bytes,
    ) -> Result<Arc<dyn TableProvider>> {
        let manifest = Manifest::from_json(&manifest)?;
        let table = self.table_of(&manifest)?;
        let own = manifest
            .files
            .iter()
            .filter(|file| file.table == table.name);
        let mut named = vec![];
        for file in own {
            let part = file
                .path
                .strip_prefix("data-")
                .and_then(|path| path.strip_prefix(&manifest.release));
            let name = part.and_then(|path| path.strip_prefix('/'));
            let Some(name) = name.filter(|name| is_plain(name) && is_plain(&manifest.release))
            else {
                return Err(exec_datafusion_err!(
                    "{SPEAKER}: {MANIFEST} names a file outside of the release"
                ));
            };
            let folder = format!("data-{}", manifest.release);
            named.push((file, place.prefix().clone().join(folder).join(name)));
        }
        let mut files = vec![];
        for named in named.chunks(AT_ONCE) {
            let checks = named
                .iter()
                .map(|(file, path)| self.checked(store.as_ref(), file, path));
            files.extend(try_join_all(checks.collect::<Vec<_>>()).await?);
        }
        if files.is_empty() {
            // A table without rows has no file that would say its types.
            let columns = table.columns.iter();
            let columns = columns.map(|name| Field::new(name, DataType::Null, true));
            let schema = Schema::new(columns.collect::<Vec<_>>());
            return Ok(Arc::new(EmptyTable::new(Arc::new(schema))));
        }
        let options = state.default_table_options().parquet;
        let format = ParquetFormat::default().with_options(options);
        let schema = format.infer_schema(state, &store, &files).await;
        let schema = schema.map_err(|e| error::input(SPEAKER, e))?;
        if !schema.fields().iter().map(|f| f.name()).eq(&table.columns) {
            return Err(exec_datafusion_err!(
                "{SPEAKER}: the files of table '{}' have other columns than {MANIFEST} says",
                table.name
            ));
        }
        Ok(Arc::new(ReleaseTable {
            place,
            format,
            schema,
            files,
        }))
    }

    fn table_of<'a>(&self, manifest: &'a Manifest) -> Result<&'a TableEntry> {
        let names = || manifest.tables.iter().map(|table| table.name.as_str());
        let listed = || names().collect::<Vec<_>>().join("', '");
        match (&self.table, manifest.tables.as_slice()) {
            (None, [only]) => Ok(only),
            (None, []) => Err(refused("the release has no table".to_owned())),
            (None, [first, ..]) => Err(refused(format!(
                "the release has several tables, '{}'; name one: release('{}', table => '{}')",
                listed(),
                self.target,
                first.name
            ))),
            (Some(name), tables) => {
                tables
                    .iter()
                    .find(|table| table.name == *name)
                    .ok_or_else(|| {
                        let near = error::did_you_mean(name, names());
                        refused(format!(
                            "the release has no table '{name}'{near} (tables: '{}')",
                            listed()
                        ))
                    })
            }
        }
    }

    /// A file of the manifest as it lies in the store.
    async fn checked(
        &self,
        store: &dyn ObjectStore,
        file: &FileEntry,
        path: &Path,
    ) -> Result<ObjectMeta> {
        let wrong = |how: &str| exec_datafusion_err!("{SPEAKER}: {} {how}", file.path);
        let found = match store.head(path).await {
            Err(object_store::Error::NotFound { .. }) => return Err(wrong("is missing")),
            found => found?,
        };
        if found.size != file.bytes {
            return Err(wrong(&format!("has another size than {MANIFEST} says")));
        }
        if self.verify {
            let mut hash = Sha256::new();
            let mut bytes = store.get(path).await?.into_stream();
            while let Some(part) = bytes.next().await.transpose()? {
                hash.update(&part);
            }
            let digits = hash
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>();
            if digits != file.sha256 {
                return Err(wrong(&format!("holds other bytes than {MANIFEST} says")));
            }
        }
        Ok(found)
    }
}

/// Whether files of a release lie in a folder.
async fn has_staging(store: &dyn ObjectStore, folder: &Path) -> bool {
    let listed = store.list_with_delimiter(Some(folder)).await;
    listed.is_ok_and(|listed| {
        let names = listed.common_prefixes.iter().filter_map(Path::filename);
        let digits = names
            .filter_map(|name| name.strip_prefix("data-"))
            .collect::<Vec<_>>();
        digits
            .iter()
            .any(|digits| digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

/// Whether a part of a path leads nowhere else.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain)
}

fn refused(message: String) -> DataFusionError {
    plan_datafusion_err!("{SPEAKER}: {message}")
}

/// A table of a release. What it is read from is known, so that it is no input of another release.
#[derive(Debug)]
pub(crate) struct ReleaseTable {
    place: ListingTableUrl,
    format: ParquetFormat,
    schema: SchemaRef,
    files: Vec<ObjectMeta>,
}

impl ReleaseTable {
    /// Where the release is.
    pub fn place(&self) -> &ListingTableUrl {
        &self.place
    }
}

#[async_trait]
impl TableProvider for ReleaseTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // One group, so that files keep their order where the engine divides them among partitions.
        let files = self.files.iter().cloned().map(PartitionedFile::from);
        let source = self.format.file_source(TableSchema::from(self.schema()));
        let scan = FileScanConfigBuilder::new(self.place.object_store(), source)
            .with_file_group(FileGroup::new(files.collect()))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        self.format.create_physical_plan(state, scan).await
    }
}
