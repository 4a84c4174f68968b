//! Releases as inputs: read through their manifests, and through nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::object_store::memory::InMemory;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::enable_url_table;
use datafusion_anonymize::publish::{Publish, Release};
use serde_json::{Value, json};

use crate::engine::{context, rows};

const CALL: &str = "anonymize_eir(visits, id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3)";

/// A context with 200 patients, in which paths are tables.
async fn visits() -> SessionContext {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let ctx = enable_url_table(ctx);
    let sql = "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 200, seed => 1)";
    rows(&ctx, sql).await.unwrap();
    ctx
}

async fn publish(ctx: &SessionContext, call: &str, target: &str) -> Release {
    let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
    Publish::to(target).run(frame).await.unwrap()
}

async fn refused(ctx: &SessionContext, sql: &str) -> String {
    rows(ctx, sql).await.unwrap_err().strip_backtrace()
}

fn change(target: &Path, how: impl FnOnce(&mut Value)) {
    let file = target.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    how(&mut manifest);
    fs::write(&file, serde_json::to_vec_pretty(&manifest).unwrap()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_read_through_its_manifest() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let path = target.to_str().unwrap();
    let release = publish(&ctx, CALL, path).await;
    // What the manifest does not name is no part of it, wherever it lies.
    let data = target.join(format!("data-{}", release.manifest.release));
    let stray = target.join(&release.manifest.files[0].path);
    fs::copy(&stray, data.join("part-0.parquet")).unwrap();
    let unfinished = target.join(format!("data-{}", "a".repeat(32)));
    fs::create_dir(&unfinished).unwrap();
    fs::copy(&stray, unfinished.join("part-0.parquet")).unwrap();
    let counts = &release.manifest.counts;
    let expected = [[
        counts.records_out.to_string(),
        counts.individuals_out.to_string(),
    ]];
    for relation in [
        format!("'{path}'"),
        format!("'{path}/'"),
        format!("release('{path}')"),
        format!("release('{path}/', table => 'published')"),
        format!("release(target => '{path}', verify => true)"),
        format!("release('{path}', 'published', true)"),
    ] {
        let sql = format!("SELECT count(*), count(DISTINCT individual) FROM {relation}");
        let found = rows(&ctx, &sql).await;
        assert_eq!(
            found.unwrap_or_else(|e| panic!("{sql}: {e}")),
            expected,
            "{relation}"
        );
    }
    let roles = "id => individual, qi => [sex, birth_year], sensitive => diagnosis";
    for sql in [
        format!("SELECT value FROM audit('{path}', {roles}) WHERE measure = 'eir_l'"),
        format!("SELECT value FROM audit(release('{path}'), {roles}) WHERE measure = 'eir_l'"),
        format!(
            "SELECT value FROM audit((SELECT * FROM '{path}'), {roles}) WHERE measure = 'eir_l'"
        ),
    ] {
        let found = rows(&ctx, &sql).await;
        let found: f64 = found.unwrap_or_else(|e| panic!("{sql}: {e}"))[0][0]
            .parse()
            .unwrap();
        assert!(found >= 3.0, "{sql}: {found}");
    }
    let loss = format!(
        "SELECT value FROM information_loss(visits, '{path}/', {roles}, original_id => patient_id) \
         WHERE measure = 'nloss' AND \"column\" IS NULL"
    );
    assert_eq!(rows(&ctx, &loss).await.unwrap().len(), 1);
    // Also where paths are no tables.
    let plain = context(SessionConfig::new());
    let sql = format!("SELECT value FROM audit('{path}', {roles}) WHERE measure = 'k'");
    assert_eq!(rows(&plain, &sql).await.unwrap().len(), 1);
}

/// Files come in the order of the manifest, not of their names.
#[tokio::test(flavor = "multi_thread")]
async fn files_keep_the_order_of_the_manifest() {
    let ctx = enable_url_table(context(SessionConfig::new().with_target_partitions(1)));
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    rows(
        &ctx,
        "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 200, seed => 1)",
    )
    .await
    .unwrap();
    let release = publish(&ctx, CALL, target.to_str().unwrap())
        .await
        .manifest
        .release;
    let mut files = vec![];
    for (name, value) in [("c", 3), ("a", 1), ("b", 2)] {
        let path = format!("data-{release}/part-{name}.parquet");
        let file = target.join(&path);
        let sql = format!("COPY (SELECT {value} AS x) TO '{}'", file.display());
        rows(&ctx, &sql).await.unwrap();
        let bytes = fs::metadata(&file).unwrap().len();
        files.push(json!({"table": "published", "path": path, "records": 1, "row_groups": 1, "bytes": bytes, "sha256": ""}));
    }
    change(&target, |manifest| {
        manifest["files"] = files.into();
        manifest["tables"][0]["columns"] = json!(["x"]);
    });
    let read = rows(
        &ctx,
        &format!("SELECT x FROM release('{}')", target.display()),
    )
    .await
    .unwrap();
    assert_eq!(read, [["3"], ["1"], ["2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_release_is_refused() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let release = publish(&ctx, CALL, whole.to_str().unwrap()).await;
    let file = release.manifest.files[0].path.clone();
    type Damage = fn(&Path, &str);
    let damages: &[(&str, Damage)] = &[
        (
            "manifest.json is not the manifest of a release",
            |target, _| {
                let manifest = fs::read(target.join("manifest.json")).unwrap();
                fs::write(
                    target.join("manifest.json"),
                    &manifest[..manifest.len() / 2],
                )
                .unwrap();
            },
        ),
        (
            "manifest.json is not the manifest of a release",
            |target, _| {
                change(target, |manifest| manifest["counts"] = json!("canary"));
            },
        ),
        ("manifest.json has version 9", |target, _| {
            change(target, |manifest| manifest["manifest_version"] = json!(9));
        }),
        ("names a file outside of the release", |target, _| {
            change(target, |manifest| {
                manifest["files"][0]["path"] = json!("../canary.parquet")
            });
        }),
        ("names a file outside of the release", |target, _| {
            change(target, |manifest| {
                let path = format!(
                    "data-{}/../../canary.parquet",
                    manifest["release"].as_str().unwrap()
                );
                manifest["files"][0]["path"] = json!(path);
            });
        }),
        ("is missing", |target, file| {
            fs::remove_file(target.join(file)).unwrap()
        }),
        (
            "has another size than manifest.json says",
            |target, file| {
                let mut bytes = fs::read(target.join(file)).unwrap();
                bytes.extend(b"canary");
                fs::write(target.join(file), bytes).unwrap();
            },
        ),
        ("have other columns than manifest.json says", |target, _| {
            change(target, |manifest| {
                manifest["tables"][0]["columns"][1] = json!("canary")
            });
        }),
    ];
    for (at, (expected, damage)) in damages.iter().enumerate() {
        let target = folder.path().join(at.to_string());
        copy(&whole, &target);
        damage(&target, &file);
        for relation in [
            "release('T')",
            "'T/'",
            "audit('T', id => individual, qi => [sex], sensitive => diagnosis)",
        ] {
            let relation = relation.replace('T', target.to_str().unwrap());
            let said = refused(&ctx, &format!("SELECT * FROM {relation}")).await;
            assert!(said.contains(expected), "{relation}: {said}");
            assert!(!said.contains("canary"), "{said}");
        }
    }
    // Bytes are compared on request.
    let target = folder.path().join("bytes");
    copy(&whole, &target);
    let mut bytes = fs::read(target.join(&file)).unwrap();
    bytes[20] ^= 1;
    fs::write(target.join(&file), bytes).unwrap();
    let said = refused(
        &ctx,
        &format!(
            "SELECT count(*) FROM release('{}', verify => true)",
            target.display()
        ),
    )
    .await;
    assert!(
        said.contains("holds other bytes than manifest.json says"),
        "{said}"
    );
    let unchecked = format!(
        "EXPLAIN SELECT count(*) FROM release('{}')",
        target.display()
    );
    rows(&ctx, &unchecked).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_arguments_are_looked_up() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let path = target.to_str().unwrap();
    let call = "anatomize_slppa(visits, id => patient_id, qi => [sex, birth_year], sensitive => ward, alpha => 1, \
                beta => 0.5, gamma => 0.5, delta => 0.9, tables => 2, contradictory => 'drop')";
    let call = call.replace(
        "visits",
        "(SELECT patient_id, min(sex) AS sex, min(birth_year) AS birth_year, min(ward) AS ward \
                                       FROM visits GROUP BY patient_id)",
    );
    let call = call.replace(", contradictory => 'drop'", "");
    publish(&ctx, &call, path).await;
    let records = rows(
        &ctx,
        &format!("SELECT sum(\"count\") FROM release('{path}', table => 'sa')"),
    )
    .await
    .unwrap();
    assert_eq!(records, [["200"]]);
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    for (relation, expected) in [
        (
            format!("release('{path}')"),
            "has several tables, 'qi_1', 'qi_2', 'sa'; name one",
        ),
        (format!("'{path}/'"), "has several tables"),
        (
            format!("release('{path}', table => 'qi_3')"),
            "no table 'qi_3'; did you mean 'qi_1'? (tables: 'qi_1', 'qi_2', 'sa')",
        ),
        (format!("release('{nowhere}')"), "there is no release at"),
        (
            "release('nowhere://x')".to_owned(),
            "no object store for nowhere://x",
        ),
        (
            "release()".to_owned(),
            "target is missing: name a folder or the URL of one",
        ),
        (
            "release(3)".to_owned(),
            "target must be a folder or the URL of one, in quotes, not 3",
        ),
        (
            format!("release('{path}', tabel => 'sa')"),
            "there is no argument 'tabel'; did you mean 'table'?",
        ),
        (
            format!("release('{path}', verify => 'yes')"),
            "verify must be true or false",
        ),
        (
            format!("release('{path}', 'sa', true, table => 'sa')"),
            "table is given twice",
        ),
    ] {
        let said = refused(&ctx, &format!("SELECT * FROM {relation}")).await;
        assert!(said.contains(expected), "{relation}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_stores_are_read_through_manifests() {
    let ctx = visits().await;
    let store = Arc::new(InMemory::new());
    ctx.register_object_store(&"memory://store".try_into().unwrap(), store);
    let release = publish(&ctx, CALL, "memory://store/a/b").await;
    let expected = [[release.manifest.counts.records_out.to_string()]];
    for relation in [
        "release('memory://store/a/b', verify => true)",
        "'memory://store/a/b'",
        "'memory://store/a/b/'",
    ] {
        let found = rows(&ctx, &format!("SELECT count(*) FROM {relation}")).await;
        assert_eq!(
            found.unwrap_or_else(|e| panic!("{relation}: {e}")),
            expected,
            "{relation}"
        );
    }
    let said = refused(&ctx, "SELECT * FROM release('memory://store/a')").await;
    assert!(said.contains("there is no release at"), "{said}");
}

/// However it is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_no_input_of_another_one() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let path = target.to_str().unwrap();
    publish(&ctx, CALL, path).await;
    rows(
        &ctx,
        &format!("CREATE VIEW again AS SELECT * FROM release('{path}')"),
    )
    .await
    .unwrap();
    let next: PathBuf = folder.path().join("next");
    for input in [
        format!("release('{path}')"),
        format!("'{path}'"),
        format!("'{path}/'"),
        "again".to_owned(),
    ] {
        let call = format!(
            "anonymize_eir((SELECT individual, diagnosis, character_length(diagnosis) AS n FROM {input}), id => individual, \
             qi => [n], sensitive => diagnosis, l => 2, contradictory => 'cover')"
        );
        // To look at it is allowed.
        rows(&ctx, &format!("SELECT * FROM {call}")).await.unwrap();
        let frame = ctx.sql(&format!("SELECT * FROM {call}")).await.unwrap();
        let said = Publish::to(next.to_str().unwrap())
            .run(frame)
            .await
            .unwrap_err();
        assert!(
            said.to_string().contains("is itself a release"),
            "{input}: {said}"
        );
        assert!(!next.exists());
    }
}

/// Files that other programs call manifest.json make no release.
#[tokio::test(flavor = "multi_thread")]
async fn other_manifests_are_files_like_others() {
    let ctx = visits().await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifest.json"), "{\"name\": \"app\"}\n").unwrap();
    let read = rows(
        &ctx,
        &format!("SELECT name FROM '{}/'", folder.path().display()),
    )
    .await
    .unwrap();
    assert_eq!(read, [["app"]]);
}
