//! Levels that a release must reach.

use std::collections::BTreeSet;
use std::path::Path;

use datafusion::common::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::{
    Count, Ledger, Manifest, Outcome, Publish, Release, ReportFormat, RequiredLevel,
};
use serde_json::Value;

use crate::calls::{CALLS, call};
use crate::engine::{context, make_wards, rows};
use crate::json_schema::faults;

const CALL: &str = "anonymize_eir(visits, id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3)";

async fn visits() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let sql = "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 300, seed => 1)";
    rows(&ctx, sql).await.unwrap();
    make_wards(&ctx).await;
    ctx
}

fn levels(levels: &[(&str, f64)]) -> Vec<RequiredLevel> {
    let level = |(measure, level): &(&str, f64)| RequiredLevel {
        measure: (*measure).to_owned(),
        level: *level,
    };
    levels.iter().map(level).collect()
}

async fn run(ctx: &SessionContext, call: &str, publish: Publish) -> Result<Outcome> {
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await?;
    publish.try_run(frame).await
}

async fn published(ctx: &SessionContext, call: &str, publish: Publish) -> Release {
    match run(ctx, call, publish).await.unwrap() {
        Outcome::Published(release) => *release,
        Outcome::Missed(missed) => panic!("{missed}"),
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_reaches_its_levels_says_so() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let required = levels(&[
        ("eir_l", 3.0),
        ("suppressed_share", 1.0),
        ("information_loss", 1.0),
        ("k", 2.0),
    ]);
    let to = Publish::to(target.to_str().unwrap())
        .with_figures(true)
        .with_required(required);
    let release = published(&ctx, CALL, to).await;
    let required = &release.manifest.required;
    assert_eq!(required.len(), 4);
    assert!(required.iter().all(|level| level.passed), "{required:?}");
    assert_eq!(required[0].value, release.manifest.measure("eir_l"));
    let written = std::fs::read(target.join("manifest.json")).unwrap();
    assert_eq!(Manifest::from_json(&written).unwrap().required, *required);
    let schema = include_str!("../../docs/reference/manifest.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    assert_eq!(
        faults(&schema, &serde_json::from_slice(&written).unwrap()),
        Vec::<String>::new()
    );
    for format in [ReportFormat::Html, ReportFormat::Markdown] {
        let report = release.figures.as_ref().unwrap().report(format).unwrap();
        assert!(report.contains("reached: eir"), "{report}");
        assert!(!report.contains("Not published"), "{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_misses_a_level_is_not_visible() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let (target, ledger) = (folder.path().join("t"), folder.path().join("ledger"));
    for (measure, level, said) in [
        ("eir_l", 250.0, "eir_l must be at least 250, but is "),
        (
            "prosecutor_max",
            0.0001,
            "prosecutor_max must be at most 0.0001, but is ",
        ),
        (
            "information_loss",
            0.0,
            "information_loss must be at most 0, but is ",
        ),
        (
            "individuals_out",
            301.0,
            "individuals_out must be at least 301, but is ",
        ),
        // The values are texts, which have no order.
        (
            "t_ordered",
            1.0,
            "t_ordered must be at most 1, but is not known",
        ),
    ] {
        let entered = Ledger::new(&ledger, "a secret of 24 characters").unwrap();
        let to = Publish::to(target.to_str().unwrap())
            .with_figures(true)
            .with_ledger(Some(entered))
            .with_required(levels(&[("k", 2.0), (measure, level)]));
        let Outcome::Missed(missed) = run(&ctx, CALL, to.clone()).await.unwrap() else {
            panic!("{measure} is published");
        };
        assert!(missed.to_string().contains(said), "{missed}");
        assert!(!missed.to_string().contains("k must"), "{missed}");
        assert!(is_empty(&target), "{measure}");
        let entries = std::fs::read_dir(&ledger).unwrap();
        let entries: BTreeSet<_> = entries.map(|e| e.unwrap().file_name()).collect();
        assert_eq!(entries, ["lock".into()].into());
        let figures = missed.figures.unwrap();
        for format in [ReportFormat::Html, ReportFormat::Markdown] {
            let report = figures.report(format).unwrap();
            assert!(
                report.contains("Not published: a required level is missed"),
                "{report}"
            );
            assert!(report.contains("missed: "), "{report}");
            assert!(!report.contains("Published 2"), "{report}");
        }
        let json: Value =
            serde_json::from_str(&figures.report(ReportFormat::Json).unwrap()).unwrap();
        assert_eq!(json["manifest"]["required"][1]["passed"], false);
        let frame = ctx.sql(&format!("SELECT * FROM {CALL}")).await.unwrap();
        let error = to.run(frame).await.unwrap_err().strip_backtrace();
        assert!(
            error.contains("publish: nothing is published: ") && error.contains(said),
            "{error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_in_sql() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let sql = |require: &str| {
        format!(
            "SELECT records FROM publish('{}', (SELECT * FROM {CALL}), require => {require})",
            target.display()
        )
    };
    let said = rows(&ctx, &sql("{k: 250}")).await.unwrap_err().to_string();
    assert!(
        said.contains("nothing is published: k must be at least 250, but is"),
        "{said}"
    );
    assert!(is_empty(&target));
    for (require, expected) in [
        (
            "{eir_m: 3}",
            "publish: require: anonymize_eir: there is no level 'eir_m'; did you mean 'eir_l'? (levels: ",
        ),
        (
            "{records: 3}",
            "there is no level 'records'; did you mean 'records_out'?",
        ),
        (
            "{k: 'many'}",
            "publish: require must map measures to levels, such as {k: 10, prosecutor_max: 0.09}",
        ),
        ("3", "publish: require must map measures to levels"),
    ] {
        let other = sql(require).replace("/t'", "/other'");
        let said = rows(&ctx, &other).await.unwrap_err().to_string();
        assert!(said.contains(expected), "{require}: {said}");
        assert!(!folder.path().join("other").exists(), "{require}");
    }
    rows(
        &ctx,
        &sql("{k: 2, suppressed_share: 1, \"share_above_0.33\": 1}"),
    )
    .await
    .unwrap();
    assert!(target.join("manifest.json").exists());
}

/// What can be required of a function is what its manifests tell.
#[tokio::test(flavor = "multi_thread")]
async fn every_measure_of_a_manifest_can_be_required() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let mut wrong: Vec<(String, String)> = vec![];
    for (at, text) in CALLS.iter().enumerate() {
        let call = call(text, "visits", "'all'");
        let call = call.strip_prefix("SELECT * FROM ").unwrap();
        let target =
            |name: &str| Publish::to(folder.path().join(format!("{name}{at}")).to_str().unwrap());
        let unknown = target("unknown").with_required(levels(&[("nothing_like_it_at_all", 1.0)]));
        let said = run(&ctx, call, unknown)
            .await
            .unwrap_err()
            .strip_backtrace();
        let offered = said
            .split_once("(levels: ")
            .unwrap()
            .1
            .trim_end_matches(')');
        let offered: BTreeSet<&str> = offered.split(", ").collect();
        let manifest = published(&ctx, call, target("told")).await.manifest;
        let audit = manifest
            .audit
            .iter()
            .filter(|m| m.better.is_some())
            .map(|m| m.measure.as_str());
        let losses = manifest
            .information_loss
            .iter()
            .map(|loss| loss.measure.as_str());
        let counts = [
            "suppressed_share",
            "individuals_suppressed",
            "individuals_out",
            "records_out",
        ];
        let told: BTreeSet<&str> = audit.chain(losses).chain(counts).collect();
        let differ: Vec<_> = offered.symmetric_difference(&told).copied().collect();
        if !differ.is_empty() {
            wrong.push((call.to_owned(), differ.join(", ")));
        }
    }
    assert_eq!(wrong, []);
}

/// A level is judged by what everybody may know, so that it tells no count that is hidden.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_counts_are_judged_by_their_bound() {
    let ctx = visits().await;
    // Somebody whose records disagree on the sex is left out: one, which is fewer than 3 and hidden.
    let more = "CREATE TABLE more AS SELECT patient_id, sex, birth_year, diagnosis FROM visits UNION ALL \
                SELECT 'nobody', CASE WHEN value % 2 = 0 THEN 'F' ELSE 'M' END, 1970, 'x' || value FROM range(0, 60)";
    rows(&ctx, more).await.unwrap();
    let call = "anonymize_eir(more, id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3, \
                contradictory => 'drop')";
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str, level: f64| {
        let to = Publish::to(folder.path().join(name).to_str().unwrap());
        to.with_required(levels(&[("individuals_suppressed", level)]))
    };
    for level in [0.0, 1.0, 1.5] {
        let outcome = run(&ctx, call, to("missed", level)).await.unwrap();
        assert!(matches!(outcome, Outcome::Missed(_)), "{level}");
    }
    let manifest = published(&ctx, call, to("reached", 2.0)).await.manifest;
    assert_eq!(
        manifest.counts.individuals_suppressed,
        Count::Hidden { hidden_below: 3 }
    );
    assert_eq!(manifest.required[0].value, Some(2.0));
}
