//! What is run.

use std::path::{Path, PathBuf};

use datafusion::common::Result;

use crate::data::{folder, labels, published, quoted, table};
use crate::job::{Job, Work};
use crate::options::Options;

/// All quasi-identifiers of `sample_patients`.
const QI: &str =
    "birth_month, birth_year, sex, race, education_years, marital_status, poverty, hispanic";

/// One job at all sizes.
#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    /// The largest ratio to the floor that is aimed at, if any.
    pub aim: Option<f64>,
    /// `TABLE` stands for the patients, `QI` for their quasi-identifiers, `LABELS` for the folder of hierarchies,
    /// `BLOCK` for a size of blocks, `PUBLISHED` for a published table, `RELEASE` for where to publish.
    query: &'static str,
}

/// The same columns, sorted by id and written.
const FLOOR: &str = "floor";

/// 4 × the floor for what cuts (Mondrian and its kin), anatomizes, or forms classes by DAnonyIR; 8 × for what optimizes.
pub const JOBS: &[Entry] = &[
    Entry {
        name: FLOOR,
        aim: None,
        query: "SELECT patient_id, QI, diagnosis FROM TABLE ORDER BY patient_id",
    },
    Entry {
        name: "eir",
        aim: Some(8.0),
        query: "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                BLOCK seed => 1)",
    },
    Entry {
        name: "eir_danonyir",
        aim: Some(4.0),
        query: "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'danonyir', BLOCK seed => 1)",
    },
    Entry {
        name: "eir_mondrian",
        aim: Some(4.0),
        query: "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'mondrian', BLOCK seed => 1)",
    },
    Entry {
        name: "eir_best_cut",
        aim: Some(4.0),
        query: "SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, l => 6, \
                algorithm => 'best_cut', BLOCK seed => 1)",
    },
    Entry {
        name: "ir",
        aim: Some(8.0),
        query: "SELECT * FROM anonymize_ir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, \
                BLOCK seed => 1)",
    },
    Entry {
        name: "ir_mondrian",
        aim: Some(4.0),
        query: "SELECT * FROM anonymize_ir(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 6, \
                algorithm => 'mondrian', BLOCK seed => 1)",
    },
    Entry {
        name: "p_sensitive",
        aim: Some(8.0),
        query: "SELECT * FROM anonymize_p_sensitive(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, \
                k => 6, p => 3, BLOCK seed => 1)",
    },
    // From here on some take each record for an individual.
    Entry {
        name: "localpk",
        aim: Some(10.0),
        query: "SELECT * FROM anonymize_p_sensitive((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, \
                qi => [QI], sensitive => diagnosis, k => 6, p => 3, algorithm => 'localpk', hierarchy => { \
                birth_month: 'bins(3, 6)', birth_year: 'bins(5, 20)', sex: 'LABELS/sex.csv', race: 'LABELS/race.csv', \
                education_years: 'bins(3, 6)', marital_status: 'LABELS/marital_status.csv', \
                poverty: 'LABELS/poverty.csv', hispanic: 'LABELS/hispanic.csv'}, BLOCK seed => 1)",
    },
    Entry {
        name: "kl",
        aim: Some(4.0),
        query: "SELECT * FROM anonymize_kl(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 10, l => 4, \
                hierarchy => {diagnosis: 'LABELS/diagnosis.csv'}, BLOCK seed => 1)",
    },
    // A baseline, for which nothing is aimed at; its time grows with the square of its blocks.
    Entry {
        name: "kkm",
        aim: None,
        query: "SELECT * FROM anonymize_kkm(TABLE, id => patient_id, qi => [QI], sensitive => diagnosis, k => 10, \
                m => 2, delta => 0.5, hierarchy => {diagnosis: 'LABELS/diagnosis.csv'}, block => 5000, seed => 1)",
    },
    Entry {
        name: "lgb",
        aim: Some(6.0),
        query: "SELECT * FROM anonymize_lgb((SELECT QI, diagnosis, birth_year % 5 = 0 AS hidden FROM TABLE), \
                one_row_per_individual => true, qi => [QI], semi_sensitive => {birth_year: hidden}, \
                sensitive => diagnosis, k => 6, l => 4, BLOCK seed => 1)",
    },
    Entry {
        name: "slppa",
        aim: Some(4.0),
        query: "SELECT * FROM anatomize_slppa((SELECT QI, diagnosis FROM TABLE), one_row_per_individual => true, \
                qi => [QI], sensitive => diagnosis, alpha => 0.5, beta => 0.25, gamma => 0.1, delta => 0.3, \
                tables => 3, BLOCK seed => 1)",
    },
    // A whole release: written, read again, verified, measured, compared with its input.
    Entry {
        name: "publish",
        aim: None,
        query: "SELECT * FROM publish('RELEASE', (SELECT * FROM anonymize_eir(TABLE, id => patient_id, qi => [QI], \
                sensitive => diagnosis, l => 6, BLOCK seed => 1)))",
    },
    Entry {
        name: "audit",
        aim: None,
        query: "SELECT * FROM audit(PUBLISHED, id => individual, qi => [QI], sensitive => diagnosis)",
    },
];

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

    /// The folder of the rows that its last run has written.
    pub fn rows(&self) -> Result<PathBuf> {
        if !self.query.contains("RELEASE") {
            return Ok(output());
        }
        let data = std::fs::read_dir(release())?.flatten().map(|e| e.path());
        let data = data.filter(|path| path.is_dir()).collect::<Vec<_>>();
        Ok(data.first().cloned().unwrap_or_default())
    }
}

/// Those that are wanted. The others are measured beside the floor, so that one always is.
pub fn wanted(options: &Options) -> Vec<&'static Entry> {
    let wanted = |job: &&Entry| job.is_floor() || options.wants(job.name);
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
