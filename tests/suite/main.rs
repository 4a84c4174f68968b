//! The test suite: one binary, one module per concern.

mod architecture;
mod codec;
mod determinism;
mod engine;
mod errors;
mod leaks;
mod properties;
mod slt;
