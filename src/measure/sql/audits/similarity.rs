//! `similarity_attack`: classes whose sensitive values fall into one category, or mostly do.

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::count_distinct;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit};

use super::audit::{CATEGORIES, PUBLISHED};
use super::classes::{ID, ONE_ROW, QI, SEED, seeded, spec};
use super::roles::{CLASS, Roles};
use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::measure::ClassesSpec;
use crate::pipeline::ClassesNode;
use crate::table::Categories;

const SENSITIVE_COLUMNS: Argument = Argument::required(
    "sensitive",
    ArgumentKind::Columns,
    "the columns to protect, one or several, each with categories",
);

const MAX_CATEGORY_SHARE: Argument = Argument::optional(
    "max_category_share",
    ArgumentKind::Share,
    "lists classes too in which one category has a larger share of the individuals with a value",
)
.or("one category only");

/// The entry of `similarity_attack`.
pub(super) const SIMILARITY_ATTACK: Function = Function {
    name: "similarity_attack",
    help: "the classes whose values of a sensitive column fall into one category, and whom they expose",
    positional: 1,
    arguments: Cow::Borrowed(&[
        PUBLISHED,
        ID,
        ONE_ROW,
        QI,
        SENSITIVE_COLUMNS,
        CATEGORIES,
        MAX_CATEGORY_SHARE,
        SEED,
    ]),
    refused: &[],
    plan,
};

/// A class is vulnerable if all of its known values of a column have one category (Sun 2010, Section 7.1.2), or too large
/// a share of those who have a value have one of it; those are exposed.
fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let columns = Roles::take_each(given)?;
    let first = spec(given, &columns[0])?;
    let key = seeded(given, first)?.key;
    let max_category_share = given.share("max_category_share")?;
    let names: Vec<String> = columns
        .iter()
        .map(|c| c.sensitive_name().to_owned())
        .collect();
    let read = given.categories(&names)?;
    let mut attacks = vec![];
    for roles in &columns {
        let own = read.iter().find(|(of, _)| of == roles.sensitive_name());
        let Some((_, categories)) = own else {
            return Err(given.refuse("categories", missing(&columns, roles)));
        };
        let spec = ClassesSpec {
            categories: true,
            max_category_share: max_category_share.clone(),
            key: key.clone(),
            ..spec(given, roles)?
        };
        attacks.push(attack(roles, spec, categories)?);
    }
    let first = LogicalPlanBuilder::from(attacks.remove(0));
    attacks
        .into_iter()
        .try_fold(first, LogicalPlanBuilder::union)?
        .alias(given.function())?
        .build()
}

fn missing(columns: &[Roles], roles: &Roles) -> String {
    let name = roles.sensitive_name();
    match columns.len() {
        1 => "is missing: list the categories of the sensitive values, the most sensitive first"
            .to_owned(),
        _ => format!(
            "is missing for '{name}': give the categories of every sensitive column, {{{name}: …}}"
        ),
    }
}

/// The classes that one column makes vulnerable.
fn attack(roles: &Roles, spec: ClassesSpec, categories: &Categories) -> Result<LogicalPlan> {
    let all = LogicalPlanBuilder::from(roles.members()?)
        .aggregate(
            Vec::<Expr>::new(),
            vec![count_distinct(col(CLASS)).alias("classes")],
        )?
        .build()?;
    let inputs = vec![roles.records()?, roles.values(Some(categories))?];
    let known = col("individuals") - col("individuals_without_value");
    let share =
        cast(col("category_individuals"), DataType::Float64) / cast(known, DataType::Float64);
    let vulnerable = col("categories").eq(lit(1i64));
    LogicalPlanBuilder::from(ClassesNode::plan(spec, inputs)?)
        .filter(vulnerable.or(col("category_stands_out").is_true()))?
        .cross_join(all)?
        .project(vec![
            col("class"),
            lit(roles.sensitive_name()).alias("sensitive"),
            (col("category") + lit(1i64)).alias("category"),
            col("individuals"),
            col("records"),
            col("values").alias("distinct_l"),
            share.alias("category_share"),
            col("category_individuals").alias("exposed_individuals"),
            col("category_records").alias("exposed_records"),
            col("classes"),
        ])?
        .build()
}
