//! Rows of the anonymizing functions.

use datafusion::prelude::SessionContext;
use datafusion_anonymize::FUNCTIONS;

use super::calls::CALLS;
use super::{golden, part, result, session};

/// As many rows show the values, in their types, and what a class or a group looks like.
const FIRST: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn golden_rows() {
    let ctx = session(1).await;
    for calls in CALLS {
        let mut text = String::new();
        for (name, sql) in calls.all() {
            text += &part(&format!("{name}\n{sql}"), &result(&ctx, &sql, FIRST).await);
        }
        golden(&format!("rows_of_{}", calls.function), &text);
    }
    let named = |name: &str| CALLS.iter().any(|calls| calls.function == name);
    assert!(FUNCTIONS.iter().all(|function| named(function.name)));
}

/// Tables that others are made of.
#[tokio::test(flavor = "multi_thread")]
async fn golden_sources() {
    let ctx = session(1).await;
    let mut text = String::new();
    for sql in [
        "SELECT * FROM sample_patients(individuals => 240, seed => 5)",
        "SELECT * FROM sample_patients(30)",
        "SELECT * FROM hierarchy(wards)",
        "SELECT * FROM hierarchy(visits, column => birth_year, by => 'bins(5, 20)')",
        "SELECT * FROM hierarchy(visits, column => visit_date, by => 'dates(quarter, year)')",
        "SELECT * FROM hierarchy(visits, column => diagnosis, by => 'mask')",
        "SELECT * FROM hierarchy(visits, column => diagnosis, by => 'even(5)')",
        "SELECT * FROM hierarchy(visits, column => diagnosis, by => 'co_occurrence(5)', id => patient_id)",
    ] {
        text += &part(sql, &result(&ctx, sql, FIRST).await);
    }
    golden("sources", &text);
}

/// Whose pseudonym is which: a kept column tells.
#[tokio::test(flavor = "multi_thread")]
async fn golden_pseudonyms_and_ids_of_groups() {
    let ctx = session(1).await;
    let mut text = String::new();
    for (title, id) in [
        ("ids that are texts", "'person ' || value"),
        ("ids that are numbers", "value"),
        (
            "ids that are dates",
            "DATE '2000-01-01' + CAST(value AS INT)",
        ),
    ] {
        let sql = format!(
            "SELECT individual, told FROM anonymize_ir((SELECT {id} AS who, value % 3 AS age, value AS told, \
             value % 7 AS disease FROM range(0, 24)), id => who, qi => [age], sensitive => disease, keep => [told], \
             k => 2, seed => 'a seed') ORDER BY told"
        );
        text += &part(title, &result(&ctx, &sql, FIRST).await);
    }
    for (title, seed) in [("one record each", "1"), ("another seed", "2")] {
        text += &part(title, &alone(&ctx, seed).await);
    }
    golden("pseudonyms", &text);
}

/// Ids of groups and buckets, of two blocks.
async fn alone(ctx: &SessionContext, seed: &str) -> String {
    let sql = format!(
        "SELECT individual, gid, birth_year_bid, diagnosis_bid, ward_bid FROM anonymize_lgb(people, \
         one_row_per_individual => true, qi => [sex, birth_year], semi_sensitive => {{birth_year: hidden}}, \
         sensitive => [diagnosis, ward], k => 3, l => 2, block => 120, seed => {seed}) ORDER BY gid, individual"
    );
    result(ctx, &sql, 40).await
}
