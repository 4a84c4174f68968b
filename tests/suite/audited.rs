//! Every row of an audit in SQL, against the verifier and against counting by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use datafusion_anonymize::internals::check::{ShownClasses, diversity};
use datafusion_anonymize::internals::measure::{Measurer, Measures, Reference};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows};

/// Class, individual and value of a record, as it is published.
type Record = (i32, i32, Option<i32>);
/// The same before it was anonymized: the values of both quasi-identifiers, individual, value.
type Plain = (i32, String, i32, Option<i32>);

/// Tables that go through SQL; the measures themselves are compared with brute force in `src/measure/class.rs`.
const TABLES: u64 = 25;

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_in_sql_is_that_of_the_verifier() {
    for seed in 0..TABLES {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let records: Vec<Record> = (0..rng.random_range(1..=60))
            .map(|_| {
                let who = rng.random_range(0..20);
                let known = rng.random_bool(0.95);
                (who % 4, who, known.then(|| rng.random_range(0..7)))
            })
            .collect();
        let original = original(&records, &mut rng);
        let population: Vec<(i32, String)> = (0..rng.random_range(0..120))
            .map(|_| {
                (
                    rng.random_range(0..12),
                    format!("{:02}", rng.random_range(0..30)),
                )
            })
            .collect();
        let mut expected = expected(&records);
        expected.extend(expected_of_people(&records));
        expected.extend(expected_of_population(&records, &population));
        expected.extend(expected_of_original(&records, &original));

        let config = SessionConfig::new()
            .with_target_partitions(rng.random_range(1..=4))
            .with_batch_size(rng.random_range(1..=40));
        let ctx = context(config);
        let parts = rng.random_range(1..=3usize);
        let batches: Vec<Vec<RecordBatch>> = (0..parts)
            .map(|part| vec![batch(records.iter().skip(part).step_by(parts))])
            .collect();
        let table = MemTable::try_new(batches[0][0].schema(), batches).unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        let plain = MemTable::try_new(
            plain_batch(&original).schema(),
            vec![vec![plain_batch(&original)]],
        );
        ctx.register_table("o", Arc::new(plain.unwrap())).unwrap();
        let people = RecordBatch::try_from_iter([
            (
                "a",
                Arc::new(Int32Array::from_iter_values(population.iter().map(|p| p.0))) as ArrayRef,
            ),
            (
                "b",
                Arc::new(StringArray::from_iter_values(
                    population.iter().map(|p| &p.1),
                )),
            ),
        ])
        .unwrap();
        ctx.register_batch("people", people).unwrap();
        let sql = "SELECT measure, value FROM audit(t, id => who, qi => [a, b], sensitive => what, \
                   original => o, same_ids => true, population => people) WHERE section <> 'not protected'";
        let audited: BTreeMap<String, String> = rows(&ctx, sql)
            .await
            .unwrap()
            .into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect();
        for (measure, value) in &expected {
            let attained: f64 = audited[*measure].parse().unwrap();
            assert!(
                (attained - value).abs() < 1e-9,
                "seed {seed}: {measure} is {attained}, not {value}"
            );
        }
        // No row of the report is left out, but for an l whose search ended early.
        for measure in audited.keys().filter(|measure| *measure != "eir_l") {
            let known = expected.iter().any(|(name, _)| name == measure);
            assert!(known, "seed {seed}: {measure}");
        }
    }
}

fn batch<'a>(records: impl Iterator<Item = &'a Record>) -> RecordBatch {
    let records: Vec<_> = records.collect();
    let text = |f: &dyn Fn(i32) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            records.iter().map(|r| f(r.0)),
        ))
    };
    RecordBatch::try_from_iter_with_nullable([
        (
            "who",
            Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.1))) as ArrayRef,
            true,
        ),
        ("a", text(&|class| format!("[{}, 9]", class / 2)), true),
        ("b", text(&|class| format!("{}*", class % 2)), true),
        (
            "what",
            Arc::new(Int32Array::from_iter(records.iter().map(|r| r.2))),
            true,
        ),
    ])
    .unwrap()
}

/// What the verifier says of the whole table at once.
fn expected(records: &[Record]) -> Vec<(&'static str, f64)> {
    let class: ArrayRef = Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.0)));
    let who: ArrayRef = Arc::new(Int32Array::from_iter_values(records.iter().map(|r| r.1)));
    let what: ArrayRef = Arc::new(Int32Array::from_iter(records.iter().map(|r| r.2)));
    let published = ShownClasses::from_columns(&[class], &who, &what).unwrap();
    let mut values: Vec<i32> = records.iter().filter_map(|r| r.2).collect();
    values.sort_unstable();
    let counts: Vec<u64> = values
        .chunk_by(|a, b| a == b)
        .map(|c| c.len() as u64)
        .collect();
    values.dedup();
    let numbers: Vec<u32> = published
        .examples()
        .iter()
        .map(|&record| match records[record as usize].2 {
            Some(value) => values.binary_search(&value).unwrap() as u32,
            None => u32::MAX,
        })
        .collect();
    let reference = Reference::new(&counts, true);
    let mut measurer = Measurer::new(&published, &reference, Some(&numbers));
    let classes: Vec<Measures> = published.classes().map(|c| measurer.measure(&c)).collect();
    let least = |f: &dyn Fn(&Measures) -> f64| classes.iter().map(f).fold(f64::MAX, f64::min);
    let most = |f: &dyn Fn(&Measures) -> f64| classes.iter().map(f).fold(f64::MIN, f64::max);
    let total = |f: &dyn Fn(&Measures) -> usize| classes.iter().map(f).sum::<usize>() as f64;
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let mut expected = vec![
        ("records", records.len() as f64),
        ("individuals", total(&|m| m.individuals)),
        ("classes", classes.len() as f64),
        ("k", least(&|m| m.individuals as f64)),
        ("distinct_l", least(&|m| m.values as f64)),
        ("entropy_l", least(&|m| m.entropy_l)),
        ("recursive_l", least(&|m| m.recursive_l as f64)),
        ("t_equal", most(&|m| m.t_equal)),
        ("t_ordered", most(&|m| m.t_ordered.unwrap())),
        (
            "eir_beta",
            most(&|m| share(m.most_individuals_with_a_value, m.individuals)),
        ),
        (
            "ir_beta",
            most(&|m| share(m.most_records_with_a_value, m.records)),
        ),
        (
            "individuals_without_value",
            total(&|m| m.individuals_without_value),
        ),
        ("duplicate_records", total(&|m| m.duplicate_records)),
    ];
    if let Ok(Some(l)) = diversity(&published) {
        expected.push(("eir_l", l.size() as f64));
    }
    expected
}

/// An original of which the published table is nearly a generalization: some individuals are missing or do not fit, some
/// were dropped, some records differ.
fn original(records: &[Record], rng: &mut ChaCha8Rng) -> Vec<Plain> {
    let people: BTreeSet<i32> = records.iter().map(|r| r.1).collect();
    let fates: BTreeMap<i32, u8> = people
        .into_iter()
        .map(|who| (who, rng.random_range(0..10)))
        .collect();
    let mut original = vec![];
    for (class, who, what) in records {
        let (fate, what) = (
            fates[who],
            if rng.random_bool(0.1) { Some(9) } else { *what },
        );
        let age = if fate == 1 { 20 } else { class / 2 + who % 5 };
        if fate != 0 {
            original.push((age, format!("{}{}", class % 2, who % 10), *who, what));
        }
        if fate == 2 {
            original.push((age, "00".to_owned(), who + 100, what));
        }
    }
    original
}

fn plain_batch(original: &[Plain]) -> RecordBatch {
    let numbers = |f: &dyn Fn(&Plain) -> i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(original.iter().map(f)))
    };
    RecordBatch::try_from_iter_with_nullable([
        ("who", numbers(&|r| r.2), true),
        ("a", numbers(&|r| r.0), true),
        (
            "b",
            Arc::new(StringArray::from_iter_values(original.iter().map(|r| &r.1))) as ArrayRef,
            true,
        ),
        (
            "what",
            Arc::new(Int32Array::from_iter(original.iter().map(|r| r.3))),
            true,
        ),
    ])
    .unwrap()
}

/// The individuals of each class, with their records.
fn classes_of(records: &[Record]) -> BTreeMap<i32, BTreeMap<i32, Vec<Option<i32>>>> {
    let mut classes: BTreeMap<i32, BTreeMap<i32, Vec<Option<i32>>>> = BTreeMap::new();
    for (class, who, what) in records {
        let people = classes.entry(*class).or_default();
        people.entry(*who).or_default().push(*what);
    }
    classes
}

/// How many items are equal to no other.
fn unique<T: Ord + Clone>(items: &[T]) -> usize {
    let mut sorted = items.to_vec();
    sorted.sort();
    let groups = sorted.chunk_by(|a, b| a == b);
    groups.filter(|group| group.len() == 1).count()
}

/// What follows from who has which records.
fn expected_of_people(records: &[Record]) -> Vec<(&'static str, f64)> {
    let classes = classes_of(records);
    let mut sizes: Vec<usize> = classes.values().map(BTreeMap::len).collect();
    sizes.sort_unstable();
    let (least, most) = (sizes[0] as f64, sizes[sizes.len() - 1] as f64);
    let median = (sizes[(sizes.len() - 1) / 2] + sizes[sizes.len() / 2]) as f64 / 2.0;
    let everybody = sizes.iter().sum::<usize>() as f64;
    let above = |people: usize| {
        let small = sizes.iter().filter(|size| **size < people);
        small.sum::<usize>() as f64 / everybody
    };
    let set = |values: &Vec<Option<i32>>| values.iter().copied().collect::<BTreeSet<_>>();
    let sets: Vec<Vec<BTreeSet<Option<i32>>>> = classes
        .values()
        .map(|people| people.values().map(set).collect())
        .collect();
    let counts: Vec<Vec<usize>> = classes
        .values()
        .map(|people| people.values().map(Vec::len).collect())
        .collect();
    let in_classes: usize = sets.iter().map(|sets| unique(sets)).sum();
    let counts_in_classes: usize = counts.iter().map(|counts| unique(counts)).sum();
    let records_of = |counts: &Vec<usize>| counts.iter().sum::<usize>() as f64;
    let alpha = counts.iter().map(|counts| {
        let heaviest = counts.iter().copied().max().unwrap_or(0);
        heaviest as f64 / records_of(counts)
    });
    let alpha = alpha.fold(0.0, f64::max);
    let holders = sets.iter().map(|sets| {
        let held = |value: &Option<i32>| sets.iter().filter(|set| set.contains(value)).count();
        let most = sets.iter().flatten().map(held).max().unwrap_or(0);
        most as f64 / sets.len() as f64
    });
    let values = sets.iter().map(|sets| {
        let values: BTreeSet<_> = sets.iter().flatten().flatten().collect();
        values.len()
    });
    let values = values.min().unwrap_or(0) as f64;
    let average = classes.len() as f64 / everybody;
    vec![
        ("class_individuals_min", least),
        ("class_individuals_median", median),
        ("class_individuals_max", most),
        ("individuals_in_several_classes", 0.0),
        ("records_without_id", 0.0),
        (
            "k_records",
            counts.iter().map(records_of).fold(f64::MAX, f64::min),
        ),
        ("ir_l", values),
        ("p", values),
        ("ir_alpha", alpha),
        ("eir_alpha", alpha),
        ("largest_value_share", holders.fold(0.0, f64::max)),
        (
            "unique_fingerprints_in_class",
            in_classes as f64 / everybody,
        ),
        (
            "unique_fingerprints",
            unique(&sets.concat()) as f64 / everybody,
        ),
        ("fingerprint_k", rarest(&sets.concat())),
        (
            "fewest_in_common",
            sets.iter()
                .map(|sets| rarest(sets))
                .fold(f64::MAX, f64::min),
        ),
        (
            "unique_record_counts_in_class",
            counts_in_classes as f64 / everybody,
        ),
        ("prosecutor_max", 1.0 / least),
        ("prosecutor_average", average),
        ("marketer", average),
        ("share_above_0.33", above(3)),
        ("share_above_0.2", above(5)),
        ("share_above_0.09", above(11)),
        ("share_above_0.05", above(20)),
    ]
}

/// How many have the item that fewest have.
fn rarest<T: PartialEq>(items: &[T]) -> f64 {
    let holders = |item: &T| items.iter().filter(|other| *other == item).count();
    items.iter().map(holders).min().unwrap_or(0) as f64
}

/// Whether plain values fit what a class publishes.
fn fits(class: i32, a: i32, b: &str) -> bool {
    (class / 2..=9).contains(&a) && b.starts_with(if class % 2 == 0 { '0' } else { '1' })
}

fn expected_of_population(
    records: &[Record],
    population: &[(i32, String)],
) -> Vec<(&'static str, f64)> {
    let classes = classes_of(records);
    let everybody: usize = classes.values().map(BTreeMap::len).sum();
    let (mut found, mut most, mut larger) = (0.0, 0.0f64, 0);
    for (class, people) in &classes {
        let fitting = population
            .iter()
            .filter(|(a, b)| fits(*class, *a, b))
            .count();
        larger += usize::from(fitting < people.len());
        let among = fitting.max(people.len()) as f64;
        found += people.len() as f64 / among;
        most = most.max(1.0 / among);
    }
    let average = found / everybody as f64;
    let mut expected = vec![
        ("journalist_max", most),
        ("journalist_average", average),
        ("marketer_population", average),
    ];
    if larger > 0 {
        expected.push(("classes_larger_than_population", larger as f64));
    }
    expected
}

fn expected_of_original(records: &[Record], original: &[Plain]) -> Vec<(&'static str, f64)> {
    let class_of: BTreeMap<i32, i32> = records.iter().map(|r| (r.1, r.0)).collect();
    let before: BTreeMap<i32, &Plain> = original.iter().map(|r| (r.2, r)).collect();
    let dropped = before.keys().filter(|who| !class_of.contains_key(who));
    let added = class_of.keys().filter(|who| !before.contains_key(who));
    let untrue = class_of.iter().filter(|(who, class)| {
        let plain = before.get(who);
        !plain.is_some_and(|(a, b, ..)| fits(**class, *a, b))
    });
    let published: BTreeSet<_> = records.iter().map(|r| (r.1, r.2)).collect();
    let there: BTreeSet<_> = original.iter().map(|r| (r.2, r.3)).collect();
    let lost = there.difference(&published);
    let lost = lost.filter(|(who, _)| class_of.contains_key(who));
    vec![
        ("original_individuals", before.len() as f64),
        ("dropped_individuals", dropped.count() as f64),
        ("added_individuals", added.count() as f64),
        ("untrue_individuals", untrue.count() as f64),
        (
            "invented_records",
            published.difference(&there).count() as f64,
        ),
        ("lost_records", lost.count() as f64),
    ]
}
