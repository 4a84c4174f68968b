//! The call `hierarchy(…)`: what a hierarchy says, or where the values of a column stand in one.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;

use super::arguments::{Argument, ArgumentKind, Arguments, Function};
use super::source::hierarchy::{Made, NAME, plan_levels, plan_rows, read_levels};
use crate::error;

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "how a hierarchy was understood, or where the values of a column stand in one",
    positional: 1,
    arguments: Cow::Borrowed(&[
        Argument::optional(
            "input",
            ArgumentKind::Relation,
            "a table with the column; without column and by, the table or file that is the hierarchy",
        ),
        Argument::optional("column", ArgumentKind::Column, "the column"),
        Argument::optional(
            "by",
            ArgumentKind::Text,
            "a hierarchy: 'bins(5, 20)', 'mask', 'dates', a table or a file; or a way to make one: 'even(5)', 'co_occurrence(5)'",
        ),
        Argument::optional(
            "id",
            ArgumentKind::Column,
            "for 'co_occurrence(5)': the column that tells individuals apart",
        ),
    ]),
    refused: &[],
    plan,
};

/// Plans `hierarchy(source)` or `hierarchy(input, column => …, by => …)`.
fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    const HELP: &str = "is missing: column => age, by => 'bins(5, 20)'";
    if !given.has("input") {
        return Err(error::call(
            NAME,
            "takes a hierarchy ('city.csv'), or a table and a column: (patients, column => age, by => 'bins(5, 20)')",
        ));
    }
    if !["column", "by", "id"].iter().any(|name| given.has(name)) {
        let name = given
            .relation_name("input")
            .ok_or_else(|| error::call(NAME, "takes the name of a table or the path of a file"))?;
        let read = given.load().hierarchy(&name);
        return plan_rows(&read.map_err(|e| error::call(NAME, error::text(&e)))?);
    }
    let mut text = |name: &str| {
        let value = given.take(name);
        value.and_then(|value| value.text().map(str::to_owned))
    };
    let (column, by, id) = (text("column"), text("by"), text("id"));
    let column = column.ok_or_else(|| given.refuse("column", HELP))?;
    let by = by.ok_or_else(|| given.refuse("by", HELP))?;
    let made = Made::named(&by).map_err(|reason| given.refuse("by", reason))?;
    if let (Some(_), None | Some(Made::Even(_))) = (&id, made) {
        return Err(given.refuse("id", "belongs to by => 'co_occurrence(5)'; leave it out"));
    }
    let input = given.relation("input")?;
    match made {
        Some(made) => {
            let values = made.values(input, &column, id.as_deref())?;
            // The hierarchy is made now, because its number of levels is part of the result's schema; a view over it keeps
            // what was made.
            plan_rows(&given.load().made(made, values)?)
        }
        None => {
            let levels = read_levels(&by, given.load());
            let levels = levels.map_err(|reason| given.refuse("by", reason))?;
            plan_levels(NAME, "by", input, &column, &levels)
        }
    }
}
