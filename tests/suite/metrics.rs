//! What an executed plan has to tell.

use std::sync::Arc;

use datafusion::physical_plan::collect;
use datafusion_anonymize::Summary;

use crate::engine::{rows, with_patients};

const TWICE: &str = "anonymize_eir((SELECT * FROM patients UNION ALL SELECT * FROM patients), id => name, \
    qi => [gender, age, postcode], sensitive => disease, l => 3, seed => 42, categorical => [postcode], \
    domain => {age: [30, 39]})";

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_counts_individuals_records_and_loss() {
    let ctx = with_patients().await;
    let frame = ctx.sql(&format!("SELECT * FROM {TWICE}")).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let summary = Summary::of(&plan).unwrap();
    // Table 4 of Wang et al. 2018: 5 records lose 1/9 + 2/6 each, and 5 lose 1 + 2/9 + 3/6, of 3 cells each.
    let loss = (5.0 * (1.0 / 9.0 + 2.0 / 6.0) + 5.0 * (1.0 + 2.0 / 9.0 + 3.0 / 6.0)) / 30.0;
    assert!(
        (summary.information_loss - loss).abs() < 1e-6,
        "{summary:?} {loss}"
    );
    let counts = Summary {
        records_in: 20,
        records_out: 10,
        duplicates: 10,
        individuals: 7,
        suppressed: 0,
        classes: 2,
        blocks: 1,
        information_loss: summary.information_loss,
        published_loss: summary.information_loss,
    };
    assert_eq!(summary, counts);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_analyze_shows_our_metrics() {
    let ctx = with_patients().await;
    let plan = rows(&ctx, &format!("EXPLAIN ANALYZE SELECT * FROM {TWICE}"))
        .await
        .unwrap();
    let plan = &plan[0][1];
    for metric in [
        "individuals=7",
        "classes=2",
        "blocks=1",
        "suppressed_individuals=0",
        "duplicate_records=10",
        "contradictory_individuals=0",
        "look_alike_sensitive_values=0",
        "null_ids=0",
        "time_forming_classes=",
        "time_verifying=",
        "information_loss=",
        "spilled_bytes=",
    ] {
        assert!(plan.contains(metric), "{metric}: {plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn look_alike_values_are_counted() {
    let ctx = with_patients().await;
    let sql = "EXPLAIN ANALYZE SELECT * FROM anonymize_eir((SELECT name, age, disease FROM patients UNION ALL \
               SELECT 'Zoe', 36, 'heart ' UNION ALL SELECT 'Zac', 36, 'ＨＥＡＲＴ'), id => name, qi => [age], \
               sensitive => disease, l => 3)";
    let plan = rows(&ctx, sql).await.unwrap();
    assert!(
        plan[0][1].contains("look_alike_sensitive_values=2"),
        "{}",
        plan[0][1]
    );
}
