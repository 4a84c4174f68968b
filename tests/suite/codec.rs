//! Plans survive the way to another machine.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionConfig;
use datafusion_anonymize::{AnonymizeLogicalCodec, AnonymizePhysicalCodec, register_all};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};

use crate::engine::{context, printed, rows};

async fn on_parquet(folder: &std::path::Path) -> datafusion::prelude::SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let target = folder.join("patients.parquet");
    let copy = format!(
        "COPY (SELECT * FROM sample_patients(300)) TO '{}'",
        target.display()
    );
    rows(&ctx, &copy).await.unwrap();
    ctx.register_parquet("t", target.display().to_string(), Default::default())
        .await
        .unwrap();
    let wards = "CREATE TABLE wards AS SELECT 1 + row_number() OVER (ORDER BY ward) % 2 AS rank, ward AS value \
                 FROM (SELECT DISTINCT ward FROM t)";
    rows(&ctx, wards).await.unwrap();
    let labels =
        "CREATE VIEW labels AS SELECT * FROM hierarchy(t, column => diagnosis, by => 'even(5)')";
    rows(&ctx, labels).await.unwrap();
    ctx
}

const RELEASES: [&str; 4] = [
    "SELECT * FROM anonymize_eir(t, id => patient_id, qi => [birth_year, sex], sensitive => diagnosis, \
     keep => [ward], l => 3, block => 100, contradictory => 'cover', seed => 3) WHERE random() < 2",
    "SELECT * FROM anonymize_lgb(t, one_row_per_individual => true, qi => [birth_year, sex], \
     semi_sensitive => {birth_year: 'birth_year % 2 = 0'}, sensitive => [ward], k => 4, l => {birth_year: 3, ward: 2}, \
     block => 300, output => 'detached', seed => 3) WHERE random() < 2",
    "SELECT * FROM anonymize_p_sensitive((SELECT *, birth_month % 3 AS season FROM t), id => patient_id, \
     qi => [birth_year, sex], sensitive => [ward, season], k => 3, p => 2, categories => {season: [[0], [1], [2]], \
     ward: 'wards'}, hierarchy => {birth_year: 'bins(5, 20)', sex: 'mask(1)'}, block => 100, seed => 3) \
     WHERE random() < 2",
    "SELECT * FROM anonymize_kl(t, id => patient_id, qi => [birth_year, sex], sensitive => diagnosis, k => 3, l => 2, \
     hierarchy => {diagnosis: labels}, output => 'individuals', seed => 3) WHERE random() < 2",
];

#[tokio::test(flavor = "multi_thread")]
async fn logical_plans_round_trip() {
    for release in RELEASES {
        logical_plan_round_trips(release).await;
    }
}

async fn logical_plan_round_trips(release: &str) {
    let folder = tempfile::tempdir().unwrap();
    let ctx = on_parquet(folder.path()).await;
    let plan = ctx
        .sql(release)
        .await
        .unwrap()
        .into_optimized_plan()
        .unwrap();
    assert!(
        format!("{}", plan.display_indent()).contains("filter=random()"),
        "a filter travels too"
    );
    let codec = AnonymizeLogicalCodec::default();
    let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
    let back =
        logical_plan_from_bytes_with_extension_codec(&bytes, &ctx.task_ctx(), &codec).unwrap();
    assert_eq!(
        format!("{}", plan.display_indent()),
        format!("{}", back.display_indent())
    );

    let other = datafusion::prelude::SessionContext::new();
    register_all(&other).unwrap();
    let state = other.state();
    let physical = state.create_physical_plan(&back).await.unwrap();
    assert_eq!(
        released(physical, &other).await,
        released_here(&ctx, release).await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn physical_plans_round_trip() {
    for release in RELEASES {
        physical_plan_round_trips(release).await;
    }
}

async fn physical_plan_round_trips(release: &str) {
    let folder = tempfile::tempdir().unwrap();
    let ctx = on_parquet(folder.path()).await;
    let plan = ctx
        .sql(release)
        .await
        .unwrap()
        .create_physical_plan()
        .await
        .unwrap();
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    for operator in [
        "AnonymizeExec",
        "BlockExec",
        "ProfileExec",
        "IndividualsExec",
        "PseudonymizeExec",
    ] {
        assert!(shown.contains(operator), "{operator}: {shown}");
    }
    let codec = AnonymizePhysicalCodec::default();
    let bytes = physical_plan_to_bytes_with_extension_codec(Arc::clone(&plan), &codec).unwrap();
    let back =
        physical_plan_from_bytes_with_extension_codec(&bytes, &ctx.task_ctx(), &codec).unwrap();
    assert_eq!(shown, displayable(back.as_ref()).indent(false).to_string());
    assert_eq!(
        released(back, &ctx).await,
        released_here(&ctx, release).await
    );
}

async fn released(
    plan: Arc<dyn ExecutionPlan>,
    ctx: &datafusion::prelude::SessionContext,
) -> Vec<Vec<String>> {
    let mut rows = printed(&collect(plan, ctx.task_ctx()).await.unwrap());
    rows.sort();
    assert!(!rows.is_empty());
    rows
}

async fn released_here(
    ctx: &datafusion::prelude::SessionContext,
    release: &str,
) -> Vec<Vec<String>> {
    let mut rows = rows(ctx, release).await.unwrap();
    rows.sort();
    rows
}
