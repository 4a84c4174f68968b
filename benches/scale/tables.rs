//! The tables that are printed, in Markdown.

use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::common::Result;

use crate::job::Job;
use crate::measured::{Measured, best, measure};
use crate::{Options, folder};

/// All quasi-identifiers of `sample_patients`.
const QI: &str =
    "birth_month, birth_year, sex, race, education_years, marital_status, poverty, hispanic";

/// What is run, the floor first: its name, the largest ratio to the floor that is aimed at, and the query over `TABLE`.
const JOBS: &[(&str, f64, &str)] = &[
    (
        "floor",
        1.0,
        "SELECT patient_id, QI, diagnosis FROM TABLE ORDER BY patient_id",
    ),
    (
        "eir",
        8.0,
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, BLOCK seed => 1)",
    ),
    (
        "eir_danonyir",
        4.0,
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
         algorithm => 'danonyir', BLOCK seed => 1)",
    ),
    (
        "ir",
        8.0,
        "SELECT * FROM anonymize_ir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, BLOCK seed => 1)",
    ),
    (
        "p_sensitive",
        8.0,
        "SELECT * FROM anonymize_p_sensitive(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, p => 3, \
         BLOCK seed => 1)",
    ),
    // Its individuals have one record each.
    (
        "lgb",
        4.0,
        "SELECT * FROM anonymize_lgb((SELECT QI, diagnosis, birth_year % 5 = 0 AS hidden FROM TABLE), \
         one_row_per_individual => true, qi => [QI], semi_sensitive => {birth_year: hidden}, sensitive => diagnosis, \
         k => 6, l => 4, BLOCK seed => 1)",
    ),
    (
        "slppa",
        4.0,
        "SELECT * FROM anatomize_slppa((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, qi => [QI], \
         sensitive => diagnosis, alpha => 0.5, beta => 0.25, gamma => 0.1, delta => 0.3, tables => 3, BLOCK seed => 1)",
    ),
];

/// Sizes of blocks to compare; 0 is all individuals.
const BLOCKS: [u64; 6] = [1_000, 5_000, 10_000, 25_000, 50_000, 0];

pub fn print(options: &Options) -> Result<()> {
    print_machine(options);
    let sizes = options.sizes();
    for size in &sizes {
        make(*size)?;
    }
    print_growth(options, &sizes)?;
    if options.threads {
        print_threads(options, sizes[sizes.len().saturating_sub(1)])?;
    }
    if options.blocks {
        print_blocks(options, sizes[sizes.len().saturating_sub(2)])?;
    }
    Ok(())
}

fn print_machine(options: &Options) {
    let said = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).output();
        let text = done.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
        text.unwrap_or_default()
    };
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|l| l.strip_prefix("model name"));
    let cpu = cpu.map_or("", |l| l.trim_start_matches([' ', '\t', ':']));
    println!(
        "{} cores of {cpu}, {} MB, {}, commit {}, load {}, pool {}\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        said("free", &["-m"])
            .lines()
            .nth(1)
            .and_then(|l| l.split_whitespace().nth(1))
            .unwrap_or("?"),
        said("date", &["-u", "+%Y-%m-%d"]),
        said("git", &["rev-parse", "--short", "HEAD"]),
        said("cut", &["-d ", "-f1", "/proc/loadavg"]),
        options
            .pool
            .map_or("without limit".to_owned(), |mb| format!("{mb} MB")),
    );
}

fn table(size: u64) -> PathBuf {
    folder().join(format!("patients-{size}"))
}

/// Writes the patients, once.
fn make(size: u64) -> Result<()> {
    let output = table(size);
    if output.exists() {
        return Ok(());
    }
    let unfinished = output.with_extension("part");
    measure(&Job {
        sql: format!("SELECT * FROM sample_patients({size}, 1)"),
        output: unfinished.clone(),
        threads: 2,
        pool: None,
        hash: false,
    })?;
    Ok(std::fs::rename(unfinished, output)?)
}

fn job(query: &str, size: u64, block: Option<u64>, threads: usize, pool: Option<u64>) -> Job {
    let block = match block {
        None => String::new(),
        Some(0) => "block => 'all',".to_owned(),
        Some(n) => format!("block => {n},"),
    };
    let sql = query
        .replace("TABLE", &quoted(&table(size)))
        .replace("QI", QI)
        .replace("BLOCK", &block);
    Job {
        sql,
        output: folder().join("out"),
        threads,
        pool: pool.map(|mb| mb << 20),
        hash: false,
    }
}

/// A folder as a table.
fn quoted(path: &Path) -> String {
    format!("'{}/'", path.display())
}

/// The number of rows in a folder and a hash of them.
fn rows(path: &Path) -> Result<(u64, u64)> {
    let said = measure(&Job {
        sql: format!("SELECT * FROM {}", quoted(path)),
        output: PathBuf::new(),
        threads: 2,
        pool: None,
        hash: true,
    })?
    .said;
    Ok((said.records, said.rows))
}

fn print_growth(options: &Options, sizes: &[u64]) -> Result<()> {
    println!(
        "| job | individuals | records | seconds | CPU s | records/s | × floor | × floor (CPU) | aim | peak MB | spills | spilled MB | loss | blocks | same rows |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut growth = vec![];
    let mut floors: Vec<Measured> = vec![];
    let mut records = vec![];
    for size in sizes {
        records.push(rows(&table(*size))?.0);
    }
    for (name, aim, query) in JOBS.iter().filter(|(name, ..)| options.wants(name)) {
        let mut times = vec![];
        for (at, size) in sizes.iter().enumerate() {
            // Large ones take long enough to be measured once.
            let repeat = if at + 1 == sizes.len() && at > 0 {
                1
            } else {
                options.repeat
            };
            let it = best(&job(query, *size, None, 2, options.pool), repeat)?;
            let same = match options.pool {
                Some(_) if *name != "floor" => {
                    let limited = rows(&folder().join("out"))?;
                    measure(&job(query, *size, None, 2, None))?;
                    let same = limited == rows(&folder().join("out"))?;
                    if same { "yes" } else { "NO" }
                }
                _ => "",
            };
            if *name == "floor" {
                floors.push(it.clone());
            }
            let (said, floor) = (&it.said, &floors[at].said);
            println!(
                "| {name} | {size} | {} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {aim} | {:.0} | {} | {:.0} | {} | {} | {same} |",
                records[at],
                said.seconds,
                said.cpu_seconds,
                records[at] as f64 / said.seconds,
                said.seconds / floor.seconds,
                said.cpu_seconds / floor.cpu_seconds,
                it.peak,
                said.spills,
                said.spilled_bytes as f64 / f64::from(1 << 20),
                said.loss.map_or(String::new(), |loss| format!("{loss:.4}")),
                said.blocks,
            );
            times.push((*size as f64, said.cpu_seconds));
        }
        growth.push((*name, times));
    }
    println!("\n| job | growth exponent of CPU time, over the last step |");
    println!("|---|---|");
    for (name, times) in growth {
        if let [.., (n, a), (m, b)] = times[..] {
            println!("| {name} | {:.2} |", (b / a).ln() / (m / n).ln());
        }
    }
    println!();
    Ok(())
}

fn print_threads(options: &Options, size: u64) -> Result<()> {
    println!("| job | individuals | one core, s | two cores, s | times as fast |");
    println!("|---|---|---|---|---|");
    for (name, _, query) in JOBS.iter().filter(|(name, ..)| options.wants(name)) {
        let one = best(&job(query, size, None, 1, options.pool), 1)?
            .said
            .seconds;
        let two = best(&job(query, size, None, 2, options.pool), 1)?
            .said
            .seconds;
        println!(
            "| {name} | {size} | {one:.2} | {two:.2} | {:.2} |",
            one / two
        );
    }
    println!();
    Ok(())
}

fn print_blocks(options: &Options, size: u64) -> Result<()> {
    println!("| job | individuals | block | loss | classes | suppressed | CPU s | peak MB |");
    println!("|---|---|---|---|---|---|---|---|");
    let jobs = JOBS.iter().filter(|(name, ..)| options.wants(name));
    for (name, _, query) in jobs.filter(|(_, _, query)| query.contains("BLOCK")) {
        for block in BLOCKS {
            let it = measure(&job(query, size, Some(block), 2, None))?;
            let said = &it.said;
            println!(
                "| {name} | {size} | {} | {} | {} | {} | {:.2} | {:.0} |",
                if block == 0 {
                    "all".to_owned()
                } else {
                    block.to_string()
                },
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
