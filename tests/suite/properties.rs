//! Thousands of small random tables: whatever comes out satisfies the model and tells the truth.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use datafusion_anonymize::Taxonomy;
use datafusion_anonymize::internals::algorithm::ALGORITHMS;
use datafusion_anonymize::internals::check::{
    Answer, ClassRequirement, ShownClasses, eir_diverse, verify,
};
use datafusion_anonymize::internals::model::ParameterKind;
use datafusion_anonymize::{BlockSize, Levels, Spec, anonymize};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, printed};

/// Tables per run. A failure prints the seed of its table.
const TABLES: u64 = 20_000;

#[derive(Debug, Clone)]
struct Person {
    age: Option<i32>,
    sex: Option<&'static str>,
    diseases: Vec<&'static str>,
}

/// The whole table of one seed, with everything else that was drawn.
struct Drawn {
    people: Vec<Person>,
    spec: Spec,
    requirement: ClassRequirement,
    all: bool,
    /// Whether every record is an individual, and there are no ids.
    alone: bool,
    config: SessionConfig,
    batches: Vec<RecordBatch>,
}

fn draw(seed: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values = &["a", "b", "c", "d", "e", "f"][..rng.random_range(2..=6)];
    let (ages, nulls) = (rng.random_range(1..12), rng.random_bool(0.3));
    let alone = rng.random_bool(0.2);
    let most = if alone { 1 } else { 4 };
    let people: Vec<Person> = (0..rng.random_range(1..=14))
        .map(|_| {
            let mut diseases: Vec<_> = (0..rng.random_range(1..=most))
                .map(|_| values[rng.random_range(0..values.len())])
                .collect();
            diseases.sort_unstable();
            diseases.dedup();
            let known = |rng: &mut ChaCha8Rng| !nulls || rng.random_bool(0.8);
            Person {
                age: known(&mut rng).then(|| rng.random_range(0..ages)),
                sex: known(&mut rng).then(|| ["F", "M", "X"][rng.random_range(0..3)]),
                diseases,
            }
        })
        .collect();

    let mut records: Vec<Record> = vec![];
    for (i, person) in people.iter().enumerate() {
        for disease in &person.diseases {
            // Exact duplicates are published once.
            for _ in 0..rng.random_range(1..=if alone { 1 } else { 2 }) {
                records.push((i, person, disease));
            }
        }
    }
    records.shuffle(&mut rng);
    let size = rng.random_range(1..=records.len());
    let batches = records.chunks(size).map(batch).collect();

    let (function, model, parameters) = model(&mut rng);
    let given = |name: &str| {
        parameters
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
    };
    let requirement = ClassRequirement::named(model, given).unwrap();
    let all = rng.random_bool(0.5);
    let block = if all {
        BlockSize::All
    } else {
        BlockSize::Individuals(rng.random_range(1..=8))
    };
    let algorithm = ALGORITHMS[rng.random_range(0..ALGORITHMS.len())];
    let all = all || algorithm.whole_table;
    let block = if all { BlockSize::All } else { block };
    let mut spec = Spec::new(function)
        .with_qi(["age", "sex"])
        .with_sensitive(["disease"])
        .with_keep(["who"])
        .with_block(block)
        .with_algorithm(algorithm.name)
        .with_seed(seed);
    spec = if alone {
        spec.with_one_row_per_individual(true)
    } else {
        spec.with_id("id")
    };
    for (name, value) in &parameters {
        spec = spec.with_parameter(*name, value);
    }
    for option in algorithm.options {
        if let (true, ParameterKind::Integer { min, max: 1 }) = (rng.random_bool(0.5), option.kind)
        {
            spec = spec.with_parameter(option.name, rng.random_range(min..=1));
        }
    }
    if rng.random_bool(0.4) {
        spec = spec.with_hierarchy("age", Levels::Bins(vec!["3".to_owned(), "6".to_owned()]));
    }
    if rng.random_bool(0.4) {
        let rows = [["F", "F or M", "*"], ["M", "F or M", "*"], ["X", "X", "*"]];
        let taxonomy = Taxonomy::from_rows(&rows.map(|row| row.to_vec())).unwrap();
        spec = spec.with_hierarchy("sex", Levels::Tree(Arc::new(taxonomy)));
    }
    let config = SessionConfig::new()
        .with_target_partitions(rng.random_range(1..=3))
        .with_batch_size([1, 3, 8192][rng.random_range(0..3)]);
    Drawn {
        people,
        spec,
        requirement,
        all,
        alone,
        config,
        batches,
    }
}

/// A model with parameters: EIR l-diversity every other time.
fn model(rng: &mut ChaCha8Rng) -> (&'static str, &'static str, Vec<(&'static str, String)>) {
    let count = |rng: &mut ChaCha8Rng| rng.random_range(2..=4).to_string();
    let share = |rng: &mut ChaCha8Rng| format!("0.{}", rng.random_range(25..=90));
    match rng.random_range(0..8) {
        0 => ("anonymize_ir", "ir_k_anonymity", vec![("k", count(rng))]),
        1 => (
            "anonymize_ir",
            "ir_kl_anonymity",
            vec![("k", count(rng)), ("l", count(rng))],
        ),
        2 => (
            "anonymize_ir",
            "ir_alpha_beta_anonymity",
            vec![("alpha", share(rng)), ("beta", share(rng))],
        ),
        3 => (
            "anonymize_eir",
            "eir_alpha_beta_anonymity",
            vec![("alpha", share(rng)), ("beta", share(rng))],
        ),
        _ => ("anonymize_eir", "eir_l_diversity", vec![("l", count(rng))]),
    }
}

/// Who, their values, and one disease.
type Record<'a> = (usize, &'a Person, &'a str);

fn batch(records: &[Record]) -> RecordBatch {
    let text = |f: &dyn Fn(&Record) -> Option<String>| -> ArrayRef {
        Arc::new(records.iter().map(f).collect::<StringArray>())
    };
    let ages: Int32Array = records.iter().map(|r| r.1.age).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("id", text(&|r| Some(format!("p{}", r.0))), true),
        (
            "who",
            Arc::new(Int32Array::from_iter_values(
                records.iter().map(|r| r.0 as i32),
            )),
            true,
        ),
        ("age", Arc::new(ages), true),
        ("sex", text(&|r| r.1.sex.map(str::to_owned)), true),
        ("disease", text(&|r| Some(r.2.to_owned())), true),
    ])
    .unwrap()
}

async fn check(seed: u64) {
    let drawn = draw(seed);
    let ctx = context(drawn.config.clone());
    let schema = drawn.batches[0].schema();
    let parts = drawn.batches.iter().map(|b| vec![b.clone()]).collect();
    let table = MemTable::try_new(Arc::clone(&schema), parts).unwrap();
    let frame = ctx.read_table(Arc::new(table)).unwrap();
    let frame = anonymize(frame, drawn.spec.clone()).unwrap();
    let published = Arc::new(frame.schema().as_arrow().clone());
    match frame.collect().await {
        Ok(batches) => {
            let rows = concat_batches(&published, &batches).unwrap();
            assert!(rows.num_rows() > 0, "seed {seed}: an empty release");
            satisfies(seed, &drawn, &rows);
            if drawn.alone {
                is_classical(seed, &drawn.requirement, &rows);
            }
            tells_the_truth(seed, &drawn, &rows);
        }
        Err(error) => {
            let message = error.strip_backtrace();
            let expected = ["cannot be reached", "would suppress every individual"];
            assert!(
                expected.iter().any(|e| message.contains(e)),
                "seed {seed}: {message}"
            );
            if let (true, ClassRequirement::EirL { l }) = (drawn.all, drawn.requirement) {
                assert!(
                    !feasible(&drawn, l),
                    "seed {seed}: refused, though the whole table is a class"
                );
            }
        }
    }
}

fn satisfies(seed: u64, drawn: &Drawn, rows: &RecordBatch) {
    let qi = [Arc::clone(rows.column(1)), Arc::clone(rows.column(2))];
    let release = ShownClasses::from_columns(&qi, rows.column(0), rows.column(3)).unwrap();
    verify(&release, &drawn.requirement).unwrap_or_else(|v| panic!("seed {seed}: {v}"));
    let ClassRequirement::EirL { l } = drawn.requirement else {
        return;
    };
    for class in release.classes() {
        let fingerprints = class.fingerprints();
        let fewest = fewest_in_a_reasoning_set(&fingerprints, 0, &mut vec![]);
        assert!(
            fewest >= l,
            "seed {seed}: a reasoning set shows {fewest} values"
        );
    }
}

/// With one row each, the models are the classical ones of rows: k-anonymity, with distinct l-diversity, and
/// (α, k)-anonymity, whose α is our β and whose k is 1 / our α.
fn is_classical(seed: u64, requirement: &ClassRequirement, rows: &RecordBatch) {
    let mut classes: BTreeMap<Vec<String>, BTreeMap<String, usize>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in printed(std::slice::from_ref(rows)) {
        assert!(
            seen.insert(row[0].clone()),
            "seed {seed}: an individual has two rows"
        );
        let class = classes.entry(row[1..3].to_vec()).or_default();
        *class.entry(row[3].clone()).or_default() += 1;
    }
    for values in classes.values() {
        let (size, distinct) = (values.values().sum::<usize>(), values.len());
        let most = values.values().copied().max().unwrap_or(0);
        let holds = match requirement {
            ClassRequirement::IrK { k } => size >= *k,
            ClassRequirement::IrKL { k, l } => size >= *k && distinct >= *l,
            ClassRequirement::EirL { l } => distinct >= *l,
            ClassRequirement::IrAlphaBeta { alpha, beta }
            | ClassRequirement::EirAlphaBeta { alpha, beta } => {
                alpha.admits(1, size) && beta.admits(most, size)
            }
            other => panic!("seed {seed}: {other} has no classical form"),
        };
        assert!(
            holds,
            "seed {seed}: {requirement} of {size} rows with {distinct} values"
        );
    }
}

/// The fewest distinct values in any choice of one value per individual, by trying all of them.
fn fewest_in_a_reasoning_set(people: &[&[u32]], from: usize, chosen: &mut Vec<u32>) -> usize {
    let Some(values) = people.get(from) else {
        return chosen.iter().collect::<BTreeSet<_>>().len();
    };
    let mut fewest = usize::MAX;
    for value in *values {
        chosen.push(*value);
        fewest = fewest.min(fewest_in_a_reasoning_set(people, from + 1, chosen));
        chosen.pop();
    }
    fewest
}

fn tells_the_truth(seed: u64, drawn: &Drawn, rows: &RecordBatch) {
    let names = rows.column(0).as_string::<i32>();
    let who = rows.column(4).as_primitive::<Int32Type>();
    let disease = rows.column(3).as_string::<i32>();
    let mut pseudonyms: HashMap<i32, &str> = HashMap::new();
    let mut diseases: BTreeMap<i32, Vec<&str>> = BTreeMap::new();
    for i in 0..rows.num_rows() {
        let name = *pseudonyms.entry(who.value(i)).or_insert(names.value(i));
        assert_eq!(
            name,
            names.value(i),
            "seed {seed}: two pseudonyms for one individual"
        );
        diseases
            .entry(who.value(i))
            .or_default()
            .push(disease.value(i));
        let person = &drawn.people[who.value(i) as usize];
        assert!(
            covers_age(rows.column(1), i, person.age),
            "seed {seed}: age"
        );
        assert!(
            covers_sex(rows.column(2), i, person.sex),
            "seed {seed}: sex"
        );
    }
    let distinct: BTreeSet<_> = pseudonyms.values().collect();
    assert_eq!(
        distinct.len(),
        pseudonyms.len(),
        "seed {seed}: one pseudonym for two individuals"
    );
    for (who, mut published) in diseases {
        published.sort_unstable();
        assert_eq!(
            published, drawn.people[who as usize].diseases,
            "seed {seed}: records lost or doubled"
        );
    }
}

fn covers_age(column: &ArrayRef, i: usize, age: Option<i32>) -> bool {
    if let Some(labels) = column.as_string_opt::<i32>() {
        let label = labels.is_valid(i).then(|| labels.value(i));
        return match (label, age) {
            (None, age) => age.is_none(),
            (Some("*"), _) => true,
            (Some(label), Some(age)) => {
                let ends = label.trim_matches(['[', ']']).split(", ");
                let ends: Vec<i32> = ends.map(|end| end.parse().unwrap()).collect();
                (ends[0]..=ends[ends.len() - 1]).contains(&age)
            }
            (Some(_), None) => false,
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

fn covers_sex(column: &ArrayRef, i: usize, sex: Option<&str>) -> bool {
    if let Some(labels) = column.as_string_opt::<i32>() {
        let label = labels.is_valid(i).then(|| labels.value(i));
        return match (label, sex) {
            (None, sex) => sex.is_none(),
            (Some("*"), _) => true,
            (Some("F or M"), Some(sex)) => sex != "X",
            (label, sex) => label == sex,
        };
    }
    let list = column.as_list::<i32>();
    list.is_null(i) || {
        let values = list.value(i);
        let values = values.as_string::<i32>();
        values.iter().any(|v| v == sex) && (sex.is_some() || values.len() == 1)
    }
}

/// Whether the whole table is EIR l-diverse, which for this model is whether any class can be.
fn feasible(drawn: &Drawn, l: usize) -> bool {
    let codes = |p: &Person| {
        p.diseases
            .iter()
            .map(|d| u32::from(d.as_bytes()[0]))
            .collect::<Vec<_>>()
    };
    let people: Vec<Vec<u32>> = drawn.people.iter().map(codes).collect();
    let people: Vec<&[u32]> = people.iter().map(Vec::as_slice).collect();
    eir_diverse(&people, l) == Answer::Holds
}

#[tokio::test(flavor = "multi_thread")]
async fn random_tables() {
    let workers = 2;
    let tasks = (0..workers).map(|worker| {
        tokio::spawn(async move {
            for seed in (0..TABLES).filter(|s| s % workers == worker) {
                check(seed).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}
