//! EIR l-diversity without a session: the decision about a class, and forming classes naively and by the index.
//!
//! `cargo bench --bench eir`

#![allow(clippy::expect_used, missing_docs)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use datafusion_anonymize::internals::algorithm::{Algorithm, Cancel, Danonyir};
use datafusion_anonymize::internals::model::{self, Member, Model, Parameters};
use datafusion_anonymize::internals::table::{
    Block, Categorical, Fingerprints, Numeric, QuasiIdentifier,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Distinct values of the quasi-identifiers, the first three numeric.
const DISTINCT: [u32; 8] = [12, 82, 9, 2, 6, 6, 5, 2];
const FULL: u64 = 35_640;

/// Individuals with about nine sensitive values each, heavy-tailed, of 619 values, Zipf-like.
fn individuals(n: u32) -> Block {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut fingerprints = Fingerprints::new();
    let mut records = vec![];
    for _ in 0..n {
        let count = 1 + (rng.random::<f64>().powf(-0.9) * 2.0).min(60.0) as usize;
        // Density proportional to 1 / (rank + 20): the most frequent value is held by about a quarter.
        let value =
            |rng: &mut ChaCha8Rng| (20.0 * ((639.0f64 / 20.0).powf(rng.random())) - 20.0) as u32;
        let mut codes: Vec<u32> = (0..count).map(|_| value(&mut rng)).collect();
        codes.sort_unstable();
        codes.dedup();
        records.push(codes.len() as u32);
        fingerprints.push(&mut codes);
    }
    let columns = DISTINCT.iter().enumerate().map(|(c, distinct)| {
        let codes: Vec<u32> = (0..n).map(|_| rng.random_range(0..*distinct)).collect();
        let step = FULL / u64::from(distinct - 1);
        if c < 3 {
            QuasiIdentifier::Numeric(Numeric {
                lo: codes.clone(),
                hi: codes,
                step,
            })
        } else {
            QuasiIdentifier::Categorical(Categorical {
                offsets: (0..=n).collect(),
                codes,
                cardinality: *distinct,
                step,
            })
        }
    });
    let columns = columns.collect();
    Block::new(columns, fingerprints, records, FULL)
}

fn eir(l: u64) -> Box<dyn Model> {
    let entry = model::find("eir_l_diversity").expect("the model is in the list");
    let mut parameters = Parameters::default();
    parameters.set("l", model::Value::Integer(l));
    (entry.build)(&parameters).expect("l is valid")
}

/// One individual more in a class that grows until it is diverse: what DAnonyIR asks at every step.
fn decision(c: &mut Criterion) {
    let block = individuals(20_000);
    let mut group = c.benchmark_group("decision");
    for l in [2, 4, 6, 8, 10] {
        let model = eir(l);
        let (mut tally, mut next) = (model.tally(), 0);
        group.bench_function(BenchmarkId::from_parameter(format!("l={l}")), |b| {
            b.iter(|| {
                tally.add(Member::of(&block, next));
                if tally.satisfied() {
                    tally.clear();
                }
                next = (next + 1) % block.len() as u32;
            });
        });
    }
}

fn forming_classes(c: &mut Criterion) {
    let mut group = c.benchmark_group("danonyir l=6");
    group.sample_size(10);
    let model = eir(6);
    for n in [5_000, 50_000] {
        let block = individuals(n);
        let mut run = |name: &str, algorithm: Danonyir| {
            group.bench_function(BenchmarkId::new(name, n), |b| {
                b.iter(|| algorithm.form_classes(&block, model.as_ref(), &Cancel::default()));
            });
        };
        run("index", Danonyir::new());
        if n <= 5_000 {
            run("naive", Danonyir::naive());
        }
    }
}

criterion_group!(benches, decision, forming_classes);
criterion_main!(benches);
