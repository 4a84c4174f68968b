//! Time, memory and loss of every function at growing sizes, beside the floor: the same engine reading the same columns,
//! sorting them by id and writing Parquet.
//!
//! ```sh
//! cargo bench --bench scale -- [--individuals 5000] [--steps 3] [--repeat 3] [--pool 256] [--only floor,eir]
//!                              [--no-blocks] [--no-threads]
//! ```
//!
//! `--individuals` is the smallest size n; each further step has ten times as many. `--pool` limits the engine's memory
//! to so many MB, sorts then spill, and the published rows are compared with those of an unlimited run. Every job is a
//! process of its own, whose memory is sampled from outside. Data is made once, below target/scale.

#![allow(clippy::expect_used, missing_docs)]

mod job;
mod measured;
mod options;
mod tables;

use std::path::PathBuf;

use datafusion::common::Result;
use mimalloc::MiMalloc;

use options::Options;

/// As in the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|a| a == "--job") {
        return job::run(&arguments[at + 1]);
    }
    tables::print(&Options::parse(&arguments))
}

/// Where data and results are.
fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    );
    target.join("scale")
}
