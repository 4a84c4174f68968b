//! What to run.

use std::str::FromStr;

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
    /// Names of the jobs to run; all if there are none.
    pub only: Vec<String>,
    /// Whether to print utility against the size of blocks.
    pub blocks: bool,
    /// Whether to print one core against two.
    pub threads: bool,
}

impl Options {
    pub fn parse(arguments: &[String]) -> Self {
        let value = |name: &str| {
            let at = arguments.iter().position(|a| a == name)?;
            arguments.get(at + 1).cloned()
        };
        let has = |name: &str| arguments.iter().any(|a| a == name);
        let only = value("--only").unwrap_or_default();
        Self {
            individuals: number(value("--individuals")).unwrap_or(5_000),
            steps: number(value("--steps")).unwrap_or(3),
            repeat: number(value("--repeat")).unwrap_or(3),
            pool: number(value("--pool")),
            only: only
                .split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
            blocks: !has("--no-blocks"),
            threads: !has("--no-threads"),
        }
    }

    pub fn wants(&self, name: &str) -> bool {
        name == "floor" || self.only.is_empty() || self.only.iter().any(|o| o == name)
    }

    pub fn sizes(&self) -> Vec<u64> {
        (0..self.steps)
            .map(|step| self.individuals * 10u64.pow(step))
            .collect()
    }
}

fn number<T: FromStr>(text: Option<String>) -> Option<T> {
    let text = text?;
    let number = text.replace('_', "").parse().ok();
    Some(number.unwrap_or_else(|| {
        eprintln!("'{text}' is not a number");
        std::process::exit(2)
    }))
}
