//! Calls that give every argument of every function at least once. The tests of the program use them too.

/// A function, the tables that it is called with, and its other arguments, as JSON. Where a call gives neither roles nor a
/// seed, those of [`ROLES`] hold.
pub const CALLS: &[(&str, &[&str], &str)] = &[
    (
        "anonymize_ir",
        &["visits"],
        r#"{"k": 3, "algorithm": "mondrian", "relaxed": 1}"#,
    ),
    (
        "anonymize_ir",
        &["visits"],
        r#"{"k": 3, "l": 2, "algorithm": "best_cut", "ncp": 0}"#,
    ),
    (
        "anonymize_ir",
        &["visits"],
        r#"{"alpha": 0.5, "beta": 0.5, "notation": "text"}"#,
    ),
    (
        "anonymize_ir",
        &["people"],
        r#"{"id": null, "one_row_per_individual": true, "k": 3}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"l": 3, "effort": 5, "keep": ["visit_date"]}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"l": "3", "block": 50, "null_id": "drop", "null_sensitive": "drop_rows"}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"alpha": 0.5, "beta": 0.5, "block": "all", "contradictory": "cover"}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"l": 2, "domain": {"birth_year": [1900, 2030], "sex": ["F", "M"]}}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"l": 2, "hierarchy": {"birth_year": "bins(5, 20)"}, "normalize": true}"#,
    ),
    (
        "anonymize_eir",
        &["visits"],
        r#"{"l": 2, "seed": "a text", "categorical": ["birth_year"]}"#,
    ),
    (
        "anonymize_p_sensitive",
        &["visits"],
        r#"{"k": 3, "p": 2, "algorithm": "localpk", "widest_first": 1, "whole_children": 1}"#,
    ),
    (
        "anonymize_p_sensitive",
        &["visits"],
        r#"{"k": 3, "p": 2, "categories": "ranks", "max_category_share": 0.8}"#,
    ),
    (
        "anonymize_p_sensitive",
        &["visits"],
        r#"{"k": 3, "p": 2, "alpha": 0.5, "sensitive": ["sex"], "qi": ["birth_year"],
        "categories": [["F"], ["M"]], "algorithm": "incognito", "suppress": 0.03}"#,
    ),
    (
        "anonymize_lgb",
        &["people"],
        r#"{"k": 3, "l": 2, "semi_sensitive": {"birth_year": "hidden"}, "output": "detached"}"#,
    ),
    (
        "anonymize_lgb",
        &["people"],
        r#"{"k": 3, "l": {"ward": 2}, "strategy": "mdp", "small_pattern": "mask",
        "semi_sensitive": {"sex": true}, "t": {"sex": 0.5}}"#,
    ),
    (
        "anatomize_slppa",
        &["people"],
        r#"{"alpha": 1, "beta": 0.4, "gamma": 0.4, "delta": 0.5, "tables": 2, "method": "slppa"}"#,
    ),
    (
        "anatomize_slppa",
        &["people"],
        r#"{"beta": 0.4, "gamma": 0.4, "alpha": 1, "delta": 0.5, "division": [["sex"], ["birth_year"]]}"#,
    ),
    (
        "anatomize_division",
        &["people"],
        r#"{"alpha": 1, "beta": 0.4, "gamma": 0.4, "delta": 0.5, "tables": 2}"#,
    ),
    (
        "anatomize_division",
        &["people"],
        r#"{"method": "slppa_similar", "division": [["sex"], ["birth_year"]]}"#,
    ),
    (
        "anonymize_kl",
        &["visits"],
        r#"{"k": 3, "l": 2, "value_l": 2, "hierarchy": {"ward": "wards"}, "output": "individuals"}"#,
    ),
    (
        "anonymize_kkm",
        &["visits"],
        r#"{"k": 2, "m": 2, "delta": 0.5, "hierarchy": {"ward": "wards"}}"#,
    ),
    (
        "audit",
        &["eir"],
        r#"{"k": 3, "l": 4, "c": 2, "population": "visits", "population_id": "patient_id",
        "original": "visits", "original_id": "patient_id"}"#,
    ),
    (
        "audit",
        &["eir"],
        r#"{"alpha": 0.5, "beta": 0.5, "categories": "ranks"}"#,
    ),
    (
        "audit",
        &["visits"],
        r#"{"id": "patient_id", "original": "visits", "same_ids": true}"#,
    ),
    (
        "audit",
        &["visits"],
        r#"{"id": null, "one_row_per_individual": true}"#,
    ),
    ("audit", &["kl"], r#"{"hierarchy": {"ward": "wards"}}"#),
    (
        "audit_classes",
        &["eir"],
        r#"{"k": 3, "l": 4, "c": 2, "seed": 7, "categories": "ranks"}"#,
    ),
    (
        "audit_classes",
        &["people"],
        r#"{"id": null, "one_row_per_individual": true, "alpha": 0.5, "beta": 0.5, "seed": "x"}"#,
    ),
    (
        "vulnerable_classes",
        &["ir_text"],
        r#"{"k": 3, "l": 3, "seed": 7}"#,
    ),
    (
        "vulnerable_classes",
        &["people"],
        r#"{"id": null, "one_row_per_individual": true, "alpha": 0.6, "beta": 0.6, "seed": 7}"#,
    ),
    (
        "similarity_attack",
        &["ir_text"],
        r#"{"categories": "ranks", "max_category_share": 0.8, "seed": 7}"#,
    ),
    (
        "similarity_attack",
        &["people"],
        r#"{"id": null, "one_row_per_individual": true, "categories": {"ward": "ranks"}, "seed": 7}"#,
    ),
    (
        "information_loss",
        &["visits", "eir"],
        r#"{"original_id": "patient_id", "categorical": ["birth_year"], "k": 3}"#,
    ),
    (
        "information_loss",
        &["visits", "ir_text"],
        r#"{"original_id": "patient_id", "hierarchy": {"birth_year": "bins(5, 20)"},
        "domain": {"birth_year": [1930, 2029]}}"#,
    ),
    (
        "information_loss",
        &["visits", "kl"],
        r#"{"original_id": "patient_id", "published_only": true}"#,
    ),
    (
        "information_loss",
        &["visits", "visits"],
        r#"{"id": "patient_id", "hierarchy": {"ward": "wards"}, "same_ids": true}"#,
    ),
    (
        "information_loss",
        &["people", "people"],
        r#"{"id": null, "one_row_per_individual": true}"#,
    ),
    ("audit_buckets", &["lgb"], "{}"),
    (
        "estimate",
        &["eir"],
        r#"{"query": "SELECT count(DISTINCT individual) FROM t WHERE birth_year > 1970", "id": "individual",
        "domain": {"birth_year": [1900, 2030]}, "anatomized": false}"#,
    ),
    (
        "estimate",
        &["ir_text"],
        r#"{"query": "SELECT count(*) FROM t WHERE birth_year < 1960", "qi": ["sex"],
        "hierarchy": {"birth_year": "bins(5, 20)"}}"#,
    ),
    (
        "estimate_sum",
        &["lgb"],
        r#"{"query": "SELECT sum(education_years) FROM t WHERE birth_year > 1970", "id": "individual",
        "qi": ["sex"], "domain": {"birth_year": [1900, 2030]}, "hierarchy": {"sex": "mask(1)"}, "anatomized": false}"#,
    ),
    (
        "query_error",
        &["visits", "eir"],
        r#"{"id": "patient_id", "queries": 10, "dimensions": 1, "selectivity": 0.2, "seed": 7,
        "count": "individuals", "floor": 0.01, "show_predicates": true, "anatomized": false}"#,
    ),
    (
        "query_error",
        &["people", "lgb"],
        r#"{"sum": "education_years", "queries": 5, "domain": {"birth_year": [1900, 2030]}}"#,
    ),
    (
        "query_error",
        &["visits", "ir_text"],
        r#"{"queries": 5, "hierarchy": {"birth_year": "bins(5, 20)"}, "categorical": ["sex"]}"#,
    ),
    (
        "query_error_summary",
        &["visits", "eir"],
        r#"{"id": "patient_id", "queries": 10, "dimensions": 1, "selectivity": 0.2,
        "seed": 7, "count": "individuals", "floor": 0.01, "show_predicates": true, "anatomized": false}"#,
    ),
    (
        "query_error_summary",
        &["people", "lgb"],
        r#"{"sum": "education_years", "queries": 5, "domain": {"birth_year": [1900, 2030]}}"#,
    ),
    (
        "query_error_summary",
        &["visits", "ir_text"],
        r#"{"queries": 5, "hierarchy": {"birth_year": "bins(5, 20)"}, "categorical": ["sex"]}"#,
    ),
    (
        "hierarchy",
        &["visits"],
        r#"{"column": "birth_year", "by": "bins(5, 20)"}"#,
    ),
    (
        "hierarchy",
        &["visits"],
        r#"{"column": "ward", "by": "co_occurrence(3)", "id": "patient_id"}"#,
    ),
    ("hierarchy", &["wards"], "{}"),
    ("sample_patients", &[], r#"{"individuals": 20, "seed": 3}"#),
];

/// Roles, and a seed, for functions that take them; in a call, null takes one away.
pub const ROLES: &[(&str, &str)] = &[
    (
        "anonymize",
        r#"{"id": "patient_id", "qi": ["sex", "birth_year"], "sensitive": "ward", "seed": 11}"#,
    ),
    (
        "anatomize",
        r#"{"id": "patient_id", "qi": ["sex", "birth_year"], "sensitive": "ward", "seed": 11}"#,
    ),
    (
        "query_error",
        r#"{"qi": ["sex", "birth_year"], "sensitive": "ward"}"#,
    ),
    ("audit_buckets", "{}"),
    ("audit", ROLES_OF_AUDITS),
    ("vulnerable", ROLES_OF_AUDITS),
    ("similarity", ROLES_OF_AUDITS),
    ("information_loss", ROLES_OF_AUDITS),
];

const ROLES_OF_AUDITS: &str =
    r#"{"id": "individual", "qi": ["sex", "birth_year"], "sensitive": "ward"}"#;

/// All arguments of a call but its tables.
pub fn arguments(function: &str, call: &str) -> serde_json::Map<String, serde_json::Value> {
    let read = |text: &str| -> serde_json::Map<String, serde_json::Value> {
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    let roles = ROLES.iter().find(|(begin, _)| function.starts_with(begin));
    let mut arguments = roles.map_or_else(Default::default, |(_, roles)| read(roles));
    arguments.extend(read(call));
    arguments.retain(|_, value| !value.is_null());
    arguments
}
