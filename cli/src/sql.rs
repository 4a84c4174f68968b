//! `anonymize sql`: the DataFusion shell with the functions that anonymize.

use std::env;
use std::fs;
use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use datafusion::prelude::SessionContext;
use datafusion_cli::DATAFUSION_CLI_VERSION;
use datafusion_cli::exec::{exec_from_files, exec_from_repl};
use datafusion_cli::object_storage::is_stdin_location;
use datafusion_cli::pool_type::PoolType;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};

use crate::Failure;
use crate::output::{Output, end_at_interrupt, end_at_termination};
use crate::session::{Limits, session};
use crate::statements::Statements;

/// Run SQL that anonymizes: a shell, or statements given by -c, -f or standard input.
///
/// This is the shell of Apache DataFusion with the functions of datafusion-anonymize. Tables are files
/// ('visits.parquet', 'folder/', 's3://bucket/visits/') or what CREATE EXTERNAL TABLE, CREATE VIEW and
/// CREATE TABLE make; COPY ... TO writes files.
///
/// With -c or -f, or when standard input is not a terminal, statements run in order and the first that
/// fails ends the program with exit code 1. Files run before commands. Each file and each command is
/// parsed whole before any of it runs. Results go to standard output, errors, row counts and times to
/// standard error. CSV, TSV and NDJSON are printed as rows come, with no limit on their number.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER_HELP)]
pub struct Args {
    /// Run the SQL and exit; may be given several times
    #[arg(short, long, value_name = "SQL", num_args = 1.., value_parser = command)]
    command: Vec<String>,

    /// Run the SQL in a file and exit; may be given several times
    #[arg(short, long, value_name = "FILE", num_args = 1.., value_parser = script_file)]
    file: Vec<PathBuf>,

    /// Run these files when the shell opens, instead of ~/.datafusionrc
    #[arg(short, long, value_name = "FILE", num_args = 0.., value_parser = script_file,
          conflicts_with_all = ["file", "command"])]
    rc: Option<Vec<PathBuf>>,

    /// How to print results; automatic is table
    #[arg(long, value_enum, default_value_t = PrintFormat::Automatic)]
    format: PrintFormat,

    /// Print results only
    #[arg(short, long)]
    quiet: bool,

    /// Most rows to print of a table, or 'inf'; other formats print all rows
    #[arg(long, value_name = "ROWS", default_value = "40")]
    maxrows: MaxRows,

    /// Highlight SQL in the shell
    #[arg(long)]
    color: bool,

    /// Folder that relative paths start from [default: the current one]
    #[arg(short = 'p', long, value_name = "FOLDER", value_parser = folder)]
    data_path: Option<PathBuf>,

    /// Rows per batch [default: 8192]
    #[arg(short, long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: Option<u32>,

    /// Most memory for running statements, such as 512m or 10g [default: no limit]
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,

    /// How to share that memory: 'fair', which suits sorts that spill to disk, or 'greedy'
    #[arg(long, value_name = "TYPE", default_value_t = PoolType::Fair)]
    mem_pool_type: PoolType,

    /// Most disk space for spilling, such as 10g [default: 100g]
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    disk_limit: Option<u64>,
}

const AFTER_HELP: &str = "\
Examples:
  Look at made-up patients, as CSV:
    anonymize sql --format csv -c \"SELECT * FROM sample_patients(individuals => 100, seed => 1)\"

  Publish a table in which every class keeps at least 3 diseases apart:
    anonymize sql -c \"COPY (SELECT * FROM anonymize_eir('visits.parquet',
        id => patient, qi => [age, sex, postcode], sensitive => disease, l => 3))
      TO 'published/' STORED AS PARQUET\"

  See what will be done:
    anonymize sql -c \"EXPLAIN SELECT * FROM anonymize_eir(...)\"

Settings can be given by SET datafusion.… = … or by environment variables such as
DATAFUSION_EXECUTION_TARGET_PARTITIONS. The shell keeps its history in .history in the current folder.

Exit codes:
  0    all statements ran
  1    a statement failed
  2    wrong usage
  130  interrupted (Ctrl-C; in the shell it ends the statement only)
  141  whoever read the output went away";

pub async fn run(args: Args) -> Result<(), Failure> {
    let interactive = args.command.is_empty() && args.file.is_empty() && stdin().is_terminal();
    if interactive {
        end_at_termination()?;
    } else {
        end_at_interrupt()?;
    }
    let sql_from_stdin = interactive
        || (args.command.is_empty() && args.file.is_empty())
        || args
            .file
            .iter()
            .any(|file| file.to_str().is_some_and(is_stdin_location));
    // Before the folder changes: relative file names are relative to where the program was called.
    let scripts = if interactive { vec![] } else { scripts(&args)? };
    if let Some(folder) = &args.data_path {
        env::set_current_dir(folder)?;
    }

    let (context, registry) = session(&Limits {
        batch_size: args.batch_size.map(usize::try_from).transpose()?,
        memory_bytes: args.memory_limit.map(usize::try_from).transpose()?,
        pool: args.mem_pool_type.clone(),
        disk_bytes: args.disk_limit,
        sql_from_stdin,
        // Who sits at a terminal can look at the values anyhow, and nobody else reads what it shows.
        shows_values: interactive && stderr().is_terminal(),
    })
    .await?;
    let options = PrintOptions {
        format: args.format,
        quiet: args.quiet,
        maxrows: args.maxrows,
        color: args.color,
        instrumented_registry: registry,
    };
    if interactive {
        shell(&context, options, args.rc).await
    } else {
        Ok(Statements::new(context, options).run(scripts).await?)
    }
}

async fn shell(
    context: &SessionContext,
    mut options: PrintOptions,
    rc: Option<Vec<PathBuf>>,
) -> Result<(), Failure> {
    if !options.quiet {
        let version = env!("CARGO_PKG_VERSION");
        writeln!(
            Output,
            "anonymize {version}, on DataFusion {DATAFUSION_CLI_VERSION}"
        )?;
    }
    let rc = rc.unwrap_or_else(|| {
        let usual = env::home_dir().map(|home| home.join(".datafusionrc"));
        usual.into_iter().filter(|file| file.exists()).collect()
    });
    let rc = rc
        .iter()
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    exec_from_files(context, rc, &options).await?;
    Ok(exec_from_repl(context, &mut options).await?)
}

/// Files, then commands; standard input if there are neither.
fn scripts(args: &Args) -> Result<Vec<String>, Failure> {
    let mut scripts = vec![];
    for file in &args.file {
        let script = fs::read_to_string(file)
            .map_err(|error| format!("cannot read '{}': {error}", file.display()))?;
        scripts.push(without_interpreter(script));
    }
    scripts.extend(args.command.iter().cloned());
    if scripts.is_empty() {
        let mut script = String::new();
        stdin().read_to_string(&mut script)?;
        scripts.push(without_interpreter(script));
    }
    Ok(scripts)
}

/// A script may name its interpreter, `#!/usr/bin/env …`, in the first line.
fn without_interpreter(script: String) -> String {
    match script.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => rest.into(),
        _ => script,
    }
}

fn command(sql: &str) -> Result<String, String> {
    if sql.trim().is_empty() {
        Err("the command is empty".into())
    } else {
        Ok(sql.into())
    }
}

/// Anything that can be read, so also a pipe.
fn script_file(path: &str) -> Result<PathBuf, String> {
    match Path::new(path) {
        path if path.is_dir() => Err("it is a folder".into()),
        path if !path.exists() => Err("there is no such file".into()),
        path => Ok(path.into()),
    }
}

fn folder(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    if path.is_dir() {
        Ok(path.into())
    } else {
        Err("there is no such folder".into())
    }
}

/// Bytes: a whole number, and b, k, m, g or t (or kb, mb, …), in either case.
pub fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &lower[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" => 1,
        "m" | "mb" => 2,
        "g" | "gb" => 3,
        "t" | "tb" => 4,
        _ => return Err("the unit is none of b, k, m, g, t".into()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected a whole number and a unit, such as 512m or 10g")?;
    number
        .checked_mul(1 << (10 * power))
        .ok_or_else(|| "it is too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("12"), Ok(12));
        assert_eq!(size("3k"), Ok(3 << 10));
        assert_eq!(size("512MB"), Ok(512 << 20));
        assert_eq!(size("10g"), Ok(10 << 30));
        assert_eq!(size("1t"), Ok(1 << 40));
        for wrong in ["", "g", "-1g", "1.5g", "10 g", "10x", "99999999999t"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_interpreter_line_is_no_sql() {
        assert_eq!(without_interpreter("#!/bin/x\nselect 1".into()), "select 1");
        assert_eq!(without_interpreter("select 1\n#!".into()), "select 1\n#!");
    }
}
