//! Running statements for `anonymize sql -c` and `-f`, where the output goes to another program.
//!
//! datafusion-cli parses and plans them and registers the object stores they name. It would also run
//! and print them, but made for a reader at a terminal: it cuts every format off at `--maxrows`, keeps
//! what it prints in memory, and prints row counts and times between the results. So that part is here.

use std::io::{BufWriter, IsTerminal, Write, stderr, stdout};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::{csv, json};
use datafusion::common::tree_node::TreeNode;
use datafusion::config::FormatOptions;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::object_store::ObjectStore;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use datafusion_anonymize::steps;
use datafusion_cli::cli_context::CliSessionContext;
use datafusion_cli::exec::exec_from_commands;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use futures::StreamExt;
use url::Url;

use crate::copied::{Copied, check_flat, ours};
use crate::output::Output;
use crate::progress::Progress;

/// A session that prints what its statements give.
pub struct Statements {
    context: SessionContext,
    options: PrintOptions,
}

impl Statements {
    pub fn new(context: SessionContext, options: PrintOptions) -> Self {
        Self { context, options }
    }

    /// Runs the statements of each script in order; the first that fails is the last that runs.
    pub async fn run(&self, scripts: Vec<String>) -> Result<()> {
        let silent = PrintOptions {
            quiet: true,
            ..self.options.clone()
        };
        exec_from_commands(self, scripts, &silent).await
    }

    /// Prints a result, and returns its number of rows.
    async fn print(
        &self,
        mut batches: SendableRecordBatchStream,
        max_rows: MaxRows,
        progress: Progress,
    ) -> Result<usize> {
        let schema = batches.schema();
        let state = self.context.state();
        let format = &state.config_options().format;
        if schema.fields().is_empty() {
            while batches.next().await.transpose()?.is_some() {}
            return Ok(0);
        }
        let Some(mut rows) = Rows::new(self.options.format) else {
            return self.print_table(batches, max_rows, progress, format).await;
        };

        // Results on the terminal would begin in the middle of the line that shows the progress.
        let mut progress = Some(progress).filter(|_| !stdout().is_terminal());
        let mut count = 0;
        while let Some(batch) = batches.next().await.transpose()? {
            count += batch.num_rows();
            rows.write(&batch)?;
        }
        progress.take();
        rows.finish(schema)?;
        Ok(count)
    }

    /// A table is as wide as its widest value, so its rows are held until all are there.
    async fn print_table(
        &self,
        mut batches: SendableRecordBatchStream,
        max_rows: MaxRows,
        progress: Progress,
        format: &FormatOptions,
    ) -> Result<usize> {
        let reservation =
            MemoryConsumer::new("results").register(&self.context.runtime_env().memory_pool);
        let limit = match max_rows {
            MaxRows::Unlimited => usize::MAX,
            MaxRows::Limited(limit) => limit,
        };
        let mut shown = vec![];
        let mut count = 0;
        while let Some(batch) = batches.next().await.transpose()? {
            // One more than the limit, so that the printer sees that there are more.
            if count <= limit && batch.num_rows() > 0 {
                reservation.try_grow(get_record_batch_memory_size(&batch))?;
                shown.push(batch.clone());
            }
            count += batch.num_rows();
        }
        drop(progress);
        let mut output = BufWriter::new(Output);
        let schema = batches.schema();
        PrintFormat::Table.print_batches(&mut output, schema, &shown, max_rows, true, format)?;
        output.flush()?;
        Ok(count)
    }

    /// What there is to say about a result, beside it.
    fn print_footer(&self, count: usize, max_rows: MaxRows, start: Instant) {
        if self.options.quiet {
            return;
        }
        let table = Rows::new(self.options.format).is_none();
        let cut = match max_rows {
            MaxRows::Limited(limit) if table && limit < count => {
                format!(" (First {limit} displayed. Use --maxrows to adjust)")
            }
            _ => String::new(),
        };
        let seconds = start.elapsed().as_secs_f64();
        let _ = writeln!(
            stderr(),
            "{count} row(s) fetched.{cut} Elapsed {seconds:.3} seconds."
        );
    }
}

#[async_trait]
impl CliSessionContext for Statements {
    fn task_ctx(&self) -> Arc<TaskContext> {
        self.context.task_ctx()
    }

    fn session_state(&self) -> SessionState {
        self.context.state()
    }

    fn register_object_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.context.register_object_store(url, store)
    }

    fn register_table_options_extension_from_scheme(&self, scheme: &str) {
        CliSessionContext::register_table_options_extension_from_scheme(&self.context, scheme);
    }

    /// Runs and prints the plan, and leaves nothing for datafusion-cli to print.
    async fn execute_logical_plan(&self, plan: LogicalPlan) -> Result<DataFrame> {
        let start = Instant::now();
        let running: Arc<OnceLock<Arc<dyn ExecutionPlan>>> = Arc::default();
        let told = Arc::clone(&running);
        let progress = Progress::of("running", move || told.get().map(steps).unwrap_or_default());
        let max_rows = if shown_whole(&plan)? {
            MaxRows::Unlimited
        } else {
            self.options.maxrows
        };

        let separated = matches!(self.options.format, PrintFormat::Csv | PrintFormat::Tsv);
        if separated && ours(&plan)? && !matches!(plan, LogicalPlan::Copy(_)) {
            check_flat(plan.schema().as_arrow())?;
        }
        let copied = Copied::of(&self.context.state(), &plan).await?;
        let run = async {
            let frame = self.context.execute_logical_plan(plan).await?;
            let task = Arc::new(frame.task_ctx());
            let plan = frame.create_physical_plan().await?;
            let _ = running.set(Arc::clone(&plan));
            let batches = execute_stream(plan, task)?;
            self.print(batches, max_rows, progress).await
        };
        let count = match copied {
            None => run.await?,
            Some(copied) => copied.end(run.await).await?,
        };
        self.print_footer(count, max_rows, start);

        let nothing = LogicalPlanBuilder::empty(false).build()?;
        Ok(DataFrame::new(self.context.state(), nothing))
    }
}

/// Whether half a result would be of no use: plans, descriptions, settings.
fn shown_whole(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(match node {
            LogicalPlan::Explain(_) | LogicalPlan::DescribeTable(_) | LogicalPlan::Analyze(_) => {
                true
            }
            LogicalPlan::TableScan(scan) => scan.table_name.schema() == Some("information_schema"),
            _ => false,
        })
    })
}

/// Writers that need not see all rows before they write the first.
enum Rows {
    Separated(Box<csv::Writer<BufWriter<Output>>>),
    Array(json::ArrayWriter<BufWriter<Output>>),
    Lines(json::LineDelimitedWriter<BufWriter<Output>>),
}

impl Rows {
    /// The writer of a format; none for tables.
    fn new(format: PrintFormat) -> Option<Self> {
        let output = BufWriter::new(Output);
        let separated = |separator, output| {
            let builder = csv::WriterBuilder::new()
                .with_header(true)
                .with_delimiter(separator);
            Self::Separated(Box::new(builder.build(output)))
        };
        Some(match format {
            PrintFormat::Csv => separated(b',', output),
            PrintFormat::Tsv => separated(b'\t', output),
            PrintFormat::Json => Self::Array(json::ArrayWriter::new(output)),
            PrintFormat::NdJson => Self::Lines(json::LineDelimitedWriter::new(output)),
            PrintFormat::Table | PrintFormat::Automatic => return None,
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::Separated(writer) => writer.write(batch),
            Self::Array(writer) => writer.write(batch),
            Self::Lines(writer) => writer.write(batch),
        }
    }

    /// Closes what was opened. A result without rows is still one: a header, an empty array.
    fn finish(mut self, schema: SchemaRef) -> Result<()> {
        self.write(&RecordBatch::new_empty(schema))?;
        let mut output = match self {
            Self::Separated(writer) => writer.into_inner(),
            Self::Array(mut writer) => {
                writer.finish()?;
                let mut output = writer.into_inner();
                writeln!(output)?;
                output
            }
            Self::Lines(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
        };
        Ok(output.flush()?)
    }
}
