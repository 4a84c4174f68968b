//! [`PseudonymizeExec`]: where ids end.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryBuilder, RecordBatch, UInt64Builder,
};
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use super::operator::{only_child, properties, show};
use crate::coding::{canonical, without_nan};
use crate::error;
use crate::spec::{NullId, Spec, tagged_schema};

/// Replaces each id by two keyed hashes, a random order and a pseudonym, right after the input.
///
/// Below this operator the input is untouched; above it, in shuffles, sorts, spill files and results, no id is left.
/// It also gives every value one bit pattern (one NaN, no negative zero) and treats records without an id as the spec says.
///
/// ```text
/// id    age  disease            __order  __pseudonym  age  disease
/// Mike   36  Heart        →     0x8f…    0x21…         36  Heart
/// Lily   37  Cancer             0x03…    0xc0…         37  Cancer
/// ```
#[derive(Debug)]
pub struct PseudonymizeExec {
    spec: Arc<Spec>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl PseudonymizeExec {
    /// Over an input whose first column is the id.
    pub fn try_new(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let properties = properties(
            tagged_schema(&input.schema()),
            input.output_partitioning().partition_count(),
            EmissionType::Incremental,
        );
        Ok(Self {
            spec,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }
}

impl DisplayAs for PseudonymizeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.spec.id().unwrap_or_default().to_owned();
        show(t, f, "PseudonymizeExec", &[("id", id)])
    }
}

impl ExecutionPlan for PseudonymizeExec {
    fn name(&self) -> &str {
        "PseudonymizeExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
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
        Ok(Arc::new(Self::try_new(
            Arc::clone(&self.spec),
            only_child(children)?,
        )?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let mut tagger = Tagger::try_new(
            Arc::clone(&self.spec),
            self.input.schema().field(0).data_type(),
            self.schema(),
            MetricBuilder::new(&self.metrics).counter("null_ids", partition),
        )?;
        let stream = async_stream::try_stream! {
            while let Some(batch) = input.next().await {
                let timer = baseline.elapsed_compute().timer();
                let batch = batch.map_err(|e| error::input(tagger.spec.function(), e))?;
                let tagged = tagger.tag(&batch)?;
                timer.done();
                if tagged.num_rows() > 0 {
                    yield tagged.record_output(&baseline);
                }
            }
            tagger.finish()?;
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Tags the batches of one partition.
struct Tagger {
    spec: Arc<Spec>,
    tagged: SchemaRef,
    converter: RowConverter,
    null_ids: Count,
}

impl Tagger {
    fn try_new(spec: Arc<Spec>, id: &DataType, tagged: SchemaRef, null_ids: Count) -> Result<Self> {
        Ok(Self {
            spec,
            tagged,
            converter: RowConverter::new(vec![SortField::new(id.clone())])?,
            null_ids,
        })
    }

    fn tag(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let without_id = batch.column(0).null_count();
        self.null_ids.add(without_id);
        let known;
        let batch = if without_id > 0 {
            let mask: BooleanArray = is_not_null(batch.column(0))?;
            known = filter_record_batch(batch, &mask)?;
            &known
        } else {
            batch
        };

        let key = self.spec.key()?;
        let ids = self
            .converter
            .convert_columns(&[canonical(batch.column(0))])?;
        let mut orders = UInt64Builder::with_capacity(ids.num_rows());
        let mut pseudonyms = FixedSizeBinaryBuilder::with_capacity(ids.num_rows(), 16);
        // Records of one individual often stand together: one hash serves them all.
        let mut last = None;
        for i in 0..ids.num_rows() {
            let id = ids.row(i);
            let tag = match last {
                Some((same, tag)) if same == id => tag,
                _ => key.tag(id.data()),
            };
            last = Some((id, tag));
            orders.append_value(tag.order);
            pseudonyms.append_value(tag.pseudonym)?;
        }
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(orders.finish()), Arc::new(pseudonyms.finish())];
        for (i, column) in batch.columns()[1..].iter().enumerate() {
            let measured = self
                .spec
                .qi()
                .get(i)
                .is_some_and(|name| !self.spec.is_categorical(name));
            let column = canonical(column);
            columns.push(if measured {
                without_nan(&column)?
            } else {
                column
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.tagged), columns)?)
    }

    fn finish(&self) -> Result<()> {
        let nulls = self.null_ids.value() as u64;
        if nulls == 0 || self.spec.null_id == NullId::Drop {
            return Ok(());
        }
        let id = self.spec.id().unwrap_or_default();
        Err(error::data(
            self.spec.function(),
            format!(
                "id column '{id}' is NULL in at least {}, so individuals cannot be told apart; \
                 give them an id, or leave them out with null_id => 'drop'",
                error::count(nulls, "record"),
            ),
        ))
    }
}
