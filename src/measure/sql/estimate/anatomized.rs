//! Count queries over anatomized tables in long form (Yao 2021, Eq. 11).
//!
//! A row is a sub-tuple of one sub-table, or a sensitive value, in a group, with the number of members that have it. In a
//! group of m, with n_i members that satisfy the conditions on sub-table i, m · n₁/m · n₂/m · … are expected to satisfy
//! all. Which columns a sub-table has is said by its rows.
//!
//! ```text
//! Aggregate         estimate_count over groups
//!   Aggregate         by gid: m · n₁/m · n₂/m · …
//!     Aggregate         by gid and sub-table: n_i, and m
//!       Join              each row with the columns of its sub-table
//!         the published table
//!         Aggregate         by sub-table: the columns that it has
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::{bool_or, max, min, sum};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Expr, JoinType, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when,
};

use super::expected_members::expected_members;
use super::plan::{estimated, shown};
use super::query::{Counted, Query};
use super::refuse;

/// Columns that every anatomized table in long form has.
pub(crate) const COLUMNS: [&str; 3] = ["subtable", "gid", "count"];

const TABLE: &str = "__subtable";
const GROUP: &str = "__gid";
const MATCHING: &str = "__matching";
const MEMBERS: &str = "__members";
const EXPECTED: &str = "__expected";

/// Plans a query over an anatomized table.
pub(super) fn plan(published: LogicalPlan, query: &Query) -> Result<LogicalPlan> {
    if query.counted == Counted::Individuals {
        return Err(refuse(
            "an anatomized table has a record per individual: write count(*)",
        ));
    }
    let conditions = conditions(query)?;
    let mut used: Vec<Column> = conditions
        .iter()
        .map(|(column, _)| column.clone())
        .collect();
    let keys: Vec<Column> = query.keys.iter().map(key).collect::<Result<_>>()?;
    used.extend(keys.iter().cloned());
    used.sort();
    used.dedup();
    let has = |column: &Column| {
        let at = used.iter().position(|c| c == column).unwrap_or(0);
        col(format!("__has_{at}"))
    };
    let known = used.iter().enumerate().map(|(at, column)| {
        bool_or(Expr::Column(column.clone()).is_not_null()).alias(format!("__has_{at}"))
    });
    let own = |name: &str| column_of(&published, name);
    let tables = LogicalPlanBuilder::from(published.clone())
        .project(
            used.iter()
                .cloned()
                .map(Expr::Column)
                .chain([own("subtable").alias(TABLE)]),
        )?
        .aggregate([col(TABLE)], known)?
        .build()?;
    let matched = conditions
        .iter()
        .map(|(column, condition)| (!has(column)).or(condition.clone()))
        .reduce(Expr::and)
        .unwrap_or(lit(true));
    let count = cast(own("count"), DataType::Float64);
    let matching = when(matched, count.clone()).otherwise(lit(0.0))?;
    let subtable = own("subtable").alias("__own_subtable");
    let mut columns: Vec<Expr> = vec![
        own("gid").alias(GROUP),
        subtable,
        count.alias(MEMBERS),
        matching.alias(MATCHING),
    ];
    let key_names: Vec<String> = (0..keys.len()).map(|i| format!("__key_{i}")).collect();
    columns.extend(
        query
            .keys
            .iter()
            .zip(&key_names)
            .map(|((e, _), n)| e.clone().alias(n)),
    );
    columns.extend((0..used.len()).map(|at| col(format!("__has_{at}"))));
    let joined = LogicalPlanBuilder::from(published.clone())
        .join_on(tables, JoinType::Inner, [own("subtable").eq(col(TABLE))])?
        .project(columns)?;
    // A column that no sub-table has is NULL everywhere, and no condition on it holds.
    let grouped = if keys.is_empty() {
        whole(joined, used.len())?
    } else {
        let keyed = keys.iter().map(has).reduce(Expr::and).unwrap_or(lit(true));
        by_key(joined, &keyed, &key_names)?
    };
    let key_columns: Vec<Expr> = key_names.iter().map(|name| col(name.as_str())).collect();
    let results = vec![col(EXPECTED), col("__least"), col("__most")];
    let aggregated = grouped
        .filter(col(EXPECTED).gt(lit(0.0)))?
        .aggregate(key_columns.clone(), [estimated(results)])?;
    shown(aggregated, query, &key_columns)
}

/// Members of each group that are expected to satisfy all conditions, with the least and the most that can.
fn whole(joined: LogicalPlanBuilder, used: usize) -> Result<LogicalPlanBuilder> {
    let flags = (0..used).map(|at| format!("__has_{at}"));
    let any = flags.clone().map(|name| bool_or(col(&name)).alias(name));
    let per_table = joined.aggregate(
        [col(GROUP), col("__own_subtable")],
        [
            sum(col(MATCHING)).alias(MATCHING),
            sum(col(MEMBERS)).alias(MEMBERS),
        ]
        .into_iter()
        .chain(any),
    )?;
    let any = flags.clone().map(|name| bool_or(col(&name)).alias(name));
    let all = flags.map(col).reduce(Expr::and).unwrap_or(lit(true));
    let expected = when(all, col(EXPECTED)).otherwise(lit(0.0))?;
    let lost = col(MEMBERS) - col("__missing");
    let least = when(lost.clone().gt(lit(0.0)), lost).otherwise(lit(0.0))?;
    per_table
        .aggregate(
            [col(GROUP)],
            [
                expected_members()
                    .call(vec![col(MATCHING), col(MEMBERS)])
                    .alias(EXPECTED),
                sum(col(MEMBERS) - col(MATCHING)).alias("__missing"),
                max(col(MEMBERS)).alias(MEMBERS),
                min(col(MATCHING)).alias("__most"),
            ]
            .into_iter()
            .chain(any),
        )?
        .project([
            expected.alias(EXPECTED),
            least.alias("__least"),
            col("__most"),
        ])
}

/// The same for each value of the keys, which stand in one sub-table: its members with the value, times the shares of the
/// other sub-tables.
fn by_key(joined: LogicalPlanBuilder, keyed: &Expr, keys: &[String]) -> Result<LogicalPlanBuilder> {
    let joined = joined.build()?;
    let mut by: Vec<Expr> = vec![col(GROUP).alias("__key_gid")];
    by.extend(keys.iter().map(|name| col(name.as_str())));
    let members = LogicalPlanBuilder::from(joined.clone())
        .filter(keyed.clone())?
        .aggregate(by, [sum(col(MATCHING)).alias("__with_key")])?
        .build()?;
    let others = LogicalPlanBuilder::from(joined)
        .filter(keyed.clone().is_not_true())?
        .aggregate(
            [col(GROUP), col("__own_subtable")],
            [
                sum(col(MATCHING)).alias(MATCHING),
                sum(col(MEMBERS)).alias(MEMBERS),
            ],
        )?
        .aggregate(
            [col(GROUP)],
            [
                expected_members()
                    .call(vec![col(MATCHING), col(MEMBERS)])
                    .alias(EXPECTED),
                sum(col(MEMBERS) - col(MATCHING)).alias("__missing"),
                max(col(MEMBERS)).alias(MEMBERS),
                min(col(MATCHING)).alias("__most"),
            ],
        )?;
    let expected = col(EXPECTED) * col("__with_key") / col(MEMBERS);
    let lost = col("__with_key") - col("__missing");
    let least = when(lost.clone().gt(lit(0.0)), lost).otherwise(lit(0.0))?;
    let most =
        when(col("__with_key").lt(col("__most")), col("__with_key")).otherwise(col("__most"))?;
    let shown = keys.iter().map(|name| col(name.as_str()));
    others
        .join(
            members,
            JoinType::Inner,
            (vec![GROUP], vec!["__key_gid"]),
            None,
        )?
        .project(shown.chain([
            expected.alias(EXPECTED),
            least.alias("__least"),
            most.alias("__most"),
        ]))
}

/// The conditions, each with the one column that it is about.
fn conditions(query: &Query) -> Result<Vec<(Column, Expr)>> {
    let mut conditions: Vec<(Column, Expr)> = vec![];
    for condition in query.conditions.iter().flat_map(split_conjunction) {
        conditions.push((only_column(condition)?, condition.clone()));
    }
    Ok(conditions)
}

fn key((key, _): &(Expr, String)) -> Result<Column> {
    only_column(key)
}

fn only_column(expr: &Expr) -> Result<Column> {
    let columns: Vec<&Column> = expr.column_refs().into_iter().collect();
    match columns.as_slice() {
        [column] if !COLUMNS.contains(&column.name.as_str()) => Ok((*column).clone()),
        [column] => Err(refuse(format!(
            "'{}' is a column of the anatomized table, not of the original one",
            column.name
        ))),
        _ => Err(refuse(
            "conditions on an anatomized table are about one column each, joined by AND",
        )),
    }
}

fn column_of(published: &LogicalPlan, name: &str) -> Expr {
    let found = published.schema().iter().find(|(_, f)| f.name() == name);
    let qualifier = found.and_then(|(qualifier, _)| qualifier.cloned());
    Expr::Column(Column::new(qualifier, name))
}
