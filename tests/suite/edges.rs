//! Parameters at their edges: what is accepted is formed and verified, or refused with a reason. The parser and the verifier
//! read each text by code of their own, and must not differ.

use datafusion::prelude::{SessionConfig, SessionContext};

use crate::engine::{context, rows};

/// Texts of numbers, as they may stand in a call.
const TEXTS: [&str; 22] = [
    "0",
    "-1",
    "1",
    "2",
    "1.0",
    "0.0",
    "0.5",
    ".5",
    "0.50",
    "00.5",
    "1.",
    "1.5",
    "5e-1",
    "1e0",
    "0.000000000000000001",
    "0.123456789012345678901234",
    "1000",
    "1000001",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
];

/// Calls in which one parameter is `EDGE`; every parameter of every function stands in one of them.
const CALLS: [&str; 33] = [
    "anonymize_ir(SOURCE, k => EDGE)",
    "anonymize_ir(SOURCE, k => EDGE, l => 2)",
    "anonymize_ir(SOURCE, k => 2, l => EDGE)",
    "anonymize_ir(SOURCE, alpha => EDGE, beta => 0.9)",
    "anonymize_ir(SOURCE, alpha => 0.9, beta => EDGE)",
    "anonymize_eir(SOURCE, l => EDGE)",
    "anonymize_eir(SOURCE, alpha => EDGE, beta => 0.9)",
    "anonymize_eir(SOURCE, alpha => 0.9, beta => EDGE)",
    "anonymize_eir(SOURCE, l => 2, block => EDGE)",
    "anonymize_eir(SOURCE, l => 2, effort => EDGE)",
    "anonymize_eir(SOURCE, l => 2, algorithm => 'mondrian', relaxed => EDGE)",
    "anonymize_p_sensitive(SOURCE, k => EDGE, p => 2)",
    "anonymize_p_sensitive(SOURCE, k => 4, p => EDGE)",
    "anonymize_p_sensitive(SOURCE, k => 4, p => 2, categories => CATEGORIES, max_category_share => EDGE)",
    "anonymize_p_sensitive(SOURCE, k => 4, p => EDGE, categories => CATEGORIES)",
    "anonymize_p_sensitive(SOURCE, k => 4, p => 2, alpha => EDGE, categories => CATEGORIES)",
    "anonymize_kl(LABELLED, k => EDGE, l => 2)",
    "anonymize_kl(LABELLED, k => 2, l => EDGE)",
    "anonymize_kl(LABELLED, k => 2, l => 2, value_l => EDGE)",
    "anonymize_kkm(LABELLED, k => EDGE, m => 1, delta => 0.9)",
    "anonymize_kkm(LABELLED, k => 2, m => EDGE, delta => 0.9)",
    "anonymize_kkm(LABELLED, k => 2, m => 1, delta => EDGE)",
    "anonymize_lgb(SECRET, k => EDGE, l => 2)",
    "anonymize_lgb(SECRET, k => 2, l => EDGE)",
    "anonymize_lgb(SECRET, k => 2, l => {age: 2, disease: EDGE})",
    "anonymize_lgb(SECRET, k => 2, t => {age: 0.9, disease: EDGE})",
    "anonymize_lgb(SECRET, k => 2, t => {age: EDGE, disease: 0.9})",
    "anatomize_slppa(SOURCE, alpha => EDGE, beta => 0.5, gamma => 1, delta => 1, tables => 2)",
    "anatomize_slppa(SOURCE, alpha => 1, beta => EDGE, gamma => 1, delta => 1, tables => 2)",
    "anatomize_slppa(SOURCE, alpha => 1, beta => 0.5, gamma => EDGE, delta => 1, tables => 2)",
    "anatomize_slppa(SOURCE, alpha => 1, beta => 0.5, gamma => 1, delta => EDGE, tables => 2)",
    "anatomize_slppa(SOURCE, alpha => 1, beta => 0.5, gamma => 1, delta => 1, tables => EDGE)",
    "anatomize_slppa(SOURCE, beta => EDGE, gamma => 1, method => 'asn')",
];

fn call(template: &str, edge: &str) -> String {
    template
        .replace("LABELLED", "SOURCE, hierarchy => {disease: diseases}")
        .replace("SECRET", "SOURCE, semi_sensitive => {age: hidden}")
        .replace(
            "SOURCE",
            "people, id => id, qi => [age, sex], sensitive => disease, seed => 1",
        )
        .replace("CATEGORIES", "[['d0', 'd2'], ['d1', 'd3']]")
        .replace("EDGE", edge)
}

async fn people() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    for sql in [
        "CREATE TABLE people AS SELECT value AS id, 20 + value % 17 AS age, value % 2 AS sex, value % 3 = 0 AS hidden, \
         'd' || (value % 4) AS disease FROM range(0, 48)",
        "CREATE VIEW diseases AS VALUES ('d0', 'a', '*'), ('d1', 'a', '*'), ('d2', 'b', '*'), ('d3', 'b', '*')",
    ] {
        rows(&ctx, sql).await.unwrap();
    }
    ctx
}

#[tokio::test(flavor = "multi_thread")]
async fn the_parser_and_the_verifier_read_the_same() {
    let ctx = people().await;
    let (mut published, mut differ) = (0, vec![]);
    for template in CALLS {
        let before = published;
        for edge in TEXTS {
            let call = call(template, edge);
            match rows(&ctx, &format!("SELECT * FROM {call}")).await {
                Ok(found) => published += usize::from(!found.is_empty()),
                Err(error) => {
                    let said = error.strip_backtrace();
                    let ours = ["Internal error", "verif", "bug in DataFusion", "panic"];
                    if ours.iter().any(|text| said.contains(text)) {
                        differ.push(format!("{call}: {said}"));
                    }
                }
            }
        }
        assert!(published > before, "no text fits {template}");
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
