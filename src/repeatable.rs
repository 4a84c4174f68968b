//! Random tests that draw the same cases every time: what fails on one machine fails on all.

use proptest::test_runner::{Config, RngSeed};

/// So many cases. `PROPTEST_RNG_SEED` draws others.
pub(crate) fn cases(cases: u32) -> Config {
    let given = Config::default();
    Config {
        cases,
        failure_persistence: None,
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            fixed => fixed,
        },
        ..given
    }
}
