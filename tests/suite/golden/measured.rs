//! Rows of the measuring functions.

use datafusion::prelude::SessionContext;

use super::{golden, part, result};
use crate::engine::rows;

/// A session with what the anonymizing functions publish, to be measured.
pub async fn session(partitions: usize) -> SessionContext {
    let ctx = super::session(partitions).await;
    let ranks = "CREATE TABLE ranks AS SELECT CASE column2 WHEN 'acute' THEN 'second' ELSE 'first' END AS category, \
                 CASE column2 WHEN 'acute' THEN 2 ELSE 1 END AS rank, column1 AS value FROM wards";
    rows(&ctx, ranks).await.unwrap();
    for (name, call) in [
        (
            "eir",
            "anonymize_eir(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, l => 3, seed => 11)",
        ),
        (
            "ir_text",
            "anonymize_ir(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 2, \
          notation => 'text', hierarchy => {birth_year: 'bins(5, 20)'}, seed => 11)",
        ),
        (
            "kl",
            "anonymize_kl(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 3, l => 2, \
          hierarchy => {ward: wards}, seed => 11)",
        ),
        (
            "lgb",
            "anonymize_lgb(people, id => patient_id, qi => [sex, birth_year], sensitive => [ward, education_years], \
          semi_sensitive => {birth_year: hidden}, k => 3, l => 2, seed => 11)",
        ),
        (
            "detached",
            "anonymize_lgb(people, id => patient_id, qi => [sex, birth_year], sensitive => [ward, education_years], \
          semi_sensitive => {birth_year: hidden}, k => 3, l => 2, output => 'detached', seed => 11)",
        ),
        (
            "slppa",
            "anatomize_slppa(people, id => patient_id, qi => [sex, birth_year], sensitive => ward, alpha => 1, \
          beta => 0.4, gamma => 0.4, delta => 0.5, tables => 2, seed => 11)",
        ),
    ] {
        let sql = format!("CREATE TABLE {name} AS SELECT * FROM {call}");
        rows(&ctx, &sql).await.unwrap();
    }
    ctx
}

/// Every measuring function, with what changes its plan.
pub const CALLS: &[&str] = &[
    "SELECT * FROM audit(eir, id => individual, qi => [sex, birth_year], sensitive => ward)",
    "SELECT * FROM audit(visits, one_row_per_individual => true, qi => [sex, race], sensitive => birth_year)",
    "SELECT * FROM audit(eir, id => individual, qi => [sex, birth_year], sensitive => ward, l => 4, k => 3, c => 2, \
     population => visits, population_id => patient_id, original => visits, original_id => patient_id)",
    "SELECT * FROM audit(eir, id => individual, qi => [sex, birth_year], sensitive => ward, alpha => 0.5, beta => 0.5, \
     categories => ranks)",
    "SELECT * FROM audit(ir_text, id => individual, qi => [sex, birth_year], sensitive => ward, original => visits, \
     original_id => patient_id, hierarchy => {birth_year: 'bins(5, 20)'})",
    "SELECT * FROM audit(kl, id => individual, qi => [sex, birth_year], sensitive => ward, hierarchy => {ward: wards})",
    "SELECT * FROM audit(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, original => visits, \
     same_ids => true)",
    "SELECT * FROM audit_classes(eir, id => individual, qi => [sex, birth_year], sensitive => ward, l => 4, seed => 7)",
    "SELECT * FROM vulnerable_classes(ir_text, id => individual, qi => [sex, birth_year], sensitive => ward, l => 3, seed => 7)",
    "SELECT * FROM vulnerable_classes(ir_text, id => individual, qi => [sex, birth_year], sensitive => ward, alpha => 0.6, \
     beta => 0.6, seed => 7)",
    "SELECT * FROM similarity_attack(ir_text, id => individual, qi => [sex, birth_year], sensitive => ward, seed => 7, \
     categories => {ward: [['oncology', 'psychiatry'], ['cardiology', 'emergency', 'geriatrics', 'internal', 'maternity', \
     'neurology', 'orthopedics', 'pediatrics', 'pulmonology', 'surgery']]}, max_category_share => 0.8)",
    "SELECT * FROM information_loss(visits, eir, id => individual, original_id => patient_id, qi => [sex, birth_year], \
     sensitive => ward)",
    "SELECT * FROM information_loss(visits, ir_text, id => individual, original_id => patient_id, qi => [sex, birth_year], \
     sensitive => ward, hierarchy => {birth_year: 'bins(5, 20)'}, domain => {birth_year: [1930, 2029]})",
    "SELECT * FROM information_loss(visits, kl, id => individual, original_id => patient_id, qi => [sex, birth_year], \
     sensitive => ward, hierarchy => {ward: wards})",
    "SELECT * FROM information_loss(people, lgb, id => individual, original_id => patient_id, qi => [sex, birth_year])",
    "SELECT * FROM audit_buckets(lgb)",
    "SELECT * FROM audit_buckets(detached)",
    "SELECT * FROM estimate(eir, 'SELECT ward, count(*) FROM eir WHERE birth_year > 1970 AND sex = ''F'' GROUP BY ward')",
    "SELECT * FROM estimate(eir, 'SELECT count(DISTINCT individual) FROM eir WHERE birth_year BETWEEN 1950 AND 1980')",
    "SELECT * FROM estimate(ir_text, 'SELECT count(*) FROM ir_text WHERE birth_year < 1960', qi => [sex, birth_year], \
     hierarchy => {birth_year: 'bins(5, 20)'})",
    "SELECT * FROM estimate(slppa, 'SELECT ward, count(*) FROM slppa WHERE birth_year > 1970 AND sex = ''F'' GROUP BY ward')",
    "SELECT ward, count(*) FROM estimated(eir) WHERE birth_year > 1970 GROUP BY ward",
    "SELECT * FROM estimate_sum(lgb, 'SELECT sum(education_years) FROM lgb WHERE birth_year > 1970 AND sex = ''F''')",
    "SELECT * FROM estimate_sum(detached, 'SELECT count(*) FROM detached WHERE birth_year > 1970 AND ward = ''surgery''')",
    "SELECT * FROM query_error(visits, eir, qi => [sex, birth_year], sensitive => ward, queries => 20, selectivity => 0.1, \
     seed => 7, show_predicates => true)",
    "SELECT * FROM query_error(visits, eir, id => patient_id, qi => [sex, birth_year], queries => 10, count => 'individuals', \
     floor => 0.01)",
    "SELECT * FROM query_error(people, lgb, qi => [sex, birth_year], sensitive => ward, sum => education_years, queries => 10, \
     dimensions => 2, seed => 7)",
    "SELECT * FROM query_error_summary(visits, eir, qi => [sex, birth_year], sensitive => ward, queries => 50, seed => 7)",
    "SELECT * FROM query_error_summary(people, detached, qi => [sex, birth_year], queries => 20, dimensions => 2, seed => 7)",
];

#[tokio::test(flavor = "multi_thread")]
async fn golden_measures() {
    let ctx = session(1).await;
    let mut text = String::new();
    for sql in CALLS {
        let mut answer = result(&ctx, sql, usize::MAX).await;
        // Its parts come in any order.
        if sql.contains("audit_buckets") {
            let mut lines: Vec<_> = answer.lines().collect();
            lines.sort_unstable();
            answer = lines.join("\n");
        }
        text += &part(sql, &answer);
    }
    golden("measures", &text);
}
