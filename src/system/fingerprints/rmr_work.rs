//! RMR, a baseline for comparison: classes first, then labels that m values of do not single out anybody in them.

use std::collections::HashMap;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err, internal_err};

use super::sets::{Cluster, Rmr};
use super::work::{SensitiveLabels, leaves, with_labels, with_one_record};
use crate::algorithm::{Algorithm, Classes};
use crate::model::{Member, Model};
use crate::system::sensitive_tree;
use crate::system::work::{BlockProposal, BlockWork, WorkContext, individuals, learned_of};
use crate::table::coding::{Domains, EncodedBlock, Ladder, publish};
use crate::table::{Block, Fingerprints};

/// Forms classes, merges them, generalizes the fingerprints of each, publishes and verifies them.
pub(crate) struct RmrWork {
    context: WorkContext,
    model: Box<dyn Model>,
    algorithm: Box<dyn Algorithm>,
    rmr: Rmr,
    labels: SensitiveLabels,
}

impl RmrWork {
    pub fn try_new(context: WorkContext) -> Result<Self> {
        let spec = &context.spec;
        let Some(taxonomy) = sensitive_tree(spec) else {
            return internal_err!("the sensitive column has no hierarchy");
        };
        let parameters = spec.model_parameters()?;
        let missing = |_| internal_datafusion_err!("k, m and delta are required");
        let k = parameters.integer("k").map_err(missing)? as usize;
        let m = parameters.integer("m").map_err(missing)? as usize;
        let delta = parameters.ratio("delta").map_err(missing)?;
        Ok(Self {
            model: spec.model()?,
            algorithm: spec.algorithm()?,
            rmr: Rmr::new(k, m, delta),
            labels: SensitiveLabels::new(taxonomy),
            context,
        })
    }

    fn clusters(&self, block: &Block, values: &[u64]) -> Result<Vec<Cluster>> {
        let cancel = &self.context.cancel;
        let formed = self
            .algorithm
            .form_classes(block, self.model.as_ref(), cancel);
        formed
            .and_then(|classes| {
                self.rmr
                    .anonymize(block, values, &classes, &self.labels.tree, cancel)
            })
            .map_err(|_| exec_datafusion_err!("cancelled"))
    }

    fn count(&self, block: &Block, classes: &Classes) {
        let metrics = &self.context.metrics;
        metrics.blocks.add(1);
        metrics.individuals.add(block.len());
        metrics.classes.add(classes.classes.len());
        metrics.suppressed.add(classes.suppressed.len());
        metrics.add_loss(block, classes, self.context.layout.qi_count());
    }
}

impl BlockWork for RmrWork {
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal> {
        let WorkContext {
            spec,
            layout,
            metrics,
            threads,
            ..
        } = &self.context;
        let individuals = individuals(&self.context, &rows);
        let (kinds, ladders) = (&layout.kinds, layout.ladders());
        let domains = learned_of(&rows)?;
        drop(rows);
        let mut encoded =
            EncodedBlock::try_new(&individuals, kinds, &ladders, &domains, &[], false, threads)?;
        encoded
            .block
            .set_fingerprints(leaves(&self.context.spec, &individuals));

        let timer = metrics.forming.timer();
        let clusters = self.clusters(&encoded.block, &values(&ladders, &domains))?;
        timer.done();
        let (sets, of) = numbered(&clusters, encoded.block.len());
        let classes = classes(clusters, &of);
        self.count(&encoded.block, &classes);

        let of = UInt32Array::from_iter_values(of.into_iter().map(Option::unwrap_or_default));
        let individuals = with_one_record(individuals, of)?;
        let published = publish(
            &individuals,
            &encoded,
            &classes.classes,
            &classes.nodes,
            kinds,
            layout.is_text(),
        )?;
        let published = with_labels(published, &sets, &self.labels, spec.fingerprint_rows())?;
        let infeasible = if classes.classes.is_empty() {
            let block = &encoded.block;
            let mut members = (0..block.len() as u32).map(|i| Member::of(block, i));
            self.model.feasible(&mut members).err()
        } else {
            None
        };
        Ok(BlockProposal {
            proposal: Box::new(published),
            individuals: individuals.len() as u64,
            infeasible,
        })
    }
}

/// How many values each column may have: the leaves of a given hierarchy, else what the whole table's domain has.
fn values(ladders: &[Option<Ladder>], domains: &Domains) -> Vec<u64> {
    let columns = ladders.iter().zip(&domains.0);
    let values = columns.map(|(ladder, domain)| match ladder {
        Some(Ladder::Tree(taxonomy)) => u64::from(taxonomy.tree().leaves()),
        _ => domain.steps() + 1,
    });
    values.collect()
}

/// The different published fingerprints, and the number of each individual's.
fn numbered(clusters: &[Cluster], individuals: usize) -> (Fingerprints, Vec<Option<u32>>) {
    let mut sets = Fingerprints::new();
    let mut numbers: HashMap<&[u32], u32> = HashMap::new();
    let mut of = vec![None; individuals];
    for cluster in clusters {
        for (member, set) in cluster.members.iter().zip(&cluster.sets) {
            let number = *numbers.entry(set).or_insert_with(|| {
                sets.push(&mut set.clone());
                sets.len() as u32 - 1
            });
            of[*member as usize] = Some(number);
        }
    }
    (sets, of)
}

fn classes(clusters: Vec<Cluster>, of: &[Option<u32>]) -> Classes {
    let left_out = (0..).zip(of).filter(|(_, set)| set.is_none());
    Classes {
        suppressed: left_out.map(|(individual, _)| individual).collect(),
        classes: clusters
            .into_iter()
            .map(|cluster| cluster.members)
            .collect(),
        ..Classes::default()
    }
}
