//! Group division (Yao 2021, Algorithm 1, corrected).
//!
//! ```text
//!   feasible?                          β, α and δ of all individuals as one group      no ──► the values that work
//!   groups of ⌈1/β⌉ different values   Anatomy; residues to groups without their value
//!   too many left alone?               deal all into as many groups as β allows
//!   most of them at fault?             deal all anew, into larger and larger groups
//!   while a group is at fault          it takes in another one, chosen by what it lacks          (mend)
//! ```

use super::assign::Buckets;
use super::counter::{Rules, Tally};
use super::division::Division;
use super::groups::{DivideError, Groups};
use super::individuals::{CodedIndividuals, Prior};
use super::mondrian;
use super::repair::Mender;
use super::requirement::{GroupBounds, Infeasible, Shortfall};
use crate::algorithm::Cancel;
use crate::model::Ratio;

/// Divides individuals into groups that satisfy all bounds.
pub(super) fn divide(
    individuals: &CodedIndividuals,
    division: &Division,
    prior: &Prior,
    requirements: &GroupBounds,
    cancel: &Cancel,
) -> Result<Groups, DivideError> {
    with_rules(
        individuals,
        division,
        prior,
        requirements,
        |rules, tally| {
            let everybody = everybody(rules, tally)?;
            let run = Run { rules, cancel };
            Ok(Groups::new(run.divide(&everybody, tally)?))
        },
    )
}

/// Divides individuals into groups of similar ones: regions that Mondrian finds under β, as Slicing does, of which those that
/// violate another bound take in others.
pub(super) fn divide_similar(
    individuals: &CodedIndividuals,
    division: &Division,
    prior: &Prior,
    requirements: &GroupBounds,
    cancel: &Cancel,
) -> Result<Groups, DivideError> {
    with_rules(
        individuals,
        division,
        prior,
        requirements,
        |rules, tally| {
            let everybody = everybody(rules, tally)?;
            let run = Run { rules, cancel };
            let only_beta = GroupBounds {
                alpha: None,
                gamma: None,
                delta: None,
                ..*requirements
            };
            let only_beta = Rules::new(only_beta, &[], individuals, prior);
            let mut regions =
                mondrian::regions(individuals, &only_beta, &mut only_beta.tally(), cancel)?;
            // In a random order: neighbours violate the same bounds, and would not help each other.
            regions.sort_unstable_by_key(|region| region.iter().min().copied());
            let faulty = run.faulty(rules, &regions, tally)?;
            match Mender::new(rules, regions, tally, cancel).mend(faulty)? {
                Some(groups) => Ok(Groups::new(groups)),
                None => Ok(Groups::new(run.divide(&everybody, tally)?)),
            }
        },
    )
}

fn with_rules(
    individuals: &CodedIndividuals,
    division: &Division,
    prior: &Prior,
    requirements: &GroupBounds,
    divide: impl FnOnce(&Rules<'_>, &mut Tally) -> Result<Groups, DivideError>,
) -> Result<Groups, DivideError> {
    requirements.check()?;
    prior.covers(individuals)?;
    let tuples = individuals.sub_tuples(division)?;
    if individuals.is_empty() {
        return Ok(Groups::default());
    }
    let rules = Rules::new(*requirements, &tuples, individuals, prior);
    divide(&rules, &mut rules.tally())
}

/// All individuals, counted, if β, α and δ can be satisfied.
fn everybody(rules: &Rules<'_>, tally: &mut Tally) -> Result<Vec<u32>, DivideError> {
    let everybody: Vec<u32> = (0..rules.sensitive.len() as u32).collect();
    tally.count(rules, &everybody);
    let shortfalls = tally.shortfalls(rules);
    if shortfalls.is_empty() {
        Ok(everybody)
    } else {
        Err(DivideError::Infeasible(Infeasible { shortfalls }))
    }
}

/// Whether individuals that Anatomy left alone need the room of more than half of its groups.
///
/// β may allow a share of 3/5 where the most frequent value has one of 4/7; but N is 2, the whole number next to 5/3, and
/// groups of two different values leave some of that value alone. Each of them needs to be taken in by so many groups that
/// those together stay below β; where that takes most of the groups, dealing gives smaller ones.
fn exceeds_room(beta: Ratio, width: usize, groups: &[Vec<u32>]) -> bool {
    let alone = groups.iter().filter(|group| group.len() < width).count() as u128;
    let formed = groups.len() as u128 - alone;
    let (part, whole) = (u128::from(beta.numerator()), u128::from(beta.denominator()));
    let room = (part * width as u128).saturating_sub(whole);
    2 * alone * (whole - part) > formed * room
}

/// The next size of groups to try: no size that would do is missed by more than a quarter.
fn larger(size: usize) -> usize {
    size + size.div_ceil(4)
}

struct Run<'a> {
    rules: &'a Rules<'a>,
    cancel: &'a Cancel,
}

impl Run<'_> {
    /// Divides members that together satisfy β, α and δ.
    fn divide(&self, members: &[u32], tally: &mut Tally) -> Result<Vec<Vec<u32>>, DivideError> {
        match self.mended(self.rules, members, tally)? {
            Some(groups) => Ok(groups),
            None => Err(self.without_gamma(members, tally)?),
        }
    }

    /// Groups that satisfy the rules; `None` if mending ended with one group that violates γ.
    fn mended(
        &self,
        rules: &Rules<'_>,
        members: &[u32],
        tally: &mut Tally,
    ) -> Result<Option<Vec<Vec<u32>>>, DivideError> {
        let (groups, faulty) = self.begin(rules, members, tally)?;
        Mender::new(rules, groups, tally, self.cancel).mend(faulty)
    }

    /// Groups to begin with, and which of them are at fault: at most half, unless there is only one.
    ///
    /// N comes from β alone (docs/theory/papers.md S2). Mending groups of which most are at fault would make large ones by
    /// chance, so then all members are dealt into fewer, larger and more even groups.
    fn begin(
        &self,
        rules: &Rules<'_>,
        members: &[u32],
        tally: &mut Tally,
    ) -> Result<(Vec<Vec<u32>>, Vec<u32>), DivideError> {
        let buckets = Buckets::new(members, rules.sensitive);
        let beta = rules.requirements.beta;
        let width = beta.ceil_of_inverse().unwrap_or(u64::MAX);
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        let mut groups = buckets.anatomy(rules.sensitive, width);
        let mut size = width.max(2);
        if exceeds_room(beta, width, &groups) {
            let most = buckets.most_groups(beta);
            groups = buckets.deal(most);
            size = larger(members.len() / most);
        }
        let mut faulty = self.faulty(rules, &groups, tally)?;
        while faulty.len() * 2 > groups.len() && groups.len() > 1 {
            groups = buckets.deal((members.len() / size).max(1));
            faulty = self.faulty(rules, &groups, tally)?;
            size = larger(size);
        }
        Ok((groups, faulty))
    }

    fn faulty(
        &self,
        rules: &Rules<'_>,
        groups: &[Vec<u32>],
        tally: &mut Tally,
    ) -> Result<Vec<u32>, DivideError> {
        let mut faulty = vec![];
        for (number, group) in (0u32..).zip(groups) {
            self.cancel.check()?;
            tally.count(rules, group);
            if tally.fault(rules).is_some() {
                faulty.push(number);
            }
        }
        Ok(faulty)
    }

    /// Which γ works: that of all members as one group, or that of the worst group when γ is not asked for.
    fn without_gamma(
        &self,
        members: &[u32],
        tally: &mut Tally,
    ) -> Result<DivideError, DivideError> {
        let requirements = GroupBounds {
            gamma: None,
            ..self.rules.requirements
        };
        let rules = self.rules.with(requirements);
        tally.count(&rules, members);
        let mut best = tally.gamma();
        if let Some(groups) = self.mended(&rules, members, tally)? {
            let mut worst = None;
            for group in &groups {
                tally.count(&rules, group);
                worst = worst.max(tally.gamma());
            }
            best = best.min(worst);
        }
        let shortfalls = best.map(|best| Shortfall::Gamma { best });
        Ok(DivideError::Infeasible(Infeasible {
            shortfalls: shortfalls.into_iter().collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::super::example::{self, bounds, ratio, satisfies};
    use super::*;

    fn run(
        individuals: &CodedIndividuals,
        division: &Division,
        prior: &Prior,
        requirements: &GroupBounds,
    ) -> Result<Groups, DivideError> {
        divide(
            individuals,
            division,
            prior,
            requirements,
            &Cancel::default(),
        )
    }

    /// Sensitive values alone matter: the one quasi-identifier is different for everybody.
    fn run_sizes(
        sizes: &[usize],
        requirements: &GroupBounds,
    ) -> Result<Vec<Vec<u32>>, DivideError> {
        let sensitive: Vec<u32> = (0u32..).zip(sizes).flat_map(|(v, n)| vec![v; *n]).collect();
        let unique = (0..sensitive.len() as u32).collect();
        let individuals = CodedIndividuals::try_new(vec![unique], sensitive.clone()).unwrap();
        let prior = Prior::of(&individuals).unwrap();
        let groups = run(&individuals, &Division::each(1), &prior, requirements)?;
        let values = |group: &[u32]| group.iter().map(|i| sensitive[*i as usize]).collect();
        Ok(groups.iter().map(values).collect())
    }

    fn only_beta(beta: Ratio) -> GroupBounds {
        GroupBounds {
            alpha: None,
            beta,
            gamma: None,
            delta: None,
        }
    }

    fn shortfalls(result: Result<Groups, DivideError>) -> Vec<Shortfall> {
        match result {
            Err(DivideError::Infeasible(infeasible)) => infeasible.shortfalls,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn where_the_printed_algorithm_gives_up() {
        let half = only_beta(ratio("0.5"));
        assert_eq!(run_sizes(&[2, 2], &half).unwrap(), [[0, 1], [0, 1]]);
        assert_eq!(run_sizes(&[3, 2, 1], &half).unwrap().len(), 3);
    }

    #[test]
    fn a_beta_between_the_modal_share_and_one_nth() {
        // Three of five is 0.6, but three times ⌈1/0.6⌉ = 2 is more than five: no groups of two, yet one of five.
        let groups = run_sizes(&[3, 2], &only_beta(ratio("0.6"))).unwrap();
        assert_eq!(groups, [[0, 0, 0, 1, 1]]);
        let groups = run_sizes(&[300, 200], &only_beta(ratio("0.6"))).unwrap();
        assert_eq!(groups.len(), 100);
        // A few left alone are taken in by some of the groups; the others stay as small as they are.
        let groups = run_sizes(&[510, 490], &only_beta(ratio("0.6"))).unwrap();
        assert!(groups.len() > 400, "{}", groups.len());
        assert!(run_sizes(&[301, 200], &only_beta(ratio("0.6"))).is_err());
    }

    #[test]
    fn a_large_share_and_a_small_delta() {
        // Refused as printed, because there are fewer than ten values; the whole table has a distance of 0.
        let requirements = GroupBounds {
            delta: Some(ratio("0.1")),
            ..only_beta(ratio("0.5"))
        };
        let groups = run_sizes(&[30, 30, 40], &requirements).unwrap();
        assert!(groups.len() >= 10, "{}", groups.len());
        // And N from δ is not enough: a group with one of ten differs from 0.6 by 0.5.
        let requirements = GroupBounds {
            delta: Some(ratio("0.1")),
            ..only_beta(ratio("0.7"))
        };
        let sizes = [60, 5, 5, 5, 5, 5, 5, 5, 5];
        for group in run_sizes(&sizes, &requirements).unwrap() {
            let modal = group.iter().filter(|v| **v == 0).count();
            assert!(modal * 2 >= group.len() && modal * 10 <= group.len() * 7);
        }
    }

    #[test]
    fn a_value_that_a_group_lacks_counts() {
        // Groups of a and b, and of c and d, would have no value that is more than δ too frequent.
        let requirements = GroupBounds {
            delta: Some(ratio("0.2499")),
            ..only_beta(ratio("0.5"))
        };
        let sizes = [10, 10, 10, 10];
        for group in run_sizes(&sizes, &requirements).unwrap() {
            assert!((0..4).all(|value| group.contains(&value)));
        }
        let requirements = GroupBounds {
            delta: Some(ratio("0.25")),
            ..requirements
        };
        assert_eq!(run_sizes(&sizes, &requirements).unwrap().len(), 20);
    }

    #[test]
    fn impossible_bounds_are_refused_with_the_smallest_that_work() {
        let individuals = example::table_1();
        let prior = Prior::of(&individuals).unwrap();
        let division = example::table_4();
        let refused = |requirements: &GroupBounds| {
            shortfalls(run(&individuals, &division, &prior, requirements))
        };
        let quarter = Ratio::new(1, 4).unwrap();
        let found = refused(&bounds("0.2", "0.2", "1", "1"));
        let expected = [
            Shortfall::Beta { best: quarter },
            Shortfall::Alpha {
                table: 0,
                best: quarter,
            },
            Shortfall::Alpha {
                table: 1,
                best: quarter,
            },
        ];
        assert_eq!(found, expected);
        assert!(
            run(
                &individuals,
                &division,
                &prior,
                &bounds("0.25", "0.25", "1", "1")
            )
            .is_ok()
        );
        // As one group: 2/8 · 2/8 · 2/8 is 1/64.
        let found = refused(&bounds("0.25", "0.25", "0.015624", "1"));
        let least = ratio("0.015625");
        assert_eq!(found, [Shortfall::Gamma { best: least }]);
        let requirements = GroupBounds {
            gamma: Some(least),
            ..bounds("0.25", "0.25", "1", "1")
        };
        assert!(run(&individuals, &division, &prior, &requirements).is_ok());
    }

    #[test]
    fn refusals_say_shares_and_no_values() {
        let individuals =
            CodedIndividuals::try_new(vec![vec![77_001; 4]], vec![0, 1, 1, 1]).unwrap();
        let prior = Prior::of(&individuals).unwrap();
        let division = Division::each(1);
        let result = run(
            &individuals,
            &division,
            &prior,
            &bounds("0.5", "0.5", "1", "1"),
        );
        assert_eq!(
            result.unwrap_err().to_string(),
            "one sensitive value has a share of 0.75, so the smallest beta that works is 0.75; and one sub-tuple has a \
             share of 1 in sub-table 1, so the smallest alpha that works is 1; fewer sub-tables or another division may \
             allow a smaller one"
        );
    }

    #[test]
    fn malformed_input_is_refused() {
        let individuals = example::table_1();
        let prior = Prior::of(&individuals).unwrap();
        let malformed = |result: Result<Groups, DivideError>| {
            assert!(
                matches!(result, Err(DivideError::Malformed(_))),
                "{result:?}"
            );
        };
        let fine = bounds("0.5", "0.5", "0.5", "0.5");
        malformed(run(&individuals, &Division::each(3), &prior, &fine));
        let short = Prior::try_new(vec![1, 2, 1, 2, 1]).unwrap();
        let result = run(&individuals, &example::table_4(), &short, &fine);
        assert_eq!(result, Err(DivideError::NotAPart));
        for wrong in ["0", "1.5", "0.0000000000001"] {
            let requirements = bounds("0.5", wrong, "0.5", "0.5");
            malformed(run(
                &individuals,
                &example::table_4(),
                &prior,
                &requirements,
            ));
        }
        assert!(CodedIndividuals::try_new(vec![vec![0; 3]], vec![0; 2]).is_err());
        assert!(Prior::try_new(vec![u64::MAX, u64::MAX]).is_err());
        let gaps = CodedIndividuals::try_new(vec![], vec![u32::MAX]).unwrap();
        assert!(Prior::of(&gaps).is_err());
    }

    #[test]
    fn nobody_and_a_cancelled_run() {
        let nobody = CodedIndividuals::try_new(vec![vec![]], vec![]).unwrap();
        let prior = Prior::of(&nobody).unwrap();
        let fine = bounds("0.5", "0.5", "0.5", "0.5");
        assert!(
            run(&nobody, &Division::each(1), &prior, &fine)
                .unwrap()
                .is_empty()
        );
        let cancel = Cancel::default();
        cancel.cancel();
        let individuals = example::table_1();
        let prior = Prior::of(&individuals).unwrap();
        let result = divide(&individuals, &example::table_4(), &prior, &fine, &cancel);
        assert_eq!(result, Err(DivideError::Cancelled));
        let result = divide_similar(&individuals, &example::table_4(), &prior, &fine, &cancel);
        assert_eq!(result, Err(DivideError::Cancelled));
    }

    /// All ways to divide up to `n` numbers.
    fn partitions(n: u32) -> Vec<Vec<Vec<u32>>> {
        let mut all = vec![vec![]];
        for next in 0..n {
            let mut longer = vec![];
            for partition in all {
                for at in 0..=partition.len() {
                    let mut with: Vec<Vec<u32>> = partition.clone();
                    match with.get_mut(at) {
                        Some(group) => group.push(next),
                        None => with.push(vec![next]),
                    }
                    longer.push(with);
                }
            }
            all = longer;
        }
        all
    }

    #[test]
    fn feasibility_agrees_with_all_partitions() {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let (mut divided, mut refused) = (0, 0);
        for _ in 0..3000 {
            let (individuals, division, mut requirements) = example::random(&mut random, 6);
            requirements.gamma = None;
            let prior = prior_of_block(&individuals, &mut random);
            let holds = |requirements: &GroupBounds, members: &[u32]| {
                satisfies(&individuals, &division, &prior, requirements, members)
            };
            let possible = |requirements: &GroupBounds| {
                let all = partitions(individuals.len() as u32);
                all.iter()
                    .any(|p| p.iter().all(|group| holds(requirements, group)))
            };
            match run(&individuals, &division, &prior, &requirements) {
                Ok(groups) => {
                    divided += 1;
                    assert!(groups.iter().all(|group| holds(&requirements, group)));
                    assert_eq!(groups.individuals(), individuals.len());
                }
                Err(DivideError::Infeasible(infeasible)) => {
                    refused += 1;
                    assert!(!possible(&requirements));
                    let mut mended = requirements;
                    for shortfall in &infeasible.shortfalls {
                        let best = shortfall.best();
                        match shortfall {
                            Shortfall::Alpha { .. } => mended.alpha = mended.alpha.max(Some(best)),
                            Shortfall::Beta { .. } => mended.beta = best,
                            Shortfall::Gamma { .. } => mended.gamma = Some(best),
                            Shortfall::Delta { .. } => mended.delta = Some(best),
                        }
                    }
                    assert!(run(&individuals, &division, &prior, &mended).is_ok());
                    // And β one thousandth smaller is not possible.
                    if let Some(best) = infeasible.shortfalls.iter().find_map(|s| match s {
                        Shortfall::Beta { best } => Some(*best),
                        _ => None,
                    }) {
                        let less = Ratio::new(best.numerator() * 999, best.denominator() * 1000);
                        assert!(!possible(&only_beta(less.unwrap())));
                    }
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        assert!(divided > 500 && refused > 500, "{divided} {refused}");
    }

    /// The individuals' own prior, or that of a larger table of which they are a block.
    fn prior_of_block(individuals: &CodedIndividuals, random: &mut ChaCha8Rng) -> Prior {
        let prior = Prior::of(individuals).unwrap();
        if random.random_bool(0.5) {
            return prior;
        }
        let mut counts: Vec<u64> = prior.counts().to_vec();
        counts.push(0);
        counts
            .iter_mut()
            .for_each(|n| *n = *n * 3 + random.random_range(0..2));
        Prior::try_new(counts).unwrap()
    }

    #[test]
    fn every_group_satisfies_all_four_definitions() {
        let mut random = ChaCha8Rng::seed_from_u64(12);
        let (mut divided, mut several, mut without_gamma) = (0, 0, 0);
        for _ in 0..6000 {
            let (individuals, division, requirements) = example::random(&mut random, 60);
            let prior = prior_of_block(&individuals, &mut random);
            let result = run(&individuals, &division, &prior, &requirements);
            assert_eq!(run(&individuals, &division, &prior, &requirements), result);
            match result {
                Ok(groups) => {
                    divided += 1;
                    several += usize::from(groups.len() > 1);
                    let mut everybody: Vec<u32> = groups.iter().flatten().copied().collect();
                    everybody.sort_unstable();
                    assert!(everybody.into_iter().eq(0..individuals.len() as u32));
                    for group in groups.iter() {
                        assert!(satisfies(
                            &individuals,
                            &division,
                            &prior,
                            &requirements,
                            group
                        ));
                    }
                    let cancel = Cancel::default();
                    let similar =
                        divide_similar(&individuals, &division, &prior, &requirements, &cancel);
                    let similar = similar.unwrap();
                    assert_eq!(similar.individuals(), individuals.len());
                    for group in similar.iter() {
                        assert!(satisfies(
                            &individuals,
                            &division,
                            &prior,
                            &requirements,
                            group
                        ));
                    }
                }
                Err(DivideError::Infeasible(infeasible)) => {
                    if let [Shortfall::Gamma { best }] = infeasible.shortfalls[..] {
                        without_gamma += 1;
                        assert!(Some(best) > requirements.gamma);
                        let mended = GroupBounds {
                            gamma: Some(best),
                            ..requirements
                        };
                        assert!(run(&individuals, &division, &prior, &mended).is_ok());
                    }
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        let counts = [divided, several, without_gamma];
        assert!(
            divided > 2000 && several > 1000 && without_gamma > 20,
            "{counts:?}"
        );
    }
}
