//! `anonymize audit`: what a published table attains.

use crate::Failure;
use crate::measure::{Described, Measuring};
use crate::options::{Options, shown};

/// The command.
pub type Args = Measuring<Audit>;

/// What sets the command apart.
#[derive(Debug)]
pub struct Audit;

impl Described for Audit {
    const ABOUT: &str = "See what a published table attains: individuals, classes, models, risks, and what is not protected.";
    const MORE: &str = "\
Reads any table, whoever made it: values may be plain ('F', 34), or generalized as structs, lists or
text ('[33, 34]', '{a, b}', '1007*'). Classes are records with the same quasi-identifiers, as they
stand in the file. Every level counts individuals, not rows.";
    const AFTER_HELP: &str = AFTER_HELP;
    const REQUIRE: &str =
        "Exit with code 1 unless this level is reached; may be given several times";
    const OPTIONS: &Options = &OPTIONS;
    const GROUP: &str = "section";
}

/// Its options.
pub const OPTIONS: Options = Options {
    function: "audit",
    shown: &[
        shown(
            "published",
            "The published table: a file, a folder, or a URL of Parquet, CSV, JSON, Avro or Arrow files",
        ),
        shown(
            "id",
            "The column that tells individuals apart, usually a pseudonym",
        )
        .unless("one_row_per_individual"),
        shown(
            "one_row_per_individual",
            "No individual has two records, and there is no such column",
        )
        .conflicts("id"),
        shown("qi", "The columns that an attacker may know"),
        shown("sensitive", "The column to protect"),
        shown(
            "categories",
            "Categories of its values, for p_plus and p_alpha: a file with the columns rank (1 for the most \
             sensitive) and value, or lists, the most sensitive first: 'HIV,Cancer;Heart;Flu'",
        )
        .placeholder("FILE|LISTS"),
        shown("c", "The c of recursive (c, l)-diversity [default: 3]").placeholder("C"),
        shown(
            "l",
            "Count the classes that satisfy IR (k, l)-anonymity and not EIR l-diversity",
        ).placeholder("L"),
        shown("k", "The k of that [default: L]").placeholder("K").requires("l"),
        shown(
            "alpha",
            "Count the classes that satisfy IR (α, β)-anonymity and not EIR (α, β)-anonymity",
        )
        .requires("beta")
        .conflicts("l"),
        shown("beta", "The β of that").requires("alpha"),
        shown(
            "population",
            "The people among whom an attacker looks, with the quasi-identifiers as they are",
        ),
        shown(
            "population_id",
            "The column that tells them apart [default: one row each]",
        )
        .requires("population"),
        shown(
            "original",
            "The table before it was anonymized, to check that the published one is true",
        ),
        shown(
            "original_id",
            "The column of that table that tells individuals apart [default: the same name]",
        )
        .requires("original"),
        shown(
            "same_ids",
            "The published ids are those of the original: compare each individual with itself",
        )
        .requires("original"),
        shown(
            "hierarchy",
            "The hierarchy of a column published as labels: a file with a row leaf, level 1, ... per leaf; for \
             --original and --population; may be given several times",
        ),
    ],
    left_out: &[],
};

const AFTER_HELP: &str = "\
Examples:
  anonymize audit published/ --id individual --qi age,sex,postcode --sensitive disease

  Let a pipeline stop unless every class has 10 individuals and 3 values in every reasoning set, and
  every record is that of one individual in one class:
    anonymize audit published.csv --id individual --qi age,sex,postcode --sensitive disease \\
      --require k=10 --require eir_l=3

  The same for two categories of diseases, and a total weight of 1, in every class:
    anonymize audit published.csv --id individual --qi age,sex,postcode --sensitive disease \\
      --categories categories.csv --require p=2 --require p_plus=2 --require p_alpha=1

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
