//! What a class publishes: intervals of attained values, sets of attained values, or nothing.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ListArray, StringArray, StructArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::class_rows::Class;
use super::encode::{EncodedBlock, IndividualArrays, QiArray};
use super::{Keys, Kind};
use crate::table::{NULL_CODE, QuasiIdentifier, ROOT};

/// What one class shows in one column.
enum Shown {
    /// Some members have a value and some do not.
    Nothing,
    /// No member has a value.
    Missing,
    /// The smallest and largest value, or all distinct ones: where their positions stand in [`Column::positions`].
    Values(Range<usize>),
}

/// What classes show in one column.
#[derive(Default)]
struct Column {
    classes: Vec<Shown>,
    positions: Vec<u32>,
}

impl Column {
    fn push(&mut self, positions: impl IntoIterator<Item = u32>) {
        let begin = self.positions.len();
        self.positions.extend(positions);
        let values = Shown::Values(begin..self.positions.len());
        self.classes.push(values);
    }

    /// NULL where nothing is shown.
    fn valid(&self) -> NullBuffer {
        let nothing = |shown: &Shown| matches!(shown, Shown::Nothing);
        self.classes.iter().map(|shown| !nothing(shown)).collect()
    }
}

/// One column of generalized values, one row per class.
pub(crate) fn generalize(
    individuals: &IndividualArrays,
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
    let shown = match &encoded.keys[column] {
        None => distinct(encoded, classes, column),
        Some(keys) => {
            let mut shown = Column::default();
            for class in classes {
                ends(qi, keys, class.members, &mut shown);
            }
            shown
        }
    };
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

fn ends(qi: &QiArray, keys: &Keys, class: &[u32], shown: &mut Column) {
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
        Some(_) if missing => shown.classes.push(Shown::Nothing),
        Some((lo, hi)) => shown.push([lo as u32, hi as u32]),
        None => shown.classes.push(Shown::Missing),
    }
}

fn distinct(encoded: &EncodedBlock, classes: &[Class<'_>], column: usize) -> Column {
    let mut shown = Column::default();
    let QuasiIdentifier::Categorical(coded) = &encoded.block.quasi_identifiers()[column] else {
        shown.classes.resize_with(classes.len(), || Shown::Nothing);
        return shown;
    };
    let at = |code: &u32| encoded.representatives[column][*code as usize];
    let mut codes = vec![];
    for class in classes {
        codes.clear();
        for i in class.members {
            match coded.of(*i) {
                // Most members have the value of the one before.
                [code] if codes.last() == Some(code) => {}
                own => codes.extend_from_slice(own),
            }
        }
        codes.sort_unstable();
        codes.dedup();
        match codes.last() {
            Some(&NULL_CODE) if codes.len() > 1 => shown.classes.push(Shown::Nothing),
            Some(&NULL_CODE) | None => shown.classes.push(Shown::Missing),
            _ => shown.push(codes.iter().map(at)),
        }
    }
    shown
}

/// The fields of a published interval, both ends inclusive.
pub fn interval_fields(value: &DataType) -> Fields {
    Fields::from(vec![
        Field::new("lo", value.clone(), true),
        Field::new("hi", value.clone(), true),
    ])
}

/// Typed intervals: NULL is suppressed, `{NULL, NULL}` is missing.
fn intervals(values: &ArrayRef, shown: &Column) -> Result<ArrayRef, ArrowError> {
    let end = |which: usize| {
        let at = shown.classes.iter().map(|s| match s {
            Shown::Values(v) => Some(shown.positions[v.start + which]),
            _ => None,
        });
        take(values, &at.collect::<UInt32Array>(), None)
    };
    let (lo, hi) = (end(0)?, end(1)?);
    let fields = interval_fields(values.data_type());
    Ok(Arc::new(StructArray::try_new(
        fields,
        vec![lo, hi],
        Some(shown.valid()),
    )?))
}

/// Typed sets: NULL is suppressed, `[NULL]` is missing.
fn lists(values: &ArrayRef, shown: &Column) -> Result<ArrayRef, ArrowError> {
    let mut at: Vec<Option<u32>> = vec![];
    let mut lengths = Vec::with_capacity(shown.classes.len());
    for s in &shown.classes {
        let begin = at.len();
        match s {
            Shown::Nothing => {}
            Shown::Missing => at.push(None),
            Shown::Values(v) => at.extend(shown.positions[v.clone()].iter().copied().map(Some)),
        }
        lengths.push(at.len() - begin);
    }
    let items = take(values, &UInt32Array::from(at), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        items,
        Some(shown.valid()),
    )?))
}

/// Text: `34`, `[33, 34]`, `{10070, 10073}`; `*` is suppressed, NULL is missing.
fn texts(values: &ArrayRef, shown: &Column, kind: Kind) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::default();
    let format = ArrayFormatter::try_new(values.as_ref(), &options)?;
    let print = |at: &u32| format.value(*at as usize).to_string();
    let texts = shown.classes.iter().map(|s| match s {
        Shown::Nothing => Some("*".to_owned()),
        Shown::Missing => None,
        Shown::Values(v) => {
            let at = shown.positions[v.clone()].iter();
            let mut printed: Vec<String> = at.map(print).collect();
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
