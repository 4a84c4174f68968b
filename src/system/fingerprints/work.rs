//! Fingerprints: individuals publish labels instead of their sensitive values, which k of them share, and the
//! quasi-identifiers of a class in which at most one in l has the same.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, ListArray, RecordBatch, StructArray, UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, UInt32Type};
use datafusion::common::{Result, exec_datafusion_err, internal_err};

use super::sets::{Failure, Partition, Prepared, SensitiveStep, UNPUBLISHED, Unreachable, prepare};
use crate::algorithm::{Algorithm, BestCut, Classes, Mondrian, complete};
use crate::engine::threads::Threads;
use crate::error;
use crate::model::Parameters;
use crate::spec::{BlockSize, FingerprintRows, Spec};
use crate::system::work::{BlockProposal, BlockWork, WorkContext, individuals, learned_of};
use crate::system::{RecordColumns, sensitive_tree};
use crate::table::coding::{Domains, EncodedBlock, IndividualArrays, PublishedRecords, publish};
use crate::table::{Block, Fingerprints, Hierarchy, Taxonomy};

/// Generalizes fingerprints, forms classes of individuals, publishes and verifies them.
pub(crate) struct FingerprintWork {
    context: WorkContext,
    sensitive_step: Box<dyn SensitiveStep>,
    algorithm: Box<dyn Algorithm>,
    parameters: Parameters,
    labels: SensitiveLabels,
}

/// The hierarchy of the sensitive column.
pub(super) struct SensitiveLabels {
    pub tree: Arc<Hierarchy>,
    /// By node.
    pub label: ArrayRef,
}

impl SensitiveLabels {
    pub fn new(taxonomy: &Taxonomy) -> Self {
        let (label, _) = taxonomy.labels();
        Self {
            tree: Arc::new(taxonomy.tree().clone()),
            label,
        }
    }
}

impl BlockWork for FingerprintWork {
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal> {
        let metrics = &self.context.metrics;
        let individuals = individuals(&self.context, &rows);
        let domains = learned_of(&rows)?;
        drop(rows);
        let leaves = leaves(&self.context.spec, &individuals);

        let timer = metrics.forming.timer();
        let prepared = self.prepare(&leaves)?;
        timer.done();
        let sets = UInt32Array::from(prepared.generalized.of.clone());
        let individuals = with_one_record(individuals, sets)?;
        let encoded = self.encode(&domains, &individuals, &prepared)?;
        let timer = metrics.forming.timer();
        let classes = self.form_classes(&encoded.block, &prepared)?;
        timer.done();
        self.count(&encoded.block, &classes);

        let layout = &self.context.layout;
        let published = publish(
            &individuals,
            &encoded,
            &classes.classes,
            &classes.nodes,
            &layout.kinds,
            layout.is_text(),
        )?;
        let shape = self.context.spec.fingerprint_rows();
        let published = with_labels(published, &prepared.generalized.sets, &self.labels, shape)?;
        Ok(BlockProposal {
            proposal: Box::new(published),
            individuals: individuals.len() as u64,
            infeasible: None,
        })
    }
}

impl FingerprintWork {
    pub fn try_new(context: WorkContext) -> Result<Self> {
        let spec = &context.spec;
        let Some(taxonomy) = sensitive_tree(spec) else {
            return internal_err!("the sensitive column has no hierarchy");
        };
        let parameters = spec.model_parameters()?;
        Ok(Self {
            sensitive_step: Box::new(Partition),
            algorithm: algorithm(spec, &context.threads)?,
            labels: SensitiveLabels::new(taxonomy),
            parameters,
            context,
        })
    }

    /// The fingerprint step: labels that k individuals share, with the model for classes of them.
    fn prepare(&self, leaves: &Fingerprints) -> Result<Prepared> {
        let WorkContext {
            spec,
            cancel,
            threads,
            ..
        } = &self.context;
        let step = self.sensitive_step.as_ref();
        let tree = &self.labels.tree;
        match prepare(step, &self.parameters, leaves, tree, threads, cancel) {
            Ok(Ok(prepared)) if prepared.generalized.of.contains(&UNPUBLISHED) => {
                internal_err!("an individual has no sensitive value")
            }
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(refusal)) => Err(refused(spec, leaves.len(), &refusal)?),
            Err(Failure::Cancelled) => Err(exec_datafusion_err!("cancelled")),
            Err(Failure::Parameter(e)) => {
                Err(error::argument(spec.function(), &e.parameter, e.message))
            }
        }
    }

    fn encode(
        &self,
        domains: &Domains,
        individuals: &IndividualArrays,
        prepared: &Prepared,
    ) -> Result<EncodedBlock> {
        let layout = &self.context.layout;
        let (kinds, ladders) = (&layout.kinds, layout.ladders());
        let mut encoded = EncodedBlock::try_new(
            individuals,
            kinds,
            &ladders,
            domains,
            &[],
            false,
            &self.context.threads,
        )?;
        let sets = prepared.generalized.of.iter().map(|set| [*set]);
        encoded.block.set_fingerprints(sets.collect());
        Ok(encoded)
    }

    /// The quasi-identifier step. Nobody is left out: the fingerprints of the others would not be shared by k any more.
    fn form_classes(&self, block: &Block, prepared: &Prepared) -> Result<Classes> {
        let cancel = &self.context.cancel;
        let formed = self.algorithm.form_classes(block, &prepared.model, cancel);
        let classes = formed
            .and_then(|formed| complete(block, &prepared.model, formed, cancel))
            .map_err(|_| exec_datafusion_err!("cancelled"))?;
        let published: usize = classes.classes.iter().map(Vec::len).sum();
        match published == block.len() {
            true => Ok(classes),
            false => internal_err!("individuals are left out of all classes"),
        }
    }

    fn count(&self, block: &Block, classes: &Classes) {
        let WorkContext {
            layout, metrics, ..
        } = &self.context;
        metrics.blocks.add(1);
        metrics.individuals.add(block.len());
        metrics.classes.add(classes.classes.len());
        metrics.suppressed.add(classes.suppressed.len());
        metrics.add_loss(block, classes, layout.qi_count());
    }
}

/// The algorithm for the quasi-identifiers. Best cut lowers what the paper measures, unless the call says otherwise. What
/// cuts works on a block with all threads that no other block keeps busy, because there are few blocks.
fn algorithm(spec: &Spec, threads: &Arc<Threads>) -> Result<Box<dyn Algorithm>> {
    let threads = Arc::clone(threads);
    Ok(match (spec.algorithm_name(), spec.parameter("ncp")) {
        ("best_cut", Some("0")) => Box::new(BestCut::records().with_crew(threads)),
        ("best_cut", _) => Box::new(BestCut::ncp().with_crew(threads)),
        ("mondrian", _) => Box::new(match spec.parameter("relaxed") {
            Some("1") => Mondrian::relaxed().with_crew(threads),
            _ => Mondrian::strict().with_crew(threads),
        }),
        _ => spec.algorithm()?,
    })
}

fn refused(
    spec: &Spec,
    individuals: usize,
    refusal: &Unreachable,
) -> Result<datafusion::common::DataFusionError> {
    let model = spec.describe()?;
    let (place, more) = match spec.block() {
        BlockSize::All => (String::new(), ""),
        BlockSize::Individuals(_) => (
            format!(
                " in a block of {}",
                error::count(individuals as u64, "individual")
            ),
            "; a larger block may work",
        ),
    };
    Ok(error::data(
        spec.function(),
        format!("{model} cannot be reached{place}: {refusal}{more}"),
    ))
}

/// The leaves of each individual's values.
pub(super) fn leaves(spec: &Spec, individuals: &IndividualArrays) -> Fingerprints {
    let record = RecordColumns::new(spec, individuals.records.columns());
    let values = record.sensitive()[0].as_primitive::<UInt32Type>().values();
    let mut fingerprints = Fingerprints::new();
    let mut codes = vec![];
    for i in 0..individuals.len() {
        codes.clear();
        codes.extend_from_slice(&values[individuals.records_of(i)]);
        fingerprints.push(&mut codes);
    }
    fingerprints
}

/// The individuals with one record each: the number of its published fingerprint.
pub(super) fn with_one_record(
    individuals: IndividualArrays,
    sets: UInt32Array,
) -> Result<IndividualArrays> {
    let field = Field::new("set", DataType::UInt32, false);
    let lengths = std::iter::repeat_n(1, individuals.len());
    Ok(IndividualArrays {
        record_offsets: OffsetBuffer::from_lengths(lengths),
        records: StructArray::try_new(vec![field].into(), vec![Arc::new(sets)], None)?,
        ..individuals
    })
}

/// Replaces the number of each individual's published fingerprint by its labels: a row for each, or a list.
pub(super) fn with_labels(
    published: PublishedRecords,
    sets: &Fingerprints,
    labels: &SensitiveLabels,
    rows: FingerprintRows,
) -> Result<PublishedRecords> {
    let numbers = published.records[0].as_primitive::<UInt32Type>().values();
    let nodes = numbers.iter().flat_map(|set| sets.of(*set)).copied();
    let shown = take(&labels.label, &UInt32Array::from_iter_values(nodes), None)?;
    let lengths = numbers.iter().map(|set| sets.of(*set).len());
    Ok(match rows {
        FingerprintRows::Individuals => {
            let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
            let offsets = OffsetBuffer::from_lengths(lengths);
            let lists = ListArray::try_new(field, offsets, shown, None)?;
            PublishedRecords {
                records: vec![Arc::new(lists)],
                ..published
            }
        }
        FingerprintRows::Records => {
            let repeated = (0..).zip(lengths);
            let of_row = repeated.flat_map(|(at, n): (u32, usize)| std::iter::repeat_n(at, n));
            let of_row = UInt32Array::from_iter_values(of_row);
            let tuples = published.tuple_of_record.values();
            let tuple_of_record = of_row.values().iter().map(|at| tuples[*at as usize]);
            PublishedRecords {
                tuple_of_record: UInt32Array::from_iter_values(tuple_of_record),
                individual: take(&published.individual, &of_row, None)?,
                records: vec![shown],
                tuples: published.tuples,
            }
        }
    })
}
