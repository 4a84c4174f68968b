//! Columns of any name.

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::Publish;

use crate::engine::{context, rows};

/// Names that have to be quoted in SQL, are words of SQL, or are names that plans use inside.
const NAMES: &[&str] = &[
    "Age",
    "a.b",
    "A.B.c",
    "a ",
    " a",
    "a b",
    "a\"b",
    "a'b",
    "Größe",
    "select",
    "1st",
    "a\tb",
    "class",
    "key",
    "value",
    "__age",
    "individuals",
    "records",
    "gid",
    "count",
    "bid",
    "n",
    "place",
    "label",
];

/// What is called, with `ID`, `QI`, `MORE` and `SENSITIVE` for columns.
const CALLS: &[&str] = &[
    "anonymize_eir(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, l => 2)",
    "anonymize_eir(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, l => 2, notation => 'text')",
    "anonymize_ir(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, categorical => [QI])",
    "anonymize_p_sensitive(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, p => 2, hierarchy => {QI: 'bins(5, 20)'})",
    "anonymize_lgb(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, semi_sensitive => {QI: true}, k => 2, l => 2)",
    "anonymize_lgb(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, l => 2, output => 'detached')",
    "anatomize_slppa(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, alpha => 1, beta => 0.5, gamma => 1, delta => 0.9, tables => 2)",
    "anonymize_kl(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, l => 2, hierarchy => {SENSITIVE: diseases})",
    "anonymize_kl(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, l => 2, hierarchy => {SENSITIVE: diseases}, \
     output => 'individuals')",
];

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// 80 people in a table whose columns have these names.
async fn people(id: &str, qi: &str, more: &str, sensitive: &str) -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let table = format!(
        "CREATE TABLE t AS SELECT value AS {}, 20 + value % 40 AS {}, CASE WHEN value % 2 = 0 THEN 'F' ELSE 'M' END AS {}, \
         'd' || (value * 7 % 12) AS {} FROM range(0, 80)",
        quoted(id),
        quoted(qi),
        quoted(more),
        quoted(sensitive)
    );
    rows(&ctx, &table).await.unwrap();
    let diseases = "CREATE TABLE diseases AS SELECT 'd' || value AS value, 'kind' || (value / 4) AS kind, '*' AS root \
                    FROM range(0, 12)";
    rows(&ctx, diseases).await.unwrap();
    ctx
}

/// A release is made, verified and compared with its input, and can be audited.
#[tokio::test(flavor = "multi_thread")]
async fn columns_may_have_any_name() {
    for (nth, name) in NAMES.iter().enumerate() {
        let others = ["id", "q", "m", "s"];
        // The name in each role, one after the other; and once with all of them alike.
        let mut cases: Vec<[String; 4]> = vec![];
        for role in 0..4 {
            let mut names = others.map(str::to_owned);
            names[role] = (*name).to_owned();
            cases.push(names);
        }
        cases.push(["1", "2", "3", "4"].map(|number| format!("{name}{number}")));
        for (at, [id, qi, more, sensitive]) in cases.iter().enumerate() {
            let ctx = people(id, qi, more, sensitive).await;
            // Every call with some of the names, and every name with some of the calls.
            let some = if at == 4 { 3 } else { CALLS.len() };
            let calls = CALLS.iter().enumerate();
            let calls = calls.filter(|(call, _)| (call + at + nth) % some == 0);
            for (number, call) in calls {
                // Names of columns that this function adds.
                let added: &[&str] = match number {
                    4 | 5 => &["gid", "individuals"],
                    6 => &["gid", "count"],
                    _ => &[],
                };
                if added.contains(name) {
                    continue;
                }
                let call = call
                    .replace("SENSITIVE", &quoted(sensitive))
                    .replace("MORE", &quoted(more))
                    .replace("QI", &quoted(qi))
                    .replace("ID", &quoted(id));
                let folder = tempfile::tempdir().unwrap();
                let target = folder.path().join("t");
                let frame = ctx.sql(&format!("SELECT * FROM {call}")).await;
                let frame = frame.unwrap_or_else(|e| panic!("{call}: {e}"));
                let release = Publish::to(target.to_str().unwrap())
                    .with_figures(true)
                    .run(frame)
                    .await;
                let release = release.unwrap_or_else(|e| panic!("{call}: {e}"));
                assert_eq!(release.manifest.counts.individuals_out, 80, "{call}");
                if number < 3 {
                    let (qi, more, sensitive) = (quoted(qi), quoted(more), quoted(sensitive));
                    let roles = format!("qi => [{qi}, {more}], sensitive => {sensitive}");
                    let id = quoted(id);
                    for sql in [
                        format!(
                            "SELECT * FROM audit((SELECT * FROM {call}), id => individual, {roles}, original => t, original_id => {id})"
                        ),
                        format!(
                            "SELECT * FROM audit((SELECT * FROM {call}), id => individual, {roles}, population => t, population_id => {id})"
                        ),
                        format!(
                            "SELECT * FROM information_loss(t, (SELECT * FROM {call}), id => individual, original_id => {id}, {roles})"
                        ),
                        format!(
                            "SELECT * FROM audit_classes((SELECT * FROM {call}), id => individual, {roles})"
                        ),
                    ] {
                        let found = rows(&ctx, &sql).await;
                        assert!(!found.unwrap_or_else(|e| panic!("{sql}: {e}")).is_empty());
                    }
                }
            }
        }
    }
}
