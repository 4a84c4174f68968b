//! What a release is made of: refused where it is the target, or a release itself.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::datasource::listing::{ListingTable, ListingTableUrl};
use datafusion::datasource::{ViewTable, source_as_provider};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::object_store::path::Path;

use super::manifest::{MANIFEST, Manifest};
use super::place::{Place, read};

/// Refuses an input that is a release, that lies in the target, or that the target would become a part of.
pub(super) async fn check(
    runtime: &Arc<RuntimeEnv>,
    place: &Place,
    input: &LogicalPlan,
) -> Result<()> {
    for url in urls(input)? {
        if url.object_store() == place.url().object_store() {
            let (source, target) = (url.prefix(), place.url().prefix());
            if source.prefix_matches(target) || (url.is_folder() && target.prefix_matches(source)) {
                return Err(plan_datafusion_err!(
                    "publish: the target and the input '{url}' lie in each other; name a target elsewhere"
                ));
            }
        }
        if is_release(runtime, &url).await? {
            return Err(exec_datafusion_err!(
                "publish: the input '{url}' is itself a release: its pseudonyms and generalized values are no people \
                 and no facts; name the original table"
            ));
        }
    }
    Ok(())
}

/// Where the tables below a plan have their files.
fn urls(plan: &LogicalPlan) -> Result<Vec<ListingTableUrl>> {
    let mut urls = vec![];
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
        {
            if let Some(table) = provider.downcast_ref::<ListingTable>() {
                urls.extend(table.table_paths().iter().cloned());
            } else if let Some(view) = provider.downcast_ref::<ViewTable>() {
                urls.extend(self::urls(view.logical_plan())?);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(urls)
}

/// Whether there is a manifest of ours beside the files, or above their folder.
async fn is_release(runtime: &Arc<RuntimeEnv>, url: &ListingTableUrl) -> Result<bool> {
    let store = runtime.object_store(url)?;
    let parts: Vec<_> = url.prefix().parts().collect();
    for depth in 0..=2.min(parts.len()) {
        let folder: Path = parts[..parts.len() - depth].iter().cloned().collect();
        if let Ok(Some(bytes)) = read(store.as_ref(), &folder.join(MANIFEST)).await
            && Manifest::from_json(&bytes).is_ok()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
