//! What is asked for, and what every block is told about the whole table.

use serde::{Deserialize, Serialize};

use super::division::Division;
use super::method::Method;
use super::profile::TableProfile;
use super::requirement::GroupBounds;
use crate::model::Ratio;
use crate::table::smallest_random_block;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnatomyRequest {
    /// The bounds.
    pub requirements: GroupBounds,
    /// How columns and individuals are divided.
    pub method: Method,
    /// Which columns share a sub-table.
    pub sub_tables: SubTables,
}

/// Which columns share a sub-table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubTables {
    /// This many sub-tables, by the method's rule.
    Number(usize),
    /// A division chosen by hand.
    Given(Division),
}

/// What every block is told about the whole table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// Which columns share a sub-table.
    pub division: Division,
    /// How many individuals the whole table has.
    pub individuals: u64,
    /// The sensitive values whose share is more than δ, in Arrow's row format, with their numbers of individuals: a group
    /// without one of them is too far from the whole table.
    pub common: Vec<(Vec<u8>, u64)>,
    /// How many individuals the most frequent of all other values has.
    pub most_of_others: u64,
    /// How many blocks there are.
    pub blocks: u32,
}

/// Blocks that are too small for the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooSmall {
    /// How many individuals a block needs; `None` if only the whole table will do.
    pub smallest: Option<u64>,
}

impl Learned {
    /// Divides the columns' table into blocks of about `block` individuals, or leaves it whole if that is `None`.
    ///
    /// A random block's shares differ from those of the whole table by chance. If `adjust`, blocks are made larger until
    /// this takes no more than half of what the bounds leave free.
    ///
    /// # Errors
    /// [`TooSmall`] if not, and blocks of that size may be impossible to divide.
    pub fn new(
        profile: &TableProfile,
        division: Division,
        requirements: &GroupBounds,
        block: Option<u64>,
        adjust: bool,
    ) -> Result<Self, TooSmall> {
        let individuals = profile.individuals();
        let wanted = block.map_or(1, |size| individuals.div_ceil(size.max(1)).max(1));
        let mut blocks = wanted;
        if wanted > 1 {
            let smallest = smallest_block(profile, &division, requirements);
            let most = smallest.map_or(1, |smallest| (individuals / smallest.max(1)).max(1));
            if most < wanted && !adjust {
                let smallest = smallest.filter(|smallest| *smallest <= individuals / 2);
                return Err(TooSmall { smallest });
            }
            blocks = wanted.min(most);
        }
        let light = requirements.delta.map_or(u64::MAX, |delta| {
            let most = u128::from(individuals) * u128::from(delta.numerator());
            u64::try_from(most / u128::from(delta.denominator())).unwrap_or(u64::MAX)
        });
        let (common, most_of_others) = profile.values_above(light);
        Ok(Self {
            division,
            individuals,
            common,
            most_of_others,
            blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        })
    }

    /// The block of an individual, by its random order.
    pub fn block(&self, order: u64) -> u32 {
        ((u128::from(order) * u128::from(self.blocks)) >> 64) as u32
    }
}

/// How many individuals a random block must have on average so that, as one group, it leaves every bound at least half
/// as much room as the whole table does; `None` if there is none.
fn smallest_block(
    profile: &TableProfile,
    division: &Division,
    requirements: &GroupBounds,
) -> Option<u64> {
    let whole = profile.individuals() as f64;
    let value = |bound: Ratio| bound.numerator() as f64 / bound.denominator() as f64;
    // A bound of 1 or more cannot be exceeded.
    let upper = |share: f64, bound: f64| {
        if bound < 1.0 {
            smallest_random_block(share, bound)
        } else {
            0.0
        }
    };
    let mut smallest = 0.0f64;
    for count in profile.counts() {
        let share = count as f64 / whole;
        smallest = smallest.max(upper(share, value(requirements.beta)));
        if let Some(delta) = requirements.delta.map(value) {
            smallest = smallest.max(upper(share, share + delta));
            // Below the whole table's share by δ: the others' share above theirs.
            smallest = smallest.max(upper(1.0 - share, 1.0 - share + delta));
        }
    }
    if let Some(alpha) = requirements.alpha.map(value) {
        for table in division.tables() {
            let share = profile.tuple_at_most(table) as f64 / whole;
            smallest = smallest.max(upper(share, alpha));
        }
    }
    smallest.is_finite().then(|| smallest.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::{CodedIndividuals, Prior};
    use super::*;
    use crate::algorithm::Cancel;
    use crate::table::coding::{Kind, rows};

    /// One quasi-identifier and a sensitive value per individual.
    fn profile(people: &[(i32, i32)]) -> TableProfile {
        let ages: ArrayRef = Arc::new(Int32Array::from_iter_values(people.iter().map(|p| p.0)));
        let values: ArrayRef = Arc::new(Int32Array::from_iter_values(people.iter().map(|p| p.1)));
        let mut profile = TableProfile::new(1);
        profile
            .update(&[Kind::Integer], &[ages], &rows(&[values]).unwrap())
            .unwrap();
        profile
    }

    fn bounds(alpha: &str, beta: &str, delta: &str) -> GroupBounds {
        GroupBounds {
            alpha: Some(alpha.parse().unwrap()),
            beta: beta.parse().unwrap(),
            gamma: None,
            delta: Some(delta.parse().unwrap()),
        }
    }

    #[test]
    fn a_bound_that_leaves_no_room_keeps_the_table_whole() {
        let people: Vec<(i32, i32)> = (0..10_000).map(|i| (i % 100, i % 4)).collect();
        let profile = profile(&people);
        let learned = |beta: &str, adjust: bool| {
            let requirements = bounds("0.5", beta, "0.25");
            Learned::new(
                &profile,
                Division::each(1),
                &requirements,
                Some(1_000),
                adjust,
            )
        };
        assert_eq!(learned("0.25", true).unwrap().blocks, 1);
        assert_eq!(learned("0.25", false), Err(TooSmall { smallest: None }));
        let learned = learned("0.9", true).unwrap();
        assert!((2..10).contains(&learned.blocks), "{}", learned.blocks);
        assert_eq!(
            (learned.block(0), learned.block(u64::MAX)),
            (0, learned.blocks - 1)
        );
        // No value has a share of more than δ.
        assert_eq!((learned.common.len(), learned.most_of_others), (0, 2_500));
    }

    #[test]
    fn random_blocks_can_be_divided() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut several = 0;
        for round in 0..12 {
            let values = random.random_range(3..30);
            let people: Vec<(i32, i32)> = (0..60_000)
                .map(|i| {
                    (
                        i % 50,
                        random
                            .random_range(0..values)
                            .min(random.random_range(0..values)),
                    )
                })
                .collect();
            let profile = profile(&people);
            let beta = profile.most_frequent() as f64 / 60_000.0 + [0.05, 0.02, 0.2][round % 3];
            let requirements = bounds("0.1", &format!("{beta:.4}"), ["0.05", "0.2"][round % 2]);
            let division = Division::each(1);
            let learned =
                Learned::new(&profile, division, &requirements, Some(5_000), true).unwrap();
            several += usize::from(learned.blocks > 1);
            let mut blocks = vec![vec![]; learned.blocks as usize];
            for person in &people {
                blocks[learned.block(random.random()) as usize].push(*person);
            }
            let mut counts = vec![0; values as usize];
            people.iter().for_each(|p| counts[p.1 as usize] += 1);
            let prior = Prior::try_new(counts).unwrap();
            for block in blocks {
                let ages = block.iter().map(|p| p.0 as u32).collect();
                let sensitive = block.iter().map(|p| p.1 as u32).collect();
                let block = CodedIndividuals::try_new(vec![ages], sensitive).unwrap();
                Method::Slppa
                    .groups(
                        &block,
                        &learned.division,
                        &prior,
                        &requirements,
                        &Cancel::default(),
                    )
                    .unwrap();
            }
        }
        assert!(several > 3, "{several}");
    }
}
