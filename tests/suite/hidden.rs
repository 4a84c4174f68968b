//! People who are left out: a release and its manifest do not depend on them, neither on how many they are nor on their
//! values.

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::{Count, Manifest, Publish};
use serde_json::Value;

use crate::engine::{context, rows};

const PEOPLE: &str = "CREATE TABLE people AS SELECT 'p' || value AS pid, 20 + value % 40 AS age, 1000.0 + value % 90 AS salary, \
     CASE WHEN value % 2 = 0 THEN 'F' ELSE 'M' END AS sex, 'd' || (value * 7 % 12) AS disease, value % 4 = 0 AS hidden \
     FROM range(0, 240)";

const DISEASES: &str = "CREATE TABLE diseases AS SELECT 'd' || value AS value, 'kind' || (value / 4) AS kind, '*' AS root \
     FROM range(0, 12)";

/// Calls over `TABLE`, without one of the arguments that leave people out; and the number below which counts are hidden.
const CALLS: &[(&str, u64)] = &[
    (
        "anonymize_eir(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, l => 4",
        4,
    ),
    (
        "anonymize_eir(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, l => 4, algorithm => 'mondrian', block => 60",
        4,
    ),
    (
        "anonymize_ir(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, k => 5, algorithm => 'danonyir'",
        5,
    ),
    (
        "anonymize_ir(TABLE, id => pid, qi => [age, salary], sensitive => disease, k => 5, hierarchy => {age: 'bins(5, 20)'}",
        5,
    ),
    (
        "anonymize_p_sensitive(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, k => 4, p => 2",
        4,
    ),
    (
        "anonymize_kl(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, k => 3, l => 3, hierarchy => {disease: diseases}",
        3,
    ),
    (
        "anonymize_lgb(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, semi_sensitive => {age: hidden}, k => 4, l => 3",
        4,
    ),
    (
        "anatomize_slppa(TABLE, id => pid, qi => [age, salary, sex], sensitive => disease, alpha => 1, beta => 0.25, gamma => 1, \
      delta => 0.5, tables => 2",
        4,
    ),
];

async fn with_people() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    for sql in [PEOPLE, DISEASES] {
        rows(&ctx, sql).await.unwrap();
    }
    ctx
}

async fn published(ctx: &SessionContext, call: &str) -> Manifest {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await;
    let frame = frame.unwrap_or_else(|e| panic!("{call}: {e}"));
    let release = Publish::to(target.to_str().unwrap()).run(frame).await;
    release.unwrap_or_else(|e| panic!("{call}: {e}")).manifest
}

/// A manifest without what is drawn anew for each release, and without the counts that are hidden.
fn told(manifest: &Manifest) -> Value {
    let mut told = serde_json::to_value(manifest).unwrap();
    for key in ["release", "created"] {
        told[key].take();
    }
    for file in told["files"].as_array_mut().unwrap() {
        file["path"].take();
    }
    for key in ["individuals_in", "individuals_suppressed", "records_in"] {
        told["counts"][key].take();
    }
    told
}

/// Whoever is left out because of an argument leaves no trace: the same rows are published, with the same manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_does_not_depend_on_who_is_left_out() {
    let ctx = with_people().await;
    // Those who are left out, of outlying values, and how.
    let ways = [
        (
            "null_id => 'drop'",
            "SELECT CAST(NULL AS VARCHAR), AGE, SALARY, 'X', 'd1', true",
        ),
        (
            "null_sensitive => 'drop_rows'",
            "SELECT 'new' || value, AGE, SALARY, 'X', NULL, true",
        ),
        (
            "null_sensitive => 'conservative'",
            "SELECT 'new' || value, AGE, SALARY, 'X', NULL, true",
        ),
        (
            "contradictory => 'drop'",
            "SELECT 'new' || value, AGE + d.value, SALARY, 'X', d.value, true FROM (VALUES ('d1'), ('d2')) AS d (value) CROSS JOIN",
        ),
        (
            "contradictory => 'cover', null_sensitive => 'drop_rows'",
            "SELECT 'new' || value, AGE + d.more, SALARY, 'X', NULL, true FROM (VALUES (1), (2)) AS d (more) CROSS JOIN",
        ),
    ];
    for (call, hidden_below) in CALLS {
        for (way, who) in ways {
            let alone = call.starts_with("anonymize_lgb") || call.starts_with("anatomize");
            let labelled = call.starts_with("anonymize_kl");
            // What these functions do not offer.
            if (alone && way.contains("contradictory"))
                || ((alone || labelled) && way.contains("conservative"))
            {
                continue;
            }
            let call = format!("{call}, {way}, seed => 1)");
            let without = published(&ctx, &call.replace("TABLE", "people")).await;
            assert_eq!(
                without.counts.individuals_suppressed,
                Count::Exact(0),
                "{call}"
            );
            for (number, least) in [(1, 1), (hidden_below - 1, 500_000)] {
                let outlying = who
                    .replace(
                        "d.value, SALARY, 'X', d.value",
                        "length(d.value) * d.number, SALARY, 'X', d.value",
                    )
                    .replace(
                        "(VALUES ('d1'), ('d2')) AS d (value)",
                        "(VALUES ('d1', 1), ('d2', 2)) AS d (value, number)",
                    )
                    .replace("AGE", &format!("CAST({least} * 100 + n.value AS BIGINT)"))
                    .replace("SALARY", &format!("{least} * 100000.5 + n.value"))
                    .replace("'new' || value", "'new' || n.value");
                let from = match outlying.contains("FROM") {
                    true => "",
                    false => " FROM",
                };
                let table = format!(
                    "(SELECT * FROM people UNION ALL {outlying}{from} range(0, {number}) AS n)"
                );
                let with = published(&ctx, &call.replace("TABLE", &table)).await;
                let hidden = Count::Hidden {
                    hidden_below: *hidden_below,
                };
                if !way.contains("null_id") {
                    assert_eq!(with.counts.individuals_suppressed, hidden, "{call}");
                    assert_eq!(with.counts.individuals_in, hidden, "{call}");
                }
                assert_eq!(told(&with), told(&without), "{number} left out: {call}");
            }
        }
    }
}

/// Losses are computed from what is published, whoever was left out for whatever reason.
#[tokio::test(flavor = "multi_thread")]
async fn losses_are_those_of_what_is_published() {
    let ctx = with_people().await;
    // People whose choice of secrets nobody else makes, with outlying values.
    let mixed = "(SELECT *, false AS open FROM people UNION ALL \
                 SELECT 'new' || value, 5000 + value, 1e9 + value, 'M', 'd1', true, true FROM range(0, NUMBER))";
    for (number, output) in [(1, "rows"), (2, "rows"), (3, "rows"), (3, "detached")] {
        let table = mixed.replace("NUMBER", &number.to_string());
        let call = format!(
            "anonymize_lgb({table}, id => pid, qi => [age, salary, sex], sensitive => disease, \
             semi_sensitive => {{age: hidden, sex: open}}, k => 4, l => 2, output => '{output}', seed => 1)"
        );
        let manifest = published(&ctx, &call).await;
        assert_eq!(manifest.counts.individuals_out, 240, "{call}");
        assert!(manifest.counts.hides_suppressed(), "{call}");
        let nobody = "(SELECT * FROM people WHERE false)";
        let measured = format!(
            "SELECT measure, coalesce(\"column\", ''), round(value, 4) FROM information_loss({nobody}, (SELECT * FROM {call}), \
             id => individual, original_id => pid, qi => [age, salary, sex], published_only => true)"
        );
        let measured = rows(&ctx, &measured).await.unwrap();
        assert!(manifest.information_loss.len() > 9, "{manifest:?}");
        for loss in manifest
            .information_loss
            .iter()
            .filter(|l| l.measure != "information_loss")
        {
            let column = loss.column.clone().unwrap_or_default();
            let value = loss.value.unwrap().to_string();
            let told = [loss.measure.clone(), column, value];
            let same = |row: &&Vec<String>| row[..2] == told[..2];
            let row = measured.iter().find(same).unwrap();
            assert_eq!(
                row[2].parse::<f64>().unwrap(),
                loss.value.unwrap(),
                "{told:?}"
            );
        }
    }
}
