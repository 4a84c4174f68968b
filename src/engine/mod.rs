//! What extends DataFusion, or repairs it. Nothing here knows what is published.

mod limit;
mod memory;
mod operator;
mod order;
mod partition;
pub(crate) mod threads;

pub use limit::limit_memory;
pub(crate) use memory::{Grown, PartitionMemory, SharedMemory};
pub(crate) use operator::{
    ascending, ascending_by, collect, column, first_only, only_child, others_whole, properties,
    show, sliced_size,
};
pub use order::OrderExec;
pub(crate) use partition::BlockPartitioning;
