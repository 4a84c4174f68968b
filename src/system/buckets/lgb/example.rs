//! Tables for tests: Figure 1(b) of Li 2020, and random ones.

use std::borrow::Cow;

use rand::Rng;
use rand_chacha::ChaCha20Rng;

use super::{LgbInput, QiInput, Rule, SecretCells, SensitiveInput, ValueOrder};
use crate::table::{Categorical, NULL_CODE, Numeric, QuasiIdentifier};

/// Loss of one suppressed cell in all tables here.
pub(super) const FULL: u64 = 27720;

pub(super) fn numeric(values: &[u32], secret_cells: Option<SecretCells>) -> QiInput<'static> {
    let present = || values.iter().filter(|v| **v != NULL_CODE);
    let lowest = present().min().copied().unwrap_or(0);
    let range = present().max().copied().unwrap_or(0) - lowest;
    QiInput {
        values: Cow::Owned(QuasiIdentifier::Numeric(Numeric {
            lo: values.to_vec(),
            hi: values.to_vec(),
            step: FULL.checked_div(u64::from(range)).unwrap_or(0),
        })),
        ranks: ranks(values),
        secret_cells,
    }
}

pub(super) fn categorical(codes: &[u32], secret_cells: Option<SecretCells>) -> QiInput<'static> {
    let present = codes.iter().filter(|c| **c != NULL_CODE).max();
    let cardinality = present.map_or(0, |most| most + 1);
    QiInput {
        values: Cow::Owned(QuasiIdentifier::Categorical(Categorical {
            offsets: (0..=codes.len() as u32).collect(),
            codes: codes.to_vec(),
            cardinality,
            step: FULL
                .checked_div(u64::from(cardinality.saturating_sub(1)))
                .unwrap_or(0),
        })),
        ranks: codes.to_vec(),
        secret_cells,
    }
}

/// Dense ranks in the order of the values.
pub(super) fn ranks(values: &[u32]) -> Vec<u32> {
    let mut different: Vec<u32> = values.iter().copied().filter(|v| *v != NULL_CODE).collect();
    different.sort_unstable();
    different.dedup();
    let rank = |v: &u32| different.binary_search(v).map_or(NULL_CODE, |r| r as u32);
    values.iter().map(rank).collect()
}

pub(super) fn secret(flags: &[u8], rule: Rule) -> Option<SecretCells> {
    let secret = flags.iter().map(|flag| *flag == 1).collect();
    Some(SecretCells {
        secret,
        ranks: None,
        rule,
    })
}

pub(super) fn diversity(l: u32) -> Rule {
    Rule::Diversity { l }
}

pub(super) fn closeness(t: &str, order: ValueOrder) -> Rule {
    Rule::Closeness {
        t: t.parse().unwrap(),
        order,
        reference: None,
    }
}

/// Figure 1(b): age, gender, zip code and disease of individuals 1001 to 1008, numbered from 0.
pub(super) fn figure_1(l: u32) -> LgbInput {
    let age = [28, 25, 16, 24, 31, 22, 29, 34];
    let gender = [0, 1, 0, 0, 1, 0, 1, 0];
    let zip = [21357, 21344, 21352, 21336, 21328, 21358, 21328, 21340];
    // Bronchitis, dyspepsia, flu, gastritis, hepatitis, pneumonia.
    let disease = vec![0, 3, 1, 5, 4, 2, 5, 0];
    let columns = vec![
        numeric(&age, secret(&[0, 0, 0, 1, 1, 0, 1, 1], diversity(l))),
        categorical(&gender, None),
        numeric(&zip, secret(&[1, 1, 0, 0, 0, 0, 0, 0], diversity(l))),
    ];
    let rule = diversity(l);
    let sensitive = vec![SensitiveInput {
        ranks: disease,
        rule,
    }];
    LgbInput::try_new(8, columns, sensitive, FULL).unwrap()
}

/// A table of up to `most` individuals: four quasi-identifiers, two of them semi-sensitive, with missing values where
/// they are not secret, and a sensitive column.
pub(super) fn random(rng: &mut ChaCha20Rng, most: usize) -> LgbInput {
    let n = rng.random_range(0..=most);
    let density = [0.0, 0.1, 0.3, 0.6, 1.0][rng.random_range(0..5)];
    let missing = if rng.random_bool(0.3) { 0.2 } else { 0.0 };
    let mut column = |values: u32, missing: f64| -> Vec<u32> {
        let mut value = || match rng.random_bool(missing) {
            true => NULL_CODE,
            false => rng.random_range(0..values),
        };
        (0..n).map(|_| value()).collect()
    };
    let (mut age, plain, mut job) = (column(30, missing), column(12, missing), column(9, missing));
    let (kind, disease) = (column(3, missing), column(14, 0.0));
    let mut flags = |values: &mut [u32], number: u32| -> Vec<bool> {
        let flags: Vec<bool> = (0..n).map(|_| rng.random_bool(density)).collect();
        for (value, secret) in values.iter_mut().zip(&flags) {
            if *secret && *value == NULL_CODE {
                *value = rng.random_range(0..number);
            }
        }
        flags
    };
    let (age_secret, job_secret) = (flags(&mut age, 30), flags(&mut job, 9));
    let mut rule = || match rng.random_range(0..4) {
        0 => closeness("0.3", ValueOrder::Nominal),
        1 => closeness("0.15", ValueOrder::Numeric),
        _ => diversity(rng.random_range(2..=4)),
    };
    let (age_rule, job_rule, disease_rule) = (rule(), rule(), rule());
    let columns = vec![
        numeric(
            &age,
            Some(SecretCells {
                secret: age_secret,
                ranks: None,
                rule: age_rule,
            }),
        ),
        numeric(&plain, None),
        categorical(
            &job,
            Some(SecretCells {
                secret: job_secret,
                ranks: None,
                rule: job_rule,
            }),
        ),
        categorical(&kind, None),
    ];
    let sensitive = vec![SensitiveInput {
        ranks: disease,
        rule: disease_rule,
    }];
    LgbInput::try_new(n, columns, sensitive, FULL).unwrap()
}
