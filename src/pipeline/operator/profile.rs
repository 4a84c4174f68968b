//! [`ProfileExec`]: a first look at the quasi-identifiers.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, BinaryArray, ListArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{
    filter_record_batch, is_not_null, partition, take, take_record_batch,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use super::known::Known;
use crate::engine::{only_child, properties, show};
use crate::spec::{NullSensitive, Spec};
use crate::system::Blocks;
use crate::system::anatomy::slppa::TableProfile;
use crate::system::buckets::{SecretCounts, counts_secrets};
use crate::table::Profile;
use crate::table::coding::{Kind, rows};

/// Learns, per partition, the domains of the quasi-identifiers and a sample of individuals; or, for anatomization, how
/// the quasi-identifiers hang together and how often each sensitive value occurs.
///
/// The sample holds the individuals with the smallest random order, whatever the order, files and partitions of the
/// input are. Emits one row with the profile of the partition; [`BlockExec`](super::BlockExec) merges them.
#[derive(Debug)]
pub struct ProfileExec {
    spec: Arc<Spec>,
    kinds: Vec<Kind>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ProfileExec {
    /// Over an input whose first columns are those of [`PseudonymizeExec`](super::PseudonymizeExec): order,
    /// pseudonym, quasi-identifiers; and the sensitive columns, or all secret values and flags, where they are needed. Or over
    /// that of [`IndividualsExec`](super::IndividualsExec), where individuals are left out.
    pub fn try_new(spec: Arc<Spec>, input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        let kinds = spec.qi().iter().zip(&schema.fields()[2..]);
        let kinds = kinds.map(|(name, field)| {
            let data_type = match field.data_type() {
                DataType::List(values) => values.data_type(),
                other => other,
            };
            crate::system::kind_of(&spec, name, data_type)
        });
        let kinds = kinds.collect::<Result<Vec<_>>>()?;
        let properties = properties(
            Self::schema(),
            input.output_partitioning().partition_count(),
            EmissionType::Final,
        );
        Ok(Self {
            spec,
            kinds,
            input,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new(
            "profile",
            DataType::Binary,
            false,
        )]))
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }
}

impl DisplayAs for ProfileExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qi = format!("[{}]", self.spec.qi().join(", "));
        show(t, f, "ProfileExec", &[("qi", qi)])
    }
}

impl ExecutionPlan for ProfileExec {
    fn name(&self) -> &str {
        "ProfileExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        let reservation = MemoryConsumer::new(format!("ProfileExec[{partition}]"))
            .register(context.memory_pool());
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let columns = self.input.schema().fields().len();
        let mut learner = Learner::new(&self.spec, self.kinds.clone(), columns)?;
        let stream = async_stream::try_stream! {
            while let Some(batch) = input.next().await {
                let batch = batch?;
                let timer = baseline.elapsed_compute().timer();
                learner.update(&batch)?;
                timer.done();
                reservation.try_resize(learner.size())?;
            }
            let bytes = learner
                .into_bytes()
                .ok_or_else(|| exec_datafusion_err!("the profile cannot be sent"))?;
            let profile = BinaryArray::from_iter_values([bytes]);
            yield RecordBatch::try_new(Self::schema(), vec![Arc::new(profile)])?.record_output(&baseline);
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Self::schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Learns what the spec's form needs to know of the whole table.
struct Learner {
    spec: Arc<Spec>,
    kinds: Vec<Kind>,
    one_row: bool,
    learned: Learned,
}

enum Learned {
    /// With secret values, where blocks must be diverse each.
    Classes(Profile, Option<SecretCounts>),
    Anatomy(TableProfile),
}

impl Learner {
    /// Over so many columns.
    fn new(spec: &Arc<Spec>, kinds: Vec<Kind>, columns: usize) -> Result<Self> {
        let one_row = spec.counts_records();
        let learned = match spec.is_anatomy() {
            true => Learned::Anatomy(TableProfile::new(kinds.len())),
            false => {
                let more = columns > 2 + kinds.len() && counts_secrets(spec, None)?;
                let secrets = more.then(|| SecretCounts::new(spec)).transpose()?;
                let profile = match spec.entry()?.blocks {
                    Blocks::Random => Profile::counting(&kinds, one_row),
                    Blocks::Similar => Profile::new(&kinds, one_row),
                };
                Learned::Classes(profile, secrets)
            }
        };
        Ok(Self {
            spec: Arc::clone(spec),
            kinds,
            one_row,
            learned,
        })
    }

    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let qi = 2..2 + self.kinds.len();
        match &mut self.learned {
            Learned::Classes(profile, secrets) => {
                let batch = match self.spec.profiles_individuals() {
                    true => one_row_per_value(batch, self.kinds.len())?,
                    false => complete(&self.spec, batch)?,
                };
                if let Some(secrets) = secrets {
                    secrets.update(&self.spec, &batch)?;
                }
                let batch = batch.project(&(0..qi.end).collect::<Vec<_>>())?;
                let batch = match self.one_row {
                    true => batch,
                    false => one_row_per_run(&batch)?,
                };
                let order = batch.column(0).as_primitive::<UInt64Type>();
                profile.update(&self.kinds, order, &batch.columns()[qi])?;
            }
            Learned::Anatomy(profile) => {
                let sensitive = batch.column(qi.end);
                let known;
                let batch = match sensitive.null_count() {
                    0 => batch,
                    _ => {
                        known = filter_record_batch(batch, &is_not_null(sensitive)?)?;
                        &known
                    }
                };
                let sensitive = rows(&batch.columns()[qi.end..=qi.end])?;
                profile.update(&self.kinds, &batch.columns()[qi], &sensitive)?;
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        match &self.learned {
            Learned::Classes(profile, secrets) => {
                profile.size() + secrets.as_ref().map_or(0, SecretCounts::size)
            }
            Learned::Anatomy(profile) => profile.size(),
        }
    }

    fn into_bytes(self) -> Option<Vec<u8>> {
        match self.learned {
            Learned::Classes(mut profile, secrets) => {
                profile.finish();
                serde_json::to_vec(&(profile, secrets)).ok()
            }
            Learned::Anatomy(profile) => profile.to_bytes(),
        }
    }
}

/// The records that are not left out for a missing value.
fn complete(spec: &Spec, batch: &RecordBatch) -> Result<RecordBatch> {
    let shown = 2 + spec.qi().len();
    if spec.null_sensitive == NullSensitive::Error || batch.num_columns() == shown {
        return Ok(batch.clone());
    }
    let known = Known::new(spec, batch.columns()).mask(batch.num_rows());
    Ok(filter_record_batch(batch, &known)?)
}

/// Gathered individuals with a row for each value of their quasi-identifiers, where these are lists.
fn one_row_per_value(batch: &RecordBatch, qi_count: usize) -> Result<RecordBatch> {
    let shown: Vec<usize> = (0..2 + qi_count).collect();
    let batch = batch.project(&shown)?;
    let lists: Vec<Option<&ListArray>> = batch.columns().iter().map(|c| c.as_list_opt()).collect();
    let (mut rows, mut values) = (vec![], vec![vec![]; lists.len()]);
    for row in 0..batch.num_rows() {
        let lengths = lists
            .iter()
            .flatten()
            .map(|list| list.value_length(row) as u32);
        // Shorter lists repeat their last value.
        for number in 0..lengths.max().unwrap_or(1) {
            rows.push(row as u32);
            for (list, values) in lists.iter().zip(&mut values) {
                if let Some(list) = list {
                    let offsets = list.value_offsets();
                    values.push(
                        (offsets[row] as u32 + number)
                            .min((offsets[row + 1] as u32).saturating_sub(1)),
                    );
                }
            }
        }
    }
    let rows = UInt32Array::from(rows);
    let mut columns = vec![];
    for ((column, list), values) in batch.columns().iter().zip(&lists).zip(values) {
        let field = match list {
            Some(list) => take(list.values(), &UInt32Array::from(values), None)?,
            None => take(column, &rows, None)?,
        };
        columns.push(field);
    }
    let names = batch.schema();
    let fields = names.fields().iter().zip(&columns);
    let fields =
        fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

/// Drops records that repeat the individual and the quasi-identifiers of the record before them.
fn one_row_per_run(batch: &RecordBatch) -> Result<RecordBatch> {
    if batch.num_rows() == 0 {
        return Ok(batch.clone());
    }
    // The pseudonym says no more than the order.
    let told_apart: Vec<_> = [batch.column(0)]
        .into_iter()
        .chain(&batch.columns()[2..])
        .cloned()
        .collect();
    let runs = partition(&told_apart)?.ranges();
    if runs.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    let firsts = UInt32Array::from_iter_values(runs.iter().map(|run| run.start as u32));
    Ok(take_record_batch(batch, &firsts)?)
}
