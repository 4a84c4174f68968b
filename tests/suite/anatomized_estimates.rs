//! Estimates over anatomized tables (Yao 2021, Eq. 11) against the truth: every way to link the sub-tables of a group is
//! tried.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{context, rows};

/// An individual: (a, b) are in one sub-table, c in another, s is sensitive.
#[derive(Clone, Copy, PartialEq)]
struct Member {
    a: Option<i64>,
    b: &'static str,
    c: i64,
    s: &'static str,
}

impl Member {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        Self {
            a: rng.random_bool(0.9).then(|| rng.random_range(0..4)),
            b: ["x", "y", "z"].choose(rng).unwrap(),
            c: rng.random_range(0..3),
            s: ["p", "q", "r"].choose(rng).unwrap(),
        }
    }
}

/// Groups of individuals.
struct Anatomized(Vec<Vec<Member>>);

impl Anatomized {
    fn random(rng: &mut ChaCha8Rng, most_members: usize) -> Self {
        let group = |rng: &mut ChaCha8Rng| {
            let members = 0..rng.random_range(1..=most_members);
            members.map(|_| Member::random(rng)).collect()
        };
        let groups = 0..rng.random_range(1..=3);
        let mut groups: Vec<Vec<Member>> = groups.map(|_| group(rng)).collect();
        // A column without any value is none.
        groups[0][0].a.get_or_insert(1);
        Self(groups)
    }

    /// All tables that a group may stand for: each has every value as often as the sub-tables say.
    fn worlds(group: &[Member]) -> Vec<Vec<Member>> {
        let orders = orders(group.len());
        let mut worlds = vec![];
        for of_c in &orders {
            for of_s in &orders {
                let linked = |(at, member): (usize, &Member)| Member {
                    c: group[of_c[at]].c,
                    s: group[of_s[at]].s,
                    ..*member
                };
                worlds.push(group.iter().enumerate().map(linked).collect());
            }
        }
        worlds
    }

    /// The mean, the least and the most of a count over all tables.
    fn counts(&self, holds: impl Fn(&Member) -> bool) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for group in &self.0 {
            let count = |world: &Vec<Member>| world.iter().filter(|m| holds(m)).count();
            let counts: Vec<usize> = Self::worlds(group).iter().map(count).collect();
            sums[0] += counts.iter().sum::<usize>() as f64 / counts.len() as f64;
            sums[1] += *counts.iter().min().unwrap() as f64;
            sums[2] += *counts.iter().max().unwrap() as f64;
        }
        sums
    }
}

/// What is published of some tables: a row per group, sub-table and sub-tuple. The number of the table, t, is a value of
/// all its individuals, beside a and b.
fn published(tables: &[Anatomized]) -> RecordBatch {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    let groups = (0i64..)
        .zip(tables)
        .flat_map(|(t, table)| table.0.iter().map(move |group| (t, group)));
    for (gid, (t, group)) in (0u64..).zip(groups) {
        for m in group {
            for row in [
                ("qi_1", Some(t), m.a, Some(m.b), None, None),
                ("qi_2", None, None, None, Some(m.c), None),
                ("sa", None, None, None, None, Some(m.s)),
            ] {
                *counts.entry((gid, row)).or_default() += 1;
            }
        }
    }
    let rows = || counts.keys().map(|(_, row)| *row);
    let gids = counts.keys().map(|(gid, _)| *gid);
    let columns: [(&str, ArrayRef); 8] = [
        ("subtable", texts(rows().map(|r| Some(r.0)))),
        ("gid", Arc::new(UInt64Array::from_iter_values(gids))),
        ("t", integers(rows().map(|r| r.1))),
        ("a", integers(rows().map(|r| r.2))),
        ("b", texts(rows().map(|r| r.3))),
        ("c", integers(rows().map(|r| r.4))),
        ("s", texts(rows().map(|r| r.5))),
        (
            "count",
            Arc::new(UInt64Array::from_iter_values(counts.into_values())),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Individuals, and what each weighs.
fn batch(members: &[(Member, f64)]) -> RecordBatch {
    let all = || members.iter().map(|(member, _)| member);
    let weights = members.iter().map(|(_, weight)| *weight);
    let columns: [(&str, ArrayRef); 5] = [
        ("a", integers(all().map(|m| m.a))),
        ("b", texts(all().map(|m| Some(m.b)))),
        ("c", integers(all().map(|m| Some(m.c)))),
        ("s", texts(all().map(|m| Some(m.s)))),
        ("weight", Arc::new(Float64Array::from_iter_values(weights))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn texts(values: impl Iterator<Item = Option<&'static str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn integers(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// A session with some tables: what is published of them, the individuals as they are, and those of all tables that they
/// may stand for, who weigh as many together as a group has members.
fn session(tables: &[Anatomized]) -> SessionContext {
    let groups = || tables.iter().flat_map(|table| &table.0);
    let original: Vec<_> = groups().flatten().map(|m| (*m, 1.0)).collect();
    let mut worlds = vec![];
    for group in groups() {
        let of_group = Anatomized::worlds(group);
        let weight = 1.0 / of_group.len() as f64;
        worlds.extend(of_group.into_iter().flatten().map(|m| (m, weight)));
    }
    let ctx = context(SessionConfig::new().with_target_partitions(1));
    for (name, batch) in [
        ("published", published(tables)),
        ("original", batch(&original)),
        ("worlds", batch(&worlds)),
    ] {
        ctx.register_batch(name, batch).unwrap();
    }
    ctx
}

/// All orders of the first `n` numbers.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let Some(last) = n.checked_sub(1) else {
        return vec![vec![]];
    };
    let insert = |order: Vec<usize>| {
        (0..n).map(move |at| {
            let mut longer = order.clone();
            longer.insert(at, last);
            longer
        })
    };
    orders(last).into_iter().flat_map(insert).collect()
}

/// Conditions joined by AND, each about one column.
#[derive(Debug, Clone, Default)]
struct Condition {
    a: Option<(&'static str, i64)>,
    b: Option<&'static str>,
    c: Option<(&'static str, i64)>,
    s: Vec<&'static str>,
}

impl Condition {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let compared = |rng: &mut ChaCha8Rng| {
            let op = *["=", "<>", "<", ">="].choose(rng).unwrap();
            rng.random_bool(0.5).then(|| (op, rng.random_range(0..4)))
        };
        let mut s = vec!["p", "q", "r"];
        s.retain(|_| rng.random_bool(0.4));
        Self {
            a: compared(rng),
            b: rng.random_bool(0.5).then_some("x"),
            c: compared(rng),
            s,
        }
    }

    fn sql(&self) -> String {
        let mut parts = vec![];
        parts.extend(self.a.map(|(op, at)| format!("a {op} {at}")));
        parts.extend(self.b.map(|b| format!("b = ''{b}''")));
        parts.extend(self.c.map(|(op, at)| format!("c {op} {at}")));
        if !self.s.is_empty() {
            parts.push(format!("s IN (''{}'')", self.s.join("'', ''")));
        }
        match parts.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", parts.join(" AND ")),
        }
    }

    fn holds(&self, member: &Member) -> bool {
        let compared = |value: i64, (op, at): (&str, i64)| match op {
            "=" => value == at,
            "<>" => value != at,
            "<" => value < at,
            _ => value >= at,
        };
        let holds_a = |by| member.a.is_some_and(|a| compared(a, by));
        self.a.is_none_or(holds_a)
            && self.b.is_none_or(|b| member.b == b)
            && self.c.is_none_or(|by| compared(member.c, by))
            && (self.s.is_empty() || self.s.contains(&member.s))
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * a.abs().max(1.0)
}

async fn rows_of(ctx: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    rows(ctx, sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}\n{e}"))
}

/// The estimate of each value of a column.
async fn by(ctx: &SessionContext, column: &str, condition: &str) -> BTreeMap<String, f64> {
    let query = format!("SELECT {column}, count(*) FROM published {condition} GROUP BY {column}");
    let sql = format!("SELECT {column}, estimate FROM estimate(published, '{query}')");
    let rows = rows_of(ctx, &sql).await.into_iter();
    rows.map(|row| (row[0].clone(), row[1].parse().unwrap()))
        .collect()
}

/// `estimate` of the whole and by each column is the mean over all tables, between the least and the most.
async fn estimates(ctx: &SessionContext, tables: &[Anatomized], condition: &Condition) {
    let sql = condition.sql();
    let holds = |m: &Member| condition.holds(m);
    let counts: Vec<[f64; 3]> = tables.iter().map(|table| table.counts(holds)).collect();
    let [mean, least, most] = [0, 1, 2].map(|at| counts.iter().map(|c| c[at]).sum::<f64>());
    let query = format!("SELECT count(*) FROM published {sql}");
    let query = format!("SELECT estimate, low, high FROM estimate(published, '{query}')");
    let row = rows_of(ctx, &query).await.remove(0);
    let [estimate, low, high] = [0, 1, 2].map(|i| row[i].parse::<f64>().unwrap());
    assert!(near(estimate, mean), "{sql}: {estimate}, not {mean}");
    assert!(low > least - 1e-9, "{sql}: {low}, but {least}");
    assert!(high < most + 1e-9, "{sql}: {high}, but {most}");

    let estimated = by(ctx, "t", &sql).await;
    for (t, [mean, ..]) in counts.into_iter().enumerate() {
        let estimate = estimated.get(&t.to_string()).copied().unwrap_or(0.0);
        assert!(near(estimate, mean), "{sql}, {t}: {estimate}, not {mean}");
    }
    let estimated = by(ctx, "s", &sql).await;
    for s in ["p", "q", "r"] {
        let holds = |m: &Member| m.s == s && condition.holds(m);
        let mean: f64 = tables.iter().map(|table| table.counts(holds)[0]).sum();
        let estimate = estimated.get(s).copied().unwrap_or(0.0);
        assert!(near(estimate, mean), "{sql}, {s}: {estimate}, not {mean}");
    }
}

/// All queries of a workload have the mean over all tables as their estimate, and the count of the original.
async fn workload(ctx: &SessionContext, queries: usize, seed: u64) {
    let sql = format!(
        "SELECT predicate, prec, est FROM query_error(original, published, qi => [a, b, c], sensitive => s, \
         queries => {queries}, dimensions => {}, selectivity => 0.4, seed => {seed}, show_predicates => true)",
        1 + seed % 3
    );
    let queries = rows_of(ctx, &sql).await;
    let sums = queries.iter().enumerate().map(|(at, row)| {
        let predicate = &row[0];
        format!("coalesce(sum(weight) FILTER (WHERE {predicate}), 0.0) AS q{at}")
    });
    let sums: Vec<String> = sums.collect();
    for (table, answer) in [("original", 1), ("worlds", 2)] {
        let sql = format!("SELECT {} FROM {table}", sums.join(", "));
        let expected = rows_of(ctx, &sql).await.remove(0);
        for (query, expected) in queries.iter().zip(expected) {
            let expected: f64 = expected.parse().unwrap();
            let told: f64 = query[answer].parse().unwrap();
            assert!(near(told, expected), "{}: {told}, not {expected}", query[0]);
        }
    }
}

/// Thousands of small tables are asked at once, and told apart by their number.
#[tokio::test(flavor = "multi_thread")]
async fn estimates_are_means_over_all_links_of_sub_tables() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let tables = (0..3000).map(|_| Anatomized::random(&mut rng, 3));
    let tables: Vec<Anatomized> = tables.collect();
    let ctx = session(&tables);
    for seed in 0..12 {
        estimates(&ctx, &tables, &Condition::random(&mut rng)).await;
        workload(&ctx, 20, seed).await;
    }
}

/// One small table at a time: some have groups of one, or conditions that nobody satisfies.
#[tokio::test(flavor = "multi_thread")]
async fn estimates_of_single_tables() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for seed in 0..40 {
        let tables = [Anatomized::random(&mut rng, 4)];
        let ctx = session(&tables);
        estimates(&ctx, &tables, &Condition::random(&mut rng)).await;
        workload(&ctx, 5, seed).await;
    }
}
