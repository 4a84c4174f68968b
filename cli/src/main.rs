//! `anonymize`: publish tables about people from the command line.
//!
//! A thin program over the library `datafusion_anonymize`. Results go to standard output, everything
//! else to standard error.

mod allocator;
mod audit;
mod compare;
mod copied;
mod demo;
mod failure;
mod ignored;
mod init;
mod job;
mod measure;
mod options;
mod output;
mod plan;
mod progress;
mod run;
mod secrets;
mod session;
mod sql;
mod statements;
mod stores;
mod temporary;
mod written;

use std::io::{Write, stderr};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use datafusion_anonymize::publish::visible_lines;
use failure::{Failure, LevelMissed, mask_panics, told, without_panics_of_readers};
use log::Level;
use secrets::hide;

/// Publish tables about people without giving the people away, also where one person has many records.
///
/// The functions that anonymize are functions of a SQL engine (Apache DataFusion), so they read and
/// write what it does: Parquet, CSV, JSON, Avro and Arrow files, here or in an object store.
#[derive(Debug, Parser)]
#[command(
    name = "anonymize",
    version,
    verbatim_doc_comment,
    arg_required_else_help = true
)]
#[command(after_long_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How to tell how far long work is, on standard error
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        default_value = "auto"
    )]
    progress: progress::Style,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Run(run::Args),
    Plan(plan::Args),
    Init(init::Args),
    Audit(audit::Args),
    Compare(compare::Args),
    Sql(sql::Args),
}

const AFTER_HELP: &str = "\
Examples:
  anonymize demo                             see it work on made-up data
  anonymize init visits.parquet              write a job to fill in
  anonymize plan job.toml                    see what it would cost
  anonymize run job.toml                     publish it, verified, or nothing at all
  anonymize audit published/ --id individual --qi age,sex,postcode --sensitive disease
  anonymize sql                              open a SQL shell
  anonymize sql -c \"SELECT * FROM anonymize_eir('visits.parquet',
      id => patient, qi => [age, sex, postcode], sensitive => disease, l => 3)\"

Exit codes:
  0    done
  1    failed; the reason is on standard error, its first line begins with 'error: '
  2    wrong usage
  3    run: a level that the job requires is missed; nothing is published
  130  interrupted (Ctrl-C); 129 and 143 for the signals HUP and TERM
  141  whoever read the output went away (anonymize ... | head)";

#[tokio::main]
async fn main() -> ExitCode {
    mask_panics();
    show_warnings();
    let cli = Cli::parse();
    progress::tell(cli.progress);
    let done = without_panics_of_readers(run(cli.command)).await;
    output::wait_if_ending();
    temporary::remove();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let code = match failure.is::<LevelMissed>() {
                true => ExitCode::from(LevelMissed::CODE),
                false => ExitCode::FAILURE,
            };
            // Nobody is left to tell if this fails.
            let _ = writeln!(stderr(), "error: {}", visible_lines(&told(failure)));
            code
        }
    }
}

async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Run(args) => run::run(args).await,
        Command::Plan(args) => plan::run(args).await,
        Command::Init(args) => init::run(args).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Compare(args) => compare::run(args).await,
        Command::Sql(args) => sql::run(args).await,
    }
}

/// Shows what the library and the program warn of on standard error; RUST_LOG can ask for more or less.
fn show_warnings() {
    let default = env_logger::Env::default();
    let default = default.default_filter_or("anonymize=warn,datafusion_anonymize=warn");
    env_logger::Builder::from_env(default)
        .format(|f, record| {
            // What others say in detail holds statements with their seeds, and values of the input.
            if record.level() > Level::Info && !ours(record.target()) {
                return Ok(());
            }
            let level = match record.level() {
                Level::Warn => "warning".to_owned(),
                other => other.as_str().to_lowercase(),
            };
            let text = hide(&record.args().to_string());
            writeln!(f, "{level}: {}", visible_lines(&text))
        })
        .init();
}

/// Whether a message comes from this project.
fn ours(target: &str) -> bool {
    let root = target.split("::").next().unwrap_or_default();
    ["anonymize", "datafusion_anonymize"].contains(&root)
}
