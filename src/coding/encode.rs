//! A block's individuals, from Arrow arrays to codes.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, ListArray, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization;

use super::scale::Scale;
use super::{ColumnCategories, Domain, Domains, Keys, Kind, Ladder, key};
use crate::parallel::Crew;
use crate::table::{
    Block, Categorical, Fingerprints, Hierarchical, NULL_CODE, Numeric, QuasiIdentifier, Sensitive,
    Taxonomy,
};

/// The individuals of one block as the engine delivers them, sorted by their random order.
#[derive(Debug)]
pub struct Individuals {
    /// The published pseudonyms.
    pub pseudonyms: FixedSizeBinaryArray,
    /// The quasi-identifiers.
    pub qi: Vec<QiColumn>,
    /// Where each individual's records begin.
    pub record_offsets: OffsetBuffer<i32>,
    /// All records: the sensitive values, then kept columns.
    pub records: StructArray,
}

/// A quasi-identifier: one value per individual, or several where an individual's records disagree.
#[derive(Debug)]
pub struct QiColumn {
    offsets: Option<OffsetBuffer<i32>>,
    values: ArrayRef,
}

impl QiColumn {
    /// Takes a column of values, or of lists of values.
    pub fn new(array: &ArrayRef, lists: bool) -> Self {
        if lists {
            let (offsets, values) = own_values(array.as_list());
            Self {
                offsets: Some(offsets),
                values,
            }
        } else {
            Self {
                offsets: None,
                values: ArrayRef::clone(array),
            }
        }
    }

    /// All values.
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Number of individuals.
    fn individuals(&self) -> usize {
        match &self.offsets {
            Some(offsets) => offsets.len() - 1,
            None => self.values.len(),
        }
    }

    /// Positions of an individual's values.
    pub fn positions(&self, individual: usize) -> std::ops::Range<usize> {
        match &self.offsets {
            Some(offsets) => offsets[individual] as usize..offsets[individual + 1] as usize,
            None => individual..individual + 1,
        }
    }
}

/// The values of a list array and where each list begins, without values of other rows that its buffers may hold: codes
/// are given in the order of the values, and must not depend on how batches were cut.
pub fn own_values(lists: &ListArray) -> (OffsetBuffer<i32>, ArrayRef) {
    let offsets = lists.offsets();
    let (first, last) = (offsets[0], offsets[lists.len()]);
    let values = lists
        .values()
        .slice(first as usize, (last - first) as usize);
    let lengths = lists.offsets().lengths();
    (OffsetBuffer::from_lengths(lengths), values)
}

impl Individuals {
    /// Number of individuals.
    pub fn len(&self) -> usize {
        self.pseudonyms.len()
    }

    /// Positions of an individual's records.
    pub fn records_of(&self, individual: usize) -> std::ops::Range<usize> {
        self.record_offsets[individual] as usize..self.record_offsets[individual + 1] as usize
    }
}

/// A coded block with what is needed to publish it.
#[derive(Debug)]
pub struct EncodedBlock {
    /// What the algorithm sees.
    pub block: Block,
    /// Comparable values per quasi-identifier.
    pub(super) keys: Vec<Keys>,
    /// For categorical columns, where a value of each code can be found.
    pub(super) representatives: Vec<Vec<u32>>,
    /// For columns with a hierarchy, its labels.
    pub(super) taxonomies: Vec<Option<Arc<Taxonomy>>>,
    /// Sensitive values that differ from another one only in case, spacing or Unicode form.
    pub look_alikes: u64,
}

impl EncodedBlock {
    /// Codes a block, with the categories of each sensitive column that has them. With `normalize`, sensitive values
    /// that look alike get one code.
    pub fn try_new(
        individuals: &Individuals,
        kinds: &[Kind],
        ladders: &[Option<Ladder>],
        domains: &Domains,
        sensitive: &[Option<ColumnCategories>],
        normalize: bool,
        crew: &Crew,
    ) -> Result<Self, ArrowError> {
        let n = individuals.len();
        let records = (0..n).map(|i| individuals.records_of(i).len() as u32);
        let scale = Scale::new(domains, individuals.records.len() as u64);

        let encode = |c: usize| {
            let (domain, step) = (&domains.0[c], scale.steps[c]);
            let ladder = ladders[c].as_ref();
            EncodedColumn::try_new(
                &individuals.qi[c],
                kinds[c],
                ladder,
                domain,
                step,
                scale.full,
            )
        };
        let numbers: Vec<usize> = (0..individuals.qi.len()).collect();
        let encoded = crew.each(numbers, encode);
        let (mut columns, mut all_keys) = (vec![], vec![]);
        let (mut representatives, mut taxonomies) = (vec![], vec![]);
        for column in encoded {
            let column = column?;
            columns.push(column.coded);
            all_keys.push(column.keys);
            representatives.push(column.representatives);
            taxonomies.push(column.taxonomy);
        }

        let (fingerprints, look_alikes) = fingerprints(individuals, sensitive, normalize)?;
        Ok(Self {
            block: Block::new(columns, fingerprints, records.collect(), scale.full),
            keys: all_keys,
            representatives,
            taxonomies,
            look_alikes,
        })
    }
}

/// A coded quasi-identifier with what is needed to publish it.
struct EncodedColumn {
    coded: QuasiIdentifier,
    keys: Keys,
    representatives: Vec<u32>,
    taxonomy: Option<Arc<Taxonomy>>,
}

impl EncodedColumn {
    fn try_new(
        column: &QiColumn,
        kind: Kind,
        ladder: Option<&Ladder>,
        domain: &Domain,
        step: u64,
        full: u64,
    ) -> Result<Self, ArrowError> {
        let keys = Keys::try_new(column.values(), kind)?;
        let (mut representatives, mut taxonomy) = (vec![], None);
        let coded = match (ladder, kind) {
            (Some(ladder), _) => {
                let leaves = ladder.leaves(column.values(), &keys, domain, full)?;
                let code = |at: usize| Some(leaves.codes[at]).filter(|c| *c != NULL_CODE);
                let (lo, hi) = spans(column, code);
                taxonomy = Some(leaves.taxonomy);
                let tree = leaves.tree;
                QuasiIdentifier::Hierarchical(Hierarchical { lo, hi, tree })
            }
            (None, Kind::Categorical | Kind::Masked) => {
                let (coded, at) = categorical(column, &keys, step);
                representatives = at;
                coded
            }
            (None, Kind::Integer | Kind::Real) => {
                let (lo, hi) = spans(column, |at| match &keys {
                    Keys::Integer(values) => values[at].map(|v| domain.code_integer(v)),
                    Keys::Real(values) => values[at].map(|v| domain.code_real(v)),
                    Keys::Bytes(..) => None,
                });
                QuasiIdentifier::Numeric(Numeric { lo, hi, step })
            }
        };
        Ok(Self {
            coded,
            keys,
            representatives,
            taxonomy,
        })
    }
}

/// The smallest and largest code of each individual.
fn spans(column: &QiColumn, code: impl Fn(usize) -> Option<u32>) -> (Vec<u32>, Vec<u32>) {
    let n = column.individuals();
    let (mut lo, mut hi) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let (mut ends, mut missing) = (None, false);
        for at in column.positions(i) {
            match (code(at), ends) {
                (Some(c), None) => ends = Some((c, c)),
                (Some(c), Some((a, b))) => ends = Some((c.min(a), c.max(b))),
                (None, _) => missing = true,
            }
        }
        // An individual with and without a value ends at NULL: only full suppression covers both.
        let (a, b) = ends.unwrap_or((NULL_CODE, NULL_CODE));
        let b = if missing { NULL_CODE } else { b };
        lo.push(a);
        hi.push(b);
    }
    (lo, hi)
}

/// Codes follow the order of the values, so that sets of codes are published sorted.
fn categorical(column: &QiColumn, keys: &Keys, step: u64) -> (QuasiIdentifier, Vec<u32>) {
    let n = column.individuals();
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let mut found = vec![];
    let mut arrived = Vec::with_capacity(keys.len());
    for at in 0..keys.len() {
        let code = keys.bytes(at).map(|bytes| {
            *known.entry(bytes).or_insert_with(|| {
                found.push(at as u32);
                found.len() as u32 - 1
            })
        });
        arrived.push(code);
    }
    let mut sorted: Vec<u32> = (0..found.len() as u32).collect();
    sorted.sort_unstable_by_key(|code| keys.bytes(found[*code as usize] as usize));
    let representatives: Vec<u32> = sorted.iter().map(|code| found[*code as usize]).collect();
    let mut place = vec![0; found.len()];
    for (at, code) in (0..).zip(&sorted) {
        place[*code as usize] = at;
    }
    let codes: Vec<u32> = arrived
        .into_iter()
        .map(|code| code.map_or(NULL_CODE, |code| place[code as usize]))
        .collect();
    let mut offsets = vec![0];
    let mut flat = Vec::with_capacity(n);
    for i in 0..n {
        let begin = flat.len();
        flat.extend_from_slice(&codes[column.positions(i)]);
        flat[begin..].sort_unstable();
        offsets.push(flat.len() as u32);
    }
    let coded = Categorical {
        offsets,
        codes: flat,
        cardinality: representatives.len() as u32,
        step,
    };
    (QuasiIdentifier::Categorical(coded), representatives)
}

/// The fingerprints of all individuals, and how many sensitive values look like another one.
fn fingerprints(
    individuals: &Individuals,
    sensitive: &[Option<ColumnCategories>],
    normalize: bool,
) -> Result<(Fingerprints, u64), ArrowError> {
    let (mut coded, mut look_alikes) = (vec![], 0);
    for (categories, values) in sensitive.iter().zip(individuals.records.columns()) {
        let (codes, alike) = sensitive_codes(values, normalize)?;
        look_alikes += alike;
        let categories = categories.as_ref().map(|c| c.of(values)).transpose()?;
        coded.push((codes, categories));
    }
    let records = (0..individuals.len()).map(|i| individuals.records_of(i));
    if let [(codes, None)] = coded.as_slice() {
        let (mut fingerprints, mut fingerprint) = (Fingerprints::new(), vec![]);
        for records in records {
            fingerprint.clear();
            fingerprint.extend_from_slice(&codes[records]);
            fingerprints.push(&mut fingerprint);
        }
        return Ok((fingerprints, look_alikes));
    }
    let levels = sensitive
        .iter()
        .map(|c| c.as_ref().map_or(0, |c| c.categories));
    let mut fingerprints = Fingerprints::with_levels(levels.collect());
    let mut fingerprint = vec![];
    for records in records {
        fingerprint.clear();
        for (attribute, (codes, categories)) in (0u8..).zip(&coded) {
            fingerprint.extend(records.clone().map(|at| Sensitive {
                code: codes[at],
                attribute,
                category: categories.as_ref().map_or(NULL_CODE, |c| c[at]),
            }));
        }
        fingerprints.push_sensitive(&mut fingerprint);
    }
    Ok((fingerprints, look_alikes))
}

/// A code per sensitive value, and how many values look like another one.
fn sensitive_codes(values: &ArrayRef, normalize: bool) -> Result<(Vec<u32>, u64), ArrowError> {
    let rows = key::rows(std::slice::from_ref(values))?;
    let mut exact: HashMap<&[u8], u32> = HashMap::new();
    let mut first = vec![];
    let mut codes = Vec::with_capacity(rows.num_rows());
    for i in 0..rows.num_rows() {
        if values.is_null(i) {
            codes.push(NULL_CODE);
            continue;
        }
        let next = exact.len() as u32;
        let code = *exact.entry(rows.row(i).data()).or_insert(next);
        if code == next {
            first.push(i);
        }
        codes.push(code);
    }
    if *values.data_type() != DataType::Utf8 {
        return Ok((codes, 0));
    }
    let texts = values.as_string::<i32>();
    let mut folded: HashMap<String, u32> = HashMap::new();
    let merged: Vec<u32> = first
        .iter()
        .map(|i| {
            let next = folded.len() as u32;
            *folded.entry(fold(texts.value(*i))).or_insert(next)
        })
        .collect();
    let look_alikes = (merged.len() - folded.len()) as u64;
    if normalize && look_alikes > 0 {
        for code in codes.iter_mut().filter(|c| **c != NULL_CODE) {
            *code = merged[*code as usize];
        }
    }
    Ok((codes, look_alikes))
}

/// The rank of each value in the order of its type, and how many values look like another one. With `normalize`, values
/// that look alike have the rank of the smallest of them.
pub fn value_ranks(values: &ArrayRef, normalize: bool) -> Result<(Vec<u32>, u64), ArrowError> {
    let (codes, look_alikes) = sensitive_codes(values, normalize)?;
    let rows = key::rows(std::slice::from_ref(values))?;
    let known = codes.iter().filter(|c| **c != NULL_CODE).max();
    let mut smallest: Vec<u32> = vec![NULL_CODE; known.map_or(0, |c| *c as usize + 1)];
    for (i, code) in codes.iter().enumerate() {
        let Some(first) = smallest.get_mut(*code as usize) else {
            continue;
        };
        if *first == NULL_CODE || rows.row(i) < rows.row(*first as usize) {
            *first = i as u32;
        }
    }
    let mut order: Vec<u32> = (0..smallest.len() as u32).collect();
    let row = |code: &u32| rows.row(smallest[*code as usize] as usize);
    order.sort_unstable_by(|a, b| row(a).cmp(&row(b)));
    let mut rank_of = vec![0; order.len()];
    for (rank, code) in order.into_iter().enumerate() {
        rank_of[code as usize] = rank as u32;
    }
    let rank = |code: u32| rank_of.get(code as usize).copied().unwrap_or(NULL_CODE);
    Ok((codes.into_iter().map(rank).collect(), look_alikes))
}

/// The form in which two spellings of one value agree.
fn fold(text: &str) -> String {
    let composed: String = text.nfkc().collect();
    composed
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
