//! What a reader learns who knows how classes are formed, and that the pages say it.

use datafusion_anonymize::internals::algorithm::ALGORITHMS;
use datafusion_anonymize::{FUNCTIONS, FunctionEntry};

use self::attack::{Measured, Setting};
use crate::documents::page;

/// The attack of the benchmark.
#[allow(dead_code)]
#[path = "../../benches/minimality/attack.rs"]
mod attack;

/// Every algorithm, attacked as `cargo bench --bench minimality -- --function anonymize_eir` does it.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_algorithms_tell_what_is_not_bounded() {
    let eir = FUNCTIONS.iter().find(|f| f.name == "anonymize_eir");
    for algorithm in ALGORITHMS {
        let setting = Setting::default();
        let measured = setting.attack(eir.unwrap(), Some(algorithm.name));
        told(&measured.await.unwrap(), algorithm.name);
    }
}

/// Those that have one way only, as with `--values 3`. All others say what their algorithms leave open.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_functions_tell_what_is_not_bounded() {
    let setting = Setting {
        values: 3,
        ..Setting::default()
    };
    let publishes = |function: &&&FunctionEntry| !function.shows_division_only();
    for function in FUNCTIONS.iter().filter(publishes) {
        let text = page(function.name);
        let link = "(../theory/guarantees.md#how-classes-had-to-be-formed)";
        assert!(text.contains(link), "{}.md has no link", function.name);
        if !function.forms_classes() {
            let measured = setting.attack(function, None).await.unwrap();
            told(&measured, function.name);
        }
    }
}

/// The page, and the page on guarantees, have the figures.
fn told(measured: &Measured, name: &str) {
    let Measured {
        runs,
        above,
        certain,
        disclosed,
        ..
    } = measured;
    let said = format!(
        "in {above} of {runs} small tables more than the release shows, in {certain} something for certain"
    );
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(page(name)).contains(&said), "{name}.md: {said}");
    let row = format!(
        "| [`{name}`](../reference/{name}.md) | {runs} | {above} | {certain} | {disclosed} |"
    );
    assert!(page("guarantees").contains(&row), "guarantees.md: {row}");
}
