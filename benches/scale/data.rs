//! What jobs read, made once: the patients, hierarchies of their columns, a published table.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::common::Result;

use crate::job::{Job, Work};
use crate::jobs::{Entry, QI, copy};
use crate::measured::measure;

/// Columns with a hierarchy in a file.
const LABELLED: [&str; 6] = [
    "sex",
    "race",
    "marital_status",
    "poverty",
    "hispanic",
    "diagnosis",
];

/// Where data and results are.
pub fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    );
    target.join("scale")
}

/// Where jobs spill.
pub fn temporary() -> PathBuf {
    folder().join("tmp")
}

pub fn table(individuals: u64) -> PathBuf {
    folder().join(format!("patients-{individuals}"))
}

pub fn labels(individuals: u64) -> PathBuf {
    folder().join(format!("labels-{individuals}"))
}

pub fn published(individuals: u64) -> PathBuf {
    folder().join(format!("published-{individuals}"))
}

/// A folder as a table.
pub fn quoted(path: &Path) -> String {
    format!("'{}/'", path.display())
}

/// Makes what is missing for so many individuals.
pub fn make(individuals: u64, jobs: &[&Entry]) -> Result<()> {
    fs::create_dir_all(temporary())?;
    once(&table(individuals), |output| {
        let patients = format!("SELECT * FROM sample_patients({individuals}, 1)");
        run(copy(&patients, output))
    })?;
    once(&labels(individuals), |output| {
        fs::create_dir_all(output)?;
        for column in LABELLED {
            let file = output.join(format!("{column}.csv"));
            run(format!(
                "COPY (SELECT * FROM hierarchy({}, column => {column}, by => 'even(5)')) TO '{}' STORED AS CSV \
                 OPTIONS ('format.has_header' 'false', 'format.delimiter' ';')",
                quoted(&table(individuals)),
                file.display()
            ))?;
        }
        Ok(())
    })?;
    if jobs.iter().any(|job| job.needs_published()) {
        once(&published(individuals), |output| {
            // With the original ids, so that everybody can be compared with itself.
            run(copy(
                &format!(
                    "SELECT * FROM anonymize_eir((SELECT *, patient_id AS original_id FROM {}), id => patient_id, \
                     qi => [{QI}], sensitive => diagnosis, keep => [original_id], l => 6, algorithm => 'danonyir', \
                     seed => 1)",
                    quoted(&table(individuals))
                ),
                output,
            ))
        })?;
    }
    Ok(())
}

/// Nobody takes what is not finished for the whole.
fn once(output: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if output.exists() {
        return Ok(());
    }
    let unfinished = output.with_extension("part");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    make(&unfinished)?;
    Ok(fs::rename(unfinished, output)?)
}

fn run(sql: String) -> Result<()> {
    let job = Job {
        sql,
        outputs: vec![],
        threads: 2,
        pool: None,
        work: Work::Run,
    };
    measure(&job).map(|_| ())
}

/// The number of rows in a folder and a hash of them, whatever their order.
pub fn rows(path: &Path) -> Result<(u64, u64)> {
    let job = Job {
        sql: format!("SELECT * FROM {}", quoted(path)),
        outputs: vec![],
        threads: 2,
        pool: None,
        work: Work::Hash,
    };
    let said = measure(&job)?.said;
    Ok((said.records, said.rows))
}
