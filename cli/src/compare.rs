//! `anonymize compare`: what was lost on the way to a published table.

use datafusion_anonymize::publish::RequiredLevel;

use crate::Failure;
use crate::measure::{self, Arguments, Call, Format};

/// See what was lost on the way from the original table to the published one, per column and in total.
///
/// Individuals that were dropped count as lost in full. Domains are those of the original table, unless
/// given.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER_HELP)]
pub struct Args {
    /// The table before it was anonymized: a file, a folder, or a URL
    original: String,

    /// The published table
    published: String,

    /// The column of the published table that tells individuals apart
    #[arg(
        long,
        value_name = "COLUMN",
        required_unless_present = "one_row_per_individual"
    )]
    id: Option<String>,

    /// The column of the original table that does [default: the same name]
    #[arg(long, value_name = "COLUMN", requires = "id")]
    original_id: Option<String>,

    /// No individual has two records, and there are no such columns
    #[arg(long, conflicts_with = "id")]
    one_row_per_individual: bool,

    /// The generalized columns; they have the same names in both tables
    #[arg(
        long,
        value_name = "COLUMNS",
        required = true,
        value_delimiter = ',',
        num_args = 1
    )]
    qi: Vec<String>,

    /// The sensitive column
    #[arg(long, value_name = "COLUMN")]
    sensitive: Option<String>,

    /// Columns of a numeric type whose values are names, such as postcodes
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', num_args = 1)]
    categorical: Vec<String>,

    /// The hierarchy of a column: a file with a row leaf, level 1, ... per leaf; may be given several times
    #[arg(long, value_name = "COLUMN=FILE", value_parser = measure::hierarchy)]
    hierarchy: Vec<(String, String)>,

    /// The domain of a column, its ends or its values: age=0,120 or sex=F,M; may be given several times
    /// [default: from the original table]
    #[arg(long, value_name = "COLUMN=VALUES", value_parser = measure::domain)]
    domain: Vec<(String, Vec<String>)>,

    /// The published ids are those of the original, so that SA-NCP can be told per original value
    #[arg(long, requires = "id")]
    same_ids: bool,

    /// The k that CAVG is measured against [default: the smallest class]
    #[arg(long, value_name = "K")]
    k: Option<u64>,

    /// Exit with code 1 unless this level is reached in total; may be given several times
    #[arg(long, value_name = "MEASURE=LEVEL", value_parser = measure::required)]
    require: Vec<RequiredLevel>,

    /// Most memory, such as 512m or 10g; what needs more is spilled to disk or refused [default: no limit]
    #[arg(short, long, value_name = "SIZE", value_parser = crate::sql::size)]
    memory_limit: Option<u64>,

    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const AFTER_HELP: &str = "\
Examples:
  anonymize compare visits.parquet published/ --id individual --original-id patient \\
    --qi age,sex,postcode --categorical postcode --sensitive disease

Exit codes:
  0    done, and every required level is reached
  1    failed, or a required level is missed
  2    wrong usage
  130  interrupted (Ctrl-C)
  141  whoever read the output went away";

pub async fn run(args: Args) -> Result<(), Failure> {
    let mut arguments = Arguments::default();
    arguments.text("id", args.id.as_deref());
    arguments.text("original_id", args.original_id.as_deref());
    let alone = args.one_row_per_individual.then_some(true);
    arguments.plain("one_row_per_individual", alone);
    arguments.texts("qi", &args.qi);
    arguments.text("sensitive", args.sensitive.as_deref());
    arguments.texts("categorical", &args.categorical);
    arguments.map("hierarchy", &args.hierarchy);
    arguments.lists("domain", &args.domain);
    arguments.plain("same_ids", args.same_ids.then_some(true));
    arguments.plain("k", args.k);
    let call = Call {
        function: "information_loss",
        tables: &[&args.original, &args.published],
        arguments,
        group: "column",
        memory_limit: args.memory_limit,
    };
    measure::run(call, args.format, &args.require).await
}
