//! What is run.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use datafusion::common::Result;

use crate::data::{folder, labels, published, quoted, rows, table};
use crate::job::{Job, Work};
use crate::options::Options;

/// All quasi-identifiers of `sample_patients`.
pub const QI: &str =
    "birth_month, birth_year, sex, race, education_years, marital_status, poverty, hispanic";

/// One job at all sizes.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub aim: Aim,
    /// `TABLE` stands for the patients, `QI` for their quasi-identifiers, `LABELS` for the folder of hierarchies,
    /// `BLOCK` for a size of blocks, `PUBLISHED` for a published table, `RELEASE` for where to publish.
    query: String,
}

/// The longest time that is aimed at.
#[derive(Debug, Clone, Copy)]
pub enum Aim {
    Nothing,
    /// So many floors.
    Floors(f64),
    /// As long as another job, and so many floors.
    Beside(&'static str, f64),
}

/// The same columns, sorted by id and written.
const FLOOR: &str = "floor";

/// What a release may take beside its function, in floors.
const RELEASE: f64 = 4.0;

/// What a comparison with the input may take, in floors.
const COMPARISON: f64 = 3.0;

/// What is formed: the name, the aim, and the query.
///
/// 4 × the floor for what cuts (Mondrian and its kin), anatomizes, or forms classes by DAnonyIR; 8 × for what optimizes.
const FORMED: &[(&str, Aim, &str)] = &[
    (
        "eir",
        Aim::Floors(8.0),
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                BLOCK seed => 1)",
    ),
    (
        "eir_danonyir",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'danonyir', BLOCK seed => 1)",
    ),
    (
        "eir_mondrian",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'mondrian', BLOCK seed => 1)",
    ),
    (
        "eir_best_cut",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'best_cut', BLOCK seed => 1)",
    ),
    (
        "ir",
        Aim::Floors(8.0),
        "SELECT * FROM anonymize_ir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, \
                BLOCK seed => 1)",
    ),
    (
        "ir_mondrian",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_ir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, \
                algorithm => 'mondrian', BLOCK seed => 1)",
    ),
    (
        "p_sensitive",
        Aim::Floors(8.0),
        "SELECT * FROM anonymize_p_sensitive(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, \
                k => 6, p => 3, BLOCK seed => 1)",
    ),
    // From here on some take each record for an individual.
    (
        "p_sensitive_rows",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_p_sensitive((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, \
                qi => [QI], sensitive => diagnosis, k => 6, p => 3, algorithm => 'mondrian', BLOCK seed => 1)",
    ),
    (
        "localpk",
        Aim::Floors(10.0),
        "SELECT * FROM anonymize_p_sensitive((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, \
                qi => [QI], sensitive => diagnosis, k => 6, p => 3, algorithm => 'localpk', hierarchy => { \
                birth_month: 'bins(3, 6)', birth_year: 'bins(5, 20)', sex: 'LABELS/sex.csv', race: 'LABELS/race.csv', \
                education_years: 'bins(3, 6)', marital_status: 'LABELS/marital_status.csv', \
                poverty: 'LABELS/poverty.csv', hispanic: 'LABELS/hispanic.csv'}, BLOCK seed => 1)",
    ),
    (
        "kl",
        Aim::Floors(4.0),
        "SELECT * FROM anonymize_kl(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 10, l => 4, \
                hierarchy => {diagnosis: 'LABELS/diagnosis.csv'}, BLOCK seed => 1)",
    ),
    // A baseline, for which nothing is aimed at; its time grows with the square of its blocks.
    (
        "kkm",
        Aim::Nothing,
        "SELECT * FROM anonymize_kkm(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 10, \
                m => 2, delta => 0.5, hierarchy => {diagnosis: 'LABELS/diagnosis.csv'}, block => 5000, seed => 1)",
    ),
    (
        "lgb",
        Aim::Floors(6.0),
        "SELECT * FROM anonymize_lgb((SELECT QI, diagnosis, birth_year % 5 = 0 AS hidden FROM TABLE), \
                one_row_per_individual => true, qi => [QI], semi_sensitive => {birth_year: hidden}, \
                sensitive => diagnosis, k => 6, l => 4, BLOCK seed => 1)",
    ),
    (
        "slppa",
        Aim::Floors(4.0),
        "SELECT * FROM anatomize_slppa((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, \
                qi => [QI], sensitive => diagnosis, alpha => 0.5, beta => 0.25, gamma => 0.1, delta => 0.3, \
                tables => 3, BLOCK seed => 1)",
    ),
];

/// What is measured of the published table.
const MEASURED: &[(&str, Aim, &str)] = &[
    (
        "audit",
        Aim::Floors(COMPARISON),
        "SELECT * FROM audit(PUBLISHED, id => individual, qi => [QI], sensitive => diagnosis)",
    ),
    (
        "audit_original",
        Aim::Floors(COMPARISON),
        "SELECT * FROM audit(PUBLISHED, id => original_id, qi => [QI], sensitive => diagnosis, original => TABLE, \
                original_id => patient_id, same_ids => true)",
    ),
    (
        "compare",
        Aim::Floors(COMPARISON),
        "SELECT * FROM information_loss(TABLE, PUBLISHED, original_id => patient_id, id => individual, qi => [QI], \
                sensitive => diagnosis)",
    ),
];

/// The floor, what is formed, each as a release, and what is measured.
pub static JOBS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entry = |(name, aim, query): &(&str, Aim, &str)| Entry {
        name: (*name).to_owned(),
        aim: *aim,
        query: (*query).to_owned(),
    };
    let floor = (
        FLOOR,
        Aim::Nothing,
        "SELECT patient_id, QI, diagnosis FROM TABLE ORDER BY patient_id",
    );
    let mut jobs = vec![entry(&floor)];
    jobs.extend(FORMED.iter().map(entry));
    // A whole release: written, read again, verified, measured, compared with its input.
    jobs.extend(FORMED.iter().map(|(name, _, query)| Entry {
        name: format!("publish_{name}"),
        aim: Aim::Beside(name, RELEASE),
        query: format!("SELECT * FROM publish('RELEASE', ({query}))"),
    }));
    jobs.extend(MEASURED.iter().map(entry));
    jobs
});

impl Entry {
    pub fn is_floor(&self) -> bool {
        self.name == FLOOR
    }

    /// Whether utility is measured against the size of blocks. The plan of a release does not show it.
    pub fn compares_blocks(&self) -> bool {
        self.query.contains("BLOCK") && !self.query.contains("RELEASE")
    }

    pub fn needs_published(&self) -> bool {
        self.query.contains("PUBLISHED")
    }

    /// The query over so many individuals; a block of 0 is all of them.
    pub fn sql(&self, individuals: u64, block: Option<u64>) -> String {
        let block = match block {
            None => String::new(),
            Some(0) => "block => 'all',".to_owned(),
            Some(n) => format!("block => {n},"),
        };
        self.query
            .replace("TABLE", &quoted(&table(individuals)))
            .replace("PUBLISHED", &quoted(&published(individuals)))
            .replace("LABELS", &labels(individuals).display().to_string())
            .replace("RELEASE", &release().display().to_string())
            .replace("QI", QI)
            .replace("BLOCK", &block)
    }

    /// The whole job: the result of the query in files.
    pub fn job(
        &self,
        individuals: u64,
        block: Option<u64>,
        threads: usize,
        pool: Option<u64>,
    ) -> Job {
        let query = self.query(individuals, block, threads, pool);
        Job {
            sql: copy(&query.sql, &output()),
            ..query
        }
    }

    /// The query alone, whose result goes nowhere.
    pub fn query(
        &self,
        individuals: u64,
        block: Option<u64>,
        threads: usize,
        pool: Option<u64>,
    ) -> Job {
        Job {
            sql: self.sql(individuals, block),
            outputs: vec![output(), release()],
            threads,
            pool: pool.map(|mb| mb << 20),
            work: Work::Run,
        }
    }

    /// How many rows, or files of a release, its last run has written, and a hash of them, whatever their order.
    pub fn written(&self) -> Result<(u64, u64)> {
        if !self.query.contains("RELEASE") {
            return rows(&output());
        }
        // With the same seed a release has the same bytes.
        let (mut files, mut sum) = (0, 0u64);
        let folders = std::fs::read_dir(release())?.collect::<std::io::Result<Vec<_>>>()?;
        for folder in folders.iter().filter(|entry| entry.path().is_dir()) {
            for file in std::fs::read_dir(folder.path())? {
                let hash = blake3::hash(&std::fs::read(file?.path())?);
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&hash.as_bytes()[..8]);
                sum = sum.wrapping_add(u64::from_be_bytes(bytes));
                files += 1;
            }
        }
        Ok((files, sum))
    }
}

/// Those that are wanted. The others are measured beside the floor, so that one always is.
pub fn wanted(options: &Options) -> Vec<&'static Entry> {
    let wanted = |job: &&Entry| job.is_floor() || options.wants(&job.name);
    JOBS.iter().filter(wanted).collect()
}

pub fn copy(query: &str, output: &Path) -> String {
    format!("COPY ({query}) TO {} STORED AS PARQUET", quoted(output))
}

/// Where the results of jobs go.
pub fn output() -> PathBuf {
    folder().join("out")
}

/// Where releases go.
pub fn release() -> PathBuf {
    folder().join("release")
}
