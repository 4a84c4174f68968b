//! Published rows as individuals, each with its tuple and its set of labels.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use hashbrown::HashMap;

use super::FingerprintViolation;
use super::tree::Tree;
use crate::check::codes::{codes, invalid};

/// Published rows, one per individual and published value, or one per individual with a list of them.
#[derive(Debug)]
pub struct ShownLabels {
    /// The different sets of labels, as places in the hierarchy, ascending.
    pub(super) sets: Vec<Vec<u32>>,
    /// By class: the set of each individual, ascending.
    pub(super) classes: Vec<Vec<u32>>,
    pub(super) tree: Tree,
    rows: usize,
    several_tuples: usize,
    repeated_rows: usize,
    without_value: usize,
    foreign_labels: usize,
}
/// A set of labels, and how many of a class have it.
pub(super) type Counted<'a> = (&'a [u32], usize);

impl ShownLabels {
    /// Groups rows of pseudonym, quasi-identifiers and published label or list of labels, with the hierarchy as rows of
    /// label and parent (NULL for the root).
    pub fn from_columns(
        qi: &[ArrayRef],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
        labels: &ArrayRef,
        parents: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        if qi.iter().any(|column| column.len() != individual.len()) {
            return invalid("verify: the published columns differ in length".to_string());
        }
        let rows: Vec<u32> = match qi.is_empty() {
            true => vec![0; individual.len()],
            false => (0..individual.len() as u32).collect(),
        };
        Self::try_new(qi, &rows, individual, sensitive, labels, parents)
    }

    /// As [`ShownLabels::from_columns`], for rows that refer to a list of published tuples: row `i` shows tuple
    /// `tuple_of_row[i]`.
    pub fn try_new(
        tuples: &[ArrayRef],
        tuple_of_row: &[u32],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
        labels: &ArrayRef,
        parents: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        let rows = tuple_of_row.len();
        if sensitive.len() != rows || individual.len() != rows {
            return invalid("verify: the published columns differ in length".to_string());
        }
        if labels.len() != parents.len() {
            return invalid("verify: the columns of the hierarchy differ in length".to_string());
        }
        let (classes, class_count) = match tuples.is_empty() {
            true => (
                vec![0; tuple_of_row.iter().max().map_or(0, |t| *t as usize + 1)],
                1,
            ),
            false => codes(tuples)?,
        };
        if tuple_of_row.iter().any(|t| *t as usize >= classes.len()) {
            return invalid("verify: a row shows a tuple that is not there".to_string());
        }
        let (numbers, tree) = hierarchy(labels, parents)?;
        let values = Values::try_new(sensitive)?;
        let (people, person_count) = codes(std::slice::from_ref(individual))?;
        let mut published = Self {
            sets: vec![],
            classes: vec![vec![]; class_count],
            tree,
            rows,
            several_tuples: 0,
            repeated_rows: 0,
            without_value: 0,
            foreign_labels: 0,
        };
        let mut persons = vec![Person::default(); person_count];
        // Person and label of each row, the labels of a person together in the end.
        let mut shown: Vec<(u32, u32)> = Vec::with_capacity(rows);
        for (row, tuple) in tuple_of_row.iter().enumerate() {
            let (person, class) = (&mut persons[people[row] as usize], classes[*tuple as usize]);
            let labels = values.of(row);
            if individual.is_null(row) || labels.is_empty() {
                published.without_value += 1;
                continue;
            }
            person.torn |= person.class.is_some_and(|known| known != class);
            person.class = Some(class);
            // With lists, an individual has one row.
            published.repeated_rows += usize::from(values.are_lists() && person.has_label);
            for at in labels {
                match values.text(at).map(|text| numbers.get(text)) {
                    None => published.without_value += 1,
                    Some(None) => published.foreign_labels += 1,
                    Some(Some(label)) => {
                        person.has_label = true;
                        shown.push((people[row], *label));
                    }
                }
            }
        }
        shown.sort_unstable();
        let all = shown.len();
        shown.dedup();
        published.repeated_rows += all - shown.len();
        let (mut known, mut labels): (HashMap<Vec<u32>, u32>, Vec<u32>) = Default::default();
        let mut shown = shown.as_slice();
        for (number, person) in (0..).zip(persons) {
            let own = shown.partition_point(|(of, _)| *of <= number);
            labels.clear();
            labels.extend(shown[..own].iter().map(|(_, label)| *label));
            shown = &shown[own..];
            let Some(class) = person.class else { continue };
            published.several_tuples += usize::from(person.torn);
            let next = known.len() as u32;
            let set = match known.get(labels.as_slice()) {
                Some(set) => *set,
                None => {
                    known.insert(labels.clone(), next);
                    next
                }
            };
            published.classes[class as usize].push(set);
        }
        published.sets = vec![vec![]; known.len()];
        for (labels, set) in known {
            published.sets[set as usize] = labels;
        }
        published.classes.retain(|class| !class.is_empty());
        published
            .classes
            .iter_mut()
            .for_each(|class| class.sort_unstable());
        Ok(published)
    }

    pub(super) fn check_form(&self) -> Result<(), FingerprintViolation> {
        use FingerprintViolation::*;
        match self {
            Self {
                without_value: rows @ 1..,
                ..
            } => Err(Missing { rows: *rows }),
            Self {
                foreign_labels: rows @ 1..,
                ..
            } => Err(ForeignLabels { rows: *rows }),
            Self {
                several_tuples: individuals @ 1..,
                ..
            } => Err(SeveralTuples {
                individuals: *individuals,
            }),
            Self {
                repeated_rows: rows @ 1..,
                ..
            } => Err(RepeatedRows { rows: *rows }),
            _ => Ok(()),
        }
    }

    /// The different sets of a class.
    pub(super) fn count(&self, class: &[u32]) -> Vec<Counted<'_>> {
        let runs = class.chunk_by(|a, b| a == b);
        runs.map(|run| (self.sets[run[0] as usize].as_slice(), run.len()))
            .collect()
    }

    /// Published rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// What rows say of an individual.
#[derive(Debug, Clone, Copy, Default)]
struct Person {
    class: Option<u32>,
    torn: bool,
    has_label: bool,
}

/// The published labels of rows, one each or lists.
struct Values {
    texts: ArrayRef,
    lists: Option<OffsetBuffer<i32>>,
}

impl Values {
    fn try_new(sensitive: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(match sensitive.as_list_opt::<i32>() {
            Some(lists) => Self {
                texts: cast(lists.values(), &DataType::Utf8)?,
                lists: Some(lists.offsets().clone()),
            },
            None => Self {
                texts: cast(sensitive, &DataType::Utf8)?,
                lists: None,
            },
        })
    }

    fn are_lists(&self) -> bool {
        self.lists.is_some()
    }

    /// Where the labels of a row are.
    fn of(&self, row: usize) -> std::ops::Range<usize> {
        match &self.lists {
            Some(lists) => lists[row] as usize..lists[row + 1] as usize,
            None => row..row + 1,
        }
    }

    fn text(&self, at: usize) -> Option<&str> {
        let texts = self.texts.as_string::<i32>();
        texts.is_valid(at).then(|| texts.value(at))
    }
}

/// The place of each label, and which lie below which.
fn hierarchy(
    labels: &ArrayRef,
    parents: &ArrayRef,
) -> Result<(HashMap<String, u32>, Tree), ArrowError> {
    let (labels, parents) = (
        cast(labels, &DataType::Utf8)?,
        cast(parents, &DataType::Utf8)?,
    );
    let (labels, parents) = (labels.as_string::<i32>(), parents.as_string::<i32>());
    let mut numbers = HashMap::new();
    for label in labels.iter().flatten() {
        let next = numbers.len() as u32;
        if numbers.insert(label.to_owned(), next).is_some() {
            return invalid("verify: a label of the hierarchy has two rows".to_string());
        }
    }
    let mut above = vec![None; numbers.len()];
    for (label, parent) in labels.iter().zip(parents.iter()) {
        let Some(number) = label.and_then(|label| numbers.get(label)) else {
            return invalid("verify: a row of the hierarchy has no label".to_string());
        };
        above[*number as usize] = match parent {
            None => None,
            Some(parent) => match numbers.get(parent) {
                Some(parent) => Some(*parent),
                None => return invalid("verify: a parent in the hierarchy has no row".to_string()),
            },
        };
    }
    let tree = Tree::try_new(&above)?;
    Ok((numbers, tree))
}
