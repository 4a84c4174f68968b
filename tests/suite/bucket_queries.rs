//! Random sums and counts over tables with buckets: all queries at once against each of them alone.

use datafusion::prelude::SessionContext;

use crate::engine::{rows, with_patients};

/// People with two semi-sensitive columns, one of them with few values, and two sensitive ones.
const PEOPLE: &str = "CREATE TABLE people AS \
    SELECT value AS id, CAST(20 + value * 7 % 45 AS INT) AS age, value % 4 = 0 OR value % 7 = 1 AS age_secret, \
    CASE WHEN value % 5 < 2 THEN 'F' ELSE 'M' END AS sex, value % 3 = 0 AS sex_secret, \
    'Z' || CAST(value * 13 % 6 AS VARCHAR) AS zip, 'D' || CAST(value * 11 % 12 AS VARCHAR) AS disease, \
    CAST(value * 31 % 67 - 5 AS INT) AS salary FROM generate_series(1, 240)";

async fn release(rest: &str) -> SessionContext {
    let ctx = with_patients().await;
    rows(&ctx, PEOPLE).await.unwrap();
    let sql = format!(
        "CREATE TABLE published AS SELECT * FROM anonymize_lgb(people, id => id, qi => [age, sex, zip], \
         semi_sensitive => {{age: age_secret, sex: sex_secret}}, sensitive => [disease, salary], k => 4, \
         l => {{age: 3, disease: 3, salary: 4}}, t => {{sex: 0.3}}, seed => 5{rest})"
    );
    rows(&ctx, &sql).await.unwrap();
    ctx
}

/// Every query as SQL gives the same numbers alone.
async fn agree(rest: &str, arguments: &str, summed: &str) {
    let ctx = release(rest).await;
    let domain = "domain => {age: [20, 64], sex: ['F', 'M']}";
    let answered = format!(
        "SELECT predicate, prec, lower, est, upper, error, r_error FROM query_error(people, published, \
         qi => [age, sex, zip], {domain}, queries => 25, dimensions => 2, selectivity => 0.3, seed => 3, \
         show_predicates => true{arguments}) ORDER BY query"
    );
    let (mut exact, mut wide) = (0, 0);
    for row in rows(&ctx, &answered).await.unwrap() {
        let number = |at: usize| row[at].parse::<f64>().unwrap();
        let select = format!("SELECT {summed} FROM published WHERE {}", row[0]);
        let alone = format!(
            "SELECT lower, expected, upper FROM estimate_sum(published, '{}', qi => [age, sex, zip], {domain})",
            select.replace('\'', "''")
        );
        let alone = rows(&ctx, &alone).await.unwrap();
        for (at, column) in [2, 3, 4].into_iter().enumerate() {
            let alone: f64 = alone[0][at].parse().unwrap();
            let differs = (alone - number(column)).abs();
            assert!(differs < 1e-9, "{rest} {select}: {alone}, {row:?}");
        }
        let truth = format!(
            "SELECT coalesce(CAST({summed} AS DOUBLE), 0.0) FROM people WHERE {}",
            row[0]
        );
        let truth: f64 = rows(&ctx, &truth).await.unwrap()[0][0].parse().unwrap();
        assert_eq!(truth, number(1), "{select}");
        if truth == 0.0 {
            assert_eq!((row[5].as_str(), row[6].as_str()), ("NULL", "NULL"));
            continue;
        }
        assert!((number(5) - (number(3) - truth).abs() / truth.abs()).abs() < 1e-9);
        assert!((number(6) - (number(4) - number(2)) / truth.abs()).abs() < 1e-9);
        exact += 1;
        wide += u32::from(number(6) > 0.0);
    }
    assert!(exact > 15 && wide > 10, "{rest}: {exact} {wide}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_over_buckets_are_those_of_each_query_alone() {
    agree("", ", sum => salary", "sum(salary)").await;
    agree(
        ", output => 'detached'",
        ", sum => salary, sensitive => disease",
        "sum(salary)",
    )
    .await;
    agree(
        ", small_pattern => 'mask', notation => 'text'",
        ", sum => salary, sensitive => salary",
        "sum(salary)",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_over_buckets_are_those_of_each_query_alone() {
    agree("", ", sensitive => disease", "count(*)").await;
    agree(", output => 'detached'", "", "count(*)").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_summary_is_that_of_the_rows() {
    let ctx = release("").await;
    let call = "(people, published, qi => [age, sex], sum => salary, queries => 60, selectivity => 0.02, dimensions => 2)";
    let sql = format!(
        "SELECT count(*), count(*) FILTER (WHERE r_error IS NULL), round(avg(error), 9), round(max(error), 9), \
         round(avg(r_error), 9), round(max(r_error), 9) FROM query_error{call}"
    );
    let by_hand = rows(&ctx, &sql).await.unwrap();
    let sql = format!(
        "SELECT queries, without_error, round(mean, 9), round(max, 9), round(r_mean, 9), round(r_max, 9) \
         FROM query_error_summary{call}"
    );
    assert_eq!(rows(&ctx, &sql).await.unwrap(), by_hand);
    assert_ne!(by_hand[0][1], "60");
}
