//! Slicing's tuple partition: Mondrian with a diversity check (Li et al. 2012).

use super::counter::Rules;
use super::division::Division;
use super::groups::{DivideError, Groups};
use super::individuals::{CodedIndividuals, Prior};
use super::mondrian;
use super::requirement::{GroupBounds, Infeasible};
use crate::algorithm::Cancel;

/// Divides individuals by halving them while no sensitive value has a share of more than β = 1 / l in either half.
///
/// Slicing's own check bounds the mean over all groups that a tuple could be in; one that holds in every group implies
/// it, and is what the other methods are measured by.
pub(super) fn divide(
    individuals: &CodedIndividuals,
    division: &Division,
    prior: &Prior,
    requirements: &GroupBounds,
    cancel: &Cancel,
) -> Result<Groups, DivideError> {
    requirements.check()?;
    prior.covers(individuals)?;
    let others = [requirements.alpha, requirements.gamma, requirements.delta];
    if others.iter().any(Option::is_some) {
        return Err(DivideError::Malformed("Slicing bounds beta only"));
    }
    if division.columns() != individuals.columns().len() {
        return Err(DivideError::Malformed(
            "the division has another number of columns",
        ));
    }
    if individuals.is_empty() {
        return Ok(Groups::default());
    }
    // Sub-tables do not matter for β.
    let rules = Rules::new(*requirements, &[], individuals, prior);
    let mut tally = rules.tally();
    let all: Vec<u32> = (0..individuals.len() as u32).collect();
    tally.count(&rules, &all);
    let shortfalls = tally.shortfalls(&rules);
    if !shortfalls.is_empty() {
        return Err(DivideError::Infeasible(Infeasible { shortfalls }));
    }
    let regions = mondrian::regions(individuals, &rules, &mut tally, cancel)?;
    Ok(Groups::new(regions))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::super::example::{self, ratio, satisfies};
    use super::super::requirement::Shortfall;
    use super::*;

    fn run(
        individuals: &CodedIndividuals,
        requirements: &GroupBounds,
    ) -> Result<Groups, DivideError> {
        let division = Division::each(individuals.columns().len());
        let prior = Prior::of(individuals).unwrap();
        divide(
            individuals,
            &division,
            &prior,
            requirements,
            &Cancel::default(),
        )
    }

    fn diverse(beta: &str) -> GroupBounds {
        GroupBounds {
            alpha: None,
            beta: ratio(beta),
            gamma: None,
            delta: None,
        }
    }

    #[test]
    fn halves_at_medians_while_both_are_diverse() {
        let column = vec![0, 1, 2, 3, 4, 5, 6, 7];
        let groups = |sensitive: [u32; 8]| {
            let individuals = CodedIndividuals::try_new(vec![column.clone()], sensitive.to_vec());
            let groups = run(&individuals.unwrap(), &diverse("0.5")).unwrap();
            groups.iter().map(<[u32]>::to_vec).collect::<Vec<_>>()
        };
        let pairs = [[0, 1], [2, 3], [4, 5], [6, 7]];
        assert_eq!(groups([0, 1, 0, 1, 0, 1, 0, 1]), pairs);
        // The right half cannot be cut again: its first quarter is all 0.
        assert_eq!(
            groups([0, 1, 0, 1, 0, 0, 1, 1]),
            [vec![0, 1], vec![2, 3], vec![4, 5, 6, 7]]
        );
    }

    #[test]
    fn another_column_is_tried_and_equal_values_are_never_cut() {
        // The first column is wider, but its halves are not diverse.
        let columns = vec![vec![0, 0, 9, 9], vec![0, 1, 0, 1]];
        let individuals = CodedIndividuals::try_new(columns, vec![0, 0, 1, 1]).unwrap();
        let groups = run(&individuals, &diverse("0.5")).unwrap();
        assert_eq!(groups.iter().collect::<Vec<_>>(), [&[0, 2], &[1, 3]]);
        let same = CodedIndividuals::try_new(vec![vec![5; 4]], vec![0, 1, 2, 3]).unwrap();
        assert_eq!(run(&same, &diverse("0.5")).unwrap().len(), 1);
        // One value below the median, which is also the largest.
        let skewed =
            CodedIndividuals::try_new(vec![vec![1, 3, 3, 3, 1]], vec![0, 1, 2, 1, 2]).unwrap();
        assert_eq!(run(&skewed, &diverse("0.7")).unwrap().len(), 2);
    }

    #[test]
    fn a_table_that_is_not_diverse_is_refused() {
        let individuals = CodedIndividuals::try_new(vec![vec![0, 1, 2]], vec![0, 0, 1]).unwrap();
        let refused = run(&individuals, &diverse("0.5"));
        let best = crate::model::Ratio::new(2, 3).unwrap();
        let shortfalls = vec![Shortfall::Beta { best }];
        assert_eq!(
            refused,
            Err(DivideError::Infeasible(Infeasible { shortfalls }))
        );
        let more = GroupBounds {
            delta: Some(ratio("0.5")),
            ..diverse("0.7")
        };
        assert!(matches!(
            run(&individuals, &more),
            Err(DivideError::Malformed(_))
        ));
    }

    #[test]
    fn every_group_is_diverse() {
        let mut random = ChaCha8Rng::seed_from_u64(21);
        let mut several = 0;
        for _ in 0..2000 {
            let (individuals, division, mut requirements) = example::random(&mut random, 60);
            (requirements.alpha, requirements.gamma, requirements.delta) = (None, None, None);
            let prior = Prior::of(&individuals).unwrap();
            if let Ok(groups) = run(&individuals, &requirements) {
                several += usize::from(groups.len() > 1);
                assert_eq!(groups.individuals(), individuals.len());
                for group in groups.iter() {
                    assert!(satisfies(
                        &individuals,
                        &division,
                        &prior,
                        &requirements,
                        group
                    ));
                }
            }
        }
        assert!(several > 500, "{several}");
    }
}
