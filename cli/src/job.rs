//! A job: what `anonymize run` and `anonymize plan` read. `docs/reference/job.schema.json` describes it.

mod keys;
mod value;

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::TableReference;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion_anonymize::publish::{
    Ledger, OnOverlap, Publish, ReportFormat, RequiredLevel, real_path, table_with,
};
use datafusion_anonymize::{FUNCTIONS, call, read_files};
use datafusion_cli::pool_type::PoolType;
use toml::{Table, Value};

use crate::Failure;
use crate::failure::of_engine;
use crate::measure::quoted;
use crate::secrets;
use crate::session::Limits;
use crate::written::Written;
use keys::{Keys, nearest};
pub use value::{argument, toml_text};

/// What a job says.
#[derive(Debug)]
pub struct Job {
    /// Tables by name.
    inputs: Vec<(String, Input)>,
    query: Option<String>,
    pub function: String,
    /// The other arguments of the function.
    pub arguments: Table,
    pub target: String,
    pub report: Option<Report>,
    population: Option<Population>,
    ledger: Option<(PathBuf, String, OnOverlap)>,
    required: Vec<RequiredLevel>,
    memory: Option<u64>,
    partitions: Option<usize>,
}

/// What an input is.
#[derive(Debug)]
enum Input {
    Query(String),
    /// Files, with the types of some of their columns.
    Files(String, Vec<(String, DataType)>),
}

/// The people among whom somebody may be looked for, as SQL, and the column that tells them apart.
#[derive(Debug)]
struct Population {
    query: String,
    id: Option<String>,
}

/// Which report is written where.
#[derive(Debug, Clone)]
pub struct Report {
    pub file: PathBuf,
    pub format: ReportFormat,
}

impl Job {
    /// Reads a job, with `key=value` settings in place of what it says.
    pub fn read(path: &Path, settings: &[String]) -> Result<Self, Failure> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|e| format!("cannot read '{name}': {e}"))?;
        let mut table: Table = text.parse().map_err(|e| format!("{name}: {e}"))?;
        for setting in settings {
            set(&mut table, setting)?;
        }
        expand(&mut table, "")?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        Self::of(table, &stem.unwrap_or_default()).map_err(|e| format!("{name}: {e}").into())
    }

    fn of(table: Table, stem: &str) -> Result<Self, Failure> {
        let mut job = Keys::new("", table);
        let inputs = inputs(job.table("input")?)?;
        let query = job.text("query")?;
        if query.is_none() && inputs.len() > 1 {
            return Err(
                "query is missing: with several inputs it says what to make of them".into(),
            );
        }
        let mut publish = Keys::new("publish", job.table("publish")?);
        let function = publish.required("function")?;
        known_function(&function)?;
        let arguments = publish.rest();
        let target = job.required("target")?;
        let report = match job.optional_table("report")? {
            None => Some(Report::default_for(stem, ReportFormat::Html)),
            Some(table) => read_report(table, stem)?,
        };
        let population = job.optional_table("population")?;
        let population = population.map(read_population).transpose()?;
        let ledger = job.optional_table("ledger")?.map(read_ledger).transpose()?;
        let required = read_required(job.optional_table("require")?.unwrap_or_default())?;
        let mut run = Keys::new("run", job.optional_table("run")?.unwrap_or_default());
        let memory = run.text("memory")?;
        let memory = memory
            .map(|size| crate::sql::size(&size).map_err(|e| format!("run.memory: {e}")))
            .transpose()?;
        let partitions = run.count("partitions")?;
        run.finish(&["memory", "partitions"])?;
        job.finish(&[
            "input",
            "query",
            "publish",
            "target",
            "report",
            "population",
            "ledger",
            "require",
            "run",
        ])?;
        Ok(Self {
            inputs,
            query,
            function,
            arguments,
            target,
            report,
            population,
            ledger,
            required,
            memory,
            partitions,
        })
    }

    /// How to run it.
    pub fn limits(&self) -> Limits {
        Limits {
            batch_size: None,
            memory_bytes: self.memory.and_then(|bytes| usize::try_from(bytes).ok()),
            pool: PoolType::Fair,
            disk_bytes: None,
            sql_from_stdin: false,
            shows_values: false,
        }
    }

    /// The number of partitions, if it is said.
    pub fn partitions(&self) -> Option<usize> {
        self.partitions
    }

    /// Makes the inputs known; returns what is to be said of them.
    pub async fn register(&self, context: &SessionContext) -> Result<Vec<String>, Failure> {
        let mut said = vec![];
        for (name, input) in &self.inputs {
            let made = async {
                match input {
                    Input::Query(query) => {
                        let view = format!("CREATE VIEW {} AS {query}", identifier(name));
                        context.sql(&view).await.map(|_| vec![])
                    }
                    Input::Files(path, types) => {
                        let (table, notes) = read_files(&context.state(), path, types).await?;
                        context.register_table(TableReference::bare(name.as_str()), table)?;
                        Ok(notes)
                    }
                }
            };
            let notes = made
                .await
                .map_err(|e| format!("input.{name}: {}", of_engine(e)))?;
            said.extend(notes);
        }
        Ok(said)
    }

    /// The records to anonymize, as SQL.
    pub fn query(&self) -> String {
        match (&self.query, self.inputs.first()) {
            (Some(query), _) => query.trim().trim_end_matches(';').to_owned(),
            (None, Some((name, _))) => format!("SELECT * FROM {}", identifier(name)),
            (None, None) => String::new(),
        }
    }

    /// Refuses a file of the publisher that would be in the release, in the ledger, or among what the job reads.
    pub async fn keep_apart(
        &self,
        context: &SessionContext,
        job: &Path,
        written: &Written,
    ) -> Result<(), Failure> {
        let (option, path) = (written.option(), written.path());
        let refused = |what: &str| Err(format!("{option} {what}; name a file elsewhere").into());
        if real_path(job)? == path {
            return refused("is the job itself");
        }
        let overlaps =
            |other: &Path| real_path(other).map(|o| path.starts_with(&o) || o.starts_with(path));
        if let Some(target) = local_folder(&self.target)
            && overlaps(&target)?
        {
            return refused("lies in the target: it is for the publisher, and would be published");
        }
        if let Some((folder, ..)) = &self.ledger
            && overlaps(folder)?
        {
            return refused("lies in the ledger");
        }
        for query in self.read_by() {
            // What cannot be read is told when it is to be read.
            if let Ok(frame) = context.sql(&query).await
                && table_with(frame.logical_plan(), path)?.is_some()
            {
                return refused("lies in a table that the job reads");
            }
        }
        Ok(())
    }

    /// Everything that the job may read, as SQL.
    fn read_by(&self) -> Vec<String> {
        let inputs = self.inputs.iter().map(|(name, _)| identifier(name));
        let queries = self.population.iter().map(|p| format!("({})", p.query));
        let mut tables: Vec<String> = inputs.chain(queries).collect();
        tables.push(format!("({})", self.query()));
        let files = ["hierarchy", "categories"].map(|name| self.arguments.get(name));
        let files = files.into_iter().flatten().flat_map(value::texts);
        tables.extend(files.map(quoted));
        let query = |table| format!("SELECT * FROM {table}");
        tables.into_iter().map(query).collect()
    }

    /// The records to anonymize.
    pub async fn input(&self, context: &SessionContext) -> Result<DataFrame, Failure> {
        // In parentheses, so that nothing but a query is run.
        let query = format!("SELECT * FROM ({})", self.query());
        Ok(context.sql(&query).await?)
    }

    /// The call of the function over a relation.
    pub fn call(
        &self,
        context: &SessionContext,
        input: DataFrame,
        arguments: &Table,
    ) -> Result<DataFrame, Failure> {
        let argument = |(name, value): (&'_ String, &Value)| {
            let value = argument(value).map_err(|e| format!("publish.{name} {e}"))?;
            Ok((name.clone(), value))
        };
        let arguments = arguments.iter().map(argument);
        let arguments = arguments.collect::<Result<Vec<_>, String>>()?;
        let arguments = arguments.iter();
        let arguments = arguments.map(|(name, value)| (name.as_str(), value.clone()));
        Ok(call(
            context,
            &self.function,
            [("input", input)],
            arguments,
        )?)
    }

    /// Where and how to publish.
    pub async fn publish(&self, context: &SessionContext) -> Result<Publish, Failure> {
        let publish = Publish::to(&self.target)
            .with_figures(self.report.is_some())
            .with_required(self.required.clone())
            .with_ledger(self.ledger()?);
        let Some(Population { query, id }) = &self.population else {
            return Ok(publish);
        };
        let people = context.sql(query).await;
        let people = people.map_err(|e| format!("population: {}", of_engine(e)))?;
        Ok(publish.with_population(people, id.clone()))
    }

    /// The ledger, if there is one.
    fn ledger(&self) -> Result<Option<Ledger>, Failure> {
        let Some((folder, key, on_overlap)) = &self.ledger else {
            return Ok(None);
        };
        let ledger = Ledger::new(folder, key)?;
        Ok(Some(ledger.with_on_overlap(*on_overlap)))
    }
}

impl Report {
    /// Beside where the program runs, under the job's name.
    pub fn default_for(stem: &str, format: ReportFormat) -> Self {
        let ending = match format {
            ReportFormat::Html => "html",
            ReportFormat::Markdown => "md",
            ReportFormat::Json => "json",
        };
        Self {
            file: format!("{stem}.report.{ending}").into(),
            format,
        }
    }
}

/// The folder of this machine that a target names.
fn local_folder(target: &str) -> Option<PathBuf> {
    let target = target.trim_end_matches('/');
    let named = !target.trim().is_empty();
    let url = ListingTableUrl::parse(format!("{target}/"))
        .ok()
        .filter(|_| named)?;
    let local = url.scheme() == "file";
    local.then(|| url.get_url().to_file_path().ok()).flatten()
}

/// Refuses a function that does not anonymize, with the nearest that does.
fn known_function(name: &str) -> Result<(), Failure> {
    let known: Vec<&str> = FUNCTIONS.iter().map(|f| f.name).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let near = match nearest(name, &known) {
        Some(near) => format!("; did you mean '{near}'?"),
        None => format!(" (functions: {})", known.join(", ")),
    };
    Err(format!("publish.function: there is no function '{name}'{near}").into())
}

/// A name as an identifier of SQL.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn inputs(table: Table) -> Result<Vec<(String, Input)>, Failure> {
    let mut inputs = vec![];
    for (name, value) in table {
        let read = match value {
            Value::String(path) => Input::Files(path, vec![]),
            Value::Table(table) => {
                let key = format!("input.{name}");
                let mut input = Keys::new(&key, table);
                let types = input.optional_table("types")?;
                let read = match (input.text("path")?, input.text("sql")?, types) {
                    (Some(path), None, types) => {
                        Input::Files(path, read_types(&key, types.unwrap_or_default())?)
                    }
                    (None, Some(query), None) => Input::Query(query),
                    (None, Some(_), Some(_)) => {
                        return Err(
                            format!("{key}.types is for files; write CAST in {key}.sql").into()
                        );
                    }
                    _ => return Err(format!("{key} needs either path or sql").into()),
                };
                input.finish(&["path", "sql", "types"])?;
                read
            }
            _ => {
                return Err(format!(
                    "input.{name} must be the path of files in quotes, or a table with path or sql"
                )
                .into());
            }
        };
        inputs.push((name, read));
    }
    if inputs.is_empty() {
        return Err(
            "input is empty: name at least one table, such as visits = \"visits.parquet\"".into(),
        );
    }
    Ok(inputs)
}

/// Types that a job can state.
const TYPES: [(&str, DataType); 6] = [
    ("text", DataType::Utf8),
    ("integer", DataType::Int64),
    ("number", DataType::Float64),
    ("boolean", DataType::Boolean),
    ("date", DataType::Date32),
    (
        "timestamp",
        DataType::Timestamp(TimeUnit::Microsecond, None),
    ),
];

fn read_types(key: &str, table: Table) -> Result<Vec<(String, DataType)>, Failure> {
    let names = TYPES.map(|(name, _)| name).join("\", \"");
    let read = |(column, value): (String, Value)| {
        let known = TYPES.iter().find(|(name, _)| value.as_str() == Some(*name));
        match known {
            Some((_, data_type)) => Ok((column, data_type.clone())),
            None => Err(format!("{key}.types.{column} must be one of \"{names}\"").into()),
        }
    };
    table.into_iter().map(read).collect()
}

/// `[require]`: a level for each measure.
fn read_required(table: Table) -> Result<Vec<RequiredLevel>, Failure> {
    let read = |(measure, value): (String, Value)| {
        let level = match value {
            Value::Integer(level) => Some(level as f64),
            Value::Float(level) => Some(level).filter(|level| level.is_finite()),
            _ => None,
        };
        match level {
            Some(level) => Ok(RequiredLevel { measure, level }),
            None => Err(format!("require.{measure} must be a number").into()),
        }
    };
    table.into_iter().map(read).collect()
}

/// What a table with `path` or `sql` stands for, as SQL.
fn relation(name: &str, keys: &mut Keys) -> Result<String, Failure> {
    match (keys.text("path")?, keys.text("sql")?) {
        (Some(path), None) => Ok(format!("SELECT * FROM {}", quoted(&path))),
        (None, Some(query)) => Ok(query),
        _ => Err(format!("{name} needs either path or sql").into()),
    }
}

fn read_population(table: Table) -> Result<Population, Failure> {
    let mut population = Keys::new("population", table);
    let query = relation("population", &mut population)?;
    let id = population.text("id")?;
    population.finish(&["path", "sql", "id"])?;
    Ok(Population { query, id })
}

fn read_report(table: Table, stem: &str) -> Result<Option<Report>, Failure> {
    let mut report = Keys::new("report", table);
    let wanted = report.flag("enabled")?.unwrap_or(true);
    let format = report.text("format")?.unwrap_or_else(|| "html".to_owned());
    let file = report.text("file")?;
    report.finish(&["enabled", "file", "format"])?;
    let format = ReportFormat::named(&format).ok_or_else(|| {
        format!("report.format must be \"html\", \"md\" or \"json\", not \"{format}\"")
    })?;
    let mut read = Report::default_for(stem, format);
    if let Some(file) = file {
        read.file = file.into();
    }
    Ok(wanted.then_some(read))
}

fn read_ledger(table: Table) -> Result<(PathBuf, String, OnOverlap), Failure> {
    let mut ledger = Keys::new("ledger", table);
    let folder = ledger.required("folder")?;
    let key = ledger.required("key")?;
    let on_overlap = match ledger.text("on_overlap")?.as_deref() {
        None | Some("refuse") => OnOverlap::Refuse,
        Some("warn") => OnOverlap::Warn,
        Some(other) => {
            let said = format!("ledger.on_overlap must be \"refuse\" or \"warn\", not \"{other}\"");
            return Err(said.into());
        }
    };
    ledger.finish(&["folder", "key", "on_overlap"])?;
    Ok((folder.into(), key, on_overlap))
}

/// Puts `publish.l=5` into a job. What is no value of TOML is a text.
fn set(table: &mut Table, setting: &str) -> Result<(), Failure> {
    let wrong = || format!("--set {setting}: expected a key and a value, such as publish.l=5");
    let (key, value) = setting.split_once('=').ok_or_else(wrong)?;
    let text = value.trim();
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let value = parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()));
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts
        .pop()
        .filter(|part| !part.is_empty())
        .ok_or_else(wrong)?;
    let mut table = table;
    for part in parts {
        let inner = table
            .entry(part)
            .or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut().ok_or_else(wrong)?;
    }
    table.insert(last.to_owned(), value);
    Ok(())
}

/// Replaces `${NAME}` by the environment variable of that name, and `$${` by `${`, in all texts.
fn expand(table: &mut Table, path: &str) -> Result<(), Failure> {
    for (key, value) in table.iter_mut() {
        let path = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        expand_value(value, &path)?;
    }
    Ok(())
}

fn expand_value(value: &mut Value, path: &str) -> Result<(), Failure> {
    match value {
        Value::String(text) => {
            *text = secrets::expand(text).map_err(|e| format!("{path}: {e}"))?;
        }
        Value::Table(inner) => expand(inner, path)?,
        Value::Array(items) => {
            for item in items {
                expand_value(item, path)?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"
        target = "out"
        [input]
        visits = "visits.parquet"
        [publish]
        function = "anonymize_eir"
        id = "patient"
        qi = ["age", "sex"]
        sensitive = "disease"
        l = 3
    "#;

    fn read(text: &str, settings: &[&str]) -> Result<Job, Failure> {
        let mut table: Table = text.parse()?;
        for setting in settings {
            set(&mut table, setting)?;
        }
        expand(&mut table, "")?;
        Job::of(table, "job")
    }

    fn refused(text: &str, settings: &[&str]) -> String {
        read(text, settings).unwrap_err().to_string()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_job_becomes_a_call() {
        let job = read(JOB, &["publish.l=5", "publish.domain={ age = [0, 120] }"]).unwrap();
        let context = SessionContext::new();
        datafusion_anonymize::register_all(&context).unwrap();
        let visits = "CREATE TABLE visits AS SELECT patient_id AS patient, birth_month AS age, sex, diagnosis AS disease \
                      FROM sample_patients(60)";
        context.sql(visits).await.unwrap().collect().await.unwrap();
        let input = job.input(&context).await.unwrap();
        let frame = job.call(&context, input, &job.arguments).unwrap();
        let called = "SELECT * FROM anonymize_eir(visits, id => patient, qi => [age, sex], sensitive => disease, l => 5, \
                      domain => {age: [0, 120]})";
        let explained = |frame: DataFrame| {
            let plan = frame.into_optimized_plan().unwrap();
            plan.display_indent().to_string()
        };
        let expected = explained(context.sql(called).await.unwrap());
        assert!(expected.contains("EIR 5-diversity"), "{expected}");
        assert_eq!(explained(frame), expected);
        assert_eq!(job.report.unwrap().file, Path::new("job.report.html"));
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_name() {
        let said = refused(JOB, &["taget=x"]);
        assert_eq!(said, "there is no key 'taget'; did you mean 'target'?");
        let said = refused(JOB, &["report.fromat=x"]);
        assert_eq!(
            said,
            "there is no key 'report.fromat'; did you mean 'report.format'?"
        );
        let said = refused(JOB, &["run.memory=lots"]);
        assert!(said.starts_with("run.memory: "), "{said}");
        assert!(refused(JOB, &["target=3"]).contains("target must be a text"));
    }

    #[test]
    fn secrets_come_from_the_environment() {
        let key = "ledger.key=${ANONYMIZE_TEST_NO_SUCH_KEY}";
        let said = refused(JOB, &["ledger.folder=x", key]);
        assert_eq!(
            said,
            "ledger.key: the environment variable ANONYMIZE_TEST_NO_SUCH_KEY is not set"
        );
    }
}
