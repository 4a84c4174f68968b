//! What must not get out, or through.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows, with_patients};

const RELEASE: &str = "anonymize_eir(patients, id => name, qi => [gender, age], sensitive => disease, l => 3, seed => 7)";

/// A filter over the function is a filter of its full result, whatever the predicate.
#[tokio::test(flavor = "multi_thread")]
async fn filters_stay_above() {
    let ctx = with_patients().await;
    rows(
        &ctx,
        &format!("CREATE TABLE release AS SELECT * FROM {RELEASE}"),
    )
    .await
    .unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for i in 0..500 {
        let predicate = predicate(&mut rng, 2);
        let sorted = |from: &str| format!("SELECT * FROM {from} WHERE {predicate} ORDER BY 1, 4");
        let over_function = rows(&ctx, &sorted(RELEASE)).await.unwrap();
        let over_result = rows(&ctx, &sorted("release")).await.unwrap();
        assert_eq!(over_function, over_result, "{i}: {predicate}");
    }
}

fn predicate(rng: &mut ChaCha8Rng, depth: u32) -> String {
    if depth > 0 && rng.random_bool(0.5) {
        let op = ["AND", "OR", "AND NOT"][rng.random_range(0..3)];
        return format!(
            "({} {op} {})",
            predicate(rng, depth - 1),
            predicate(rng, depth - 1)
        );
    }
    let age = rng.random_range(30..40);
    let count = rng.random_range(0..14);
    let disease = ["Heart", "HIV", "Hypertension", "nothing"][rng.random_range(0..4)];
    match rng.random_range(0..9) {
        0 => format!("age['lo'] > {age}"),
        1 => format!("age['hi'] <= {age}"),
        2 => format!("disease = '{disease}'"),
        3 => format!("disease LIKE '%e%' AND individual > '{count}'"),
        4 => "array_has(gender, 'M')".to_owned(),
        // Without a column: the engine would like to push these below the node.
        5 => format!("(SELECT count(*) FROM patients) > {count}"),
        6 => format!("(SELECT max(age) FROM patients WHERE age < {age}) IS NOT NULL"),
        7 => format!("random() < {}", rng.random_range(0..2) * 2 - 1),
        _ => format!("disease IN (SELECT disease AS d FROM patients WHERE age > {age})"),
    }
}

/// Predicates without a column, limits and statistics do not get below the node. Watches for changes of the engine.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_passes_below_the_node() {
    let ctx = with_patients().await;
    for (tail, above) in [
        ("WHERE random() < 0.5", "FilterExec: random() < 0.5"),
        ("WHERE (SELECT count(*) FROM patients) > 3", "FilterExec"),
        ("WHERE disease = 'HIV' LIMIT 2", "FilterExec"),
        ("LIMIT 1", "fetch=1"),
        ("ORDER BY disease LIMIT 1", "TopK(fetch=1)"),
    ] {
        let plan = rows(&ctx, &format!("EXPLAIN SELECT * FROM {RELEASE} {tail}"))
            .await
            .unwrap();
        let physical = &plan[1][1];
        let (over, under) = physical.split_once("AnonymizeExec").unwrap();
        assert!(over.contains(above), "{tail}: {physical}");
        for word in ["FilterExec", "fetch=", "LimitExec", "predicate=", "TopK"] {
            assert!(
                !under.contains(word),
                "{tail}: {word} below the node: {physical}"
            );
        }
    }
    // A count must not be answered from the statistics of the input.
    let counted = rows(
        &ctx,
        &format!("SELECT count(*), min(disease) FROM {RELEASE}"),
    )
    .await
    .unwrap();
    assert_eq!(counted, [["10", "Cancer"]]);
}

/// Every raw value is a unique token; none may be found in what is written but those that are published.
#[tokio::test(flavor = "multi_thread")]
async fn canary() {
    let n = 400;
    let token = |kind: &str, i: usize| {
        format!("{kind}canary{:08x}", (i as u32).wrapping_mul(2_654_435_761))
    };
    let column = |kind: &'static str, every: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            (0..n).map(|i| token(kind, i / every)),
        ))
    };
    let secret = |name: &str, data_type: DataType| {
        let metadata = [("note".to_owned(), "metacanary".to_owned())].into();
        Field::new(name, data_type, true).with_metadata(metadata)
    };
    let schema = Arc::new(
        Schema::new(vec![
            secret("idcanary", DataType::Utf8),
            secret("city", DataType::Utf8),
            secret("income", DataType::Int64),
            secret("disease", DataType::Utf8),
            secret("unnamed", DataType::Utf8),
        ])
        .with_metadata([("source".to_owned(), "metacanary".to_owned())].into()),
    );
    let income: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n).map(|i| (i / 4) as i64)));
    // City and disease are published values; id and the unnamed column are not.
    let columns = vec![
        column("id", 4),
        column("city", 16),
        income,
        column("disease", 1),
        column("other", 1),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let ctx = context(SessionConfig::new().with_target_partitions(3));
    let table = MemTable::try_new(schema, vec![vec![batch]]).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();

    let folder = tempfile::tempdir().unwrap();
    for format in ["PARQUET", "CSV", "JSON", "ARROW"] {
        let target = folder.path().join(format);
        let nested = if format == "CSV" { "text" } else { "typed" };
        let sql = format!(
            "COPY (SELECT * FROM anonymize_eir(t, id => idcanary, qi => [city, income], sensitive => disease, l => 3, \
             notation => '{nested}')) TO '{}/' STORED AS {format} {}",
            target.display(),
            if format == "PARQUET" {
                "OPTIONS (compression 'uncompressed')"
            } else {
                ""
            },
        );
        rows(&ctx, &sql).await.unwrap();
        let mut bytes = vec![];
        for file in std::fs::read_dir(&target).unwrap() {
            bytes.extend(std::fs::read(file.unwrap().path()).unwrap());
        }
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            text.contains("diseasecanary"),
            "{format}: the sensitive value is published"
        );
        for leak in ["idcanary", "othercanary", "metacanary", "unnamed"] {
            assert!(!text.contains(leak), "{format}: {leak}");
        }
    }
    let sql = "EXPLAIN VERBOSE SELECT * FROM anonymize_eir(t, id => idcanary, qi => [city, income], \
               sensitive => disease, l => 3, seed => 'secretseed')";
    let plans = format!("{:?}", rows(&ctx, sql).await.unwrap());
    for leak in ["secretseed", "idcanary0", "citycanary", "diseasecanary"] {
        assert!(!plans.contains(leak), "EXPLAIN: {leak}");
    }
}

/// Of categories, EXPLAIN shows how many there are, and an error how many values have none.
#[tokio::test(flavor = "multi_thread")]
async fn categories_stay_hidden() {
    let ctx = with_patients().await;
    let release = |categories: &str| {
        format!(
            "SELECT * FROM anonymize_p_sensitive(patients, id => name, qi => [gender, age], sensitive => disease, \
             k => 2, p => 2, categories => {categories})"
        )
    };
    let all = "{toplabel: ['HIV', 'Cancer', 'Leukaemia', 'Syphilis'], rest: ['Heart', 'Hypertension', 'Diabetes']}";
    let plans = rows(&ctx, &format!("EXPLAIN VERBOSE {}", release(all))).await;
    let plans = format!("{:?}", plans.unwrap());
    assert!(plans.contains("categories={disease: 2}"));
    for leak in ["toplabel", "Leukaemia", "Hypertension"] {
        assert!(!plans.contains(leak), "EXPLAIN: {leak}");
    }
    let error = rows(&ctx, &release("[['HIV'], ['Cancer']]"))
        .await
        .unwrap_err();
    let message = error.strip_backtrace();
    assert!(
        message.contains("without a category in at least"),
        "{message}"
    );
    for leak in ["Leukaemia", "Hypertension", "Heart", "Diabetes", "Syphilis"] {
        assert!(!message.contains(leak), "{leak}: {message}");
    }
}

/// Two releases share no pseudonym, and the order of the output tells nothing about that of the input.
#[tokio::test(flavor = "multi_thread")]
async fn pseudonyms_and_order_are_random() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    rows(&ctx, "CREATE TABLE t AS SELECT value AS id, value % 90 AS age, value % 7 AS disease FROM range(0, 600)")
        .await
        .unwrap();
    let sql = "SELECT individual, id2 FROM anonymize_eir((SELECT id, id AS id2, age, disease FROM t), id => id, \
               qi => [age], sensitive => disease, keep => [id2], l => 2)";
    let n = 600f64;
    let mut seen = std::collections::HashSet::new();
    let mut worst = 0f64;
    for _ in 0..40 {
        let release = rows(&ctx, sql).await.unwrap();
        assert_eq!(release.len(), 600);
        for row in &release {
            assert!(seen.insert(row[0].clone()), "a pseudonym came twice");
        }
        // Spearman's correlation of output position, and of pseudonym, with input position.
        let input: Vec<f64> = release.iter().map(|r| r[1].parse().unwrap()).collect();
        let mut by_name: Vec<usize> = (0..release.len()).collect();
        by_name.sort_by_key(|i| &release[*i][0]);
        let shuffled = by_name.iter().map(|i| input[*i]).collect::<Vec<_>>();
        worst = worst.max(correlation(&shuffled, n).abs());
    }
    assert!(worst < 4.5 / n.sqrt(), "{worst}");
}

fn correlation(ranks: &[f64], n: f64) -> f64 {
    let distance: f64 = ranks
        .iter()
        .enumerate()
        .map(|(i, r)| (i as f64 - r).powi(2))
        .sum();
    1.0 - 6.0 * distance / (n * (n * n - 1.0))
}

/// A CTE named twice is one release, not two that could be joined; a view is a new one for every query.
#[tokio::test(flavor = "multi_thread")]
async fn one_plan_is_one_release() {
    let ctx = with_patients().await;
    let call = "anonymize_eir(patients, id => name, qi => [age], sensitive => disease, l => 3)";
    rows(
        &ctx,
        &format!("CREATE VIEW release AS SELECT * FROM {call}"),
    )
    .await
    .unwrap();
    let sorted = "SELECT individual FROM release ORDER BY 1";
    let first = rows(&ctx, sorted).await.unwrap();
    assert!(
        rows(&ctx, sorted)
            .await
            .unwrap()
            .iter()
            .all(|row| !first.contains(row))
    );
    let older = call.replace("patients", "(SELECT * FROM patients WHERE age > $1)");
    rows(
        &ctx,
        &format!("PREPARE older AS SELECT individual FROM {older}"),
    )
    .await
    .unwrap();
    let older = rows(&ctx, "EXECUTE older(33)").await.unwrap();
    assert!(
        rows(&ctx, "EXECUTE older(32)")
            .await
            .unwrap()
            .iter()
            .all(|row| !older.contains(row))
    );
    let twice = format!(
        "WITH r AS (SELECT * FROM {call})
         SELECT count(*) > 3, bool_and(b.age IS NOT NULL)
         FROM r AS a LEFT JOIN r AS b ON a.individual = b.individual AND a.disease = b.disease"
    );
    assert_eq!(rows(&ctx, &twice).await.unwrap(), [["true", "true"]]);
}

/// Sensitive values that are published as labels are nowhere in the result, the plan or the metrics.
#[tokio::test(flavor = "multi_thread")]
async fn fingerprints_hide_their_values() {
    let ctx = context(SessionConfig::new().with_target_partitions(3));
    for sql in [
        "CREATE TABLE t AS SELECT value AS id, value % 50 AS age, concat('rawcanary', value % 300) AS disease \
         FROM range(0, 600)",
        "CREATE TABLE labels AS SELECT concat('rawcanary', value), concat('label', value / 30), '*' FROM range(0, 300)",
    ] {
        rows(&ctx, sql).await.unwrap();
    }
    let call = "anonymize_kl(t, id => id, qi => [age], sensitive => disease, k => 10, l => 5, \
                hierarchy => {disease: labels}, notation => 'text')";
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("release.csv");
    let copy = format!("COPY (SELECT * FROM {call}) TO '{}'", target.display());
    rows(&ctx, &copy).await.unwrap();
    let text = std::fs::read_to_string(&target).unwrap();
    assert!(text.contains("label3"), "labels are published");
    assert!(!text.contains("rawcanary"), "values are not");
    for explain in ["EXPLAIN VERBOSE", "EXPLAIN ANALYZE"] {
        let plans = rows(&ctx, &format!("{explain} SELECT * FROM {call}")).await;
        let plans = format!("{:?}", plans.unwrap());
        for leak in ["rawcanary", "label3"] {
            assert!(!plans.contains(leak), "{explain}: {leak}");
        }
    }
}
