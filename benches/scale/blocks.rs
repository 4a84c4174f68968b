//! Utility against the size of blocks.

use datafusion::common::Result;

use crate::jobs::Entry;
use crate::measured::measure;
use crate::options::Options;

/// Sizes of blocks to compare; 0 is all individuals.
const BLOCKS: [u64; 6] = [1_000, 5_000, 10_000, 25_000, 50_000, 0];

/// At the last size but one: with more, a block of all would take very long.
pub fn print(options: &Options, jobs: &[&'static Entry]) -> Result<()> {
    let sizes = options.sizes();
    let individuals = sizes[sizes.len().saturating_sub(2)];
    println!("| job | individuals | block | loss | classes | suppressed | CPU s | peak MB |");
    println!("|---|---|---|---|---|---|---|---|");
    for job in jobs.iter().filter(|job| job.compares_blocks()) {
        for block in BLOCKS {
            let name = match block {
                0 => "all".to_owned(),
                n => n.to_string(),
            };
            let Ok(it) = measure(&job.job(individuals, Some(block), 2, None)) else {
                // A block may be too small for what is asked of each.
                println!("| {} | {individuals} | {name} | refused |", job.name);
                continue;
            };
            let said = &it.said;
            println!(
                "| {} | {individuals} | {name} | {} | {} | {} | {:.2} | {:.0} |",
                job.name,
                said.loss.map_or(String::new(), |loss| format!("{loss:.4}")),
                said.classes,
                said.suppressed,
                said.cpu_seconds,
                it.peak,
            );
        }
    }
    println!();
    Ok(())
}
