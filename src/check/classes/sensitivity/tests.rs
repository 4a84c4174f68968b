//! The paper's published tables, boundaries, missing values, several attributes.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

use super::*;
use crate::measure::{Similarity, similarity_attack};

/// Age, country, postcode and disease of Tables 2 and 5 to 7 of Sun 2010, row by row.
type Row = [&'static str; 4];

const TABLE_2: [Row; 12] = [
    ["(27-28)", "America", "142**", "HIV"],
    ["(27-28)", "America", "142**", "HIV"],
    ["(25-26)", "America", "142**", "Cancer"],
    ["(25-26)", "America", "142**", "Cancer"],
    [">40", "Asia", "130**", "Hepatitis"],
    [">40", "Asia", "130**", "Phthisis"],
    [">40", "Asia", "130**", "Asthma"],
    [">40", "Asia", "130**", "Obesity"],
    ["(33-35)", "America", "142**", "Flu"],
    ["(33-35)", "America", "142**", "Indigestion"],
    ["(36-37)", "America", "142**", "Flu"],
    ["(36-37)", "America", "142**", "Flu"],
];

const TABLE_5: [Row; 12] = [
    ["<30", "America", "142**", "HIV"],
    ["<30", "America", "142**", "HIV"],
    ["<30", "America", "142**", "Cancer"],
    ["<30", "America", "142**", "Cancer"],
    [">40", "Asia", "130**", "Hepatitis"],
    [">40", "Asia", "130**", "Phthisis"],
    [">40", "Asia", "130**", "Asthma"],
    [">40", "Asia", "130**", "Obesity"],
    ["3*", "America", "142**", "Flu"],
    ["3*", "America", "142**", "Flu"],
    ["3*", "America", "142**", "Flu"],
    ["3*", "America", "142**", "Indigestion"],
];

const TABLE_6: [Row; 12] = [
    ["<40", "America", "1424*", "HIV"],
    ["<40", "America", "1424*", "Cancer"],
    ["<40", "America", "1424*", "Flu"],
    ["<40", "America", "1424*", "Indigestion"],
    [">40", "Asia", "130**", "Hepatitis"],
    [">40", "Asia", "130**", "Phthisis"],
    [">40", "Asia", "130**", "Asthma"],
    [">40", "Asia", "130**", "Obesity"],
    ["<40", "America", "1420*", "HIV"],
    ["<40", "America", "1420*", "Cancer"],
    ["<40", "America", "1420*", "Flu"],
    ["<40", "America", "1420*", "Flu"],
];

/// Its first and last group overlap (docs/theory/papers.md P10): a reader groups by labels as they are.
const TABLE_7: [Row; 12] = [
    ["<40", "America", "142**", "HIV"],
    ["<40", "America", "142**", "HIV"],
    ["<40", "America", "142**", "Cancer"],
    ["<40", "America", "142**", "Flu"],
    [">40", "Asia", "130**", "Hepatitis"],
    [">40", "Asia", "130**", "Phthisis"],
    [">40", "Asia", "130**", "Asthma"],
    [">40", "Asia", "130**", "Obesity"],
    ["<40", "America", "14***", "Cancer"],
    ["<40", "America", "14***", "Flu"],
    ["<40", "America", "14***", "Flu"],
    ["<40", "America", "14***", "Indigestion"],
];

/// Table 4.
const CATEGORIES: [(&str, u32); 8] = [
    ("HIV", 0),
    ("Cancer", 0),
    ("Phthisis", 1),
    ("Hepatitis", 1),
    ("Obesity", 2),
    ("Asthma", 2),
    ("Flu", 3),
    ("Indigestion", 3),
];

fn text<'a>(values: impl IntoIterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn read(rows: &[Row], categories: bool) -> SensitiveTable {
    let columns: Vec<ArrayRef> = (0..3).map(|c| text(rows.iter().map(|r| r[c]))).collect();
    let disease = text(rows.iter().map(|r| r[3]));
    let numbers: Vec<u32> = (0..rows.len() as u32).collect();
    let people: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64));
    let values = text(CATEGORIES.iter().map(|(value, _)| *value));
    let category = CATEGORIES.map(|(_, category)| category);
    let listed = categories.then_some(Listed {
        values: &values,
        category: &category,
        categories: 4,
    });
    let column = SensitiveColumn {
        values: &disease,
        listed,
    };
    SensitiveTable::try_new(&columns, &numbers, &people, &[column]).unwrap()
}

fn requirement(name: &str, given: &[(&str, &'static str)]) -> Sensitivity {
    let text = |name: &str| {
        given
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, text)| *text)
    };
    Sensitivity::named(name, text).unwrap()
}

fn p(k: &'static str, p: &'static str) -> Sensitivity {
    requirement("p_sensitive_k_anonymity", &[("k", k), ("p", p)])
}

fn plus(k: &'static str, p: &'static str) -> Sensitivity {
    requirement("p_plus_sensitive_k_anonymity", &[("k", k), ("p", p)])
}

fn alpha(k: &'static str, p: &'static str, alpha: &'static str) -> Sensitivity {
    let given = [("k", k), ("p", p), ("alpha", alpha)];
    requirement("p_alpha_sensitive_k_anonymity", &given)
}

/// Classes that violate it.
fn violating(rows: &[Row], requirement: Sensitivity) -> usize {
    let table = read(rows, true);
    assert_eq!(table.uncategorised_records, 0);
    let result = check_sensitivity(&table.records(), &requirement);
    result.map_or_else(|violation| violation.violating, |_| 0)
}

#[test]
fn tables_2_5_6_and_7() {
    assert_eq!(
        violating(&TABLE_2, p("2", "2")),
        3,
        "HIV, cancer and flu are told"
    );
    assert_eq!(violating(&TABLE_5, p("4", "2")), 0);
    assert_eq!(violating(&TABLE_5, plus("4", "2")), 2);
    assert_eq!(violating(&TABLE_6, plus("4", "2")), 0);
    assert_eq!(violating(&TABLE_7, alpha("4", "3", "1")), 0);
    assert_eq!(violating(&TABLE_7, alpha("4", "3", "1.001")), 1);
    assert_eq!(violating(&TABLE_6, alpha("4", "3", "2")), 0);
    assert_eq!(violating(&TABLE_6, plus("5", "2")), 3);
    let table = read(&TABLE_7, true);
    let attained = check_sensitivity(&table.records(), &p("4", "3")).unwrap();
    assert_eq!((attained.classes, attained.smallest_class), (3, 4));
    assert_eq!((attained.fewest_values, attained.fewest_categories), (3, 2));
    assert_eq!(attained.largest_category_share, Ratio::of(3, 4));
}

#[test]
fn the_similarity_attack() {
    let attack = |rows: &[Row]| similarity_attack(&read(rows, true).records());
    let found = |vulnerable_classes, exposed| Similarity {
        classes: 3,
        vulnerable_classes,
        exposed_records: exposed,
        exposed_individuals: exposed,
    };
    assert_eq!(attack(&TABLE_5), found(2, 8));
    assert_eq!(attack(&TABLE_6), found(0, 0));
    assert_eq!(attack(&TABLE_7), found(0, 0));
    assert_eq!(attack(&TABLE_2).exposed_records, 8);
    assert_eq!(
        similarity_attack(&read(&TABLE_5, false).records()),
        found(0, 0)
    );
}

#[test]
fn texts_name_counts_and_nothing_else() {
    let table = read(&TABLE_5, true);
    let requirements = [
        plus("4", "2"),
        plus("5", "2"),
        p("4", "4"),
        alpha("4", "2", "3.5"),
        requirement(
            "p_plus_sensitive_k_anonymity",
            &[("k", "2"), ("p", "1"), ("max_category_share", "0.5")],
        ),
    ];
    for requirement in requirements {
        let violation = check_sensitivity(&table.records(), &requirement).unwrap_err();
        let text = format!("{requirement}: {violation}");
        assert!(text.contains("of 3 classes"), "{text}");
        assert!(
            TABLE_5.iter().flatten().all(|value| !text.contains(value)),
            "{text}"
        );
    }
    for wrong in ["", "0", "0.0", "-1", "x", "1e3", "."] {
        let given = |name: &str| Some(if name == "alpha" { wrong } else { "2" });
        assert!(Sensitivity::named("p_alpha_sensitive_k_anonymity", given).is_none());
    }
    assert!(Sensitivity::named("ir_k_anonymity", |_| Some("2")).is_none());
}

/// One class of individuals with the categories of their values; values are categories.
fn class(of: &[&[Option<u32>]], categories: u32) -> (Vec<u32>, Vec<u32>, Vec<ShownAttribute>) {
    let records = (0u32..)
        .zip(of)
        .flat_map(|(i, values)| values.iter().map(move |v| (i, *v)));
    let (individual, value): (Vec<u32>, Vec<Option<u32>>) = records.unzip();
    let attribute = ShownAttribute {
        value,
        category: (0..categories).map(Some).collect(),
        categories,
    };
    (vec![0; individual.len()], individual, vec![attribute])
}

fn holds(of: &[&[Option<u32>]], categories: u32, requirement: Sensitivity) -> bool {
    let (class, individual, attributes) = class(of, categories);
    let records = Records {
        class: &class,
        individual: &individual,
        attributes: &attributes,
    };
    check_sensitivity(&records, &requirement).is_ok()
}

#[test]
fn individuals_with_several_records_and_missing_values() {
    let two: [&[Option<u32>]; 2] = [&[Some(0), Some(1), Some(2)], &[Some(2)]];
    assert!(
        !holds(&two, 3, p("2", "3")),
        "two individuals are not three"
    );
    assert!(holds(&two, 3, p("2", "2")));
    // The first weighs 0, the second 1.
    assert!(holds(&two, 3, alpha("2", "2", "1")) && !holds(&two, 3, alpha("2", "2", "1.01")));
    let missing: [&[Option<u32>]; 3] = [&[Some(0)], &[Some(2), None], &[None]];
    assert!(holds(&missing, 3, p("3", "2")) && !holds(&missing, 3, p("3", "3")));
    assert!(
        !holds(&missing, 3, alpha("3", "2", "0.1")),
        "whoever lacks a value weighs nothing"
    );
    let share = |most| {
        let given = [("k", "2"), ("p", "2"), ("max_category_share", most)];
        requirement("p_plus_sensitive_k_anonymity", &given)
    };
    assert!(!holds(&missing, 3, share("0.6")) && holds(&missing, 3, share("0.7")));
    // Without two categories there are no weights (docs/theory/papers.md P3).
    assert!(!holds(&[&[Some(0)], &[Some(0)]], 1, alpha("2", "1", "0.1")));
    let (class, individual, attributes) = class(&missing, 3);
    let records = Records {
        class: &class,
        individual: &individual,
        attributes: &attributes,
    };
    let empty = Records {
        class: &[],
        individual: &[],
        attributes: &[],
    };
    assert_eq!(similarity_attack(&records).vulnerable_classes, 0);
    assert_eq!(check_sensitivity(&empty, &p("2", "2")).unwrap().classes, 0);
}

#[test]
fn every_attribute_counts() {
    let attribute = |values: [u32; 4]| ShownAttribute {
        value: values.map(Some).to_vec(),
        category: vec![Some(0), Some(0), Some(1)],
        categories: 2,
    };
    let attributes = [attribute([0, 2, 0, 2]), attribute([0, 1, 0, 1])];
    let records = Records {
        class: &[5, 5, 9, 9],
        individual: &[0, 1, 2, 3],
        attributes: &attributes,
    };
    assert!(check_sensitivity(&records, &p("2", "2")).is_ok());
    let violation = check_sensitivity(&records, &plus("2", "2")).unwrap_err();
    assert_eq!((violation.classes, violation.violating), (2, 2));
    assert_eq!(
        violation.shortfall,
        SensitivityShortfall::Categories { categories: 1 }
    );
    let exposed = similarity_attack(&records);
    assert_eq!(
        (exposed.vulnerable_classes, exposed.exposed_records),
        (2, 4)
    );
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let (three, two) = (text(["a", "b", "c"]), text(["a", "b"]));
    let column = |values| SensitiveColumn {
        values,
        listed: None,
    };
    let table = |tuple: &[u32], people, values| {
        SensitiveTable::try_new(std::slice::from_ref(&two), tuple, people, &[column(values)])
    };
    assert!(table(&[0, 1, 1], &three, &three).is_ok());
    assert!(table(&[0, 1, 1], &two, &three).is_err());
    assert!(table(&[0, 1, 1], &three, &two).is_err());
    assert!(table(&[0, 1, 2], &three, &three).is_err());
    let listed = Listed {
        values: &two,
        category: &[0],
        categories: 2,
    };
    let wrong = SensitiveColumn {
        values: &three,
        listed: Some(listed),
    };
    assert!(SensitiveTable::try_new(&[], &[0, 0, 0], &three, &[wrong]).is_err());
    let listed = Listed {
        values: &two,
        category: &[0, 1],
        categories: 2,
    };
    let right = SensitiveColumn {
        values: &three,
        listed: Some(listed),
    };
    let table = SensitiveTable::try_new(&[], &[0, 0, 0], &three, &[right]).unwrap();
    assert_eq!(table.uncategorised_records, 1);
}
