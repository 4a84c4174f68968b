//! `anonymize run`: a job from its inputs to a verified release.

use std::io::Write;
use std::path::PathBuf;

use datafusion::prelude::SessionContext;
use datafusion_anonymize::publish::{self, MANIFEST, Outcome, Release, ReportFormat};

use crate::Failure;
use crate::failure::LevelMissed;
use crate::job::{Job, Report};
use crate::output::{self, Output, end_at_interrupt};
use crate::progress::Progress;
use crate::session::session;
use crate::written::Written;

/// Publish what a job file says: written, read again, verified, and visible at once or not at all.
///
/// Reads the inputs, calls the anonymizing function, writes Parquet files into the target, reads them
/// again, verifies the model and the truth of every record from the written bytes, and then creates
/// manifest.json, which makes the release visible. If anything fails, nothing is visible. Writes a report
/// for people beside it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER_HELP)]
pub struct Args {
    /// The job, a TOML file; 'anonymize init' writes one
    job: PathBuf,

    /// Put a value into the job; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// How to write the report, instead of what the job says: html, md or json
    #[arg(long, value_name = "FORMAT", value_parser = report_format)]
    format: Option<ReportFormat>,
}

const AFTER_HELP: &str = "\
Examples:
  anonymize run docs/patients.toml
  anonymize run job.toml --set publish.l=5 --set 'target=\"s3://bucket/releases/2026-11/\"'

The keys of a job are described in docs/guide/job.md and docs/reference/job.schema.json.
${NAME} in a value is the environment variable NAME.

Exit codes:
  0    published
  1    failed; nothing is visible, unless the message says otherwise
  2    wrong usage
  3    a level that the job requires is missed; nothing is visible, and the report says what is missed
  130  interrupted (Ctrl-C)
  141  whoever read the output went away";

pub fn report_format(name: &str) -> Result<ReportFormat, String> {
    ReportFormat::named(name).ok_or_else(|| "expected html, md or json".to_owned())
}

pub async fn run(args: Args) -> Result<(), Failure> {
    end_at_interrupt()?;
    let mut job = Job::read(&args.job, &args.set)?;
    if let (Some(format), Some(_)) = (args.format, &job.report) {
        let stem = args.job.file_stem().map(|s| s.to_string_lossy());
        job.report = Some(Report::default_for(&stem.unwrap_or_default(), format));
    }
    let written = |report: &Report| Written::at("report.file", &report.file, ReportFormat::begins);
    let written = job.report.as_ref().map(written).transpose()?;
    let context = open(&job).await?;
    // A report that cannot be written is known before anything is published.
    if let Some(written) = &written {
        job.keep_apart(&context, &args.job, written).await?;
        written.try_folder()?;
    }
    let far = publish::Progress::default();
    let told = far.clone();
    let progress = Progress::of("publishing", move || told.steps());
    let input = job.input(&context).await?;
    let frame = job.call(&context, input, &job.arguments)?;
    let outcome = job
        .publish(&context)
        .await?
        .with_progress(far)
        .try_run(frame)
        .await?;
    drop(progress);
    let release = match outcome {
        Outcome::Published(release) => release,
        Outcome::Missed(missed) => {
            if let (Some(report), Some(written), Some(figures)) =
                (&job.report, &written, &missed.figures)
            {
                written.write(&figures.report(report.format)?)?;
                output::say(&format!("report    {}", report.file.display()))?;
            }
            return Err(LevelMissed(missed.to_string()).into());
        }
    };
    for warning in &release.warnings {
        log::warn!("{warning}");
    }
    say(&release)?;
    if let (Some(report), Some(written), Some(figures)) = (&job.report, &written, &release.figures)
    {
        let text = figures.report(report.format)?;
        written.write(&text).map_err(|e| {
            format!("the release is published, but its report cannot be written: {e}")
        })?;
        output::say(&format!("report    {}", report.file.display()))?;
    }
    Ok(())
}

/// A session in which the job's inputs are tables.
pub async fn open(job: &Job) -> Result<SessionContext, Failure> {
    let (context, _) = session(&job.limits()).await?;
    if let Some(partitions) = job.partitions() {
        let sql = format!("SET datafusion.execution.target_partitions = {partitions}");
        context.sql(&sql).await?.collect().await?;
    }
    for note in job.register(&context).await? {
        output::say(&format!("note      {note}"))?;
    }
    Ok(context)
}

fn say(release: &Release) -> Result<(), Failure> {
    let manifest = &release.manifest;
    let counts = &manifest.counts;
    let truth = match manifest.truth.checked.as_str() {
        "exact" => ", and true of the input",
        _ => "",
    };
    let classes = match manifest.measure("classes") {
        Some(_) => "classes",
        None => "groups",
    };
    let tables = match manifest.tables.len() {
        1 => String::new(),
        n => format!(", in {n} tables"),
    };
    writeln!(
        Output,
        "published {} individuals with {} records in {} {classes}{tables}",
        counts.individuals_out, counts.records_out, counts.classes
    )?;
    output::say(&format!(
        "checked   {} from the written bytes{truth}",
        manifest.model
    ))?;
    output::say(&format!("manifest  {}{MANIFEST}", release.url))?;
    Ok(())
}
