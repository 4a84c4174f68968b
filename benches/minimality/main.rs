//! What a reader learns who knows all quasi-identifiers, the program, its parameters and its seed: a minimality attack on
//! every algorithm of the list, and on functions that have one way only.
//!
//! `cargo bench --profile dev --bench minimality -- --help`

#![allow(missing_docs)]

mod attack;

use std::process::exit;

use datafusion::common::{DataFusionError, Result};
use datafusion_anonymize::FUNCTIONS;
use datafusion_anonymize::internals::algorithm::ALGORITHMS;

use crate::attack::{Measured, Setting};

const HELP: &str = "\
All tables of the same few people are published, and each release is attacked by a reader who runs the program, too.

  --people N       people, 2 to 8 (6)
  --columns N      quasi-identifiers, 1 or 2 (2)
  --values N       sensitive values, 2 to 4 (2)
  --most N         most sensitive values of one person (1)
  --l N            l, and k where the function has one (2)
  --hierarchy      labels that are decided beforehand, not the values of a class
  --seed N         the seed that the reader knows (1)
  --seeds N        so many seeds from that one on, of which the reader does not know which was drawn (1)
  --function NAME  one function (all)
  --algorithm NAME one algorithm (all)";

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (setting, function, algorithm) = options(&arguments);
    println!("{setting:?}\n");
    println!(
        "| function | algorithm | refused | releases | told more | certain | people and values | share before | largest lift |"
    );
    println!("|{}", "---|".repeat(9));
    let wanted = |name: &str, only: &Option<String>| only.as_ref().is_none_or(|only| only == name);
    let mut left_out = vec![];
    for entry in FUNCTIONS.iter().filter(|f| wanted(f.name, &function)) {
        if entry.shows_division_only() {
            left_out.push(format!(
                "{}: shows statistics to the publisher, no release",
                entry.name
            ));
            continue;
        }
        let algorithms: Vec<Option<&str>> = match entry.forms_classes() {
            false => vec![None],
            true => {
                let algorithms = ALGORITHMS.iter().map(|a| a.name);
                algorithms
                    .filter(|name| wanted(name, &algorithm))
                    .map(Some)
                    .collect()
            }
        };
        for name in algorithms {
            match setting.attack(entry, name).await {
                Ok(measured) => println!("{}", row(entry.name, name, &measured)),
                Err(error @ (DataFusionError::Plan(_) | DataFusionError::Diagnostic(..))) => {
                    left_out.push(error.strip_backtrace());
                }
                Err(error) => return Err(error),
            }
        }
    }
    if !left_out.is_empty() {
        println!("\nNot attacked:\n\n- {}", left_out.join("\n- "));
    }
    Ok(())
}

fn row(function: &str, algorithm: Option<&str>, measured: &Measured) -> String {
    let of_runs = |count: usize| format!("{count} of {}", measured.runs);
    let (share, lift) = match measured.shares {
        Some((least, most)) => (format!("{least:.2} to {most:.2}"), measured.lift),
        None => ("–".to_owned(), measured.lift.max(1.0)),
    };
    format!(
        "| `{function}` | {} | {} | {} | {} | {} | {} | {share} | {lift:.2} |",
        algorithm.unwrap_or("–"),
        measured.refused,
        measured.releases,
        of_runs(measured.above),
        of_runs(measured.certain),
        measured.disclosed,
    )
}

fn options(arguments: &[String]) -> (Setting, Option<String>, Option<String>) {
    let mut setting = Setting::default();
    let (mut function, mut algorithm) = (None, None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value.unwrap_or_else(|| wrong(&format!("{argument} needs a value")))
        };
        match argument.as_str() {
            "--people" => setting.people = number(value(), 2, 8),
            "--columns" => setting.columns = number(value(), 1, 2),
            "--values" => setting.values = number(value(), 2, 4),
            "--most" => setting.most = number(value(), 1, 4),
            "--l" => setting.l = number(value(), 2, 8),
            "--hierarchy" => setting.hierarchy = true,
            "--seed" => setting.seed = number(value(), 0, 1 << 32) as u64,
            "--seeds" => setting.seeds = number(value(), 1, 1_000) as u64,
            "--function" => function = Some(named(value(), &mut FUNCTIONS.iter().map(|f| f.name))),
            "--algorithm" => {
                algorithm = Some(named(value(), &mut ALGORITHMS.iter().map(|a| a.name)))
            }
            "--help" => {
                println!("{HELP}");
                exit(0)
            }
            // Given by cargo.
            "--bench" => {}
            _ => wrong(&format!("'{argument}' is unknown")),
        }
    }
    (setting, function, algorithm)
}

fn number(text: &str, least: usize, most: usize) -> usize {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => number,
        _ => wrong(&format!("{text} is no number from {least} to {most}")),
    }
}

fn named(text: &str, names: &mut dyn Iterator<Item = &'static str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.contains(&text) {
        return text.to_owned();
    }
    wrong(&format!("{text} is none of {}", names.join(", ")))
}

fn wrong(message: &str) -> ! {
    eprintln!("{message}\n\n{HELP}");
    exit(2)
}
