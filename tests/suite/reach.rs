//! What a message calls possible is possible.

use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::prelude::SessionContext;

/// One individual for each set of `of` out of `values` values: no fewer than `values - of + 1` of them hit every set.
fn all_sets(values: u32, of: u32) -> RecordBatch {
    let sets = (0..1i64 << values).filter(|set| set.count_ones() == of);
    let records = sets.flat_map(|set| (0..values).map(move |value| (set, i64::from(value))));
    let (id, disease): (Vec<i64>, Vec<i64>) =
        records.filter(|(set, value)| set >> value & 1 == 1).unzip();
    let age = Int64Array::from_iter_values(id.iter().map(|id| id % 90));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(id)) as _),
        ("age", Arc::new(age) as _),
        ("disease", Arc::new(Int64Array::from(disease)) as _),
    ])
    .unwrap()
}

async fn published(context: &SessionContext, l: usize) -> Result<usize, String> {
    let sql = format!(
        "SELECT * FROM anonymize_eir(sets, id => id, qi => [age], sensitive => disease, l => {l}, algorithm => 'mondrian')"
    );
    let frame = context.sql(&sql).await.unwrap();
    let rows = frame.collect().await.map_err(|e| e.strip_backtrace())?;
    Ok(rows.iter().map(RecordBatch::num_rows).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_l_that_is_named_works() {
    let context = SessionContext::new();
    datafusion_anonymize::register_all(&context).unwrap();
    let sets = all_sets(16, 6);
    let records = sets.num_rows();
    context.register_batch("sets", sets).unwrap();
    let said = published(&context, 12).await.unwrap_err();
    assert!(said.contains("the largest l that works is 11"), "{said}");
    for l in [9, 11] {
        assert_eq!(published(&context, l).await, Ok(records), "{l}");
    }
}
