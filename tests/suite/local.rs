//! Local groups and buckets end to end: thousands of random tables and flag densities, checked without the checker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, RecordBatch, StringArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::internals::check::{
    BucketRule, BucketTable, LocalColumn, ShownBuckets, flags_absent, verify_local,
};
use datafusion_anonymize::{
    BlockSize, LocalStrategy, Output, Secrecy, SmallPatterns, Spec, anonymize,
};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows};

/// Tables per run. A failure prints the seed of its table.
const TABLES: u64 = 3_000;

#[derive(Debug, Clone)]
struct Person {
    age: Option<i32>,
    city: Option<&'static str>,
    disease: &'static str,
    salary: i32,
    age_secret: Option<bool>,
    city_secret: Option<bool>,
}

struct Drawn {
    people: Vec<Person>,
    spec: Spec,
    k: usize,
    l: usize,
    one_block: bool,
    config: SessionConfig,
    batches: Vec<RecordBatch>,
}

const CITIES: [&str; 5] = ["Aachen", "Bonn", "Celle", "Düren", "Essen"];
const DISEASES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn draw(seed: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let density = [0.0, 0.1, 0.3, 0.6, 1.0][rng.random_range(0..5)];
    let nulls = rng.random_bool(0.3);
    let (k, l) = (rng.random_range(2..=4), rng.random_range(2..=3));
    let secret = |rng: &mut ChaCha8Rng| {
        let secret = rng.random_bool(density);
        // Whoever says nothing keeps the value secret.
        (!secret || rng.random_bool(0.7)).then_some(secret)
    };
    let people: Vec<Person> = (0..rng.random_range(1..=40))
        .map(|_| {
            let (age_secret, city_secret) = (secret(&mut rng), secret(&mut rng));
            let missing = |rng: &mut ChaCha8Rng, flag: Option<bool>| {
                nulls && flag == Some(false) && rng.random_bool(0.2)
            };
            Person {
                age: (!missing(&mut rng, age_secret)).then(|| rng.random_range(16..70)),
                city: (!missing(&mut rng, city_secret))
                    .then(|| CITIES[rng.random_range(0..CITIES.len())]),
                disease: DISEASES[rng.random_range(0..DISEASES.len())],
                salary: rng.random_range(10..25) * 100,
                age_secret,
                city_secret,
            }
        })
        .collect();
    let mut order: Vec<usize> = (0..people.len()).collect();
    order.shuffle(&mut rng);
    let size = rng.random_range(1..=order.len());
    let batches = order.chunks(size).map(|who| batch(&people, who)).collect();
    let one_block = rng.random_bool(0.6);
    let block = match one_block {
        true => BlockSize::All,
        false => BlockSize::Individuals(rng.random_range(10..=30)),
    };
    let mut spec = Spec::new("anonymize_lgb")
        .with_id("id")
        .with_qi(["age", "sex", "city"])
        .with_sensitive(["disease", "salary"])
        .with_semi_sensitive("age", Secrecy::Column("age_flag".to_owned()))
        .with_semi_sensitive("city", Secrecy::Column("city_flag".to_owned()))
        .with_parameter("k", k)
        .with_parameter("l", l)
        .with_block(block)
        .with_seed(seed);
    if rng.random_bool(0.5) {
        spec = spec.with_strategy(LocalStrategy::Mdp);
    }
    if rng.random_bool(0.5) {
        spec = spec.with_small_pattern(SmallPatterns::Mask);
    }
    if rng.random_bool(0.4) {
        spec = spec.with_output(Output::Detached);
    }
    Drawn {
        people,
        spec,
        k,
        l,
        one_block,
        config: SessionConfig::new()
            .with_target_partitions(rng.random_range(1..=3))
            .with_batch_size([1, 3, 8192][rng.random_range(0..3)]),
        batches,
    }
}

fn batch(people: &[Person], who: &[usize]) -> RecordBatch {
    let texts = |f: &dyn Fn(&Person) -> Option<&'static str>| -> ArrayRef {
        Arc::new(who.iter().map(|i| f(&people[*i])).collect::<StringArray>())
    };
    let numbers = |f: &dyn Fn(&Person) -> Option<i32>| -> ArrayRef {
        Arc::new(who.iter().map(|i| f(&people[*i])).collect::<Int32Array>())
    };
    let flags = |f: &dyn Fn(&Person) -> Option<bool>| -> ArrayRef {
        Arc::new(who.iter().map(|i| f(&people[*i])).collect::<BooleanArray>())
    };
    let ids = who.iter().map(|i| Some(*i as i32)).collect::<Int32Array>();
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(ids) as ArrayRef, true),
        ("age", numbers(&|p| p.age), true),
        ("age_flag", flags(&|p| p.age_secret), true),
        ("sex", texts(&|p| Some(sex(p))), true),
        ("city", texts(&|p| p.city), true),
        ("city_flag", flags(&|p| p.city_secret), true),
        ("disease", texts(&|p| Some(p.disease)), true),
        ("salary", numbers(&|p| Some(p.salary)), true),
    ])
    .unwrap()
}

fn sex(person: &Person) -> &'static str {
    if person.salary % 200 == 0 { "F" } else { "M" }
}

async fn check(seed: u64) -> &'static str {
    let drawn = draw(seed);
    let ctx = context(drawn.config.clone());
    let schema = drawn.batches[0].schema();
    let parts = drawn.batches.iter().map(|b| vec![b.clone()]).collect();
    let table = MemTable::try_new(schema, parts).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    let frame = ctx.table("t").await.unwrap();
    let frame = anonymize(frame, drawn.spec.clone()).unwrap();
    let published = Arc::new(frame.schema().as_arrow().clone());
    match frame.collect().await {
        Ok(batches) => {
            let rows = concat_batches(&published, &batches).unwrap();
            assert!(rows.num_rows() > 0, "seed {seed}: an empty release");
            satisfies(seed, &drawn, &rows);
            let owners = owners(&ctx, seed).await;
            tells_the_truth(seed, &drawn, &rows, &owners);
            agrees_with_the_checker(seed, &drawn, &rows);
            "published"
        }
        Err(error) => {
            let message = error.strip_backtrace();
            if message.contains("cannot be reached: ") {
                return "nobody";
            }
            assert!(message.contains("is impossible"), "seed {seed}: {message}");
            if drawn.one_block && drawn.spec.small_pattern() == SmallPatterns::Drop {
                assert!(
                    !feasible(&drawn),
                    "seed {seed}: refused without need: {message}"
                );
            }
            "refused"
        }
    }
}

/// Whether buckets of l different values can hold all secrets of those who are published.
fn feasible(drawn: &Drawn) -> bool {
    let pattern = |p: &Person| (p.age_secret != Some(false), p.city_secret != Some(false));
    let mut sizes = BTreeMap::<(bool, bool), usize>::new();
    for person in &drawn.people {
        *sizes.entry(pattern(person)).or_default() += 1;
    }
    let kept = drawn
        .people
        .iter()
        .filter(|p| sizes[&pattern(p)] >= drawn.k);
    let kept: Vec<&Person> = kept.collect();
    let eligible = |values: Vec<String>| {
        let mut counts = BTreeMap::<&String, usize>::new();
        values
            .iter()
            .for_each(|v| *counts.entry(v).or_default() += 1);
        counts.values().all(|n| n * drawn.l <= values.len())
    };
    let ages = kept.iter().filter(|p| pattern(p).0);
    let cities = kept.iter().filter(|p| pattern(p).1);
    eligible(ages.map(|p| format!("{:?}", p.age)).collect())
        && eligible(cities.map(|p| format!("{:?}", p.city)).collect())
        && eligible(kept.iter().map(|p| p.disease.to_owned()).collect())
        && eligible(kept.iter().map(|p| p.salary.to_string()).collect())
}

fn printed(rows: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = rows.column_by_name(column).unwrap();
    let options = datafusion::arrow::util::display::FormatOptions::default();
    let format =
        datafusion::arrow::util::display::ArrayFormatter::try_new(column.as_ref(), &options)
            .unwrap();
    (0..rows.num_rows())
        .map(|r| column.is_valid(r).then(|| format.value(r).to_string()))
        .collect()
}

/// Columns, groups of k, buckets of l different values, by counting.
fn satisfies(seed: u64, drawn: &Drawn, rows: &RecordBatch) {
    let schema = rows.schema();
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let mut expected = vec![
        "individual",
        "gid",
        "age",
        "age_bucketized",
        "age_bid",
        "sex",
        "city",
        "city_bucketized",
        "city_bid",
        "disease_bucketized",
        "disease_bid",
        "salary_bucketized",
        "salary_bid",
    ];
    if drawn.spec.output() == Output::Detached {
        expected.push("individuals");
    }
    assert_eq!(names, expected, "seed {seed}");
    flags_absent(&names, &expected, &["age_flag", "city_flag"]).unwrap();

    let who = printed(rows, "individual");
    let people: Vec<usize> = (0..rows.num_rows()).filter(|r| who[*r].is_some()).collect();
    let distinct: BTreeSet<_> = people.iter().map(|r| &who[*r]).collect();
    assert_eq!(distinct.len(), people.len(), "seed {seed}: one record each");

    let columns = ["age", "sex", "city", "age_bid", "city_bid"].map(|c| printed(rows, c));
    let gid = printed(rows, "gid");
    let mut groups = BTreeMap::<Vec<Option<String>>, usize>::new();
    let mut by_id = BTreeMap::<&Option<String>, (usize, BTreeSet<Vec<Option<String>>>)>::new();
    for r in &people {
        let mut shown: Vec<_> = columns[..3].iter().map(|c| c[*r].clone()).collect();
        // Of a bucket only that it is one.
        shown.extend(
            columns[3..]
                .iter()
                .map(|c| c[*r].as_ref().map(|_| String::new())),
        );
        *groups.entry(shown.clone()).or_default() += 1;
        let (size, shows) = by_id.entry(&gid[*r]).or_default();
        *size += 1;
        shows.insert(shown);
    }
    assert!(groups.values().all(|n| *n >= drawn.k), "seed {seed}: k");
    for (size, shows) in by_id.values() {
        assert!(*size >= drawn.k && shows.len() == 1, "seed {seed}: gid");
    }
    for attribute in ["age", "city", "disease", "salary"] {
        let values = printed(rows, &format!("{attribute}_bucketized"));
        let bids = printed(rows, &format!("{attribute}_bid"));
        let mut buckets = BTreeMap::<&String, (Vec<&String>, usize)>::new();
        for r in 0..rows.num_rows() {
            let Some(bid) = &bids[r] else {
                assert!(
                    values[r].is_none(),
                    "seed {seed}: a secret outside of a bucket"
                );
                continue;
            };
            let (known, members) = buckets.entry(bid).or_default();
            known.extend(&values[r]);
            *members += usize::from(who[r].is_some());
        }
        for (values, members) in buckets.values() {
            assert!(*members >= drawn.l, "seed {seed}: {attribute} l");
            assert_eq!(values.len(), *members, "seed {seed}: {attribute}");
            let distinct: BTreeSet<_> = values.iter().collect();
            assert_eq!(
                distinct.len(),
                values.len(),
                "seed {seed}: {attribute} unique"
            );
        }
    }
}

/// Who is behind each pseudonym: a release with the same seed that keeps a copy of the id.
async fn owners(ctx: &SessionContext, seed: u64) -> BTreeMap<String, usize> {
    let sql = format!(
        "SELECT individual, who FROM anonymize_ir((SELECT *, id AS who, 1 AS one FROM t), id => id, qi => [one], \
         sensitive => disease, keep => [who], k => 2, block => 'all', seed => {seed})"
    );
    let found = rows(ctx, &sql).await.unwrap();
    let pair = |row: Vec<String>| (row[0].clone(), row[1].parse().unwrap());
    found.into_iter().map(pair).collect()
}

/// Every individual is treated as it wishes, and buckets hold what their members keep secret.
fn tells_the_truth(seed: u64, drawn: &Drawn, rows: &RecordBatch, owners: &BTreeMap<String, usize>) {
    let who = rows
        .column_by_name("individual")
        .unwrap()
        .as_string::<i32>();
    let age = rows.column_by_name("age").unwrap().as_struct();
    let (lo, hi) = (
        age.column(0).as_primitive::<Int32Type>(),
        age.column(1).as_primitive::<Int32Type>(),
    );
    let cities = rows.column_by_name("city").unwrap().as_list::<i32>();
    let masks = drawn.spec.small_pattern() == SmallPatterns::Mask;
    let people = || (0..rows.num_rows()).filter(|r| who.is_valid(*r));
    for r in people() {
        let person = &drawn.people[owners[who.value(r)]];
        let in_bucket = |name: &str| rows.column_by_name(name).unwrap().is_valid(r);
        let age_fits = match (in_bucket("age_bid"), age.is_valid(r)) {
            (true, shown) => !shown && person.age_secret != Some(false),
            // Suppressed with others, or blank.
            (false, false) => masks || person.age_secret == Some(false),
            (false, true) => {
                let covers = |age: i32| lo.is_valid(r) && lo.value(r) <= age && age <= hi.value(r);
                person.age_secret == Some(false) && person.age.map_or(lo.is_null(r), covers)
            }
        };
        let city_fits = match (in_bucket("city_bid"), cities.is_valid(r)) {
            (true, shown) => !shown && person.city_secret != Some(false),
            (false, false) => masks || person.city_secret == Some(false),
            (false, true) => {
                let set = cities.value(r);
                let set: Vec<_> = set.as_string::<i32>().iter().collect();
                person.city_secret == Some(false) && set.contains(&person.city)
            }
        };
        assert!(age_fits && city_fits, "seed {seed}: {person:?}");
    }
    type Value = fn(&Person) -> Option<String>;
    let attributes: [(&str, Value); 4] = [
        ("age", |p| p.age.map(|a| a.to_string())),
        ("city", |p| p.city.map(str::to_owned)),
        ("disease", |p| Some(p.disease.to_owned())),
        ("salary", |p| Some(p.salary.to_string())),
    ];
    for (name, value) in attributes {
        let values = printed(rows, &format!("{name}_bucketized"));
        let bids = printed(rows, &format!("{name}_bid"));
        let mut shown: Vec<_> = bids
            .iter()
            .zip(&values)
            .filter(|(_, v)| v.is_some())
            .collect();
        let own: Vec<_> = people()
            .filter(|r| bids[*r].is_some())
            .map(|r| (&bids[r], value(&drawn.people[owners[who.value(r)]])))
            .collect();
        let mut own: Vec<_> = own.iter().map(|(bid, v)| (*bid, v)).collect();
        shown.sort();
        own.sort();
        assert_eq!(
            shown, own,
            "seed {seed}: buckets of {name} hold their members' values"
        );
    }
}

/// The checker reads the same from the columns.
fn agrees_with_the_checker(seed: u64, drawn: &Drawn, rows: &RecordBatch) {
    let who = rows.column_by_name("individual").unwrap();
    let people = datafusion::arrow::compute::is_not_null(who).unwrap();
    let people = datafusion::arrow::compute::filter_record_batch(rows, &people).unwrap();
    let of = |rows: &RecordBatch, name: &str| Arc::clone(rows.column_by_name(name).unwrap());
    let local = |name: &str, semi: bool| {
        let values = of(rows, &format!("{name}_bucketized"));
        let some = datafusion::arrow::compute::is_not_null(&values).unwrap();
        let own = datafusion::arrow::compute::filter_record_batch(rows, &some).unwrap();
        let value = match semi {
            true => of(&people, name),
            false => {
                datafusion::arrow::array::new_null_array(values.data_type(), people.num_rows())
            }
        };
        LocalColumn {
            value,
            bucket: of(&people, &format!("{name}_bid")),
            table: Some(BucketTable {
                bucket: of(&own, &format!("{name}_bid")),
                value: of(&own, &format!("{name}_bucketized")),
                individuals: Arc::new(Int32Array::from(vec![1; own.num_rows()])),
            }),
        }
    };
    let release = ShownBuckets::try_new(
        &of(&people, "individual"),
        &[of(&people, "sex")],
        &[local("age", true), local("city", true)],
        &[local("disease", false), local("salary", false)],
    );
    let rule = BucketRule::Diversity { l: drawn.l };
    let attained = verify_local(&release.unwrap(), drawn.k, &[rule; 4]);
    let attained = attained.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    assert_eq!(attained.individuals, people.num_rows());
}

#[tokio::test(flavor = "multi_thread")]
async fn random_local_tables() {
    let mut ends = BTreeMap::<&str, usize>::new();
    for start in (0..TABLES).step_by(100) {
        let checks = (start..start + 100).map(|seed| tokio::spawn(check(seed)));
        for end in futures::future::join_all(checks).await {
            *ends.entry(end.unwrap()).or_default() += 1;
        }
    }
    assert!(
        ends["published"] > 1_000 && ends["refused"] > 100,
        "{ends:?}"
    );
}

/// Over many releases an owner stands beside each value of its bucket equally often, the own one included.
#[tokio::test(flavor = "multi_thread")]
async fn owners_stand_beside_any_value() {
    let ctx = context(SessionConfig::new().with_target_partitions(1));
    let table = "CREATE TABLE t AS SELECT column1 AS id, 'x' AS sex, column2 AS disease \
                 FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'))";
    rows(&ctx, table).await.unwrap();
    let mut beside = BTreeMap::<(usize, String), usize>::new();
    for seed in 0..400 {
        let owners = owners(&ctx, seed).await;
        let sql = format!(
            "SELECT individual, disease_bucketized FROM anonymize_lgb(t, id => id, qi => [sex], sensitive => disease, \
             k => 2, l => 4, seed => {seed})"
        );
        for row in rows(&ctx, &sql).await.unwrap() {
            *beside.entry((owners[&row[0]], row[1].clone())).or_default() += 1;
        }
    }
    // 16 pairs with an expectation of 100 and a standard deviation of 8.7.
    assert_eq!(beside.len(), 16);
    assert!(beside.values().all(|n| n.abs_diff(100) < 40), "{beside:?}");
}

const RELEASES: [&str; 2] = [
    "anonymize_lgb((SELECT patient_id, min(birth_year) AS born, min(sex) AS sex, min(ward) AS ward, \
     min(diagnosis) AS diagnosis FROM t GROUP BY patient_id), id => patient_id, qi => [born, sex], \
     semi_sensitive => {born: 'born % 3 = 0', ward: 'born % 5 = 0'}, sensitive => [diagnosis], k => 3, \
     l => {born: 2, ward: 2, diagnosis: 3}, block => 150, small_pattern => 'mask', seed => 11)",
    "anonymize_lgb((SELECT birth_year AS born, sex, ward FROM t), one_row_per_individual => true, qi => [born], \
     semi_sensitive => {sex: true}, sensitive => ward, k => 3, l => 2, t => {sex: 0.3}, output => 'detached', seed => 11)",
];

/// The same seed gives the same rows, however the work is divided.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_do_not_depend_on_how_the_work_is_divided() {
    for release in RELEASES {
        let mut first: Option<Vec<Vec<String>>> = None;
        for (partitions, batch_size, order) in [
            (1, 8192, "1"),
            (2, 7, "birth_year"),
            (3, 64, "diagnosis"),
            (8, 1000, "ward, race"),
        ] {
            let config = SessionConfig::new()
                .with_target_partitions(partitions)
                .with_batch_size(batch_size);
            let ctx = context(config);
            let sql =
                format!("CREATE TABLE t AS SELECT * FROM sample_patients(400, 3) ORDER BY {order}");
            rows(&ctx, &sql).await.unwrap();
            let mut found = rows(&ctx, &format!("SELECT * FROM {release}"))
                .await
                .unwrap();
            found.sort();
            assert!(found.len() > 300, "{}", found.len());
            assert_eq!(*first.get_or_insert_with(|| found.clone()), found);
        }
    }
}

/// Neither ids nor flags nor anything of whoever is left out is in what is written.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_whoever_is_left_out_is_written() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let table = "CREATE TABLE t AS SELECT 'idcanary' || value AS id, value % 7 AS age, 'city' || (value % 4) AS city, \
                 to_hex((value + 1) * 2654435761 % 4294967296) AS disease, value = 13 AS flagcanary, value < 30 AS othercanary \
                 FROM generate_series(0, 59)";
    rows(&ctx, table).await.unwrap();
    // Without common parts, so that no file shortens them.
    let token = |i: u64| format!("{:x}", (i + 1) * 2_654_435_761 % 4_294_967_296);
    let folder = tempfile::tempdir().unwrap();
    for output in ["rows", "detached"] {
        for format in ["PARQUET", "CSV", "JSON", "ARROW"] {
            let target = folder.path().join(format!("{format}{output}"));
            let notation = if format == "CSV" { "text" } else { "typed" };
            let options = match format {
                "PARQUET" => "OPTIONS ('format.compression' 'uncompressed')",
                _ => "",
            };
            let sql = format!(
                "COPY (SELECT * FROM anonymize_lgb(t, id => id, qi => [age, city], semi_sensitive => {{age: othercanary, \
                 city: flagcanary}}, sensitive => disease, k => 5, l => {{age: 3, city: 2, disease: 5}}, \
                 output => '{output}', notation => '{notation}')) TO '{}' STORED AS {format} {options}",
                target.display()
            );
            assert_eq!(rows(&ctx, &sql).await.unwrap().len(), 1);
            let mut bytes = vec![];
            for file in walk(&target) {
                bytes.extend(std::fs::read(file).unwrap());
            }
            let holds = |token: &str| bytes.windows(token.len()).any(|w| w == token.as_bytes());
            assert!(holds(&token(12)), "{format} {output}: others are there");
            for token in ["canary", &token(13)] {
                assert!(!holds(token), "{format} {output}: {token}");
            }
        }
    }
    let sql = "EXPLAIN ANALYZE SELECT * FROM anonymize_lgb(t, id => id, qi => [age], semi_sensitive => {city: flagcanary}, \
               sensitive => disease, k => 5, l => 3)";
    let shown = rows(&ctx, sql).await.unwrap().concat().concat();
    let (above, _) = shown.split_once("PseudonymizeExec").unwrap();
    assert!(above.contains("suppressed_individuals=1"), "{above}");
    assert!(
        !above.contains("flagcanary") && !shown.contains(&token(13)),
        "{shown}"
    );
}

/// The files under a path.
fn walk(path: &std::path::Path) -> Vec<std::path::PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).unwrap();
    entries
        .flat_map(|entry| walk(&entry.unwrap().path()))
        .collect()
}

/// True sums and counts lie between the least and the most, whatever is asked, and both forms tell the same.
#[tokio::test(flavor = "multi_thread")]
async fn sums_are_within_their_bounds() {
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let table = "CREATE TABLE t AS SELECT value AS id, 20 + value * 7 % 41 AS age, CASE value % 3 WHEN 0 THEN 'F' WHEN 1 \
                 THEN 'M' END AS sex, 'c' || (value * 5 % 11) AS city, value * 13 % 37 * 10 - 50 AS salary \
                 FROM generate_series(1, 300)";
    rows(&ctx, table).await.unwrap();
    for output in ["rows", "detached"] {
        let sql = format!(
            "CREATE TABLE {output}_ AS SELECT * FROM anonymize_lgb(t, id => id, qi => [age, sex, city], \
             semi_sensitive => {{age: 'id % 4 = 0', city: 'id % 5 < 2'}}, sensitive => salary, k => 3, l => 3, \
             output => '{output}', seed => 9)"
        );
        rows(&ctx, &sql).await.unwrap();
    }
    let kept = rows(&ctx, "SELECT count(*) FROM rows_").await.unwrap();
    assert_eq!(kept, [["300"]], "nobody is left out");
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for _ in 0..60 {
        let mut conditions = vec!["1 = 1".to_owned()];
        if rng.random_bool(0.7) {
            let (from, to) = (rng.random_range(15..60), rng.random_range(15..60));
            conditions.push(format!("age BETWEEN {} AND {}", from.min(to), from.max(to)));
        }
        if rng.random_bool(0.4) {
            conditions
                .push(["sex = 'F'", "sex IS NULL", "sex <> 'F'"][rng.random_range(0..3)].into());
        }
        if rng.random_bool(0.5) {
            conditions.push(format!(
                "(city IN ('c1', 'c{}') OR age > 50)",
                rng.random_range(0..11)
            ));
        }
        if rng.random_bool(0.3) {
            conditions.push(format!("salary > {}", rng.random_range(-50..300)));
        }
        let condition = conditions.join(" AND ");
        for what in ["sum(salary)", "count(*)"] {
            let sql = format!("SELECT coalesce({what}, 0) FROM t WHERE {condition}");
            let truth = rows(&ctx, &sql).await.unwrap();
            let truth: f64 = truth[0][0].parse().unwrap();
            let mut answers = vec![];
            for output in ["rows_", "detached_"] {
                let query = format!("SELECT {what} FROM x WHERE {condition}").replace('\'', "''");
                let sql = format!("SELECT * FROM estimate_sum({output}, '{query}')");
                let answer = rows(&ctx, &sql).await.unwrap().remove(0);
                answers.push(
                    answer
                        .iter()
                        .map(|x| x.parse().unwrap())
                        .collect::<Vec<f64>>(),
                );
            }
            assert_eq!(answers[0], answers[1], "{what} {condition}");
            let [lower, expected, upper, least, most] = answers[0][..] else {
                panic!("{answers:?}");
            };
            assert!(
                least <= truth && truth <= most,
                "{what} {condition}: {truth} {answers:?}"
            );
            let slack = 1e-6 * (1.0 + expected.abs());
            assert!(
                lower <= expected + slack && expected <= upper + slack,
                "{answers:?}"
            );
        }
    }
}
