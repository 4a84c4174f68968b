//! `anonymize init`: a job to fill in, from what the columns of a file look like.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, UInt64Type};
use datafusion_anonymize::publish::{real_path, table_with, visible};
use datafusion_cli::pool_type::PoolType;

use crate::Failure;
use crate::failure::told;
use crate::job::{identifier, toml_text};
use crate::measure::quoted;
use crate::output::{Output, end_at_interrupt};
use crate::session::{Limits, session};

/// Write a job to fill in for a table, with what each column looks like.
///
/// Looks at names, types, and how many different values columns have, and suggests roles in comments. It
/// decides nothing: until somebody names the roles, 'anonymize run' refuses the job. No value of the table
/// is shown.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The table: a file, a folder, or a URL of Parquet, CSV, JSON, Avro or Arrow files
    file: String,

    /// Where to write the job; never overwrites [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    end_at_interrupt()?;
    let columns = look(&args.file, args.output.as_deref()).await;
    let columns = columns.map_err(|e| format!("cannot look at '{}': {}", args.file, told(e)))?;
    let job = job(&args.file, &columns);
    match &args.output {
        None => write!(Output, "{job}")?,
        Some(path) => {
            let file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(path);
            let mut file = file.map_err(|e| format!("cannot write '{}': {e}", path.display()))?;
            file.write_all(job.as_bytes())?;
            writeln!(
                Output,
                "wrote {}; name the roles in it, then: anonymize plan {0}",
                path.display()
            )?;
        }
    }
    Ok(())
}

/// What a column looks like.
struct Column {
    name: String,
    data_type: DataType,
    records: u64,
    known: u64,
    distinct: u64,
}

/// What a column may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Identifier,
    QuasiIdentifier,
    Sensitive,
    Unknown,
}

/// Looks at a table; refuses to write into it.
async fn look(file: &str, output: Option<&Path>) -> Result<Vec<Column>, Failure> {
    let limits = Limits {
        batch_size: None,
        memory_bytes: None,
        pool: PoolType::Fair,
        disk_bytes: None,
        sql_from_stdin: false,
        shows_values: false,
    };
    let (context, _) = session(&limits).await?;
    let table = quoted(file);
    let frame = context.sql(&format!("SELECT * FROM {table}")).await?;
    if let Some(output) = output
        && table_with(frame.logical_plan(), &real_path(output)?)?.is_some()
    {
        return Err("--output lies in the table; name a file elsewhere".into());
    }
    let fields = frame.schema().fields().clone();
    // Looked up once: to look at all values of a CSV file takes a pass over it.
    let table = "anonymize_init";
    context.register_table(table, frame.into_view())?;
    let mut columns = vec![];
    for field in fields.iter() {
        let name = identifier(field.name());
        // Lists and structs cannot be counted as texts.
        let different = match field.data_type().is_nested() {
            true => "0".to_owned(),
            false => format!("approx_distinct(CAST({name} AS VARCHAR))"),
        };
        let sql = format!(
            "SELECT CAST(count(*) AS BIGINT UNSIGNED), CAST(count({name}) AS BIGINT UNSIGNED), \
             CAST({different} AS BIGINT UNSIGNED) FROM {table}"
        );
        let counts = context.sql(&sql).await?.collect().await?;
        let count = |at: usize| {
            let batch = counts.first().filter(|batch| batch.num_rows() > 0);
            batch.map_or(0, |b| b.column(at).as_primitive::<UInt64Type>().value(0))
        };
        columns.push(Column {
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            records: count(0),
            known: count(1),
            distinct: count(2).min(count(1)),
        });
    }
    Ok(columns)
}

impl Column {
    /// A guess by name, then by how many different values there are.
    fn role(&self) -> Role {
        let name = self.name.to_lowercase();
        let has = |words: &[&str]| {
            let mut parts = name.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| words.contains(&part)) || words.contains(&name.as_str())
        };
        if has(IDENTIFIERS) || name.ends_with("id") && self.distinct * 20 > self.known {
            Role::Identifier
        } else if has(SENSITIVE) {
            Role::Sensitive
        } else if has(QUASI) {
            Role::QuasiIdentifier
        } else if self.known > 100
            && self.distinct * 2 > self.known
            && !self.data_type.is_floating()
        {
            Role::Identifier
        } else {
            Role::Unknown
        }
    }

    fn line(&self) -> String {
        let missing = self.records - self.known;
        let missing = match missing {
            0 => String::new(),
            _ => format!(
                ", {:.0} % missing",
                100.0 * missing as f64 / self.records as f64
            ),
        };
        let looks = match self.role() {
            Role::Identifier => "  looks like it names people: id, or leave it out",
            Role::QuasiIdentifier => "  looks like a quasi-identifier: qi",
            Role::Sensitive => "  looks sensitive",
            Role::Unknown => "",
        };
        // Types name the fields of structs.
        let (name, data_type) = (visible(&self.name), self.data_type.to_string());
        let different = match self.data_type.is_nested() {
            true => String::new(),
            false => format!(", about {} different values", self.distinct),
        };
        format!(
            "#   {name:<24} {}{different}{missing}{looks}\n",
            visible(&data_type)
        )
    }
}

const IDENTIFIERS: &[&str] = &[
    "id",
    "name",
    "surname",
    "firstname",
    "lastname",
    "email",
    "mail",
    "phone",
    "ssn",
    "passport",
    "iban",
    "person",
    "patient",
    "customer",
    "user",
    "client",
    "member",
    "account",
    "uuid",
];
const QUASI: &[&str] = &[
    "age",
    "sex",
    "gender",
    "birth",
    "birthday",
    "dob",
    "year",
    "month",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "city",
    "town",
    "country",
    "region",
    "county",
    "state",
    "race",
    "ethnicity",
    "hispanic",
    "nationality",
    "marital",
    "education",
    "occupation",
    "profession",
    "job",
    "religion",
    "language",
    "height",
    "weight",
    "admission",
    "discharge",
    "date",
];
const SENSITIVE: &[&str] = &[
    "disease",
    "diagnosis",
    "condition",
    "icd",
    "drug",
    "medication",
    "treatment",
    "procedure",
    "result",
    "salary",
    "income",
    "wage",
    "debt",
    "balance",
    "score",
    "crime",
    "offence",
    "vote",
    "party",
];

fn job(file: &str, columns: &[Column]) -> String {
    let of = |role: Role| {
        let columns = columns.iter().filter(|c| c.role() == role);
        columns.map(|c| toml_text(&c.name)).collect::<Vec<_>>()
    };
    let listed: String = columns.iter().map(Column::line).collect();
    let (id, qi, sensitive) = (
        of(Role::Identifier),
        of(Role::QuasiIdentifier),
        of(Role::Sensitive),
    );
    let first = |names: &[String]| names.first().cloned().unwrap_or_default();
    let table = toml_text(file);
    let (first_id, first_sensitive) = (first(&id), first(&sensitive));
    let [id, qi, sensitive] = [id, qi, sensitive].map(|names| names.join(", "));
    format!(
        r#"# A job for 'anonymize run'. Every key is described in docs/guide/job.md.
#
# Columns:
{listed}#
# The suggestions are guesses from names and counts. You know what others know about these people: decide.

# Where the release goes: a folder that does not exist yet, or s3://bucket/prefix/.
target = "release"

[input]
table = {table}

[publish]
function = "anonymize_eir"

# Who is who: one column whose values tell individuals apart. Becomes a random pseudonym.
# Candidates: {id}
# id = {first_id}

# What others may know about a person: all of it, whether or not it seems harmless alone. Generalized.
# Candidates: {qi}
# qi = [{qi}]

# What they must not learn about a person. Published as it is.
# Candidates: {sensitive}
# sensitive = [{first_sensitive}]

# How many different sensitive values must stay possible. More is safer and loses more detail:
# 'anonymize plan' shows how much.
l = 3

# Columns that are not named are not published.

[report]
# file = "report.html"   # for you, not for the recipients
format = "html"
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_guessed_from_names_and_counts() {
        let column = |name: &str, distinct: u64| Column {
            name: name.into(),
            data_type: DataType::Int64,
            records: 1000,
            known: 1000,
            distinct,
        };
        assert_eq!(column("patient_id", 200).role(), Role::Identifier);
        assert_eq!(column("birth_year", 80).role(), Role::QuasiIdentifier);
        assert_eq!(column("Diagnosis", 80).role(), Role::Sensitive);
        assert_eq!(column("code", 900).role(), Role::Identifier);
        assert_eq!(column("ward", 9).role(), Role::Unknown);
    }
}
