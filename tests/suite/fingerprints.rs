//! Thousands of small random tables under (k, l)-diversity: both constraints hold, and what is published is true.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use datafusion_anonymize::Taxonomy;
use datafusion_anonymize::internals::algorithm::ALGORITHMS;
use datafusion_anonymize::internals::check::{
    CombinationRequirement, FingerprintRequirement, ShownLabels, verify_combinations,
    verify_fingerprints,
};
use datafusion_anonymize::{BlockSize, FingerprintRows, Levels, Spec, anonymize};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, count_of};

/// Tables per run. A failure prints the seed of its table.
const TABLES: u64 = 4_000;

/// Label and parent.
const LABELS: [(&str, &str); 12] = [
    ("*", ""),
    ("A", "*"),
    ("B", "*"),
    ("C", "*"),
    ("a1", "A"),
    ("a2", "A"),
    ("b1", "B"),
    ("b2", "B"),
    ("c1", "C"),
    ("c2", "C"),
    ("c3", "C"),
    ("d", "*"),
];
const LEAVES: [&str; 8] = ["a1", "a2", "b1", "b2", "c1", "c2", "c3", "d"];

/// A label and all above it.
fn chain(label: &str) -> Vec<&'static str> {
    let mut chain = vec![];
    let mut at = label;
    while let Some((label, parent)) = LABELS.iter().find(|(l, _)| *l == at) {
        chain.push(*label);
        at = parent;
    }
    chain
}

struct Person {
    age: Option<i32>,
    sex: &'static str,
    diseases: Vec<&'static str>,
}

enum Required {
    Fingerprints(FingerprintRequirement),
    Combinations(CombinationRequirement),
}

struct Drawn {
    people: Vec<Person>,
    spec: Spec,
    requirement: Required,
    batches: Vec<RecordBatch>,
    config: SessionConfig,
}

fn draw(seed: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = &LEAVES[..rng.random_range(2..=8)];
    let (ages, nulls) = (rng.random_range(1..20), rng.random_bool(0.2));
    let people: Vec<Person> = (0..rng.random_range(1..=40))
        .map(|_| Person {
            age: (!nulls || rng.random_bool(0.8)).then(|| rng.random_range(0..ages)),
            sex: ["F", "M"][rng.random_range(0..2)],
            diseases: (0..rng.random_range(1..=4))
                .map(|_| values[rng.random_range(0..values.len())])
                .collect(),
        })
        .collect();
    let mut records: Vec<(usize, &Person, &str)> = vec![];
    for (i, person) in people.iter().enumerate() {
        records.extend(person.diseases.iter().map(|disease| (i, person, *disease)));
    }
    records.shuffle(&mut rng);
    let size = rng.random_range(1..=records.len());
    let batches = records.chunks(size).map(batch).collect();

    let count = |rng: &mut ChaCha8Rng| rng.random_range(2..=4);
    let (k, l) = (count(&mut rng), count(&mut rng));
    let value_l = rng.random_bool(0.3).then_some(2);
    let algorithm = ALGORITHMS[rng.random_range(0..ALGORITHMS.len())];
    let leaves = LEAVES.map(chain);
    let tree = Taxonomy::from_rows(&leaves).unwrap();
    let rows = [FingerprintRows::Records, FingerprintRows::Individuals];
    let baseline = rng.random_bool(0.2);
    let value_l = value_l.filter(|_| !baseline);
    let mut spec = Spec::new(if baseline {
        "anonymize_kkm"
    } else {
        "anonymize_kl"
    })
    .with_id("id")
    .with_qi(["age", "sex"])
    .with_sensitive(["disease"])
    .with_hierarchy("disease", Levels::Tree(Arc::new(tree)))
    .with_parameter("k", k)
    .with_fingerprint_rows(rows[rng.random_range(0..2)])
    .with_algorithm(algorithm.name)
    .with_seed(seed);
    if baseline {
        let delta = format!("0.{}", rng.random_range(1..10));
        spec = spec
            .with_parameter("m", l - 1)
            .with_parameter("delta", delta);
    } else {
        spec = spec.with_parameter("l", l);
    }
    if let Some(value_l) = value_l {
        spec = spec.with_parameter("value_l", value_l);
    }
    if value_l.is_none() && !algorithm.whole_table && rng.random_bool(0.5) {
        spec = spec.with_block(BlockSize::Individuals(rng.random_range(5..=30)));
    }
    if rng.random_bool(0.4) {
        spec = spec.with_hierarchy("age", Levels::Bins(vec!["3".to_owned(), "6".to_owned()]));
    }
    let config = SessionConfig::new()
        .with_target_partitions(rng.random_range(1..=3))
        .with_batch_size([1, 3, 8192][rng.random_range(0..3)]);
    Drawn {
        people,
        spec,
        requirement: match baseline {
            true => Required::Combinations(CombinationRequirement { k, m: l - 1 }),
            false => Required::Fingerprints(FingerprintRequirement { k, l, value_l }),
        },
        batches,
        config,
    }
}

fn batch(records: &[(usize, &Person, &str)]) -> RecordBatch {
    let text = |f: &dyn Fn(&(usize, &Person, &str)) -> String| -> ArrayRef {
        Arc::new(records.iter().map(|r| Some(f(r))).collect::<StringArray>())
    };
    let ages: Int32Array = records.iter().map(|r| r.1.age).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", text(&|r| format!("p{}", r.0)), true),
        ("age", Arc::new(ages), true),
        ("sex", text(&|r| r.1.sex.to_owned()), true),
        ("disease", text(&|r| r.2.to_owned()), true),
    ])
    .unwrap()
}

async fn release(drawn: &Drawn, spec: Spec) -> Result<RecordBatch, String> {
    let ctx = context(drawn.config.clone());
    let schema = drawn.batches[0].schema();
    let parts = drawn.batches.iter().map(|b| vec![b.clone()]).collect();
    let table = MemTable::try_new(schema, parts).unwrap();
    let frame = ctx.read_table(Arc::new(table)).unwrap();
    let frame = anonymize(frame, spec).unwrap();
    let published = Arc::new(frame.schema().as_arrow().clone());
    match frame.collect().await {
        Ok(batches) => Ok(concat_batches(&published, &batches).unwrap()),
        Err(error) => Err(error.strip_backtrace()),
    }
}

/// Whether anything was published.
async fn check(seed: u64) -> bool {
    let drawn = draw(seed);
    match release(&drawn, drawn.spec.clone()).await {
        Ok(rows) => {
            satisfies(seed, &drawn.requirement, &rows);
            tells_the_truth(seed, &drawn, &rows);
            true
        }
        Err(message) => {
            let expected = ["cannot be reached", "would suppress every individual"];
            assert!(
                expected.iter().any(|e| message.contains(e)),
                "seed {seed}: {message}"
            );
            advice_works(seed, &drawn, &message).await;
            false
        }
    }
}

/// The l that is said to work does, if it is all that is wrong.
async fn advice_works(seed: u64, drawn: &Drawn, message: &str) {
    let advised = message.split("the largest l that works is ").nth(1);
    let (Some(advised), false) = (
        advised,
        message.contains("value") || message.contains("block"),
    ) else {
        return;
    };
    let l: String = advised.chars().take_while(char::is_ascii_digit).collect();
    let spec = drawn.spec.clone().with_parameter("l", &l);
    let published = release(drawn, spec).await;
    assert!(
        published.is_ok(),
        "seed {seed}: l = {l} does not work: {published:?}"
    );
}

fn satisfies(seed: u64, requirement: &Required, rows: &RecordBatch) {
    let (labels, parents): (Vec<&str>, Vec<&'static str>) = LABELS.into_iter().unzip();
    let some = |p: &'static str| (!p.is_empty()).then_some(p);
    let labels: ArrayRef = Arc::new(StringArray::from(labels));
    let parents: ArrayRef = Arc::new(parents.into_iter().map(some).collect::<StringArray>());
    let qi = [Arc::clone(rows.column(1)), Arc::clone(rows.column(2))];
    let (individual, sensitive) = (rows.column(0), rows.column(3));
    let published =
        ShownLabels::from_columns(&qi, individual, sensitive, &labels, &parents).unwrap();
    let violation = match requirement {
        Required::Fingerprints(r) => verify_fingerprints(&published, r)
            .err()
            .map(|v| v.to_string()),
        Required::Combinations(r) => verify_combinations(&published, r)
            .err()
            .map(|v| v.to_string()),
    };
    assert_eq!(violation, None, "seed {seed}");
}

/// Everybody is published, and each can be one of those published.
fn tells_the_truth(seed: u64, drawn: &Drawn, rows: &RecordBatch) {
    let names = rows.column(0).as_string::<i32>();
    let mut published: Vec<(&str, usize, Vec<String>)> = vec![];
    for i in 0..rows.num_rows() {
        let labels: Vec<String> = match rows.column(3).as_list_opt::<i32>() {
            Some(lists) => {
                let list = lists.value(i);
                list.as_string::<i32>()
                    .iter()
                    .flatten()
                    .map(str::to_owned)
                    .collect()
            }
            None => vec![rows.column(3).as_string::<i32>().value(i).to_owned()],
        };
        match published
            .iter_mut()
            .find(|(name, ..)| *name == names.value(i))
        {
            Some((_, _, known)) => known.extend(labels),
            None => published.push((names.value(i), i, labels)),
        }
    }
    if let Required::Fingerprints(_) = drawn.requirement {
        assert_eq!(
            published.len(),
            drawn.people.len(),
            "seed {seed}: nobody is left out: {}",
            drawn.spec
        );
    }
    let may_be = |person: &Person, (_, row, labels): &(&str, usize, Vec<String>)| {
        let below = |disease: &str, label: &str| chain(disease).contains(&label);
        covers_age(rows.column(1), *row, person.age)
            && covers_sex(rows.column(2), *row, person.sex)
            && person
                .diseases
                .iter()
                .all(|d| labels.iter().any(|l| below(d, l)))
            && labels
                .iter()
                .all(|l| person.diseases.iter().any(|d| below(d, l)))
    };
    let candidates: Vec<Vec<usize>> = drawn
        .people
        .iter()
        .map(|person| {
            (0..published.len())
                .filter(|at| may_be(person, &published[*at]))
                .collect()
        })
        .collect();
    let mut taken: Vec<Option<usize>> = vec![None; published.len()];
    let found = (0..candidates.len()).filter(|person| {
        let mut seen = vec![false; published.len()];
        place(*person, &candidates, &mut taken, &mut seen)
    });
    assert_eq!(
        found.count(),
        published.len(),
        "seed {seed}: somebody published is nobody: {}",
        drawn.spec
    );
}

/// Gives a person one of those published, moving others if need be.
fn place(
    person: usize,
    candidates: &[Vec<usize>],
    taken: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for at in &candidates[person] {
        if std::mem::replace(&mut seen[*at], true) {
            continue;
        }
        let free = match taken[*at] {
            None => true,
            Some(other) => place(other, candidates, taken, seen),
        };
        if free {
            taken[*at] = Some(person);
            return true;
        }
    }
    false
}

fn covers_age(column: &ArrayRef, i: usize, age: Option<i32>) -> bool {
    if let Some(labels) = column.as_string_opt::<i32>() {
        return match (labels.is_valid(i).then(|| labels.value(i)), age) {
            (None, age) => age.is_none(),
            (Some("*"), _) => true,
            (Some(_), None) => false,
            (Some(label), Some(age)) => {
                let ends = label.trim_matches(['[', ']']).split(", ");
                let ends: Vec<i32> = ends.map(|end| end.parse().unwrap()).collect();
                (ends[0]..=ends[ends.len() - 1]).contains(&age)
            }
        };
    }
    let interval = column.as_struct();
    let end = |c: usize| {
        let values = interval.column(c).as_primitive::<Int32Type>();
        values.is_valid(i).then(|| values.value(i))
    };
    interval.is_null(i)
        || match (age, end(0), end(1)) {
            (Some(age), Some(lo), Some(hi)) => (lo..=hi).contains(&age),
            (age, lo, hi) => age.is_none() && lo.is_none() && hi.is_none(),
        }
}

fn covers_sex(column: &ArrayRef, i: usize, sex: &str) -> bool {
    let values = column.as_list::<i32>().value(i);
    values.as_string::<i32>().iter().any(|v| v == Some(sex))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_tables_are_diverse_and_true() {
    let published = count_of(TABLES, check).await;
    assert!(
        published > TABLES / 4,
        "only {published} tables were published"
    );
}

/// A hierarchy that a call makes is the one that `hierarchy` makes.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_makes_its_hierarchies() {
    let ctx = crate::engine::context(SessionConfig::new().with_target_partitions(2));
    let sql = "CREATE TABLE visits AS SELECT * FROM sample_patients(individuals => 300, seed => 1)";
    crate::engine::rows(&ctx, sql).await.unwrap();
    for (way, id) in [("even(3)", ""), ("co_occurrence(4)", ", id => patient_id")] {
        let view = format!(
            "CREATE OR REPLACE VIEW labels AS SELECT * FROM hierarchy(visits, column => ward, by => '{way}'{id})"
        );
        crate::engine::rows(&ctx, &view).await.unwrap();
        let mut seen = vec![];
        for arguments in [
            "visits, id => patient_id, qi => [sex], sensitive => ward, k => 3, l => 2, seed => 7, hierarchy => {ward: NAMED}",
            "visits, hierarchy => {ward: NAMED}, id => patient_id, qi => [sex], sensitive => ward, k => 3, l => 2, seed => 7",
        ] {
            for named in ["labels".to_owned(), format!("'{way}'")] {
                let call = arguments.replace("NAMED", &named);
                let sql = format!("SELECT * FROM anonymize_kl({call}) ORDER BY individual, ward");
                seen.push(crate::engine::rows(&ctx, &sql).await.unwrap());
            }
        }
        assert!(!seen[0].is_empty());
        // In any order of the arguments: by a view, and made in the call.
        assert!(seen[0] == seen[2] && seen[1] == seen[3], "{way}");
        // Values that occur together stand in another order in a table, by which ties are broken.
        assert!(seen[0] == seen[1] || !id.is_empty(), "{way}");
    }
    let kl = |roles: &str| {
        format!(
            "SELECT * FROM anonymize_kl(visits, {roles}, qi => [sex], sensitive => ward, k => 3, l => 2)"
        )
    };
    for (sql, said) in [
        (
            kl("one_row_per_individual => true, hierarchy => {ward: 'co_occurrence(3)'}"),
            "hierarchy of 'ward': hierarchy: id is missing: which values occur together is a question about individuals",
        ),
        (
            kl("id => patient_id, hierarchy => {ward: 'even(1)'}"),
            "hierarchy of 'ward': even takes the most children of a label, from 2 to 1000",
        ),
        (
            kl("id => patient_id, hierarchy => {wrd: 'even(3)'}"),
            "did you mean 'ward'?",
        ),
        (
            "SELECT * FROM audit(visits, id => patient_id, qi => [sex], sensitive => ward, hierarchy => {ward: 'even(3)'})".to_owned(),
            "even(3) makes a hierarchy from the input of a function that anonymizes; here, name a table or file that holds it",
        ),
    ] {
        let error = crate::engine::rows(&ctx, &sql).await.unwrap_err().strip_backtrace();
        assert!(error.contains(said), "{sql}: {error}");
    }
}
