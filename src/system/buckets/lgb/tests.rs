mod estimate;
mod residual;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

use self::estimate::relative_error;
use self::residual::fewest_possible_values;
use super::example::{FULL, categorical, diversity, figure_1, numeric, random, secret};
use super::people::{CodedColumn, Extent, Seen};
use super::*;
use crate::measure::Estimate;
use crate::table::{Cell, Hierarchical, LossTree, NULL_CODE, QuasiIdentifier, Region, Taxonomy};

const STRATEGIES: [Strategy; 2] = [Strategy::Mdp, Strategy::Ncp];
const SMALL: [SmallPattern; 2] = [SmallPattern::Drop, SmallPattern::Mask];

fn request(k: usize, strategy: Strategy, small_pattern: SmallPattern) -> Request {
    Request {
        k,
        strategy,
        small_pattern,
    }
}

fn run(people: &LgbInput, k: usize, strategy: Strategy, small: SmallPattern) -> Anonymized {
    let request = request(k, strategy, small);
    anonymize(
        people,
        &request,
        &[7; 32],
        &Threads::new(2),
        &Cancel::default(),
    )
    .unwrap()
}

fn members(anonymized: &Anonymized) -> BTreeSet<Vec<u32>> {
    anonymized
        .groups
        .iter()
        .map(|g| g.members.clone())
        .collect()
}

fn sets<const N: usize>(sets: [&[u32]; N]) -> BTreeSet<Vec<u32>> {
    sets.into_iter().map(<[u32]>::to_vec).collect()
}

fn buckets(buckets: &Buckets) -> BTreeSet<Vec<u32>> {
    let sorted = |bucket| {
        let mut members = buckets.members(bucket).to_vec();
        members.sort_unstable();
        members
    };
    (0..buckets.len()).map(sorted).collect()
}

#[test]
fn the_groups_of_figures_2_and_3() {
    // Individuals 1001 to 1008 are 0 to 7.
    for strategy in STRATEGIES {
        let result = run(&figure_1(2), 2, strategy, SmallPattern::Drop);
        let patterns = result.patterns.patterns.iter();
        let partition: BTreeSet<Vec<u32>> = patterns.map(|p| p.members.clone()).collect();
        assert_eq!(
            partition,
            sets([&[0, 1], &[2, 5], &[3, 4, 6, 7]]),
            "Figure 3(a)"
        );
        assert_eq!(
            members(&result),
            sets([&[0, 1], &[2, 5], &[3, 7], &[4, 6]]),
            "Figure 3(b)"
        );
        let cells = |first: u32| {
            let group = result.groups.iter().find(|g| g.members[0] == first);
            cells_of(&figure_1(2), &result, group.unwrap())
        };
        let interval = |lo, hi| Some(Cell::Interval { lo, hi });
        let genders = |codes: &[u32]| Some(Cell::Set(codes.to_vec()));
        // Figure 2, without a hierarchy: zip codes are intervals, and gender is the set {male, female}.
        assert_eq!(cells(0), [interval(25, 28), genders(&[0, 1]), None]);
        assert_eq!(
            cells(2),
            [interval(16, 22), genders(&[0]), interval(21352, 21358)]
        );
        assert_eq!(cells(3), [None, genders(&[0]), interval(21336, 21340)]);
        assert_eq!(cells(4), [None, genders(&[1]), interval(21328, 21328)]);
    }
}

#[test]
fn hierarchies_give_the_labels_of_figure_2() {
    let zips = [21357, 21344, 21352, 21336, 21328, 21358, 21328, 21340].map(|z: u32| z.to_string());
    let mut rows: Vec<Vec<String>> = zips
        .iter()
        .map(|zip| {
            vec![
                zip.clone(),
                format!("{}*", &zip[..4]),
                format!("{}**", &zip[..3]),
            ]
        })
        .collect();
    rows.sort();
    rows.dedup();
    let labels = Taxonomy::from_rows(&rows).unwrap();
    let tree = labels.tree();
    let leaf = |zip: &String| {
        let mut leaves = 0..tree.leaves();
        leaves
            .find(|l| labels.label(tree.node_of(*l)) == zip)
            .unwrap()
    };
    let codes: Vec<u32> = zips.iter().map(leaf).collect();
    let loss = |node: u32| FULL * u64::from(tree.size(node) - 1) / u64::from(tree.leaves() - 1);
    let zip = QiInput {
        values: Cow::Owned(QuasiIdentifier::Hierarchical(Hierarchical {
            lo: codes.clone(),
            hi: codes.clone(),
            tree: LossTree {
                hierarchy: Arc::new(tree.clone()),
                losses: Arc::new((0..tree.len()).map(loss).collect()),
            },
        })),
        ranks: codes,
        secret_cells: secret(&[1, 1, 0, 0, 0, 0, 0, 0], diversity(2)),
    };
    let age = [28, 25, 16, 24, 31, 22, 29, 34];
    let columns = vec![
        numeric(&age, secret(&[0, 0, 0, 1, 1, 0, 1, 1], diversity(2))),
        categorical(&[0, 1, 0, 0, 1, 0, 1, 0], None),
        zip,
    ];
    let people = LgbInput::try_new(8, columns, vec![], FULL).unwrap();
    for strategy in STRATEGIES {
        let result = run(&people, 2, strategy, SmallPattern::Drop);
        let shown: BTreeMap<Vec<u32>, &str> = result
            .groups
            .iter()
            .filter_map(|group| match cells_of(&people, &result, group)[2] {
                Some(Cell::Node(node)) => Some((group.members.clone(), labels.label(node))),
                _ => None,
            })
            .collect();
        let expected = [
            (vec![2, 5], "2135*"),
            (vec![3, 7], "213**"),
            (vec![4, 6], "21328"),
        ];
        assert_eq!(shown, BTreeMap::from(expected));
    }
}

#[test]
fn the_buckets_of_figure_4_are_valid_and_as_narrow_as_possible() {
    let people = figure_1(2);
    let result = run(&people, 2, Strategy::Mdp, SmallPattern::Drop);
    let [age, zip, disease] = &result.buckets[..] else {
        panic!("three attributes have secrets");
    };
    assert_eq!(buckets(zip), sets([&[0, 1]]));
    // Secret ages are 24, 29, 31 and 34: the figure pairs 24 with 31, Algorithm 2 pairs neighbours.
    assert_eq!(buckets(age), sets([&[3, 6], &[4, 7]]));
    assert_eq!(age.of(0), None, "an age that is not secret is in no bucket");
    for bucket in 0..disease.len() {
        let values: HashSet<u32> = disease
            .members(bucket)
            .iter()
            .map(|m| people.ranks(2)[*m as usize])
            .collect();
        assert!(values.len() >= 2 && values.len() == disease.members(bucket).len());
    }
}

/// Ten individuals with two semi-sensitive columns: patterns 00 × 5, 10 × 2, 11 × 2, 01 × 1.
fn small_patterns() -> LgbInput {
    let a = numeric(
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        secret(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 0], diversity(2)),
    );
    let b = numeric(
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        secret(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 1], diversity(2)),
    );
    let c = numeric(&[0, 0, 0, 0, 0, 1, 1, 1, 1, 1], None);
    LgbInput::try_new(10, vec![a, b, c], vec![], FULL).unwrap()
}

#[test]
fn small_patterns_are_dropped_or_masked() {
    // docs/theory/papers.md L1.
    let people = small_patterns();
    let is_empty = |buckets: &Buckets| buckets.len() == 0;
    let dropped = run(&people, 3, Strategy::Mdp, SmallPattern::Drop);
    assert_eq!(dropped.patterns.dropped, [5, 6, 7, 8, 9]);
    assert_eq!(members(&dropped), sets([&[0, 1, 2, 3, 4]]));
    assert!(
        dropped.buckets.iter().all(is_empty),
        "nobody who is dropped is in a bucket"
    );

    let masked = run(&people, 3, Strategy::Mdp, SmallPattern::Mask);
    assert_eq!(members(&masked), sets([&[0, 1, 2, 3, 4], &[5, 6, 7, 8, 9]]));
    let pool = masked.patterns.patterns.last().unwrap();
    let blank = [Treatment::Blank, Treatment::Blank, Treatment::Generalized];
    assert_eq!(
        pool.treatments, blank,
        "they differ on both semi-sensitive columns"
    );
    assert!(
        masked.buckets.iter().all(is_empty),
        "no blank value is in a bucket"
    );
    let loss = GroupLoss::of(&people, &masked);
    // Five individuals with two blank cells each, and 4/9 twice for the five others.
    assert_eq!(
        loss.penalty,
        u128::from(5 * 2 * FULL + 5 * 2 * 4 * (FULL / 9))
    );

    // What all of them keep secret stays in its bucket; what none does is generalized.
    let flags: [&[u8]; 2] = [&[0, 0, 0, 0, 1, 1, 1, 1], &[0, 0, 0, 0, 0, 0, 1, 1]];
    let column = |flags| numeric(&[1, 2, 3, 4, 5, 6, 7, 8], secret(flags, diversity(2)));
    let columns = vec![column(flags[0]), column(flags[1])];
    let people = LgbInput::try_new(8, columns, vec![], FULL).unwrap();
    let masked = run(&people, 3, Strategy::Mdp, SmallPattern::Mask);
    let pool = masked.patterns.patterns.last().unwrap();
    assert_eq!(pool.treatments, [Treatment::Bucketized, Treatment::Blank]);
    assert_eq!(
        (0..8)
            .filter(|i| masked.buckets[0].of(*i).is_some())
            .count(),
        4
    );
    assert!(is_empty(&masked.buckets[1]));

    // A pool of fewer than k is not published.
    let masked = run(&people, 9, Strategy::Mdp, SmallPattern::Mask);
    assert_eq!(masked.patterns.dropped.len(), 8);
    assert_eq!(masked.patterns.largest, 8, "the largest k that works");
    let dropped = run(&people, 9, Strategy::Mdp, SmallPattern::Drop);
    assert_eq!(dropped.patterns.largest, 4, "the largest pattern");
}

#[test]
fn a_rule_that_cannot_hold_is_refused_and_never_relaxed() {
    // docs/theory/papers.md L2.
    let sex = categorical(&[0, 0, 0, 0, 0, 0, 1, 1], secret(&[1; 8], diversity(5)));
    let people = LgbInput::try_new(8, vec![sex], vec![], FULL).unwrap();
    let request = request(2, Strategy::Mdp, SmallPattern::Drop);
    let refusal = anonymize(
        &people,
        &request,
        &[1; 32],
        &Threads::new(2),
        &Cancel::default(),
    )
    .unwrap_err();
    let Refusal::Unworkable(unworkable) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(
        unworkable.attribute(),
        Some(AttributePlace::QuasiIdentifier(0))
    );
    assert_eq!(unworkable.largest_l(), None);

    let l = |l| {
        LgbInput::try_new(
            0,
            vec![categorical(&[], secret(&[], diversity(l)))],
            vec![],
            1,
        )
    };
    assert!(
        matches!(l(1), Err(Unworkable::Bounds { .. })),
        "L3: l = 1 hides nothing"
    );
    assert!(l(2).is_ok());
}

#[test]
fn k_is_counted_inside_the_pattern() {
    // docs/theory/papers.md L6: ten individuals alike, but for what they keep secret.
    let a = numeric(
        &[5; 10],
        secret(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 1], diversity(2)),
    );
    let b = numeric(&[1; 10], None);
    let people = LgbInput::try_new(10, vec![a, b], vec![], FULL).unwrap();
    let result = run(&people, 4, Strategy::Ncp, SmallPattern::Drop);
    assert_eq!(result.patterns.dropped, [7, 8, 9]);
    assert_eq!(members(&result), sets([&[0, 1, 2, 3, 4, 5, 6]]));
}

#[test]
fn correlated_columns_are_reported() {
    // docs/theory/papers.md L7: code 0 is male, and disease 1 occurs in women only.
    let gender = categorical(&[0, 0, 1, 1], None);
    let disease = vec![0, 2, 1, 2];
    let rule = diversity(2);
    let sensitive = vec![SensitiveInput {
        ranks: disease,
        rule,
    }];
    let people = LgbInput::try_new(4, vec![gender], sensitive, FULL).unwrap();
    let result = run(&people, 2, Strategy::Mdp, SmallPattern::Drop);
    let buckets = &result.buckets[0];
    let known = |i: u32| [u32::from(i >= 2)];
    let possible = |forbidden: fn(u32, u32) -> bool| {
        fewest_possible_values(buckets, people.ranks(0), known, forbidden)
    };
    assert_eq!(possible(|_, _| false), Some(2));
    let male_in_its_bucket = (0..2).any(|i| buckets.of(i) == buckets.of(2));
    let expected = if male_in_its_bucket { 1 } else { 2 };
    assert_eq!(
        possible(|gender, disease| (gender, disease) == (0, 1)),
        Some(expected)
    );
}

#[test]
fn a_value_is_shown_in_one_way_only() {
    // docs/theory/papers.md L8: what is in a bucket has its id, and no generalized value; the rest has no id.
    let people = figure_1(2);
    let result = run(&people, 2, Strategy::Mdp, SmallPattern::Drop);
    for group in &result.groups {
        let treatments = &result.patterns.patterns[group.pattern].treatments;
        for (place, attribute) in people.attributes().enumerate() {
            let AttributePlace::QuasiIdentifier(column) = attribute else {
                continue;
            };
            for member in &group.members {
                let shown = result.buckets[place].shown(*member).is_some();
                assert_eq!(shown, treatments[column] == Treatment::Bucketized);
                assert_eq!(shown, treatments[column] != Treatment::Generalized);
            }
        }
    }
}

#[test]
fn exact_values_lose_nothing() {
    // docs/theory/papers.md L9: the printed NCP of an untouched category is 1 / |A|, and 0 / 0 for a column of one value.
    let columns = vec![
        categorical(&[0, 0, 1, 1, 2, 2], None),
        numeric(&[9; 6], None),
    ];
    let people = LgbInput::try_new(6, columns, vec![], FULL).unwrap();
    for strategy in STRATEGIES {
        let result = run(&people, 2, strategy, SmallPattern::Drop);
        let loss = GroupLoss::of(&people, &result);
        assert_eq!(
            (loss.penalty, loss.ncp(), loss.ncp_per_cell()),
            (0, 0.0, 0.0)
        );
        assert_eq!(
            (loss.discernibility, loss.cells, loss.individuals),
            (12, 12, 6)
        );
        let result = run(&people, 4, strategy, SmallPattern::Drop);
        let loss = GroupLoss::of(&people, &result);
        assert_eq!((loss.ncp(), loss.ncp_per_cell()), (6.0, 0.5));
        assert_eq!(loss.discernibility, 36);
    }
    assert_eq!(relative_error(&Estimate::default(), 0.0), None);
}

#[test]
fn one_record_per_individual() {
    // docs/theory/papers.md L10: there is no place for a second one.
    let short = numeric(&[1, 2], None);
    let wrong = LgbInput::try_new(3, vec![short], vec![], FULL);
    assert!(matches!(wrong, Err(Unworkable::Shape(_))));
}

#[test]
fn missing_secrets_are_refused() {
    let hidden = numeric(&[1, NULL_CODE, 3], secret(&[0, 1, 1], diversity(2)));
    let refused = LgbInput::try_new(3, vec![hidden], vec![], FULL).unwrap_err();
    let expected = Unworkable::MissingSecrets {
        attribute: AttributePlace::QuasiIdentifier(0),
        individuals: 1,
    };
    assert_eq!(refused, expected);
    let shown = numeric(&[1, NULL_CODE, 3], secret(&[1, 0, 1], diversity(2)));
    assert!(LgbInput::try_new(3, vec![shown], vec![], FULL).is_ok());
}

#[test]
fn missing_values_are_parted_from_others() {
    let column = numeric(&[1, NULL_CODE, 2, NULL_CODE, 3, NULL_CODE, 4, 5], None);
    let people = LgbInput::try_new(8, vec![column], vec![], FULL).unwrap();
    for strategy in STRATEGIES {
        let groups = members(&run(&people, 3, strategy, SmallPattern::Drop));
        assert_eq!(groups, sets([&[1, 3, 5], &[0, 2, 4, 6, 7]]));
    }
}

#[test]
fn little_loss_is_less_than_even_cuts() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let (mut even, mut little) = (0, 0);
    for _ in 0..40 {
        let people = random(&mut rng, 400);
        for (strategy, sum) in [(Strategy::Mdp, &mut even), (Strategy::Ncp, &mut little)] {
            let patterns = Patterns::of(&people, 3, SmallPattern::Drop);
            for pattern in &patterns.patterns {
                let treatments = &pattern.treatments;
                let all = pattern.members.clone();
                let cancel = Cancel::default();
                let groups = generalize(&people, treatments, all, 3, strategy, &cancel).unwrap();
                let losses = groups.iter().map(|set| set.members.len() as u64 * set.loss);
                *sum += losses.sum::<u64>();
            }
        }
    }
    assert!(little * 100 < even * 92, "{little} of {even}");
}

#[test]
fn a_cancelled_run_stops() {
    let cancel = Cancel::default();
    cancel.cancel();
    for strategy in STRATEGIES {
        let request = request(2, strategy, SmallPattern::Drop);
        let stopped = anonymize(&figure_1(2), &request, &[1; 32], &Threads::new(2), &cancel);
        assert_eq!(stopped, Err(Refusal::Cancelled));
        let treatments = [Treatment::Generalized; 3];
        let all = (0..8).collect();
        let stopped = generalize(&figure_1(2), &treatments, all, 2, strategy, &cancel);
        assert!(stopped.is_err());
    }
}

#[test]
fn random_tables_hold_what_is_promised() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let (mut published, mut refused) = (0, 0);
    for turn in 0..6000 {
        let people = random(&mut rng, 80);
        let k = rng.random_range(1..=6);
        let small = SMALL[rng.random_range(0..SMALL.len())];
        let request = request(k, STRATEGIES[turn % 2], small);
        let key = rng.random();
        let cancel = Cancel::default();
        match anonymize(&people, &request, &key, &Threads::new(2), &cancel) {
            Ok(result) => {
                assert_eq!(
                    anonymize(&people, &request, &key, &Threads::new(2), &cancel).as_ref(),
                    Ok(&result)
                );
                check(&people, &request, &result);
                published += usize::from(!result.groups.is_empty());
            }
            Err(Refusal::Unworkable(why)) => {
                check_refusal(&people, &request, &why);
                refused += 1;
            }
            Err(Refusal::Cancelled) => panic!("nobody cancelled"),
        }
    }
    assert!(published > 2500 && refused > 500, "{published} {refused}");
}

#[test]
fn parts_and_extents_lose_what_their_members_do() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let mut wide = 0;
    for turn in 0..300 {
        let (n, missing) = (rng.random_range(1..150), f64::from(turn % 3) * 0.2);
        let mut values = |different: u32| -> Vec<u32> {
            let mut value = || match rng.random_bool(missing) {
                true => NULL_CODE,
                false => rng.random_range(0..different),
            };
            (0..n).map(|_| value()).collect()
        };
        let columns = vec![
            numeric(&values(40), None),
            categorical(&values(9), None),
            categorical(&values(200), None),
        ];
        let people = LgbInput::try_new(n, columns, vec![], FULL).unwrap();
        let left: Vec<bool> = (0..n).map(|_| rng.random_bool(0.4)).collect();
        for column in people.columns() {
            let loss = |ranks: &[u32]| column.loss(ranks, &mut Seen::default()).0;
            let side = |side: bool| -> Vec<u32> {
                let members = column.ranks.iter().zip(&left);
                let own = members.filter(|(_, left)| **left == side);
                own.map(|(rank, _)| *rank).collect()
            };
            assert_eq!(
                column.losses_of_parts(&column.ranks, &left, &mut Seen::default()),
                [loss(&side(true)), loss(&side(false))]
            );
            let mut extent = column.extent(column.ranks[0]);
            for at in 1..n {
                let rank = column.ranks[at];
                assert_eq!(column.loss_with(&extent, rank), loss(&column.ranks[..=at]));
                extent.include(rank);
            }
            wide += usize::from(matches!(extent, Extent::Many(_)));
        }
    }
    assert!(wide > 100);
}

/// Whether each individual keeps a value of an attribute secret.
fn secret_cells(people: &LgbInput, place: usize) -> Vec<bool> {
    match &people.secrets()[place].flags {
        Some(flags) => flags.clone(),
        None => vec![true; people.individuals()],
    }
}

/// The promises, by brute force.
fn check(people: &LgbInput, request: &Request, result: &Anonymized) {
    let n = people.individuals();
    let mut group_of = vec![None; n];
    for (place, group) in result.groups.iter().enumerate() {
        assert!(group.members.len() >= request.k.max(1));
        assert!(group.members.is_sorted());
        for member in &group.members {
            assert_eq!(group_of[*member as usize].replace(place), None);
        }
        check_cells(people, result, group);
    }
    let patterns = &result.patterns;
    for gone in &patterns.dropped {
        assert_eq!(group_of[*gone as usize].replace(usize::MAX), None);
    }
    assert!(
        group_of.iter().all(Option::is_some),
        "everybody is somewhere"
    );
    check_patterns(people, request, result);
    for (place, attribute) in people.attributes().enumerate() {
        let secret = secret_cells(people, place);
        let buckets = &result.buckets[place];
        for i in 0..n {
            let treatment = match (group_of[i], attribute) {
                (Some(usize::MAX) | None, _) => Treatment::Blank,
                (Some(_), AttributePlace::Sensitive(_)) => Treatment::Bucketized,
                (Some(group), AttributePlace::QuasiIdentifier(column)) => {
                    patterns.patterns[result.groups[group].pattern].treatments[column]
                }
            };
            let inside = buckets.of(i as u32).is_some();
            assert_eq!(inside, treatment == Treatment::Bucketized);
            assert!(!inside || secret[i], "only secrets are in buckets");
            assert!(
                treatment != Treatment::Generalized || !secret[i],
                "no secret is shown"
            );
        }
        check_buckets(people, place, buckets);
    }
}

/// Somebody in the column's block with the value of an individual: the last one has none.
fn example(column: &CodedColumn, individual: u32) -> u32 {
    column.ranks[individual as usize].min(column.block.len() as u32 - 1)
}

/// The code of an individual's value.
fn code_of(column: &CodedColumn, individual: u32) -> u32 {
    let example = example(column, individual);
    match &column.block.quasi_identifiers()[0] {
        QuasiIdentifier::Numeric(n) => n.lo[example as usize],
        QuasiIdentifier::Categorical(c) => c.of(example)[0],
        QuasiIdentifier::Hierarchical(h) => h.lo[example as usize],
    }
}

/// What a group publishes in one column.
fn region_of(column: &CodedColumn, group: &Group) -> Region {
    let members = group.members.iter().map(|m| example(column, *m));
    let members: Vec<u32> = members.collect();
    Region::covering(&column.block, &members).unwrap()
}

/// What a group publishes per quasi-identifier; `None` where its pattern does not generalize.
fn cells_of(people: &LgbInput, result: &Anonymized, group: &Group) -> Vec<Option<Cell>> {
    let treatments = result.patterns.patterns[group.pattern].treatments.iter();
    let cell = |(column, treatment): (&CodedColumn, &Treatment)| {
        let region = region_of(column, group);
        (*treatment == Treatment::Generalized).then(|| region.cells()[0].clone())
    };
    people.columns().iter().zip(treatments).map(cell).collect()
}

/// What a group loses is what its cells do, said again with sets.
fn check_cells(people: &LgbInput, result: &Anonymized, group: &Group) {
    let treatments = &result.patterns.patterns[group.pattern].treatments;
    let mut loss = 0;
    for (at, treatment) in treatments.iter().enumerate() {
        let expected = (*treatment == Treatment::Generalized).then(|| {
            let column = &people.columns()[at];
            let members = group.members.iter();
            let mut codes: Vec<u32> = members.map(|member| code_of(column, *member)).collect();
            codes.sort_unstable();
            codes.dedup();
            match (codes.last(), codes.len()) {
                (Some(&NULL_CODE), 1) => Cell::Null,
                (Some(&NULL_CODE), _) => Cell::Suppressed,
                _ if at < 2 => Cell::Interval {
                    lo: codes[0],
                    hi: codes[codes.len() - 1],
                },
                _ => Cell::Set(codes),
            }
        });
        assert_eq!(cells_of(people, result, group)[at], expected);
        loss += match treatment {
            Treatment::Generalized => region_of(&people.columns()[at], group).loss(),
            Treatment::Bucketized => 0,
            Treatment::Blank => FULL,
        };
    }
    assert_eq!(group.loss, loss);
}

/// docs/theory/papers.md L1, said again with sets.
fn check_patterns(people: &LgbInput, request: &Request, result: &Anonymized) {
    let mut patterns: BTreeMap<Vec<bool>, Vec<u32>> = BTreeMap::new();
    let flags = [secret_cells(people, 0), secret_cells(people, 1)];
    for i in 0..people.individuals() {
        let pattern = flags.iter().map(|f| f[i]).collect();
        patterns.entry(pattern).or_default().push(i as u32);
    }
    let (large, small): (Vec<_>, Vec<_>) = patterns
        .into_iter()
        .partition(|(_, m)| m.len() >= request.k.max(1));
    let mut pool: Vec<u32> = small.iter().flat_map(|(_, m)| m.clone()).collect();
    pool.sort_unstable();
    let masked = request.small_pattern == SmallPattern::Mask && pool.len() >= request.k.max(1);
    let mut expected: BTreeSet<(Vec<Treatment>, Vec<u32>)> = BTreeSet::new();
    let treat = |age: [bool; 2], job: [bool; 2]| {
        let one = |[all, any]: [bool; 2]| match (all, any) {
            (true, _) => Treatment::Bucketized,
            (false, true) => Treatment::Blank,
            (false, false) => Treatment::Generalized,
        };
        vec![
            one(age),
            Treatment::Generalized,
            one(job),
            Treatment::Generalized,
        ]
    };
    for (pattern, members) in large {
        expected.insert((treat([pattern[0]; 2], [pattern[1]; 2]), members));
    }
    if masked {
        let all = |bit: usize| small.iter().all(|(p, _)| p[bit]);
        let any = |bit: usize| small.iter().any(|(p, _)| p[bit]);
        let treatments = treat([all(0), any(0)], [all(1), any(1)]);
        expected.insert((treatments, pool.clone()));
        pool.clear();
    }
    let found = result.patterns.patterns.iter();
    let found: BTreeSet<_> = found
        .map(|p| (p.treatments.clone(), p.members.clone()))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(result.patterns.dropped, pool);
}

fn check_buckets(people: &LgbInput, place: usize, buckets: &Buckets) {
    let ranks = people.ranks(place);
    let of = |members: &[u32]| -> Vec<u32> {
        let mut values: Vec<u32> = members.iter().map(|m| ranks[*m as usize]).collect();
        values.sort_unstable();
        values
    };
    for bucket in 0..buckets.len() {
        let members = buckets.members(bucket);
        let shown = members.iter().map(|m| buckets.shown(*m).unwrap());
        assert_eq!(of(&shown.collect::<Vec<_>>()), of(members));
        let mut values = of(members);
        let size = values.len();
        values.dedup();
        match &people.secrets()[place].rule {
            Rule::Diversity { l } => assert!(values.len() == size && size >= *l as usize),
            Rule::Closeness { .. } => assert!(values.len() >= 2),
        }
    }
}

/// A refusal is right: the attribute's rule holds for no division at all.
fn check_refusal(people: &LgbInput, request: &Request, why: &Unworkable) {
    let patterns = Patterns::of(people, request.k, request.small_pattern);
    let place = people.attributes().position(|a| Some(a) == why.attribute());
    let place = place.unwrap();
    let owners = patterns.owners(people, place);
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for owner in &owners {
        *counts
            .entry(people.ranks(place)[*owner as usize])
            .or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    match why {
        Unworkable::Diversity { l, .. } => assert!(most * *l as usize > owners.len()),
        Unworkable::Closeness { best, .. } => assert!(best.is_none() && counts.len() == 1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn blocks_hold_what_is_promised() {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let mut whole = 0;
    for _ in 0..300 {
        let k = rng.random_range(2..=4);
        let people = random(&mut rng, 300);
        let n = people.individuals();
        let mut published = vec![0; n];
        for number in 0..4 {
            let block: Vec<u32> = (0..n as u32).filter(|i| i % 4 == number).collect();
            let part = part_of(&people, &block);
            let request = request(k, Strategy::Mdp, SmallPattern::Drop);
            let done = anonymize(
                &part,
                &request,
                &[number as u8; 32],
                &Threads::new(2),
                &Cancel::default(),
            );
            let Ok(done) = done else {
                continue;
            };
            check(&part, &request, &done);
            for member in done.groups.iter().flat_map(|g| &g.members) {
                published[block[*member as usize] as usize] += 1;
            }
        }
        assert!(published.iter().all(|times| *times <= 1));
        whole += published.iter().sum::<usize>();
    }
    assert!(whole > 5_000, "{whole}");
}

/// Some of the people as a block of their own.
fn part_of(people: &LgbInput, members: &[u32]) -> LgbInput {
    let pick =
        |values: &[u32]| -> Vec<u32> { members.iter().map(|m| values[*m as usize]).collect() };
    let mut columns = vec![];
    for (at, column) in people.columns().iter().enumerate() {
        let place = people
            .attributes()
            .position(|a| a == AttributePlace::QuasiIdentifier(at));
        let secret_cells = place.map(|place| SecretCells {
            secret: {
                let all = secret_cells(people, place);
                members.iter().map(|m| all[*m as usize]).collect()
            },
            ranks: None,
            rule: people.secrets()[place].rule.clone(),
        });
        let codes: Vec<u32> = members.iter().map(|m| code_of(column, *m)).collect();
        columns.push(match &column.block.quasi_identifiers()[0] {
            QuasiIdentifier::Numeric(_) => numeric(&codes, secret_cells),
            QuasiIdentifier::Categorical(_) => categorical(&codes, secret_cells),
            QuasiIdentifier::Hierarchical(_) => panic!("no column of these tables has a hierarchy"),
        });
    }
    let sensitive = vec![SensitiveInput {
        ranks: pick(people.ranks(2)),
        rule: people.secrets()[2].rule.clone(),
    }];
    LgbInput::try_new(members.len(), columns, sensitive, FULL).unwrap()
}

#[test]
fn a_part_of_a_pattern_can_be_generalized_alone() {
    // Buckets over the whole table, groups block by block; what is left of a pattern joins a group of it.
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    for _ in 0..200 {
        let people = random(&mut rng, 300);
        let k = 4;
        let cancel = Cancel::default();
        for pattern in Patterns::of(&people, k, SmallPattern::Drop).patterns {
            let mut groups: Vec<Vec<u32>> = vec![];
            let mut left = vec![];
            for part in pattern.members.chunks(11) {
                if part.len() < k {
                    left.extend_from_slice(part);
                    continue;
                }
                let treatments = &pattern.treatments;
                let members = part.to_vec();
                let formed = generalize(&people, treatments, members, k, Strategy::Mdp, &cancel);
                groups.extend(formed.unwrap().into_iter().map(|set| set.members));
            }
            groups.last_mut().unwrap().extend(left);
            assert!(groups.iter().all(|g| g.len() >= k));
            let mut all: Vec<u32> = groups.concat();
            all.sort_unstable();
            assert_eq!(all, pattern.members);
        }
    }
}
