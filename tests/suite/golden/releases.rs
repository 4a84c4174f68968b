//! Releases: manifests, reports, the ledger.

use std::fs;

use datafusion::prelude::SessionContext;
use datafusion_anonymize::publish::{Ledger, Manifest, Publish, Release, ReportFormat};
use serde_json::Value;

use super::{golden, masked_names, part, result, rounded, session};
use crate::engine::rows;

/// Releases of each system, with more than one sensitive column where it takes them. Functions of one system differ in what
/// their manifests and reports say.
const RELEASES: &[(&str, &str)] = &[
    (
        "classes",
        "anonymize_eir(visits, id => patient_id, qi => [sex, birth_year, race], sensitive => diagnosis, keep => [visit_date], \
         l => 3, seed => 11)",
    ),
    (
        "several_sensitive",
        "anonymize_p_sensitive((SELECT *, birth_month % 3 AS season FROM visits), id => patient_id, qi => [sex, birth_year], \
         sensitive => [ward, season], k => 3, p => 2, hierarchy => {birth_year: 'bins(5, 20)'}, notation => 'text', seed => 11)",
    ),
    (
        "records",
        "anonymize_ir(people, one_row_per_individual => true, qi => [sex, birth_year], sensitive => ward, k => 3, l => 2, \
         null_sensitive => 'drop_rows', seed => 11)",
    ),
    (
        "left_out",
        "anonymize_ir(moved, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 3, contradictory => 'drop', \
         seed => 11)",
    ),
    (
        "fingerprints",
        "anonymize_kl(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 3, l => 2, \
         hierarchy => {ward: wards}, output => 'individuals', seed => 11)",
    ),
    (
        "combinations",
        "anonymize_kkm(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 2, m => 2, delta => 0.5, \
         hierarchy => {ward: wards}, seed => 11)",
    ),
    (
        "buckets",
        "anonymize_lgb(people, id => patient_id, qi => [sex, birth_year], sensitive => [diagnosis, ward], \
         semi_sensitive => {birth_year: hidden}, k => 3, l => {birth_year: 3, diagnosis: 4}, t => {ward: 0.8}, seed => 11)",
    ),
    (
        "detached",
        "anonymize_lgb(people, id => patient_id, qi => [sex, birth_year], sensitive => [diagnosis, ward], \
         semi_sensitive => {birth_year: hidden}, k => 3, l => 2, output => 'detached', seed => 11)",
    ),
    (
        "anatomy",
        "anatomize_slppa(people, id => patient_id, qi => [sex, birth_year, race], sensitive => ward, alpha => 1, beta => 0.4, \
         gamma => 0.4, delta => 0.5, tables => 2, seed => 11)",
    ),
];

async fn publish(ctx: &SessionContext, call: &str, publish: Publish) -> Release {
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
    let release = publish.with_figures(true).run(frame).await;
    release.unwrap_or_else(|e| panic!("{call}: {e}"))
}

/// A text about a release, without what differs from release to release. Files are told apart by their SHA-256.
fn masked(text: &str, manifest: &Manifest) -> String {
    let mut text = text.replace(&manifest.created, "CREATED");
    let version = format!("\"version\": \"{}\"", manifest.tool.version);
    text = text.replace(&version, "\"version\": \"VERSION\"");
    let version = format!("{} {}", manifest.tool.name, manifest.tool.version);
    text = text.replace(&version, &format!("{} VERSION", manifest.tool.name));
    rounded(&masked_names(&text.replace(&manifest.release, "RANDOM")))
}

#[tokio::test(flavor = "multi_thread")]
async fn golden_releases() {
    let ctx = session(1).await;
    let folder = tempfile::tempdir().unwrap();
    for (name, call) in RELEASES {
        let target = folder.path().join(name);
        let release = publish(&ctx, call, Publish::to(target.to_str().unwrap())).await;
        let written = fs::read_to_string(target.join("manifest.json")).unwrap();
        golden(
            &format!("manifest_of_{name}"),
            &masked(&written, &release.manifest),
        );
        let figures = release.figures.unwrap();
        for (format, ending) in [
            (ReportFormat::Html, "html"),
            (ReportFormat::Markdown, "md"),
            (ReportFormat::Json, "json"),
        ] {
            // A line for each element, so that differences can be read.
            let report = figures.report(format).unwrap().replace("><", ">\n<");
            golden(
                &format!("report_of_{name}_{ending}"),
                &masked(&report, &release.manifest),
            );
        }
    }
}

/// With people among whom an attacker looks.
#[tokio::test(flavor = "multi_thread")]
async fn golden_release_with_a_population() {
    let ctx = session(1).await;
    let people = "SELECT * FROM sample_patients(individuals => 900, seed => 5)";
    let people = ctx.sql(people).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = Publish::to(folder.path().join("t").to_str().unwrap());
    let to = to.with_population(people, Some("patient_id".to_owned()));
    let call = "anonymize_ir(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, k => 3, seed => 11)";
    let release = publish(&ctx, call, to).await;
    let manifest = release.manifest.to_json().unwrap();
    golden(
        "manifest_with_population",
        &masked(&manifest, &release.manifest),
    );
    let report = release.figures.unwrap().report(ReportFormat::Markdown);
    golden(
        "report_with_population_md",
        &masked(&report.unwrap(), &release.manifest),
    );
}

/// Two releases of the same people: what the ledger holds of the first, and what it says to the second.
#[tokio::test(flavor = "multi_thread")]
async fn golden_ledger() {
    let ctx = session(1).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("ledger");
    let mut text = String::new();
    for name in ["first", "again"] {
        let ledger = Ledger::new(&place, "a secret of 24 characters").unwrap();
        let to = Publish::to(folder.path().join(name).to_str().unwrap()).with_ledger(Some(ledger));
        let release = publish(&ctx, RELEASES[0].1, to).await;
        let id = release.manifest.release;
        let entry = fs::read(place.join(format!("{id}.json"))).unwrap();
        let mut entry: Value = serde_json::from_slice(&entry).unwrap();
        // The seal is a hash of all the rest.
        for masked in ["release", "target", "seal"] {
            assert!(entry[masked].is_string());
            entry[masked] = masked.to_uppercase().into();
        }
        text += &part(name, &serde_json::to_string(&entry).unwrap());
        for warning in &release.warnings {
            text += &part("warning", &masked_names(warning));
        }
    }
    let place = folder.path().display().to_string();
    golden("ledger", &text.replace(&place, "FOLDER"));
}

/// What `publish` answers in SQL.
#[tokio::test(flavor = "multi_thread")]
async fn golden_publish_in_sql() {
    let ctx = session(1).await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let sql = format!(
        "SELECT * FROM publish('{}', (SELECT * FROM {}))",
        target.display(),
        RELEASES[7].1
    );
    let answer = result(&ctx, &sql, usize::MAX).await;
    let manifest = fs::read(target.join("manifest.json")).unwrap();
    let manifest = Manifest::from_json(&manifest).unwrap();
    let answer = answer.replace(&folder.path().display().to_string(), "FOLDER");
    let answer = masked(&answer, &manifest);
    golden("publish_in_sql", &answer);
    assert!(
        rows(&ctx, &sql).await.is_err(),
        "a target is published to once"
    );
}
