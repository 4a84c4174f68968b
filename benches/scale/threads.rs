//! Two cores against one: forming classes, and the whole job.

use datafusion::common::Result;

use crate::jobs::Entry;
use crate::measured::{Measured, measure};
use crate::options::Options;
use crate::verdict;

/// Two cores shall be so many times as fast as one, at least.
const SPEED_UP: f64 = 1.7;

/// Of jobs as measured with two threads, at the largest size.
pub fn print(options: &Options, two: &[(&'static Entry, Measured)]) -> Result<()> {
    println!(
        "One core and two, with {} individuals; at least {SPEED_UP} × as fast is aimed at. Forming classes alone is the \
         time of the partition that takes longest.\n",
        options.largest()
    );
    println!(
        "| job | forming classes, one core, s | two cores, s | × | | whole job, one core, s | two cores, s | × | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (job, two) in two {
        let one = measure(&job.job(options.largest(), options.block, 1, options.pool))?;
        let forming = one.said.forming.zip(two.said.forming);
        let forming = forming.map(|(one, two)| (one.wall, two.wall));
        println!(
            "| {} | {} | {} |",
            job.name,
            forming.map_or("| | |".to_owned(), compared),
            compared((one.said.seconds, two.said.seconds)),
        );
    }
    println!();
    Ok(())
}

fn compared((one, two): (f64, f64)) -> String {
    let times = one / two;
    format!(
        "{one:.2} | {two:.2} | {times:.2} | {}",
        verdict(times >= SPEED_UP)
    )
}
