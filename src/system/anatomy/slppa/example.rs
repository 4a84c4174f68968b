//! Table 1 of Yao et al. 2021, random tables, and the definitions word by word.

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Associations, CodedIndividuals, Division, DivisionStatistics, GroupBounds, Prior};
use crate::model::Ratio;

pub const GENDER: usize = 0;
pub const JOB: usize = 1;
pub const AGE: usize = 2;
pub const ZIP: usize = 3;

/// Gender, job, age, zip code and salary of Alice, Ben, Cary, David, Eric, Frank, Gina and Henry; codes are ranks:
/// doctor, engineer, police, teacher; 30, 32, 33, 42, 44, 45; 11100, 12200, 23200, 25300; 4000, 4500, 4700, 6000, 6400,
/// 6700.
pub const TABLE_1: [[u32; 5]; 8] = [
    [0, 3, 0, 0, 1],
    [1, 1, 2, 1, 3],
    [0, 1, 5, 1, 2],
    [1, 3, 3, 0, 1],
    [1, 0, 1, 3, 5],
    [1, 2, 4, 2, 0],
    [0, 0, 0, 0, 4],
    [1, 0, 2, 1, 3],
];

pub fn table_1() -> CodedIndividuals {
    let column = |c: usize| TABLE_1.iter().map(|row| row[c]).collect::<Vec<u32>>();
    CodedIndividuals::try_new((0..4).map(column).collect(), column(4)).unwrap()
}

/// Age with zip code, gender with job: Table 4.
pub fn table_4() -> Division {
    Division::try_new(vec![vec![AGE, ZIP], vec![GENDER, JOB]], 4).unwrap()
}

pub fn associations() -> Associations {
    let individuals = table_1();
    let positions: Vec<Vec<u64>> = individuals
        .columns()
        .iter()
        .map(|column| column.iter().map(|code| u64::from(*code)).collect())
        .collect();
    let slices: Vec<&[u64]> = positions.iter().map(Vec::as_slice).collect();
    let mut statistics = DivisionStatistics::new(4);
    statistics.update(&slices);
    statistics.finish()
}

pub fn ratio(text: &str) -> Ratio {
    text.parse().unwrap()
}

pub fn bounds(alpha: &str, beta: &str, gamma: &str, delta: &str) -> GroupBounds {
    GroupBounds {
        alpha: Some(ratio(alpha)),
        beta: ratio(beta),
        gamma: Some(ratio(gamma)),
        delta: Some(ratio(delta)),
    }
}

/// A random table of up to `most` individuals and three columns, its division, and bounds.
pub fn random(random: &mut ChaCha8Rng, most: usize) -> (CodedIndividuals, Division, GroupBounds) {
    let n = random.random_range(1..=most);
    let mut column = |values: u32| {
        // Half of the columns are skewed.
        let skew = random.random_bool(0.5);
        let mut value = || {
            let value = random.random_range(0..values);
            if skew {
                value.min(random.random_range(0..values))
            } else {
                value
            }
        };
        (0..n).map(|_| value()).collect::<Vec<u32>>()
    };
    let columns = vec![column(2), column(4), column(9)];
    let sensitive = column(6);
    // Dense codes.
    let mut values = sensitive.clone();
    values.sort_unstable();
    values.dedup();
    let dense = |value: &u32| values.binary_search(value).unwrap() as u32;
    let sensitive = sensitive.iter().map(dense).collect();
    let division = match random.random_range(0..3) {
        0 => vec![vec![0, 1], vec![2]],
        1 => vec![vec![0, 1, 2]],
        _ => vec![vec![0, 2], vec![1]],
    };
    let mut maybe = |from: u64| {
        let hundredths = random.random_range(from..=100);
        random
            .random_bool(0.7)
            .then(|| Ratio::new(hundredths, 100).unwrap())
    };
    let requirements = GroupBounds {
        alpha: maybe(20),
        beta: maybe(20).unwrap_or(ratio("0.5")),
        gamma: maybe(3),
        delta: maybe(3),
    };
    let individuals = CodedIndividuals::try_new(columns, sensitive).unwrap();
    (
        individuals,
        Division::try_new(division, 3).unwrap(),
        requirements,
    )
}

/// Definitions 1 to 4 with Equations 3, 5, 7 and 8, for one group.
pub fn satisfies(
    individuals: &CodedIndividuals,
    division: &Division,
    prior: &Prior,
    requirements: &GroupBounds,
    members: &[u32],
) -> bool {
    let n = members.len() as u128;
    let most = |columns: &[&Vec<u32>]| {
        let mut counts: BTreeMap<Vec<u32>, u128> = BTreeMap::new();
        for member in members {
            let tuple = columns.iter().map(|c| c[*member as usize]).collect();
            *counts.entry(tuple).or_default() += 1;
        }
        counts.into_values().max().unwrap()
    };
    let tuples = division.tables().iter().map(|table| {
        let columns: Vec<&Vec<u32>> = table.iter().map(|c| &individuals.columns()[*c]).collect();
        most(&columns)
    });
    let tuples: Vec<u128> = tuples.collect();
    let sensitive = individuals.sensitive().to_vec();
    let values = most(&[&sensitive]);
    let parts = |r: Ratio| (u128::from(r.numerator()), u128::from(r.denominator()));
    let within = |bound: Option<Ratio>, part: u128, whole: u128| {
        bound.is_none_or(|bound| part * parts(bound).1 <= whole * parts(bound).0)
    };
    let alpha = tuples.iter().all(|c| within(requirements.alpha, *c, n));
    let beta = within(Some(requirements.beta), values, n);
    let combinations = tuples.iter().product::<u128>() * values;
    let gamma = within(
        requirements.gamma,
        combinations,
        n.pow(tuples.len() as u32 + 1),
    );
    let whole = u128::from(prior.individuals());
    let delta = (0u32..).zip(prior.counts()).all(|(value, count)| {
        let here = members
            .iter()
            .filter(|m| sensitive[**m as usize] == value)
            .count() as u128;
        let difference = (here * whole).abs_diff(u128::from(*count) * n);
        within(requirements.delta, difference, n * whole)
    });
    alpha && beta && gamma && delta
}
