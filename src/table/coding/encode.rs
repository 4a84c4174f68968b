//! A block's individuals, from Arrow arrays to codes.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, ListArray, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use hashbrown::HashMap;
use unicode_normalization::UnicodeNormalization;

use super::key::Names;
use super::numbers::{Numbers, places};
use super::scale::Scale;
use super::{ColumnCategories, Domain, Domains, Keys, Kind, Ladder};
use crate::engine::threads::Threads;
use crate::table::{
    Block, Categorical, Fingerprints, Hierarchical, NULL_CODE, Numeric, QuasiIdentifier, Sensitive,
    Taxonomy,
};

/// The individuals of one block as the engine delivers them, sorted by their random order.
#[derive(Debug)]
pub struct IndividualArrays {
    /// The published pseudonyms.
    pub pseudonyms: FixedSizeBinaryArray,
    /// The quasi-identifiers.
    pub qi: Vec<QiArray>,
    /// Where each individual's records begin.
    pub record_offsets: OffsetBuffer<i32>,
    /// All records: the sensitive values, then kept columns.
    pub records: StructArray,
}

/// A quasi-identifier: one value per individual, or several where an individual's records disagree.
#[derive(Debug)]
pub struct QiArray {
    offsets: Option<OffsetBuffer<i32>>,
    values: ArrayRef,
}

impl QiArray {
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

impl IndividualArrays {
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
    /// Of columns that are measured, the numbers.
    pub(crate) keys: Vec<Option<Keys>>,
    /// For categorical columns, where a value of each code can be found.
    pub(super) representatives: Vec<Vec<u32>>,
    /// For columns with a hierarchy, its labels.
    pub(crate) taxonomies: Vec<Option<Arc<Taxonomy>>>,
    /// Sensitive values that differ from another one only in case, spacing or Unicode form.
    pub look_alikes: u64,
}

impl EncodedBlock {
    /// Codes a block, with the categories of each sensitive column that has them. With `normalize`, sensitive values
    /// that look alike get one code.
    pub fn try_new(
        individuals: &IndividualArrays,
        kinds: &[Kind],
        ladders: &[Option<Ladder>],
        domains: &Domains,
        sensitive: &[Option<ColumnCategories>],
        normalize: bool,
        threads: &Threads,
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
        let encoded = threads.each(numbers, encode);
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
    keys: Option<Keys>,
    representatives: Vec<u32>,
    taxonomy: Option<Arc<Taxonomy>>,
}

impl EncodedColumn {
    fn try_new(
        column: &QiArray,
        kind: Kind,
        ladder: Option<&Ladder>,
        domain: &Domain,
        step: u64,
        full: u64,
    ) -> Result<Self, ArrowError> {
        let keys = Keys::try_new(column.values(), kind)?;
        let (mut representatives, mut taxonomy) = (vec![], None);
        let coded = match (ladder, &keys) {
            (Some(ladder), _) => {
                let leaves = ladder.leaves(column.values(), &keys, domain, full)?;
                let code = |at: usize| Some(leaves.codes[at]).filter(|c| *c != NULL_CODE);
                let (lo, hi) = spans(column, code);
                taxonomy = Some(leaves.taxonomy);
                let tree = leaves.tree;
                QuasiIdentifier::Hierarchical(Hierarchical { lo, hi, tree })
            }
            (None, Keys::Bytes(names)) => {
                let (coded, at) = categorical(column, names, step);
                representatives = at;
                coded
            }
            (None, Keys::Integer(values)) => {
                let (lo, hi) = spans(column, |at| values.get(at).map(|v| domain.code_integer(v)));
                QuasiIdentifier::Numeric(Numeric { lo, hi, step })
            }
            (None, Keys::Real(values)) => {
                let (lo, hi) = spans(column, |at| values[at].map(|v| domain.code_real(v)));
                QuasiIdentifier::Numeric(Numeric { lo, hi, step })
            }
        };
        let measured = matches!(coded, QuasiIdentifier::Numeric(_));
        Ok(Self {
            coded,
            keys: measured.then_some(keys),
            representatives,
            taxonomy,
        })
    }
}

/// The smallest and largest code of each individual.
fn spans(column: &QiArray, code: impl Fn(usize) -> Option<u32>) -> (Vec<u32>, Vec<u32>) {
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
fn categorical(column: &QiArray, names: &Names, step: u64) -> (QuasiIdentifier, Vec<u32>) {
    let n = column.individuals();
    let Names { numbers, rows, .. } = names;
    let places = places(numbers.first.len(), |number| rows.row(number as usize));
    let mut representatives = vec![0; places.len()];
    for (place, first) in places.iter().zip(&numbers.first) {
        representatives[*place as usize] = *first;
    }
    let codes = numbers.placed(&places);
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
    individuals: &IndividualArrays,
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
    let numbers = Numbers::try_new(values)?;
    let (merged, look_alikes) = merged(&numbers, values, normalize)?;
    Ok((numbers.placed(&merged), look_alikes))
}

/// A code per different value, and how many of them look like another one. With `normalize`, these have the same code.
fn merged(
    numbers: &Numbers,
    values: &ArrayRef,
    normalize: bool,
) -> Result<(Vec<u32>, u64), ArrowError> {
    let different = (0..numbers.first.len() as u32).collect();
    if !values.data_type().is_string() {
        return Ok((different, 0));
    }
    let texts = cast(&numbers.values(values)?, &DataType::Utf8)?;
    let mut folded: HashMap<String, u32> = HashMap::new();
    let merged = texts.as_string::<i32>().iter().map(|text| {
        let next = folded.len() as u32;
        *folded.entry(fold(text.unwrap_or_default())).or_insert(next)
    });
    let merged: Vec<u32> = merged.collect();
    let look_alikes = (merged.len() - folded.len()) as u64;
    Ok((if normalize { merged } else { different }, look_alikes))
}

/// The rank of each value in the order of its type, and how many values look like another one. With `normalize`, values
/// that look alike have the rank of the smallest of them.
pub fn value_ranks(values: &ArrayRef, normalize: bool) -> Result<(Vec<u32>, u64), ArrowError> {
    let numbers = Numbers::try_new(values)?;
    let (merged, look_alikes) = merged(&numbers, values, normalize)?;
    let rows = numbers.rows(values)?;
    let row = |number: u32| rows.row(number as usize);
    let codes = merged.iter().max().map_or(0, |code| *code as usize + 1);
    let mut smallest: Vec<u32> = vec![NULL_CODE; codes];
    for (number, code) in (0..).zip(&merged) {
        let own = &mut smallest[*code as usize];
        if *own == NULL_CODE || row(number) < row(*own) {
            *own = number;
        }
    }
    let places = places(codes, |code| row(smallest[code as usize]));
    let ranks: Vec<u32> = merged.iter().map(|code| places[*code as usize]).collect();
    Ok((numbers.placed(&ranks), look_alikes))
}

/// Ranks of which values that look alike share the smallest.
pub fn one_rank(ranks: &[u32], values: &ArrayRef) -> Result<Vec<u32>, ArrowError> {
    let (codes, _) = value_ranks(values, true)?;
    let mut smallest: HashMap<u32, u32> = HashMap::new();
    for (code, rank) in codes.iter().zip(ranks) {
        let own = smallest.entry(*code).or_insert(*rank);
        *own = *rank.min(own);
    }
    Ok(codes.iter().map(|code| smallest[code]).collect())
}

/// The form in which two spellings of one value agree. By way of capitals, as two small letters may have the same one, and of
/// small letters before, as a letter and its capital may have another one (ß and ẞ have SS).
fn fold(text: &str) -> String {
    let composed: String = text.nfkc().collect();
    let letters = composed.to_lowercase().to_uppercase().to_lowercase();
    let letters: String = letters.nfkc().collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}
