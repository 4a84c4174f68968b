//! `sample_patients(individuals => n, seed => s)`: a made-up hospital table to try things on.
//!
//! One row per patient and diagnosis. Nobody in it exists, but it has what makes real tables hard to
//! publish: many records per person, a few people with very many, rare combinations of
//! quasi-identifiers, a few common diagnoses and a long tail of rare ones, and all of it correlated.
//!
//! | column | type | values |
//! |---|---|---|
//! | `patient_id` | text | `P` and 8 digits, in no order |
//! | `birth_month` | integer | 1 to 12 |
//! | `birth_year` | integer | 1939 to 2020 |
//! | `sex` | text | `F`, `M` |
//! | `race` | text | 6 |
//! | `education_years` | integer | 9, from 0 to 18 |
//! | `marital_status` | text | 6 |
//! | `poverty` | text | 5, from `poor` to `high` income |
//! | `hispanic` | text | `yes`, `no` |
//! | `ward` | text | 12 |
//! | `visit_date` | date | 2023 and 2024 |
//! | `diagnosis` | text | 619 codes in the manner of ICD-9, Zipf-like within a chapter |
//!
//! A patient has 9.3 diagnoses on average, from 1 to 64, all different.

mod alias;
mod diagnosis;
mod patient;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, Date32Builder, Int32Builder, RecordBatch, StringViewBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::{Result, plan_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

use patient::{MAX_DIAGNOSES, Patient, Population};

/// Most individuals that 8 digits can name.
const MAX_INDIVIDUALS: u64 = 100_000_000;
/// A partition has at least this many individuals, so that small samples stay in one.
const INDIVIDUALS_PER_PARTITION: u64 = 4096;
const MAX_PARTITIONS: u64 = 8;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name| Field::new(name, DataType::Utf8View, false);
    let number = |name| Field::new(name, DataType::Int32, false);
    Arc::new(Schema::new(vec![
        text("patient_id"),
        number("birth_month"),
        number("birth_year"),
        text("sex"),
        text("race"),
        number("education_years"),
        text("marital_status"),
        text("poverty"),
        text("hispanic"),
        text("ward"),
        Field::new("visit_date", DataType::Date32, false),
        text("diagnosis"),
    ]))
});

/// A table of `individuals` made-up patients, about 9.3 records each.
///
/// The rows depend on `individuals` and `seed` alone. They are made while they are read, so a large
/// sample needs no more memory than a small one.
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let context = SessionContext::new();
/// context.register_table("patients", datafusion_anonymize::sample_patients(100, 1)?)?;
/// let women = context.sql("SELECT DISTINCT patient_id FROM patients WHERE sex = 'F'").await?;
/// assert!((40..70).contains(&women.count().await?));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// If `individuals` is 0 or above 100,000,000.
pub fn sample_patients(individuals: u64, seed: u64) -> Result<Arc<dyn TableProvider>> {
    if !(1..=MAX_INDIVIDUALS).contains(&individuals) {
        return plan_err!(
            "sample_patients: argument individuals must be between 1 and {MAX_INDIVIDUALS}, got {individuals}"
        );
    }
    let sample = Sample::new(seed);
    let partitions = individuals
        .div_ceil(INDIVIDUALS_PER_PARTITION)
        .min(MAX_PARTITIONS);
    let partitions = (0..partitions)
        .map(|i| individuals * i / partitions..individuals * (i + 1) / partitions)
        .map(|numbers| Arc::new(Partition { sample, numbers }) as Arc<dyn PartitionStream>)
        .collect();
    Ok(Arc::new(StreamingTable::try_new(
        Arc::clone(&SCHEMA),
        partitions,
    )?))
}

/// What the seed decides.
#[derive(Clone, Copy, Debug)]
struct Sample {
    patients: [u8; 32],
    ids: [u64; 4],
}

impl Sample {
    fn new(seed: u64) -> Self {
        let key = |purpose: &str| blake3::derive_key(purpose, &seed.to_le_bytes());
        let ids = key("datafusion-anonymize sample_patients ids");
        Self {
            patients: key("datafusion-anonymize sample_patients patients"),
            ids: std::array::from_fn(|i| {
                ids[8 * i..8 * i + 8]
                    .iter()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte))
            }),
        }
    }

    /// The 8 digits of a patient: a permutation of 0..10^8 (a Feistel network over two halves of four
    /// digits), so that ids are different and say nothing about the order.
    fn digits(&self, number: u64) -> u64 {
        const HALF: u64 = 10_000;
        let (left, right) = self
            .ids
            .iter()
            .fold((number / HALF, number % HALF), |(left, right), key| {
                (right, (left + mix(right ^ key) % HALF) % HALF)
            });
        left * HALF + right
    }
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A range of patients.
#[derive(Debug)]
struct Partition {
    sample: Sample,
    numbers: Range<u64>,
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &SCHEMA
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let sample = self.sample;
        let mut numbers = self.numbers.clone();
        let target = context.session_config().batch_size();
        let batches = std::iter::from_fn(move || {
            if numbers.is_empty() {
                return None;
            }
            let population = Population::shared();
            let mut rows = PatientRows::with_capacity(target.max(MAX_DIAGNOSES));
            while rows.len() == 0 || rows.len() + MAX_DIAGNOSES <= target {
                let Some(number) = numbers.next() else { break };
                rows.append(
                    sample.digits(number),
                    &population.patient(sample.patients, number),
                    population,
                );
            }
            Some(rows.finish())
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&SCHEMA),
            futures::stream::iter(batches),
        ))
    }
}

/// The columns of a batch in the making.
struct PatientRows {
    patient_id: StringViewBuilder,
    birth_month: Int32Builder,
    birth_year: Int32Builder,
    sex: StringViewBuilder,
    race: StringViewBuilder,
    education_years: Int32Builder,
    marital_status: StringViewBuilder,
    poverty: StringViewBuilder,
    hispanic: StringViewBuilder,
    ward: StringViewBuilder,
    visit_date: Date32Builder,
    diagnosis: StringViewBuilder,
}

impl PatientRows {
    fn with_capacity(rows: usize) -> Self {
        let text = || StringViewBuilder::with_capacity(rows);
        let number = || Int32Builder::with_capacity(rows);
        Self {
            patient_id: text(),
            birth_month: number(),
            birth_year: number(),
            sex: text(),
            race: text(),
            education_years: number(),
            marital_status: text(),
            poverty: text(),
            hispanic: text(),
            ward: text(),
            visit_date: Date32Builder::with_capacity(rows),
            diagnosis: text(),
        }
    }

    fn len(&self) -> usize {
        self.birth_month.values_slice().len()
    }

    fn append(&mut self, digits: u64, patient: &Patient, population: &Population) {
        let patient_id = format!("P{digits:08}");
        for treatment in &patient.treatments {
            self.patient_id.append_value(&patient_id);
            self.birth_month.append_value(patient.birth_month);
            self.birth_year.append_value(patient.birth_year);
            self.sex.append_value(patient.sex.name());
            self.race.append_value(patient.race);
            self.education_years.append_value(patient.education_years);
            self.marital_status.append_value(patient.marital_status);
            self.poverty.append_value(patient.poverty);
            self.hispanic.append_value(patient.hispanic);
            self.ward.append_value(treatment.ward.name());
            self.visit_date.append_value(treatment.visit_date);
            self.diagnosis
                .append_value(population.diagnoses.code(treatment.diagnosis));
        }
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.patient_id.finish()),
            Arc::new(self.birth_month.finish()),
            Arc::new(self.birth_year.finish()),
            Arc::new(self.sex.finish()),
            Arc::new(self.race.finish()),
            Arc::new(self.education_years.finish()),
            Arc::new(self.marital_status.finish()),
            Arc::new(self.poverty.finish()),
            Arc::new(self.hispanic.finish()),
            Arc::new(self.ward.finish()),
            Arc::new(self.visit_date.finish()),
            Arc::new(self.diagnosis.finish()),
        ];
        Ok(RecordBatch::try_new(Arc::clone(&SCHEMA), columns)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::prelude::{SessionConfig, SessionContext};

    #[tokio::test]
    async fn same_seed_same_rows_whatever_the_batch_size_and_threads() -> Result<()> {
        let query = "SELECT * FROM sample ORDER BY patient_id, visit_date, diagnosis";
        let [small, large] = [(100, 1), (8192, 4)].map(|(batch_size, partitions)| {
            let config = SessionConfig::new()
                .with_batch_size(batch_size)
                .with_target_partitions(partitions);
            SessionContext::new_with_config(config)
        });
        let small = rows(&small, 5000, 3, query).await?;
        assert_eq!(small, rows(&large, 5000, 3, query).await?);
        assert_ne!(small, rows(&large, 5000, 4, query).await?);
        Ok(())
    }

    #[tokio::test]
    async fn columns_have_the_documented_numbers_of_values() -> Result<()> {
        let query = "SELECT count(DISTINCT patient_id), count(DISTINCT birth_month), \
            count(DISTINCT birth_year), count(DISTINCT sex), count(DISTINCT race), \
            count(DISTINCT education_years), count(DISTINCT marital_status), \
            count(DISTINCT poverty), count(DISTINCT hispanic), count(DISTINCT ward), \
            count(DISTINCT diagnosis), min(birth_year), max(birth_year), \
            min(visit_date), max(visit_date) FROM sample";
        let expected = "20000 12 82 2 6 9 6 5 2 12 619 1939 2020 2023-01-01 2024-12-31";
        assert_eq!(
            rows(&SessionContext::new(), 20_000, 1, query).await?,
            [expected]
        );
        Ok(())
    }

    #[tokio::test]
    async fn patients_have_9_3_diagnoses_on_average_and_few_have_many() -> Result<()> {
        let query = "SELECT avg(n) BETWEEN 8.8 AND 9.8, min(n), \
            avg(CASE WHEN n <= 3 THEN 1.0 ELSE 0.0 END) BETWEEN 0.2 AND 0.5, \
            avg(CASE WHEN n >= 40 THEN 1.0 ELSE 0.0 END) BETWEEN 0.005 AND 0.05 \
            FROM (SELECT count(*) AS n FROM sample GROUP BY patient_id)";
        assert_eq!(
            rows(&SessionContext::new(), 20_000, 1, query).await?,
            ["true 1 true true"]
        );
        Ok(())
    }

    #[tokio::test]
    async fn the_commonest_diagnosis_is_held_by_a_quarter() -> Result<()> {
        let query = "SELECT diagnosis, count(*) BETWEEN 4000 AND 6000 FROM sample \
            GROUP BY diagnosis ORDER BY count(*) DESC LIMIT 1";
        assert_eq!(
            rows(&SessionContext::new(), 20_000, 1, query).await?,
            ["401 true"]
        );
        Ok(())
    }

    #[tokio::test]
    async fn rows_are_distinct_and_patients_consistent() -> Result<()> {
        let query = "SELECT count(*) = count(DISTINCT patient_id || diagnosis), \
            (SELECT count(*) FROM (SELECT DISTINCT patient_id, birth_month, birth_year, sex, race, \
             education_years, marital_status, poverty, hispanic FROM sample)) FROM sample";
        assert_eq!(
            rows(&SessionContext::new(), 5000, 1, query).await?,
            ["true 5000"]
        );
        Ok(())
    }

    #[tokio::test]
    async fn diagnoses_fit_age_and_sex() -> Result<()> {
        let query = "SELECT count(*) FROM sample WHERE (sex = 'M' AND diagnosis BETWEEN '610' AND '679') \
            OR (sex = 'F' AND diagnosis BETWEEN '600' AND '608') \
            OR (birth_year > 2009 AND diagnosis BETWEEN '630' AND '679')";
        assert_eq!(rows(&SessionContext::new(), 5000, 1, query).await?, ["0"]);
        Ok(())
    }

    #[test]
    fn ids_are_a_permutation() {
        let sample = Sample::new(5);
        let mut digits: Vec<u64> = (0..200_000).map(|number| sample.digits(number)).collect();
        assert!(!digits.is_sorted() && digits.iter().all(|digits| *digits < MAX_INDIVIDUALS));
        digits.sort_unstable();
        digits.dedup();
        assert_eq!(digits.len(), 200_000);
    }

    #[test]
    fn individuals_out_of_range_are_refused() {
        for individuals in [0, MAX_INDIVIDUALS + 1] {
            let error = sample_patients(individuals, 1).map(|_| ());
            assert!(error.is_err_and(|error| error.to_string().contains("individuals")));
        }
    }

    /// The rows of a query over `sample`, values separated by spaces.
    async fn rows(
        context: &SessionContext,
        individuals: u64,
        seed: u64,
        query: &str,
    ) -> Result<Vec<String>> {
        context.deregister_table("sample")?;
        context.register_table("sample", sample_patients(individuals, seed)?)?;
        let mut rows = vec![];
        for batch in context.sql(query).await?.collect().await? {
            for row in 0..batch.num_rows() {
                let values: Result<Vec<_>, _> = batch
                    .columns()
                    .iter()
                    .map(|c| array_value_to_string(c, row))
                    .collect();
                rows.push(values?.join(" "));
            }
        }
        Ok(rows)
    }
}
