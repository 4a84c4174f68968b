//! What is learned of the whole table before blocks are formed, and how rows find their block.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{filter_record_batch, partition, take, take_record_batch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::{Result, exec_datafusion_err};

use super::buckets::SecretCounts;
use super::known::Known;
use super::layout::without_records;
use super::{Blocks, Layout, RowColumns, Stage, StatedDomain, has_records};
use crate::error;
use crate::spec::{BlockSize, NullSensitive, Spec};
use crate::table::coding::{Domain, Domains, Keys, Kind, Ladder, QiArray, mask_taxonomy};
use crate::table::{EXACT_VALUES, Profile, Router};

/// Learns from the rows of one partition.
pub(crate) trait Learner: Send {
    fn update(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Bytes of memory.
    fn size(&self) -> usize;

    /// What was learned, to be sent; `None` if it cannot be.
    fn into_bytes(self: Box<Self>) -> Option<Vec<u8>>;
}

/// Unites what all partitions learned.
pub(crate) trait Learned: Send {
    /// Adds what a partition learned.
    fn merge(&mut self, bytes: &[u8]) -> Result<()>;

    /// Bytes of memory.
    fn size(&self) -> usize;

    /// How rows find their block.
    fn routes(self: Box<Self>, place: &BlockPlace<'_>) -> Result<Box<dyn Routes>>;
}

/// For which call, and over which columns, rows are given blocks.
pub(crate) struct BlockPlace<'a> {
    pub spec: &'a Arc<Spec>,
    pub layout: &'a Arc<Layout>,
    pub stated: &'a Arc<Vec<Option<StatedDomain>>>,
}

/// Gives rows their block.
pub(crate) trait Routes: Debug + Send + Sync {
    /// What blocks need to know of the whole table. Every row carries it.
    fn told(&self) -> Result<Vec<u8>>;

    /// Bytes of memory that are used as long as rows come.
    fn size(&self) -> usize {
        0
    }

    /// The blocks of individuals, or of records where these know their block. Counts, per quasi-identifier, how many have a
    /// value outside its stated domain.
    fn route(&self, batch: &RecordBatch, outside: &mut [u64]) -> Result<Routed>;

    /// After the last row of one of so many partitions.
    fn finish(&self, _partitions: usize) -> Result<()> {
        Ok(())
    }
}

/// The blocks of some rows, and the further column that the system's rows of blocks have.
pub(crate) struct Routed {
    pub blocks: UInt32Array,
    pub further: Option<ArrayRef>,
}

/// An error where what other partitions learned is not what they sent.
pub(super) fn unreadable() -> datafusion::common::DataFusionError {
    exec_datafusion_err!("a profile cannot be read")
}

/// Learns the domains of the quasi-identifiers and a sample of individuals; and how often secret values occur, where blocks
/// must be diverse each.
pub(super) struct DomainLearner {
    spec: Arc<Spec>,
    kinds: Vec<Kind>,
    profile: Profile,
    secrets: Option<SecretCounts>,
}

impl DomainLearner {
    /// Counts also secret values, if it is given where to.
    pub fn try_new(
        spec: &Arc<Spec>,
        kinds: &[Kind],
        secrets: Option<SecretCounts>,
    ) -> Result<Self> {
        let one_row = spec.counts_records();
        Ok(Self {
            spec: Arc::clone(spec),
            kinds: kinds.to_vec(),
            profile: match spec.entry()?.blocks {
                Blocks::Random => Profile::counting(kinds, one_row),
                Blocks::Similar => Profile::new(kinds, one_row),
            },
            secrets,
        })
    }
}

impl Learner for DomainLearner {
    fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = match self.spec.profiles_individuals() {
            true => one_row_per_value(&self.spec, batch)?,
            false => complete(&self.spec, batch)?,
        };
        if let Some(secrets) = &mut self.secrets {
            secrets.update(&self.spec, &batch)?;
        }
        let batch = without_records(&self.spec, &batch)?;
        let batch = match self.spec.counts_records() {
            true => batch,
            false => one_row_per_run(&self.spec, &batch)?,
        };
        let rows = RowColumns::new(&self.spec, Stage::Tagged, batch.columns());
        self.profile.update(&self.kinds, rows.order(), rows.qi())?;
        Ok(())
    }

    fn size(&self) -> usize {
        self.profile.size() + self.secrets.as_ref().map_or(0, SecretCounts::size)
    }

    fn into_bytes(mut self: Box<Self>) -> Option<Vec<u8>> {
        self.profile.finish();
        serde_json::to_vec(&(self.profile, self.secrets)).ok()
    }
}

/// The domains and the sample of the whole table.
pub(super) struct LearnedDomains {
    profile: Profile,
    secrets: Option<SecretCounts>,
}

impl LearnedDomains {
    pub fn new(spec: &Spec, kinds: &[Kind]) -> Self {
        Self {
            profile: Profile::new(kinds, spec.counts_records()),
            secrets: None,
        }
    }
}

impl Learned for LearnedDomains {
    fn merge(&mut self, bytes: &[u8]) -> Result<()> {
        let (part, counts) = serde_json::from_slice(bytes).map_err(|_| unreadable())?;
        self.profile.merge(part);
        match (&mut self.secrets, counts) {
            (Some(all), Some(counts)) => all.merge(counts),
            (all, counts) => *all = all.take().or(counts),
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.profile.size() + self.secrets.as_ref().map_or(0, SecretCounts::size)
    }

    fn routes(self: Box<Self>, place: &BlockPlace<'_>) -> Result<Box<dyn Routes>> {
        let (spec, profile) = (place.spec, &self.profile);
        let mut domains = profile.domains();
        check_masks(spec, place.layout, &domains)?;
        for (domain, stated) in domains.0.iter_mut().zip(place.stated.iter()) {
            if let Some(stated) = stated {
                domain.clone_from(&stated.domain);
            }
        }
        let size = match spec.block() {
            BlockSize::All => None,
            BlockSize::Individuals(n) => Some(n),
        };
        let router = match spec.entry()?.blocks {
            Blocks::Similar => Router::new(profile, &domains, size),
            Blocks::Random => {
                let size = match (size, &self.secrets) {
                    (Some(n), Some(secrets)) => secrets.block(spec, profile.individuals(), n)?,
                    (size, _) => size,
                };
                Router::random(profile, size)
            }
        };
        Ok(Box::new(DomainRoutes {
            spec: Arc::clone(spec),
            layout: Arc::clone(place.layout),
            stated: Arc::clone(place.stated),
            domains,
            router,
        }))
    }
}

/// Whether the columns to be masked can be.
fn check_masks(spec: &Spec, layout: &Layout, domains: &Domains) -> Result<()> {
    for (c, (ladder, domain)) in layout.ladders().iter().zip(&domains.0).enumerate() {
        let (Some(Ladder::Mask(characters)), Domain::Values(values)) = (ladder, domain) else {
            continue;
        };
        let refuse = |reason: String| {
            let message = format!("column '{}' cannot be masked: {reason}", layout.qi_name(c));
            Err(error::data(spec.function(), message))
        };
        if values.len() > EXACT_VALUES {
            return refuse(format!(
                "it has more than {EXACT_VALUES} values; give a hierarchy"
            ));
        }
        if let Err(reason) = mask_taxonomy(values.iter(), characters) {
            return refuse(format!("as a hierarchy, {reason}"));
        }
    }
    Ok(())
}

/// Blocks are leaves of a tree over the sample, or parts of the random order.
#[derive(Debug)]
struct DomainRoutes {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    stated: Arc<Vec<Option<StatedDomain>>>,
    domains: Domains,
    router: Router,
}

impl Routes for DomainRoutes {
    fn told(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.domains)
            .map_err(|_| exec_datafusion_err!("the domains cannot be sent"))
    }

    fn route(&self, batch: &RecordBatch, outside: &mut [u64]) -> Result<Routed> {
        let stage = Stage::without_block(&self.spec);
        let rows = RowColumns::new(&self.spec, stage, batch.columns());
        let columns: Vec<QiArray> = rows
            .qi()
            .iter()
            .map(|column| QiArray::new(column, self.layout.covers()))
            .collect();
        // Random blocks look at no value.
        let looks = self.router.looks_at_values() || self.stated.iter().any(Option::is_some);
        let keys = columns
            .iter()
            .zip(&self.layout.kinds)
            .filter(|_| looks)
            .map(|(column, kind)| Keys::try_new(column.values(), *kind))
            .collect::<Result<Vec<_>, _>>()?;
        for (c, stated) in self.stated.iter().enumerate() {
            if let Some(stated) = stated {
                let is_outside = |i: &usize| {
                    columns[c]
                        .positions(*i)
                        .any(|at| !stated.contains(&keys[c], at))
                };
                outside[c] += (0..batch.num_rows()).filter(is_outside).count() as u64;
            }
        }
        let orders = rows.order().values();
        let blocks = orders.iter().enumerate().map(|(i, order)| {
            self.router
                .route(*order, &keys, |c| columns[c].positions(i).start)
        });
        Ok(Routed {
            blocks: UInt32Array::from_iter_values(blocks),
            further: None,
        })
    }
}

/// The records that are not left out for a missing value.
fn complete(spec: &Spec, batch: &RecordBatch) -> Result<RecordBatch> {
    if spec.null_sensitive == NullSensitive::Error || !has_records(spec, batch.schema_ref()) {
        return Ok(batch.clone());
    }
    let rows = RowColumns::new(spec, Stage::Tagged, batch.columns());
    let known = Known::new(spec, &rows).mask(rows.len());
    Ok(filter_record_batch(batch, &known)?)
}

/// Gathered individuals with a row for each value of their quasi-identifiers, where these are lists.
fn one_row_per_value(spec: &Spec, batch: &RecordBatch) -> Result<RecordBatch> {
    let batch = without_records(spec, batch)?;
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
fn one_row_per_run(spec: &Spec, batch: &RecordBatch) -> Result<RecordBatch> {
    if batch.num_rows() == 0 {
        return Ok(batch.clone());
    }
    // The pseudonym says no more than the order.
    let rows = RowColumns::new(spec, Stage::Tagged, batch.columns());
    let told_apart = [rows.order_column()].into_iter().chain(rows.qi());
    let told_apart: Vec<_> = told_apart.cloned().collect();
    let runs = partition(&told_apart)?.ranges();
    if runs.len() == batch.num_rows() {
        return Ok(batch.clone());
    }
    let firsts = UInt32Array::from_iter_values(runs.iter().map(|run| run.start as u32));
    Ok(take_record_batch(batch, &firsts)?)
}
