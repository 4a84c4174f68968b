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

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;

use super::codes::{codes, invalid};
use super::ratio::Ratio;

/// Published rows, one per individual and published value.
#[derive(Debug)]
pub struct PublishedFingerprints {
    /// By class: the set of labels of each individual, as places in the hierarchy.
    classes: Vec<Vec<BTreeSet<usize>>>,
    parents: Parents,
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

/// The way up from every label.
#[derive(Debug)]
struct Parents(Vec<Option<usize>>);

impl Parents {
    /// Whether one is the other or above it.
    fn are_related(&self, a: usize, b: usize) -> bool {
        self.is_above(a, b) || self.is_above(b, a)
    }

    fn is_above(&self, above: usize, below: usize) -> bool {
        let mut at = Some(below);
        // A chain visits each label once at most, however wrong the hierarchy is.
        for _ in 0..=self.0.len() {
            match at {
                Some(label) if label == above => return true,
                Some(label) => at = self.0[label],
                None => return false,
            }
        }
        false
    }

    /// Whether some set of values can be described by both: each label of one is related to one of the other.
    fn are_compatible(&self, a: &BTreeSet<usize>, b: &BTreeSet<usize>) -> bool {
        let covers = |a: &BTreeSet<usize>, b: &BTreeSet<usize>| {
            a.iter().all(|x| b.iter().any(|y| self.are_related(*x, *y)))
        };
        covers(a, b) && covers(b, a)
    }
}

impl PublishedFingerprints {
    /// Groups rows of pseudonym, quasi-identifiers and published label, with the hierarchy as rows of label and parent
    /// (NULL for the root).
    pub fn try_new(
        qi: &[ArrayRef],
        individual: &ArrayRef,
        sensitive: &ArrayRef,
        labels: &ArrayRef,
        parents: &ArrayRef,
    ) -> Result<Self, ArrowError> {
        let rows = individual.len();
        if sensitive.len() != rows || qi.iter().any(|column| column.len() != rows) {
            return invalid("verify: the published columns differ in length".to_string());
        }
        if labels.len() != parents.len() {
            return invalid("verify: the columns of the hierarchy differ in length".to_string());
        }
        let (numbers, parents) = hierarchy(labels, parents)?;
        let tuples = match qi.is_empty() {
            true => vec![0; rows],
            false => codes(qi)?.0,
        };
        let (people, _) = codes(std::slice::from_ref(individual))?;
        let text = cast(sensitive, &DataType::Utf8)?;
        let text = text.as_string::<i32>();
        let mut published = Self {
            classes: vec![],
            parents,
            rows,
            several_tuples: 0,
            repeated_rows: 0,
            without_value: 0,
            foreign_labels: 0,
        };
        let mut individuals: BTreeMap<u32, (u32, BTreeSet<usize>)> = BTreeMap::new();
        let mut torn = HashSet::new();
        for row in 0..rows {
            if individual.is_null(row) || text.is_null(row) {
                published.without_value += 1;
                continue;
            }
            let Some(label) = numbers.get(text.value(row)) else {
                published.foreign_labels += 1;
                continue;
            };
            let person = individuals
                .entry(people[row])
                .or_insert((tuples[row], BTreeSet::new()));
            if person.0 != tuples[row] {
                torn.insert(people[row]);
            }
            published.repeated_rows += usize::from(!person.1.insert(*label));
        }
        published.several_tuples = torn.len();
        let mut classes: BTreeMap<u32, Vec<BTreeSet<usize>>> = BTreeMap::new();
        for (_, (tuple, set)) in individuals {
            classes.entry(tuple).or_default().push(set);
        }
        published.classes = classes.into_values().collect();
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

/// The place of each label, and of its parent.
fn hierarchy(
    labels: &ArrayRef,
    parents: &ArrayRef,
) -> Result<(HashMap<String, usize>, Parents), ArrowError> {
    let (labels, parents) = (
        cast(labels, &DataType::Utf8)?,
        cast(parents, &DataType::Utf8)?,
    );
    let (labels, parents) = (labels.as_string::<i32>(), parents.as_string::<i32>());
    let mut numbers = HashMap::new();
    for label in labels.iter().flatten() {
        let next = numbers.len();
        if numbers.insert(label.to_owned(), next).is_some() {
            return invalid("verify: a label of the hierarchy has two rows".to_string());
        }
    }
    let mut above = vec![None; numbers.len()];
    for (label, parent) in labels.iter().zip(parents.iter()) {
        let Some(number) = label.and_then(|label| numbers.get(label)) else {
            return invalid("verify: a row of the hierarchy has no label".to_string());
        };
        above[*number] = match parent {
            None => None,
            Some(parent) => match numbers.get(parent) {
                Some(parent) => Some(*parent),
                None => return invalid("verify: a parent in the hierarchy has no row".to_string()),
            },
        };
    }
    Ok((numbers, Parents(above)))
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
    let mut holders: HashMap<&BTreeSet<usize>, usize> = HashMap::new();
    for set in published.classes.iter().flatten() {
        *holders.entry(set).or_default() += 1;
    }
    let rarest = holders.values().copied().min().unwrap_or(0);
    let rare = holders.values().filter(|n| **n < requirement.k).count();
    if rare > 0 {
        return Err(FingerprintViolation::RareFingerprints {
            fingerprints: rare,
            rarest,
        });
    }
    let (mut fingerprint_share, mut value_share) = (Worst::default(), Worst::default());
    let (mut fewest, mut alone) = (usize::MAX, 0);
    for class in &published.classes {
        let counted = count(class);
        let n = class.len();
        fewest = fewest.min(counted.values().copied().min().unwrap_or(usize::MAX));
        alone += counted.values().filter(|n| **n == 1).count();
        let most = most_alike(&counted, &published.parents);
        fingerprint_share.add(most, n, most * requirement.l <= n);
        let most = most_related(&counted, &published.parents);
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

fn count(class: &[BTreeSet<usize>]) -> BTreeMap<&BTreeSet<usize>, usize> {
    let mut counted = BTreeMap::new();
    for set in class {
        *counted.entry(set).or_default() += 1;
    }
    counted
}

/// The most individuals whose labels can all describe one set of values. That is the heaviest group of fingerprints that
/// are compatible in pairs: the lowest labels of all of them describe such a set.
fn most_alike(counted: &BTreeMap<&BTreeSet<usize>, usize>, parents: &Parents) -> usize {
    let sets: Vec<(&BTreeSet<usize>, usize)> = counted.iter().map(|(s, n)| (*s, *n)).collect();
    let compatible = |a: usize, b: usize| parents.are_compatible(sets[a].0, sets[b].0);
    let neighbours: Vec<BTreeSet<usize>> = (0..sets.len())
        .map(|a| {
            (0..sets.len())
                .filter(|b| *b != a && compatible(a, *b))
                .collect()
        })
        .collect();
    let weight = |at: usize| sets[at].1;
    let mut search = Heaviest {
        neighbours: &neighbours,
        weight: &weight,
        best: 0,
        steps: LIMIT,
    };
    search.extend(0, (0..sets.len()).collect());
    search.best
}

/// Steps of one search; beyond them the weight of all that is left counts as found, which is never too little.
const LIMIT: usize = 1 << 20;

/// The heaviest group of neighbours.
struct Heaviest<'a> {
    neighbours: &'a [BTreeSet<usize>],
    weight: &'a dyn Fn(usize) -> usize,
    best: usize,
    steps: usize,
}

impl Heaviest<'_> {
    fn extend(&mut self, chosen: usize, mut open: Vec<usize>) {
        self.best = self.best.max(chosen);
        while let Some(next) = open.pop() {
            let rest: usize = open.iter().map(|at| (self.weight)(*at)).sum();
            let reachable = chosen + (self.weight)(next) + rest;
            if reachable <= self.best {
                return;
            }
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                self.best = reachable;
                return;
            }
            let near = |at: &usize| self.neighbours[next].contains(at);
            let common = open.iter().copied().filter(near).collect();
            self.extend(chosen + (self.weight)(next), common);
        }
    }
}

/// The most individuals who have a published label, or one below or above it. The root tells nothing.
fn most_related(counted: &BTreeMap<&BTreeSet<usize>, usize>, parents: &Parents) -> usize {
    let labels: BTreeSet<usize> = counted.keys().flat_map(|set| set.iter().copied()).collect();
    let telling = labels
        .into_iter()
        .filter(|label| parents.0[*label].is_some());
    let related = telling.map(|label| {
        let has = |set: &BTreeSet<usize>| set.iter().any(|own| parents.are_related(*own, label));
        counted
            .iter()
            .filter(|(set, _)| has(set))
            .map(|(_, n)| n)
            .sum()
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

    use datafusion::arrow::array::StringArray;

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
        PublishedFingerprints::try_new(
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
        assert!(PublishedFingerprints::try_new(&[], &one, &one, &label, &wrong).is_err());
    }

    #[test]
    fn messages_hold_no_value() {
        for (k, l, value_l) in [(9, 2, None), (1, 9, None), (1, 2, Some(9))] {
            let said = check(&TABLE_2B, k, l, value_l).unwrap_err().to_string();
            assert!(!said.contains("b2") && !said.contains("bob"), "{said}");
        }
    }
}
