//! The same seed gives the same rows, however the work is divided.

use datafusion::prelude::SessionConfig;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows as rows_of};

const SAMPLE: &str = "SELECT * FROM sample_patients(240, 5)";

/// By id; each record an individual, many of them equal, with labels; two sensitive columns with categories; and with
/// published fingerprints.
const RELEASES: [&str; 4] = [
    "SELECT * FROM anonymize_eir(t, id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, \
     keep => [ward], l => 3, block => 60, seed => 11)",
    "SELECT * FROM anonymize_ir((SELECT sex, birth_year / 20 AS age, ward, diagnosis FROM t), \
     one_row_per_individual => true, qi => [sex, age, ward], sensitive => diagnosis, k => 3, \
     hierarchy => {age: 'bins(2)', ward: 'mask(1)'}, block => 200, seed => 11)",
    "SELECT * FROM anonymize_p_sensitive((SELECT patient_id, sex, birth_year, ward, birth_month % 3 AS season FROM t), \
     id => patient_id, qi => [sex, birth_year], sensitive => [ward, season], k => 3, p => 2, \
     hierarchy => {sex: 'mask(1)', birth_year: 'bins(5, 20)'}, block => 60, seed => 11)",
    "SELECT * FROM anonymize_kl(t, id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, \
     k => 2, l => 2, hierarchy => {diagnosis: labels}, block => 160, seed => 11)",
];

async fn release(
    sql: &str,
    partitions: usize,
    batch_size: usize,
    shuffle: u64,
) -> Vec<Vec<String>> {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size);
    let ctx = context(config);
    let frame = ctx.sql(SAMPLE).await.unwrap();
    let batches = frame.collect().await.unwrap();
    let schema = batches[0].schema();
    let whole = datafusion::arrow::compute::concat_batches(&schema, &batches).unwrap();
    let mut order: Vec<u32> = (0..whole.num_rows() as u32).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(shuffle));
    let parts: Vec<_> = order
        .chunks(1 + order.len() / (1 + shuffle as usize))
        .map(|rows| {
            let rows = datafusion::arrow::array::UInt32Array::from(rows.to_vec());
            vec![datafusion::arrow::compute::take_record_batch(&whole, &rows).unwrap()]
        })
        .collect();
    let table = datafusion::datasource::MemTable::try_new(schema, parts).unwrap();
    ctx.register_table("t", std::sync::Arc::new(table)).unwrap();
    let labels = "CREATE VIEW labels AS SELECT * FROM hierarchy(t, column => diagnosis, by => 'co_occurrence(5)', \
                  id => patient_id)";
    rows_of(&ctx, labels).await.unwrap();
    let mut rows = rows_of(&ctx, sql).await.unwrap();
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_batches_and_order_do_not_matter() {
    let mut combinations = 0;
    for sql in RELEASES {
        let first = release(sql, 1, 8192, 0).await;
        assert!(first.len() > 200, "{}", first.len());
        for partitions in [1, 2, 3, 8, 64] {
            for batch_size in [1, 7, 8192] {
                // Batches of one row are slow; one shuffle of them is enough.
                for shuffle in 0..if batch_size == 1 { 1 } else { 3 } {
                    assert_eq!(release(sql, partitions, batch_size, shuffle).await, first);
                    combinations += 1;
                }
            }
        }
    }
    assert_eq!(combinations, 140);
}
