//! `anonymize demo`: the whole way, on made-up patients.

mod folder;
mod published;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::{MaskErrors, Summary};

use crate::Failure;
use crate::output::{Output, end_at_interrupt};
use crate::progress::Progress;
use folder::Folder;
use published::Published;

/// See it work on made-up data: makes patients, anonymizes them, writes Parquet, shows the result.
///
/// Makes a hospital table of patients with about nine diagnoses each, anonymizes it with EIR
/// l-diversity, writes Parquet files, reads them back, and shows the table before and after, what is
/// guaranteed, what it cost, and the SQL it ran. Takes seconds for 10000 individuals.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER_HELP)]
pub struct Args {
    /// Patients to make
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    individuals: u64,

    /// Different diagnoses that every class must keep apart; more is safer and loses more detail
    #[arg(long, value_name = "L", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(2..))]
    l: u32,

    /// Folder to write to; it must be empty or not exist [default: a new one among temporary files]
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Makes the run repeatable [default: the same patients every time, other pseudonyms and order]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

const AFTER_HELP: &str = "\
Examples:
  anonymize demo
  anonymize demo --individuals 100000 --l 6 --output published

Exit codes:
  0    done
  1    failed, or the output folder is not empty
  2    wrong usage
  130  interrupted (Ctrl-C)
  141  whoever read the output went away";

/// Seed of the patients when none is given.
const USUAL_SEED: u64 = 1;
/// Records in an excerpt.
const EXCERPT: usize = 8;

/// The quasi-identifiers, and how to head them where room is short.
const QI: [(&str, &str); 8] = [
    ("birth_month", "month"),
    ("birth_year", "year"),
    ("sex", "sex"),
    ("race", "race"),
    ("education_years", "school"),
    ("marital_status", "marital"),
    ("poverty", "poverty"),
    ("hispanic", "hispanic"),
];

pub async fn run(args: Args) -> Result<(), Failure> {
    end_at_interrupt()?;
    let folder = Folder::prepare(args.output.as_deref())?;
    let done = Demo::new(&args, &folder)?.run().await;
    if done.is_err() {
        folder.discard();
    }
    done
}

struct Demo<'a> {
    context: SessionContext,
    args: &'a Args,
    folder: &'a Folder,
    seed: u64,
    times: Vec<(&'static str, Duration)>,
}

impl<'a> Demo<'a> {
    fn new(args: &'a Args, folder: &'a Folder) -> Result<Self> {
        let config = SessionConfig::new().with_extension(Arc::new(MaskErrors));
        let context = SessionContext::new_with_config(config);
        datafusion_anonymize::register_all(&context)?;
        let seed = args.seed.unwrap_or(USUAL_SEED);
        Ok(Self {
            context,
            args,
            folder,
            seed,
            times: vec![],
        })
    }

    async fn run(mut self) -> Result<(), Failure> {
        self.query(&self.patients_sql()).await?;
        let counts = self.timed("make patients", COUNTS).await?;
        let (records, individuals) = (integer(&counts, 0), integer(&counts, 1));
        say(&format!(
            "Before: {} made-up patients with {} records. For example:",
            grouped(individuals),
            grouped(records),
        ))?;
        let examples = self.query(&examples_sql()).await?;
        say(&pretty_format_batches(&examples)?.to_string())?;

        let summary = self.anonymize().await?;

        self.query(&self.published_sql()).await?;
        let schema = self.context.table_provider("published").await?.schema();
        let published = Published::new(&QI, &schema);
        self.query(&published.view()).await?;
        self.show_class(&published).await?;
        self.show_guarantee()?;
        let classes = self.timed("read back", &published.class_sizes()).await?;
        self.show_figures(records, individuals, summary, &classes)?;
        self.show_sql()
    }

    /// Runs the job itself, through its physical plan, because that knows afterwards what was done.
    async fn anonymize(&mut self) -> Result<Option<Summary>> {
        let start = Instant::now();
        let progress = Progress::start("anonymizing");
        let frame = self.context.sql(&self.copy_sql()).await?;
        let task = frame.task_ctx().into();
        let plan = frame.create_physical_plan().await?;
        collect(plan.clone(), task).await?;
        drop(progress);
        self.times.push(("anonymize and write", start.elapsed()));
        Ok(Summary::of(&plan))
    }

    async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let _progress = Progress::start("querying");
        self.context.sql(sql).await?.collect().await
    }

    async fn timed(&mut self, step: &'static str, sql: &str) -> Result<Vec<RecordBatch>> {
        let start = Instant::now();
        let batches = self.query(sql).await?;
        self.times.push((step, start.elapsed()));
        Ok(batches)
    }

    /// Shows the class of the first example, two records of each of its individuals.
    async fn show_class(&self, published: &Published) -> Result<(), Failure> {
        let patient = self.query(EXAMPLE).await?;
        let patient = text(&patient, 0);
        let mut class = self.query(&published.class_of(&patient)).await?;
        let found = class.iter().any(|batch| batch.num_rows() > 0);
        if !found {
            class = self.query(&published.any_class()).await?;
        }
        say(&if found {
            format!("After: from the class in which patient {patient} now is, somewhere:")
        } else {
            "After: from one of the classes:".to_string()
        })?;
        say(&pretty_format_batches(&class)?.to_string())
    }

    fn show_guarantee(&self) -> Result<(), Failure> {
        let (l, fewer) = (self.args.l, self.args.l - 1);
        say(&format!(
            "\
What is guaranteed
  Whoever knows all of month, year, sex, race, school, marital, poverty and hispanic of a patient finds
  a class of at least {l} individuals who look the same, not the patient. Take one diagnosis of each of
  them, in whatever way: there are always at least {l} different ones, so no {fewer} diagnoses
  fit everybody in the class. This holds although a patient has many records (EIR {l}-diversity).
  It does not bound how likely each diagnosis is. Pseudonyms and order say nothing; columns that
  the SQL does not name (ward, visit_date) are not published."
        ))
    }

    fn show_figures(
        &self,
        records: u64,
        individuals: u64,
        summary: Option<Summary>,
        classes: &[RecordBatch],
    ) -> Result<(), Failure> {
        let published = integer(classes, 4);
        let mut lines = vec![
            (
                "individuals",
                format!(
                    "{} of {} published",
                    grouped(published),
                    grouped(individuals)
                ),
            ),
            (
                "records",
                format!(
                    "{} of {} published",
                    grouped(integer(classes, 5)),
                    grouped(records)
                ),
            ),
            ("classes", grouped(integer(classes, 0))),
            (
                "individuals per class",
                format!(
                    "{} at least, {} in the median, {} at most",
                    grouped(integer(classes, 1)),
                    text(classes, 2),
                    grouped(integer(classes, 3)),
                ),
            ),
            (
                "suppressed individuals",
                grouped(individuals - published.min(individuals)),
            ),
        ];
        if let Some(summary) = summary {
            lines.push((
                "information loss",
                format!("{:.4}", summary.information_loss),
            ));
        }
        say("What it cost")?;
        for (name, value) in &lines {
            writeln!(Output, "  {name:<28}{value}")?;
        }
        for (step, time) in &self.times {
            writeln!(
                Output,
                "  {:<28}{:.2} seconds",
                format!("time to {step}"),
                time.as_secs_f64()
            )?;
        }
        Ok(())
    }

    fn show_sql(&self) -> Result<(), Failure> {
        say("The SQL, for 'anonymize sql'")?;
        for sql in [self.patients_sql(), self.copy_sql(), self.published_sql()] {
            writeln!(Output, "  {};", sql.replace('\n', "\n  "))?;
        }
        say(&format!("Written to {}", self.folder.path().display()))
    }

    fn patients_sql(&self) -> String {
        let (individuals, seed) = (self.args.individuals, self.seed);
        format!(
            "CREATE VIEW patients AS\n  \
               SELECT * FROM sample_patients(individuals => {individuals}, seed => {seed})"
        )
    }

    fn copy_sql(&self) -> String {
        let seed = self
            .args
            .seed
            .map(|seed| format!(", seed => {seed}"))
            .unwrap_or_default();
        format!(
            "COPY (\n  \
               SELECT * FROM anonymize_eir(\n    \
                 patients,\n    \
                 id => patient_id,\n    \
                 qi => [{}],\n    \
                 sensitive => diagnosis,\n    \
                 l => {}{seed})\n\
             ) TO {} STORED AS PARQUET",
            QI.map(|(column, _)| column).join(", "),
            self.args.l,
            self.folder.literal(),
        )
    }

    fn published_sql(&self) -> String {
        let folder = self.folder.literal();
        format!("CREATE EXTERNAL TABLE published STORED AS PARQUET LOCATION {folder}")
    }
}

const COUNTS: &str = "SELECT count(*), count(DISTINCT patient_id) FROM patients";

/// Two patients whose records fill the excerpt.
const EXAMPLES: &str = "SELECT patient_id FROM patients GROUP BY patient_id \
    ORDER BY abs(count(*) - 4), patient_id LIMIT 2";
const EXAMPLE: &str = "SELECT patient_id FROM patients GROUP BY patient_id \
    ORDER BY abs(count(*) - 4), patient_id LIMIT 1";

fn examples_sql() -> String {
    let columns = QI
        .map(|(column, heading)| format!("{column} AS {heading}"))
        .join(", ");
    format!(
        "SELECT patient_id, {columns}, diagnosis FROM patients \
         WHERE patient_id IN ({EXAMPLES}) ORDER BY patient_id, diagnosis LIMIT {EXCERPT}"
    )
}

/// A paragraph on standard output.
fn say(text: &str) -> Result<(), Failure> {
    Ok(writeln!(Output, "\n{text}")?)
}

/// A whole number of the only row of a result, 0 if there is none.
fn integer(batches: &[RecordBatch], column: usize) -> u64 {
    text(batches, column).parse().unwrap_or(0)
}

/// A value of the first row of a result as text, empty if there is none.
fn text(batches: &[RecordBatch], column: usize) -> String {
    batches
        .iter()
        .find(|batch| batch.num_rows() > 0)
        .and_then(|batch| ScalarValue::try_from_array(batch.column(column), 0).ok())
        .map(|value| value.to_string())
        .unwrap_or_default()
}

/// 12345 as 12,345.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped_by_three() {
        let grouped = [0, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(grouped, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
