//! `anonymize plan`: what a job would cost at several values of a parameter, before anything is published.

mod plot;

use std::io::Write;
use std::path::PathBuf;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use datafusion_anonymize::{ArgumentValue, FUNCTIONS, FunctionEntry, Summary, call};
use std::sync::Arc;
use toml::{Table, Value};

use crate::Failure;
use crate::failure::told;
use crate::job::{Job, argument, identifier};
use crate::output::{Output, end_at_interrupt, say};
use crate::progress::Progress;
use crate::run::open;
use crate::written::Written;

/// See what a job would cost, on a sample, before anything is published.
///
/// Runs the job on a sample of individuals, once per value, publishes nothing, and prints a table; writes a
/// plot of privacy against utility. A sample has smaller classes to choose from, so the loss of the whole
/// table is mostly lower.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The job, a TOML file
    job: PathBuf,

    /// Put a value into the job; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// The parameter and the values to try, such as l=2,4,8 [default: around what the job says]
    #[arg(long, value_name = "NAME=VALUES")]
    vary: Option<String>,

    /// Individuals in the sample
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    sample: u64,

    /// Where to write the plot [default: the job's name with .plan.svg]
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// What came of one value.
#[derive(Debug)]
pub struct Outcome {
    value: String,
    figures: Result<Costs, String>,
}

/// What a release of the sample would be like.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Information loss, or in an anatomized release, which shows all values as they are, the median error of queries.
    loss: f64,
    suppressed: f64,
    /// Classes or groups, and individuals in the smallest of them.
    classes: u64,
    smallest: f64,
    /// Classes or groups per individual.
    risk: f64,
}

const SAMPLE: &str = "anonymize_plan_sample";
const RESULT: &str = "anonymize_plan_result";

pub async fn run(args: Args) -> Result<(), Failure> {
    end_at_interrupt()?;
    let job = Job::read(&args.job, &args.set)?;
    let (parameter, values) = match &args.vary {
        Some(vary) => given(vary)?,
        None => around(&job.arguments)?,
    };
    let stem = args.job.file_stem().map(|s| s.to_string_lossy());
    let file = args.plot.clone();
    let file = file.unwrap_or_else(|| format!("{}.plan.svg", stem.unwrap_or_default()).into());
    let written = Written::at("--plot", &file, plot::begins)?;
    let context = open(&job).await?;
    job.keep_apart(&context, &args.job, &written).await?;
    let progress = Progress::start("planning");
    let individuals = sample(&context, &job, args.sample).await?;
    let mut outcomes = vec![];
    for value in values {
        let mut arguments = job.arguments.clone();
        arguments.insert(parameter.clone(), value.clone());
        let value = argument(&value)?.to_string();
        let figures = match costs(&context, &job, &arguments).await {
            Ok(costs) => Ok(costs),
            Err(error) => match out_of_reach(&job.function, &error) {
                Some(reason) => Err(reason),
                None => return Err(format!("{parameter} = {value}: {}", told(error)).into()),
            },
        };
        outcomes.push(Outcome { value, figures });
    }
    drop(progress);
    print(&job, &parameter, &outcomes, individuals)?;
    let axis = match generalizes(&job.function) {
        true => "information loss",
        false => "median error of count queries",
    };
    written.write(&plot::svg(&parameter, axis, &outcomes))?;
    say(&format!("\nplot  {}", file.display()))?;
    if outcomes.iter().all(|outcome| outcome.figures.is_err()) {
        return Err("none of these values can be reached on the sample".into());
    }
    Ok(())
}

/// `l=2,4,8`.
fn given(vary: &str) -> Result<(String, Vec<Value>), Failure> {
    let wrong = "--vary: expected a parameter and values, such as l=2,4,8";
    let (name, values) = vary.split_once('=').ok_or(wrong)?;
    let values = values.split(',').map(|value| {
        let text = format!("value = {}", value.trim());
        let table: Option<Table> = text.parse().ok();
        table.and_then(|mut table| table.remove("value"))
    });
    let values: Vec<Value> = values.collect::<Option<_>>().ok_or(wrong)?;
    Ok((name.trim().to_owned(), values))
}

/// Values around that of the job's main parameter.
fn around(arguments: &Table) -> Result<(String, Vec<Value>), Failure> {
    for name in ["l", "p", "k"] {
        if let Some(Value::Integer(value)) = arguments.get(name) {
            let around = [
                *value / 2,
                *value,
                value * 3 / 2,
                value * 2,
                value * 3,
                value * 5,
            ];
            let mut around: Vec<i64> = around.into_iter().filter(|n| *n >= 2).collect();
            around.sort_unstable();
            around.dedup();
            return Ok((
                name.to_owned(),
                around.into_iter().map(Value::Integer).collect(),
            ));
        }
    }
    for name in ["beta", "alpha", "theta"] {
        if let Some(Value::Float(value)) = arguments.get(name) {
            let around = [value / 2.0, value * 0.75, *value, value * 1.25, value * 1.5];
            let around = around.into_iter().filter(|share| *share <= 1.0);
            let rounded = around.map(|share| Value::Float((share * 1e4).round() / 1e4));
            return Ok((name.to_owned(), rounded.collect()));
        }
    }
    Err("there is no parameter to vary in [publish]; name one with --vary l=2,4,8".into())
}

/// Draws individuals with all their records, and keeps them; returns how many there are.
async fn sample(context: &SessionContext, job: &Job, size: u64) -> Result<u64, Failure> {
    let query = job.query();
    let sql = match job.arguments.get("id") {
        Some(Value::String(id)) => {
            let id = identifier(id);
            format!(
                "SELECT * FROM ({query}) AS everybody WHERE {id} IN (SELECT {id} FROM \
                 (SELECT DISTINCT {id} FROM ({query}) AS people) AS ids ORDER BY random() LIMIT {size})"
            )
        }
        _ => format!("SELECT * FROM ({query}) AS everybody ORDER BY random() LIMIT {size}"),
    };
    keep(context, SAMPLE, &sql).await?;
    let people = match job.arguments.get("id") {
        Some(Value::String(id)) => format!("count(DISTINCT {})", identifier(id)),
        _ => "count(*)".to_owned(),
    };
    let sql = format!("SELECT CAST({people} AS DOUBLE) FROM {SAMPLE}");
    let counted = context.sql(&sql).await?.collect().await?;
    Ok(first(&counted, 0).unwrap_or_default() as u64)
}

async fn keep(context: &SessionContext, name: &str, sql: &str) -> Result<(), Failure> {
    let frame = context.sql(sql).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let batches = frame.collect().await?;
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    context.deregister_table(name)?;
    context.register_table(name, Arc::new(MemTable::try_new(schema, vec![batches])?))?;
    Ok(())
}

/// What publishing the sample would cost.
async fn costs(context: &SessionContext, job: &Job, arguments: &Table) -> Result<Costs, Failure> {
    let frame = job.call(context, context.table(SAMPLE).await?, arguments)?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), task).await?;
    let Some(summary) = Summary::of(&plan) else {
        return Err("this function publishes nothing that could be planned".into());
    };
    let schema = plan.schema();
    context.deregister_table(RESULT)?;
    context.register_table(RESULT, Arc::new(MemTable::try_new(schema, vec![batches])?))?;
    let figures = async |sql: &str| context.sql(sql).await?.collect().await;
    let sizes = figures(&sizes(&job.function, arguments)).await?;
    let loss = match generalizes(&job.function) {
        true => Some(summary.information_loss),
        false => query_error(context, arguments).await?,
    };
    Ok(Costs {
        loss: loss.unwrap_or_default(),
        suppressed: summary.suppressed as f64 / (summary.individuals as f64).max(1.0),
        classes: first(&sizes, 2).unwrap_or_default() as u64,
        smallest: first(&sizes, 0).unwrap_or_default(),
        risk: first(&sizes, 1).unwrap_or_default(),
    })
}

fn entry(function: &str) -> Option<&'static FunctionEntry> {
    FUNCTIONS.iter().copied().find(|f| f.name == function)
}

/// Whether a function generalizes values; else it publishes them as they are, and has no information loss.
fn generalizes(function: &str) -> bool {
    entry(function).is_none_or(FunctionEntry::generalizes)
}

/// The smallest class or group, the average risk to be found in it, and how many there are, as SQL.
fn sizes(function: &str, arguments: &Table) -> String {
    let groups = entry(function).and_then(|entry| entry.group_sizes(RESULT));
    let groups = groups.unwrap_or_else(|| {
        let people = match arguments.get("id") {
            Some(_) => "DISTINCT individual",
            None => "*",
        };
        let qi: Vec<_> = texts(arguments, "qi")
            .iter()
            .map(|c| identifier(c))
            .collect();
        format!(
            "SELECT count({people}) AS individuals FROM {RESULT} GROUP BY {}",
            qi.join(", ")
        )
    });
    format!(
        "WITH groups AS ({groups}) \
         SELECT CAST(min(individuals) AS DOUBLE), CAST(count(*) AS DOUBLE) / sum(individuals), CAST(count(*) AS DOUBLE) \
         FROM groups"
    )
}

/// The median error of random count queries over an anatomized table.
async fn query_error(context: &SessionContext, arguments: &Table) -> Result<Option<f64>, Failure> {
    let tables = [
        ("original", context.table(SAMPLE).await?),
        ("published", context.table(RESULT).await?),
    ];
    let mut given: Vec<(&str, ArgumentValue)> = vec![
        ("queries", ArgumentValue::Number("400".to_owned())),
        ("seed", ArgumentValue::Number("1".to_owned())),
    ];
    for name in ["qi", "categorical"] {
        if let Some(value) = arguments.get(name) {
            given.push((name, argument(value)?));
        }
    }
    let sensitive = texts(arguments, "sensitive").into_iter().next();
    given.extend(sensitive.map(|column| ("sensitive", ArgumentValue::Text(column))));
    let errors = call(context, "query_error_summary", tables, given)?;
    let median = errors.select_columns(&["median"])?.collect().await?;
    Ok(first(&median, 0))
}

/// The texts of an argument: one, or a list.
fn texts(arguments: &Table, name: &str) -> Vec<String> {
    match arguments.get(name) {
        Some(Value::Array(items)) => {
            let texts = items.iter().filter_map(|item| item.as_str());
            texts.map(Into::into).collect()
        }
        Some(Value::String(text)) => vec![text.clone()],
        _ => vec![],
    }
}

/// Why a value cannot be reached on the sample, if that is what is wrong. Everything else is wrong with the job.
fn out_of_reach(function: &str, error: &Failure) -> Option<String> {
    let error = error.downcast_ref::<DataFusionError>()?;
    let DataFusionError::Execution(message) = error.find_root() else {
        return None;
    };
    let reason = message.strip_prefix(function)?.strip_prefix(": ")?;
    let reason = reason.lines().next()?;
    let refusals = [
        "cannot be reached",
        "is impossible",
        "would suppress every",
        "is too small",
    ];
    let refused = refusals.iter().any(|refusal| reason.contains(refusal));
    refused.then(|| reason.to_owned())
}

fn first(batches: &[RecordBatch], column: usize) -> Option<f64> {
    let batch = batches.iter().find(|batch| batch.num_rows() > 0)?;
    let column = batch.column(column).as_primitive_opt::<Float64Type>()?;
    column.iter().next().flatten()
}

fn print(
    job: &Job,
    parameter: &str,
    outcomes: &[Outcome],
    individuals: u64,
) -> Result<(), Failure> {
    let loss = match generalizes(&job.function) {
        true => "loss",
        false => "error",
    };
    let (classes, smallest) = match entry(&job.function).is_none_or(FunctionEntry::forms_classes) {
        true => ("classes", "smallest class"),
        false => ("groups", "smallest group"),
    };
    writeln!(Output, "on a sample of {individuals} individuals\n")?;
    writeln!(
        Output,
        "{parameter:>8}  {loss:>7}  {:>10}  {classes:>8}  {smallest:>14}  {:>12}",
        "left out", "average risk"
    )?;
    for Outcome { value, figures } in outcomes {
        match figures {
            Ok(costs) => writeln!(
                Output,
                "{value:>8}  {:>7.4}  {:>8.1} %  {:>8}  {:>14}  {:>12.4}",
                costs.loss,
                100.0 * costs.suppressed,
                costs.classes,
                costs.smallest,
                costs.risk
            )?,
            Err(reason) => say(&format!("{value:>8}  {reason}"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_varied_around_what_the_job_says() {
        let table = |text: &str| text.parse::<Table>().unwrap();
        let (name, values) = around(&table("k = 10\nl = 4")).unwrap();
        assert_eq!(name, "l");
        let values: Vec<_> = values
            .iter()
            .map(|v| argument(v).unwrap().to_string())
            .collect();
        assert_eq!(values, ["2", "4", "6", "8", "12", "20"]);
        assert!(around(&table("id = 'x'")).is_err());
        let (name, values) = given("beta=0.2, 0.5").unwrap();
        assert_eq!((name.as_str(), values.len()), ("beta", 2));
        assert!(given("beta").is_err());
    }
}
