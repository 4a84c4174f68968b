//! Anatomized releases from end to end: what is published satisfies the four bounds, tells the truth, and links nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::internals::check::{
    AnatomyBounds, AnatomyTable, Ratio, ShownTables, rows_out_of_order, verify_anatomy,
};
use datafusion_anonymize::{
    AnonymizeLogicalCodec, AnonymizePhysicalCodec, BlockSize, Spec, anonymize, register_all,
    sub_tables,
};
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, printed, rows};

/// Tables per run. A failure prints the seed of its table.
const TABLES: u64 = 3_000;

const METHODS: [&str; 4] = ["slppa", "slppa_similar", "asn", "slicing"];

type Person = (i32, Option<i32>, Option<&'static str>, i32, &'static str);

struct Drawn {
    people: Vec<Person>,
    spec: Spec,
    method: &'static str,
    bounds: BTreeMap<&'static str, Ratio>,
    config: SessionConfig,
}

fn people(rng: &mut ChaCha8Rng, most: usize) -> Vec<Person> {
    let salaries = &["a", "b", "c", "d", "e", "f", "g"][..rng.random_range(2..=7)];
    let ages = rng.random_range(1..12);
    let nulls = rng.random_bool(0.3);
    (0..rng.random_range(1..=most) as i32)
        .map(|id| {
            let known = |rng: &mut ChaCha8Rng| !nulls || rng.random_bool(0.8);
            (
                id,
                known(rng).then(|| rng.random_range(0..ages)),
                known(rng).then(|| ["F", "M", "X"][rng.random_range(0..3)]),
                rng.random_range(0..4),
                salaries[rng.random_range(0..salaries.len())],
            )
        })
        .collect()
}

fn draw(seed: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let people = people(&mut rng, 40);
    let method = METHODS[rng.random_range(0..METHODS.len())];
    let mut spec = Spec::new("anatomize_slppa")
        .with_qi(["age", "sex", "zip"])
        .with_sensitive(["salary"])
        .with_parameter("method", method)
        .with_block(BlockSize::All)
        .with_seed(seed);
    spec = match rng.random_bool(0.5) {
        true => spec.with_id("id"),
        false => spec.with_one_row_per_individual(true),
    };
    let mut bounds = BTreeMap::new();
    let names: &[&str] = match method {
        "slicing" => &["beta"],
        "asn" => &["beta", "gamma"],
        _ => &["alpha", "beta", "gamma", "delta"],
    };
    for name in names {
        let hundredths = match *name {
            "gamma" => rng.random_range(2..=100),
            "delta" => rng.random_range(5..=100),
            _ => rng.random_range(25..=100),
        };
        spec = spec.with_parameter(
            *name,
            format!("{}.{:02}", hundredths / 100, hundredths % 100),
        );
        bounds.insert(*name, Ratio::try_new(hundredths, 100).unwrap());
    }
    if method != "asn" {
        spec = match rng.random_range(0..3) {
            0 => spec.with_division([vec!["zip"], vec!["age", "sex"]]),
            1 => spec.with_division([vec!["sex", "zip", "age"]]),
            _ => spec.with_parameter("tables", rng.random_range(1..=3)),
        };
    }
    let config = SessionConfig::new()
        .with_target_partitions(rng.random_range(1..=3))
        .with_batch_size([1, 3, 8192][rng.random_range(0..3)]);
    Drawn {
        people,
        spec,
        method,
        bounds,
        config,
    }
}

fn batch(people: &[Person]) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(people.iter().map(|p| p.0)));
    let ages: ArrayRef = Arc::new(Int32Array::from_iter(people.iter().map(|p| p.1)));
    let sexes: ArrayRef = Arc::new(StringArray::from_iter(people.iter().map(|p| p.2)));
    let zips: ArrayRef = Arc::new(Int32Array::from_iter_values(people.iter().map(|p| p.3)));
    let salaries: ArrayRef = Arc::new(StringArray::from_iter_values(people.iter().map(|p| p.4)));
    RecordBatch::try_from_iter([
        ("id", ids),
        ("age", ages),
        ("sex", sexes),
        ("zip", zips),
        ("salary", salaries),
    ])
    .unwrap()
}

/// The release as one batch.
async fn release(drawn: &Drawn) -> datafusion::common::Result<RecordBatch> {
    let ctx = context(drawn.config.clone());
    let batch = batch(&drawn.people);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    let frame = anonymize(ctx.read_table(Arc::new(table))?, drawn.spec.clone())?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    Ok(concat_batches(&schema, &frame.collect().await?)?)
}

/// The columns of each sub-table: those that are not missing in all of its rows, found without asking the function. A
/// column that is missing in everybody goes to the first sub-table without any.
fn division(published: &RecordBatch) -> Vec<Vec<usize>> {
    let names = published.column(0).as_string::<i32>();
    let tables = (1..).take_while(|t| names.iter().flatten().any(|n| n == format!("qi_{t}")));
    tables
        .map(|table| {
            let name = format!("qi_{table}");
            let shown = |column: &usize| {
                let array = published.column(2 + column);
                (0..array.len()).any(|row| names.value(row) == name && array.is_valid(row))
            };
            (0..3).filter(shown).collect()
        })
        .collect()
}

/// Reads the release as somebody who got it does.
fn read(published: &RecordBatch) -> ShownTables {
    let columns: Vec<ArrayRef> = published.columns()[2..5].to_vec();
    let table = AnatomyTable {
        gid: published.column(1),
        columns: &columns,
        count: published.column(6),
    };
    ShownTables::from_long_form(
        published.column(0),
        table,
        &division(published),
        published.column(5),
        None,
    )
    .unwrap()
}

fn bounds(drawn: &Drawn) -> AnatomyBounds {
    AnatomyBounds {
        alpha: drawn.bounds.get("alpha").copied(),
        beta: drawn.bounds.get("beta").copied(),
        gamma: drawn.bounds.get("gamma").copied(),
        delta: drawn.bounds.get("delta").copied(),
    }
}

/// The rows of each table of a release.
fn tables(published: &RecordBatch) -> BTreeMap<String, RecordBatch> {
    let names = published.column(0).as_string::<i32>();
    let mut rows: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (row, name) in (0u32..).zip(names.iter().flatten()) {
        rows.entry(name.to_owned()).or_default().push(row);
    }
    rows.into_iter()
        .map(|(name, rows)| {
            (
                name,
                take_record_batch(published, &UInt32Array::from(rows)).unwrap(),
            )
        })
        .collect()
}

/// How often each tuple of some columns occurs, as text.
fn counted(
    batch: &RecordBatch,
    columns: &[usize],
    count: Option<usize>,
) -> BTreeMap<Vec<String>, i64> {
    let mut counts = BTreeMap::new();
    let rows = printed(std::slice::from_ref(batch));
    for (row, cells) in rows.iter().enumerate() {
        let tuple = columns.iter().map(|c| cells[*c].clone()).collect();
        let individuals = count.map_or(1, |c| {
            batch.column(c).as_primitive::<Int64Type>().value(row)
        });
        *counts.entry(tuple).or_default() += individuals;
    }
    counts
}

/// The four bounds (Yao 2021, Definitions 1–4) counted again from the rows, group by group, with whole numbers: code that
/// shares nothing with the checker.
fn recount(seed: u64, drawn: &Drawn, published: &RecordBatch) {
    // Group → table → tuple → individuals, and the whole table's sensitive values.
    type Tuples = BTreeMap<Vec<String>, i128>;
    let mut groups: BTreeMap<String, BTreeMap<String, Tuples>> = BTreeMap::new();
    let (mut whole, mut all) = (Tuples::new(), 0i128);
    for cells in printed(std::slice::from_ref(published)) {
        let [table, gid, age, sex, zip, salary, count] = cells.as_slice() else {
            panic!("{seed}: {cells:?}");
        };
        let count: i128 = count.parse().unwrap();
        let tuple = match table.as_str() {
            "sa" => {
                *whole.entry(vec![salary.clone()]).or_default() += count;
                all += count;
                vec![salary.clone()]
            }
            _ => vec![age.clone(), sex.clone(), zip.clone()],
        };
        let tables = groups.entry(gid.clone()).or_default();
        let tuples = tables.entry(table.clone()).or_default();
        *tuples.entry(tuple).or_default() += count;
    }
    let bound = |name: &str| {
        let bound = drawn.bounds.get(name)?;
        Some((
            i128::from(bound.numerator()),
            i128::from(bound.denominator()),
        ))
    };
    for (gid, tables) in &groups {
        let members: i128 = tables["sa"].values().sum();
        let sizes = tables.values().map(|tuples| tuples.values().sum::<i128>());
        assert!(sizes.clone().all(|size| size == members), "{seed} {gid}");
        let most = |tuples: &Tuples| tuples.values().copied().max().unwrap();
        for (table, tuples) in tables {
            let name = if table == "sa" { "beta" } else { "alpha" };
            if let Some((part, of)) = bound(name) {
                assert!(most(tuples) * of <= part * members, "{seed} {gid} {name}");
            }
        }
        if let Some((part, of)) = bound("gamma") {
            let product: i128 = tables.values().map(&most).product();
            let every = members.pow(tables.len() as u32);
            assert!(product * of <= part * every, "{seed} {gid} gamma");
        }
        if let Some((part, of)) = bound("delta") {
            for (value, everywhere) in &whole {
                let here = tables["sa"].get(value).copied().unwrap_or(0);
                let apart = (here * all - everywhere * members).abs();
                assert!(apart * of <= part * members * all, "{seed} {gid} delta");
            }
        }
    }
    assert_eq!(all, drawn.people.len() as i128, "{seed}");
}

/// Whether the bounds on shares allow all individuals as one group, which decides whether any groups satisfy them.
fn feasible(drawn: &Drawn, division: &[Vec<usize>]) -> bool {
    let original = batch(&drawn.people);
    let all = drawn.people.len();
    let holds = |name: &str, columns: &[usize]| {
        let most = counted(&original, columns, None)
            .into_values()
            .max()
            .unwrap();
        drawn
            .bounds
            .get(name)
            .is_none_or(|bound| bound.admits(most as usize, all))
    };
    let tables = division
        .iter()
        .map(|t| t.iter().map(|c| c + 1).collect::<Vec<_>>());
    holds("beta", &[4]) && tables.into_iter().all(|table| holds("alpha", &table))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_tables() {
    let (mut published_tables, mut grouped, mut refused) = ([0; 4], 0, 0);
    for seed in 0..TABLES {
        let drawn = draw(seed);
        let method = METHODS.iter().position(|m| *m == drawn.method).unwrap();
        let published = match release(&drawn).await {
            Ok(published) => published,
            Err(error) => {
                let message = error.strip_backtrace();
                assert!(message.contains("cannot be reached"), "{seed}: {message}");
                refused += 1;
                let relaxed = relaxed(&drawn, &message);
                let again = release(&relaxed).await;
                assert!(again.is_ok(), "{seed}: {message}: {:?}", again.err());
                continue;
            }
        };
        published_tables[method] += 1;
        let attained = verify_anatomy(&read(&published), &bounds(&drawn))
            .unwrap_or_else(|violation| panic!("{seed}: {violation}"));
        assert_eq!(attained.individuals, drawn.people.len() as u64, "{seed}");
        recount(seed, &drawn, &published);
        grouped += usize::from(attained.groups > 1);
        let division = division(&published);
        assert!(feasible(&drawn, &division), "{seed}");
        // Every table shows the original's tuples, as often as they occur.
        let original = batch(&drawn.people);
        let tables = tables(&published);
        for (table, columns) in division.iter().enumerate() {
            let shown = &tables[&format!("qi_{}", table + 1)];
            let here: Vec<usize> = columns.iter().map(|c| c + 2).collect();
            let there: Vec<usize> = columns.iter().map(|c| c + 1).collect();
            assert_eq!(
                counted(shown, &here, Some(6)),
                counted(&original, &there, None),
                "{seed}"
            );
        }
        let values = counted(&tables["sa"], &[5], Some(6));
        assert_eq!(values, counted(&original, &[4], None), "{seed}");
        // And in an order that says nothing else.
        for (name, table) in &tables {
            let columns: Vec<ArrayRef> = match name.as_str() {
                "sa" => vec![Arc::clone(table.column(5))],
                qi => {
                    let number: usize = qi.trim_start_matches("qi_").parse().unwrap();
                    let own = division[number - 1].iter();
                    own.map(|c| Arc::clone(table.column(2 + c))).collect()
                }
            };
            let view = AnatomyTable {
                gid: table.column(1),
                columns: &columns[..columns.len().min(1)],
                count: table.column(6),
            };
            // Sub-tables may have their columns in another order, so only the first is compared where there are several.
            if columns.len() < 2 {
                assert_eq!(rows_out_of_order(&view).unwrap(), 0, "{seed}");
            }
        }
    }
    assert!(
        published_tables.iter().all(|n| *n > 200),
        "{published_tables:?}"
    );
    assert!(grouped > 700 && refused > 300, "{grouped} {refused}");
}

/// The same with the values that the refusal says to work.
fn relaxed(drawn: &Drawn, message: &str) -> Drawn {
    let mut spec = drawn.spec.clone();
    for name in ["alpha", "beta", "gamma", "delta"] {
        let said = format!("smallest {name} that works is ");
        let mut best: Option<f64> = None;
        for (at, _) in message.match_indices(&said) {
            let number = message[at + said.len()..].split([';', ' ']).next().unwrap();
            let number: f64 = number.trim_end_matches([',', '.']).parse().unwrap();
            best = Some(best.map_or(number, |b: f64| b.max(number)));
        }
        if name == "gamma"
            && let Some((_, rest)) = message.split_once("with this gamma; ")
        {
            best = rest.split(' ').next().unwrap().parse().ok();
        }
        if let Some(best) = best {
            assert!(best > 0.0 && best <= 1.0, "{message}");
            spec = spec.with_parameter(name, best);
            // γ was not looked at before β, α and δ were possible.
            if name != "gamma" && drawn.bounds.contains_key("gamma") {
                spec = spec.with_parameter("gamma", "1");
            }
        }
    }
    Drawn {
        people: drawn.people.clone(),
        spec,
        method: drawn.method,
        bounds: BTreeMap::new(),
        config: drawn.config.clone(),
    }
}

/// People who can be divided into several blocks.
fn many(n: i32, seed: u64) -> Vec<Person> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let salaries = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut people: Vec<Person> = (0..n)
        .map(|id| {
            (
                id,
                Some(rng.random_range(0..80)),
                Some(["F", "M", "X"][rng.random_range(0..3)]),
                rng.random_range(0..30),
                salaries[rng.random_range(0..salaries.len())],
            )
        })
        .collect();
    people.shuffle(&mut rng);
    people
}

const BLOCKS: &str = "SELECT * FROM anatomize_slppa(t, id => id, qi => [age, sex, zip], sensitive => salary, \
    alpha => 0.9, beta => 0.4, gamma => 0.2, delta => 0.3, tables => 2, block => 3000, seed => 5)";

async fn with_table(people: &[Person], partitions: usize, batch_size: usize) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch_size);
    let ctx = context(config);
    let parts = people.chunks(1 + people.len() / partitions);
    let parts: Vec<_> = parts.map(|part| vec![batch(part)]).collect();
    let table = MemTable::try_new(parts[0][0].schema(), parts).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    ctx
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_batches_and_order_do_not_matter() {
    let people = many(9_000, 1);
    let without_id = BLOCKS.replace("id => id", "one_row_per_individual => true");
    let similar = BLOCKS.replace("seed => 5", "method => 'slppa_similar', seed => 5");
    for sql in [BLOCKS, &without_id, &similar] {
        let mut first: Option<Vec<Vec<String>>> = None;
        for (partitions, batch_size, shuffle) in
            [(1, 8192, 0), (2, 8192, 1), (7, 100, 2), (3, 977, 0)]
        {
            let mut people = people.clone();
            people.shuffle(&mut ChaCha8Rng::seed_from_u64(shuffle));
            let ctx = with_table(&people, partitions, batch_size).await;
            let mut found = rows(&ctx, sql).await.unwrap();
            found.sort();
            match &first {
                None => first = Some(found),
                Some(first) => assert!(&found == first, "{sql} {partitions} {batch_size}"),
            }
        }
        assert!(first.unwrap().len() > 10_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_a_release_share_no_group_and_satisfy_the_bounds_of_the_whole() {
    let people = many(9_000, 2);
    let ctx = with_table(&people, 3, 8192).await;
    let frame = ctx.sql(BLOCKS).await.unwrap();
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let published = concat_batches(&schema, &frame.collect().await.unwrap()).unwrap();
    let ratio = |n: u64| Ratio::try_new(n, 10).ok();
    let bounds = AnatomyBounds {
        alpha: ratio(9),
        beta: ratio(4),
        gamma: ratio(2),
        delta: ratio(3),
    };
    let attained = verify_anatomy(&read(&published), &bounds).unwrap();
    assert_eq!(attained.individuals, 9_000);
    assert!(attained.groups > 1_000, "{}", attained.groups);
    let plan = format!("EXPLAIN ANALYZE {BLOCKS}");
    let plan = rows(&ctx, &plan).await.unwrap().concat().concat();
    assert!(plan.contains("blocks=3"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let here = with_table(&many(400, 3), 2, 8192).await;
    let file = folder.path().join("people.parquet");
    let copy = format!("COPY t TO '{}'", file.display());
    rows(&here, &copy).await.unwrap();
    let ctx = context(SessionConfig::new().with_target_partitions(2));
    let path = file.display().to_string();
    ctx.register_parquet("t", path, Default::default())
        .await
        .unwrap();
    let release = "SELECT * FROM anatomize_slppa(t, id => id, qi => [age, sex, zip], sensitive => salary, \
        alpha => 0.9, beta => 0.4, gamma => 0.2, delta => 0.3, division => [[zip], [age, sex]], seed => 5)";
    let division = "SELECT * FROM anatomize_division(t, id => id, qi => [age, sex, zip], sensitive => salary, tables => 2)";
    for (sql, operator) in [(release, "AnonymizeExec"), (division, "DivisionExec")] {
        let expected = sorted(rows(&ctx, sql).await.unwrap());
        let plan = ctx.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        let codec = AnonymizeLogicalCodec::default();
        let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec).unwrap();
        let back =
            logical_plan_from_bytes_with_extension_codec(&bytes, &ctx.task_ctx(), &codec).unwrap();
        assert_eq!(
            plan.display_indent().to_string(),
            back.display_indent().to_string()
        );
        let other = SessionContext::new();
        register_all(&other).unwrap();
        let physical = other.state().create_physical_plan(&back).await.unwrap();
        let shown = displayable(physical.as_ref()).indent(false).to_string();
        assert!(shown.contains(operator), "{shown}");
        let codec = AnonymizePhysicalCodec::default();
        let bytes =
            physical_plan_to_bytes_with_extension_codec(Arc::clone(&physical), &codec).unwrap();
        let back =
            physical_plan_from_bytes_with_extension_codec(&bytes, &ctx.task_ctx(), &codec).unwrap();
        assert_eq!(shown, displayable(back.as_ref()).indent(false).to_string());
        for plan in [physical, back] {
            let batches = collect(plan, other.task_ctx()).await.unwrap();
            assert_eq!(sorted(printed(&batches)), expected);
        }
    }
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_passes_below_and_the_whole_is_what_filters_see() {
    let ctx = with_table(&many(300, 4), 2, 8192).await;
    let call = "anatomize_slppa(t, id => id, qi => [age, sex, zip], sensitive => salary, alpha => 1, beta => 0.3, \
        gamma => 1, delta => 0.5, tables => 2, seed => 8)";
    let whole = rows(&ctx, &format!("SELECT * FROM {call}")).await.unwrap();
    for predicate in [
        "subtable = 'sa'",
        "age > 40",
        "salary = 'a'",
        "count > 1",
        "gid % 2 = 0",
    ] {
        let direct = format!("SELECT * FROM {call} WHERE {predicate}");
        let below = format!(
            "SELECT * FROM (SELECT * FROM {call} ORDER BY gid LIMIT 1000000) WHERE {predicate}"
        );
        let (direct_rows, below) = (
            rows(&ctx, &direct).await.unwrap(),
            rows(&ctx, &below).await.unwrap(),
        );
        assert_eq!(sorted(direct_rows.clone()), sorted(below), "{predicate}");
        assert!(direct_rows.len() < whole.len());
        let plan = rows(&ctx, &format!("EXPLAIN {direct}"))
            .await
            .unwrap()
            .concat()
            .concat();
        let below = plan.split("AnonymizeExec").nth(1).unwrap();
        assert!(!below.contains("FilterExec"), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_changes_between_passes_is_refused() {
    let ctx = with_table(&many(500, 6), 2, 8192).await;
    let values = "(SELECT id, age, CAST(random() * 1000000000 AS BIGINT) AS salary FROM t)";
    let people = "(SELECT id, age, salary FROM t WHERE random() < 0.5)";
    for input in [values, people] {
        let sql = format!(
            "SELECT * FROM anatomize_slppa({input}, id => id, qi => [age], sensitive => salary, \
             alpha => 1, beta => 0.5, gamma => 1, delta => 1)"
        );
        let mut refused = 0;
        for _ in 0..5 {
            // By chance as many people may come the second time.
            if let Err(error) = rows(&ctx, &sql).await {
                let error = error.strip_backtrace();
                assert!(
                    error.contains("gave other rows when it was read again"),
                    "{error}"
                );
                refused += 1;
            }
        }
        assert!(refused >= 3, "{input}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_hold_no_cell() {
    let ctx = context(SessionConfig::new());
    let table = "CREATE TABLE canaries AS SELECT * FROM (VALUES \
        (7770001, 'qi-canary-1', 'sa-canary-1'), (7770002, 'qi-canary-1', 'sa-canary-1'), \
        (7770003, 'qi-canary-2', 'sa-canary-2')) AS v(who, city, disease)";
    rows(&ctx, table).await.unwrap();
    let call = |rest: &str| format!("SELECT * FROM anatomize_slppa({rest})");
    let roles = "canaries, id => who, qi => [city], sensitive => disease";
    let mut calls = vec![
        call(
            "(SELECT * FROM canaries UNION ALL SELECT * FROM canaries), id => who, qi => [city], sensitive => disease, \
              alpha => 1, beta => 1, gamma => 1, delta => 1",
        ),
        call(
            "(SELECT nullif(who, 7770001) AS who, city, disease FROM canaries), id => who, qi => [city], \
              sensitive => disease, alpha => 1, beta => 1, gamma => 1, delta => 1",
        ),
    ];
    for bounds in [
        "alpha => 1, beta => 0.5, gamma => 1, delta => 1",
        "alpha => 0.5, beta => 1, gamma => 1, delta => 1",
        "alpha => 1, beta => 1, gamma => 0.01, delta => 1",
        "alpha => 1, beta => 1, gamma => 1, delta => 0.5, block => 1",
    ] {
        calls.push(call(&format!("{roles}, {bounds}")));
    }
    for sql in calls {
        let message = rows(&ctx, &sql).await.unwrap_err().to_string();
        assert!(message.contains("anatomize_slppa"), "{message}");
        assert!(
            !message.contains("canary") && !message.contains("777"),
            "{message}"
        );
    }
    let explain = call(&format!(
        "{roles}, alpha => 1, beta => 1, gamma => 1, delta => 1, seed => 4242"
    ));
    let plan = rows(&ctx, &format!("EXPLAIN VERBOSE {explain}"))
        .await
        .unwrap()
        .concat()
        .concat();
    assert!(!plan.contains("canary") && !plan.contains("4242"), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_reserved_and_given_back() {
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_limit(2_000_000, 1.0)
        .build_arc()
        .unwrap();
    let ctx =
        SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(2), runtime);
    register_all(&ctx).unwrap();
    let people = many(40_000, 7);
    let batch = batch(&people);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    let error = rows(&ctx, &BLOCKS.replace("3000", "'all'"))
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("Resources exhausted") || message.contains("memory"),
        "{message}"
    );
    // Tasks of a failed query end a little later.
    for _ in 0..500 {
        if ctx.runtime_env().memory_pool.reserved() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!(
        "{} bytes are still reserved",
        ctx.runtime_env().memory_pool.reserved()
    );
}

/// Calls that must be refused: roles, bounds, sub-tables, what anatomization has no use for.
const REFUSED: &[&str] = &[
    "id => name, qi => [age, sex], sensitive => salary, beta => 0.5, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 0.5, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 0.5, gamma => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 0, beta => 0.5, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1.5, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 'half', gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 0.12345678901234, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => [salary, zip], alpha => 1, beta => 1, gamma => 1, delta => 1",
    "qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1",
    "id => name, sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], alpha => 1, beta => 1, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, tables => 3",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, tables => 0",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => [age, sex], tables => 2",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => 'age'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => [[age]]",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => [[age], [age, sex]]",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => [[agee], [sex]]",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, division => [[age, sex], []]",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, method => 'slpa'",
    "id => name, qi => [age, sex], sensitive => salary, beta => 1, gamma => 1, method => 'asn', tables => 2",
    "id => name, qi => [age, sex], sensitive => salary, beta => 0.5, alpha => 1, method => 'slicing'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, keep => [zip]",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, hierarchy => {age: 'bins(5)'}",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, domain => {age: [0, 99]}",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, algorithm => 'optimized'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, notation => 'text'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, contradictory => 'drop'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, normalize => true",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, null_sensitive => 'conservative'",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, block => 0",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 1, delta => 1, l => 3",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 0.2, beta => 0.2, gamma => 1, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 1, beta => 1, gamma => 0.01, delta => 1",
    "id => name, qi => [age, sex], sensitive => salary, alpha => 0.9, beta => 0.9, gamma => 1, delta => 1, block => 2",
];

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_argument_and_what_is_allowed() {
    let ctx = context(SessionConfig::new().with_target_partitions(1));
    let table = "CREATE TABLE p AS SELECT * FROM (VALUES ('a', 31, 'F', 1, 5), ('b', 32, 'M', 1, 5), ('c', 31, 'F', 2, 6), \
        ('d', 40, 'M', 2, 7)) AS v(name, age, sex, zip, salary)";
    rows(&ctx, table).await.unwrap();
    let mut report = String::new();
    for call in REFUSED {
        let sql = format!("SELECT * FROM anatomize_slppa(p, {call})");
        let message = match rows(&ctx, &sql).await {
            Ok(rows) => panic!("{call} gave {} rows", rows.len()),
            Err(error) => error.strip_backtrace(),
        };
        report.push_str(&format!("{call}\n    {message}\n"));
    }
    insta::assert_snapshot!("anatomy_messages", report);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_cut_into_its_tables() {
    let ctx = with_table(&many(300, 11), 2, 8192).await;
    let release = "CREATE TABLE published AS SELECT * FROM anatomize_slppa(t, id => id, qi => [age, sex, zip], \
        sensitive => salary, alpha => 1, beta => 0.3, gamma => 1, delta => 0.5, division => [[zip, age], [sex]])";
    rows(&ctx, release).await.unwrap();
    let published = ctx.table("published").await.unwrap();
    let mut names = vec![];
    for (name, table) in sub_tables(published).await.unwrap() {
        let fields = table.schema().fields().iter();
        names.push((
            name.clone(),
            fields.map(|f| f.name().clone()).collect::<Vec<_>>(),
        ));
        let rows_of_it = printed(&table.collect().await.unwrap());
        let there = format!("SELECT count(*) FROM published WHERE subtable = '{name}'");
        assert_eq!(
            rows(&ctx, &there).await.unwrap()[0][0],
            rows_of_it.len().to_string()
        );
        assert!(rows_of_it.iter().flatten().all(|cell| cell != "NULL"));
    }
    let named = |name: &str, columns: &[&str]| {
        (
            name.to_owned(),
            columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>(),
        )
    };
    let expected = [
        named("qi_1", &["gid", "age", "zip", "count"]),
        named("qi_2", &["gid", "sex", "count"]),
        named("sa", &["gid", "salary", "count"]),
    ];
    assert_eq!(names, expected);
    let other = ctx.sql("SELECT 1 AS subtable").await.unwrap();
    assert!(sub_tables(other).await.is_err());
}

/// Ages are published as they are, in the type that they have.
#[tokio::test(flavor = "multi_thread")]
async fn values_keep_their_types() {
    let ctx = with_table(&many(60, 8), 1, 8192).await;
    let sql = "SELECT * FROM anatomize_slppa(t, id => id, qi => [age, sex], sensitive => salary, alpha => 1, beta => 0.5, \
        gamma => 1, delta => 1, tables => 1)";
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let ages: usize = batches
        .iter()
        .map(|b| {
            b.column_by_name("age")
                .unwrap()
                .as_primitive::<Int32Type>()
                .iter()
                .flatten()
                .count()
        })
        .sum();
    assert!(ages > 0);
}
