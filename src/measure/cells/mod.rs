//! Published quasi-identifiers, whoever published them: what each value may stand for.
//!
//! A column is read into [`Cell`]s, one per distinct value, because published columns repeat heavily:
//!
//! | form | example | suppressed | missing |
//! |---|---|---|---|
//! | typed interval | `{lo: 33, hi: 34}` | NULL | `{lo: NULL, hi: NULL}` |
//! | typed set | `[10070, 10073]` | NULL | `[NULL]` |
//! | text | `34`, `[33, 34]`, `{10070, 10073}`, `1007*`, `2026-Q4`, a label of a hierarchy | `*` | NULL |
//! | plain value of any other type | `34` | | NULL |
//!
//! *Suppressed* says nothing about the value, not even whether there is one; *missing* says that there is none.
//! Questions about values are [`Selection`]s; [`Cell::share`] says how much of a cell a selection takes, if every value
//! that the cell may stand for is as likely as any other.

mod calendar;
mod cell;
mod column;
mod heights;
mod intern;
mod labels;
mod loss;
mod point;
mod selection;
mod text;

pub use heights::Heights;
pub use loss::CellDomain;

pub use cell::Cell;
pub use column::{CellForm, Reader, is_generalized, value_type};
pub use intern::{CellColumn, Interner};
pub use labels::LabelCells;
pub use point::{Point, literals, points};
pub use selection::{Comparison, Selection};
