//! Settings for little memory. DataFusion's own are for much of it: a sort merges as many files as it finds memory for and
//! leaves none to the operators beside it, a shuffle can wait for itself, and a writer keeps a million rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionConfig;

const MB: usize = 1 << 20;

/// What a partition needs at least.
const PARTITION: usize = 32 * MB;

/// Sorted files that are merged at once.
const FAN_IN: usize = 8;

/// Lets a session work in so many bytes of memory: a pool that is shared fairly, and settings that suit its size.
///
/// Only settings that have their defaults are changed: the number of partitions, rows in a batch, what a sort keeps for
/// merging and how many files it merges at once, and how many files and rows a writer holds. A pool of another kind can be
/// set on the result.
///
/// ```
/// use datafusion::execution::runtime_env::RuntimeEnvBuilder;
/// use datafusion::prelude::{SessionConfig, SessionContext};
///
/// # fn main() -> datafusion::error::Result<()> {
/// let (config, runtime) = datafusion_anonymize::limit_memory(
///     SessionConfig::new(),
///     RuntimeEnvBuilder::new(),
///     256 << 20,
/// )?;
/// let context = SessionContext::new_with_config_rt(config, runtime.build_arc()?);
/// datafusion_anonymize::register_all(&context)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// None that a user can cause.
pub fn limit_memory(
    mut config: SessionConfig,
    runtime: RuntimeEnvBuilder,
    bytes: usize,
) -> Result<(SessionConfig, RuntimeEnvBuilder)> {
    let default = ConfigOptions::new();
    let options = config.options_mut();
    let (own, usual) = (&mut options.execution, &default.execution);
    if own.target_partitions == usual.target_partitions {
        own.target_partitions = own.target_partitions.min(bytes / PARTITION).max(1);
    }
    let each = bytes / own.target_partitions.max(1);
    if own.batch_size == usual.batch_size {
        let rows = match each / MB {
            0..128 => 2048,
            128..256 => 4096,
            _ => own.batch_size.get(),
        };
        own.batch_size = ConfigNonZeroUsize::try_new(rows)?;
    }
    if own.sort_spill_reservation_bytes == usual.sort_spill_reservation_bytes {
        own.sort_spill_reservation_bytes = (each / 64).clamp(MB / 2, 4 * MB);
    }
    if own.minimum_parallel_output_files == usual.minimum_parallel_output_files && each < 256 * MB {
        own.minimum_parallel_output_files = ConfigNonZeroUsize::try_new(1)?;
    }
    let (own, usual) = (&mut own.parquet, &usual.parquet);
    if own.max_row_group_size == usual.max_row_group_size {
        own.max_row_group_size = match bytes / MB {
            0..256 => 1 << 15,
            256..512 => 1 << 16,
            512..2048 => 1 << 17,
            _ => own.max_row_group_size,
        };
    }
    let runtime = runtime
        .with_memory_pool(Arc::new(FairSpillPool::new(bytes)))
        .with_max_spill_merge_fan_in(FAN_IN);
    Ok((config, runtime))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    fn limited(config: SessionConfig, bytes: usize) -> SessionContext {
        let (config, runtime) = limit_memory(config, RuntimeEnvBuilder::new(), bytes).unwrap();
        SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap())
    }

    #[test]
    fn less_memory_takes_smaller_steps() {
        let steps = |bytes| {
            let config = SessionConfig::new().with_target_partitions(4);
            let state = limited(config, bytes).state();
            let own = &state.config_options().execution;
            (
                own.batch_size.get(),
                own.sort_spill_reservation_bytes,
                own.minimum_parallel_output_files.get(),
                own.parquet.max_row_group_size,
            )
        };
        assert_eq!(steps(64 * MB), (2048, MB / 2, 1, 1 << 15));
        assert_eq!(steps(512 * MB), (4096, 2 * MB, 1, 1 << 17));
        assert_eq!(steps(8192 * MB), (8192, 4 * MB, 4, 1 << 20));
    }

    #[test]
    fn what_was_set_stays() {
        let config = SessionConfig::new()
            .with_batch_size(100)
            .with_target_partitions(ConfigOptions::new().execution.target_partitions + 1)
            .with_sort_spill_reservation_bytes(77);
        let state = limited(config.clone(), 16 * MB).state();
        let (own, given) = (
            &state.config_options().execution,
            &config.options().execution,
        );
        assert_eq!(own.batch_size, given.batch_size);
        assert_eq!(own.target_partitions, given.target_partitions);
        assert_eq!(own.sort_spill_reservation_bytes, 77);
        assert_eq!(
            state.runtime_env().disk_manager.max_spill_merge_fan_in(),
            FAN_IN
        );
    }

    #[test]
    fn little_memory_has_few_partitions() {
        let state = limited(SessionConfig::new(), 16 * MB).state();
        assert_eq!(state.config().target_partitions(), 1);
    }
}
