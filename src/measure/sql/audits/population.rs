//! Journalist and marketer risk: how many people of a larger population fit into each class.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::functions_aggregate::expr_fn::{count, max, sum};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, cast, col, ident, lit, when,
};

use super::roles::{CLASS, INDIVIDUAL, Roles, find, qi_name};
use crate::call::arguments::Arguments;

/// The figures of a population, in one row of floats: one individual per row of it, or per `population_id`.
pub(super) fn figures(
    given: &mut Arguments,
    roles: &Roles,
    population: LogicalPlan,
) -> Result<LogicalPlan> {
    let function = given.function();
    let id = given.column("population_id")?;
    let mut columns = vec![];
    for name in &roles.qi {
        let (column, _) = find(function, "population", name, population.schema())?;
        columns.push(Expr::Column(column).alias(qi_name(name)));
    }
    let values: Vec<Expr> = roles.qi.iter().map(|name| ident(qi_name(name))).collect();
    let people = match id {
        Some(id) => {
            let (id, _) = find(function, "population_id", &id, population.schema())?;
            columns.push(Expr::Column(id).alias(INDIVIDUAL));
            LogicalPlanBuilder::from(population)
                .project(columns)?
                .distinct()?
        }
        None => LogicalPlanBuilder::from(population).project(columns)?,
    };
    let people = people
        .aggregate(values, vec![count(lit(1)).alias("__weight")])?
        .build()?;
    let covers = roles.covers(people, sized_classes(roles)?, false)?;
    let float = |expr: Expr| cast(expr, DataType::Float64);
    // A population in which fewer fit than are published is not one; their number is then that of the class.
    let short = col("covered").lt(col("individuals"));
    let fitting = when(short.clone(), col("individuals")).otherwise(col("covered"))?;
    LogicalPlanBuilder::from(covers)
        .aggregate(
            vec![col("class"), col("individuals")],
            vec![sum(col("covered")).alias("covered")],
        )?
        .project(vec![
            float(col("individuals")).alias("__size"),
            float(fitting).alias("__fitting"),
            when(short, lit(1i64))
                .otherwise(lit(0i64))?
                .alias("__short"),
        ])?
        .aggregate(
            Vec::<Expr>::new(),
            vec![
                max(lit(1.0) / col("__fitting")).alias("journalist_max"),
                sum(col("__size") / col("__fitting")).alias("found_in_population"),
                sum(col("__short")).alias("__short"),
            ],
        )?
        .project(vec![
            col("journalist_max"),
            col("found_in_population"),
            float(col("__short")).alias("classes_larger_than_population"),
        ])?
        .build()
}

/// Every class with its values and its number of individuals.
fn sized_classes(roles: &Roles) -> Result<LogicalPlan> {
    let mut group = vec![col(CLASS)];
    group.extend(roles.qi.iter().map(|name| ident(qi_name(name))));
    let mut members = roles.cells()?;
    if !roles.one_row_per_individual() {
        members = members.distinct()?;
    }
    let size = count(lit(1)).alias("__individuals");
    members.aggregate(group, vec![size])?.build()
}
