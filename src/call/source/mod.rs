//! Tables that calls name: hierarchies, categories, stated domains, inputs.

pub(crate) mod categories;
mod csv_types;
pub(crate) mod files;
pub(crate) mod hierarchy;
pub(crate) mod input;
mod load;
pub(crate) mod release;
pub(crate) mod url_tables;

pub(crate) use load::{InputLoad, Load, PlanningLoad, SessionLoad};
