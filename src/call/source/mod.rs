//! Tables that calls name: hierarchies, categories, stated domains, inputs.

pub(crate) mod categories;
pub(crate) mod hierarchy;
pub(crate) mod input;
mod load;

pub(crate) use load::{Load, PlanningLoad, SessionLoad};
