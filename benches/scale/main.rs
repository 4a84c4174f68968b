//! Time, memory and loss of every function at growing sizes, beside the floor: the same engine reading the same columns,
//! sorting them by id and writing Parquet.
//!
//! ```sh
//! cargo bench --bench scale -- [--individuals 5000] [--steps 3] [--repeat 3] [--pool 256] [--block 250000]
//!                              [--only eir,slppa] [--no-growth] [--no-blocks] [--no-threads] [--cancel]
//! ```
//!
//! `--individuals` is the smallest size n; each further step has ten times as many. `--pool` limits the engine's memory
//! to so many MB, sorts then spill, and the published rows are compared with those of an unlimited run. `--block` says
//! how many individuals a block has, where a function's default needs more memory than there is. `--cancel` interrupts
//! jobs of the largest size instead of measuring them; it wants the program `anonymize` of the same profile.
//! Every job is a process of its own, whose memory is sampled from outside. Data is made once, below target/scale. What
//! is printed is Markdown.

#![allow(missing_docs)]

mod blocks;
mod cancel;
mod data;
mod files;
mod growth;
mod job;
mod jobs;
mod machine;
mod measured;
mod options;
mod phase;
mod threads;

use datafusion::common::Result;
use tikv_jemallocator::Jemalloc;

use options::Options;

/// As in the program.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, job] = &arguments[..]
        && first == "--job"
    {
        return job::run(job);
    }
    let options = Options::parse(&arguments);
    let jobs = jobs::wanted(&options);
    let sizes = options.sizes();
    machine::print(&options);
    if options.cancel {
        data::make(options.largest(), &jobs)?;
        return cancel::print(&options, &jobs);
    }
    for individuals in &sizes {
        data::make(*individuals, &jobs)?;
    }
    if options.growth {
        growth::print(&options, &jobs)?;
    }
    if options.threads {
        threads::print(&options, &jobs)?;
    }
    if options.blocks {
        blocks::print(&options, &jobs)?;
    }
    Ok(())
}

/// Whether what was aimed at is attained.
fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}
