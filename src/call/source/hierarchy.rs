//! Hierarchies: where they are read from, and their rows.

mod levels;
mod made;
mod source;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ListBuilder, RecordBatch, StringBuilder};
use datafusion::catalog::MemTable;
use datafusion::common::Result;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, col, scalar_subquery,
};

pub(super) use source::load;
pub(crate) use source::{HIERARCHY_FUNCTION, HierarchyFunction};

use self::levels::LevelLabel;
pub(crate) use self::made::Made;
use self::source::rows_of;
use super::input;
use super::load::Load;
use crate::call::value::ArgumentValue;
use crate::error;
use crate::system::check_levels;
use crate::table::Taxonomy;
use crate::table::coding::{BUILT_IN, Levels};

/// The function's name.
pub(crate) const NAME: &str = "hierarchy";

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
                let made = load
                    .made_of_input(made, column)
                    .map_err(|e| error::text(&e));
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

/// A built-in hierarchy, or one from a file or table; else what is wrong.
pub(in crate::call) fn read_levels(text: &str, load: &mut dyn Load) -> Result<Levels, String> {
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
