//! The verdict on a release: every class, and what must hold whatever the requirement.

use std::fmt;

use super::published::ShownClasses;
use super::reasoning::{Answer, Minimum, eir_diverse, min_hitting_set};
use super::requirement::{ClassRequirement, Shortfall};
use crate::check::ratio::Ratio;

/// What a release that satisfies its requirement attains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attained {
    /// Records.
    pub records: usize,
    /// Individuals.
    pub individuals: usize,
    /// Equivalence classes.
    pub classes: usize,
    /// Individuals in the smallest class; 0 without classes.
    pub smallest_class: usize,
    /// Individuals in the largest class.
    pub largest_class: usize,
    /// The fewest different sensitive values of a class.
    pub fewest_values: usize,
    /// The largest share of one individual in the records of its class, max |R(p)| / |Q|.
    pub largest_individual_share: Ratio,
    /// The largest share of individuals of a class who have one value in common, max |P(s)| / n_Q: how sure a
    /// reader can be of it. EIR l-diversity alone does not bound it.
    pub largest_value_share: Ratio,
}

/// Why a release must not be published. Holds counts only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// Records whose pseudonym is NULL.
    NoPseudonym {
        /// Such records.
        records: usize,
    },
    /// Individuals who show more than one tuple of quasi-identifiers.
    SeveralTuples {
        /// Such individuals.
        individuals: usize,
    },
    /// Individuals whose sensitive values are all NULL.
    NoSensitiveValue {
        /// Such individuals.
        individuals: usize,
    },
    /// Tuples of quasi-identifiers that no record shows.
    EmptyClass {
        /// Such tuples.
        classes: usize,
    },
    /// Classes that miss the requirement.
    Requirement {
        /// What was required.
        requirement: ClassRequirement,
        /// All classes.
        classes: usize,
        /// Those that miss the requirement.
        violating: usize,
        /// Individuals in the first violating class.
        individuals: usize,
        /// Records in the first violating class.
        records: usize,
        /// What the first violating class misses.
        shortfall: Shortfall,
    },
    /// A class of which it is not known whether it satisfies the requirement; the classes after it were not looked
    /// at.
    Undecided {
        /// What was required.
        requirement: ClassRequirement,
        /// Individuals in the class.
        individuals: usize,
        /// Records in the class.
        records: usize,
    },
}

/// Checks that every class of `published` satisfies `requirement`.
///
/// A release without records has no class that could violate anything, and passes: whether it is worth publishing
/// is for the caller to say, by [`Attained::records`].
///
/// # Errors
///
/// The first [`Violation`] in the order of its variants; a class that stays undecided is one.
///
/// # Runtime
///
/// Linear in the records, except EIR l-diversity, which is NP-hard in the size of a class; easy for classes as
/// they occur, else bounded, and then reported as undecided.
pub fn verify(
    published: &ShownClasses,
    requirement: &ClassRequirement,
) -> Result<Attained, Violation> {
    check_form(published)?;
    let mut attained = Attained {
        records: published.records,
        individuals: published.individuals,
        classes: published.classes().len(),
        smallest_class: usize::MAX,
        largest_class: 0,
        fewest_values: usize::MAX,
        largest_individual_share: Ratio::of(0, 1),
        largest_value_share: Ratio::of(0, 1),
    };
    let mut violation = None;
    let mut tally = published.tally();
    for class in published.classes() {
        let counts = class.counts(&mut tally);
        match requirement.check(&class, &counts) {
            Ok(()) => {}
            // Each further search may be as long.
            Err(Shortfall::Undecided) => {
                return Err(Violation::Undecided {
                    requirement: *requirement,
                    individuals: counts.individuals,
                    records: counts.records,
                });
            }
            Err(shortfall) => violation.get_or_insert((0, counts, shortfall)).0 += 1,
        }
        attained.smallest_class = attained.smallest_class.min(counts.individuals);
        attained.largest_class = attained.largest_class.max(counts.individuals);
        attained.fewest_values = attained.fewest_values.min(counts.values);
        attained.largest_individual_share = attained.largest_individual_share.max(Ratio::of(
            counts.most_records_of_an_individual,
            counts.records,
        ));
        attained.largest_value_share = attained.largest_value_share.max(Ratio::of(
            counts.most_individuals_with_a_value,
            counts.individuals,
        ));
    }
    if attained.classes == 0 {
        attained.smallest_class = 0;
        attained.fewest_values = 0;
    }
    match violation {
        None => Ok(attained),
        Some((violating, counts, shortfall)) => Err(Violation::Requirement {
            requirement: *requirement,
            classes: attained.classes,
            violating,
            individuals: counts.individuals,
            records: counts.records,
            shortfall,
        }),
    }
}

/// The largest `l` for which `published` satisfies EIR l-diversity; `None` without classes.
///
/// # Errors
///
/// A [`Violation`] of what must hold whatever the requirement.
pub fn diversity(published: &ShownClasses) -> Result<Option<Minimum>, Violation> {
    check_form(published)?;
    let mut least: Option<Minimum> = None;
    for class in published.classes() {
        let family = class.fingerprints();
        // Most classes attain what another one falls short of, which is quicker to see than what they attain.
        let attains = |l| eir_diverse(&family, l) == Answer::Holds;
        if least.is_some_and(|least| attains(least.size())) {
            continue;
        }
        let minimum = min_hitting_set(&family);
        let order = |m: &Minimum| (m.size(), matches!(m, Minimum::AtLeast(_)));
        least = least.into_iter().chain([minimum]).min_by_key(order);
    }
    Ok(least)
}

fn check_form(published: &ShownClasses) -> Result<(), Violation> {
    match published.records_without_pseudonym {
        0 => {}
        records => return Err(Violation::NoPseudonym { records }),
    }
    match published.individuals_in_several_classes {
        0 => {}
        individuals => return Err(Violation::SeveralTuples { individuals }),
    }
    match published.individuals_without_value() {
        0 => {}
        individuals => return Err(Violation::NoSensitiveValue { individuals }),
    }
    match published.classes_without_records {
        0 => Ok(()),
        classes => Err(Violation::EmptyClass { classes }),
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPseudonym { records } => write!(f, "{records} records have no pseudonym"),
            Self::SeveralTuples { individuals } => write!(
                f,
                "{individuals} individuals show more than one tuple of quasi-identifiers"
            ),
            Self::NoSensitiveValue { individuals } => {
                write!(f, "{individuals} individuals have no sensitive value")
            }
            Self::EmptyClass { classes } => write!(
                f,
                "{classes} published tuples of quasi-identifiers are shown by no record"
            ),
            Self::Requirement {
                requirement,
                classes,
                violating,
                individuals,
                records,
                shortfall,
            } => write!(
                f,
                "{violating} of {classes} classes violate {requirement}; the first of them, with {individuals} \
                 individuals and {records} records, {shortfall}"
            ),
            Self::Undecided {
                requirement,
                individuals,
                records,
            } => write!(
                f,
                "{requirement} was not decided for a class with {individuals} individuals and {records} records, \
                 within the limit of the search"
            ),
        }
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    /// Pseudonym, quasi-identifiers, disease; Table 3 of the paper.
    const TABLE_3: [(i32, &str, &str); 10] = [
        (2, "F [30, 39] 1007*", "Cancer"),
        (5, "F [30, 39] 1007*", "HIV"),
        (6, "F [30, 39] 1007*", "Leukaemia"),
        (6, "F [30, 39] 1007*", "Heart"),
        (7, "F [30, 39] 1007*", "Syphilis"),
        (1, "* [30, 39] 1008*", "Hypertension"),
        (1, "* [30, 39] 1008*", "Heart"),
        (3, "* [30, 39] 1008*", "Hypertension"),
        (4, "* [30, 39] 1008*", "Hypertension"),
        (4, "* [30, 39] 1008*", "Diabetes"),
    ];

    const TABLE_4: [(i32, &str, &str); 10] = [
        (4, "F [33, 34] {10070, 10073, 10087}", "Hypertension"),
        (4, "F [33, 34] {10070, 10073, 10087}", "Diabetes"),
        (6, "F [33, 34] {10070, 10073, 10087}", "Leukaemia"),
        (6, "F [33, 34] {10070, 10073, 10087}", "Heart"),
        (7, "F [33, 34] {10070, 10073, 10087}", "Syphilis"),
        (
            1,
            "{M, F} [36, 38] {10076, 10077, 10085, 10086}",
            "Hypertension",
        ),
        (1, "{M, F} [36, 38] {10076, 10077, 10085, 10086}", "Heart"),
        (2, "{M, F} [36, 38] {10076, 10077, 10085, 10086}", "Cancer"),
        (
            3,
            "{M, F} [36, 38] {10076, 10077, 10085, 10086}",
            "Hypertension",
        ),
        (5, "{M, F} [36, 38] {10076, 10077, 10085, 10086}", "HIV"),
    ];

    #[test]
    fn table_3_is_identity_reserved_but_not_enhanced() {
        let published = publish(&TABLE_3);
        let holds = |requirement| verify(&published, &requirement).is_ok();
        assert!(holds(ClassRequirement::IrK { k: 3 }));
        assert!(!holds(ClassRequirement::IrK { k: 4 }));
        assert!(holds(ClassRequirement::IrKL { k: 3, l: 3 }));
        assert!(!holds(ClassRequirement::IrKL { k: 3, l: 4 }));
        assert!(holds(ir("0.4", "0.6")));
        assert!(!holds(ir("0.39", "0.6")));
        assert!(!holds(ir("0.4", "0.59")));
        assert!(holds(ClassRequirement::EirL { l: 1 }));
        assert!(!holds(ClassRequirement::EirL { l: 2 }));
        assert!(!holds(eir("0.4", "0.6")));
        assert_eq!(diversity(&published), Ok(Some(Minimum::Exact(1))));
    }

    #[test]
    fn table_4_is_enhanced() {
        let published = publish(&TABLE_4);
        let attained = verify(&published, &ClassRequirement::EirL { l: 3 });
        let expected = Attained {
            records: 10,
            individuals: 7,
            classes: 2,
            smallest_class: 3,
            largest_class: 4,
            fewest_values: 4,
            largest_individual_share: Ratio::of(2, 5),
            largest_value_share: Ratio::of(1, 2),
        };
        assert_eq!(attained, Ok(expected));
        assert_eq!(verify(&published, &eir("0.4", "0.6")), Ok(expected));
        assert_eq!(verify(&published, &eir("0.4", "0.5")), Ok(expected));
        assert!(verify(&published, &eir("0.4", "0.49")).is_err());
        assert!(verify(&published, &ClassRequirement::EirL { l: 4 }).is_err());
        assert_eq!(diversity(&published), Ok(Some(Minimum::Exact(3))));
    }

    #[test]
    fn shares_are_exact_at_the_boundary() {
        for (with, of, beta) in [(29, 50, "0.58"), (63, 90, "0.7")] {
            for (extra, holds) in [(0, true), (1, false)] {
                let rows: Vec<_> = (0..of)
                    .map(|p| (p, "q", if p < with + extra { "x" } else { "y" }))
                    .collect();
                let published = publish(&rows);
                assert_eq!(verify(&published, &eir("0.5", beta)).is_ok(), holds);
                assert_eq!(verify(&published, &ir("0.5", beta)).is_ok(), holds);
            }
            // The same for one individual's share of the records.
            for (extra, holds) in [(0, true), (1, false)] {
                let rows: Vec<_> = (0..of)
                    .map(|r| (if r < with + extra { 0 } else { r }, "q", "x"))
                    .collect();
                assert_eq!(verify(&publish(&rows), &eir(beta, "1")).is_ok(), holds);
                assert_eq!(verify(&publish(&rows), &ir(beta, "1")).is_ok(), holds);
            }
        }
    }

    #[test]
    fn faults_of_form_are_refused_whatever_the_requirement() {
        let refused = |qi: &ArrayRef, who: &ArrayRef, what: &ArrayRef| {
            let tuples = std::slice::from_ref(qi);
            let published = ShownClasses::try_new(tuples, &[0, 0, 1], who, what).unwrap();
            assert!(diversity(&published).is_err());
            verify(&published, &ClassRequirement::IrK { k: 1 }).unwrap_err()
        };
        let qi = text(&[Some("a"), Some("b")]);
        let who = text(&[Some("p"), Some("q"), Some("r")]);
        let what = text(&[Some("x"), Some("y"), Some("z")]);
        assert_eq!(
            refused(&qi, &text(&[Some("p"), Some("q"), Some("p")]), &what),
            Violation::SeveralTuples { individuals: 1 }
        );
        assert_eq!(
            refused(&qi, &text(&[Some("p"), None, None]), &what),
            Violation::NoPseudonym { records: 2 }
        );
        assert_eq!(
            refused(&qi, &who, &text(&[Some("x"), None, Some("z")])),
            Violation::NoSensitiveValue { individuals: 1 }
        );
        assert_eq!(
            refused(&text(&[Some("a"), None, Some("c")]), &who, &what),
            Violation::EmptyClass { classes: 1 }
        );
    }

    #[test]
    fn a_null_never_adds_to_diversity() {
        let who: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 2, 3]));
        let known = text(&[Some("x"), Some("w"), Some("y"), Some("z")]);
        let unknown = text(&[Some("x"), None, Some("y"), Some("z")]);
        let diversity = |what| diversity(&ShownClasses::from_columns(&[], &who, what).unwrap());
        assert_eq!(diversity(&known), Ok(Some(Minimum::Exact(3))));
        assert_eq!(diversity(&unknown), Ok(Some(Minimum::Exact(2))));
    }

    #[test]
    fn no_records_violate_nothing() {
        let published = publish(&[]);
        let attained = verify(&published, &ClassRequirement::EirL { l: 3 }).unwrap();
        assert_eq!((attained.records, attained.classes), (0, 0));
        assert_eq!((attained.smallest_class, attained.fewest_values), (0, 0));
        assert_eq!(diversity(&published), Ok(None));
    }

    #[test]
    fn violations_name_counts_and_nothing_else() {
        let published = publish(&TABLE_3);
        let said = |requirement| verify(&published, &requirement).unwrap_err().to_string();
        assert_eq!(
            said(ClassRequirement::EirL { l: 2 }),
            "1 of 2 classes violate EIR 2-diversity; the first of them, with 3 individuals and 5 records, \
             has a reasoning set with too few sensitive values"
        );
        assert_eq!(
            said(eir("0.4", "0.6")),
            "1 of 2 classes violate EIR (0.4, 0.6)-anonymity; the first of them, with 3 individuals and \
             5 records, has a sensitive value that 3 of 3 show"
        );
        let rows: Vec<_> = (0..30)
            .map(|r| {
                (
                    770_000 + r % 2,
                    if r % 3 == 0 { "CANARY-Q" } else { "CANARY-R" },
                    "CANARY-S",
                )
            })
            .collect();
        let inconsistent = publish(&rows);
        let consistent = publish(&rows[..1]);
        let share = "0.3".parse().unwrap();
        for published in [&inconsistent, &consistent] {
            for requirement in [
                ClassRequirement::IrK { k: 3 },
                ClassRequirement::IrKL { k: 1, l: 3 },
                ClassRequirement::EirL { l: 3 },
                ClassRequirement::IrAlphaBeta {
                    alpha: share,
                    beta: share,
                },
                ClassRequirement::EirAlphaBeta {
                    alpha: share,
                    beta: share,
                },
            ] {
                let violation = verify(published, &requirement).unwrap_err();
                for said in [violation.to_string(), format!("{violation:?}")] {
                    assert!(!said.contains("CANARY") && !said.contains("77"), "{said}");
                }
            }
        }
    }

    fn ir(alpha: &str, beta: &str) -> ClassRequirement {
        let (alpha, beta) = (alpha.parse().unwrap(), beta.parse().unwrap());
        ClassRequirement::IrAlphaBeta { alpha, beta }
    }

    fn eir(alpha: &str, beta: &str) -> ClassRequirement {
        let (alpha, beta) = (alpha.parse().unwrap(), beta.parse().unwrap());
        ClassRequirement::EirAlphaBeta { alpha, beta }
    }

    fn text(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn publish(rows: &[(i32, &str, &str)]) -> ShownClasses {
        let who: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|r| r.0)));
        let qi = text(&rows.iter().map(|r| Some(r.1)).collect::<Vec<_>>());
        let what = text(&rows.iter().map(|r| Some(r.2)).collect::<Vec<_>>());
        ShownClasses::from_columns(&[qi], &who, &what).unwrap()
    }
}
