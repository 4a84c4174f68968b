//! Thousands of small random tables under the p-sensitive models, checked by counting from the published rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;
use datafusion_anonymize::internals::algorithm::ALGORITHMS;
use datafusion_anonymize::{BlockSize, Levels, Notation, NullSensitive, Spec, anonymize};
use datafusion_anonymize::{Categories, Taxonomy};
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, count_of, printed};

/// Tables per run. A failure prints the seed of its table.
const TABLES: u64 = 6_000;

/// Values of both attributes: the category of a value is its number modulo the attribute's categories.
const CATEGORIES: [u32; 2] = [3, 2];

/// One record: who, age, sex, and a value of each attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    who: i32,
    age: i32,
    sex: &'static str,
    values: [Option<i32>; 2],
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    attributes: usize,
    k: usize,
    p: usize,
    categories: bool,
    /// In tenths.
    alpha: Option<usize>,
    /// In tenths.
    share: Option<usize>,
}

impl Wanted {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let kind = rng.random_range(0..3);
        let attributes = rng.random_range(1..=2);
        Self {
            attributes,
            k: rng.random_range(2..=4),
            // The second attribute has two categories.
            p: match kind == 1 && attributes == 2 {
                true => 2,
                false => rng.random_range(2..=3),
            },
            categories: kind > 0,
            alpha: (kind == 2).then(|| rng.random_range(1..=25)),
            share: (kind > 0 && rng.random_bool(0.3)).then(|| rng.random_range(4..=9)),
        }
    }

    fn into_spec(self, spec: Spec) -> Spec {
        let columns = &["disease", "drug"][..self.attributes];
        let mut spec = spec
            .with_sensitive(columns.iter().copied())
            .with_parameter("k", self.k)
            .with_parameter("p", self.p);
        let tenths = |n: usize| format!("{}.{}", n / 10, n % 10);
        if let Some(alpha) = self.alpha {
            spec = spec.with_parameter("alpha", tenths(alpha));
        }
        if let Some(share) = self.share {
            spec = spec.with_parameter("max_category_share", tenths(share));
        }
        if self.categories {
            for (column, m) in columns.iter().zip(CATEGORIES) {
                let values = |c: u32| (0..6).filter(move |v| v % m == c).map(|v| v.to_string());
                let lists = (0..m).map(|c| (c.to_string(), values(c).collect()));
                let lists: Vec<(String, Vec<String>)> = lists.collect();
                spec = spec.with_categories(*column, Categories::from_lists(&lists).unwrap());
            }
        }
        spec
    }

    /// Whether these records are a valid class, from the definitions.
    fn holds(&self, class: &[Record]) -> bool {
        let people: BTreeSet<i32> = class.iter().map(|r| r.who).collect();
        people.len() >= self.k.max(self.p)
            && (0..self.attributes).all(|a| self.holds_for(class, &people, a))
    }

    fn holds_for(&self, class: &[Record], people: &BTreeSet<i32>, attribute: usize) -> bool {
        let m = CATEGORIES[attribute] as i32;
        let of = |who: i32| {
            let own = class.iter().filter(move |r| r.who == who);
            own.map(move |r| r.values[attribute])
        };
        let values: BTreeSet<i32> = class.iter().filter_map(|r| r.values[attribute]).collect();
        let categories: BTreeSet<i32> = values.iter().map(|v| v % m).collect();
        let different = match self.categories && self.alpha.is_none() {
            true => categories.len(),
            false => values.len(),
        };
        // A missing value may be the most sensitive one.
        let weight = |who: &i32| of(*who).map(|v| v.map_or(0, |v| v % m)).min().unwrap();
        let total: i32 = people.iter().map(weight).sum();
        let heavy = |alpha| total as usize * 10 >= alpha * (m as usize - 1);
        let holders = |category: Option<i32>| {
            let has = |who: &&i32| of(**who).any(|v| v.map(|v| v % m) == category);
            people.iter().filter(has).count()
        };
        let most = (0..m).map(Some).chain([None]).map(holders).max().unwrap();
        different >= self.p
            && self.alpha.is_none_or(heavy)
            && self
                .share
                .is_none_or(|share| most * 10 <= share * people.len())
    }
}

fn records(rng: &mut ChaCha8Rng) -> Vec<Record> {
    let (ages, values) = (rng.random_range(1..12), rng.random_range(2..=6));
    let (many, nulls) = (rng.random_bool(0.6), rng.random_bool(0.2));
    let mut all = vec![];
    for who in 0..rng.random_range(1..=16) {
        let (age, sex) = (
            rng.random_range(0..ages),
            ["F", "M", "X"][rng.random_range(0..3)],
        );
        for _ in 0..if many { rng.random_range(1..=3) } else { 1 } {
            let value = |rng: &mut ChaCha8Rng| {
                let known = !nulls || rng.random_bool(0.8);
                known.then(|| rng.random_range(0..values))
            };
            let values = [value(rng), value(rng)];
            all.push(Record {
                who,
                age,
                sex,
                values,
            });
        }
    }
    all.shuffle(rng);
    all
}

fn batch(records: &[Record]) -> RecordBatch {
    let numbers = |f: &dyn Fn(&Record) -> Option<i32>| -> ArrayRef {
        Arc::new(records.iter().map(f).collect::<Int32Array>())
    };
    let sex: ArrayRef = Arc::new(StringArray::from_iter_values(records.iter().map(|r| r.sex)));
    RecordBatch::try_from_iter_with_nullable([
        ("id", numbers(&|r| Some(r.who)), true),
        ("who", numbers(&|r| Some(r.who)), true),
        ("age", numbers(&|r| Some(r.age)), true),
        ("sex", sex, true),
        ("disease", numbers(&|r| r.values[0]), true),
        ("drug", numbers(&|r| r.values[1]), true),
    ])
    .unwrap()
}

/// The records that are published if nobody is suppressed: each once, and nobody without a record whose values are known.
fn published(records: &[Record], attributes: usize) -> Vec<Record> {
    let known = |r: &Record| r.values[..attributes].iter().all(Option::is_some);
    let mut all: Vec<Record> = records.to_vec();
    all.iter_mut()
        .for_each(|r| r.values[attributes..].fill(None));
    all.sort();
    all.dedup();
    let people: BTreeSet<i32> = all.iter().filter(|r| known(r)).map(|r| r.who).collect();
    all.retain(|r| people.contains(&r.who));
    all
}

async fn check(seed: u64) -> bool {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (wanted, records) = (Wanted::draw(&mut rng), records(&mut rng));
    let algorithm = ALGORITHMS[rng.random_range(0..ALGORITHMS.len())];
    let all = algorithm.whole_table || rng.random_bool(0.6);
    let mut spec = wanted
        .into_spec(Spec::new("anonymize_p_sensitive"))
        .with_id("id")
        .with_qi(["age", "sex"])
        .with_keep(["who"])
        .with_null_sensitive(NullSensitive::Conservative)
        .with_notation(Notation::Text)
        .with_block(match all {
            true => BlockSize::All,
            false => BlockSize::Individuals(rng.random_range(2..=8)),
        })
        .with_algorithm(algorithm.name)
        .with_seed(seed);
    if rng.random_bool(0.6) {
        spec = spec.with_hierarchy("age", Levels::Bins(vec!["3".to_owned(), "6".to_owned()]));
        let rows = [["F", "F or M", "*"], ["M", "F or M", "*"], ["X", "X", "*"]];
        let taxonomy = Taxonomy::from_rows(&rows.map(|row| row.to_vec())).unwrap();
        spec = spec.with_hierarchy("sex", Levels::Tree(Arc::new(taxonomy)));
    }
    let config = SessionConfig::new()
        .with_target_partitions(rng.random_range(1..=3))
        .with_batch_size([1, 3, 8192][rng.random_range(0..3)]);
    let size = rng.random_range(1..=records.len());
    let parts: Vec<_> = records.chunks(size).map(|r| vec![batch(r)]).collect();
    let table = MemTable::try_new(parts[0][0].schema(), parts).unwrap();
    let frame = context(config).read_table(Arc::new(table)).unwrap();
    let expected = published(&records, wanted.attributes);
    match anonymize(frame, spec).unwrap().collect().await {
        Ok(batches) => {
            satisfies(seed, wanted, &expected, &printed(&batches));
            true
        }
        Err(error) => {
            let message = error.strip_backtrace();
            let refused = [
                "cannot be reached",
                "would suppress every individual",
                "no individual to publish",
            ];
            assert!(
                refused.iter().any(|r| message.contains(r)),
                "seed {seed}: {message}"
            );
            // Where more members do no harm, the whole table is the best class.
            let exact = all && wanted.share.is_none();
            assert!(
                !(exact && wanted.holds(&expected)),
                "seed {seed}: {message}"
            );
            false
        }
    }
}

/// Individual, age, sex, the attributes, who.
fn satisfies(seed: u64, wanted: Wanted, expected: &[Record], rows: &[Vec<String>]) {
    assert!(!rows.is_empty(), "seed {seed}: an empty release");
    let mut classes: BTreeMap<(&str, &str), Vec<Record>> = BTreeMap::new();
    let mut names: BTreeMap<i32, (&str, &str, &str)> = BTreeMap::new();
    for row in rows {
        let who: i32 = row[row.len() - 1].parse().unwrap();
        let shown = (row[0].as_str(), row[1].as_str(), row[2].as_str());
        let known = *names.entry(who).or_insert(shown);
        assert_eq!(
            known, shown,
            "seed {seed}: one pseudonym and one class each"
        );
        let own = expected.iter().find(|r| r.who == who).unwrap();
        let mut values = [None; 2];
        for (value, text) in values.iter_mut().zip(&row[3..row.len() - 1]) {
            *value = text.parse().ok();
        }
        let record = Record {
            values,
            ..own.clone()
        };
        assert!(expected.contains(&record), "seed {seed}: {record:?}");
        classes.entry((shown.1, shown.2)).or_default().push(record);
    }
    let whole = |who: i32| expected.iter().filter(|r| r.who == who).count();
    for who in names.keys() {
        let shown = rows.iter().filter(|r| r[r.len() - 1] == who.to_string());
        assert_eq!(
            shown.count(),
            whole(*who),
            "seed {seed}: records lost or doubled"
        );
    }
    for class in classes.values() {
        assert!(wanted.holds(class), "seed {seed}: {wanted:?} {class:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p_sensitive_random_tables() {
    let published = count_of(TABLES, check).await;
    assert!(
        published > TABLES / 4,
        "only {published} tables were published"
    );
}
