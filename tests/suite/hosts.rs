//! Ways of getting our functions into a session.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{AnonymizeTableFunction, SessionStateBuilderExt, Spec, anonymize};

use crate::engine::{rows, with_patients};

const STRUCT: &str = "SELECT * FROM anonymize_eir(patients, {id: 'name', qi: ['gender', 'age'], sensitive: 'disease', \
    l: 3, domain: {age: [30, 39]}, seed: 5})";
const NAMED: &str = "SELECT * FROM anonymize_eir(patients, id => name, qi => [gender, age], sensitive => disease, \
    l => 3, domain => {age: [30, 39]}, seed => 5)";

/// A host that knows only ordinary table functions gets the same plan.
#[tokio::test(flavor = "multi_thread")]
async fn both_roads_give_the_same_plan() {
    let ours = with_patients().await;
    let table = ours.table_provider("patients").await.unwrap();
    let plain = SessionContext::new();
    plain.register_table("patients", table).unwrap();
    plain.register_udtf(
        "anonymize_eir",
        Arc::new(AnonymizeTableFunction::new("anonymize_eir")),
    );

    let plan = async |ctx: &SessionContext, sql: &str| {
        let plan = ctx.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        // The engine gives every table function an alias.
        let shown = format!("{}", plan.display_indent());
        match shown.strip_prefix("SubqueryAlias: anonymize_eir()\n") {
            Some(aliased) => aliased
                .lines()
                .map(|l| &l[2..])
                .collect::<Vec<_>>()
                .join("\n"),
            None => shown,
        }
    };
    let expected = plan(&ours, NAMED).await;
    assert!(
        expected.contains("Anonymize: model=EIR 3-diversity"),
        "{expected}"
    );
    assert_eq!(plan(&ours, STRUCT).await, expected);
    assert_eq!(plan(&plain, STRUCT).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_can_be_built_with_the_functions() {
    let state = SessionStateBuilder::new_with_default_features()
        .build_with_anonymize()
        .unwrap();
    let ctx = SessionContext::new_with_state(state);
    let sql = "SELECT count(*) > 0 FROM anonymize_eir(sample_patients(60), id => patient_id, qi => [sex], \
               sensitive => diagnosis, l => 2)";
    assert_eq!(rows(&ctx, sql).await.unwrap(), [["true"]]);
}

/// Planning may happen on a runtime with a single thread.
#[tokio::test]
async fn a_single_thread_is_enough() {
    let ctx = with_patients().await;
    assert!(!rows(&ctx, NAMED).await.unwrap().is_empty());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.csv");
    rows(&ctx, &format!("COPY patients TO '{}'", file.display()))
        .await
        .unwrap();
    for path in [
        file.display().to_string(),
        format!("{}/*.csv", folder.path().display()),
    ] {
        let sql = NAMED.replace("(patients", &format!("('{path}'"));
        assert_eq!(
            rows(&ctx, &sql).await.unwrap().len(),
            rows(&ctx, NAMED).await.unwrap().len()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typed_road_is_the_same() {
    let ctx = with_patients().await;
    let spec = Spec::new("anonymize_eir")
        .with_id("name")
        .with_qi(["gender", "age"])
        .with_sensitive(["disease"])
        .with_parameter("l", 3)
        .with_domain(
            "age",
            datafusion_anonymize::GivenDomain::Range("30".into(), "39".into()),
        )
        .with_seed(5);
    let frame = anonymize(ctx.table("patients").await.unwrap(), spec).unwrap();
    let mut typed = crate::engine::printed(&frame.collect().await.unwrap());
    let mut sql = rows(&ctx, NAMED).await.unwrap();
    typed.sort();
    sql.sort();
    assert_eq!(typed, sql);
}
