//! `anonymize audit`: what a published table attains.

use datafusion_anonymize::publish::RequiredLevel;

use crate::Failure;
use crate::measure::{self, Arguments, Call, Format};

/// See what a published table attains: individuals, classes, models, risks, and what is not protected.
///
/// Reads any table, whoever made it: values may be plain ('F', 34), or generalized as structs, lists or
/// text ('[33, 34]', '{a, b}', '1007*'). Classes are records with the same quasi-identifiers, as they
/// stand in the file. Every level counts individuals, not rows.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER_HELP)]
pub struct Args {
    /// The published table: a file, a folder, or a URL of Parquet, CSV, JSON, Avro or Arrow files
    file: String,

    /// The column that tells individuals apart, usually a pseudonym
    #[arg(
        long,
        value_name = "COLUMN",
        required_unless_present = "one_row_per_individual"
    )]
    id: Option<String>,

    /// No individual has two records, and there is no such column
    #[arg(long, conflicts_with = "id")]
    one_row_per_individual: bool,

    /// The columns that an attacker may know
    #[arg(
        long,
        value_name = "COLUMNS",
        required = true,
        value_delimiter = ',',
        num_args = 1
    )]
    qi: Vec<String>,

    /// The column to protect
    #[arg(long, value_name = "COLUMN")]
    sensitive: String,

    /// Categories of its values, for p_plus and p_alpha: a file with the columns rank (1 for the most
    /// sensitive) and value, or lists, the most sensitive first: 'HIV,Cancer;Heart;Flu'
    #[arg(long, value_name = "FILE|LISTS")]
    categories: Option<String>,

    /// The c of recursive (c, l)-diversity [default: 3]
    #[arg(long, value_name = "C")]
    c: Option<f64>,

    /// Count the classes that satisfy IR (k, l)-anonymity and not EIR l-diversity
    #[arg(long, value_name = "L")]
    l: Option<u64>,

    /// The k of that [default: L]
    #[arg(long, value_name = "K", requires = "l")]
    k: Option<u64>,

    /// Count the classes that satisfy IR (α, β)-anonymity and not EIR (α, β)-anonymity
    #[arg(long, value_name = "SHARE", requires = "beta", conflicts_with = "l", value_parser = measure::share)]
    alpha: Option<String>,

    /// The β of that
    #[arg(long, value_name = "SHARE", requires = "alpha", value_parser = measure::share)]
    beta: Option<String>,

    /// The people among whom an attacker looks, with the quasi-identifiers as they are
    #[arg(long, value_name = "FILE")]
    population: Option<String>,

    /// The column that tells them apart [default: one row each]
    #[arg(long, value_name = "COLUMN", requires = "population")]
    population_id: Option<String>,

    /// The table before it was anonymized, to check that the published one is true
    #[arg(long, value_name = "FILE")]
    original: Option<String>,

    /// The column of that table that tells individuals apart [default: the same name]
    #[arg(long, value_name = "COLUMN", requires = "original")]
    original_id: Option<String>,

    /// The published ids are those of the original: compare each individual with itself
    #[arg(long, requires = "original")]
    same_ids: bool,

    /// The hierarchy of a column published as labels: a file with a row leaf, level 1, ... per leaf; for
    /// --original and --population; may be given several times
    #[arg(long, value_name = "COLUMN=FILE", value_parser = measure::hierarchy)]
    hierarchy: Vec<(String, String)>,

    /// Exit with code 1 unless this level is reached; may be given several times
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

pub async fn run(args: Args) -> Result<(), Failure> {
    let mut arguments = Arguments::default();
    arguments.text("id", args.id.as_deref());
    let alone = args.one_row_per_individual.then_some(true);
    arguments.plain("one_row_per_individual", alone);
    arguments.texts("qi", &args.qi);
    arguments.text("sensitive", Some(&args.sensitive));
    arguments.plain("categories", args.categories.as_deref().map(categories));
    arguments.plain("c", args.c);
    arguments.plain("k", args.k);
    arguments.plain("l", args.l);
    arguments.plain("alpha", args.alpha);
    arguments.plain("beta", args.beta);
    arguments.text("population", args.population.as_deref());
    arguments.text("population_id", args.population_id.as_deref());
    arguments.text("original", args.original.as_deref());
    arguments.text("original_id", args.original_id.as_deref());
    arguments.plain("same_ids", args.same_ids.then_some(true));
    arguments.map("hierarchy", &args.hierarchy);
    let call = Call {
        function: "audit",
        tables: &[&args.file],
        arguments,
        group: "section",
        memory_limit: args.memory_limit,
    };
    measure::run(call, args.format, &args.require).await
}

/// `a,b;c` as `[['a', 'b'], ['c']]`, and anything without a semicolon as the path of a file: one category says nothing.
fn categories(text: &str) -> String {
    if !text.contains(';') {
        return measure::quoted(text);
    }
    let category = |text: &str| {
        let values: Vec<String> = text.split(',').map(|v| v.trim().to_owned()).collect();
        measure::list(&values)
    };
    let categories: Vec<_> = text.split(';').map(category).collect();
    format!("[{}]", categories.join(", "))
}

#[cfg(test)]
mod tests {
    use super::categories;

    #[test]
    fn lists_of_values_or_a_file() {
        assert_eq!(
            categories("HIV, Cancer;Flu"),
            "[['HIV', 'Cancer'], ['Flu']]"
        );
        assert_eq!(categories("categories.csv"), "'categories.csv'");
    }
}
