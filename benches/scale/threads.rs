//! Two cores against one: forming classes, and the whole job.

use datafusion::common::Result;

use crate::job::{Job, Said};
use crate::jobs::Entry;
use crate::measured::measure;
use crate::options::Options;
use crate::verdict;

/// Two cores shall be so many times as fast as one, at least.
const SPEED_UP: f64 = 1.7;

/// Each as often as asked, the fastest counts. Not in turn: a virtual machine gives its host the memory back that a job
/// leaves for longer than the next one needs, and who comes next pays for fresh memory.
pub fn print(options: &Options, jobs: &[&'static Entry]) -> Result<()> {
    println!(
        "One core and two, with {} individuals, the fastest of {}; at least {SPEED_UP} × as fast is aimed at. Forming \
         classes alone is the time of the partition that takes longest, where nobody writes files meanwhile.\n",
        options.largest(),
        options.repeat,
    );
    println!(
        "| job | forming classes, one core, s | two cores, s | × | | whole job, one core, s | two cores, s | × | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let (individuals, block, pool) = (options.largest(), options.block, options.pool);
    for job in jobs {
        let forming = |threads| {
            let query = job.query(individuals, block, threads, pool);
            fastest(&query, options.repeat, |said| Some(said.forming?.wall))
        };
        let whole = |threads| {
            let job = job.job(individuals, block, threads, pool);
            fastest(&job, options.repeat, |said| Some(said.seconds))
        };
        println!(
            "| {} | {} | {} |",
            job.name,
            compared(forming(1)?.zip(forming(2)?)),
            compared(whole(1)?.zip(whole(2)?)),
        );
    }
    println!();
    Ok(())
}

/// The least seconds of several runs; of one, if that says none.
fn fastest(
    job: &Job,
    repeat: usize,
    seconds: impl Fn(&Said) -> Option<f64>,
) -> Result<Option<f64>> {
    let mut fastest: Option<f64> = None;
    for _ in 0..repeat {
        let Some(seconds) = seconds(&measure(job)?.said) else {
            break;
        };
        fastest = Some(fastest.map_or(seconds, |least| least.min(seconds)));
    }
    Ok(fastest)
}

fn compared(seconds: Option<(f64, f64)>) -> String {
    let Some((one, two)) = seconds else {
        return "| | |".to_owned();
    };
    let times = one / two;
    format!(
        "{one:.2} | {two:.2} | {times:.2} | {}",
        verdict(times >= SPEED_UP)
    )
}
