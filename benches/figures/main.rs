//! The figures of the papers, measured with this crate: tables and plots for docs/theory/figures/.
//!
//! `cargo bench --bench figures` writes all of them, `cargo bench --bench figures -- identity_reserved` those of one
//! paper. Data is read from ../shared/data, or made by sample_patients where that is not there.

#![allow(clippy::expect_used, missing_docs)]

mod buckets;
mod identity_reserved;
mod one_to_many;
mod p_sensitive;
mod page;
mod plot;
mod slppa;
mod trend;

use std::path::Path;
use std::process::Command;

use datafusion::common::Result;

/// A paper's figures: the name of its page, and what writes it.
type Paper = (&'static str, fn(&Path) -> Result<()>);

const PAPERS: &[Paper] = &[
    ("identity_reserved", identity_reserved::figures),
    ("buckets", buckets::figures),
    ("p_sensitive", p_sensitive::figures),
    ("slppa", slppa::figures),
    ("one_to_many", one_to_many::figures),
];

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/theory/figures");
    std::fs::create_dir_all(&folder)?;
    for (name, figures) in PAPERS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            figures(&folder)?;
        }
    }
    Ok(())
}

/// What a program prints, on one line.
fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output();
    let text = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
    text.unwrap_or_default()
}
