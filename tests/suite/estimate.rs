//! Estimates against the truth: every table that a published one may stand for is tried.

use datafusion::prelude::SessionContext;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{rows, with_patients};

/// A condition over a (whole numbers), b (names), s (exact).
enum Condition {
    A(&'static str, i64),
    B(Vec<&'static str>),
    S(&'static str),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

use Condition::*;

const NAMES: [&str; 3] = ["x", "y", "z"];
const DISEASES: [&str; 2] = ["p", "q"];

impl Condition {
    fn random(rng: &mut ChaCha8Rng, depth: u32) -> Self {
        let part = |rng: &mut ChaCha8Rng| Box::new(Self::random(rng, depth - 1));
        match rng.random_range(0..if depth == 0 { 3 } else { 7 }) {
            0 => A(
                ["=", "<>", "<", "<=", ">", ">="][rng.random_range(0..6)],
                rng.random_range(0..4),
            ),
            1 => B((0..rng.random_range(1..3))
                .map(|_| NAMES[rng.random_range(0..3)])
                .collect()),
            2 => S(DISEASES[rng.random_range(0..2)]),
            3 => Not(part(rng)),
            4 | 5 => And(part(rng), part(rng)),
            _ => Or(part(rng), part(rng)),
        }
    }

    fn sql(&self) -> String {
        match self {
            A(op, at) => format!("a {op} {at}"),
            B(names) => format!("b IN ('{}')", names.join("', '")),
            S(name) => format!("s = '{name}'"),
            Not(inner) => format!("NOT ({})", inner.sql()),
            And(l, r) => format!("({} AND {})", l.sql(), r.sql()),
            Or(l, r) => format!("({} OR {})", l.sql(), r.sql()),
        }
    }

    fn holds(&self, a: i64, b: &str, s: &str) -> bool {
        match self {
            A("=", at) => a == *at,
            A("<>", at) => a != *at,
            A("<", at) => a < *at,
            A("<=", at) => a <= *at,
            A(">", at) => a > *at,
            A(_, at) => a >= *at,
            B(names) => names.contains(&b),
            S(name) => s == *name,
            Not(inner) => !inner.holds(a, b, s),
            And(l, r) => l.holds(a, b, s) && r.holds(a, b, s),
            Or(l, r) => l.holds(a, b, s) || r.holds(a, b, s),
        }
    }
}

/// One individual: an interval, a set, and the sensitive values of its records.
struct Individual {
    a: (i64, i64),
    b: Vec<&'static str>,
    s: Vec<&'static str>,
}

impl Individual {
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let lo = rng.random_range(0..4);
        let mut b: Vec<&str> = NAMES.into_iter().filter(|_| rng.random_bool(0.5)).collect();
        if b.is_empty() {
            b.push("y");
        }
        Self {
            a: (lo, rng.random_range(lo..4)),
            b,
            s: (0..rng.random_range(1..4))
                .map(|_| DISEASES[rng.random_range(0..2)])
                .collect(),
        }
    }

    /// All values it may have had.
    fn worlds(&self) -> Vec<(i64, &'static str)> {
        let values = |a| self.b.iter().map(move |b| (a, *b));
        (self.a.0..=self.a.1).flat_map(values).collect()
    }
}

async fn create(ctx: &SessionContext, individuals: &[Individual], text: bool) {
    let mut values = vec![];
    for (i, individual) in individuals.iter().enumerate() {
        let (lo, hi) = individual.a;
        for s in &individual.s {
            values.push(if text {
                format!(
                    "({i}, '[{lo}, {hi}]', '{{{}}}', '{s}')",
                    individual.b.join(", ")
                )
            } else {
                let b = individual.b.join("', '");
                format!("({i}, named_struct('lo', {lo}, 'hi', {hi}), ['{b}'], '{s}')")
            });
        }
    }
    let sql = format!(
        "CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES {}) AS v(individual, a, b, s)",
        values.join(", ")
    );
    ctx.sql(&sql).await.unwrap().collect().await.unwrap();
}

async fn estimate(ctx: &SessionContext, what: &str, condition: &str, text: bool) -> (f64, f64) {
    let qi = if text { ", qi => [a, b]" } else { "" };
    let query = format!("SELECT {what} FROM t WHERE {condition}").replace('\'', "''");
    let sql = format!("SELECT estimate, standard_error FROM estimate(t, '{query}'{qi})");
    let row = rows(ctx, &sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}\n{e}"))
        .remove(0);
    (row[0].parse().unwrap(), row[1].parse().unwrap())
}

/// Mean and variance over all tables that are consistent with what is published, each as likely as any other.
fn enumerate(individuals: &[Individual], condition: &Condition, distinct: bool) -> (f64, f64) {
    let mut counts = vec![0.0f64];
    for individual in individuals {
        let matches = |(a, b): (i64, &str)| {
            let records = individual
                .s
                .iter()
                .filter(|s| condition.holds(a, b, s))
                .count();
            if distinct { records.min(1) } else { records }
        };
        let own: Vec<f64> = individual
            .worlds()
            .into_iter()
            .map(|w| matches(w) as f64)
            .collect();
        counts = counts
            .iter()
            .flat_map(|c| own.iter().map(move |o| c + o))
            .collect();
    }
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    (
        mean,
        counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn estimates_are_expectations_over_all_consistent_tables() {
    let ctx = with_patients().await;
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for case in 0..60 {
        let individuals: Vec<Individual> = (0..rng.random_range(1..4))
            .map(|_| Individual::random(&mut rng))
            .collect();
        let text = case % 4 == 0;
        create(&ctx, &individuals, text).await;
        let condition = Condition::random(&mut rng, 3);
        let sql = condition.sql();

        let (mean, variance) = enumerate(&individuals, &condition, true);
        let (estimated, error) = estimate(&ctx, "count(DISTINCT individual)", &sql, text).await;
        assert!(
            (estimated - mean).abs() < 1e-9,
            "{sql}: {estimated}, not {mean}"
        );
        assert!((error * error - variance).abs() < 1e-9, "{sql}");

        let (mean, variance) = enumerate(&individuals, &condition, false);
        let (estimated, error) = estimate(&ctx, "count(*)", &sql, text).await;
        assert!(
            (estimated - mean).abs() < 1e-9,
            "{sql}: {estimated}, not {mean}"
        );
        // Records of one individual may go together: the error is never understated.
        assert!(error * error > variance - 1e-9, "{sql}");
    }
}

/// A table of people and what is published of it.
async fn released(people: u32) -> SessionContext {
    let ctx = with_patients().await;
    for sql in [
        format!("CREATE TABLE people AS SELECT * FROM sample_patients({people})"),
        "CREATE TABLE released AS SELECT * FROM anonymize_eir(people, id => patient_id, \
         qi => [birth_year, sex, race], sensitive => diagnosis, l => 3, seed => 1)"
            .to_owned(),
    ] {
        ctx.sql(&sql).await.unwrap().collect().await.unwrap();
    }
    ctx
}

const WORKLOAD: &str = "id => patient_id, qi => [birth_year, sex, race], sensitive => diagnosis, \
    queries => 8, dimensions => 2, selectivity => 0.2, seed => 3";

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_answers_as_each_query_alone() {
    let ctx = released(200).await;
    for (count, exact, estimated) in [
        ("records", "count(*)", "count(*)"),
        (
            "individuals",
            "count(DISTINCT patient_id)",
            "count(DISTINCT individual)",
        ),
    ] {
        let sql = format!(
            "SELECT predicate, prec, est FROM query_error(people, released, {WORKLOAD}, \
             count => '{count}', show_predicates => true)"
        );
        let workload = rows(&ctx, &sql).await.unwrap();
        assert_eq!(workload.len(), 8);
        for row in workload {
            let sql = format!("SELECT {exact} FROM people WHERE {}", row[0]);
            let truth: f64 = rows(&ctx, &sql).await.unwrap()[0][0].parse().unwrap();
            assert_eq!(row[1].parse::<f64>().unwrap(), truth, "{sql}");
            let query = format!("SELECT {estimated} FROM released WHERE {}", row[0]);
            let sql = format!(
                "SELECT estimate FROM estimate(released, '{}')",
                query.replace('\'', "''")
            );
            let alone: f64 = rows(&ctx, &sql).await.unwrap()[0][0].parse().unwrap();
            let est: f64 = row[2].parse().unwrap();
            assert!((est - alone).abs() < 1e-6, "{query}: {est}, not {alone}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_depends_on_its_seed_not_on_partitions() {
    let mut results = vec![];
    for partitions in [1, 3] {
        let ctx = released(100).await;
        ctx.sql(&format!(
            "SET datafusion.execution.target_partitions = {partitions}"
        ))
        .await
        .unwrap();
        ctx.sql("SET datafusion.execution.batch_size = 97")
            .await
            .unwrap();
        for count in ["records", "individuals"] {
            let sql = format!(
                "SELECT query, prec, round(est, 9) FROM query_error(\
                 (SELECT * FROM people ORDER BY visit_date LIMIT {}), released, {WORKLOAD}, count => '{count}') ORDER BY query",
                100_000 + partitions
            );
            results.push(rows(&ctx, &sql).await.unwrap());
        }
    }
    assert_eq!(results[0], results[2]);
    assert_eq!(results[1], results[3]);
    assert_ne!(results[0], results[1]);
}

/// Values of the original are shown only where somebody asks for them.
#[tokio::test(flavor = "multi_thread")]
async fn reports_and_plans_hold_no_values() {
    let ctx = with_patients().await;
    let sql = "SELECT * FROM query_error(patients, patients, qi => [gender, age, postcode], \
               categorical => [postcode], sensitive => disease, queries => 30)";
    let report = rows(&ctx, sql).await.unwrap().concat().join(" ");
    let plan = rows(&ctx, &format!("EXPLAIN {sql}"))
        .await
        .unwrap()
        .concat()
        .join(" ");
    for canary in ["Hypertension", "HIV", "10085", "10073"] {
        assert!(!report.contains(canary), "{canary} is in the report");
        assert!(!plan.contains(canary), "{canary} is in the plan");
    }
}
