//! What was changed on its way into the files is refused, whatever the form of the release.

mod mutants;

use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

use super::*;

/// 240 people, each with a job, and a disease of one of three kinds.
const PEOPLE: &str = "CREATE TABLE people AS SELECT value AS id, 20 + value % 40 AS age, value % 3 = 0 AS hidden, \
    CASE WHEN value % 2 = 0 THEN 'F' ELSE 'M' END AS sex, 'j' || (value % 5) AS job, \
    'd' || (value * 7 % 12) AS disease FROM range(0, 240)";

/// The same people with three visits each.
const VISITS: &str = "CREATE TABLE visits AS SELECT id, age, sex, 'd' || ((id * 7 + id / 12 * n + n) % 12) AS disease \
    FROM people CROSS JOIN (SELECT value AS n FROM range(0, 3))";

const DISEASES: &str = "CREATE TABLE diseases AS SELECT 'd' || value AS value, 'kind' || (value / 4) AS kind, '*' AS root \
    FROM range(0, 12)";

const KL: &str = "anonymize_kl(people, id => id, qi => [age, sex], sensitive => disease, k => 3, l => 3, \
    hierarchy => {disease: diseases})";

const KKM: &str = "anonymize_kkm(people, id => id, qi => [age, sex], sensitive => disease, k => 30, m => 1, delta => 0.9, \
    hierarchy => {disease: diseases})";

const LGB: &str = "anonymize_lgb(people, id => id, qi => [age, sex], semi_sensitive => {age: hidden}, sensitive => disease, \
    k => 4, l => 3)";

const DETACHED: &str = "anonymize_lgb(people, id => id, qi => [age, sex], semi_sensitive => {age: hidden}, \
    sensitive => disease, k => 4, l => 3, output => 'detached')";

const SLPPA: &str = "anatomize_slppa(people, id => id, qi => [age, sex, job], sensitive => disease, alpha => 1, beta => 0.25, \
    gamma => 1, delta => 0.5, tables => 2)";

async fn context() -> SessionContext {
    let context = SessionContext::new();
    crate::register_all(&context).unwrap();
    for sql in [PEOPLE, VISITS, DISEASES] {
        context.sql(sql).await.unwrap().collect().await.unwrap();
    }
    context
}

/// Publishes what a query makes of `honest`, the result of a call.
async fn publish(call: &str, change: &str, target: &str) -> Result<Release> {
    let context = context().await;
    let frame = context.sql(&format!("SELECT * FROM {call}")).await?;
    let (state, plan) = frame.into_parts();
    let mut call = Call::of(&plan)?;
    let honest = DataFrame::new(state.clone(), call.published.clone());
    let schema = Arc::new(honest.schema().as_arrow().clone());
    let honest = MemTable::try_new(schema, vec![honest.collect().await?])?;
    context.register_table("honest", Arc::new(honest))?;
    call.published = context.sql(change).await?.into_unoptimized_plan();
    let outcome = Publish::to(target).run_call(&state, &call).await;
    outcome?.published()
}

/// Publishes, for one call, what another call gives.
async fn publish_rows(call: &str, given: &str, target: &str) -> Result<Release> {
    let context = context().await;
    let (state, plan) = context
        .sql(&format!("SELECT * FROM {call}"))
        .await?
        .into_parts();
    let mut call = Call::of(&plan)?;
    let given = context.sql(&format!("SELECT * FROM {given}")).await?;
    let schema = Arc::new(given.schema().as_arrow().clone());
    let given = MemTable::try_new(schema, vec![given.collect().await?])?;
    context.register_table("given", Arc::new(given))?;
    call.published = context
        .sql("SELECT * FROM given")
        .await?
        .into_unoptimized_plan();
    let outcome = Publish::to(target).run_call(&state, &call).await;
    outcome?.published()
}

/// What is said of a change, for which nothing may be visible.
async fn refused(call: &str, change: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let said = publish(call, change, target.to_str().unwrap()).await;
    let said = said.expect_err(change).strip_backtrace();
    let left = std::fs::read_dir(&target).unwrap().count();
    assert_eq!(left, 0, "{change}");
    assert!(!said.contains("kind") && !said.contains("d1"), "{said}");
    said
}

const VERIFICATION: &str = "failed its verification";
const TRUTH: &str = "is not true of the input";

/// Two values in each other's place: whoever shared them, or was apart, still does, and everything is wrong.
fn swapped(column: &str, a: &str, b: &str) -> String {
    format!(
        "SELECT * REPLACE (CASE {column} WHEN '{a}' THEN '{b}' WHEN '{b}' THEN '{a}' ELSE {column} END AS {column}) FROM honest"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_changed_and_published() {
    for call in [KL, KKM, LGB, DETACHED, SLPPA] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("t");
        let done = publish(call, "SELECT * FROM honest", target.to_str().unwrap()).await;
        let manifest = done.unwrap_or_else(|e| panic!("{call}: {e}")).manifest;
        assert_eq!(manifest.measure("individuals"), Some(240.0), "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_labels_are_refused() {
    // One person alone with a combination of labels.
    let alone = "SELECT * FROM honest UNION ALL \
                 (SELECT * REPLACE ('d3' AS disease) FROM honest WHERE disease <> 'd3' ORDER BY individual LIMIT 1)";
    let foreign = "SELECT * REPLACE (CASE WHEN individual = (SELECT min(individual) FROM honest) THEN 'none' ELSE disease END \
                   AS disease) FROM honest";
    let older = "SELECT * REPLACE (named_struct('lo', age['lo'] + 500, 'hi', age['hi'] + 500) AS age) FROM honest";
    for (call, a, b) in [(KL, "d1", "d2"), (KKM, "kind0", "kind1")] {
        assert!(refused(call, alone).await.contains(VERIFICATION), "{call}");
        assert!(
            refused(call, foreign).await.contains(VERIFICATION),
            "{call}"
        );
        assert!(refused(call, older).await.contains(TRUTH), "{call}");
        let said = refused(call, &swapped("disease", a, b)).await;
        assert!(said.contains(TRUTH), "{call}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_groups_and_buckets_are_refused() {
    let first = "individual = (SELECT min(individual) FROM honest)";
    let alone =
        format!("SELECT * REPLACE (CASE WHEN {first} THEN ['X'] ELSE sex END AS sex) FROM honest");
    let shown = "SELECT * REPLACE (CASE WHEN age_bid IS NOT NULL THEN named_struct('lo', age_bucketized, 'hi', age_bucketized) \
                 ELSE age END AS age) FROM honest WHERE individual IS NOT NULL";
    let alike = "SELECT * REPLACE (min(disease_bucketized) OVER (PARTITION BY disease_bid) AS disease_bucketized) FROM honest";
    let twice =
        "SELECT * REPLACE (CAST(individuals + 1 AS BIGINT UNSIGNED) AS individuals) FROM honest";
    let lost = "SELECT * FROM honest WHERE disease_bucketized IS DISTINCT FROM 'd1'";
    for (call, change) in [
        (LGB, alone.as_str()),
        (LGB, shown),
        (LGB, alike),
        (DETACHED, &alone),
        (DETACHED, twice),
        (DETACHED, lost),
    ] {
        let said = refused(call, change).await;
        assert!(said.contains(VERIFICATION), "{call} {change}: {said}");
    }
    let older = "SELECT * REPLACE (CASE WHEN age IS NOT NULL THEN named_struct('lo', age['lo'] + 500, 'hi', age['hi'] + 500) END \
                 AS age) FROM honest";
    for call in [LGB, DETACHED] {
        for change in [older, &swapped("disease_bucketized", "d1", "d2")] {
            let said = refused(call, change).await;
            assert!(said.contains(TRUTH), "{call} {change}: {said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_sub_tables_are_refused() {
    let group = "gid = (SELECT min(gid) FROM honest)";
    let more = format!(
        "SELECT * REPLACE (CASE WHEN subtable = 'sa' AND {group} THEN count + 1 ELSE count END AS count) FROM honest"
    );
    // One value of a group takes the place of another.
    let likely = format!(
        "SELECT * REPLACE (CASE WHEN subtable = 'sa' AND {group} THEN 9 ELSE count END AS count) FROM honest \
         WHERE NOT (subtable = 'sa' AND {group} AND disease <> (SELECT min(disease) FROM honest WHERE {group}))"
    );
    let moved = "SELECT * REPLACE (CASE WHEN subtable = 'qi_1' THEN CAST(7 AS BIGINT UNSIGNED) ELSE gid END AS gid) FROM honest";
    let gone = "SELECT * FROM honest WHERE subtable <> 'sa'";
    for change in [more.as_str(), &likely, moved, gone] {
        let said = refused(SLPPA, change).await;
        assert!(said.contains(VERIFICATION), "{change}: {said}");
    }
    // Everybody has another disease, and all shares are as they were.
    let other = "SELECT * REPLACE ('e' || disease AS disease) FROM honest";
    let older = "SELECT * REPLACE (age + 500 AS age) FROM honest";
    for change in [other, older] {
        let said = refused(SLPPA, change).await;
        assert!(said.contains(TRUTH), "{change}: {said}");
    }
}

/// Spellings of one value stand where there were several values: to be seen from the written bytes by whoever knows that
/// they count as one.
#[tokio::test(flavor = "multi_thread")]
async fn spellings_of_one_value_are_refused() {
    let spelled = |column: &str, place: &str| {
        let number = format!("row_number() OVER (PARTITION BY {place} ORDER BY individual) % 4");
        format!(
            "SELECT * REPLACE (CASE WHEN {column} IS NULL THEN NULL ELSE CASE {number} WHEN 0 THEN 'd1' WHEN 1 THEN 'D1' \
             WHEN 2 THEN 'd1 ' ELSE 'Ｄ1' END END AS {column}) FROM honest"
        )
    };
    let classes = [
        "anonymize_eir(people, id => id, qi => [age], sensitive => disease, l => 2",
        "anonymize_eir(people, id => id, qi => [age], sensitive => disease, alpha => 0.5, beta => 0.5",
        "anonymize_ir(people, id => id, qi => [age], sensitive => disease, k => 2, l => 2",
        "anonymize_ir(people, id => id, qi => [age], sensitive => disease, alpha => 0.5, beta => 0.5",
        "anonymize_p_sensitive(people, id => id, qi => [age], sensitive => disease, k => 2, p => 2",
        "anonymize_p_sensitive(people, id => id, qi => [age], sensitive => [job, disease], k => 2, p => 2",
    ];
    let buckets = "anonymize_lgb(people, id => id, qi => [age, job], semi_sensitive => {job: hidden}, \
                   sensitive => disease, k => 2, l => 2";
    let detached = format!("{buckets}, output => 'detached'");
    let of_classes = spelled("disease", "age");
    let mut cases: Vec<(&str, String)> = classes.map(|call| (call, of_classes.clone())).into();
    for column in ["disease", "job"] {
        let change = spelled(&format!("{column}_bucketized"), &format!("{column}_bid"));
        cases.push((buckets, change.clone()));
        // Those of the detached values have no individual, and come in no order.
        cases.push((&detached, change));
    }
    for (call, change) in cases {
        let said = refused(&format!("{call})"), &change).await;
        assert!(said.contains(TRUTH), "{call}: {said}");
        let said = refused(&format!("{call}, normalize => true)"), &change).await;
        assert!(said.contains(VERIFICATION), "{call}: {said}");
    }
}
