//! The checker of (k, l)-diversity: reads published rows and the hierarchy of the sensitive column, and nothing else.
//!
//! ```text
//!   pseudonym, QI tuple, published value      individuals, each with its tuple and its set of labels
//!   label, parent                             which labels lie below which
//!        └─► every set of labels is that of k individuals                            Gong et al. 2017, Def. 5 (1)
//!            at most 1/l of a class may have the same values                         Def. 5 (2), docs/papers.md M2
//!            at most 1/value_l, or not all, have a value, or something below or above it              M1
//!            how many of a class have the same set of labels                                          M6
//! ```
//!
//! Labels that do not occur in the hierarchy are a fault of form. Neither [`FingerprintsAttained`] nor
//! [`FingerprintViolation`] ever holds a label, a cell or a pseudonym.

mod combinations;

use std::collections::HashMap;
use std::fmt;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::codes::{codes, invalid};
use super::ratio::Ratio;

pub use self::combinations::{CombinationRequirement, CombinationViolation, verify_combinations};

/// Published rows, one per individual and published value, or one per individual with a list of them.
#[derive(Debug)]
pub struct PublishedFingerprints {
    /// The different sets of labels, as places in the hierarchy, ascending.
    sets: Vec<Vec<u32>>,
    /// By class: the set of each individual, ascending.
    classes: Vec<Vec<u32>>,
    tree: Tree,
    rows: usize,
    several_tuples: usize,
    repeated_rows: usize,
    without_value: usize,
    foreign_labels: usize,
}

/// What every release under (k, l)-diversity must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintRequirement {
    /// Individuals who share a published fingerprint.
    pub k: usize,
    /// At most one in l of a class may have the same values.
    pub l: usize,
    /// At most one in so many of a class have a value; not all of them, if it is not given.
    pub value_l: Option<usize>,
}

/// What a release that satisfies its requirement attains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FingerprintsAttained {
    /// Individuals.
    pub individuals: usize,
    /// Classes.
    pub classes: usize,
    /// Different published fingerprints.
    pub fingerprints: usize,
    /// Individuals with the rarest fingerprint.
    pub rarest_fingerprint: usize,
    /// The largest share of a class that may have the same values.
    pub largest_fingerprint_share: Ratio,
    /// The largest share of a class that has a published value, something below it or something above it.
    pub largest_value_share: Ratio,
    /// The fewest individuals of one class with the same fingerprint: what is left to a reader who knows both.
    pub fewest_in_common: usize,
    /// Individuals whose fingerprint nobody else of their class has.
    pub alone_in_common: usize,
}

/// Why a release must not be published. Holds counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FingerprintViolation {
    /// Individuals who show more than one tuple of quasi-identifiers.
    SeveralTuples {
        /// Such individuals.
        individuals: usize,
    },
    /// Rows that repeat a value of an individual: how often would tell individuals apart (docs/papers.md M3).
    RepeatedRows {
        /// Such rows.
        rows: usize,
    },
    /// Rows without a pseudonym or a value.
    Missing {
        /// Such rows.
        rows: usize,
    },
    /// Published labels that are not in the hierarchy.
    ForeignLabels {
        /// Such rows.
        rows: usize,
    },
    /// Fingerprints that too few share.
    RareFingerprints {
        /// Such fingerprints.
        fingerprints: usize,
        /// Individuals with the rarest.
        rarest: usize,
    },
    /// Classes in which too many may have the same values.
    FingerprintShare {
        /// Such classes.
        classes: usize,
        /// The largest share.
        share: Ratio,
    },
    /// Classes in which too many have a value.
    ValueShare {
        /// Such classes.
        classes: usize,
        /// The largest share.
        share: Ratio,
    },
}

/// Which labels lie below which: a walk enters a label, all below it, and leaves it.
#[derive(Debug)]
struct Tree {
    enter: Vec<u32>,
    leave: Vec<u32>,
    roots: Vec<bool>,
}

impl Tree {
    fn try_new(parents: &[Option<u32>]) -> Result<Self, ArrowError> {
        let mut children = vec![vec![]; parents.len()];
        for (label, parent) in (0..).zip(parents) {
            if let Some(parent) = parent {
                children[*parent as usize].push(label);
            }
        }
        let mut tree = Self {
            enter: vec![u32::MAX; parents.len()],
            leave: vec![0; parents.len()],
            roots: parents.iter().map(Option::is_none).collect(),
        };
        let mut entered = 0;
        let roots = (0..parents.len() as u32).filter(|label| parents[*label as usize].is_none());
        let mut open: Vec<(u32, bool)> = roots.map(|root| (root, false)).collect();
        while let Some((label, done)) = open.pop() {
            let at = label as usize;
            if done {
                tree.leave[at] = entered;
                continue;
            }
            tree.enter[at] = entered;
            entered += 1;
            open.push((label, true));
            open.extend(children[at].iter().map(|child| (*child, false)));
        }
        if (entered as usize) < parents.len() {
            return invalid("verify: labels of the hierarchy lie above themselves".to_string());
        }
        Ok(tree)
    }

    /// Whether one is the other, or lies above or below it.
    fn are_related(&self, a: u32, b: u32) -> bool {
        let above = |above: u32, below: u32| {
            let below = self.enter[below as usize];
            self.enter[above as usize] <= below && below < self.leave[above as usize]
        };
        above(a, b) || above(b, a)
    }

    fn has_related(&self, set: &[u32], label: u32) -> bool {
        set.iter().any(|own| self.are_related(*own, label))
    }

    /// Whether some set of values can be described by both: each label of one is related to one of the other.
    fn are_compatible(&self, a: &[u32], b: &[u32]) -> bool {
        a.iter().all(|label| self.has_related(b, *label))
            && b.iter().all(|label| self.has_related(a, *label))
    }
}

impl PublishedFingerprints {
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

    /// As [`PublishedFingerprints::from_columns`], for rows that refer to a list of published tuples: row `i` shows tuple
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
            published.repeated_rows += usize::from(values.are_lists() && !person.labels.is_empty());
            for at in labels {
                match values.text(at).map(|text| numbers.get(text)) {
                    None => published.without_value += 1,
                    Some(None) => published.foreign_labels += 1,
                    Some(Some(label)) => person.labels.push(*label),
                }
            }
        }
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        for mut person in persons {
            let Some(class) = person.class else { continue };
            let all = person.labels.len();
            person.labels.sort_unstable();
            person.labels.dedup();
            published.repeated_rows += all - person.labels.len();
            published.several_tuples += usize::from(person.torn);
            let next = known.len() as u32;
            let set = match known.get(&person.labels) {
                Some(set) => *set,
                None => {
                    known.insert(person.labels, next);
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

    fn check_form(&self) -> Result<(), FingerprintViolation> {
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

    /// Published rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
}

/// What rows say of an individual.
#[derive(Debug, Clone, Default)]
struct Person {
    class: Option<u32>,
    torn: bool,
    labels: Vec<u32>,
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

/// Checks a release against (k, l)-diversity.
///
/// A release without rows has nothing that could violate anything, and passes.
///
/// # Errors
///
/// The first [`FingerprintViolation`] in the order of the requirement's parts.
pub fn verify_fingerprints(
    published: &PublishedFingerprints,
    requirement: &FingerprintRequirement,
) -> Result<FingerprintsAttained, FingerprintViolation> {
    published.check_form()?;
    let mut holders = vec![0; published.sets.len()];
    for set in published.classes.iter().flatten() {
        holders[*set as usize] += 1;
    }
    let rarest = holders.iter().copied().min().unwrap_or(0);
    let rare = holders.iter().filter(|n| **n < requirement.k).count();
    if rare > 0 {
        return Err(FingerprintViolation::RareFingerprints {
            fingerprints: rare,
            rarest,
        });
    }
    let (mut fingerprint_share, mut value_share) = (Worst::default(), Worst::default());
    let (mut fewest, mut alone) = (usize::MAX, 0);
    for class in &published.classes {
        let counted = published.count(class);
        let n = class.len();
        fewest = counted.iter().map(|(_, n)| *n).fold(fewest, usize::min);
        alone += counted.iter().filter(|(_, n)| *n == 1).count();
        let most = most_alike(&counted, &published.tree);
        fingerprint_share.add(most, n, most * requirement.l <= n);
        let most = most_related(&counted, &published.tree);
        value_share.add(
            most,
            n,
            match requirement.value_l {
                Some(value_l) => most * value_l <= n,
                None => most < n,
            },
        );
    }
    if fingerprint_share.violating > 0 {
        return Err(FingerprintViolation::FingerprintShare {
            classes: fingerprint_share.violating,
            share: fingerprint_share.share(),
        });
    }
    if value_share.violating > 0 {
        return Err(FingerprintViolation::ValueShare {
            classes: value_share.violating,
            share: value_share.share(),
        });
    }
    Ok(FingerprintsAttained {
        individuals: published.classes.iter().map(Vec::len).sum(),
        classes: published.classes.len(),
        fingerprints: holders.len(),
        rarest_fingerprint: rarest,
        largest_fingerprint_share: fingerprint_share.share(),
        largest_value_share: value_share.share(),
        fewest_in_common: if published.classes.is_empty() {
            0
        } else {
            fewest
        },
        alone_in_common: alone,
    })
}

/// The largest share of any class, and how many classes have too large a one.
#[derive(Default)]
struct Worst {
    largest: Option<Ratio>,
    violating: usize,
}

impl Worst {
    fn add(&mut self, part: usize, whole: usize, holds: bool) {
        self.largest = self.largest.max(Some(Ratio::of(part, whole)));
        self.violating += usize::from(!holds);
    }

    fn share(&self) -> Ratio {
        self.largest.unwrap_or(Ratio::of(0, 1))
    }
}

/// A set of labels, and how many of a class have it.
type Counted<'a> = (&'a [u32], usize);

impl PublishedFingerprints {
    /// The different sets of a class.
    fn count(&self, class: &[u32]) -> Vec<Counted<'_>> {
        let runs = class.chunk_by(|a, b| a == b);
        runs.map(|run| (self.sets[run[0] as usize].as_slice(), run.len()))
            .collect()
    }
}

/// The most individuals whose labels can all describe one set of values. That is the heaviest group of fingerprints that
/// are compatible in pairs: the lowest labels of all of them describe such a set.
fn most_alike(counted: &[Counted<'_>], tree: &Tree) -> usize {
    let compatible = |a: usize, b: usize| tree.are_compatible(counted[a].0, counted[b].0);
    let mut neighbours = vec![vec![]; counted.len()];
    for a in 0..counted.len() {
        for b in a + 1..counted.len() {
            if compatible(a, b) {
                neighbours[a].push(b);
                neighbours[b].push(a);
            }
        }
    }
    let mut search = Heaviest {
        neighbours: &neighbours,
        weights: &counted.iter().map(|(_, n)| *n).collect::<Vec<_>>(),
        best: 0,
        steps: LIMIT,
    };
    // A group is found from its first member: all others are neighbours of it.
    for first in 0..counted.len() {
        let later = neighbours[first].iter().copied().filter(|at| *at > first);
        search.extend(counted[first].1, later.collect());
    }
    search.best
}

/// Steps of one search; beyond them the weight of all that is left counts as found, which is never too little.
const LIMIT: usize = 1 << 20;

/// The heaviest group of neighbours.
struct Heaviest<'a> {
    /// Ascending.
    neighbours: &'a [Vec<usize>],
    weights: &'a [usize],
    best: usize,
    steps: usize,
}

impl Heaviest<'_> {
    fn extend(&mut self, chosen: usize, mut open: Vec<usize>) {
        self.best = self.best.max(chosen);
        let mut rest: usize = open.iter().map(|at| self.weights[*at]).sum();
        while let Some(next) = open.pop() {
            let reachable = chosen + rest;
            if reachable <= self.best {
                return;
            }
            rest -= self.weights[next];
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                self.best = reachable;
                return;
            }
            let near = |at: &usize| self.neighbours[next].binary_search(at).is_ok();
            let common = open.iter().copied().filter(near).collect();
            self.extend(chosen + self.weights[next], common);
        }
    }
}

/// The most individuals who have a published label, or one below or above it. The root tells nothing.
fn most_related(counted: &[Counted<'_>], tree: &Tree) -> usize {
    let mut labels: Vec<u32> = counted.iter().flat_map(|(set, _)| *set).copied().collect();
    labels.sort_unstable();
    labels.dedup();
    let telling = labels.iter().filter(|label| !tree.roots[**label as usize]);
    let related = telling.map(|label| {
        let has = counted
            .iter()
            .filter(|(set, _)| tree.has_related(set, *label));
        has.map(|(_, n)| n).sum()
    });
    related.max().unwrap_or(0)
}

impl fmt::Display for FingerprintViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |share: &Ratio| (share.numerator(), share.denominator());
        match self {
            Self::SeveralTuples { individuals } => write!(
                f,
                "{individuals} individuals show more than one tuple of quasi-identifiers"
            ),
            Self::RepeatedRows { rows } => write!(f, "{rows} rows repeat a value of an individual"),
            Self::Missing { rows } => {
                write!(f, "{rows} rows have no pseudonym or no sensitive value")
            }
            Self::ForeignLabels { rows } => {
                write!(
                    f,
                    "{rows} rows show a sensitive value that the hierarchy does not have"
                )
            }
            Self::RareFingerprints {
                fingerprints,
                rarest,
            } => write!(
                f,
                "{fingerprints} published fingerprints are shared by too few individuals, the rarest by {rarest}"
            ),
            Self::FingerprintShare { classes, share } => {
                let (part, whole) = counted(share);
                write!(
                    f,
                    "{classes} classes have a fingerprint that too many may have, at worst {part} of {whole}"
                )
            }
            Self::ValueShare { classes, share } => {
                let (part, whole) = counted(share);
                write!(
                    f,
                    "{classes} classes have a sensitive value that too many may have, at worst {part} of {whole}"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ListBuilder, StringArray, StringBuilder};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn text(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    /// Figure 1: A, B and C with two diseases each.
    fn publish(rows: &[(&str, &str, &str)]) -> PublishedFingerprints {
        let labels = ["*", "A", "B", "C", "a1", "a2", "b1", "b2", "c1", "c2"];
        let parents = ["", "*", "*", "*", "A", "A", "B", "B", "C", "C"];
        let some = |values: &[&str]| -> Vec<Option<String>> {
            values
                .iter()
                .map(|v| Some(v.to_string()).filter(|v| !v.is_empty()))
                .collect()
        };
        let array = |values: &[&str]| -> ArrayRef { Arc::new(StringArray::from(some(values))) };
        let column = |n: usize| -> ArrayRef {
            array(&rows.iter().map(|r| [r.0, r.1, r.2][n]).collect::<Vec<_>>())
        };
        PublishedFingerprints::from_columns(
            &[column(1)],
            &column(0),
            &column(2),
            &array(&labels),
            &array(&parents),
        )
        .unwrap()
    }

    const TABLE_2B: [(&str, &str, &str); 8] = [
        ("bob", "1", "A"),
        ("bob", "1", "b2"),
        ("david", "1", "B"),
        ("simon", "1", "C"),
        ("tom", "2", "B"),
        ("daisy", "2", "A"),
        ("daisy", "2", "b2"),
        ("alice", "2", "C"),
    ];

    fn check(
        rows: &[(&str, &str, &str)],
        k: usize,
        l: usize,
        value_l: Option<usize>,
    ) -> Result<FingerprintsAttained, FingerprintViolation> {
        verify_fingerprints(&publish(rows), &FingerprintRequirement { k, l, value_l })
    }

    #[test]
    fn table_2b_is_2_3_diverse_and_its_values_are_not() {
        // M1: two of three have a disease of B.
        let attained = check(&TABLE_2B, 2, 3, None).unwrap();
        assert_eq!(
            attained,
            FingerprintsAttained {
                individuals: 6,
                classes: 2,
                fingerprints: 3,
                rarest_fingerprint: 2,
                largest_fingerprint_share: Ratio::of(1, 3),
                largest_value_share: Ratio::of(2, 3),
                fewest_in_common: 1,
                alone_in_common: 6,
            }
        );
        assert!(matches!(
            check(&TABLE_2B, 2, 3, Some(2)),
            Err(FingerprintViolation::ValueShare { classes: 2, .. })
        ));
        assert!(matches!(
            check(&TABLE_2B, 3, 3, None),
            Err(FingerprintViolation::RareFingerprints {
                fingerprints: 3,
                rarest: 2
            })
        ));
        assert!(matches!(
            check(&TABLE_2B, 2, 4, None),
            Err(FingerprintViolation::FingerprintShare { classes: 2, .. })
        ));
    }

    #[test]
    fn one_value_in_common_is_no_diversity() {
        // M1: three fingerprints, everybody has a1.
        let rows = [
            ("p", "1", "a1"),
            ("p", "1", "b1"),
            ("q", "1", "a1"),
            ("q", "1", "b2"),
            ("r", "1", "a1"),
            ("r", "1", "c1"),
        ];
        assert!(matches!(
            check(&rows, 1, 3, None),
            Err(FingerprintViolation::ValueShare { classes: 1, .. })
        ));
    }

    #[test]
    fn overlapping_labels_are_counted_together() {
        // M2: {A, b2}, {a1, b2} and {a1, B} can all be {a1, b2}; {a1} and {A, C} cannot.
        let rows = [
            ("p", "1", "A"),
            ("p", "1", "b2"),
            ("q", "1", "a1"),
            ("q", "1", "b2"),
            ("r", "1", "a1"),
            ("r", "1", "B"),
            ("s", "1", "C"),
            ("t", "1", "c1"),
            ("u", "1", "a1"),
        ];
        assert!(check(&rows, 1, 2, None).is_ok());
        assert!(matches!(
            check(&rows, 1, 3, None),
            Err(FingerprintViolation::FingerprintShare { share, .. }) if share == Ratio::of(3, 6)
        ));
        // The root can be anything, but is not counted against those who cannot be each other.
        let rows = [
            ("p", "1", "*"),
            ("q", "1", "a1"),
            ("r", "1", "b1"),
            ("s", "1", "c1"),
        ];
        assert!(check(&rows, 1, 2, None).is_ok());
        assert!(check(&rows, 1, 3, None).is_err());
    }

    #[test]
    fn faults_of_form() {
        let mut rows = TABLE_2B.to_vec();
        rows.push(("bob", "1", "A"));
        assert_eq!(
            check(&rows, 2, 3, None),
            Err(FingerprintViolation::RepeatedRows { rows: 1 })
        );
        rows[8] = ("bob", "2", "a1");
        assert_eq!(
            check(&rows, 2, 3, None),
            Err(FingerprintViolation::SeveralTuples { individuals: 1 })
        );
        rows[8] = ("bob", "1", "x");
        assert_eq!(
            check(&rows, 2, 3, None),
            Err(FingerprintViolation::ForeignLabels { rows: 1 })
        );
        rows[8] = ("", "1", "A");
        assert_eq!(
            check(&rows, 2, 3, None),
            Err(FingerprintViolation::Missing { rows: 1 })
        );
        assert!(check(&[], 2, 3, None).is_ok());
        let label = text(&[Some("*"), Some("A")]);
        let wrong = text(&[None, Some("B")]);
        let one = text(&[Some("A")]);
        assert!(PublishedFingerprints::from_columns(&[], &one, &one, &label, &wrong).is_err());
        let cycle = text(&[Some("A"), Some("*")]);
        assert!(PublishedFingerprints::from_columns(&[], &one, &one, &label, &cycle).is_err());
    }

    const LABELS: [&str; 10] = ["*", "A", "B", "C", "a1", "a2", "b1", "b2", "c1", "c2"];

    /// The leaves below a label of Figure 1, as bits.
    fn leaves(label: &str) -> u8 {
        let bits = |at: usize| 1 << at;
        (0..6)
            .filter(|at| label == "*" || LABELS[4 + at].starts_with(&label.to_lowercase()))
            .map(bits)
            .sum()
    }

    #[test]
    fn shares_are_those_of_all_sets_of_values() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for _ in 0..2_000 {
            let people: Vec<Vec<&str>> = (0..rng.random_range(1..8))
                .map(|_| {
                    let mut labels: Vec<&str> = (0..rng.random_range(1..4))
                        .map(|_| LABELS[rng.random_range(0..10)])
                        .collect();
                    labels.sort_unstable();
                    labels.dedup();
                    labels
                })
                .collect();
            let names: Vec<String> = (0..people.len()).map(|p| p.to_string()).collect();
            let rows: Vec<(&str, &str, &str)> = names
                .iter()
                .zip(&people)
                .flat_map(|(name, labels)| labels.iter().map(move |l| (name.as_str(), "1", *l)))
                .collect();
            let n = people.len();
            let attained = check(&rows, 1, 1, Some(1)).unwrap();
            // A set of labels describes a set of values if each value is below a label and each label above a value.
            let describes = |labels: &[&str], set: u8| {
                let all = labels.iter().fold(0, |all, label| all | leaves(label));
                set & !all == 0 && labels.iter().all(|label| leaves(label) & set != 0)
            };
            let alike = |set: u8| people.iter().filter(|l| describes(l, set)).count();
            let most = (1..64).map(alike).max().unwrap();
            assert_eq!(attained.largest_fingerprint_share, Ratio::of(most, n));
            let related = |label: &str| {
                let has = |own: &&str| {
                    let common = leaves(own) & leaves(label);
                    common == leaves(own) || common == leaves(label)
                };
                people
                    .iter()
                    .filter(|labels| labels.iter().any(has))
                    .count()
            };
            let shown = people.iter().flatten().filter(|label| **label != "*");
            let most = shown.map(|label| related(label)).max().unwrap_or(0);
            assert_eq!(attained.largest_value_share, Ratio::of(most, n));
        }
    }

    #[test]
    fn lists_are_read_as_their_values_are() {
        let labels = text(&LABELS.map(Some));
        let above = ["*", "*", "*", "A", "A", "B", "B", "C", "C"].map(Some);
        let parents = text(&[&[None], above.as_slice()].concat());
        let read = |people: &[&str], sets: &[&[&str]]| {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for set in sets {
                lists.append_value(set.iter().map(Some));
            }
            let people: ArrayRef = Arc::new(StringArray::from(people.to_vec()));
            let lists: ArrayRef = Arc::new(lists.finish());
            let rows = vec![0; sets.len()];
            let published =
                PublishedFingerprints::try_new(&[], &rows, &people, &lists, &labels, &parents);
            let requirement = FingerprintRequirement {
                k: 1,
                l: 3,
                value_l: None,
            };
            verify_fingerprints(&published.unwrap(), &requirement)
        };
        let sets: [&[&str]; 3] = [&["A", "b2"], &["B"], &["C"]];
        let attained = read(&["p", "q", "r"], &sets).unwrap();
        assert_eq!((attained.individuals, attained.fingerprints), (3, 3));
        assert_eq!(
            read(&["p", "q", "p"], &sets),
            Err(FingerprintViolation::RepeatedRows { rows: 1 })
        );
        let empty: [&[&str]; 3] = [&["A", "b2"], &["B"], &[]];
        assert_eq!(
            read(&["p", "q", "r"], &empty),
            Err(FingerprintViolation::Missing { rows: 1 })
        );
    }

    #[test]
    fn rare_combinations_are_found() {
        let rows = [
            ("p", "1", "a1"),
            ("p", "1", "B"),
            ("q", "1", "a1"),
            ("q", "1", "B"),
            ("r", "1", "a1"),
            ("s", "2", "C"),
            ("t", "2", "C"),
        ];
        let check = |k, m| verify_combinations(&publish(&rows), &CombinationRequirement { k, m });
        assert_eq!(check(2, 2), Ok(()));
        let rare = CombinationViolation::RareCombinations {
            combinations: 1,
            rarest: 1,
        };
        let mut more = rows.to_vec();
        more.push(("r", "1", "B"));
        more.push(("q", "1", "C"));
        more.push(("s", "2", "a2"));
        more.push(("t", "2", "a2"));
        let check_more =
            |m| verify_combinations(&publish(&more), &CombinationRequirement { k: 2, m });
        // Of the first class one shows C: alone, with a1, with B, with both.
        assert_eq!(check_more(1), Err(rare));
        assert!(matches!(
            check_more(3),
            Err(CombinationViolation::RareCombinations {
                combinations: 4,
                rarest: 1
            })
        ));
        assert_eq!(
            check(3, 1),
            Err(CombinationViolation::SmallClasses {
                classes: 1,
                smallest: 2
            })
        );
    }

    #[test]
    fn messages_hold_no_value() {
        for (k, l, value_l) in [(9, 2, None), (1, 9, None), (1, 2, Some(9))] {
            let said = check(&TABLE_2B, k, l, value_l).unwrap_err().to_string();
            assert!(!said.contains("b2") && !said.contains("bob"), "{said}");
        }
    }
}
