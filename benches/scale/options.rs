//! What to do.

use std::process::exit;
use std::str::FromStr;

use crate::jobs::JOBS;

#[derive(Debug)]
pub struct Options {
    /// The smallest size.
    pub individuals: u64,
    /// How many sizes, each ten times the one before.
    pub steps: u32,
    /// Runs of each job; the fastest counts.
    pub repeat: usize,
    /// Memory of the engine in MB.
    pub pool: Option<u64>,
    /// Individuals per block, if not each function's default.
    pub block: Option<u64>,
    /// Names of the jobs to run; all if there are none.
    pub only: Vec<String>,
    /// Whether to print time and memory against the number of individuals.
    pub growth: bool,
    /// Whether to print utility against the size of blocks.
    pub blocks: bool,
    /// Whether to print one core against two.
    pub threads: bool,
    /// Whether to interrupt jobs instead.
    pub cancel: bool,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Self {
        let mut options = Self {
            individuals: 5_000,
            steps: 3,
            repeat: 3,
            pool: None,
            block: None,
            only: vec![],
            growth: true,
            blocks: true,
            threads: true,
            cancel: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.unwrap_or_else(|| wrong(&format!("{argument} needs a value")))
            };
            match argument.as_str() {
                "--individuals" => options.individuals = number(value()),
                "--steps" => options.steps = number(value()),
                "--repeat" => options.repeat = number(value()),
                "--pool" => options.pool = Some(number(value())),
                "--block" => options.block = Some(number(value())),
                "--only" => options.only = value().split(',').map(job_name).collect(),
                "--no-growth" => options.growth = false,
                "--no-blocks" => options.blocks = false,
                "--no-threads" => options.threads = false,
                "--cancel" => options.cancel = true,
                // Given by cargo.
                "--bench" => {}
                _ => wrong(&format!("'{argument}' is unknown")),
            }
        }
        options
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == name)
    }

    pub fn sizes(&self) -> Vec<u64> {
        let steps = 0..self.steps.max(1);
        steps
            .map(|step| self.individuals * 10u64.pow(step))
            .collect()
    }

    pub fn largest(&self) -> u64 {
        self.sizes().last().copied().unwrap_or_default()
    }
}

fn job_name(name: &str) -> String {
    let names: Vec<_> = JOBS.iter().map(|job| job.name.as_str()).collect();
    if !names.contains(&name) {
        wrong(&format!(
            "there is no job '{name}', but {}",
            names.join(", ")
        ));
    }
    name.to_owned()
}

fn number<T: FromStr>(text: &str) -> T {
    let number = text.replace('_', "").parse();
    number.unwrap_or_else(|_| wrong(&format!("'{text}' is not a number")))
}

fn wrong(what: &str) -> ! {
    eprintln!("{what}");
    exit(2)
}
