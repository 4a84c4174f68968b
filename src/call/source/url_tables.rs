//! Paths and URLs in the place of tables: `SELECT … FROM 'release/'`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::{Result, plan_datafusion_err};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;

use super::files;

/// Reads files as functions of this crate read their inputs, also where the name of a file stands for a table.
///
/// Use it in place of [`SessionContext::enable_url_table`]: releases are read through their manifests, and the types of
/// a CSV file's columns fit all of their values.
pub fn enable_url_table(context: SessionContext) -> SessionContext {
    let factory = Arc::new(UrlTables::default());
    let known = Arc::clone(context.state_ref().read().catalog_list());
    let catalogs = DynamicFileCatalog::new(known, Arc::clone(&factory) as Arc<dyn UrlTableFactory>);
    let id = context.session_id();
    let builder = context.into_state_builder().with_session_id(id);
    let state = builder.with_catalog_list(Arc::new(catalogs)).build();
    let context = SessionContext::from(state);
    factory
        .engine
        .session_store()
        .with_state(context.state_weak_ref());
    context
}

/// Makes tables of paths.
#[derive(Debug, Default)]
struct UrlTables {
    /// The engine's own, which knows the session.
    engine: DynamicListTableFactory,
}

#[async_trait]
impl UrlTableFactory for UrlTables {
    async fn try_new(&self, path: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let session = self.engine.session_store().get_session().upgrade();
        let state = session.and_then(|session| {
            let session = session.read();
            session.as_any().downcast_ref::<SessionState>().cloned()
        });
        let state = state.ok_or_else(|| plan_datafusion_err!("the session has ended"))?;
        files::if_any(&state, path).await
    }
}
