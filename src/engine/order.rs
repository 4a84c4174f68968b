//! [`OrderExec`]: rows by block and random order.

mod scatter;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::sort_expr::LexOrdering;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;
use parking_lot::Mutex;

use super::operator::{ascending_by, only_child, show};
use scatter::{Scatter, SortKey, chunks};

/// Sorts each partition of its input by a random order, or by block and random order.
///
/// Stands in for the engine's sort ([`OrderInMemory`](crate::OrderInMemory)), and leaves the rows to it where memory does not
/// suffice: those that it holds first, then the rest of the input. Only what fits into memory is sorted here, faster, because
/// the keys are random.
#[derive(Debug)]
pub struct OrderExec {
    input: Arc<dyn ExecutionPlan>,
    by: SortKey,
    /// What it stands in for, where it had to be called.
    sorts: Arc<Mutex<Vec<Arc<SortExec>>>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl OrderExec {
    /// By the columns at these positions: a block of 32 bits, if any, and an order of 64 bits.
    pub(crate) fn try_new(input: Arc<dyn ExecutionPlan>, by: &[usize]) -> Result<Self> {
        let Some(by) = SortKey::try_new(&input.schema(), by) else {
            return internal_err!("OrderExec needs a random order");
        };
        let sort = sort(Arc::clone(&input), by)?;
        Ok(Self {
            input,
            by,
            sorts: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::clone(sort.properties()),
        })
    }

    /// What does the same as a sort of the engine, if that can be.
    pub(crate) fn instead_of(sort: &SortExec) -> Option<Self> {
        let input = sort.input();
        let each =
            sort.preserve_partitioning() || input.output_partitioning().partition_count() == 1;
        let columns = sort.expr().iter().map(|by| {
            let column = by.expr.downcast_ref::<Column>().map(Column::index);
            column.filter(|_| !by.options.descending)
        });
        let columns: Option<Vec<usize>> = columns.collect();
        let fits = each && sort.fetch().is_none();
        Self::try_new(Arc::clone(input), &columns.filter(|_| fits)?).ok()
    }

    /// Positions of the columns that it sorts by.
    pub(crate) fn by(&self) -> Vec<usize> {
        self.by.columns()
    }
}

/// The engine's sort of each partition.
fn sort(input: Arc<dyn ExecutionPlan>, by: SortKey) -> Result<SortExec> {
    let by = LexOrdering::new(ascending_by(&input, &by.columns()));
    let by = by.ok_or_else(|| internal_datafusion_err!("a sort needs columns"))?;
    Ok(SortExec::new(by, input).with_preserve_partitioning(true))
}

impl DisplayAs for OrderExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let names = self
            .by()
            .into_iter()
            .map(|i| schema.field(i).name().clone());
        let names: Vec<_> = names.collect();
        show(
            t,
            f,
            "OrderExec",
            &[("by", format!("[{}]", names.join(", ")))],
        )
    }
}

impl ExecutionPlan for OrderExec {
    fn name(&self) -> &str {
        "OrderExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::try_new(only_child(children)?, &self.by())?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, Arc::clone(&context))?;
        let (by, schema) = (self.by, self.schema());
        let sorts = Arc::clone(&self.sorts);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let batch_size = context.session_config().batch_size();
        // Two of these may stand above each other, and a quarter of the memory is left to operators that cannot spill.
        let most = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => {
                bytes / 8 * 3 / self.properties.partitioning.partition_count()
            }
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        let stream = async_stream::try_stream! {
            let Some(first) = input.next().await else {
                return;
            };
            // Like the engine's sort, it can do with less. Nobody shares memory with it before there are rows.
            let memory = MemoryConsumer::new(format!("OrderExec[{partition}]"));
            let memory = memory.with_can_spill(true).register(context.memory_pool());
            let mut held = Held { memory, most, batches: vec![], bytes: 0 };
            if let Some(more) = held.fill(first?, &mut input).await? {
                let rows = held.then(more, input);
                let rows = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
                let mut sorted = sorted_by_engine(rows, by, &sorts, context)?;
                while let Some(batch) = sorted.next().await {
                    yield batch?.record_output(&baseline);
                    tokio::task::yield_now().await;
                }
                return;
            }
            drop(input);
            let mut scatter = Scatter::new(schema, by, &held.batches, held.bytes);
            for chunk in chunks(std::mem::take(&mut held.batches)) {
                let timer = baseline.elapsed_compute().timer();
                scatter.add(&chunk)?;
                timer.done();
                tokio::task::yield_now().await;
            }
            scatter.put_together()?;
            let row_bytes = held.bytes.div_ceil(scatter.rows().max(1));
            for bucket in 0..scatter.buckets() {
                for part in scatter.take(bucket, batch_size) {
                    let mut part = part?;
                    loop {
                        let timer = baseline.elapsed_compute().timer();
                        let batch = part.next(batch_size)?;
                        timer.done();
                        let Some(batch) = batch else {
                            break;
                        };
                        yield batch.record_output(&baseline);
                        // Others on this thread wait for what was made of it.
                        tokio::task::yield_now().await;
                    }
                }
                held.shrink_to(row_bytes * scatter.rows());
            }
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut metrics = self.metrics.clone_inner();
        for sort in self.sorts.lock().iter() {
            let spilled = sort.metrics().unwrap_or_default();
            // Rows and time are counted here.
            let spilled = spilled
                .iter()
                .filter(|metric| metric.value().name().starts_with("spill"));
            spilled.for_each(|metric| metrics.push(Arc::clone(metric)));
        }
        Some(metrics)
    }
}

/// Rows that have been read.
struct Held {
    /// For the rows, and for the work of sorting them.
    memory: MemoryReservation,
    /// More is not taken.
    most: usize,
    batches: Vec<RecordBatch>,
    /// Of the rows.
    bytes: usize,
}

impl Held {
    /// Reads all rows while there is twice the memory for them: as much is free for others at once if the engine has to sort
    /// them. Otherwise the first that it does not suffice for.
    async fn fill(
        &mut self,
        first: RecordBatch,
        input: &mut SendableRecordBatchStream,
    ) -> Result<Option<RecordBatch>> {
        let mut next = Some(first);
        while let Some(batch) = next {
            let bytes = get_record_batch_memory_size(&batch);
            let enough = self.memory.size() + 2 * bytes > self.most;
            if enough || self.memory.try_grow(2 * bytes).is_err() {
                return Ok(Some(batch));
            }
            self.bytes += bytes;
            self.batches.push(batch);
            next = input.next().await.transpose()?;
        }
        let work = Scatter::work(&self.batches, self.bytes);
        self.memory.shrink(self.bytes - work);
        Ok(None)
    }

    /// When so many bytes of rows are left.
    fn shrink_to(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        self.bytes -= less;
        self.memory.shrink(less);
    }

    /// These rows, others, and then what comes; memory goes with the rows.
    fn then(
        self,
        more: RecordBatch,
        mut rest: SendableRecordBatchStream,
    ) -> impl futures::Stream<Item = Result<RecordBatch>> {
        async_stream::try_stream! {
            let Self { memory, batches, bytes, .. } = self;
            memory.shrink(bytes);
            for batch in batches {
                memory.shrink(get_record_batch_memory_size(&batch));
                yield batch;
            }
            drop(memory);
            yield more;
            while let Some(batch) = rest.next().await {
                yield batch?;
            }
        }
    }
}

/// What the engine's sort makes of rows.
fn sorted_by_engine(
    rows: SendableRecordBatchStream,
    by: SortKey,
    sorts: &Mutex<Vec<Arc<SortExec>>>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = rows.schema();
    let once = Once {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(rows)),
    };
    let input = StreamingTableExec::try_new(schema, vec![Arc::new(once)], None, [], false, None)?;
    let sort = Arc::new(sort(Arc::new(input), by)?);
    sorts.lock().push(Arc::clone(&sort));
    sort.execute(0, context)
}

/// Rows that can be read once.
struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        self.rows.lock().take().unwrap_or_else(|| {
            let twice = futures::stream::iter([internal_err!("rows can be read once")]);
            Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                twice,
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, AsArray, StringArray, UInt32Array, UInt64Array};
    use datafusion::arrow::compute::{concat_batches, take_record_batch};
    use datafusion::arrow::datatypes::UInt64Type;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::physical_plan::collect;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    const ROWS: u64 = 100_000;

    /// An order that is no order of the rows, and a text of each.
    fn input() -> Arc<dyn ExecutionPlan> {
        let orders = (0..ROWS).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let orders: ArrayRef = Arc::new(UInt64Array::from_iter_values(orders));
        let texts = (0..ROWS).map(|i| format!("{i:050}"));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let columns = [("order", orders, false), ("text", texts, false)];
        let all = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let batches = (0..ROWS as usize).step_by(1_000);
        // Batches of their own, not parts of one.
        let batches = batches.map(|at| {
            let rows = UInt32Array::from_iter_values(at as u32..at as u32 + 1_000);
            take_record_batch(&all, &rows).unwrap()
        });
        let batches = batches.collect();
        let source = MemorySourceConfig::try_new_exec(&[batches], all.schema(), None);
        source.unwrap()
    }

    async fn sorted(pool: Arc<dyn MemoryPool>) -> (RecordBatch, usize) {
        let plan = Arc::new(OrderExec::try_new(input(), &[0]).unwrap());
        let config = SessionConfig::new()
            .with_batch_size(1_000)
            .with_sort_spill_reservation_bytes(100_000);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
        let runtime = runtime.build_arc().unwrap();
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        let batches = collect(Arc::clone(&plan) as Arc<dyn ExecutionPlan>, ctx.task_ctx());
        let batches = batches.await.unwrap();
        assert_eq!(pool.reserved(), 0);
        let metrics = plan.metrics().unwrap();
        assert_eq!(metrics.output_rows(), Some(ROWS as usize));
        let spills = metrics.spill_count().unwrap_or_default();
        (concat_batches(&plan.schema(), &batches).unwrap(), spills)
    }

    #[tokio::test]
    async fn the_engine_sorts_what_does_not_fit() {
        let (unlimited, spills) = sorted(Arc::new(UnboundedMemoryPool::default())).await;
        assert_eq!(spills, 0);
        let orders = unlimited.column(0).as_primitive::<UInt64Type>().values();
        assert!(orders.is_sorted());
        // Eight MB of rows.
        let (limited, spills) = sorted(Arc::new(FairSpillPool::new(3 << 20))).await;
        assert!(spills > 0);
        assert_eq!(limited, unlimited);
        // The rows fit, but not the work.
        let (limited, _) = sorted(Arc::new(FairSpillPool::new(9 << 20))).await;
        assert_eq!(limited, unlimited);
    }

    #[test]
    fn it_stands_in_for_sorts_by_numbers_only() {
        let sort = |columns: &[usize]| {
            let by = LexOrdering::new(ascending_by(&input(), columns)).unwrap();
            SortExec::new(by, input())
        };
        assert!(OrderExec::instead_of(&sort(&[0])).is_some());
        assert!(OrderExec::instead_of(&sort(&[1])).is_none());
        assert!(OrderExec::instead_of(&sort(&[0, 1])).is_none());
        assert!(OrderExec::instead_of(&sort(&[0]).with_fetch(Some(3))).is_none());
    }
}
