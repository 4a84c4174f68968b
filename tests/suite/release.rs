//! Releases: complete or absent, checked after writing.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path as Folder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::object_store::memory::InMemory;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    self, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::{
    Count, Ledger, Manifest, OnOverlap, Publish, Release, ReportFormat,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::calls::{CALLS, call};
use crate::engine::{context, make_wards, rows};
use crate::json_schema::faults;

const CALL: &str = "anonymize_eir(visits, id => patient_id, qi => [sex, birth_year, race], sensitive => diagnosis, l => 3)";

/// A context with 300 patients in `visits`.
async fn visits() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let sql = "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 300, seed => 1)";
    rows(&ctx, sql).await.unwrap();
    ctx
}

async fn publish(ctx: &SessionContext, call: &str, publish: Publish) -> Result<Release> {
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await?;
    publish.run(frame).await
}

async fn refused(ctx: &SessionContext, call: &str, to: Publish) -> String {
    publish(ctx, call, to).await.unwrap_err().strip_backtrace()
}

/// What is in a folder.
fn names(folder: &Folder) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return BTreeSet::new();
    };
    entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn text(path: &Folder) -> String {
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_its_manifest_and_the_files_it_names() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/2026-11");
    let release = publish(&ctx, CALL, Publish::to(text(&target)))
        .await
        .unwrap();
    let written = fs::read(target.join("manifest.json")).unwrap();
    let read = Manifest::from_json(&written).unwrap();
    assert_eq!(
        (read.release, read.files),
        (
            release.manifest.release.clone(),
            release.manifest.files.clone()
        )
    );

    let schema = include_str!("../../docs/reference/manifest.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let manifest: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(faults(&schema, &manifest), Vec::<String>::new());

    let manifest = release.manifest;
    assert_eq!(manifest.model, "EIR 3-diversity");
    assert_eq!(manifest.truth.checked, "exact");
    assert!(manifest.measure("eir_l").unwrap() >= 3.0);
    assert_eq!(
        manifest
            .information_loss
            .iter()
            .filter(|l| l.measure == "nloss")
            .count(),
        4
    );
    let data = format!("data-{}", manifest.release);
    assert_eq!(
        names(&target),
        ["manifest.json".to_owned(), data.clone()].into()
    );
    let files: BTreeSet<String> = manifest.files.iter().map(|f| f.path.clone()).collect();
    let found = names(&target.join(&data))
        .iter()
        .map(|n| format!("{data}/{n}"))
        .collect();
    assert_eq!(files, found);
    for file in &manifest.files {
        assert_eq!(
            fs::metadata(target.join(&file.path)).unwrap().len(),
            file.bytes
        );
    }
    let counted = format!(
        "SELECT count(*), count(DISTINCT individual) FROM '{}/{data}/'",
        target.display()
    );
    let counted = ctx
        .clone()
        .enable_url_table()
        .sql(&counted)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let counted = crate::engine::printed(&counted);
    let (records, individuals) = (manifest.counts.records_out, manifest.counts.individuals_out);
    assert_eq!(counted, [[records.to_string(), individuals.to_string()]]);
}

/// The same seed gives the same bytes, whatever the number of partitions and the size of batches.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_gives_the_same_bytes() {
    let call = CALL.replace("l => 3", "l => 3, block => 60, seed => 5");
    let mut seen = BTreeSet::new();
    for (partitions, batch) in [(1, 8192), (3, 8192), (4, 97)] {
        let config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(batch);
        let ctx = context(config);
        rows(
            &ctx,
            "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 300, seed => 1)",
        )
        .await
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let target = text(&folder.path().join("t"));
        let release = publish(&ctx, &call, Publish::to(target)).await.unwrap();
        assert!(release.manifest.reproducible);
        seen.insert(release.manifest.files[0].sha256.clone());
    }
    assert_eq!(seen.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn publish_in_sql_runs_once_whatever_stands_above_it() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    for (i, query) in [
        "SELECT records FROM publish('TARGET', (SELECT * FROM CALL))",
        "SELECT records FROM publish('TARGET', (SELECT * FROM CALL)) WHERE records > 1000000 LIMIT 1",
        "SELECT records FROM publish('TARGET', (SELECT * FROM CALL)) WHERE random() < 2 LIMIT 1",
        "SELECT records FROM publish(target => 'TARGET', release => (SELECT * FROM CALL) ) WHERE (SELECT count(*) FROM visits) > 3",
        "WITH p AS (SELECT * FROM publish('TARGET', (SELECT * FROM CALL))) SELECT a.records FROM p AS a JOIN p AS b ON a.file = b.file",
    ]
    .iter()
    .enumerate()
    {
        let target = folder.path().join(i.to_string());
        let sql = query.replace("TARGET", &text(&target)).replace("CALL", CALL);
        rows(&ctx, &format!("EXPLAIN {sql}")).await.unwrap();
        assert!(!target.exists(), "EXPLAIN publishes nothing");
        let given = rows(&ctx, &sql).await.unwrap();
        let manifest = Manifest::from_json(&fs::read(target.join("manifest.json")).unwrap()).unwrap();
        // Everything is published, whatever the query keeps of the list of files.
        assert_eq!(manifest.counts.individuals_out, 300, "{query}");
        let records: u64 = manifest.files.iter().map(|f| f.records).sum();
        assert_eq!(records, manifest.counts.records_out);
        assert_eq!(given.len(), usize::from(i != 1), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_whole_result_of_a_function_is_published() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    for tail in [
        format!("(SELECT * FROM {CALL} WHERE sex IS NOT NULL)"),
        format!("(SELECT individual, diagnosis FROM {CALL})"),
        format!("(SELECT * FROM {CALL} LIMIT 3)"),
        format!("(SELECT * FROM {CALL} UNION ALL SELECT * FROM {CALL})"),
        "(SELECT * FROM visits)".to_owned(),
        "visits".to_owned(),
    ] {
        let sql = format!("SELECT * FROM publish('{}', {tail})", target.display());
        let said = rows(&ctx, &sql).await.unwrap_err().strip_backtrace();
        assert!(
            said.contains("must be (SELECT * FROM f(…))"),
            "{tail}: {said}"
        );
        assert!(!target.exists(), "{tail}");
    }
    for (arguments, said) in [
        ("", "release is missing"),
        ("'x'", "release is missing"),
        (
            "3, visits",
            "must be a folder or the URL of one, in quotes, not 3",
        ),
        ("'x', visits, l => 3", "there is no argument 'l'"),
        ("'x*', (SELECT * FROM CALL)", "without *, ? or ["),
        (
            "'nowhere://x', (SELECT * FROM CALL)",
            "no object store for nowhere://x",
        ),
    ] {
        let sql = format!("SELECT * FROM publish({})", arguments.replace("CALL", CALL));
        let error = rows(&ctx, &sql).await.unwrap_err().strip_backtrace();
        assert!(error.contains(said), "{arguments}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_anything_in_it_is_refused() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    publish(&ctx, CALL, Publish::to(text(&target)))
        .await
        .unwrap();
    let before = names(&target);
    let said = refused(&ctx, CALL, Publish::to(text(&target))).await;
    assert!(said.contains("holds a release already"), "{said}");
    assert_eq!(names(&target), before);

    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes.txt"), "x").unwrap();
    let said = refused(&ctx, CALL, Publish::to(text(&other))).await;
    assert!(said.contains("holds 1 other thing"), "{said}");
    assert_eq!(names(&other), ["notes.txt".to_owned()].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_and_the_target_itself_are_no_inputs() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let release = publish(&ctx, CALL, Publish::to(text(&target)))
        .await
        .unwrap();
    let file = target.join(&release.manifest.files[0].path);
    let elsewhere = tempfile::tempdir().unwrap();
    let below = "SET datafusion.execution.listing_table_ignore_subdirectory = false";
    rows(&ctx, below).await.unwrap();
    // The folder of its files, one of them, a folder above, a pattern, and a copy that lies alone.
    let copied = folder.path().join("copied");
    fs::create_dir(&copied).unwrap();
    fs::copy(&file, copied.join("visits.parquet")).unwrap();
    let inputs = [
        text(file.parent().unwrap()) + "/",
        text(&file),
        text(folder.path()) + "/",
        text(folder.path()) + "/t/*/*.parquet",
        text(&copied.join("visits.parquet")),
    ];
    let next = text(&elsewhere.path().join("next"));
    for (i, input) in inputs.iter().enumerate() {
        let external = format!("CREATE EXTERNAL TABLE r{i} STORED AS PARQUET LOCATION '{input}'");
        rows(&ctx, &external).await.unwrap();
        let call = format!(
            "anonymize_eir((SELECT individual, diagnosis, character_length(diagnosis) AS n FROM r{i}), id => individual, \
             qi => [n], sensitive => diagnosis, l => 2, contradictory => 'cover')"
        );
        let said = refused(&ctx, &call, Publish::to(&next)).await;
        assert!(said.contains("is itself a release"), "{input}: {said}");
    }

    let source = folder.path().join("source");
    let copy = format!("COPY visits TO '{}/' STORED AS PARQUET", source.display());
    rows(&ctx, &copy).await.unwrap();
    let inside = CALL.replace("visits", &format!("'{}/'", source.display()));
    for target in [source.join("out"), source.clone()] {
        let said = refused(&ctx, &inside, Publish::to(text(&target))).await;
        assert!(said.contains("lie in each other"), "{said}");
    }
    // Also where a link leads there, to the input or from it.
    #[cfg(unix)]
    {
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&source, &link).unwrap();
        let through = CALL.replace("visits", &format!("'{}/'", link.display()));
        for (call, target) in [(&inside, &link), (&through, &source)] {
            let said = refused(&ctx, call, Publish::to(text(&target.join("out")))).await;
            assert!(said.contains("lie in each other"), "{said}");
        }
        let said = refused(&ctx, &inside, Publish::to(text(&link))).await;
        assert!(said.contains("lie in each other"), "{said}");
        // Or from a folder in the input, to the target, to what does not exist yet, or to a folder around it.
        for (name, leads_to) in [
            ("later", "away/t"),
            ("around", "away"),
            ("into", "away/t/deeper"),
        ] {
            let inner = source.join(name);
            fs::create_dir_all(folder.path().join("away")).unwrap();
            std::os::unix::fs::symlink(folder.path().join(leads_to), &inner).unwrap();
            let said = refused(
                &ctx,
                &inside,
                Publish::to(text(&folder.path().join("away/t"))),
            )
            .await;
            assert!(said.contains("lie in each other"), "{name}: {said}");
            fs::remove_file(&inner).unwrap();
        }
    }
    let beside = Publish::to(text(&folder.path().join("source-out")));
    publish(&ctx, &inside, beside).await.unwrap();
}

/// A run whose future is dropped leaves nothing: no staging, no entry in the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_leaves_nothing() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let (target, ledger) = (folder.path().join("t"), folder.path().join("ledger"));
    let to = |target: &Folder| {
        let ledger = Ledger::new(&ledger, "a secret of 24 characters").unwrap();
        Publish::to(text(target)).with_ledger(Some(ledger))
    };
    let (mut limit, mut dropped) = (std::time::Duration::from_millis(5), false);
    let release = loop {
        let mut run = Box::pin(publish(&ctx, CALL, to(&target)));
        let ended = tokio::time::timeout(limit, &mut run).await;
        let entered = || names(&ledger).iter().any(|name| name != "lock");
        let nothing = || names(&target).is_empty() && !entered();
        let begun = !names(&target).is_empty() && entered();
        drop(run);
        if let Ok(release) = ended {
            break release.unwrap();
        }
        // What is just being written goes when it is.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !nothing() && std::time::Instant::now() < until {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(nothing(), "after {limit:?}");
        dropped |= begun;
        limit = limit * 3 / 2;
    };
    assert!(dropped, "no run was dropped while it wrote");
    let kept = format!("data-{}", release.manifest.release);
    assert_eq!(names(&target), ["manifest.json".to_owned(), kept].into());
    let entry = format!("{}.json", release.manifest.release);
    assert_eq!(names(&ledger), ["lock".to_owned(), entry].into());
}

/// Staging of dead runs is swept, that of living ones is not; a run that fails leaves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn staging_is_swept() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let staging = |digit: &str| target.join(format!("data-{}", digit.repeat(32)));
    for digit in ["a", "b"] {
        fs::create_dir_all(staging(digit)).unwrap();
        fs::write(staging(digit).join("part-1.parquet#1"), "half").unwrap();
    }
    let alive = File::open(staging("b")).unwrap();
    alive.try_lock().unwrap();
    let infeasible = CALL.replace("l => 3", "l => 250");
    let said = refused(&ctx, &infeasible, Publish::to(text(&target))).await;
    assert!(said.contains("cannot be reached"), "{said}");
    assert_eq!(names(&target), [format!("data-{}", "b".repeat(32))].into());
    // Whoever has committed may remove the staging of all others: none of them can commit any more.
    let release = publish(&ctx, CALL, Publish::to(text(&target)))
        .await
        .unwrap();
    let kept = format!("data-{}", release.manifest.release);
    assert_eq!(names(&target), ["manifest.json".to_owned(), kept].into());
}

/// The same through an object store: conditional put instead of a link.
#[tokio::test(flavor = "multi_thread")]
async fn object_stores_get_releases_too() {
    let ctx = visits().await;
    let store = Arc::new(Faulty::new(Fault::None));
    ctx.register_object_store(&"memory://store".try_into().unwrap(), store.clone());
    let release = publish(&ctx, CALL, Publish::to("memory://store/a/b"))
        .await
        .unwrap();
    let files: Vec<_> = store.inner.list(None).collect().await;
    assert_eq!(files.len(), 1 + release.manifest.files.len());
    let said = refused(&ctx, CALL, Publish::to("memory://store/a/b")).await;
    assert!(said.contains("holds a release already"), "{said}");
}

/// Whatever a store does to the bytes: an error, and nothing visible.
#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_must_be_what_was_written() {
    for (fault, said) in [
        (Fault::Flip, "holds other bytes than what was written"),
        (Fault::Truncate, "has another size than what was written"),
        (Fault::Lose, "is gone"),
        (Fault::RefuseManifest, "refused"),
    ] {
        let ctx = visits().await;
        let store = Arc::new(Faulty::new(fault));
        ctx.register_object_store(&"memory://store".try_into().unwrap(), store.clone());
        let error = refused(&ctx, CALL, Publish::to("memory://store/a")).await;
        assert!(error.contains(said), "{fault:?}: {error}");
        let left: Vec<_> = store.inner.list(None).collect().await;
        assert!(left.is_empty(), "{fault:?}: {left:?}");
    }
}

/// A manifest that was put although the answer was lost counts; one of another run does not.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_and_rivals() {
    let ctx = visits().await;
    let store = Arc::new(Faulty::new(Fault::LoseAnswer));
    ctx.register_object_store(&"memory://store".try_into().unwrap(), store.clone());
    let release = publish(&ctx, CALL, Publish::to("memory://store/a"))
        .await
        .unwrap();
    let path = Path::from("a/manifest.json");
    let bytes = store.inner.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(
        Manifest::from_json(&bytes).unwrap().release,
        release.manifest.release
    );

    let ctx = visits().await;
    let store = Arc::new(Faulty::new(Fault::Rival));
    ctx.register_object_store(&"memory://store".try_into().unwrap(), store.clone());
    let said = refused(&ctx, CALL, Publish::to("memory://store/a")).await;
    assert!(
        said.contains("got a release of another run meanwhile"),
        "{said}"
    );
    let left: Vec<_> = store.inner.list(None).collect().await;
    assert_eq!(left.len(), 1, "only the rival's manifest");
}

/// An input that is another one when it is read again cannot be verified.
#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_changes_is_not_published() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    rows(
        &ctx,
        "CREATE TABLE numbers AS SELECT value AS id, value % 90 AS age FROM range(0, 600)",
    )
    .await
    .unwrap();
    let call = "anonymize_eir((SELECT id, age, CAST(random() * 1000000 AS BIGINT) AS disease FROM numbers), \
                id => id, qi => [age], sensitive => disease, l => 3)";
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let said = refused(&ctx, call, Publish::to(text(&target))).await;
    assert!(said.contains("not true of the input"), "{said}");
    assert!(names(&target).is_empty());
}

/// All functions and kinds of columns can be published.
#[tokio::test(flavor = "multi_thread")]
async fn every_function_and_notation_can_be_published() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let roles = "id => patient_id, qi => [sex, birth_year, race], sensitive => diagnosis";
    for (i, call) in [
        format!("anonymize_ir(visits, {roles}, k => 5)"),
        format!("anonymize_ir(visits, {roles}, k => 5, l => 3)"),
        format!("anonymize_eir(visits, {roles}, alpha => 0.5, beta => 0.6)"),
        format!("anonymize_eir(visits, {roles}, l => 3, notation => 'text')"),
        format!("anonymize_eir(visits, {roles}, l => 3, hierarchy => {{birth_year: 'bins(5, 20)'}})"),
        format!("anonymize_eir(visits, {roles}, l => 3, keep => [ward], categorical => [birth_year])"),
        "anonymize_ir((SELECT DISTINCT sex, birth_year, diagnosis FROM visits), one_row_per_individual => true, \
         qi => [sex, birth_year], sensitive => diagnosis, k => 4)".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let target = text(&folder.path().join(i.to_string()));
        let release = publish(&ctx, call, Publish::to(target).with_figures(true)).await;
        let release = release.unwrap_or_else(|e| panic!("{call}: {e}"));
        let checked = if i == 6 { "possible" } else { "exact" };
        assert_eq!(release.manifest.truth.checked, checked, "{call}");
        for format in [ReportFormat::Html, ReportFormat::Markdown, ReportFormat::Json] {
            let report = release.figures.as_ref().unwrap().report(format).unwrap();
            assert!(report.len() > 2000, "{call}");
            let known = "whoever knows all quasi-identifiers, the program and its parameters";
            assert!(report.contains(known), "{call}");
        }
    }
}

/// A release of every function in the list of calls, and in its other forms: verified, and true of the input.
#[tokio::test(flavor = "multi_thread")]
async fn every_form_can_be_published() {
    let ctx = visits().await;
    make_wards(&ctx).await;
    let folder = tempfile::tempdir().unwrap();
    let kl = "SELECT * FROM anonymize_kl(visits, id => patient_id, qi => [birth_year, sex], sensitive => ward, k => 3, l => 2, \
              hierarchy => {ward: wards}";
    let single = "SELECT * FROM anonymize_kl((SELECT DISTINCT birth_year, sex, ward FROM visits), \
                  one_row_per_individual => true, qi => [birth_year, sex], sensitive => ward, k => 3, l => 2, \
                  hierarchy => {ward: wards})";
    let people = "(SELECT patient_id, min(sex) AS sex, min(birth_year) AS birth_year, min(diagnosis) AS diagnosis, \
                  min(ward) AS ward FROM visits GROUP BY patient_id)";
    let lgb = format!(
        "SELECT * FROM anonymize_lgb({people}, id => patient_id, qi => [sex, birth_year], \
         semi_sensitive => {{birth_year: 'birth_year % 5 = 0'}}"
    );
    let slppa = format!(
        "SELECT * FROM anatomize_slppa({people}, id => patient_id, qi => [sex, birth_year, ward], sensitive => diagnosis"
    );
    let others = [
        format!("{kl}, output => 'individuals')"),
        format!("{kl}, output => 'individuals', notation => 'text')"),
        single.to_owned(),
        format!("{lgb}, sensitive => diagnosis, k => 3, l => 2, block => 100)"),
        format!(
            "{lgb}, sensitive => diagnosis, k => 3, l => 2, block => 100, output => 'detached')"
        ),
        format!(
            "{lgb}, sensitive => [diagnosis, ward], k => 3, l => 2, t => {{ward: 0.8}}, output => 'detached', notation => 'text')"
        ),
        // Nothing but a quasi-identifier is secret.
        format!("{lgb}, k => 3, l => 2)"),
        format!("{slppa}, alpha => 1, beta => 0.4, gamma => 0.5, delta => 0.5)"),
        format!("{slppa}, beta => 0.4, gamma => 0.5, method => 'asn')"),
        format!(
            "{slppa}, beta => 0.4, method => 'slicing', division => [[sex, ward], [birth_year]])"
        ),
    ];
    let block = |call: &str| if call.contains("slppa") { "800" } else { "120" };
    let calls = CALLS.iter().map(|c| call(c, "visits", block(c)));
    let mut refused = vec![];
    for (i, call) in calls.chain(others).enumerate() {
        let target = text(&folder.path().join(i.to_string()));
        let frame = ctx.sql(&call).await.unwrap();
        let release = match Publish::to(target).with_figures(true).run(frame).await {
            Ok(release) => release,
            Err(error) => {
                refused.push(format!("{call}: {}", error.strip_backtrace()));
                continue;
            }
        };
        let manifest = &release.manifest;
        let by_id = manifest.roles.individual.is_some();
        let labelled = manifest.truth.columns.is_empty();
        let checked = if by_id { "exact" } else { "possible" };
        let checked = if labelled { "not" } else { checked };
        assert_eq!(manifest.truth.checked, checked, "{call}");
        let schema = include_str!("../../docs/reference/manifest.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let manifest = serde_json::to_value(manifest).unwrap();
        assert_eq!(faults(&schema, &manifest), Vec::<String>::new(), "{call}");
        for format in [
            ReportFormat::Html,
            ReportFormat::Markdown,
            ReportFormat::Json,
        ] {
            let report = release.figures.as_ref().unwrap().report(format).unwrap();
            assert!(report.len() > 2000, "{call}");
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// The report needs nothing but itself, and promises nothing that nobody can.
#[tokio::test(flavor = "multi_thread")]
async fn the_report_is_self_contained_and_careful() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = text(&folder.path().join("t"));
    let release = publish(&ctx, CALL, Publish::to(target).with_figures(true))
        .await
        .unwrap();
    let figures = release.figures.unwrap();
    assert!(!figures.class_sizes.is_empty() && !figures.query_errors.is_empty());
    assert_eq!(figures.distributions.len(), 3);
    let individuals: f64 = figures.class_sizes.iter().map(|b| b.value).sum();
    assert_eq!(individuals, 300.0);
    let k = release.manifest.counts.hidden_below as f64;
    for d in &figures.distributions {
        let counts = d.before.iter().chain(&d.after).flatten();
        assert!(counts.clone().all(|c| *c == 0.0 || *c >= k), "{d:?}");
        let after: f64 = d.after.iter().flatten().sum();
        assert!(after <= 301.0 + d.labels.len() as f64, "{d:?}");
    }
    let html = figures.report(ReportFormat::Html).unwrap();
    for heading in [
        "What was published",
        "The guarantee in plain words",
        "What is not protected",
        "Context assessment",
        "Data assessment",
        "Identifiability assessment and mitigation",
        "De-identification governance",
        "Prosecutor",
        "Journalist",
        "Marketer",
        "0.33",
        "0.09",
        "<svg",
    ] {
        assert!(html.contains(heading), "{heading}");
    }
    for foreign in ["http://", "https://", "<script", "url(", "GDPR", "@import"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
}

/// It is hidden that one person was left out, and no measure tells it: the release says the same of itself as if that
/// person had not been there.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_counts_cannot_be_solved_for() {
    let ctx = visits().await;
    // Somebody with many records, which disagree on the sex.
    let more = "CREATE TABLE more AS SELECT patient_id, sex, birth_year, diagnosis FROM visits UNION ALL \
                SELECT 'nobody', CASE WHEN value % 2 = 0 THEN 'F' ELSE 'M' END, 1970, 'x' || value FROM range(0, 60)";
    rows(&ctx, more).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut manifests = vec![];
    for table in ["visits", "more"] {
        let call = format!(
            "anonymize_eir({table}, id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3, \
             contradictory => 'drop', domain => {{birth_year: [1900, 2030]}}, seed => 1)"
        );
        let to = Publish::to(text(&folder.path().join(table)));
        manifests.push(publish(&ctx, &call, to).await.unwrap().manifest);
    }
    let [without, with] = &manifests[..] else {
        panic!("two releases")
    };
    assert_eq!(without.counts.individuals_suppressed, Count::Exact(0));
    let hidden = Count::Hidden { hidden_below: 3 };
    assert_eq!(with.counts.individuals_suppressed, hidden);
    assert_eq!(with.counts.individuals_in, hidden);
    assert_eq!(with.counts.records_in, hidden);
    assert_eq!(with.counts.individuals_out, 300);
    assert_eq!(with.counts.records_out, without.counts.records_out);
    // A reader knows the loss of what is published. If the loss of all were told, with d records that are lost in full,
    // told = (lost + d) / (records + d) could be solved for d.
    let records = without.counts.records_out as f64;
    assert!(with.information_loss.len() > 5);
    for (told, seen) in with.information_loss.iter().zip(&without.information_loss) {
        assert_eq!((&told.measure, &told.column), (&seen.measure, &seen.column));
        let (told_value, seen_value) = (told.value.unwrap(), seen.value.unwrap());
        let solved = records * (told_value - seen_value) / (1.0 - told_value);
        assert!(solved.abs() < 1.0, "{told:?}: {solved} of 60 records");
    }
    assert_eq!(with.audit, without.audit);
    // Where enough are left out to be told, they count.
    let call = "anonymize_eir((SELECT patient_id, sex, birth_year, diagnosis FROM visits UNION ALL \
                SELECT 'nobody' || (value % 20), CASE WHEN value % 40 < 20 THEN 'F' ELSE 'M' END, 1970, 'x' || value \
                FROM range(0, 80)), id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3, \
                contradictory => 'drop', domain => {birth_year: [1900, 2030]}, seed => 1)";
    let to = Publish::to(text(&folder.path().join("many")));
    let many = publish(&ctx, call, to).await.unwrap().manifest;
    assert_eq!(many.counts.individuals_suppressed, Count::Exact(20));
    assert_eq!(many.counts.individuals_in, Count::Exact(320));
    let loss = |manifest: &Manifest| {
        let total = manifest.information_loss.iter();
        let mut total = total.filter(|l| l.measure == "nloss" && l.column.is_none());
        total.next().unwrap().value.unwrap()
    };
    assert!(loss(&many) > loss(without) + 0.01);
}

/// A run that fails is forgotten, so that it can be repeated with other parameters; also in folders whose names have to be
/// escaped in URLs. What differs only in a hierarchy or a domain differs.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_knows_releases_not_attempts() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| {
        let ledger = Ledger::new(folder.path().join("a ledger"), "a secret of 24 characters");
        Publish::to(text(&folder.path().join(name))).with_ledger(Some(ledger.unwrap()))
    };
    let attempts = || {
        let names = names(&folder.path().join("a ledger"));
        names.iter().filter(|name| *name != "lock").count()
    };
    let infeasible = CALL.replace("l => 3", "l => 250");
    let said = refused(&ctx, &infeasible, to("first try")).await;
    assert!(said.contains("cannot be reached"), "{said}");
    assert_eq!(attempts(), 0);
    let store = Arc::new(Faulty::new(Fault::RefuseManifest));
    ctx.register_object_store(&"memory://store".try_into().unwrap(), store);
    let ledger = Ledger::new(folder.path().join("a ledger"), "a secret of 24 characters");
    let faulty = Publish::to("memory://store/a").with_ledger(Some(ledger.unwrap()));
    let said = refused(&ctx, &infeasible.replace("250", "4"), faulty).await;
    assert!(said.contains("refused"), "{said}");
    assert_eq!(attempts(), 0);
    let first = publish(&ctx, CALL, to("first try")).await.unwrap();
    assert!(first.warnings.is_empty(), "{:?}", first.warnings);
    assert_eq!(attempts(), 1);
    let roles = CALL.replace("l => 3)", "l => 3");
    for other in [
        "hierarchy => {birth_year: 'bins(5, 20)'})",
        "domain => {birth_year: [1900, 2030]})",
    ] {
        let said = refused(&ctx, &format!("{roles}, {other}"), to("other")).await;
        assert!(said.contains("with other arguments"), "{other}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_knows_who_was_published_before() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str, on_overlap| {
        let ledger =
            Ledger::new(folder.path().join("ledger"), "a secret of 24 characters").unwrap();
        let ledger = ledger.with_on_overlap(on_overlap);
        Publish::to(text(&folder.path().join(name))).with_ledger(Some(ledger))
    };
    let first = publish(&ctx, CALL, to("1", OnOverlap::Refuse))
        .await
        .unwrap();
    assert!(first.warnings.is_empty());
    // The same people with the same parameters: said. With others: refused, or said.
    let again = publish(&ctx, CALL, to("2", OnOverlap::Refuse))
        .await
        .unwrap();
    assert!(
        again.warnings[0].contains("about 100 % of the individuals"),
        "{:?}",
        again.warnings
    );
    let other = CALL.replace("l => 3", "l => 4");
    let said = refused(&ctx, &other, to("3", OnOverlap::Refuse)).await;
    assert!(
        said.contains("with other arguments;") && said.contains("nothing is published"),
        "{said}"
    );
    assert!(names(&folder.path().join("3")).is_empty());
    let warned = publish(&ctx, &other, to("4", OnOverlap::Warn))
        .await
        .unwrap();
    assert_eq!(warned.warnings.len(), 2);
    // Other people are nobody's business.
    let strangers = "anonymize_eir((SELECT 'x' || patient_id AS patient_id, sex, diagnosis FROM visits), id => patient_id, \
                     qi => [sex], sensitive => diagnosis, l => 2)";
    let strangers = publish(&ctx, strangers, to("5", OnOverlap::Refuse))
        .await
        .unwrap();
    assert!(strangers.warnings.is_empty(), "{:?}", strangers.warnings);
    // No id is in the ledger.
    let ids = rows(&ctx, "SELECT DISTINCT patient_id FROM visits")
        .await
        .unwrap();
    let ledger: String = names(&folder.path().join("ledger"))
        .iter()
        .map(|n| fs::read_to_string(folder.path().join("ledger").join(n)).unwrap())
        .collect();
    for id in &ids {
        assert!(
            !ledger.contains(&format!("\"{}\"", id[0])),
            "an id is in the ledger"
        );
    }
    assert!(Ledger::new("x", "short").is_err());
    assert!(Ledger::new("s3://bucket/ledger", "a secret of 24 characters").is_err());
}

/// Two releases overlap if somebody is in both. One repeats the other if it has the same arguments and the same query;
/// the tables may have other rows and other names, as they have every night.
#[tokio::test(flavor = "multi_thread")]
async fn an_overlap_is_a_repetition_or_refused() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    rows(
        &ctx,
        "CREATE TABLE tomorrow AS SELECT * FROM visits WHERE patient_id NOT LIKE '%7'",
    )
    .await
    .unwrap();
    let file = folder.path().join("tomorrow.parquet");
    for sql in [
        "COPY tomorrow TO 'FILE'",
        "CREATE EXTERNAL TABLE files STORED AS PARQUET LOCATION 'FILE'",
    ] {
        rows(&ctx, &sql.replace("FILE", &text(&file)))
            .await
            .unwrap();
    }
    let mut number = 0;
    let mut to = || {
        number += 1;
        let ledger = Ledger::new(folder.path().join("ledger"), "a secret of 24 characters");
        let target = folder.path().join(number.to_string());
        Publish::to(text(&target)).with_ledger(Some(ledger.unwrap()))
    };
    publish(&ctx, CALL, to()).await.unwrap();
    let tables = [
        "tomorrow",
        "tomorrow AS t",
        "(SELECT * FROM visits)",
        "files",
    ];
    for (count, table) in tables.iter().enumerate() {
        let same = CALL.replace("(visits", &format!("((SELECT * FROM {table})"));
        let again = publish(&ctx, &same, to()).await;
        let again = again.unwrap_or_else(|e| panic!("{table}: {e}"));
        assert_eq!(again.warnings.len(), count + 1, "{table}");
        let said = &again.warnings[0];
        assert!(
            said.contains("with the same arguments and the same query"),
            "{said}"
        );
    }
    for (source, arguments, how) in [
        (
            "(SELECT * FROM visits WHERE birth_year > 1950)",
            "l => 3",
            "with another query;",
        ),
        (
            "(SELECT * REPLACE (birth_year / 10 AS birth_year) FROM visits)",
            "l => 3",
            "with another query;",
        ),
        (
            "visits",
            "l => 3, normalize => true",
            "with other arguments;",
        ),
        ("visits", "l => 3, block => 90", "with other arguments;"),
        (
            "visits",
            "l => 3, algorithm => 'mondrian'",
            "with other arguments;",
        ),
        (
            "(SELECT * FROM visits LIMIT 150)",
            "l => 4",
            "with other arguments and another query;",
        ),
    ] {
        let other = CALL
            .replace("(visits", &format!("({source}"))
            .replace("l => 3", arguments);
        assert_ne!(other, CALL);
        let said = refused(&ctx, &other, to()).await;
        assert!(
            said.contains(how) && said.contains("nothing is published"),
            "{said}"
        );
    }
}

/// What was released can have been read, whatever became of it: only whoever removes the entry makes the ledger forget.
#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_forgets_no_release() {
    let ctx = visits().await;
    let other = CALL.replace("l => 3", "l => 4");
    let remove_folder: fn(&Folder) = |target| fs::remove_dir_all(target).unwrap();
    let remove_manifest: fn(&Folder) =
        |target| fs::remove_file(target.join("manifest.json")).unwrap();
    let remove_files: fn(&Folder) = |target| {
        let staging = names(target).into_iter().find(|n| n.starts_with("data-"));
        fs::remove_dir_all(target.join(staging.unwrap())).unwrap();
    };
    for remove in [remove_folder, remove_manifest, remove_files] {
        let folder = tempfile::tempdir().unwrap();
        let to = |name: &str| {
            let ledger = Ledger::new(folder.path().join("ledger"), "a secret of 24 characters");
            Publish::to(text(&folder.path().join(name))).with_ledger(Some(ledger.unwrap()))
        };
        let first = publish(&ctx, CALL, to("1")).await.unwrap();
        remove(&folder.path().join("1"));
        let said = refused(&ctx, &other, to("2")).await;
        assert!(
            said.contains(&first.manifest.release) && said.contains("was made"),
            "{said}"
        );
        let entry = format!("{}.json", first.manifest.release);
        fs::remove_file(folder.path().join("ledger").join(entry)).unwrap();
        publish(&ctx, &other, to("2")).await.unwrap();
    }
}

/// Of runs at once that may not both publish, one does at most; those that repeat each other are both told.
#[tokio::test(flavor = "multi_thread")]
async fn runs_at_once_see_each_other() {
    let ctx = visits().await;
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let to = |name: &str| {
            let ledger = Ledger::new(folder.path().join("ledger"), "a secret of 24 characters");
            Publish::to(text(&folder.path().join(name))).with_ledger(Some(ledger.unwrap()))
        };
        let second = CALL.replace("l => 3", &format!("l => {}", 3 + round % 2));
        let (a, b) = tokio::join!(
            publish(&ctx, CALL, to("a")),
            publish(&ctx, &second, to("b"))
        );
        let entries = names(&folder.path().join("ledger"));
        let made = [&a, &b].iter().filter(|run| run.is_ok()).count();
        assert_eq!(
            entries.iter().filter(|n| n.ends_with(".json")).count(),
            made
        );
        assert!(
            !entries.iter().any(|n| n.ends_with(".begun")),
            "{entries:?}"
        );
        if round % 2 == 0 {
            let warnings = a.unwrap().warnings.len() + b.unwrap().warnings.len();
            assert_eq!(warnings, 1, "{round}");
        } else {
            assert_eq!(made, 1, "{round}");
            let said = [a, b]
                .into_iter()
                .find_map(Result::err)
                .unwrap()
                .to_string();
            assert!(said.contains("with other arguments"), "{said}");
        }
    }
}

/// A ledger that cannot tell who was published before publishes nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_cannot_compare_refuses() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let to = |name: &str, key: &str| {
        let ledger = Ledger::new(&ledger, key)
            .unwrap()
            .with_on_overlap(OnOverlap::Warn);
        Publish::to(text(&folder.path().join(name))).with_ledger(Some(ledger))
    };
    let key = "a secret of 24 characters";
    let first = publish(&ctx, CALL, to("1", key)).await.unwrap();
    let said = refused(&ctx, CALL, to("2", "another of 24 characters")).await;
    assert!(said.contains("written with another key"), "{said}");
    let entry = ledger.join(format!("{}.json", first.manifest.release));
    let honest = fs::read_to_string(&entry).unwrap();
    let sketch = honest.find("\"sketch\":[").unwrap() + 10;
    let digit = |at: usize| honest.as_bytes()[at].is_ascii_digit();
    let place = (sketch..honest.len()).find(|at| digit(*at)).unwrap();
    let other = if &honest[place..=place] == "1" {
        "2"
    } else {
        "1"
    };
    let changed = format!("{}{other}{}", &honest[..place], &honest[place + 1..]);
    let emptied = {
        let end = sketch + honest[sketch..].find(']').unwrap();
        format!("{}{}", &honest[..sketch], &honest[end..])
    };
    for (text, why) in [
        (changed.as_str(), "was changed after it was written"),
        (&emptied, "was changed after it was written"),
        (&honest[..honest.len() / 2], "ledger: "),
        ("", "ledger: "),
    ] {
        fs::write(&entry, text).unwrap();
        let said = refused(&ctx, CALL, to("2", key)).await;
        assert!(said.contains(why) && said.contains(".json"), "{said}");
    }
    fs::write(&entry, honest).unwrap();
    let again = publish(&ctx, CALL, to("2", key)).await.unwrap();
    assert_eq!(again.warnings.len(), 1);
    // The entry of a run that was killed while it made its release.
    fs::write(
        ledger.join("0123456789abcdef0123456789abcdef.begun"),
        "{\"rel",
    )
    .unwrap();
    publish(&ctx, CALL, to("3", key)).await.unwrap();
    assert!(!names(&ledger).iter().any(|name| name.ends_with(".begun")));
}

/// What a store does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    Flip,
    Truncate,
    Lose,
    RefuseManifest,
    LoseAnswer,
    Rival,
}

/// A store in memory that does one thing wrong.
#[derive(Debug)]
struct Faulty {
    inner: InMemory,
    fault: Fault,
    reads: AtomicUsize,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self {
            inner: InMemory::new(),
            fault,
            reads: AtomicUsize::new(0),
        }
    }

    fn error(&self) -> object_store::Error {
        object_store::Error::Generic {
            store: "faulty",
            source: "refused".into(),
        }
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        let manifest = location.as_ref().ends_with("manifest.json");
        match self.fault {
            Fault::RefuseManifest if manifest => return Err(self.error()),
            Fault::LoseAnswer if manifest => {
                self.inner.put_opts(location, payload, opts).await?;
                return Err(self.error());
            }
            Fault::Rival if manifest => {
                self.inner
                    .put(location, PutPayload::from_static(b"{}"))
                    .await?;
            }
            Fault::Flip | Fault::Truncate if !manifest => {
                let mut bytes: Vec<u8> = payload.iter().flat_map(|b| b.to_vec()).collect();
                if self.fault == Fault::Flip {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                } else {
                    bytes.truncate(bytes.len() / 2);
                }
                return self
                    .inner
                    .put_opts(location, PutPayload::from(bytes), opts)
                    .await;
            }
            _ => {}
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Lose && location.as_ref().ends_with(".parquet") {
            self.inner.delete(location).await?;
        }
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> object_store::Result<Vec<bytes::Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
