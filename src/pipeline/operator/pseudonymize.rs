//! [`PseudonymizeExec`]: where ids end.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    RecordBatch, UInt32Array, UInt64Array, UInt64Builder,
};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::compute::{filter_record_batch, is_not_null};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
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
use hashbrown::HashMap;

use crate::engine::{only_child, properties, show};
use crate::error;
use crate::spec::{NullId, Spec};
use crate::system::{PSEUDONYM_BYTES, given_trees, id_and_others, tagged_schema};
use crate::table::Taxonomy;
use crate::table::coding::{canonical, without_nan};

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
    /// Whether anybody asks who is who; else the hashes are zero.
    tags: bool,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl PseudonymizeExec {
    /// Over an input in canonical form, or the first columns of it.
    pub fn try_new(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        Self::tagging(spec, input, true)
    }

    /// For [`ProfileExec`](super::ProfileExec), which counts records where each individual has one.
    pub(crate) fn for_profile(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let tags = !spec.one_record_each();
        Self::tagging(spec, input, tags)
    }

    fn tagging(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>, tags: bool) -> Result<Self> {
        let properties = properties(
            tagged_schema(&spec, &input.schema()),
            input.output_partitioning().partition_count(),
            EmissionType::Incremental,
        );
        Ok(Self {
            spec,
            tags,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    /// Whether ids are replaced, not only left out.
    pub(crate) fn tags(&self) -> bool {
        self.tags
    }
}

impl DisplayAs for PseudonymizeExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = match self.tags {
            true => self.spec.id().unwrap_or("each record").to_owned(),
            false => "left out".to_owned(),
        };
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
        Ok(Arc::new(Self::tagging(
            Arc::clone(&self.spec),
            only_child(children)?,
            self.tags,
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
            self.tags,
            &self.input.schema(),
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
    tags: bool,
    tagged: SchemaRef,
    /// Of the columns that tell individuals apart.
    converter: RowConverter,
    null_ids: Count,
    /// For columns with a given hierarchy, the leaf of each value.
    leaves: Vec<Option<HashMap<String, u32>>>,
    /// Records with a value that the hierarchy does not have, per column.
    outside: Vec<u64>,
}

impl Tagger {
    fn try_new(
        spec: Arc<Spec>,
        tags: bool,
        input: &Schema,
        tagged: SchemaRef,
        null_ids: Count,
    ) -> Result<Self> {
        let fields = identity(&spec, input.fields())?.iter();
        let fields = fields.map(|f| SortField::new(f.data_type().clone()));
        let leaves = |taxonomy: Option<&Arc<Taxonomy>>| {
            let taxonomy = taxonomy?;
            let tree = taxonomy.tree();
            let labels = (0..tree.leaves()).map(|leaf| taxonomy.label(tree.node_of(leaf)));
            Some(labels.map(str::to_owned).zip(0..).collect())
        };
        let leaves: Vec<_> = given_trees(&spec).into_iter().map(leaves).collect();
        Ok(Self {
            converter: RowConverter::new(fields.collect())?,
            null_ids,
            outside: vec![0; leaves.len()],
            leaves,
            spec,
            tags,
            tagged,
        })
    }

    fn tag(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (id, _) = id_and_others(batch.columns())?;
        let without_id = id.null_count();
        self.null_ids.add(without_id);
        let known;
        let batch = if without_id > 0 {
            let mask: BooleanArray = is_not_null(id)?;
            known = filter_record_batch(batch, &mask)?;
            &known
        } else {
            batch
        };

        let mut columns: Vec<ArrayRef> = self.tags_of(batch)?.into();
        let (_, others) = id_and_others(batch.columns())?;
        for (i, column) in others.iter().enumerate() {
            let measured = self
                .spec
                .qi()
                .get(i)
                .is_some_and(|name| !self.spec.is_categorical(name));
            let column = canonical(column);
            columns.push(match self.leaves.get(i) {
                Some(Some(leaves)) => {
                    let (leaves, outside) = leaves_of(&column, leaves);
                    self.outside[i] += outside;
                    leaves
                }
                _ if measured => without_nan(&column)?,
                _ => column,
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.tagged), columns)?)
    }

    /// The order and the pseudonym of each record's individual.
    fn tags_of(&self, batch: &RecordBatch) -> Result<[ArrayRef; 2]> {
        if !self.tags {
            let records = batch.num_rows();
            let zeros = Buffer::from(vec![0u8; records * PSEUDONYM_BYTES as usize]);
            let pseudonyms = FixedSizeBinaryArray::try_new(PSEUDONYM_BYTES, zeros, None)?;
            let orders = UInt64Array::from(vec![0; records]);
            return Ok([Arc::new(orders), Arc::new(pseudonyms)]);
        }
        let key = self.spec.key()?;
        let identity = identity(&self.spec, batch.columns())?;
        let identity: Vec<ArrayRef> = identity.iter().map(canonical).collect();
        let ids = self.converter.convert_columns(&identity)?;
        let mut orders = UInt64Builder::with_capacity(ids.num_rows());
        let mut pseudonyms = FixedSizeBinaryBuilder::with_capacity(ids.num_rows(), PSEUDONYM_BYTES);
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
        Ok([Arc::new(orders.finish()), Arc::new(pseudonyms.finish())])
    }

    /// The name of a column, counted from the first quasi-identifier on.
    fn column(&self, column: usize) -> &str {
        let mut names = self.spec.qi().iter().chain(self.spec.sensitive());
        names.nth(column).map_or("", String::as_str)
    }

    fn finish(&self) -> Result<()> {
        if let Some(column) = self.outside.iter().position(|n| *n > 0) {
            let records = match self.outside[column] {
                1 => "1 record has a value".to_owned(),
                n => format!("{n} records have values"),
            };
            return Err(error::data(
                self.spec.function(),
                format!(
                    "at least {records} in column '{}' that its hierarchy does not have",
                    self.column(column)
                ),
            ));
        }
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

/// The columns that tell individuals apart: the id, or everything else without one.
fn identity<'a, T>(spec: &Spec, canonical: &'a [T]) -> Result<&'a [T]> {
    let (id, others) = id_and_others(canonical)?;
    Ok(match spec.id() {
        Some(_) => std::slice::from_ref(id),
        None => others,
    })
}

/// Leaves instead of values, and how many values are no leaf.
fn leaves_of(values: &ArrayRef, leaves: &HashMap<String, u32>) -> (ArrayRef, u64) {
    let mut outside = 0;
    let found = values.as_string::<i32>().iter().map(|value| {
        let leaf = leaves.get(value?).copied();
        outside += u64::from(leaf.is_none());
        leaf
    });
    let found: UInt32Array = found.collect();
    (Arc::new(found), outside)
}
