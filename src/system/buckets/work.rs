//! Local groups and buckets: each individual says which of its values are secret (Li, He and Sun 2020).
//!
//! ```text
//!   individuals ──► People ──► anonymize ──► groups, buckets
//!                                               │
//!             individual, gid, qi …, x_bucketized, x_bid …    ──► verify ──► emitted
//! ```
//!
//! The whole of LGB runs inside a block, which is a random sample of the table: a bucket never crosses blocks, and no two
//! blocks share an id. A block in which a rule cannot hold ends the query; no rule is relaxed and nobody is left out for it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, MutableArrayData, RecordBatch, UInt32Array,
    UInt64Array, make_array, new_null_array,
};
use datafusion::arrow::compute::{concat, filter, is_not_null, or, take};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};

use super::group_rows::{GroupCell, GroupRows, LocalGroup, exact_values, publish_groups};
use super::lgb::{
    Anonymized, Buckets, GroupLoss, LgbInput, QiInput, Refusal, Request, Rule, SecretCells,
    SensitiveInput, SmallPattern, Strategy, Treatment, Unworkable, ValueOrder, anonymize,
};
use crate::check::{BucketTable, LocalColumn, Refused, ShownPeople, Verified, Verifier};
use crate::engine::threads::Threads;
use crate::error;
use crate::model::{Infeasible, Value};
use crate::spec::{IdSpace, LocalStrategy, Output, SmallPatterns};
use crate::system::work::{
    BlockProposal, BlockWork, Proposal, PublishedRows, WorkContext, individuals, learned_of,
};
use crate::system::{LocalRequirement, RecordColumns, SecretRule, blocks_of};
use crate::table::coding::{EncodedBlock, IndividualArrays, one_rank, value_ranks};

/// Forms local groups and buckets, publishes and verifies them.
pub(crate) struct BucketWork {
    context: WorkContext,
    requirement: LocalRequirement,
    request: Request,
}

/// The published columns of a block.
struct BucketRows {
    rows: usize,
    /// Per row of an individual the place of its group.
    groups: UInt32Array,
    columns: Vec<PublishedColumn>,
}

/// A published column.
enum PublishedColumn {
    /// One value per row.
    OfRows(ArrayRef),
    /// One value per group, for the rows of individuals; the others have none.
    OfGroups(ArrayRef),
}

/// An attribute with secret values, ready to be published.
struct SecretValues<'a> {
    /// The exact value of each individual.
    values: ArrayRef,
    ranks: &'a [u32],
    buckets: &'a Buckets,
    /// The published id of each bucket.
    ids: Vec<u64>,
}

/// The columns of an attribute: bucket ids and permuted values of the individuals' rows, then the values of the buckets
/// where those stand in rows of their own.
struct AttributeColumns {
    bucketized: ArrayRef,
    bid: ArrayRef,
    /// How many members of the bucket have the value, for rows of their own.
    individuals: Vec<u64>,
}

impl PublishedRows for BucketRows {
    fn len(&self) -> usize {
        self.rows
    }

    fn size(&self) -> usize {
        let columns = self.columns.iter().map(|column| match column {
            PublishedColumn::OfRows(values) | PublishedColumn::OfGroups(values) => {
                values.get_array_memory_size()
            }
        });
        columns.sum::<usize>() + self.groups.get_array_memory_size()
    }

    fn columns(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        let people = |row: usize| row.min(self.groups.len());
        let (first, last) = (people(rows.start), people(rows.end));
        let mut groups = self.groups.slice(first, last - first);
        if groups.len() < rows.len() {
            let none = std::iter::repeat_n(None, rows.len() - groups.len());
            groups = groups.iter().chain(none).collect();
        }
        let columns = self.columns.iter().map(|column| match column {
            PublishedColumn::OfRows(values) => copied(values, &rows),
            PublishedColumn::OfGroups(values) => take(values, &groups, None),
        });
        columns.collect()
    }
}

/// Some rows of a column, in buffers of their own.
fn copied(values: &ArrayRef, rows: &Range<usize>) -> Result<ArrayRef, ArrowError> {
    let values = values.to_data();
    let mut copy = MutableArrayData::new(vec![&values], false, rows.len());
    copy.try_extend(0, rows.start, rows.end)?;
    Ok(make_array(copy.freeze()))
}

impl BlockWork for BucketWork {
    fn run(&self, rows: RecordBatch) -> Result<BlockProposal> {
        let WorkContext {
            spec,
            layout,
            metrics,
            cancel,
            threads,
        } = &self.context;
        let block = blocks_of(&rows).value(0);
        let domains = learned_of(&rows)?;
        let individuals = individuals(&self.context, &rows);
        drop(rows);
        let (kinds, ladders) = (&layout.kinds, layout.ladders());
        // Sensitive values are bucketized by their ranks, not by fingerprints.
        let encoded =
            EncodedBlock::try_new(&individuals, kinds, &ladders, &domains, &[], false, threads)?;

        let timer = metrics.forming.timer();
        let people = self.people(&individuals, &encoded)?;
        let key = spec.key()?.of_block(block);
        let anonymized = anonymize(&people, &self.request, &key, threads, cancel)
            .map_err(|refusal| self.refused(&refusal, individuals.len()))?;
        timer.done();
        self.count(&people, &anonymized);

        let ids = IdSpace::new(spec.key()?, block);
        let groups = groups(&anonymized, &ids);
        let groups = publish_groups(
            &individuals,
            &encoded,
            groups,
            kinds,
            layout.is_text(),
            threads,
        )?;
        drop(encoded);
        let record = RecordColumns::new(spec, individuals.records.columns());
        let attributes = self.requirement.attributes.iter().enumerate();
        let attributes = threads.each(attributes.collect(), |(at, secret)| {
            let buckets = &anonymized.buckets[at];
            let id = |bucket: usize| ids.id(at as u32 + 1, bucket as u32);
            let values = match secret.qi {
                Some(qi) => exact_values(individuals.qi[qi].values(), ladders[qi].as_ref()),
                None => Arc::clone(&record.sensitive()[self.sensitive_at(at)]),
            };
            SecretValues {
                values,
                ranks: people.ranks(at),
                buckets,
                ids: (0..buckets.len()).map(id).collect(),
            }
        });
        let detached = spec.output() == Output::Detached;
        let published = threads.each(attributes.iter().collect(), |attribute| match detached {
            false => attribute.permuted(&groups.who),
            true => attribute.detached(&groups.who),
        });
        let published = published.into_iter().collect::<Result<Vec<_>, _>>()?;
        let infeasible = anonymized.groups.is_empty().then(|| Infeasible {
            parameter: "k",
            // No pattern, or not even all of them, has k members.
            best: Some(anonymized.patterns.largest)
                .filter(|largest| *largest >= 2)
                .map(|largest| Value::Integer(largest as u64)),
        });
        Ok(BlockProposal {
            proposal: Box::new(ProposedBuckets {
                groups,
                published,
                attributes: self.requirement.attributes.iter().map(|a| a.qi).collect(),
                detached,
            }),
            individuals: individuals.len() as u64,
            infeasible,
        })
    }
}

impl BucketWork {
    pub fn try_new(context: WorkContext) -> Result<Self> {
        let spec = &context.spec;
        let requirement = spec.local_requirement()?;
        let request = Request {
            k: requirement.k,
            strategy: match spec.strategy() {
                LocalStrategy::Ncp => Strategy::Ncp,
                LocalStrategy::Mdp => Strategy::Mdp,
            },
            small_pattern: match spec.small_pattern() {
                SmallPatterns::Drop => SmallPattern::Drop,
                SmallPatterns::Mask => SmallPattern::Mask,
            },
        };
        Ok(Self {
            requirement,
            request,
            context,
        })
    }

    /// The place of an attribute among the sensitive columns; it must be one of them.
    fn sensitive_at(&self, attribute: usize) -> usize {
        attribute - self.semi_sensitive()
    }

    /// Number of attributes that are quasi-identifiers.
    fn semi_sensitive(&self) -> usize {
        let attributes = self.requirement.attributes.iter();
        attributes.filter(|a| a.qi.is_some()).count()
    }

    fn people(&self, individuals: &IndividualArrays, encoded: &EncodedBlock) -> Result<LgbInput> {
        let WorkContext {
            spec,
            layout,
            threads,
            ..
        } = &self.context;
        let record = RecordColumns::new(spec, individuals.records.columns());
        let columns = encoded.block.quasi_identifiers().iter().enumerate();
        let ladders = layout.ladders();
        let columns = threads.each(columns.collect(), |(column, values)| {
            let mut attributes = self.requirement.attributes.iter().enumerate();
            let secret = attributes.find(|(_, a)| a.qi == Some(column));
            let ranks = encoded.ranks(column);
            let secret_cells = secret.map(|(at, attribute)| {
                // Missing flags became true before the records were gathered.
                let secret = record.flags()[at].as_boolean();
                let exact =
                    || exact_values(individuals.qi[column].values(), ladders[column].as_ref());
                let spelled = spec.normalize.then(|| one_rank(&ranks, &exact()));
                Ok::<_, ArrowError>(SecretCells {
                    secret: secret.values().iter().collect(),
                    ranks: spelled.transpose()?,
                    rule: rule(&attribute.rule, layout.is_ordered(column)),
                })
            });
            Ok::<_, ArrowError>(QiInput {
                values: Cow::Borrowed(values),
                ranks,
                secret_cells: secret_cells.transpose()?,
            })
        });
        let columns = columns.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut sensitive = vec![];
        let mut look_alikes = 0;
        let attributes = &self.requirement.attributes[self.semi_sensitive()..];
        for (at, attribute) in attributes.iter().enumerate() {
            let values = &record.sensitive()[at];
            let (ranks, alike) = value_ranks(values, spec.normalize)?;
            look_alikes += alike;
            let data_type = values.data_type();
            let rule = rule(
                &attribute.rule,
                data_type.is_numeric() || data_type.is_temporal(),
            );
            sensitive.push(SensitiveInput { ranks, rule });
        }
        self.context.metrics.look_alikes.add(look_alikes as usize);
        let full = encoded.block.full();
        let people = LgbInput::try_new(individuals.len(), columns, sensitive, full);
        people
            .map_err(|unworkable| self.refused(&Refusal::Unworkable(unworkable), individuals.len()))
    }

    /// Why a block cannot be published, and what can be asked instead.
    fn refused(
        &self,
        refusal: &Refusal,
        individuals: usize,
    ) -> datafusion::common::DataFusionError {
        let spec = &self.context.spec;
        let unworkable = match refusal {
            Refusal::Cancelled => return exec_datafusion_err!("cancelled"),
            Refusal::Unworkable(unworkable) => unworkable,
        };
        let name = |at: Option<super::lgb::AttributePlace>| {
            use super::lgb::AttributePlace::*;
            let name = match at? {
                QuasiIdentifier(column) => spec.qi().get(column)?,
                Sensitive(column) => spec.sensitive().get(column)?,
            };
            Some(name.as_str())
        };
        let Some(name) = name(unworkable.attribute()) else {
            return internal_datafusion_err!("{}: {unworkable}", spec.function());
        };
        let advice = match unworkable {
            Unworkable::Diversity { .. } | Unworkable::Closeness { .. } => format!(
                "; this holds for a block of {}, a larger block or block => 'all' may allow more",
                error::count(individuals as u64, "individual")
            ),
            _ => String::new(),
        };
        error::data(
            spec.function(),
            format!("secret values of column '{name}': {unworkable}{advice}"),
        )
    }

    fn count(&self, people: &LgbInput, anonymized: &Anonymized) {
        let metrics = &self.context.metrics;
        let loss = GroupLoss::of(people, anonymized);
        let dropped = anonymized.patterns.dropped.len();
        metrics.blocks.add(1);
        metrics.individuals.add(people.individuals());
        metrics.classes.add(anonymized.groups.len());
        metrics.suppressed.add(dropped);
        metrics.suppressed_records.add(dropped);
        let blank = |t: &Treatment| *t == Treatment::Blank;
        let patterns = anonymized.patterns.patterns.iter();
        let masked = patterns.filter(|p| p.treatments.iter().any(blank));
        metrics.masked.add(masked.map(|p| p.members.len()).sum());
        metrics
            .buckets
            .add(anonymized.buckets.iter().map(Buckets::len).sum());

        // In millionths of a cell that is generalized or blank; whoever is left out has lost all cells.
        let cells = (dropped * people.quasi_identifiers()) as u128;
        let lost = loss.penalty * 1_000_000 / u128::from(people.full().max(1));
        let published = u128::from(loss.cells) * 1_000_000;
        metrics.add_losses(lost, published, cells * 1_000_000);
    }
}

/// What a block would publish: groups, and the columns of each attribute with secret values.
struct ProposedBuckets {
    groups: GroupRows,
    published: Vec<AttributeColumns>,
    /// The place of each attribute among the quasi-identifiers, if it is one.
    attributes: Vec<Option<usize>>,
    /// Whether values of buckets stand in rows of their own.
    detached: bool,
}

impl Proposal for ProposedBuckets {
    fn verify(&self, verifier: &Verifier, threads: &Threads) -> Result<Verified, Refused> {
        let people = self.groups.who.len();
        // The bucket of each individual, and the values of the buckets.
        let local = |columns: &AttributeColumns| {
            let (bid, value) = (&columns.bid, &columns.bucketized);
            Ok::<_, ArrowError>(match columns.individuals.as_slice() {
                // Permuted: each row holds one value of a bucket.
                [] => {
                    let either = or(&is_not_null(bid)?, &is_not_null(value)?)?;
                    let table = BucketTable {
                        bucket: filter(bid, &either)?,
                        value: filter(value, &either)?,
                        individuals: ones(either.true_count()),
                    };
                    (Arc::clone(bid), table)
                }
                // In rows of their own, after those of the individuals.
                counts => {
                    let table = BucketTable {
                        bucket: bid.slice(people, counts.len()),
                        value: value.slice(people, counts.len()),
                        individuals: Arc::new(UInt64Array::from(counts.to_vec())),
                    };
                    (bid.slice(0, people), table)
                }
            })
        };
        let local = threads.each(self.published.iter().collect(), local);
        let local = local.into_iter().collect::<Result<Vec<_>, _>>()?;
        let shown = |qi: usize| {
            let (keys, values) = (
                self.groups.group_at.clone(),
                Arc::clone(&self.groups.qi[qi]),
            );
            let value: ArrayRef = Arc::new(DictionaryArray::try_new(keys, values)?);
            Ok::<_, ArrowError>(value)
        };
        let plain = (0..self.groups.qi.len()).filter(|qi| !self.attributes.contains(&Some(*qi)));
        let mut attributes = vec![];
        for ((qi, (bucket, table)), columns) in
            self.attributes.iter().zip(local).zip(&self.published)
        {
            attributes.push(LocalColumn {
                value: match qi {
                    Some(qi) => shown(*qi)?,
                    None => new_null_array(columns.bucketized.data_type(), people),
                },
                bucket,
                table: Some(table),
            });
        }
        verifier.check_people(ShownPeople {
            individual: Arc::clone(&self.groups.individual),
            plain: plain.map(shown).collect::<Result<_, _>>()?,
            attributes,
        })
    }

    /// The columns in the order of the published schema.
    fn into_rows(self: Box<Self>) -> Result<Box<dyn PublishedRows>> {
        let Self {
            groups,
            published,
            attributes,
            detached,
        } = *self;
        let extra: usize = published.iter().map(|p| p.individuals.len()).sum();
        let people = groups.who.len();
        let longer = |column: ArrayRef| match extra {
            0 => Ok(column),
            _ => concat(&[&column, &new_null_array(column.data_type(), extra)]),
        };
        let mut columns = vec![
            PublishedColumn::OfRows(longer(groups.individual)?),
            PublishedColumn::OfRows(longer(groups.group)?),
        ];
        // The rows of an attribute's values stand after those of the attributes before it.
        let mut before = 0;
        let mut own = vec![];
        for published in &published {
            let rows = published.individuals.len();
            let place = |column: &ArrayRef| match extra {
                0 => Ok(Arc::clone(column)),
                _ => {
                    let (first, rest) = (column.slice(0, people), column.slice(people, rows));
                    let gap = |n: usize| new_null_array(column.data_type(), n);
                    concat(&[&first, &gap(before), &rest, &gap(extra - before - rows)])
                }
            };
            own.push([place(&published.bucketized)?, place(&published.bid)?]);
            before += rows;
        }
        let of_rows = |columns: &[ArrayRef; 2]| columns.clone().map(PublishedColumn::OfRows);
        for (column, value) in groups.qi.into_iter().enumerate() {
            columns.push(PublishedColumn::OfGroups(value));
            if let Some(at) = attributes.iter().position(|qi| *qi == Some(column)) {
                columns.extend(of_rows(&own[at]));
            }
        }
        for (qi, own) in attributes.iter().zip(&own) {
            if qi.is_none() {
                columns.extend(of_rows(own));
            }
        }
        if detached {
            let counts = published.iter().flat_map(|p| &p.individuals);
            let none = std::iter::repeat_n(None, people);
            let counts = none.chain(counts.map(|n| Some(*n)));
            let counts: UInt64Array = counts.collect();
            columns.push(PublishedColumn::OfRows(Arc::new(counts)));
        }
        Ok(Box::new(BucketRows {
            rows: people + extra,
            groups: groups.group_at,
            columns,
        }))
    }
}

impl SecretValues<'_> {
    fn bids(&self, who: &[u32]) -> UInt64Array {
        let bid = |i: &u32| self.buckets.of(*i).map(|bucket| self.ids[bucket]);
        who.iter().map(bid).collect()
    }

    /// Each row shows the value of a random member of its bucket.
    fn permuted(&self, who: &[u32]) -> Result<AttributeColumns, ArrowError> {
        let donor = |i: &u32| self.buckets.shown(*i);
        let donors: UInt32Array = who.iter().map(donor).collect();
        Ok(AttributeColumns {
            bucketized: take(&self.values, &donors, None)?,
            bid: Arc::new(self.bids(who)),
            individuals: vec![],
        })
    }

    /// Rows show ids only; further rows hold the values of each bucket, by id and then by value.
    fn detached(&self, who: &[u32]) -> Result<AttributeColumns, ArrowError> {
        let mut order: Vec<usize> = (0..self.buckets.len()).collect();
        order.sort_unstable_by_key(|bucket| self.ids[*bucket]);
        let (mut at, mut bids, mut individuals) = (vec![None; who.len()], vec![], vec![]);
        let mut members = vec![];
        // Each value as it is, also where its spellings count as one.
        let (exact, _) = value_ranks(&self.values, false)?;
        let exact = |member: &u32| exact[*member as usize];
        for bucket in order {
            members.clear();
            members.extend_from_slice(self.buckets.members(bucket));
            let rank = |member: &u32| self.ranks[*member as usize];
            members.sort_unstable_by_key(|member| (rank(member), exact(member), *member));
            for same in members.chunk_by(|a, b| exact(a) == exact(b)) {
                at.push(Some(same[0]));
                bids.push(self.ids[bucket]);
                individuals.push(same.len() as u64);
            }
        }
        Ok(AttributeColumns {
            bucketized: take(&self.values, &UInt32Array::from(at), None)?,
            bid: concat(&[&self.bids(who), &UInt64Array::from(bids)])?,
            individuals,
        })
    }
}

fn rule(rule: &SecretRule, ordered: bool) -> Rule {
    match rule {
        SecretRule::Diversity(l) => Rule::Diversity { l: *l },
        SecretRule::Closeness(_, t) => Rule::Closeness {
            t: *t,
            order: if ordered {
                ValueOrder::Numeric
            } else {
                ValueOrder::Nominal
            },
            // The block is the whole table wherever buckets are compared with it.
            reference: None,
        },
    }
}

fn groups(anonymized: &Anonymized, ids: &IdSpace) -> Vec<LocalGroup> {
    let cell = |treatment: &Treatment| match treatment {
        Treatment::Generalized => GroupCell::Generalized,
        Treatment::Bucketized => GroupCell::Secret,
        Treatment::Blank => GroupCell::Blank,
    };
    let group = |(at, group): (usize, &super::lgb::Group)| {
        let pattern = &anonymized.patterns.patterns[group.pattern];
        LocalGroup {
            id: ids.id(0, at as u32),
            members: group.members.clone(),
            cells: pattern.treatments.iter().map(cell).collect(),
        }
    };
    anonymized.groups.iter().enumerate().map(group).collect()
}

fn ones(rows: usize) -> ArrayRef {
    Arc::new(UInt64Array::from(vec![1; rows]))
}
