//! Every job at every size beside the floor, and what of the aims is met at the largest.

use datafusion::common::Result;

use crate::data::{rows, table};
use crate::jobs::{Aim, Entry};
use crate::measured::{Measured, best};
use crate::options::Options;
use crate::verdict;

/// Ten times the individuals may take 10^1.1 times as long.
const GROWTH: f64 = 1.1;

/// One job at all sizes, with one limit of memory.
struct Row {
    job: &'static Entry,
    /// In MB, if there is one.
    pool: Option<u64>,
    /// As many as there are sizes; none where it failed.
    measured: Vec<Option<Measured>>,
    /// At which of them the rows are the same with and without limit.
    same: Vec<bool>,
}

impl Row {
    fn limit(&self) -> String {
        self.pool.map_or("none".to_owned(), |mb| mb.to_string())
    }
}

/// Prints both tables. Where memory is limited, each job runs without limit too, and must publish the same rows.
pub fn print(options: &Options, jobs: &[&'static Entry]) -> Result<()> {
    println!(
        "| job | pool MB | individuals | records | seconds | CPU s | records/s | × floor | × floor (CPU) | peak MB | spills \
         | spilled MB | loss | blocks | same rows |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut measured: Vec<Row> = vec![];
    let mut records = vec![];
    for individuals in options.sizes() {
        records.push(rows(&table(individuals))?.0);
    }
    for job in jobs {
        let own = pools(options).map(|pool| Row {
            job,
            pool,
            measured: vec![],
            same: vec![],
        });
        let mut own: Vec<Row> = own.collect();
        for (at, (individuals, records)) in options.sizes().into_iter().zip(&records).enumerate() {
            run(options, &mut own, individuals)?;
            for row in &own {
                let floor = measured.iter().find(|r| r.pool == row.pool);
                print_row(row, floor.unwrap_or(row), at, individuals, *records);
            }
        }
        measured.extend(own);
    }
    print_verdicts(options, &measured);
    Ok(())
}

/// The limits of memory to measure with, in MB.
fn pools(options: &Options) -> impl Iterator<Item = Option<u64>> {
    let limited = options.pool.map(Some);
    limited.into_iter().chain([None])
}

/// Runs one job at one size, with each limit.
fn run(options: &Options, all: &mut [Row], individuals: u64) -> Result<()> {
    // Large ones take long enough to be measured once.
    let is_large = options.steps > 1 && individuals == options.largest();
    let repeat = if is_large { 1 } else { options.repeat };
    let mut published = vec![];
    for row in all.iter_mut() {
        let job = row.job.job(individuals, options.block, 2, row.pool);
        let it = best(&job, repeat).ok();
        if it.is_some() && options.pool.is_some() && !row.job.is_floor() {
            published.push(row.job.written()?);
        }
        row.measured.push(it);
    }
    let failed = all
        .iter()
        .any(|row| matches!(row.measured.last(), Some(None)));
    let same = !failed && published.windows(2).all(|two| two[0] == two[1]);
    all.iter_mut().for_each(|row| row.same.push(same));
    Ok(())
}

fn print_row(row: &Row, floor: &Row, at: usize, individuals: u64, records: u64) {
    let pool = row.limit();
    let Some(it) = &row.measured[at] else {
        println!("| {} | {pool} | {individuals} | failed |", row.job.name);
        return;
    };
    let said = &it.said;
    let floor = &floor.measured[at].as_ref().unwrap_or(it).said;
    println!(
        "| {} | {pool} | {individuals} | {records} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {:.0} | {} | {:.0} | {} | {} | {} |",
        row.job.name,
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
        match row.pool.filter(|_| !row.job.is_floor()) {
            Some(_) if row.same[at] => "yes",
            Some(_) => "NO",
            None => "",
        },
    );
}

fn print_verdicts(options: &Options, measured: &[Row]) {
    println!(
        "\nWhat is aimed at, with {} individuals:\n",
        options.largest()
    );
    println!(
        "| job | pool MB | × floor, of a release beside its function | at most | | growth exponent of CPU time, last step | at most | | peak MB | at most | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let last = |row: &Row| row.measured.last().cloned().flatten();
    for row in measured {
        let floor = measured.iter().find(|floor| floor.pool == row.pool);
        let floor = floor.and_then(last);
        let pool = row.limit();
        let Some(it) = last(row) else {
            println!(
                "| {} | {pool} | failed | | {} |",
                row.job.name,
                verdict(false)
            );
            continue;
        };
        let beside = |name: &str| {
            let mut jobs = measured.iter().filter(|other| other.pool == row.pool);
            jobs.find(|other| other.job.name == name).and_then(last)
        };
        let (seconds, most_floors) = match row.job.aim {
            Aim::Nothing => (Some(it.said.seconds), None),
            Aim::Floors(floors) => (Some(it.said.seconds), Some(floors)),
            Aim::Beside(job, floors) => {
                let job = beside(job).map(|job| it.said.seconds - job.said.seconds);
                (job, Some(floors))
            }
        };
        let ratio = seconds
            .zip(floor)
            .map(|(seconds, floor)| seconds / floor.said.seconds);
        let growth = growth(row, &options.sizes());
        let most = row.pool.map(|mb| 1.3 * mb as f64 + 300.0);
        println!(
            "| {} | {pool} | {} | {} | {} |",
            row.job.name,
            judged(ratio.filter(|_| !row.job.is_floor()), most_floors, 1, true),
            judged(growth, (!row.job.is_floor()).then_some(GROWTH), 2, true),
            judged(Some(it.peak), most, 0, row.same.iter().all(|same| *same)),
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
