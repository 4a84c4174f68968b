//! `anonymize compare`: what was lost on the way to a published table.

use crate::Failure;
use crate::measure::{Described, Measuring};
use crate::options::{Options, shown};

/// The command.
pub type Args = Measuring<Compare>;

/// What sets the command apart.
#[derive(Debug)]
pub struct Compare;

impl Described for Compare {
    const ABOUT: &str = "See what was lost on the way from the original table to the published one, per column and in total.";
    const MORE: &str = "\
Individuals that were dropped count as lost in full. Domains are those of the original table, unless
given.";
    const AFTER_HELP: &str = AFTER_HELP;
    const REQUIRE: &str =
        "Exit with code 1 unless this level is reached in total; may be given several times";
    const OPTIONS: &Options = &OPTIONS;
    const GROUP: &str = "column";
}

/// Its options.
pub const OPTIONS: Options = Options {
    function: "information_loss",
    shown: &[
        shown(
            "original",
            "The table before it was anonymized: a file, a folder, or a URL",
        )
        .placeholder("ORIGINAL"),
        shown("published", "The published table").placeholder("PUBLISHED"),
        shown(
            "id",
            "The column of the published table that tells individuals apart",
        )
        .unless("one_row_per_individual"),
        shown(
            "original_id",
            "The column of the original table that does [default: the same name]",
        )
        .requires("id"),
        shown(
            "one_row_per_individual",
            "No individual has two records, and there are no such columns",
        )
        .conflicts("id"),
        shown(
            "qi",
            "The generalized columns; they have the same names in both tables",
        ),
        shown("sensitive", "The sensitive column"),
        shown(
            "categorical",
            "Columns of a numeric type whose values are names, such as postcodes",
        ),
        shown(
            "hierarchy",
            "The hierarchy of a column: a file with a row leaf, level 1, ... per leaf; may be given several times",
        ),
        shown(
            "domain",
            "The domain of a column, its ends or its values: age=0,120 or sex=F,M; may be given several times \
             [default: from the original table]",
        ),
        shown(
            "same_ids",
            "The published ids are those of the original, so that SA-NCP can be told per original value",
        )
        .requires("id"),
        shown(
            "k",
            "The k that CAVG is measured against [default: the smallest class]",
        ).placeholder("K"),
    ],
    // Reports of releases ask for it.
    left_out: &["published_only"],
};

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

/// Runs the command.
pub async fn run(args: Args) -> Result<(), Failure> {
    args.run().await
}
