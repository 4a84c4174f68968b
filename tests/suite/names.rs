//! Columns of any name.

use datafusion::common::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::{Figures, Publish, Release, ReportFormat};

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
    "a.age",
    "order",
    "quoted \"x\"",
    "__id",
    "__qi_age",
    "individual",
    "lo",
    LONG,
];

/// Names of columns that one function or another adds.
const ADDED: &[&str] = &["individual", "individuals", "gid", "count"];

/// A name of 200 characters.
const LONG: &str = "Ein langer Name, wie ihn Auswertungen schreiben, die alles in eine Überschrift setzen: \
    Alter der Person am Tag der Aufnahme, in vollendeten Jahren, laut Akte des Hauses, geprüft am Tag danach, zweimal";

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
    "anonymize_kkm(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, m => 1, delta => 0.9, \
     hierarchy => {SENSITIVE: diseases})",
    "anonymize_eir((SELECT ID, MORE, SENSITIVE, QI FROM t), id => ID, qi => [MORE], sensitive => SENSITIVE, keep => [QI], l => 2)",
    "anonymize_kl(t, id => ID, qi => [QI, MORE], sensitive => SENSITIVE, k => 2, l => 2, \
     hierarchy => {SENSITIVE: 'co_occurrence(3)'})",
];

/// What is asked of a release: the calls whose releases it fits, and the query. `P` stands for the release, `ROLES` for the
/// roles that measuring functions take, `INNER` for a name in a query that is a text.
const QUESTIONS: &[(&[usize], &str)] = &[
    (
        &[0, 1, 2, 10],
        "audit(P, id => individual, ROLES, original => t, original_id => ID)",
    ),
    (
        &[0, 1, 2, 10],
        "audit(P, id => individual, ROLES, population => t, population_id => ID)",
    ),
    (
        &[0, 1, 2, 3, 10],
        "information_loss(t, P, id => individual, original_id => ID, ROLES)",
    ),
    (
        &[0, 1, 2, 3, 7, 10],
        "audit_classes(P, id => individual, ROLES)",
    ),
    (
        &[0, 2],
        "(SELECT count(*) FROM vulnerable_classes(P, id => individual, ROLES, l => 2))",
    ),
    (
        &[0, 2],
        "(SELECT count(*) FROM similarity_attack(P, id => individual, ROLES, categories => [['d0', 'd1'], ['d2', 'd3', \
         'd4', 'd5', 'd6', 'd7', 'd8', 'd9', 'd10', 'd11']]))",
    ),
    (
        &[0, 1, 2],
        "query_error_summary(t, P, ROLES, queries => 20, seed => 1)",
    ),
    (&[0, 2], "query_error(t, P, ROLES, queries => 5, seed => 1)"),
    (
        &[0, 2],
        "estimate(P, 'SELECT count(*) FROM published WHERE INNER >= 30', qi => [QI, MORE])",
    ),
    (&[4], "audit_buckets(P)"),
    (
        &[0],
        "(SELECT match_fraction(MORE, '=', 'F') AS p FROM P LIMIT 1)",
    ),
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

/// The reports on a release, in all formats.
fn check_reports(figures: &Figures, name: &str) {
    for format in [
        ReportFormat::Html,
        ReportFormat::Markdown,
        ReportFormat::Json,
    ] {
        let report = figures.report(format);
        let report = report.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(report.len() > 1000, "{name}");
    }
}

/// A release is made, verified and compared with its input, and can be read, audited, compared and queried.
#[tokio::test(flavor = "multi_thread")]
async fn columns_may_have_any_name() {
    assert_eq!(LONG.chars().count(), 200);
    let (mut asked, mut refused, mut wrong) = (vec![0; QUESTIONS.len()], 0, vec![]);
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
        for (at, names) in cases.iter().enumerate() {
            let [id, qi, more, sensitive] = names;
            let ctx = people(id, qi, more, sensitive).await;
            let named = |text: &str| {
                let text = text.replace("SENSITIVE", &quoted(sensitive));
                let text = text.replace("MORE", &quoted(more));
                let text = text.replace("INNER", &quoted(qi).replace('\'', "''"));
                text.replace("QI", &quoted(qi)).replace("ID", &quoted(id))
            };
            // Every call with some of the names, and every name with some of the calls.
            let some = if at == 4 { 3 } else { CALLS.len() };
            let calls = CALLS.iter().enumerate();
            let calls = calls.filter(|(call, _)| (call + at + nth) % some == 0);
            for (number, call) in calls {
                let call = named(call);
                // Some are names of columns that functions add, and cannot be published beside them.
                if ADDED.contains(name)
                    && (1..4).contains(&at)
                    && let Err(error) = ctx.sql(&format!("SELECT * FROM {call}")).await
                {
                    let said = error.strip_backtrace();
                    let told = format!("names column '{name}', ");
                    assert!(
                        said.contains(&told) && said.contains("; rename it"),
                        "{call}: {said}"
                    );
                    refused += 1;
                    continue;
                }
                match check_call(&ctx, number, &call, &named).await {
                    Ok(questions) => questions.into_iter().for_each(|at| asked[at] += 1),
                    Err(error) => wrong.push(error),
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(asked.iter().all(|times| *times > 2), "{asked:?}");
    assert!(refused > 4, "{refused}");
}

/// Publishes a call, reads the release, reports on it and asks it; which questions, or what went wrong.
async fn check_call(
    ctx: &SessionContext,
    number: usize,
    call: &str,
    named: &dyn Fn(&str) -> String,
) -> Result<Vec<usize>, String> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let target = target.to_str().unwrap();
    let failed = |what: &str, error: DataFusionError| format!("{what}: {error}");
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await;
    let frame = frame.map_err(|e| failed(call, e))?;
    let release = Publish::to(target).with_figures(true).run(frame).await;
    let release = release.map_err(|e| failed(call, e))?;
    assert_eq!(release.manifest.counts.individuals_out, 80, "{call}");
    check_reports(release.figures.as_ref().unwrap(), call);
    check_read(ctx, &release, target).await?;
    // One of them keeps the first quasi-identifier as it is.
    let roles = match number {
        10 => "qi => [MORE], sensitive => SENSITIVE",
        _ => "qi => [QI, MORE], sensitive => SENSITIVE",
    };
    let mut asked = vec![];
    let fitting = QUESTIONS.iter().enumerate();
    for (question, (_, sql)) in fitting.filter(|(_, (of, _))| of.contains(&number)) {
        // The names of folders are random, and come last.
        let mut sql = named(&format!("SELECT * FROM {}", sql.replace("ROLES", roles)));
        for (before, after) in [("(", ","), (" ", ","), ("(", ")"), (" ", " ")] {
            let read = format!("{before}release('{target}'){after}");
            sql = sql.replace(&format!("{before}P{after}"), &read);
        }
        let found = rows(ctx, &sql).await.map_err(|e| failed(&sql, e))?;
        assert!(!found.is_empty(), "{sql}");
        asked.push(question);
    }
    Ok(asked)
}

/// Every table of a release has the columns and records that it should have.
async fn check_read(ctx: &SessionContext, release: &Release, target: &str) -> Result<(), String> {
    for table in &release.manifest.tables {
        let name = table.name.replace('\'', "''");
        let sql = format!("SELECT * FROM release('{target}', table => '{name}', verify => true)");
        let frame = ctx.sql(&sql).await;
        let frame = frame.map_err(|e| format!("{sql}: {e}"))?;
        let columns = frame.schema().fields().iter().map(|f| f.name().clone());
        assert_eq!(columns.collect::<Vec<_>>(), table.columns);
        let read = frame.count().await;
        let read = read.map_err(|e| format!("{sql}: {e}"))?;
        assert_eq!(read as u64, table.records, "{sql}");
    }
    Ok(())
}
