//! What a release is made of: refused where it is the target, or a release itself.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::{ViewTable, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use futures::{StreamExt, TryStreamExt};

use super::ledger::Ledger;
use super::manifest::{MANIFEST, Manifest};
use super::paths;
use super::place::{Place, read};
use super::writer::WRITER;
use crate::release::ReleaseTable;

/// Footers that are read at once.
const AT_ONCE: usize = 16;

/// Files of a table below a plan.
struct Source {
    url: ListingTableUrl,
    /// How the names of its files end, and whether they are Parquet.
    ending: String,
    parquet: bool,
}

/// Refuses an input that is a release, that lies in the target, or that the target would become a part of. The same for a
/// ledger, which is no place for a release, either.
pub(super) async fn check(
    state: &SessionState,
    place: &Place,
    ledger: Option<&Ledger>,
    input: &LogicalPlan,
) -> Result<()> {
    let target = paths::real(place.url())?;
    let ledger = ledger.map(|ledger| paths::real_path(ledger.folder()));
    let ledger = ledger.transpose()?;
    if let (Some(target), Some(ledger)) = (&target, &ledger)
        && paths::overlap(target, ledger)
    {
        return Err(plan_datafusion_err!(
            "publish: the target and the ledger lie in each other; name a target elsewhere"
        ));
    }
    for source in sources(input)? {
        let url = &source.url;
        if source.meets(place, target.as_deref())? {
            return Err(plan_datafusion_err!(
                "publish: the target and the input '{url}' lie in each other; name a target elsewhere"
            ));
        }
        if let Some(ledger) = &ledger
            && paths::holds(url, &ledger.join("lock"))?
        {
            return Err(plan_datafusion_err!(
                "publish: the ledger lies in the input '{url}'; name a folder elsewhere"
            ));
        }
        let store = state.runtime_env().object_store(url)?;
        if has_manifest(store.as_ref(), url).await || source.is_ours(state, store.as_ref()).await? {
            return Err(exec_datafusion_err!(
                "publish: the input '{url}' is itself a release, or holds a part of one: its pseudonyms and generalized \
                 values are no people and no facts; name the original table"
            ));
        }
    }
    Ok(())
}

/// The table below a plan that a file at this path of this machine is part of, or would become part of, links followed.
///
/// # Errors
///
/// If a path cannot be resolved.
pub fn table_with(plan: &LogicalPlan, file: &std::path::Path) -> Result<Option<ListingTableUrl>> {
    for source in sources(plan)? {
        if paths::holds(&source.url, file)? {
            return Ok(Some(source.url));
        }
    }
    Ok(None)
}

/// Where the tables below a plan have their files.
fn sources(plan: &LogicalPlan) -> Result<Vec<Source>> {
    let mut sources = vec![];
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
        {
            if let Some(table) = provider.downcast_ref::<ListingTable>() {
                let options = table.options();
                sources.extend(table.table_paths().iter().map(|url| Source {
                    url: url.clone(),
                    ending: options.file_extension.clone(),
                    parquet: options.format.get_ext() == "parquet",
                }));
            } else if let Some(release) = provider.downcast_ref::<ReleaseTable>() {
                sources.push(Source {
                    url: release.place().clone(),
                    ending: String::new(),
                    parquet: false,
                });
            } else if let Some(view) = provider.downcast_ref::<ViewTable>() {
                sources.extend(self::sources(view.logical_plan())?);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(sources)
}

/// Whether there is a manifest of ours beside the files, or above their folder.
async fn has_manifest(store: &dyn ObjectStore, url: &ListingTableUrl) -> bool {
    let parts: Vec<_> = url.prefix().parts().collect();
    for depth in 0..=2.min(parts.len()) {
        let folder: Path = parts[..parts.len() - depth].iter().cloned().collect();
        if let Ok(Some(bytes)) = read(store, &folder.join(MANIFEST)).await
            && Manifest::from_json(&bytes).is_ok()
        {
            return true;
        }
    }
    false
}

impl Source {
    /// Whether it lies in the target, or what is published there would become a part of it.
    fn meets(&self, place: &Place, target: Option<&std::path::Path>) -> Result<bool> {
        let published = "data-0/part-0.parquet";
        let Some(target) = target else {
            let same_store = self.url.object_store() == place.url().object_store();
            let inside = self.url.prefix().prefix_matches(place.url().prefix());
            return Ok(
                same_store && (inside || self.url.contains(&place.path_of(published), false))
            );
        };
        let input = paths::real(&self.url)?;
        let inside = input
            .as_ref()
            .is_some_and(|input| input.starts_with(target));
        let linked = || input.map_or(Ok(false), |input| paths::links_to(&input, target));
        Ok(inside || paths::holds(&self.url, &target.join(published))? || linked()?)
    }

    /// Whether one of the files was written by `publish`, wherever it lies now: their footers say so. The engine has read
    /// them for the schema already, and keeps them.
    async fn is_ours(&self, state: &SessionState, store: &dyn ObjectStore) -> Result<bool> {
        if !self.parquet {
            return Ok(false);
        }
        let files = self.url.list_all_files(state, store, &self.ending).await?;
        let ours = files.map_ok(|file| async move { Ok(written_by_us(state, store, &file).await) });
        let mut ours = ours.try_buffer_unordered(AT_ONCE);
        while let Some(ours) = ours.next().await.transpose()? {
            if ours {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What cannot be read is not ours; whoever reads the table will say what is wrong with it.
async fn written_by_us(state: &SessionState, store: &dyn ObjectStore, file: &ObjectMeta) -> bool {
    let known = state.runtime_env().cache_manager.get_file_metadata_cache();
    let footer = DFParquetMetadata::new(store, file).with_file_metadata_cache(Some(known));
    let footer = footer.fetch_metadata().await;
    footer.is_ok_and(|footer| {
        let writer = footer.file_metadata().created_by();
        writer.is_some_and(|writer| writer.starts_with(WRITER))
    })
}
