//! The paper's tables, its definitions against brute force, and what is infeasible.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::model::ParameterKind;
use crate::table::{Block, Categories, Fingerprints, NULL_CODE, Sensitive};

/// Table 4 of Sun 2010.
fn diseases() -> Categories {
    Categories::from_lists(&[
        ("Top secret", vec!["HIV", "Cancer"]),
        ("Secret", vec!["Phthisis", "Hepatitis"]),
        ("Less secret", vec!["Obesity", "Asthma"]),
        ("Non secret", vec!["Flu", "Indigestion"]),
    ])
    .unwrap()
}

const NAMES: [&str; 8] = [
    "HIV",
    "Cancer",
    "Phthisis",
    "Hepatitis",
    "Obesity",
    "Asthma",
    "Flu",
    "Indigestion",
];

/// One individual per disease, with Table 4's categories.
fn people(diseases_of: &[&str]) -> Block {
    let categories = diseases();
    let mut fingerprints = Fingerprints::with_levels(vec![categories.len()]);
    for disease in diseases_of {
        let code = NAMES.iter().position(|name| name == disease).unwrap() as u32;
        let category = categories.of(disease).unwrap();
        fingerprints.push_sensitive(&mut vec![Sensitive {
            code,
            attribute: 0,
            category,
        }]);
    }
    Block::new(vec![], fingerprints, vec![1; diseases_of.len()], 1)
}

fn model(name: &str, parameters: &[(&str, &str)]) -> Box<dyn Model> {
    build(name, parameters).unwrap()
}

/// Parameters as they are written; categories are Table 4's unless given.
fn build(name: &str, given: &[(&str, &str)]) -> Result<Box<dyn Model>, ParameterError> {
    let entries = [&ENTRY, &PLUS_ENTRY, &ALPHA_ENTRY];
    let entry = entries.into_iter().find(|e| e.name == name).unwrap();
    let mut parameters = Parameters::default();
    for parameter in entry.parameters {
        let text = given
            .iter()
            .find(|(n, _)| *n == parameter.name)
            .map(|(_, text)| *text);
        let text = text.or((parameter.name == "categories").then_some("4"));
        if let Some(text) = text {
            parameters.set(parameter.name, parameter.parse(text)?);
        }
    }
    (entry.build)(&parameters)
}

fn p(k: &str, p: &str) -> Box<dyn Model> {
    model("p_sensitive_k_anonymity", &[("k", k), ("p", p)])
}

fn plus(k: &str, p: &str) -> Box<dyn Model> {
    model("p_plus_sensitive_k_anonymity", &[("k", k), ("p", p)])
}

fn alpha(k: &str, p: &str, alpha: &str) -> Box<dyn Model> {
    model(
        "p_alpha_sensitive_k_anonymity",
        &[("k", k), ("p", p), ("alpha", alpha)],
    )
}

fn holds(model: &dyn Model, block: &Block, members: &[u32]) -> bool {
    let mut tally = model.tally();
    for i in members {
        tally.add(Member::of(block, *i));
    }
    tally.satisfied()
}

fn group(model: &dyn Model, diseases: &[&str]) -> bool {
    let members: Vec<u32> = (0..diseases.len() as u32).collect();
    holds(model, &people(diseases), &members)
}

/// The groups of Tables 2, 5, 6 and 7.
const TABLE_2: [&[&str]; 5] = [
    &["HIV", "HIV"],
    &["Cancer", "Cancer"],
    &["Hepatitis", "Phthisis", "Asthma", "Obesity"],
    &["Flu", "Indigestion"],
    &["Flu", "Flu"],
];
const TABLE_5: [&[&str]; 3] = [
    &["HIV", "HIV", "Cancer", "Cancer"],
    &["Hepatitis", "Phthisis", "Asthma", "Obesity"],
    &["Flu", "Flu", "Flu", "Indigestion"],
];
const TABLE_6: [&[&str]; 3] = [
    &["HIV", "Cancer", "Flu", "Indigestion"],
    &["Hepatitis", "Phthisis", "Asthma", "Obesity"],
    &["HIV", "Cancer", "Flu", "Flu"],
];
const TABLE_7: [&[&str]; 3] = [
    &["HIV", "HIV", "Cancer", "Flu"],
    &["Hepatitis", "Phthisis", "Asthma", "Obesity"],
    &["Cancer", "Flu", "Flu", "Indigestion"],
];

#[test]
fn tables_2_5_6_and_7() {
    let all = |model: Box<dyn Model>, table: &[&[&str]]| -> Vec<bool> {
        table.iter().map(|g| group(model.as_ref(), g)).collect()
    };
    assert_eq!(
        all(p("2", "2"), &TABLE_2),
        [false, false, true, true, false]
    );
    assert_eq!(
        all(p("4", "2"), &TABLE_5),
        [true; 3],
        "Table 5 is 2-sensitive"
    );
    assert_eq!(
        all(plus("4", "2"), &TABLE_5),
        [false, true, false],
        "but not 2⁺"
    );
    assert_eq!(all(plus("4", "2"), &TABLE_6), [true; 3]);
    assert_eq!(all(alpha("4", "3", "1"), &TABLE_7), [true; 3]);
    // The least total of Table 7 is exactly 1; of Table 6 exactly 2.
    assert_eq!(
        all(alpha("4", "3", "1.0001"), &TABLE_7),
        [false, true, true]
    );
    assert_eq!(all(alpha("4", "3", "2"), &TABLE_6), [true; 3]);
    assert_eq!(
        all(plus("5", "2"), &TABLE_6),
        [false; 3],
        "four are not five"
    );
}

#[test]
fn the_weights_of_the_papers_example_add_up_to_two() {
    // Cancer, Phthisis, Asthma and Flu weigh 0, 1/3, 2/3 and 1.
    let values = ["Cancer", "Phthisis", "Asthma", "Flu"];
    assert!(group(alpha("4", "4", "2").as_ref(), &values));
    assert!(!group(
        alpha("4", "4", "2.0000000000000001").as_ref(),
        &values
    ));
    // Thirds are exact: three of them are one.
    let thirds = ["Phthisis", "Hepatitis", "Phthisis"];
    assert!(group(alpha("2", "2", "1").as_ref(), &thirds));
}

#[test]
fn a_sum_of_weights_bounds_no_share() {
    // docs/theory/papers.md P1: both are valid by Definition 4; the share of a category says no.
    let mut secret = vec!["HIV"; 97];
    secret.extend(["Cancer", "Phthisis", "Flu"]);
    assert!(group(alpha("2", "3", "1").as_ref(), &secret));
    let one_category = ["Phthisis", "Hepatitis", "Phthisis", "Hepatitis"];
    assert!(group(alpha("2", "2", "1").as_ref(), &one_category));
    let bounded = |share| {
        let parameters = [
            ("k", "2"),
            ("p", "2"),
            ("alpha", "1"),
            ("max_category_share", share),
        ];
        model("p_alpha_sensitive_k_anonymity", &parameters)
    };
    assert!(!group(bounded("0.9").as_ref(), &secret));
    assert!(group(bounded("0.98").as_ref(), &secret));
    assert!(!group(bounded("0.9").as_ref(), &one_category));
    assert!(!bounded("0.9").closure().extension);
}

#[test]
fn a_larger_alpha_is_stricter() {
    // docs/theory/papers.md P2.
    let values = ["Cancer", "Phthisis", "Asthma", "Flu", "HIV"];
    let valid = |a: &u32| group(alpha("2", "2", &format!("0.{a:02}")).as_ref(), &values);
    assert!((1..100u32).all(|a| valid(&a)));
    let strict = |a: u32| group(alpha("2", "2", &a.to_string()).as_ref(), &values);
    assert_eq!(
        (1..5).map(strict).collect::<Vec<_>>(),
        [true, true, false, false]
    );
}

#[test]
fn more_p_than_categories_is_refused_before_any_data() {
    let error = build("p_plus_sensitive_k_anonymity", &[("k", "4"), ("p", "5")]).unwrap_err();
    assert_eq!(error.parameter, "p");
    assert!(error.message.contains('4') && error.message.contains('5'));
    // Values may be more than categories.
    alpha("4", "5", "1");
    for wrong in ["0", "-1", "x", "1e3"] {
        let parameters = [("k", "2"), ("p", "2"), ("alpha", wrong)];
        let error = build("p_alpha_sensitive_k_anonymity", &parameters).unwrap_err();
        assert_eq!(error.parameter, "alpha");
    }
    let single = [("k", "2"), ("p", "2"), ("categories", "1")];
    assert!(build("p_plus_sensitive_k_anonymity", &single).is_err());
}

#[test]
fn more_p_than_k_needs_p_individuals() {
    // docs/theory/papers.md P8: two individuals with three values each are not three individuals.
    let categories = (0..3).map(|c| Sensitive {
        code: c,
        attribute: 0,
        category: c,
    });
    let mut fingerprints = Fingerprints::with_levels(vec![3]);
    for _ in 0..3 {
        fingerprints.push_sensitive(&mut categories.clone().collect());
    }
    let block = Block::new(vec![], fingerprints, vec![3; 3], 1);
    for model in [p("2", "3"), plus("2", "3")] {
        assert_eq!(model.min_individuals(), 3);
        assert!(!holds(model.as_ref(), &block, &[0, 1]));
        assert!(holds(model.as_ref(), &block, &[0, 1, 2]));
    }
}

#[test]
fn an_individual_weighs_what_its_most_sensitive_value_weighs() {
    let value = |category| Sensitive {
        code: category,
        attribute: 0,
        category,
    };
    let mut fingerprints = Fingerprints::with_levels(vec![3]);
    fingerprints.push_sensitive(&mut vec![value(2), value(0), value(2)]);
    fingerprints.push_sensitive(&mut vec![value(2), value(1)]);
    fingerprints.push_sensitive(&mut vec![value(2)]);
    let block = Block::new(vec![], fingerprints, vec![3, 2, 1], 1);
    // 0 + 1/2 + 1.
    assert!(holds(alpha("2", "2", "1.5").as_ref(), &block, &[0, 1, 2]));
    assert!(!holds(alpha("2", "2", "1.51").as_ref(), &block, &[0, 1, 2]));
}

#[test]
fn every_sensitive_attribute_must_satisfy() {
    let value = |attribute, code, category| Sensitive {
        code,
        attribute,
        category,
    };
    let mut fingerprints = Fingerprints::with_levels(vec![2, 3]);
    fingerprints.push_sensitive(&mut vec![value(0, 7, 0), value(1, 7, 2)]);
    fingerprints.push_sensitive(&mut vec![value(0, 8, 1), value(1, 7, 2)]);
    fingerprints.push_sensitive(&mut vec![value(0, 8, 1), value(1, 9, 1)]);
    let block = Block::new(vec![], fingerprints, vec![1; 3], 1);
    for model in [p("2", "2"), plus("2", "2")] {
        assert!(
            !holds(model.as_ref(), &block, &[0, 1]),
            "one value of the second attribute"
        );
        assert!(holds(model.as_ref(), &block, &[0, 2]));
    }
    // Weights 0 + 1 + 1 of the first, 1 + 1 + 1/2 of the second attribute.
    assert!(holds(alpha("2", "2", "2").as_ref(), &block, &[0, 1, 2]));
    assert!(!holds(alpha("2", "2", "2.1").as_ref(), &block, &[0, 1, 2]));
}

#[test]
fn a_missing_value_adds_nothing() {
    let mut fingerprints = Fingerprints::with_levels(vec![3]);
    for category in [0, 2, NULL_CODE, NULL_CODE] {
        fingerprints.push_sensitive(&mut vec![Sensitive {
            code: category,
            attribute: 0,
            category,
        }]);
    }
    let block = Block::new(vec![], fingerprints, vec![1; 4], 1);
    let all = [0, 1, 2, 3];
    assert!(holds(p("4", "2").as_ref(), &block, &all));
    assert!(!holds(p("4", "3").as_ref(), &block, &all));
    assert!(!holds(plus("4", "3").as_ref(), &block, &all));
    assert!(!holds(alpha("4", "2", "1.1").as_ref(), &block, &all));
    let parameters = [("k", "2"), ("p", "2"), ("max_category_share", "0.4")];
    let share = model("p_plus_sensitive_k_anonymity", &parameters);
    assert!(!holds(share.as_ref(), &block, &all), "half are missing");
    assert!(holds(share.as_ref(), &block, &[0, 1, 2]));
    // Without categories only values can be counted.
    let plain = Block::new(vec![], [[0], [1]].into_iter().collect(), vec![1; 2], 1);
    assert!(holds(p("2", "2").as_ref(), &plain, &[0, 1]));
    assert!(!holds(plus("2", "2").as_ref(), &plain, &[0, 1]));
    assert!(!holds(alpha("2", "2", "0.1").as_ref(), &plain, &[0, 1]));
}

#[test]
fn what_cannot_be_reached_is_refused_with_the_best_value() {
    // docs/theory/papers.md P6.
    let block = people(&["HIV", "Cancer", "HIV", "Phthisis", "Hepatitis"]);
    let feasible = |model: Box<dyn Model>| {
        let result = model.feasible(&mut (0..5).map(|i| Member::of(&block, i)));
        result.map_err(|i| (i.parameter, i.best.map(|b| b.to_string()), i.advice()))
    };
    let refused = |model, parameter: &'static str, best: &str| {
        let (p, b, advice) = feasible(model).unwrap_err();
        assert_eq!((p, b), (parameter, Some(best.to_owned())));
        assert!(advice.contains("largest"), "{advice}");
    };
    assert_eq!(feasible(p("5", "4")), Ok(()));
    refused(p("6", "2"), "k", "5");
    refused(p("2", "5"), "p", "4");
    refused(plus("2", "3"), "p", "2");
    refused(alpha("2", "2", "0.7"), "alpha", "2/3");
    assert!(
        alpha("2", "2", "0.6")
            .feasible(&mut (0..5).map(|i| Member::of(&block, i)))
            .is_ok()
    );
    let parameters = [("k", "2"), ("p", "2"), ("max_category_share", "0.4")];
    let share = feasible(model("p_plus_sensitive_k_anonymity", &parameters)).unwrap_err();
    assert_eq!(
        (share.0, share.1.as_deref()),
        ("max_category_share", Some("0.5"))
    );
    assert!(share.2.contains("smallest"));
}

/// Definitions 2, 3 and 4 word for word, in tenths of the weights' common denominator.
fn by_definition(case: &Case, block: &Block, members: &[u32]) -> bool {
    let levels = block.fingerprints().levels();
    let attribute = |a: usize| {
        let of = |i: &u32| -> Vec<(u32, u32)> {
            let f = block.fingerprints();
            let shown = f.of(*i).iter().zip(f.attributes(*i)).zip(f.categories(*i));
            let own = shown.filter(|((_, at), _)| usize::from(**at) == a);
            own.map(|((code, _), category)| (*code, *category))
                .collect()
        };
        let all: Vec<Vec<(u32, u32)>> = members.iter().map(of).collect();
        let known = || all.iter().flatten().filter(|(code, _)| *code != NULL_CODE);
        let distinct: HashSet<u32> = match case.categories {
            true => known().map(|(_, category)| *category).collect(),
            false => known().map(|(code, _)| *code).collect(),
        };
        let weight = |own: &Vec<(u32, u32)>| match own.iter().any(|(c, _)| *c == NULL_CODE) {
            true => 0,
            false => own.iter().map(|(_, category)| *category).min().unwrap_or(0),
        };
        let weight: u32 = all.iter().map(weight).sum();
        let mut kinds: Vec<u32> = all
            .iter()
            .flatten()
            .map(|(_, category)| *category)
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let holders = |kind: &u32| {
            all.iter()
                .filter(|own| own.iter().any(|(_, c)| c == kind))
                .count()
        };
        let most = kinds.iter().map(holders).max().unwrap_or(0);
        distinct.len() >= case.p
            && case
                .alpha
                .is_none_or(|tenths| weight * 10 >= tenths * (levels[a] - 1))
            && case
                .share
                .is_none_or(|tenths| most * 10 <= tenths * members.len())
    };
    members.len() >= case.k.max(case.p) && (0..levels.len()).all(attribute)
}

#[derive(Debug)]
struct Case {
    k: usize,
    p: usize,
    categories: bool,
    alpha: Option<u32>,
    share: Option<usize>,
}

impl Case {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let kind = rng.random_range(0..3);
        Self {
            k: rng.random_range(2..6),
            p: rng.random_range(2..4),
            categories: kind == 1,
            alpha: (kind == 2).then(|| rng.random_range(1..40)),
            share: (kind > 0 && rng.random_bool(0.4)).then(|| rng.random_range(2..10)),
        }
    }

    fn model(&self) -> Box<dyn Model> {
        let (k, p) = (self.k.to_string(), self.p.to_string());
        let alpha = self.alpha.map(|a| format!("{}.{}", a / 10, a % 10));
        let share = self.share.map(|s| format!("0.{s}"));
        let mut parameters = vec![("k", k.as_str()), ("p", p.as_str())];
        parameters.extend(alpha.as_deref().map(|a| ("alpha", a)));
        parameters.extend(share.as_deref().map(|s| ("max_category_share", s)));
        match (self.categories, self.alpha) {
            (true, _) => model("p_plus_sensitive_k_anonymity", &parameters),
            (_, Some(_)) => model("p_alpha_sensitive_k_anonymity", &parameters),
            _ => model("p_sensitive_k_anonymity", &parameters),
        }
    }
}

fn random(rng: &mut ChaCha8Rng) -> Block {
    let levels: Vec<u32> = (0..rng.random_range(1..=2))
        .map(|_| rng.random_range(2..=4))
        .collect();
    let (several, missing) = (rng.random_bool(0.3), rng.random_bool(0.2));
    let mut fingerprints = Fingerprints::with_levels(levels.clone());
    let n = rng.random_range(1..=12);
    for _ in 0..n {
        let records = if several { rng.random_range(1..=3) } else { 1 };
        let mut values = vec![];
        for (attribute, levels) in (0..records).flat_map(|_| (0u8..).zip(&levels)) {
            let category = rng.random_range(0..*levels);
            let code = category * 2 + rng.random_range(0..2);
            let null = missing && rng.random_bool(0.2);
            let (code, category) = if null {
                (NULL_CODE, NULL_CODE)
            } else {
                (code, category)
            };
            values.push(Sensitive {
                code,
                attribute,
                category,
            });
        }
        fingerprints.push_sensitive(&mut values);
    }
    Block::new(vec![], fingerprints, vec![1; n], 1)
}

#[test]
fn models_agree_with_the_definitions() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut valid = 0;
    for _ in 0..40_000 {
        let (block, case) = (random(&mut rng), Case::draw(&mut rng));
        let model = case.model();
        let n = block.len() as u32;
        let cut = rng.random_range(0..=n);
        let (left, right): (Vec<u32>, Vec<u32>) = (0..n).partition(|i| *i < cut);
        let whole: Vec<u32> = (0..n).collect();
        let [l, r, w] = [&left, &right, &whole].map(|c| holds(model.as_ref(), &block, c));
        for (members, holds) in [(&left, l), (&right, r), (&whole, w)] {
            assert_eq!(holds, by_definition(&case, &block, members), "{case:?}");
            assert!(
                !holds || members.len() >= model.min_individuals(),
                "{case:?}"
            );
            valid += u32::from(holds);
        }
        // docs/theory/papers.md G7.
        assert!(model.closure().union && (w || !(l && r)), "{case:?}");
        assert!(!model.closure().extension || w || !l, "{case:?}");
        let members = &mut whole.iter().map(|i| Member::of(&block, *i));
        let feasible = model.feasible(members);
        assert!(feasible.is_ok() || !(l || r || w), "{case:?}");
        if case.share.is_none() {
            assert_eq!(feasible.is_ok(), w, "{case:?}");
        }
    }
    assert!(valid > 5_000, "{valid}");
}

#[test]
fn tallies_can_be_used_again() {
    let block = people(&["HIV", "Flu", "Cancer", "HIV"]);
    for model in [p("2", "2"), plus("2", "2"), alpha("2", "2", "1")] {
        let mut tally = model.tally();
        for (members, valid) in [([0, 1], true), ([0, 3], false), ([1, 2], true)] {
            tally.clear();
            members
                .iter()
                .for_each(|i| tally.add(Member::of(&block, *i)));
            assert_eq!(tally.satisfied(), valid);
        }
    }
}

#[test]
fn models_say_what_they_are() {
    let share = [("k", "4"), ("p", "2"), ("max_category_share", "0.5")];
    let texts = [
        p("4", "2").describe(),
        plus("4", "2").describe(),
        alpha("4", "3", "1.5").describe(),
        model("p_plus_sensitive_k_anonymity", &share).describe(),
    ];
    assert_eq!(
        texts,
        [
            "2-sensitive 4-anonymity",
            "2⁺-sensitive 4-anonymity",
            "(3, 1.5)-sensitive 4-anonymity",
            "2⁺-sensitive 4-anonymity with at most 0.5 of one category"
        ]
    );
    assert!(matches!(ALPHA.kind, ParameterKind::Weight));
}

#[test]
fn members_help_that_bring_what_is_missing() {
    let block = people(&["HIV", "Cancer", "Flu", "HIV", "Phthisis"]);
    let helps = |model: Box<dyn Model>, members: &[u32]| -> Vec<bool> {
        let mut tally = model.tally();
        members
            .iter()
            .for_each(|i| tally.add(Member::of(&block, *i)));
        (0..5).map(|i| tally.helps(Member::of(&block, i))).collect()
    };
    assert_eq!(helps(p("2", "2"), &[]), [true; 5]);
    assert_eq!(helps(p("2", "2"), &[0]), [false, true, true, false, true]);
    assert_eq!(
        helps(plus("2", "2"), &[0]),
        [false, false, true, false, true]
    );
    assert_eq!(
        helps(alpha("2", "2", "1"), &[0, 1]),
        [false, false, true, false, true]
    );
    assert_eq!(
        helps(plus("4", "2"), &[0, 2]),
        [true; 5],
        "only individuals are missing"
    );
}
