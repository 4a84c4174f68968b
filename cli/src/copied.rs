//! What `COPY … TO` writes of the rows of our functions: of a statement that fails, nothing stays, and what was there before
//! does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path as File, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectStore, ObjectStoreExt};
use futures::TryStreamExt;

use crate::temporary;

/// The place that a statement writes to.
#[derive(Debug)]
pub struct Copied {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// What was there before.
    before: BTreeSet<Path>,
    /// The folder, if there was none.
    folder: Option<PathBuf>,
    /// The file that the statement replaces, under another name.
    replaced: Option<Replaced>,
}

/// A file of this machine, and a second name of what was in it.
#[derive(Debug)]
struct Replaced {
    file: PathBuf,
    kept: PathBuf,
}

impl Copied {
    /// Remembers what is there, if a plan writes rows of one of our functions to files.
    pub async fn of(state: &SessionState, plan: &LogicalPlan) -> Result<Option<Self>> {
        let LogicalPlan::Copy(copy) = plan else {
            return Ok(None);
        };
        if !ours(&copy.input)? {
            return Ok(None);
        }
        if copy.file_type.get_ext() == "csv" {
            check_flat(copy.input.schema().as_arrow())?;
        }
        let url = ListingTableUrl::parse(&copy.output_url)?;
        let store = state.runtime_env().object_store(&url)?;
        let before = files(store.as_ref(), url.prefix()).await;
        let local = match url.scheme() {
            "file" => url.get_url().to_file_path().ok(),
            _ => None,
        };
        let replaced = local.as_deref().filter(|file| file.is_file());
        Ok(Some(Self {
            store,
            prefix: url.prefix().clone(),
            before,
            replaced: replaced.and_then(Replaced::keep),
            folder: local.filter(|folder| url.is_collection() && !folder.exists()),
        }))
    }

    /// Ends with what the statement ended with; if it failed, what it wrote goes.
    pub async fn end<T>(self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            for file in files(self.store.as_ref(), &self.prefix).await {
                if !self.before.contains(&file)
                    && let Err(left) = self.store.delete(&file).await
                {
                    log::warn!("COPY: '{file}' is left, and is no complete file: {left}");
                }
            }
            if let Some(replaced) = &self.replaced {
                replaced.restore();
            }
            // It goes if nobody else has put something into it.
            if let Some(folder) = &self.folder {
                let _ = fs::remove_dir(folder);
            }
        }
        if let Some(replaced) = &self.replaced {
            let _ = fs::remove_file(&replaced.kept);
        }
        done
    }
}

impl Replaced {
    /// Gives a file a second name, so that it stays when another one gets its first; none where that cannot be done.
    fn keep(file: &File) -> Option<Self> {
        let name = temporary::file_in(file.parent()?).ok()?;
        let kept = name.path().to_owned();
        drop(name);
        let kept = fs::hard_link(file, &kept).is_ok().then_some(kept)?;
        let file = file.to_owned();
        Some(Self { file, kept })
    }

    fn restore(&self) {
        if let Err(error) = fs::rename(&self.kept, &self.file) {
            let file = self.file.display();
            log::warn!("COPY: '{file}' was replaced, and is no complete file: {error}");
        }
    }
}

/// What lies at a place; nothing if it cannot be told.
async fn files(store: &dyn ObjectStore, prefix: &Path) -> BTreeSet<Path> {
    let listed = store.list(Some(prefix)).map_ok(|file| file.location);
    let mut files: BTreeSet<Path> = listed.try_collect().await.unwrap_or_default();
    if store.head(prefix).await.is_ok() {
        files.insert(prefix.clone());
    }
    files
}

/// Whether a plan has one of our functions: nobody else adds nodes to this session.
pub fn ours(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Extension(_))))
}

/// Refuses intervals and sets, for which CSV has no form.
pub fn check_flat(schema: &Schema) -> Result<()> {
    let nested = schema.fields().iter().find(|f| f.data_type().is_nested());
    match nested {
        None => Ok(()),
        Some(field) => plan_err!(
            "query: column '{}' has intervals or sets, and CSV has no form for them; write notation => 'text' in the call",
            field.name()
        ),
    }
}
