//! Information loss: what a generalized value costs, by the definitions of the papers.

mod heights;
mod loss;

pub use heights::Heights;
pub use loss::{Domain, Loss};
