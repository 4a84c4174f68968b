//! The test suite: one binary, one module per concern.

mod architecture;
mod codec;
mod conformance;
mod determinism;
mod documents;
mod engine;
mod errors;
mod hosts;
mod leaks;
mod memory;
mod properties;
mod slt;
