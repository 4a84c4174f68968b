//! [`IndividualsExec`]: one row per individual.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, FixedSizeBinaryBuilder, ListArray, RecordBatch, StructArray, UInt32Array,
    UInt64Builder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{concat_batches, partition, take, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::arrow::row::Rows;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::engine::{
    BlockPartitioning, ascending, ascending_by, column, only_child, properties, show,
};
use crate::error;
use crate::spec::{Choice, Contradictory, NullSensitive, Spec};
use crate::system::{BLOCK, Known, Layout, PSEUDONYM_BYTES, RowColumns, Stage, column_categories};
use crate::table::coding::{ColumnCategories, rows};

/// Gathers the records of each individual into one row, and each distinct record once.
///
/// Where each record is an individual of its own, equal records come under one tag, which stands for their content; they
/// are told apart by their number, whichever comes first, because they are equal.
///
/// Asks the engine for its input sorted by the random order and partitioned by it, or by block if records know theirs, and
/// keeps it so. Records that contradict each other and missing sensitive values are treated as the spec says; a violation
/// is counted to the end and then refused, so that the message can say how many individuals it concerns. Nothing is
/// published before, as everything above waits for the end of this operator. Only where records come by block, nobody
/// waits: a violation is refused at once, and its block is never published.
#[derive(Debug)]
pub struct IndividualsExec {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    input: Arc<dyn ExecutionPlan>,
    deal: BlockPartitioning,
    /// What the input is shuffled by: the random order, or the key of the block.
    key: Arc<dyn PhysicalExpr>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl IndividualsExec {
    /// Over the output of [`PseudonymizeExec`](super::PseudonymizeExec), or of [`BlockExec`](super::BlockExec) if records
    /// know their block.
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        input: Arc<dyn ExecutionPlan>,
        deal: BlockPartitioning,
    ) -> Result<Self> {
        let stage = Stage::of_records(&spec);
        let routed = stage == Stage::Routed;
        let needed = match routed {
            true => layout.routed(&spec),
            false => layout.tagged(&spec),
        };
        if input.schema() != needed {
            return internal_err!("IndividualsExec needs tagged records");
        }
        let key = match routed {
            true => deal.key(column(&input, BLOCK))?,
            false => column(&input, stage.order()),
        };
        let properties = match routed {
            true => in_order(layout.blocks(), &input, &key),
            false => properties(
                layout.individuals(),
                input.output_partitioning().partition_count(),
                EmissionType::Incremental,
            ),
        };
        Ok(Self {
            spec,
            layout,
            input,
            deal,
            key,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is published.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub(crate) fn deal(&self) -> &BlockPartitioning {
        &self.deal
    }
}

impl DisplayAs for IndividualsExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let facts = [
            ("contradictory", self.spec.contradictory.name().to_owned()),
            ("null_sensitive", self.spec.null_sensitive.name().to_owned()),
        ];
        show(t, f, "IndividualsExec", &facts)
    }
}

impl ExecutionPlan for IndividualsExec {
    fn name(&self) -> &str {
        "IndividualsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let key = vec![Arc::clone(&self.key)];
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(key)])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = Stage::of_records(&self.spec).order();
        vec![ascending(&self.input, &[order])]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.spec.routes_records()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.key)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        Ok(Arc::new(Self::try_new(
            spec,
            layout,
            only_child(children)?,
            self.deal.clone(),
        )?))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(format!("IndividualsExec[{partition}]"))
            .register(context.memory_pool());
        let mut input = self.input.execute(partition, context)?;
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let mut gatherer = Gatherer {
            spec: Arc::clone(&self.spec),
            layout: Arc::clone(&self.layout),
            schema: self.schema(),
            counts: Counts::new(&self.metrics, partition),
            equal: Equal::default(),
            categories: column_categories(&self.spec, &self.layout)?,
        };
        let stream = async_stream::try_stream! {
            // Records of the last individual seen, which may go on in the next batch.
            let mut open: Option<RecordBatch> = None;
            loop {
                let batch = input.next().await.transpose()?;
                let timer = baseline.elapsed_compute().timer();
                let is_last = batch.is_none();
                let (whole, rest) = match batch {
                    Some(batch) => gatherer.complete(&mut open, batch)?,
                    None => (open.take(), None),
                };
                let held = [&whole, &rest, &open].into_iter().flatten();
                reservation.try_resize(held.map(RecordBatch::get_array_memory_size).sum())?;
                let whole = whole.map(|records| gatherer.gather(&records)).transpose()?;
                let rest = rest.map(|records| gatherer.gather(&records)).transpose()?;
                timer.done();
                for gathered in [whole, rest].into_iter().flatten() {
                    if gathered.num_rows() > 0 {
                        yield gathered.record_output(&baseline);
                    }
                }
                if is_last {
                    break;
                }
            }
            gatherer.finish()?;
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

/// Properties of an operator that keeps the partitions and the order of an input that comes by block.
fn in_order(
    schema: SchemaRef,
    input: &Arc<dyn ExecutionPlan>,
    key: &Arc<dyn PhysicalExpr>,
) -> Arc<PlanProperties> {
    let partitions = input.output_partitioning();
    let by_block = Partitioning::Hash(vec![Arc::clone(key)], partitions.partition_count());
    let partitioning = match *partitions == by_block {
        true => by_block,
        false => Partitioning::UnknownPartitioning(partitions.partition_count()),
    };
    // Blocks are parts of the order, so who sorts by it has sorted by block; and both stand where they stood.
    let sorted = ascending_by(input, &[BLOCK, Stage::Routed.order()]);
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new_with_orderings(schema, [sorted]),
        partitioning,
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

struct Counts {
    records: Count,
    duplicates: Count,
    contradictory: Count,
    repeated: Count,
    null_sensitive: Count,
    without_sensitive: Count,
    uncategorised: Count,
    /// Individuals that are left out here.
    dropped: Count,
}

impl Counts {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Self {
            records: count("records"),
            duplicates: count("duplicate_records"),
            contradictory: count("contradictory_individuals"),
            repeated: count("individuals_with_several_records"),
            null_sensitive: count("null_sensitive_records"),
            without_sensitive: count("individuals_without_sensitive"),
            uncategorised: count("uncategorised_sensitive_values"),
            dropped: count("dropped_individuals"),
        }
    }
}

struct Gatherer {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    /// Of what is emitted.
    schema: SchemaRef,
    counts: Counts,
    equal: Equal,
    /// The categories of each sensitive column that has them.
    categories: Vec<Option<ColumnCategories>>,
}

/// Numbers records of equal content, where each is an individual.
#[derive(Default)]
struct Equal {
    order: u64,
    /// How many of each content were seen; almost always one content per order.
    seen: Vec<([u8; 16], u64)>,
}

impl Equal {
    /// The number of this record among those of the same tag, which follow each other.
    fn number(&mut self, order: u64, pseudonym: [u8; 16]) -> u64 {
        if self.order != order {
            self.order = order;
            self.seen.clear();
        }
        let at = match self.seen.iter().position(|(p, _)| *p == pseudonym) {
            Some(at) => at,
            None => {
                self.seen.push((pseudonym, 0));
                self.seen.len() - 1
            }
        };
        let number = &mut self.seen[at].1;
        *number += 1;
        *number
    }
}

/// Positions of the values that make up the rows to emit.
#[derive(Default)]
struct Picked {
    /// A record of each individual.
    first: Vec<u32>,
    /// Positions of each individual's distinct records, and how many each has.
    records: Vec<u32>,
    record_counts: Vec<usize>,
    /// Per quasi-identifier, positions of each individual's distinct values, and how many each has.
    covers: Vec<(Vec<u32>, Vec<usize>)>,
}

/// Positions of rows, or all rows as they are.
enum Positions {
    All,
    Some(UInt32Array),
}

impl Positions {
    fn new(positions: Vec<u32>, rows: usize) -> Self {
        match positions.iter().copied().eq(0..rows as u32) {
            true => Self::All,
            false => Self::Some(UInt32Array::from(positions)),
        }
    }

    /// The values of a column there.
    fn of(&self, column: &ArrayRef) -> Result<ArrayRef> {
        Ok(match self {
            Self::All => Arc::clone(column),
            Self::Some(positions) => take(column, positions, None)?,
        })
    }

    fn of_all(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        columns.iter().map(|column| self.of(column)).collect()
    }
}

impl Gatherer {
    /// The records of all individuals that are certain to be complete: of those that were open, with what the next batch
    /// adds to them, and of the others in it but the last, who stays open. Only a few records are copied.
    fn complete(
        &self,
        open: &mut Option<RecordBatch>,
        next: RecordBatch,
    ) -> Result<(Option<RecordBatch>, Option<RecordBatch>)> {
        if self.spec.one_row_per_individual() {
            return Ok((None, Some(next)));
        }
        let stage = Stage::of_records(&self.spec);
        let order_of = |batch: &RecordBatch| {
            let rows = RowColumns::new(&self.spec, stage, batch.columns());
            rows.order().values().clone()
        };
        let (orders, rows) = (order_of(&next), next.num_rows());
        let mut begin = 0;
        let whole = match open.take() {
            Some(held) => {
                let order = order_of(&held);
                let goes_on = orders.iter().take_while(|o| Some(*o) == order.first());
                begin = goes_on.count();
                let more = next.slice(0, begin);
                Some(concat_batches(next.schema_ref(), [&held, &more])?)
            }
            None => None,
        };
        if begin == rows {
            *open = whole;
            return Ok((None, None));
        }
        let last = orders.iter().rev();
        let last = last.take_while(|o| Some(*o) == orders.last()).count();
        let stays = UInt32Array::from_iter_values((rows - last) as u32..rows as u32);
        *open = Some(take_record_batch(&next, &stays)?);
        let rest = (begin < rows - last).then(|| next.slice(begin, rows - last - begin));
        Ok((whole, rest))
    }

    /// Gathers complete individuals.
    fn gather(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let rows = RowColumns::new(&self.spec, Stage::of_records(&self.spec), batch.columns());
        if !self.spec.routes_records() {
            let (_, columns) = self.gather_tagged(rows)?;
            return Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
        }
        // The block and what it needs to know go with the individual.
        let (first, individuals) = self.gather_tagged(rows)?;
        let mut columns = first.of_all(rows.in_block())?;
        columns.extend(individuals);
        columns.extend(first.of_all(rows.further())?);
        // Nobody waits for the end.
        self.finish()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// The columns of individuals, and a record of each.
    fn gather_tagged(&mut self, records: RowColumns<'_>) -> Result<(Positions, Vec<ArrayRef>)> {
        let own_tags = match self.spec.one_row_per_individual() {
            true => Some(self.tag_records(&records)?),
            false => None,
        };
        let records = match &own_tags {
            Some(tag) => records.with_tag(tag),
            None => records,
        };
        self.counts.records.add(records.len());
        let (qi, record) = (records.qi(), records.record());
        let known = Known::new(&self.spec, &records);
        let known = |record: u32| known.holds(record as usize);

        for (categories, values) in self.categories.iter().zip(record.sensitive()) {
            if let Some(categories) = categories {
                let without = categories.uncategorised(values)?;
                self.counts.uncategorised.add(without as usize);
            }
        }
        if self.spec.one_record_each() {
            let picked = self.pick_single(&records, &known);
            return self.assemble(&records, picked);
        }

        // Records are compared with others of the same individual only.
        let changes = changes(qi, records.len())?;
        let value_rows = qi
            .iter()
            .filter(|_| self.layout.covers())
            .map(|column| rows(std::slice::from_ref(column)))
            .collect::<Result<Vec<_>, _>>()?;
        let record_rows = rows(record.columns())?;

        let mut picked = Picked {
            covers: vec![Default::default(); value_rows.len()],
            ..Default::default()
        };
        for mut run in runs(&records) {
            let first = run[0];
            if contradicts(&run, &changes, qi)? {
                self.counts.contradictory.add(1);
                if self.spec.contradictory != Contradictory::Cover {
                    self.counts.dropped.add(1);
                    continue;
                }
            }
            let all = run.clone();
            if !self.keep_known(&mut run, &known) {
                self.counts.dropped.add(1);
                continue;
            }
            let before = run.len();
            sort_distinct(&mut run, &record_rows);
            self.counts.duplicates.add(before - run.len());

            picked.first.push(first);
            picked.record_counts.push(run.len());
            picked.records.append(&mut run);
            for ((positions, counts), rows) in picked.covers.iter_mut().zip(&value_rows) {
                let mut values = all.clone();
                sort_distinct(&mut values, rows);
                counts.push(values.len());
                positions.append(&mut values);
            }
        }
        self.assemble(&records, picked)
    }

    /// Takes the record of each individual, where it may have one only.
    fn pick_single(&self, records: &RowColumns<'_>, known: &dyn Fn(u32) -> bool) -> Picked {
        let order = records.order().values();
        let mut single: Vec<u32> = (0..order.len() as u32).collect();
        // Without two of the same order every record is an individual.
        if order.windows(2).any(|pair| pair[0] == pair[1]) {
            single.clear();
            for run in runs(records) {
                match run.as_slice() {
                    [record] => single.push(*record),
                    _ => self.counts.repeated.add(1),
                }
            }
        }
        let before = single.len();
        single.retain(|record| known(*record));
        let dropped = before - single.len();
        self.counts.null_sensitive.add(dropped);
        self.counts.without_sensitive.add(dropped);
        self.counts.dropped.add(dropped);
        Picked {
            record_counts: vec![1; single.len()],
            records: single.clone(),
            first: single,
            covers: vec![],
        }
    }

    /// Gives each record a tag of its own.
    fn tag_records(&mut self, records: &RowColumns<'_>) -> Result<[ArrayRef; 2]> {
        let (order, content) = (records.order().values(), records.pseudonym());
        let key = self.spec.key()?;
        let mut orders = UInt64Builder::with_capacity(order.len());
        let mut pseudonyms = FixedSizeBinaryBuilder::with_capacity(order.len(), PSEUDONYM_BYTES);
        for (i, order) in order.iter().enumerate() {
            let mut bytes = [0; 24];
            bytes[..16].copy_from_slice(content.value(i));
            let mut name = [0; 16];
            name.copy_from_slice(&bytes[..16]);
            bytes[16..].copy_from_slice(&self.equal.number(*order, name).to_be_bytes());
            let tag = key.tag(&bytes);
            orders.append_value(tag.order);
            pseudonyms.append_value(tag.pseudonym)?;
        }
        Ok([Arc::new(orders.finish()), Arc::new(pseudonyms.finish())])
    }

    /// Drops records without one of their sensitive values where the spec says so. False if the individual goes with them.
    fn keep_known(&self, run: &mut Vec<u32>, known: &dyn Fn(u32) -> bool) -> bool {
        let before = run.len();
        let known = |i: &u32| known(*i);
        let known_count = run.iter().filter(|i| known(i)).count();
        self.counts.null_sensitive.add(before - known_count);
        if self.spec.null_sensitive != NullSensitive::Conservative {
            run.retain(known);
        }
        if known_count == 0 {
            self.counts.without_sensitive.add(1);
        }
        known_count > 0
    }

    fn assemble(
        &self,
        rows: &RowColumns<'_>,
        picked: Picked,
    ) -> Result<(Positions, Vec<ArrayRef>)> {
        let first = Positions::new(picked.first, rows.len());
        let mut columns = first.of_all(rows.tag())?;
        let mut covers = picked.covers.into_iter();
        for column in rows.qi() {
            columns.push(match covers.next() {
                Some((positions, counts)) => {
                    list(take(column, &UInt32Array::from(positions), None)?, counts)?
                }
                None => first.of(column)?,
            });
        }
        let records = Positions::new(picked.records, rows.len());
        let fields = self.layout.record_fields().clone();
        let values = records.of_all(rows.record().columns())?;
        let structs = StructArray::try_new(fields, values, None)?;
        columns.push(list(Arc::new(structs), picked.record_counts)?);
        Ok((first, columns))
    }

    fn finish(&self) -> Result<()> {
        let function = self.spec.function();
        let repeated = self.counts.repeated.value() as u64;
        if repeated > 0 {
            let individuals = match repeated {
                1 => "1 individual has".to_owned(),
                n => format!("{n} individuals have"),
            };
            return Err(error::data(
                function,
                format!(
                    "at least {individuals} more than one record; this function publishes one record of each \
                     individual: choose it in a subquery, or use anonymize_eir, which protects many records"
                ),
            ));
        }
        let contradictory = self.counts.contradictory.value() as u64;
        if contradictory > 0 && self.spec.contradictory == Contradictory::Error {
            return Err(error::data(
                function,
                format!(
                    "at least {} different values in a quasi-identifier; correct them, publish a value that covers \
                     them all with contradictory => 'cover', or leave these individuals out with 'drop'",
                    match contradictory {
                        1 => "1 individual has".to_owned(),
                        n => format!("{n} individuals have"),
                    }
                ),
            ));
        }
        let uncategorised = self.counts.uncategorised.value() as u64;
        if uncategorised > 0 {
            return Err(error::data(
                function,
                format!(
                    "sensitive column '{}' has a value without a category in at least {}; every value needs one",
                    self.spec.sensitive().join("' or '"),
                    error::count(uncategorised, "record")
                ),
            ));
        }
        let nulls = self.counts.null_sensitive.value() as u64;
        if nulls > 0 && self.spec.null_sensitive == NullSensitive::Error {
            let reason = self
                .spec
                .entry()?
                .system
                .missing_sensitive(&self.spec, nulls);
            return Err(error::data(function, reason));
        }
        Ok(())
    }
}

/// The records of each individual. Equal orders are almost always one individual; the pseudonym decides.
fn runs(records: &RowColumns<'_>) -> impl Iterator<Item = Vec<u32>> {
    let (order, pseudonym) = (records.order().values(), records.pseudonym());
    let mut runs = vec![];
    let mut begin = 0;
    while begin < order.len() {
        let length = order[begin..]
            .iter()
            .take_while(|o| **o == order[begin])
            .count();
        let range: Range<usize> = begin..begin + length;
        begin = range.end;
        let mut run: Vec<u32> = range.map(|i| i as u32).collect();
        let name = |i: &u32| pseudonym.value(*i as usize);
        if run.iter().all(|i| name(i) == name(&run[0])) {
            runs.push(run);
        } else {
            run.sort_by_key(name);
            runs.extend(run.chunk_by(|a, b| name(a) == name(b)).map(<[u32]>::to_vec));
        }
    }
    runs.into_iter()
}

/// Whether each record's quasi-identifiers differ from those of the record before.
fn changes(qi: &[ArrayRef], records: usize) -> Result<Vec<bool>> {
    let mut changes = vec![false; records];
    if !qi.is_empty() {
        for run in partition(qi)?.ranges() {
            changes[run.start] = true;
        }
    }
    Ok(changes)
}

/// Whether the records of an individual have different quasi-identifiers.
fn contradicts(run: &[u32], changes: &[bool], qi: &[ArrayRef]) -> Result<bool> {
    let neighbours = run.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if neighbours {
        return Ok(run[1..].iter().any(|i| changes[*i as usize]));
    }
    // Two individuals of the same order, whose records alternate.
    let rows = rows(qi)?;
    let row = |i: u32| rows.row(i as usize);
    Ok(run.iter().any(|i| row(*i) != row(run[0])))
}

/// Sorts positions by the rows they point to and keeps one of each.
fn sort_distinct(positions: &mut Vec<u32>, rows: &Rows) {
    if positions.len() > 1 {
        positions.sort_unstable_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
        positions.dedup_by(|a, b| rows.row(*a as usize) == rows.row(*b as usize));
    }
}

fn list(values: ArrayRef, lengths: Vec<usize>) -> Result<ArrayRef> {
    let data_type: &DataType = values.data_type();
    let field = Arc::new(Field::new_list_field(data_type.clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, values, None)?))
}
