//! From class rows to the figures of the whole table, in one row.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions::core::expr_fn::{coalesce, get_field};
use datafusion::functions_aggregate::expr_fn::{count, max, median, min, sum};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when};

use super::unique_sets;

/// Name of each figure that is aggregated over classes, and how.
pub(super) fn of_classes() -> Result<Vec<(&'static str, Expr)>> {
    let individuals_if = |condition: Expr| -> Result<Expr> {
        Ok(sum(
            when(condition, col("individuals")).otherwise(lit(0i64))?
        ))
    };
    let classes_if = |condition: Expr| -> Result<Expr> {
        Ok(sum(when(condition, lit(1i64)).otherwise(lit(0i64))?))
    };
    // 1 / n is above 1 / m exactly if n < m.
    let smaller_than = |n: i64| individuals_if(col("individuals").lt(lit(n)));
    let vulnerable = col("plain_holds").and(col("enhanced_holds").is_false());
    let undecided = col("plain_holds").and(col("enhanced_holds").is_null());
    Ok(vec![
        ("classes", count(lit(1))),
        ("records", sum(col("records"))),
        ("members", sum(col("individuals"))),
        ("least_individuals", min(col("individuals"))),
        (
            "median_individuals",
            median(cast(col("individuals"), DataType::Float64)),
        ),
        ("most_individuals", max(col("individuals"))),
        ("least_records", min(col("records"))),
        ("values", min(col("values"))),
        ("eir", min(col("eir"))),
        ("alpha", max(col("alpha"))),
        ("beta", max(col("beta"))),
        ("eir_beta", max(col("eir_beta"))),
        ("entropy_l", min(col("entropy_l"))),
        ("recursive_l", min(col("recursive_l"))),
        ("t_equal", max(col("t_equal"))),
        ("t_ordered", max(col("t_ordered"))),
        ("categories", min(col("categories"))),
        ("category_share", max(col("category_share"))),
        ("weight", min(col("weight"))),
        ("unique_fingerprints", sum(col("unique_fingerprints"))),
        ("unique_record_counts", sum(col("unique_record_counts"))),
        ("fewest_in_common", min(col("fewest_in_common"))),
        ("fingerprint_l", min(col("fingerprint_l"))),
        ("related_share", max(col("related_share"))),
        (
            "individuals_without_value",
            sum(col("individuals_without_value")),
        ),
        ("duplicate_records", sum(col("duplicate_records"))),
        ("above_1_in_3", smaller_than(3)?),
        ("above_1_in_5", smaller_than(5)?),
        ("above_1_in_11", smaller_than(11)?),
        ("above_1_in_20", smaller_than(20)?),
        ("plain", classes_if(col("plain_holds"))?),
        ("vulnerable", classes_if(vulnerable)?),
        ("undecided", classes_if(undecided)?),
    ])
}

/// Name of each figure that is aggregated over gathered individuals, and the column that is added up.
const OF_INDIVIDUALS: [(&str, &str); 3] = [
    ("individuals", "named"),
    ("records_without_id", "nameless_records"),
    ("individuals_in_several_classes", "several"),
];

/// Name of each figure that comes from how often sets of values occur in the whole table.
const OF_SETS: [&str; 3] = ["unique_sets", "rarest_set", "sets_are_sampled"];

/// The figures of a table of class rows: one row of floats.
pub(super) fn aggregate_classes(classes: LogicalPlan) -> Result<LogicalPlan> {
    let sets = unique_sets().call(vec![col("fingerprints")]);
    let figures = of_classes()?;
    let mut floats = floats(&figures);
    floats.extend(OF_SETS.map(|name| get_field(col("__sets"), name).alias(name)));
    let figures = figures.into_iter().map(|(name, expr)| expr.alias(name));
    LogicalPlanBuilder::from(classes)
        .aggregate(Vec::<Expr>::new(), figures.chain([sets.alias("__sets")]))?
        .project(floats)?
        .build()
}

/// The figures of gathered individuals: one row of floats.
pub(super) fn aggregate_individuals(gathered: LogicalPlan) -> Result<LogicalPlan> {
    let sums = OF_INDIVIDUALS.map(|(name, column)| sum(col(column)).alias(name));
    // Of an empty table there are none.
    let floats = OF_INDIVIDUALS
        .map(|(name, _)| coalesce(vec![cast(col(name), DataType::Float64), lit(0.0)]).alias(name));
    LogicalPlanBuilder::from(gathered)
        .aggregate(Vec::<Expr>::new(), sums)?
        .project(floats)?
        .build()
}

fn floats(figures: &[(&str, Expr)]) -> Vec<Expr> {
    let float = |(name, _): &(&str, Expr)| cast(col(*name), DataType::Float64).alias(*name);
    figures.iter().map(float).collect()
}
