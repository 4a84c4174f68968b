//! How soon a job ends that nobody waits for, and what it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use datafusion::common::{Result, exec_datafusion_err};

use crate::data::temporary;
use crate::files;
use crate::job::{Job, Work};
use crate::jobs::{Entry, output, release};
use crate::measured::measure;
use crate::options::Options;
use crate::verdict;

/// When jobs are cancelled, in milliseconds after their start.
const AFTER: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];

/// Within so many seconds all shall have ended.
const END: f64 = 1.0;

/// Where memory has no limit otherwise, in MB: so that there are spilled files to leave behind.
const POOL: u64 = 256;

/// How a job that was cancelled has ended.
struct Ended {
    seconds: f64,
    /// Temporary files that are left.
    temporary: usize,
    /// Files of an unfinished result that are left.
    output: usize,
}

pub fn print(options: &Options, jobs: &[&'static Entry]) -> Result<()> {
    let program = program()?;
    let pool = options.pool.unwrap_or(POOL);
    let individuals = options.largest();
    println!(
        "{individuals} individuals, {pool} MB. Ctrl-C goes to `anonymize sql`; a dropped stream has ended when all of its \
         threads have.\n"
    );
    println!(
        "| job | cancelled after s | Ctrl-C: ended within s | temporary files left | files of results left | \
         | dropped: ended within s | temporary files left | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for job in jobs {
        let work = job.job(individuals, options.block, 2, Some(pool));
        for after in AFTER {
            let interrupted = interrupt(&program, &work, pool, Duration::from_millis(after))?;
            let dropped = abandon(&work, after)?;
            if interrupted.is_none() && dropped.is_none() {
                break;
            }
            println!(
                "| {} | {} | {} | {} |",
                job.name,
                after as f64 / 1e3,
                interrupted.map_or_else(
                    || "ended before | | | ".to_owned(),
                    |it| format!(
                        "{:.2} | {} | {} | {}",
                        it.seconds,
                        it.temporary,
                        it.output,
                        judged(&it)
                    )
                ),
                dropped.map_or_else(
                    || "ended before | | ".to_owned(),
                    |it| format!("{:.2} | {} | {}", it.seconds, it.temporary, judged(&it))
                ),
            );
        }
    }
    println!();
    Ok(())
}

fn judged(it: &Ended) -> &'static str {
    verdict(it.seconds <= END && it.temporary == 0)
}

/// The program of the same build.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.ancestors().nth(2).map(|p| p.join("anonymize"));
    let program = program.filter(|program| program.exists());
    program.ok_or_else(|| {
        exec_datafusion_err!("there is no program to interrupt: cargo build --release builds it")
    })
}

/// Runs a job in the program, with one interrupt from outside; none if it has ended before.
fn interrupt(program: &Path, job: &Job, pool: u64, after: Duration) -> Result<Option<Ended>> {
    for folder in [output(), release()] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let mut child = Command::new(program)
        .args(["sql", "-q", "-m", &format!("{pool}m"), "-c", &job.sql])
        .env("TMPDIR", temporary())
        .env("DATAFUSION_EXECUTION_TARGET_PARTITIONS", "2")
        .stdout(Stdio::null())
        .spawn()?;
    thread::sleep(after);
    if child.try_wait()?.is_some() {
        return Ok(None);
    }
    let begin = Instant::now();
    let number = child.id().to_string();
    Command::new("kill").args(["-INT", &number]).status()?;
    child.wait()?;
    Ok(Some(Ended {
        seconds: begin.elapsed().as_secs_f64(),
        temporary: files::below(&temporary()),
        output: files::below(&output()) + files::below(&release()),
    }))
}

/// Runs a job in a process of its own and drops its stream there; none if it has ended before.
fn abandon(job: &Job, after: u64) -> Result<Option<Ended>> {
    let job = Job {
        work: Work::Drop(after),
        ..job.clone()
    };
    let said = measure(&job)?.said;
    let (temporary, memory) = said.left;
    if memory > 0 {
        return Err(exec_datafusion_err!("{memory} bytes are still reserved"));
    }
    Ok((!said.ended_before).then_some(Ended {
        seconds: said.seconds,
        temporary,
        output: files::below(&output()) + files::below(&release()),
    }))
}
