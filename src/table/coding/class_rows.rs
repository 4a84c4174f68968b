//! From classes to published records.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Scalar, StringBuilder, UInt32Array, new_null_array,
};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{is_not_null, take};
use datafusion::arrow::error::ArrowError;

use super::generalize::generalize;
use super::{EncodedBlock, IndividualArrays, Kind};

/// The published records of one block.
#[derive(Debug)]
pub struct PublishedRecords {
    /// Generalized quasi-identifiers, one row per class.
    pub tuples: Vec<ArrayRef>,
    /// The row of `tuples` that each record shows.
    pub tuple_of_record: UInt32Array,
    /// The pseudonym of each record.
    pub individual: ArrayRef,
    /// The sensitive value of each record, then kept columns.
    pub records: Vec<ArrayRef>,
}

impl PublishedRecords {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.tuple_of_record.len()
    }

    /// The published columns of some records, in buffers of their own.
    pub fn columns(&self, records: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        let tuple_of_record = self.tuple_of_record.slice(records.start, records.len());
        let tuples = self
            .tuples
            .iter()
            .map(|tuple| take(tuple, &tuple_of_record, None));
        let at = UInt32Array::from_iter_values(records.map(|record| record as u32));
        let per_record = [&self.individual].into_iter().chain(&self.records);
        let mut columns = per_record
            .map(|c| take(c, &at, None))
            .collect::<Result<Vec<_>, _>>()?;
        // The pseudonym comes first, then the quasi-identifiers.
        columns.splice(1..1, tuples.collect::<Result<Vec<_>, _>>()?);
        Ok(columns)
    }
}

/// A class to publish.
pub(crate) struct Class<'a> {
    pub members: &'a [u32],
    /// Per column the node to publish where that is not the smallest; may be empty.
    pub nodes: &'a [Option<u32>],
}

impl<'a> Class<'a> {
    /// A class that publishes the smallest nodes.
    pub fn of(members: &'a [u32]) -> Self {
        let nodes = &[];
        Self { members, nodes }
    }
}

/// Publishes classes, with the `nodes` that they publish instead of the smallest ones, if any. Classes, and individuals in a class, come in the order of their pseudonyms, which are random:
/// neither the order of the input nor that in which classes were formed can be seen.
pub fn publish(
    individuals: &IndividualArrays,
    encoded: &EncodedBlock,
    classes: &[Vec<u32>],
    nodes: &[Vec<Option<u32>>],
    kinds: &[Kind],
    text: bool,
) -> Result<PublishedRecords, ArrowError> {
    let pseudonym = |i: u32| individuals.pseudonyms.value(i as usize);
    let mut sorted: Vec<(Vec<u32>, usize)> = classes.iter().cloned().zip(0..).collect();
    for (members, _) in &mut sorted {
        members.sort_unstable_by_key(|i| pseudonym(*i));
    }
    let first = |members: &[u32]| members.first().map(|i| pseudonym(*i));
    sorted.sort_unstable_by(|(a, _), (b, _)| first(a).cmp(&first(b)));
    let classes: Vec<Class<'_>> = sorted
        .iter()
        .map(|(members, at)| Class {
            members,
            nodes: nodes.get(*at).map_or(&[], Vec::as_slice),
        })
        .collect();

    let tuples = (0..kinds.len())
        .map(|c| generalize(individuals, encoded, &classes, c, kinds[c], text))
        .collect::<Result<Vec<_>, _>>()?;

    let (mut tuple_of_record, mut at) = (vec![], vec![]);
    let (mut names, mut name) = (StringBuilder::new(), vec![]);
    for (tuple, class) in classes.iter().enumerate() {
        for i in class.members {
            let name = hex(pseudonym(*i), &mut name);
            for record in individuals.records_of(*i as usize) {
                tuple_of_record.push(tuple as u32);
                at.push(record as u32);
                names.append_value(name);
            }
        }
    }
    let at = UInt32Array::from(at);
    let records = individuals
        .records
        .columns()
        .iter()
        .map(|column| zero_under_nulls(&take(column, &at, None)?))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(PublishedRecords {
        tuples,
        tuple_of_record: tuple_of_record.into(),
        individual: Arc::new(names.finish()),
        records,
    })
}

/// The same values, with nothing left of whatever the input had in the slots of its NULLs.
fn zero_under_nulls(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if array.null_count() == 0 {
        return Ok(Arc::clone(array));
    }
    let null = Scalar::new(new_null_array(array.data_type(), 1));
    zip(&is_not_null(array)?, array, &null)
}

/// Bytes as lower-case hexadecimal digits, in a buffer.
pub(crate) fn hex<'a>(bytes: &[u8], text: &'a mut Vec<u8>) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.resize(2 * bytes.len(), 0);
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    // Digits are ASCII.
    std::str::from_utf8(text).unwrap_or_default()
}
