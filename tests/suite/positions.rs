//! The positional attack: whoever takes the j-th row of a group in one table and the j-th in another for one person.

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::publish::Publish;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows};

/// A table `u` in which everybody has an age and a zip code of their own, so that whoever is linked is known to be linked
/// rightly.
async fn people(n: i32) -> SessionContext {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut ages: Vec<i32> = (0..n).collect();
    ages.shuffle(&mut rng);
    let values: Vec<String> = (0..n)
        .map(|i| format!("({i}, {}, {}, {})", ages[i as usize], i, i % 40))
        .collect();
    let ctx = context(SessionConfig::new().with_target_partitions(1));
    let table = format!(
        "CREATE TABLE u AS SELECT * FROM (VALUES {}) AS v(id, age, zip, salary)",
        values.join(", ")
    );
    rows(&ctx, &table).await.unwrap();
    ctx
}

fn call(block: &str) -> String {
    format!(
        "anatomize_slppa(u, id => id, qi => [age, zip], sensitive => salary, alpha => 1, beta => 0.1, gamma => 1, \
         delta => 1, division => [[age], [zip]], block => {block}, seed => 9)"
    )
}

/// Two sub-tables and sensitive values, by position in their group: the share of those that are linked to their own.
async fn relinked(ctx: &SessionContext, from: &str) -> f64 {
    // Expand counts: every table has each group's members in some order; the j-th of each are taken for one person.
    let sql = format!(
        "WITH places AS (SELECT subtable, gid, age, zip, salary, row_number() OVER (PARTITION BY subtable, gid) AS place \
           FROM (SELECT *, unnest(range(0, count)) AS copy FROM {from})), \
         linked AS (SELECT a.age, z.zip, s.salary FROM places a \
           JOIN places z ON a.gid = z.gid AND a.place = z.place JOIN places s ON a.gid = s.gid AND a.place = s.place \
           WHERE a.subtable = 'qi_1' AND z.subtable = 'qi_2' AND s.subtable = 'sa') \
         SELECT (SELECT CAST(count(*) AS DOUBLE) FROM linked JOIN u ON linked.age = u.age AND linked.zip = u.zip) \
           / (SELECT count(*) FROM u)"
    );
    rows(ctx, &sql).await.unwrap()[0][0].parse().unwrap()
}

/// Nothing beyond chance is linked, and ids of groups say nothing about the order of the input.
async fn links_nobody(ctx: &SessionContext, from: &str, n: i32) {
    // One of ten by chance: every group has ten members at least.
    let chance = 0.1 + 3.0 * (0.1 * 0.9 / f64::from(n)).sqrt();
    let found = relinked(ctx, from).await;
    assert!(found <= chance, "{from}: {found}");
    // Ids are those of groups: whatever these are made of, a rank correlation over g of them deviates by 1 / sqrt(g).
    let groups = format!("SELECT CAST(count(DISTINCT gid) AS DOUBLE) FROM {from}");
    let groups: f64 = rows(ctx, &groups).await.unwrap()[0][0].parse().unwrap();
    // What is left over in a block joins its groups.
    assert!(groups > f64::from(n) / 10.0 - 3.0, "{from}: {groups}");
    let sql = format!(
        "SELECT corr(g, z) FROM (SELECT rank() OVER (ORDER BY gid) AS g, rank() OVER (ORDER BY zip) AS z \
         FROM {from} WHERE subtable = 'qi_2')"
    );
    let correlation: f64 = rows(ctx, &sql).await.unwrap()[0][0].parse().unwrap();
    assert!(correlation.abs() < 3.0 / groups.sqrt(), "{correlation}");
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_link_nobody() {
    let n = 4_000;
    let ctx = people(n).await;
    let release = format!("CREATE TABLE published AS SELECT * FROM {}", call("'all'"));
    rows(&ctx, &release).await.unwrap();
    links_nobody(&ctx, "published", n).await;
    // The attack works on tables in input order: it links everybody.
    let naive = "CREATE TABLE naive AS \
        SELECT 'qi_1' AS subtable, id % 400 AS gid, age, NULL AS zip, NULL AS salary, 1 AS count FROM u \
        UNION ALL SELECT 'qi_2', id % 400, NULL, zip, NULL, 1 FROM u \
        UNION ALL SELECT 'sa', id % 400, NULL, NULL, salary, 1 FROM u";
    rows(&ctx, naive).await.unwrap();
    assert!(relinked(&ctx, "naive").await > 0.99);
}

/// The same in several blocks, and in the files that a release is written to, row by row as they are there.
#[tokio::test(flavor = "multi_thread")]
async fn positions_in_blocks_and_files_link_nobody() {
    let n = 8_000;
    let ctx = people(n).await;
    let blocks = call("4000");
    let sql = format!("CREATE TABLE published AS SELECT * FROM {blocks}");
    rows(&ctx, &sql).await.unwrap();
    links_nobody(&ctx, "published", n).await;

    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("release");
    let frame = ctx.sql(&format!("SELECT * FROM {blocks}")).await.unwrap();
    let to = Publish::to(target.to_str().unwrap().to_owned());
    let release = to.run(frame).await.unwrap();
    let mut parts = vec![];
    for (name, columns) in [
        ("qi_1", "age, NULL AS zip, NULL AS salary"),
        ("qi_2", "NULL AS age, zip, NULL AS salary"),
        ("sa", "NULL AS age, NULL AS zip, salary"),
    ] {
        let files = release.manifest.files.iter();
        let own: Vec<_> = files.filter(|file| file.table == name).collect();
        assert_eq!(
            own.len(),
            1,
            "{name}: one file, whose rows stand as they were written"
        );
        let path = target.join(&own[0].path);
        parts.push(format!(
            "SELECT '{name}' AS subtable, gid, {columns}, count FROM anonymize_input('{}')",
            path.display()
        ));
    }
    let sql = format!("CREATE TABLE written AS {}", parts.join(" UNION ALL "));
    rows(&ctx, &sql).await.unwrap();
    links_nobody(&ctx, "written", n).await;
}
