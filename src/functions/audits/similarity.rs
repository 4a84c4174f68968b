//! `similarity_attack`: classes whose sensitive values fall into one category.

use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::count_distinct;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};

use super::audit::{CATEGORIES, PUBLISHED};
use super::classes::{ID, ONE_ROW, QI, SEED, SENSITIVE, seeded, spec};
use super::roles::{CLASS, Roles};
use super::{AuditEntry, Given};
use crate::logical::ClassesNode;
use crate::measure::ClassesSpec;

/// The entry of `similarity_attack`.
pub(super) const SIMILARITY_ATTACK: AuditEntry = AuditEntry {
    name: "similarity_attack",
    help: "the classes whose sensitive values fall into one category, and whom they expose",
    relations: &[PUBLISHED],
    arguments: &[ID, ONE_ROW, QI, SENSITIVE, CATEGORIES, SEED],
    build,
};

/// A class is vulnerable if all of its known values have one category (Sun 2010, Section 7.1.2); those who have such a
/// value are exposed.
fn build(given: &mut Given) -> Result<LogicalPlan> {
    let roles = Roles::take(given)?;
    let Some(categories) = given.categories() else {
        return Err(given.refuse(
            "categories",
            "is missing: list the categories of the sensitive values, the most sensitive first",
        ));
    };
    let spec = ClassesSpec {
        categories: true,
        ..spec(given, &roles)?
    };
    let spec = seeded(given, spec)?;
    let all = LogicalPlanBuilder::from(roles.members()?)
        .aggregate(
            Vec::<Expr>::new(),
            vec![count_distinct(col(CLASS)).alias("classes")],
        )?
        .build()?;
    let inputs = vec![roles.records()?, roles.values(Some(&categories))?];
    LogicalPlanBuilder::from(ClassesNode::plan(spec, inputs)?)
        .filter(col("categories").eq(lit(1i64)))?
        .cross_join(all)?
        .project(vec![
            col("class"),
            (col("category") + lit(1i64)).alias("category"),
            col("individuals"),
            col("records"),
            col("values").alias("distinct_l"),
            (col("individuals") - col("individuals_without_value")).alias("exposed_individuals"),
            col("known_records").alias("exposed_records"),
            col("classes"),
        ])?
        .alias(given.function())?
        .build()
}
