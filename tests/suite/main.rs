//! The test suite: one binary, one module per concern.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod anatomized_estimates;
mod anatomy;
mod architecture;
mod argument_calls;
mod arguments;
mod audited;
mod bucket_queries;
mod calls;
mod codec;
mod compared;
mod conformance;
mod determinism;
mod documents;
mod edges;
mod engine;
mod errors;
mod estimate;
mod files;
mod fingerprints;
mod golden;
mod hidden;
mod hosts;
mod index;
mod json_schema;
mod leaks;
mod local;
mod measure;
mod memory;
mod metrics;
mod minimality;
mod names;
mod positions;
mod properties;
mod reach;
mod reading;
mod release;
mod required;
mod sensitive_tables;
mod slt;
mod types;
