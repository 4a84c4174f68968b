//! Plans: as EXPLAIN shows them, as they are sent to other machines, and what they count.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{AnonymizeLogicalCodec, AnonymizePhysicalCodec, Summary};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};

use super::calls::CALLS;
use super::{golden, hash, measured, part, rounded, session};
use crate::engine::rows;

/// Both plans, as EXPLAIN shows them. Tables of labels have a number that counts them in all sessions; it is left out.
async fn explained(ctx: &SessionContext, sql: &str) -> String {
    let plans = rows(ctx, &format!("EXPLAIN {sql}")).await.unwrap();
    let mut text = String::new();
    for plan in &plans {
        text += &format!("{}\n", plan[0]);
        for line in plan[1].lines() {
            let scan = line.split_once("TableScan: hierarchy_");
            text += &match scan.and_then(|(before, rest)| Some((before, rest.split_once(' ')?.1))) {
                Some((before, after)) => format!("{before}TableScan: hierarchy_N {after}\n"),
                None => format!("{line}\n"),
            };
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn golden_explain() {
    let ctx = session(2).await;
    for calls in CALLS {
        let mut text = String::new();
        for (name, sql) in calls.all() {
            text += &part(&name, &explained(&ctx, &sql).await);
        }
        golden(&format!("explain_{}", calls.function), &text);
    }
    let ctx = measured::session(2).await;
    let mut text = String::new();
    for sql in measured::CALLS {
        text += &part(sql, &explained(&ctx, sql).await);
    }
    golden("explain_measures", &text);
}

/// Input from files, filters and limits above the node, and what a release is.
#[tokio::test(flavor = "multi_thread")]
async fn golden_explain_of_files_and_releases() {
    let ctx = session(2).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let copy = format!("COPY visits TO '{place}/visits.parquet'");
    rows(&ctx, &copy).await.unwrap();
    let call = CALLS[0].default();
    let on_files = call.replace("visits", &format!("'{place}/visits.parquet'"));
    let mut text = String::new();
    for (name, sql) in [
        ("files", on_files),
        (
            "filters and a limit",
            format!("{call} WHERE random() < 2 AND race IS NOT NULL LIMIT 3"),
        ),
        (
            "publish",
            format!("SELECT * FROM publish('{place}/target', ({call}))"),
        ),
    ] {
        text += &part(name, &explained(&ctx, &sql).await);
    }
    // Plans show paths without the slash at their beginning.
    golden(
        "explain_files",
        &text.replace(place.trim_start_matches('/'), "FOLDER"),
    );
}

/// The bytes of our nodes and operators, in the order of the plan: of each its name, their number and a hash.
#[tokio::test(flavor = "multi_thread")]
async fn golden_encoded_plans() {
    let ctx = session(2).await;
    let mut text = String::new();
    for calls in CALLS {
        for (name, sql) in calls.all() {
            text += &part(&name, &encoded(&ctx, &sql).await);
        }
    }
    let ctx = measured::session(2).await;
    for sql in measured::CALLS {
        text += &part(sql, &encoded(&ctx, sql).await);
    }
    golden("encoded_plans", &text);
}

async fn encoded(ctx: &SessionContext, sql: &str) -> String {
    // Without a seed the key of a plan is random.
    let seeded = sql.contains("seed =>");
    let line = |name: &str, bytes: Vec<u8>| {
        let bytes = if seeded { bytes } else { without_key(&bytes) };
        format!("{name}: {} bytes, {}", bytes.len(), hash(&bytes))
    };
    let plan = ctx.sql(sql).await.unwrap().into_optimized_plan().unwrap();
    let physical = ctx.state().create_physical_plan(&plan).await.unwrap();
    let mut lines = vec![];
    let codec = AnonymizeLogicalCodec::default();
    plan.apply(|node| {
        if let LogicalPlan::Extension(extension) = node {
            let mut bytes = vec![];
            codec.try_encode(extension, &mut bytes)?;
            lines.push(line(extension.node.name(), bytes));
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    each(&physical, &mut |operator| {
        if let Some(bytes) = own_bytes(operator) {
            lines.push(line(operator.name(), bytes));
        }
    });
    lines.join("\n")
}

/// Our bytes are JSON, in which a key is a list of numbers.
fn without_key(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    match text.split_once("\"key\":[") {
        Some((before, rest)) => format!("{before}{}", rest.split_once(']').unwrap().1).into_bytes(),
        None => bytes.to_vec(),
    }
}

/// What is sent of an operator, if it is one of ours.
fn own_bytes(operator: &Arc<dyn ExecutionPlan>) -> Option<Vec<u8>> {
    let mut bytes = vec![];
    let codec = AnonymizePhysicalCodec::default();
    let encoded = codec.try_encode(
        Arc::clone(operator),
        &mut bytes,
        &DefaultPhysicalProtoConverter {},
    );
    encoded.is_ok().then_some(bytes)
}

/// An operator and all below it, from above.
fn each(operator: &Arc<dyn ExecutionPlan>, visit: &mut dyn FnMut(&Arc<dyn ExecutionPlan>)) {
    visit(operator);
    for child in operator.children() {
        each(child, visit);
    }
}

/// Names of the metrics of our operators, and the summary of what was published.
#[tokio::test(flavor = "multi_thread")]
async fn golden_metrics() {
    let ctx = session(1).await;
    let mut text = String::new();
    for calls in CALLS {
        text += &part(calls.function, &metrics(&ctx, &calls.default()).await);
    }
    let ctx = measured::session(1).await;
    for sql in measured::CALLS {
        text += &part(sql, &metrics(&ctx, sql).await);
    }
    golden("metrics", &text);
}

async fn metrics(ctx: &SessionContext, sql: &str) -> String {
    let frame = ctx.sql(sql).await.unwrap();
    let plan = frame.create_physical_plan().await.unwrap();
    collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    let mut text = String::new();
    each(&plan, &mut |operator| {
        if own_bytes(operator).is_some() {
            let metrics = operator.metrics().into_iter();
            let metrics = metrics.flat_map(|all| all.iter().map(Arc::clone).collect::<Vec<_>>());
            let names: BTreeSet<_> = metrics.map(|m| m.value().name().to_owned()).collect();
            let names: Vec<_> = names.into_iter().collect();
            text += &format!("{}: {}\n", operator.name(), names.join(", "));
        }
    });
    match Summary::of(&plan) {
        Some(summary) => text + &rounded(&format!("{summary:#?}")),
        None => text,
    }
}
