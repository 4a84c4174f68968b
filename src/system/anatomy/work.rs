//! Anatomized tables: exact values, linked by nothing but the ids of groups.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
    new_null_array,
};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::{concat, take};
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
use hashbrown::HashSet;

use super::slppa::{AnatomyRequest, CodedBlock, DivideError, Learned, Publisher, Row, ranks};
use crate::check::{AnatomyTable, Refused, ShownTables, Verified, Verifier};
use crate::engine::threads::Threads;
use crate::error;
use crate::spec::{IdSpace, Spec};
use crate::system::work::{
    BlockProposal, BlockWork, Proposal, PublishedRows, WorkContext, individuals, learned_of,
};
use crate::system::{RecordColumns, RowColumns, Stage, blocks_of};

/// Divides individuals into groups, publishes their sub-tables and verifies them.
pub(crate) struct AnatomyWork {
    context: WorkContext,
    ask: AnatomyRequest,
}

/// The sub-tables of a block and its table of sensitive values, which follow each other as one relation.
struct BlockTables {
    tables: Vec<BlockTable>,
    /// The types of the columns between the group's id and the count.
    types: Vec<DataType>,
}

/// One of the tables.
struct BlockTable {
    name: String,
    gid: ArrayRef,
    /// Where its columns stand among those of all tables.
    places: Vec<usize>,
    columns: Vec<ArrayRef>,
    count: ArrayRef,
}

impl BlockWork for AnatomyWork {
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal> {
        let WorkContext {
            spec,
            metrics,
            cancel,
            threads,
            ..
        } = &self.context;
        let learned: Learned = learned_of(&rows)?;
        let block = blocks_of(&rows).value(0);
        let columns = RowColumns::new(spec, Stage::Blocks, rows.columns());
        let individuals = individuals(&self.context, &rows);
        let qi: Vec<ArrayRef> = individuals
            .qi
            .iter()
            .map(|c| Arc::clone(c.values()))
            .collect();
        let members = individuals.len();
        let record = RecordColumns::new(spec, individuals.records.columns());
        let sensitive = &Arc::clone(&record.sensitive()[0]);
        let whole = &columns.further()[0];
        let whole = &whole.as_primitive::<UInt64Type>().values().clone();
        drop((individuals, rows));
        let common = common_values(&learned, sensitive.data_type())?;
        let coded = self.coded(&qi, sensitive, &common, whole, &learned)?;

        let timer = metrics.forming.timer();
        let groups = self.ask.method.groups(
            &coded.individuals,
            &learned.division,
            &coded.prior,
            &self.ask.requirements,
            cancel,
        );
        let groups = groups.map_err(|e| refusal(spec, e, learned.blocks))?;
        timer.done();
        metrics.blocks.add(1);
        metrics.individuals.add(members);
        metrics.classes.add(groups.len());

        let ids = IdSpace::new(spec.key()?, block);
        let gids: Vec<u64> = (0..groups.len() as u32)
            .map(|group| ids.id(0, group))
            .collect();
        let publisher = Publisher::try_new(&coded.individuals, &learned.division, &groups, &gids)
            .map_err(|e| internal_datafusion_err!("{e}"))?;
        let sub_tables = learned.division.tables();
        let tables = threads.each((0..=sub_tables.len()).collect(), |number| {
            let Some(places) = sub_tables.get(number) else {
                let place = vec![qi.len()];
                return BlockTable::try_new(
                    "sa".to_owned(),
                    &publisher.sensitive(),
                    place,
                    &[sensitive],
                );
            };
            let columns: Vec<&ArrayRef> = places.iter().map(|c| &qi[*c]).collect();
            let name = format!("qi_{}", number + 1);
            let rows = publisher.sub_table(number);
            BlockTable::try_new(name, &rows, places.clone(), &columns)
        });
        let tables = tables.into_iter().collect::<Result<Vec<_>, _>>()?;
        let types = qi.iter().chain([sensitive]).map(|c| c.data_type().clone());
        let types = types.collect();

        let (sensitive, whole) = (Arc::clone(sensitive), whole.clone());
        Ok(BlockProposal {
            proposal: Box::new(ProposedTables {
                tables: BlockTables { tables, types },
                learned,
                common,
                sensitive,
                whole,
            }),
            individuals: members as u64,
            infeasible: None,
        })
    }
}

impl AnatomyWork {
    pub fn try_new(context: WorkContext) -> Result<Self> {
        Ok(Self {
            ask: context.spec.anatomy()?,
            context,
        })
    }

    /// Codes the block, its columns side by side.
    fn coded(
        &self,
        qi: &[ArrayRef],
        sensitive: &ArrayRef,
        common: &ArrayRef,
        whole: &[u64],
        learned: &Learned,
    ) -> Result<CodedBlock> {
        let sensitive = concat(&[sensitive.as_ref(), common.as_ref()])?;
        // Most values are sensitive ones.
        let columns = [&sensitive].into_iter().chain(qi).collect();
        let mut coded = self.context.threads.each(columns, ranks).into_iter();
        let sensitive = coded.next().transpose()?.unwrap_or_default();
        let qi = coded.collect::<Result<_, _>>()?;
        CodedBlock::try_new(qi, sensitive, whole, learned)
            .map_err(|e| internal_datafusion_err!("{e}"))
    }
}

/// What a block would publish, and what is known of the whole table.
struct ProposedTables {
    tables: BlockTables,
    learned: Learned,
    common: ArrayRef,
    /// The sensitive value of each individual, and how many of the whole table have it.
    sensitive: ArrayRef,
    whole: ScalarBuffer<u64>,
}

impl Proposal for ProposedTables {
    fn verify(&self, verifier: &Verifier, threads: &Threads) -> Result<Verified, Refused> {
        let tables = &self.tables.tables;
        let Some(values) = tables.last() else {
            return Err(Refused::Violation("there is no table".to_owned()));
        };
        let views = tables.iter().map(BlockTable::view).collect();
        let counts = threads.each(views, |table: AnatomyTable<'_>| table.read());
        let counts = counts.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (known, numbers, others) =
            prior(&self.learned, &self.common, &self.sensitive, &self.whole)?;
        let shown = ShownTables::of_counts(&counts, &values.columns, &known, &numbers)?
            .and_others(others, self.learned.most_of_others);
        verifier.check_block_of_tables(&shown, self.sensitive.len())
    }

    fn into_rows(self: Box<Self>) -> Result<Box<dyn PublishedRows>> {
        Ok(Box::new(self.tables))
    }
}

/// The common sensitive values of the whole table.
fn common_values(learned: &Learned, data_type: &DataType) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let parser = converter.parser();
    let common = learned.common.iter().map(|(value, _)| parser.parse(value));
    let columns = converter.convert_rows(common)?;
    Ok(Arc::clone(&columns[0]))
}

/// The sensitive values that the verifier is told of, each once, with their individuals in the whole table; and how many
/// individuals have other ones.
fn prior(
    learned: &Learned,
    common: &ArrayRef,
    sensitive: &ArrayRef,
    whole: &[u64],
) -> Result<(ArrayRef, ArrayRef, u64), ArrowError> {
    let converter = RowConverter::new(vec![SortField::new(sensitive.data_type().clone())])?;
    let rows = converter.convert_columns(std::slice::from_ref(sensitive))?;
    let told: HashSet<&[u8]> = learned.common.iter().map(|(v, _)| v.as_slice()).collect();
    let mut seen: HashSet<&[u8]> = HashSet::new();
    let (mut first, mut counts) = (vec![], vec![]);
    counts.extend(learned.common.iter().map(|(_, count)| *count));
    for (i, (row, count)) in (0u32..).zip(rows.iter().zip(whole)) {
        if !told.contains(row.data()) && seen.insert(row.data()) {
            first.push(i);
            counts.push(*count);
        }
    }
    let own = take(sensitive, &UInt32Array::from(first), None)?;
    let known: u64 = counts.iter().fold(0, |sum, n| sum.saturating_add(*n));
    let values = concat(&[common.as_ref(), own.as_ref()])?;
    let counts: ArrayRef = Arc::new(UInt64Array::from(counts));
    Ok((values, counts, learned.individuals.saturating_sub(known)))
}

/// Why a block cannot be divided: the query ends, nobody is left out.
fn refusal(spec: &Spec, e: DivideError, blocks: u32) -> datafusion::common::DataFusionError {
    match e {
        DivideError::Cancelled => exec_datafusion_err!("cancelled"),
        DivideError::NotAPart => error::changed(spec.function()),
        DivideError::Malformed(why) => internal_datafusion_err!("{}: {why}", spec.function()),
        DivideError::Infeasible(infeasible) => {
            let scope = match blocks {
                1 => String::new(),
                n => format!(" (in one of {n} blocks; block => 'all' may need less)"),
            };
            let message = format!("the bounds cannot be reached: {infeasible}{scope}");
            error::data(spec.function(), message)
        }
    }
}

impl BlockTable {
    fn try_new(
        name: String,
        rows: &[Row],
        places: Vec<usize>,
        columns: &[&ArrayRef],
    ) -> Result<Self, ArrowError> {
        let from = UInt32Array::from_iter_values(rows.iter().map(|row| row.individual));
        let columns = columns.iter().map(|column| take(column, &from, None));
        Ok(Self {
            name,
            gid: Arc::new(UInt64Array::from_iter_values(
                rows.iter().map(|row| row.gid),
            )),
            places,
            columns: columns.collect::<Result<_, _>>()?,
            count: Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| i64::from(row.count)),
            )),
        })
    }

    fn view(&self) -> AnatomyTable<'_> {
        AnatomyTable {
            gid: &self.gid,
            columns: &self.columns,
            count: &self.count,
        }
    }

    /// Some of its rows as rows of the relation, in buffers of their own.
    fn rows(&self, rows: Range<usize>, types: &[DataType]) -> Result<Vec<ArrayRef>, ArrowError> {
        // Concatenating copies, so that no row outside the range goes along.
        let copy = |array: &ArrayRef| concat(&[array.slice(rows.start, rows.len()).as_ref()]);
        let names = std::iter::repeat_n(self.name.as_str(), rows.len());
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(names)),
            copy(&self.gid)?,
        ];
        for (place, data_type) in types.iter().enumerate() {
            columns.push(match self.places.iter().position(|own| *own == place) {
                Some(own) => copy(&self.columns[own])?,
                None => new_null_array(data_type, rows.len()),
            });
        }
        columns.push(copy(&self.count)?);
        Ok(columns)
    }
}

impl PublishedRows for BlockTables {
    fn len(&self) -> usize {
        self.tables.iter().map(|table| table.gid.len()).sum()
    }

    fn size(&self) -> usize {
        let columns = self.tables.iter().flat_map(|table| {
            let own = table.columns.iter();
            own.chain([&table.gid, &table.count])
        });
        columns.map(|column| column.get_array_memory_size()).sum()
    }

    fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        let mut parts: Vec<Vec<ArrayRef>> = vec![];
        let mut begin = 0;
        for table in &self.tables {
            let end = begin + table.gid.len();
            let own = rows.start.max(begin)..rows.end.min(end);
            if own.start < own.end {
                parts.push(table.rows(own.start - begin..own.end - begin, &self.types)?);
            }
            begin = end;
        }
        if let [only] = parts.as_mut_slice() {
            return Ok(std::mem::take(only));
        }
        let columns = parts.first().map_or(0, Vec::len);
        let whole = (0..columns).map(|c| {
            let arrays: Vec<_> = parts.iter().map(|part| part[c].as_ref()).collect();
            concat(&arrays)
        });
        whole.collect()
    }
}
