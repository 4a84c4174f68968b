//! Forming classes without a session: time and loss of every algorithm, as ratios within one run.
//!
//! `cargo bench --bench classes [-- index | efforts | growth | adult]`; also on `informs2005_1m.parquet` and
//! `adult.parquet`, where they are in `../shared/data` or in the folder `ANONYMIZE_DATA`.
//!
//! Times are seconds of this thread on a processor where the kernel tells them, else seconds that passed.

#![allow(clippy::expect_used, clippy::panic, missing_docs)]

#[path = "classes/naive.rs"]
mod naive;
#[path = "classes/tables.rs"]
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::internals::algorithm::{self, Algorithm, Cancel, Classes};
use datafusion_anonymize::internals::model::{self, Model, Parameters, Value};
use datafusion_anonymize::internals::table::{Block, QuasiIdentifier, Region};

const INDIVIDUALS: usize = 50_000;
const EFFORTS: [u64; 4] = [0, 1, 3, 10];
/// What is told of Adult. NCP is over the exact values in a class.
const ADULT: [&str; 6] = [
    "algorithm",
    "s",
    "rows a second",
    "GLM (nloss)",
    "ncp_count",
    "ncp_range",
];

#[tokio::main]
async fn main() -> Result<()> {
    let only: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted = |part: &str| only.is_empty() || only.iter().any(|name| name == part);
    let sample = tables::sample(INDIVIDUALS).await?;
    if wanted("index") {
        println!("## DAnonyIR by looking at everything and by its index, the same classes");
        naive_and_index("sample", &sample);
        if let Some(block) = tables::informs(None).await? {
            naive_and_index("informs2005_1m", &block);
        }
    }
    if wanted("efforts") {
        println!("\n## Loss and time by effort");
        efforts("sample", &sample);
        match tables::informs(None).await? {
            Some(block) => efforts("informs2005_1m", &block),
            None => println!("\ninforms2005_1m.parquet is not there"),
        }
    }
    if wanted("growth") {
        println!("\n## Ten times as many individuals, in one block\n");
        let small = tables::sample(INDIVIDUALS / 10).await?;
        let large = tables::sample(INDIVIDUALS * 10).await?;
        growth(&[small, sample, large]);
    }
    if wanted("adult") {
        println!("\n## Adult, 10-anonymity");
        match (tables::adult().await?, tables::adult_session().await?) {
            (Some(block), Some(session)) => {
                adult(&block);
                two_threads(&session).await?;
            }
            _ => println!("\nadult.parquet is not there"),
        }
    }
    Ok(())
}

fn naive_and_index(table: &str, block: &Block) {
    println!("\n{table}, {} individuals\n", block.len());
    heading(&["model", "search", "s", "times the index"]);
    let models = [
        eir(6),
        ir(6, 6),
        shares("ir_alpha_beta_anonymity", "0.4", "0.6"),
        shares("eir_alpha_beta_anonymity", "0.4", "0.6"),
        shares("eir_alpha_beta_anonymity", "0.6", "0.4"),
    ];
    for (name, model) in models {
        let (fast, by_index) = timed(|| form(danonyir().as_ref(), block, model.as_ref()));
        println!("| {name} | by index | {fast:.3} | 1 |");
        let printed = || form(&algorithm::Danonyir::naive(), block, model.as_ref());
        let tuned = || naive::form_classes(block, model.as_ref());
        let searches: [(&str, &dyn Fn() -> Classes); 2] = [
            ("as printed, everybody looked at", &printed),
            ("the same on flat arrays with tabulated losses", &tuned),
        ];
        // The flat arrays serve only models under which classes grow freely.
        let served = if model.closure().extension { 2 } else { 1 };
        for (search, run) in &searches[..served] {
            let (slow, classes) = timed(run);
            assert_eq!(classes, by_index, "the index changes nothing");
            println!("| {name} | {search} | {slow:.2} | {:.0} |", slow / fast);
        }
    }
}

fn efforts(table: &str, block: &Block) {
    println!("\n{table}, {} individuals\n", block.len());
    heading(&[
        "model",
        "algorithm",
        "s",
        "times danonyir",
        "NLoss",
        "of danonyir",
        "suppressed",
    ]);
    let models = [
        ir(6, 6),
        eir(6),
        shares("ir_alpha_beta_anonymity", "0.4", "0.6"),
        shares("eir_alpha_beta_anonymity", "0.4", "0.6"),
        shares("eir_alpha_beta_anonymity", "0.6", "0.4"),
    ];
    for (name, model) in models {
        let (seconds, printed) = timed(|| form(danonyir().as_ref(), block, model.as_ref()));
        let loss = nloss(block, &printed);
        let suppressed = printed.suppressed.len();
        println!("| {name} | danonyir | {seconds:.3} | 1 | {loss:.4} | 1 | {suppressed} |");
        for effort in EFFORTS {
            let (own_seconds, classes) =
                timed(|| form(optimized(effort).as_ref(), block, model.as_ref()));
            let own_loss = nloss(block, &classes);
            assert!(own_loss <= loss, "never worse");
            println!(
                "| {name} | optimized, effort {effort} | {own_seconds:.3} | {:.1} | {own_loss:.4} | {:.3} | {} |",
                own_seconds / seconds,
                own_loss / loss,
                classes.suppressed.len()
            );
        }
    }
}

fn growth(sizes: &[Block]) {
    let mut columns = vec!["model".to_owned(), "algorithm".to_owned()];
    columns.extend(sizes.iter().map(|block| format!("{}, s", block.len())));
    columns.push("ratios".to_owned());
    heading(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, model) in [ir(6, 6), eir(6)] {
        for (label, algorithm) in [("danonyir", danonyir()), ("optimized", optimized(3))] {
            let seconds: Vec<f64> = sizes
                .iter()
                .map(|block| {
                    // Small blocks several times, because the kernel counts in steps of some milliseconds.
                    let runs = (INDIVIDUALS / block.len()).max(1);
                    let all = || {
                        for _ in 0..runs {
                            form(algorithm.as_ref(), block, model.as_ref());
                        }
                    };
                    timed(all).0 / runs as f64
                })
                .collect();
            let ratios = seconds
                .windows(2)
                .map(|pair| format!("{:.1}", pair[1] / pair[0]));
            let ratios = ratios.collect::<Vec<_>>().join(", ");
            let cells: Vec<String> = seconds.iter().map(|s| format!("{s:.3}")).collect();
            println!("| {name} | {label} | {} | {ratios} |", cells.join(" | "));
        }
    }
}

fn adult(block: &Block) {
    println!("\n{} individuals\n", block.len());
    heading(&ADULT);
    let model = built("ir_k_anonymity", &[("k", Value::Integer(10))]);
    let line = |label: String, algorithm: Box<dyn Algorithm>| {
        let (seconds, classes) = timed(|| form(algorithm.as_ref(), block, model.as_ref()));
        let rows = block.len() as f64 / seconds;
        let (count, range) = ncp(block, &classes);
        println!(
            "| {label}, one thread | {seconds:.3} | {rows:.0} | {:.4} | {count:.4} | {range:.4} |",
            nloss(block, &classes)
        );
    };
    line("danonyir".to_owned(), danonyir());
    for effort in EFFORTS {
        line(format!("optimized, effort {effort}"), optimized(effort));
    }
}

/// The default in two blocks on two threads, through the engine; the time is that of the thread that formed classes longest.
async fn two_threads(session: &SessionContext) -> Result<()> {
    let published = "SELECT * FROM anonymize_ir(adult, one_row_per_individual => true, \
         qi => [sex, age, race, marital_status, education, native_country, workclass, occupation], sensitive => nothing, \
         k => 10, block => 16000, seed => 1)";
    let plan = session.sql(published).await?.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), session.task_ctx()).await?;
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    let threads = forming_seconds(&plan);
    let seconds = threads.values().copied().fold(0.0, f64::max);
    let release = MemTable::try_new(plan.schema(), vec![batches])?;
    session.register_table("release", Arc::new(release))?;
    let mut losses = vec![];
    for measure in ["nloss", "ncp_count", "ncp_range"] {
        let sql = format!(
            "SELECT value FROM information_loss(adult, release, one_row_per_individual => true, \
             qi => [sex, age, race, marital_status, education, native_country, workclass, occupation]) \
             WHERE measure = '{measure}' AND \"column\" IS NULL"
        );
        let value = session.sql(&sql).await?.collect().await?;
        let value = value[0].column(0).as_primitive::<Float64Type>().value(0);
        losses.push(format!("{value:.4}"));
    }
    println!(
        "| optimized, the default, {} threads | {seconds:.3} | {:.0} | {} |",
        threads.len(),
        rows as f64 / seconds,
        losses.join(" | ")
    );
    Ok(())
}

/// How long each partition that had a block formed classes.
fn forming_seconds(plan: &Arc<dyn ExecutionPlan>) -> BTreeMap<Option<usize>, f64> {
    let mut seconds = BTreeMap::new();
    for metric in plan.metrics().iter().flat_map(|metrics| metrics.iter()) {
        if let MetricValue::Time { name, time } = metric.value()
            && name == "time_forming_classes"
            && time.value() > 0
        {
            *seconds.entry(metric.partition()).or_default() += time.value() as f64 / 1e9;
        }
    }
    for child in plan.children() {
        seconds.extend(forming_seconds(child));
    }
    seconds
}

fn danonyir() -> Box<dyn Algorithm> {
    let entry = algorithm::find("danonyir").expect("it is in the list");
    (entry.build)(&Parameters::default()).expect("it has no options")
}

fn optimized(effort: u64) -> Box<dyn Algorithm> {
    let entry = algorithm::find("optimized").expect("it is in the list");
    let mut options = Parameters::default();
    options.set("effort", Value::Integer(effort));
    (entry.build)(&options).expect("the effort is valid")
}

type Named = (String, Box<dyn Model>);

fn eir(l: u64) -> Named {
    let model = built("eir_l_diversity", &[("l", Value::Integer(l))]);
    (model.describe(), model)
}

fn ir(k: u64, l: u64) -> Named {
    let parameters = [("k", Value::Integer(k)), ("l", Value::Integer(l))];
    let model = built("ir_kl_anonymity", &parameters);
    (model.describe(), model)
}

fn shares(name: &str, alpha: &str, beta: &str) -> Named {
    let share = |text: &str| Value::Ratio(text.parse().expect("a decimal"));
    let model = built(name, &[("alpha", share(alpha)), ("beta", share(beta))]);
    (model.describe(), model)
}

fn built(name: &str, values: &[(&str, Value)]) -> Box<dyn Model> {
    let entry = model::find(name).expect("the model is in the list");
    let mut parameters = Parameters::default();
    for (name, value) in values {
        parameters.set(*name, *value);
    }
    (entry.build)(&parameters).expect("the parameters are valid")
}

fn form(algorithm: &dyn Algorithm, block: &Block, model: &dyn Model) -> Classes {
    let cancel = Cancel::default();
    algorithm
        .form_classes(block, model, &cancel)
        .expect("nobody cancels")
}

/// Mean loss of a cell (Wang 2018, Eqs. 13–15); a suppressed record has lost all its cells.
fn nloss(block: &Block, classes: &Classes) -> f64 {
    let columns = block.quasi_identifiers().len() as f64;
    let records: f64 = (0..block.len() as u32)
        .map(|i| f64::from(block.records(i)))
        .sum();
    let regions = classes
        .classes
        .iter()
        .filter_map(|class| Region::covering(block, class));
    let lost: f64 = regions
        .map(|region| region.records() as f64 * region.loss() as f64 / block.full() as f64)
        .sum();
    let suppressed: f64 = classes
        .suppressed
        .iter()
        .map(|i| f64::from(block.records(*i)))
        .sum();
    (lost + suppressed * columns) / (records * columns)
}

/// NCP over the exact values in a class, by their count and by their range (docs/reference/information_loss.md); every record is an
/// individual, and a suppressed one has lost all its cells.
fn ncp(block: &Block, classes: &Classes) -> (f64, f64) {
    let (mut count, mut range) = (0.0, 0.0);
    for class in &classes.classes {
        for column in block.quasi_identifiers() {
            let (by_count, by_range) = match column {
                QuasiIdentifier::Numeric(n) => {
                    let lo = class.iter().map(|i| n.lo[*i as usize]).min();
                    let hi = class.iter().map(|i| n.hi[*i as usize]).max();
                    let width = f64::from(hi.unwrap_or(0) - lo.unwrap_or(0));
                    let most = block.full() as f64 / n.step as f64;
                    let values = if width > 0.0 { width + 1.0 } else { 0.0 };
                    (values / (most + 1.0), width / most)
                }
                QuasiIdentifier::Categorical(c) => {
                    let values: BTreeSet<u32> =
                        class.iter().flat_map(|i| c.of(*i)).copied().collect();
                    let values = if values.len() > 1 { values.len() } else { 0 };
                    let share = values as f64 / f64::from(c.cardinality);
                    (share, share)
                }
                QuasiIdentifier::Hierarchical(_) => panic!("Adult is read without hierarchies"),
            };
            count += by_count * class.len() as f64;
            range += by_range * class.len() as f64;
        }
    }
    let columns = block.quasi_identifiers().len() as f64;
    let lost = classes.suppressed.len() as f64 * columns;
    let cells = block.len() as f64 * columns;
    ((count + lost) / cells, (range + lost) / cells)
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (start, busy) = (Instant::now(), busy_seconds());
    let result = work();
    let seconds = match (busy, busy_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    };
    (seconds, result)
}

/// How long this thread was on a processor.
fn busy_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn heading(columns: &[&str]) {
    println!("| {} |", columns.join(" | "));
    println!("|{}", "---|".repeat(columns.len()));
}
