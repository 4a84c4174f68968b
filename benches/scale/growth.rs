//! Every job at every size beside the floor, and what of the aims is met at the largest.

use datafusion::common::Result;

use crate::data::{rows, table};
use crate::jobs::Entry;
use crate::measured::{Measured, best, measure};
use crate::options::Options;
use crate::verdict;

/// Ten times the individuals may take 10^1.1 times as long.
const GROWTH: f64 = 1.1;

/// One job at all sizes.
struct Row {
    job: &'static Entry,
    /// As many as there are sizes; none where it failed.
    measured: Vec<Option<Measured>>,
    /// Whether limited memory has changed nothing, at any size.
    same: bool,
}

/// Prints both tables; gives the jobs as measured at the largest size.
pub fn print(
    options: &Options,
    jobs: &[&'static Entry],
) -> Result<Vec<(&'static Entry, Measured)>> {
    let sizes = options.sizes();
    println!(
        "| job | individuals | records | seconds | CPU s | records/s | × floor | × floor (CPU) | peak MB | spills \
         | spilled MB | loss | blocks | same rows |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut measured: Vec<Row> = vec![];
    let mut records = vec![];
    for individuals in &sizes {
        records.push(rows(&table(*individuals))?.0);
    }
    for job in jobs {
        let mut row = Row {
            job,
            measured: vec![],
            same: true,
        };
        for (at, individuals) in sizes.iter().enumerate() {
            // Large ones take long enough to be measured once.
            let repeat = if at + 1 == sizes.len() && at > 0 {
                1
            } else {
                options.repeat
            };
            let Ok(it) = best(
                &job.job(*individuals, options.block, 2, options.pool),
                repeat,
            ) else {
                println!("| {} | {individuals} | failed |", job.name);
                row.measured.push(None);
                row.same = false;
                continue;
            };
            let same = compare(job, *individuals, options)?;
            row.same &= same != Some(false);
            let floor = measured
                .first()
                .and_then(|floor| floor.measured[at].clone());
            print_row(job, *individuals, records[at], &it, floor.as_ref(), same);
            row.measured.push(Some(it));
        }
        measured.push(row);
    }
    print_verdicts(options, &measured);
    let last = measured.into_iter().filter_map(|mut row| {
        let it = row.measured.pop().flatten()?;
        Some((row.job, it))
    });
    Ok(last.collect())
}

fn print_row(
    job: &Entry,
    individuals: u64,
    records: u64,
    it: &Measured,
    floor: Option<&Measured>,
    same: Option<bool>,
) {
    let said = &it.said;
    let floor = &floor.unwrap_or(it).said;
    println!(
        "| {} | {individuals} | {records} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {:.0} | {} | {:.0} | {} | {} | {} |",
        job.name,
        said.seconds,
        said.cpu_seconds,
        records as f64 / said.seconds,
        said.seconds / floor.seconds,
        said.cpu_seconds / floor.cpu_seconds,
        it.peak,
        said.spills,
        said.spilled_bytes as f64 / f64::from(1 << 20),
        said.loss.map_or(String::new(), |loss| format!("{loss:.4}")),
        said.blocks,
        same.map_or("", |same| if same { "yes" } else { "NO" }),
    );
}

/// Whether the rows that were just written with limited memory are those written without limit.
fn compare(job: &Entry, individuals: u64, options: &Options) -> Result<Option<bool>> {
    if options.pool.is_none() || job.is_floor() {
        return Ok(None);
    }
    let limited = rows(&job.rows()?)?;
    measure(&job.job(individuals, options.block, 2, None))?;
    Ok(Some(limited == rows(&job.rows()?)?))
}

fn print_verdicts(options: &Options, measured: &[Row]) {
    println!(
        "\nWhat is aimed at, with {} individuals:\n",
        options.largest()
    );
    println!(
        "| job | × floor | at most | | growth exponent of CPU time, last step | at most | | peak MB | at most | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let last = |row: &Row| row.measured.last().cloned().flatten();
    let floor = measured.first().and_then(last);
    for row in measured {
        let Some(it) = last(row) else {
            println!("| {} | failed | | {} |", row.job.name, verdict(false));
            continue;
        };
        let ratio = floor.as_ref().map(|f| it.said.seconds / f.said.seconds);
        let growth = growth(row, &options.sizes());
        let most = options.pool.map(|mb| 1.3 * mb as f64 + 300.0);
        println!(
            "| {} | {} | {} | {} |",
            row.job.name,
            judged(ratio.filter(|_| !row.job.is_floor()), row.job.aim, 1, true),
            judged(growth, Some(GROWTH), 2, true),
            judged(Some(it.peak), most, 0, row.same),
        );
    }
    println!();
}

/// A figure, the most that it may be, and whether it is no more and all else is well.
fn judged(figure: Option<f64>, most: Option<f64>, digits: usize, well: bool) -> String {
    let text = |number: Option<f64>| number.map_or(String::new(), |n| format!("{n:.digits$}"));
    let met = figure
        .zip(most)
        .map(|(figure, most)| figure <= most && well);
    format!(
        "{} | {} | {}",
        text(figure),
        most.map_or(String::new(), |most| most.to_string()),
        met.map_or("", verdict)
    )
}

/// By which power CPU time grows from the last size but one to the last.
fn growth(row: &Row, sizes: &[u64]) -> Option<f64> {
    let ([.., n, m], [.., Some(a), Some(b)]) = (sizes, &row.measured[..]) else {
        return None;
    };
    let times = b.said.cpu_seconds / a.said.cpu_seconds;
    Some(times.ln() / (*m as f64 / *n as f64).ln())
}
