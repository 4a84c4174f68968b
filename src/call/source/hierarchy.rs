//! Hierarchies: where they are read from, and `hierarchy(…)`, which shows them.

mod levels;
mod made;
mod source;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListBuilder, RecordBatch, StringBuilder};
use datafusion::catalog::MemTable;
use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, col, scalar_subquery,
};

pub(super) use source::load;
pub(crate) use source::{HIERARCHY_FUNCTION, HierarchyFunction};

use self::levels::LevelLabel;
pub(crate) use self::made::Made;
use self::source::rows_of;
use super::input;
use super::load::{Load, PlanningLoad};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::system::check_levels;
use crate::table::Taxonomy;
use crate::table::coding::{BUILT_IN, Levels};

/// The function's name.
pub(crate) const NAME: &str = "hierarchy";

/// Plans `hierarchy(source)`: the rows of a given hierarchy.
pub(crate) fn plan_given(
    name: &str,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let source = PlanningLoad(context).source(HIERARCHY_FUNCTION, name)?;
    input::scan_apart(NAME, source)
}

/// Plans `hierarchy(input, column => …, by => …)`: where the values of a column stand in a hierarchy, or one that is
/// made from them.
pub(crate) fn plan_column(
    input: LogicalPlan,
    named: &[(String, ArgumentValue)],
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    const HELP: &str = "column => age, by => 'bins(5, 20)'";
    let refuse = |reason: String| error::argument(NAME, "by", reason);
    let by = text_argument(named, "by", HELP);
    let made = by.as_ref().map_or(Ok(None), |by| Made::named(by));
    let made = made.map_err(refuse)?;
    let known: &[&str] = match made {
        Some(Made::CoOccurrence(_)) => &["column", "by", "id"],
        _ => &["column", "by"],
    };
    if let Some((name, _)) = named.iter().find(|(n, _)| !known.contains(&n.as_str())) {
        let nearest = error::did_you_mean(name, known.iter().copied());
        let message = format!(
            "there is no argument '{name}'{nearest} (arguments: input, {})",
            known.join(", ")
        );
        return Err(error::call(NAME, message));
    }
    if let Some(made) = made {
        return made.plan(input, named, context);
    }
    let (column, by) = (text_argument(named, "column", HELP)?, by?);
    let levels = read_levels(by, &mut PlanningLoad(context)).map_err(refuse)?;
    plan_levels(NAME, "by", input, column, &levels)
}

/// The rows of a column's hierarchy, for the values that a table has: value, level_1, ….
pub(crate) fn plan_levels(
    function: &str,
    argument: &str,
    input: LogicalPlan,
    column: &str,
    levels: &Levels,
) -> Result<LogicalPlan> {
    let (value, height) = check_levels(function, argument, column, input.schema(), levels)?;
    let label = |level: usize| {
        let function = LevelLabel::new(levels.clone(), level, column);
        let name = match level {
            0 => "value".to_owned(),
            _ => format!("level_{level}"),
        };
        Arc::new(ScalarUDF::from(function))
            .call(vec![col("value")])
            .alias(name)
    };
    let labels: Vec<_> = (0..=height).map(label).collect();
    LogicalPlanBuilder::from(input)
        .project([value.alias("value")])?
        .filter(col("value").is_not_null())?
        .distinct()?
        .project(labels)?
        .build()
}

/// The rows of a given hierarchy: leaf, level_1, ….
pub(crate) fn plan_rows(taxonomy: &Taxonomy) -> Result<LogicalPlan> {
    let rows = rows_of(taxonomy)?;
    let rows = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    input::scan_apart(NAME, provider_as_source(Arc::new(rows)))
}

/// The columns of `hierarchy => {column: …}` with their levels; else what is wrong.
pub(crate) fn read_map(
    value: &ArgumentValue,
    load: &mut dyn Load,
) -> Result<Vec<(String, Levels)>, String> {
    let shape = || format!("must map columns to a file or table, or to {BUILT_IN}, not {value}");
    let ArgumentValue::Map(entries) = value else {
        return Err(shape());
    };
    let mut hierarchies: Vec<(String, Levels)> = vec![];
    for (column, value) in entries {
        let text = value.text().ok_or_else(shape)?;
        let levels = match Made::named(text) {
            Ok(Some(made)) => {
                let made = load.made(made, column).map_err(|e| error::text(&e));
                made.map(|taxonomy| Levels::Tree(Arc::new(taxonomy)))
            }
            Ok(None) => read_levels(text, load),
            Err(reason) => Err(reason),
        };
        let levels = levels.map_err(|e| format!("of '{column}': {e}"))?;
        if hierarchies.iter().any(|(known, _)| known == column) {
            return Err(format!("names column '{column}' twice"));
        }
        hierarchies.push((column.clone(), levels));
    }
    Ok(hierarchies)
}

/// A given hierarchy as one value, a list of labels per leaf; a subquery, so that plans do not show it.
pub(crate) fn rows_value(taxonomy: &Taxonomy) -> Result<Expr> {
    let mut rows = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for leaf in 0..taxonomy.tree().leaves() {
        rows.values().append_value(taxonomy.chain(leaf).map(Some));
    }
    rows.append(true);
    let rows: ArrayRef = Arc::new(rows.finish());
    let batch = RecordBatch::try_from_iter([("rows", rows)])?;
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    let source = provider_as_source(Arc::new(table));
    let plan = input::scan_apart(NAME, source)?;
    Ok(scalar_subquery(Arc::new(plan)))
}

/// A text among the arguments.
fn text_argument<'a>(
    named: &'a [(String, ArgumentValue)],
    name: &str,
    help: &str,
) -> Result<&'a str> {
    let given = named.iter().find(|(n, _)| n == name);
    let text = given.and_then(|(_, value)| value.text());
    text.ok_or_else(|| error::argument(NAME, name, format!("is missing: {help}")))
}

/// A built-in hierarchy, or one from a file or table; else what is wrong.
pub(super) fn read_levels(text: &str, load: &mut dyn Load) -> Result<Levels, String> {
    if let Some(levels) = Levels::built_in(text)? {
        return Ok(levels);
    }
    match load.hierarchy(text) {
        Ok(taxonomy) => Ok(Levels::Tree(Arc::new(taxonomy))),
        Err(e) => {
            let reason = error::text(&e);
            let nothing = reason.starts_with("there is no");
            let others = if nothing {
                format!("; or write {BUILT_IN}")
            } else {
                String::new()
            };
            Err(reason + &others)
        }
    }
}
