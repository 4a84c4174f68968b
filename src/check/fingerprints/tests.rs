//! The paper's published table, overlapping labels, faults of form.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListBuilder, StringArray, StringBuilder};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::combinations::CombinationViolation;
use super::diversity::FingerprintsAttained;
use super::*;
use crate::check::Ratio;

fn text(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Figure 1: A, B and C with two diseases each.
fn publish(rows: &[(&str, &str, &str)]) -> ShownLabels {
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
    ShownLabels::from_columns(
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
    assert!(ShownLabels::from_columns(&[], &one, &one, &label, &wrong).is_err());
    let cycle = text(&[Some("A"), Some("*")]);
    assert!(ShownLabels::from_columns(&[], &one, &one, &label, &cycle).is_err());
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
        let published = ShownLabels::try_new(&[], &rows, &people, &lists, &labels, &parents);
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
    let check_more = |m| verify_combinations(&publish(&more), &CombinationRequirement { k: 2, m });
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
