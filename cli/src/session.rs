//! The session of `anonymize sql`: that of datafusion-cli, with the functions that anonymize.

use std::env;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryPool, TrackConsumersPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::ExplainFormat;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_cli::catalog::DynamicObjectStoreCatalog;
use datafusion_cli::functions::{
    ListFilesCacheFunc, MetadataCacheFunc, ParquetMetadataFunc, StatisticsCacheFunc,
};
use datafusion_cli::object_storage::StdinCarriesCommands;
use datafusion_cli::object_storage::instrumented::InstrumentedObjectStoreRegistry;
use datafusion_cli::pool_type::PoolType;

use datafusion_anonymize::{MaskErrors, enable_url_table, limit_memory};

use crate::ignored::RefuseIgnored;
use crate::stores::Stores;
use crate::{allocator, temporary};

/// How many of the largest consumers an out-of-memory error names.
const TOP_CONSUMERS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(2);

/// How to run statements.
#[derive(Debug)]
pub struct Limits {
    pub batch_size: Option<usize>,
    pub memory_bytes: Option<usize>,
    pub pool: PoolType,
    pub disk_bytes: Option<u64>,
    /// Whether standard input carries the SQL, so that it cannot carry data.
    pub sql_from_stdin: bool,
    /// Whether errors of SQL without a function of ours are told as the engine tells them.
    pub shows_values: bool,
}

/// A session, and the registry that its printer wants.
pub async fn session(
    limits: &Limits,
) -> Result<(SessionContext, Arc<InstrumentedObjectStoreRegistry>)> {
    let registry = Arc::new(InstrumentedObjectStoreRegistry::new());
    let mut runtime =
        RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(Stores(registry.clone())));
    let mut disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![temporary::folder()?]));
    if let Some(bytes) = limits.disk_bytes {
        disk = disk.with_max_temp_directory_size(bytes);
    }
    runtime = runtime.with_disk_manager_builder(disk);
    let mut config = config(limits)?;
    if let Some(bytes) = limits.memory_bytes {
        allocator::keep_little();
        (config, runtime) = limit_memory(config, runtime, bytes)?;
        let pool: Arc<dyn MemoryPool> = match limits.pool {
            PoolType::Fair => Arc::new(TrackConsumersPool::new(
                FairSpillPool::new(bytes),
                TOP_CONSUMERS,
            )),
            PoolType::Greedy => Arc::new(TrackConsumersPool::new(
                GreedyMemoryPool::new(bytes),
                TOP_CONSUMERS,
            )),
        };
        runtime = runtime.with_memory_pool(pool);
    }

    let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
    let context = enable_url_table(context);
    context.refresh_catalogs().await?;
    context.register_catalog_list(Arc::new(DynamicObjectStoreCatalog::new(
        context.state().catalog_list().clone(),
        context.state_weak_ref(),
    )));

    let caches = || context.runtime_env().cache_manager.clone();
    context.register_udtf("parquet_metadata", Arc::new(ParquetMetadataFunc {}));
    context.register_udtf("metadata_cache", Arc::new(MetadataCacheFunc::new(caches())));
    context.register_udtf(
        "statistics_cache",
        Arc::new(StatisticsCacheFunc::new(caches())),
    );
    context.register_udtf(
        "list_files_cache",
        Arc::new(ListFilesCacheFunc::new(caches())),
    );

    datafusion_anonymize::register_all(&context)?;
    context.register_relation_planner(Arc::new(RefuseIgnored))?;
    Ok((context, registry))
}

/// Settings from the environment (`DATAFUSION_…`), then those of a shell, then the flags.
fn config(limits: &Limits) -> Result<SessionConfig> {
    let mut options = ConfigOptions::from_env()?;
    if env::var_os("DATAFUSION_EXPLAIN_FORMAT").is_none() {
        options.explain.format = ExplainFormat::Tree;
    }
    if env::var_os("DATAFUSION_FORMAT_NULL").is_none() {
        options.format.null = "NULL".into();
    }
    if let Some(batch_size) = limits.batch_size {
        options.execution.batch_size = ConfigNonZeroUsize::try_new(batch_size)?;
    }
    let config = SessionConfig::from(options).with_information_schema(true);
    let config = match limits.shows_values {
        true => config,
        false => config.with_extension(Arc::new(MaskErrors)),
    };
    Ok(if limits.sql_from_stdin {
        config.with_extension(Arc::new(StdinCarriesCommands))
    } else {
        config
    })
}
