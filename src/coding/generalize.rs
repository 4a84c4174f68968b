//! What a class publishes: intervals of attained values, sets of attained values, or nothing.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ListArray, StringArray, StructArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::encode::{EncodedBlock, Individuals, QiColumn};
use super::publish::Class;
use super::{Keys, Kind};
use crate::table::{NULL_CODE, QuasiIdentifier, ROOT};

/// What one class shows in one column.
enum Shown {
    /// Some members have a value and some do not.
    Nothing,
    /// No member has a value.
    Missing,
    /// Positions of the smallest and largest, or of all distinct values.
    Values(Vec<u32>),
}

/// One column of generalized values, one row per class.
pub(super) fn generalize(
    individuals: &Individuals,
    encoded: &EncodedBlock,
    classes: &[Class<'_>],
    column: usize,
    kind: Kind,
    text: bool,
) -> Result<ArrayRef, ArrowError> {
    if let Some(labels) = labels(encoded, classes, column) {
        return Ok(labels);
    }
    let qi = &individuals.qi[column];
    let shown: Vec<Shown> = classes
        .iter()
        .map(|class| match kind {
            Kind::Categorical | Kind::Masked => distinct(encoded, class.members, column),
            Kind::Integer | Kind::Real => ends(qi, &encoded.keys[column], class.members),
        })
        .collect();
    match (text, kind) {
        (true, _) => texts(qi.values(), &shown, kind),
        (false, Kind::Categorical | Kind::Masked) => lists(qi.values(), &shown),
        (false, _) => intervals(qi.values(), &shown),
    }
}

/// Labels of a column with a hierarchy: that of its root is suppressed, NULL is missing.
fn labels(encoded: &EncodedBlock, classes: &[Class<'_>], column: usize) -> Option<ArrayRef> {
    let taxonomy = encoded.taxonomies[column].as_ref()?;
    let QuasiIdentifier::Hierarchical(coded) = &encoded.block.quasi_identifiers()[column] else {
        return None;
    };
    let label = |class: &Class<'_>| {
        let lo = class.members.iter().map(|i| coded.lo[*i as usize]);
        let hi = class.members.iter().map(|i| coded.hi[*i as usize]).max()?;
        let first = lo.clone().min().filter(|lo| *lo != NULL_CODE)?;
        Some(match lo.max() {
            Some(NULL_CODE) => taxonomy.label(ROOT),
            _ if hi == NULL_CODE => taxonomy.label(ROOT),
            _ => {
                let smallest = taxonomy.tree().covering(first, hi);
                let chosen = class.nodes.get(column).copied().flatten();
                taxonomy.label(chosen.unwrap_or(smallest))
            }
        })
    };
    Some(Arc::new(classes.iter().map(label).collect::<StringArray>()))
}

fn ends(qi: &QiColumn, keys: &Keys, class: &[u32]) -> Shown {
    let (mut ends, mut missing) = (None::<(usize, usize)>, false);
    for at in class.iter().flat_map(|i| qi.positions(*i as usize)) {
        if keys.is_null(at) {
            missing = true;
            continue;
        }
        let (lo, hi) = ends.get_or_insert((at, at));
        if keys.cmp(at, *lo).is_lt() {
            *lo = at;
        }
        if keys.cmp(at, *hi).is_gt() {
            *hi = at;
        }
    }
    match ends {
        Some(_) if missing => Shown::Nothing,
        Some((lo, hi)) => Shown::Values(vec![lo as u32, hi as u32]),
        None => Shown::Missing,
    }
}

fn distinct(encoded: &EncodedBlock, class: &[u32], column: usize) -> Shown {
    let QuasiIdentifier::Categorical(coded) = &encoded.block.quasi_identifiers()[column] else {
        return Shown::Nothing;
    };
    let mut codes: Vec<u32> = class.iter().flat_map(|i| coded.of(*i)).copied().collect();
    codes.sort_unstable();
    codes.dedup();
    match codes.last() {
        Some(&NULL_CODE) if codes.len() > 1 => Shown::Nothing,
        Some(&NULL_CODE) | None => Shown::Missing,
        _ => {
            let at = |code: &u32| encoded.representatives[column][*code as usize];
            Shown::Values(codes.iter().map(at).collect())
        }
    }
}

/// The fields of a published interval, both ends inclusive.
pub fn interval_fields(value: &DataType) -> Fields {
    Fields::from(vec![
        Field::new("lo", value.clone(), true),
        Field::new("hi", value.clone(), true),
    ])
}

/// Typed intervals: NULL is suppressed, `{NULL, NULL}` is missing.
fn intervals(values: &ArrayRef, shown: &[Shown]) -> Result<ArrayRef, ArrowError> {
    let end = |which: usize| {
        let at = shown.iter().map(|s| match s {
            Shown::Values(v) => Some(v[which]),
            _ => None,
        });
        take(values, &at.collect::<UInt32Array>(), None)
    };
    let (lo, hi) = (end(0)?, end(1)?);
    let fields = interval_fields(values.data_type());
    let valid = NullBuffer::from_iter(shown.iter().map(|s| !matches!(s, Shown::Nothing)));
    Ok(Arc::new(StructArray::try_new(
        fields,
        vec![lo, hi],
        Some(valid),
    )?))
}

/// Typed sets: NULL is suppressed, `[NULL]` is missing.
fn lists(values: &ArrayRef, shown: &[Shown]) -> Result<ArrayRef, ArrowError> {
    let mut at: Vec<Option<u32>> = vec![];
    let mut lengths = Vec::with_capacity(shown.len());
    for s in shown {
        let begin = at.len();
        match s {
            Shown::Nothing => {}
            Shown::Missing => at.push(None),
            Shown::Values(v) => at.extend(v.iter().copied().map(Some)),
        }
        lengths.push(at.len() - begin);
    }
    let items = take(values, &UInt32Array::from(at), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let valid = NullBuffer::from_iter(shown.iter().map(|s| !matches!(s, Shown::Nothing)));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        items,
        Some(valid),
    )?))
}

/// Text: `34`, `[33, 34]`, `{10070, 10073}`; `*` is suppressed, NULL is missing.
fn texts(values: &ArrayRef, shown: &[Shown], kind: Kind) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let format = ArrayFormatter::try_new(values.as_ref(), &options)?;
    let print = |at: &u32| format.value(*at as usize).to_string();
    let texts = shown.iter().map(|s| match s {
        Shown::Nothing => Some("*".to_owned()),
        Shown::Missing => None,
        Shown::Values(v) => {
            let mut printed: Vec<String> = v.iter().map(print).collect();
            printed.dedup();
            Some(match (printed.len(), kind) {
                (1, _) => printed.remove(0),
                (_, Kind::Categorical | Kind::Masked) => format!("{{{}}}", printed.join(", ")),
                _ => format!("[{}]", printed.join(", ")),
            })
        }
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}
