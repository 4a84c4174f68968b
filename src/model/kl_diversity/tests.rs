use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::engine::threads::Threads;
use crate::table::{Fingerprints, Hierarchy, ROOT};

/// A, B and C with two leaves each; B's second leaf has two below it.
///
/// ```text
///   0 *   1 A (2 3)   4 B (5, 6 (7 8))   9 C (10 11)
/// ```
fn tree() -> Arc<Hierarchy> {
    let parents = [
        None,
        Some(0),
        Some(1),
        Some(1),
        Some(0),
        Some(4),
        Some(4),
        Some(6),
        Some(6),
        Some(0),
        Some(9),
        Some(9),
    ];
    let (tree, numbers) = Hierarchy::from_parents(&parents).unwrap();
    assert!(numbers.into_iter().eq(0..12));
    Arc::new(tree)
}

fn parameters(l: u64, value_l: Option<u64>) -> Parameters {
    let mut parameters = Parameters::default();
    parameters.set("k", Value::Integer(2));
    parameters.set("l", Value::Integer(l));
    if let Some(value_l) = value_l {
        parameters.set("value_l", Value::Integer(value_l));
    }
    parameters
}

fn member(fingerprint: &[u32]) -> Member<'_> {
    Member {
        records: fingerprint.len() as u32,
        fingerprint,
        counts: fingerprint,
        ..Member::default()
    }
}

/// The model over these fingerprints, one of each individual.
fn over(class: &[Vec<u32>], l: u64, value_l: Option<u64>) -> KlDiversity {
    let mut sets = Fingerprints::new();
    for set in class {
        sets.push(&mut set.clone());
    }
    let catalogue = Arc::new(Catalogue::new(tree(), sets, &Threads::new(2)));
    KlDiversity::over(&parameters(l, value_l), catalogue).unwrap()
}

/// A catalogue has each fingerprint once: the number of each individual's.
fn numbered(class: &[Vec<u32>]) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut sets = class.to_vec();
    sets.sort();
    sets.dedup();
    let number = |set: &Vec<u32>| sets.binary_search(set).unwrap() as u32;
    let numbers = class.iter().map(number).collect();
    (sets, numbers)
}

fn satisfied(class: &[Vec<u32>], l: u64, value_l: Option<u64>) -> bool {
    let (sets, numbers) = numbered(class);
    let mut tally = over(&sets, l, value_l).tally();
    // Counts of another class are forgotten.
    tally.add(member(&[0]));
    tally.clear();
    numbers
        .iter()
        .for_each(|number| tally.add(member(&[*number])));
    tally.satisfied()
}

fn sets(class: &[&[u32]]) -> Vec<Vec<u32>> {
    class.iter().map(|set| set.to_vec()).collect()
}

#[test]
fn a_value_that_all_have_is_refused() {
    // docs/theory/papers.md M1: {a1, b1}, {a1, b2}, {a1, c1} are three fingerprints, and everybody has a1.
    assert!(!satisfied(&sets(&[&[2, 5], &[2, 6], &[2, 10]]), 3, None));
    // So has everybody something of A, and one may have a1 or a2.
    assert!(!satisfied(&sets(&[&[1, 5], &[2, 6], &[3, 10]]), 3, None));
    // Here nobody publishes A, and a1 is not a2.
    assert!(satisfied(&sets(&[&[2, 5], &[2, 6], &[3, 10]]), 3, None));
    // Table 2(b): B is held by two of three.
    let table = sets(&[&[1, 6], &[4], &[9]]);
    assert!(satisfied(&table, 3, None));
    assert!(!satisfied(&table, 3, Some(2)));
    assert!(satisfied(&sets(&[&[1], &[4], &[9]]), 3, Some(3)));
}

#[test]
fn overlapping_labels_are_counted_together() {
    // M2: {A, b1}, {a1, b1} and {a1, B} can all be {a1, b1}.
    let class = sets(&[&[1, 5], &[2, 5], &[2, 4], &[10], &[11], &[3]]);
    assert!(satisfied(&class, 2, None));
    assert!(!satisfied(&class, 3, None));
    // The root can be anything and tells nothing, but l = 3 would let two of four be {a1}.
    let class = sets(&[&[0], &[2], &[5], &[10]]);
    assert!(satisfied(&class, 2, None));
    assert!(!satisfied(&class, 3, None));
}

#[test]
fn plain_values_are_compared_as_they_are() {
    let plain = |l, class: &[&[u32]]| {
        let mut tally = (ENTRY.build)(&parameters(l, None)).unwrap().tally();
        class.iter().for_each(|set| tally.add(member(set)));
        tally.satisfied()
    };
    assert!(plain(2, &[&[1, 2], &[1, 3], &[4], &[1, 2]]));
    assert!(!plain(3, &[&[1, 2], &[1, 3], &[4], &[1, 2]]));
    assert!(!plain(2, &[&[1, 2], &[1, 3]]));
    // docs/theory/papers.md E4: who has no value is diverse from nobody.
    assert!(!plain(2, &[&[], &[1]]) && !plain(2, &[&[], &[]]));
}

#[test]
fn numbers_that_are_not_in_the_catalogue_are_refused() {
    let model = over(&sets(&[&[2], &[5]]), 2, None);
    for wrong in [&[7][..], &[0, 1]] {
        let mut tally = model.tally();
        for id in [&[0][..], &[1], wrong] {
            tally.add(member(id));
        }
        assert!(!tally.satisfied());
    }
}

#[test]
fn what_is_infeasible_and_the_largest_that_works() {
    let model = over(&sets(&[&[2], &[5], &[1]]), 4, None);
    let ids = [[0], [0], [1], [1], [2]];
    let mut members = ids.iter().map(|id| member(id));
    let infeasible = model.feasible(&mut members).unwrap_err();
    assert_eq!(
        (infeasible.parameter, infeasible.best),
        ("l", Some(Value::Integer(3)))
    );
    let shares = model.shares(&mut ids.iter().map(|id| member(id)));
    // {a1} and {A} can be the same: three of five.
    assert_eq!(
        (shares.individuals, shares.fingerprint, shares.value),
        (5, 3, 3)
    );
    assert_eq!((shares.largest_l(), shares.largest_value_l()), (1, 1));
    let nobody = model.shares(&mut std::iter::empty());
    assert_eq!((nobody.largest_l(), nobody.largest_value_l()), (0, 0));
    assert_eq!(model.describe(), "(2, 4)-diversity");
}

/// All sets of leaves of the tree.
fn possible_sets(tree: &Hierarchy) -> impl Iterator<Item = Vec<u32>> {
    let leaves = tree.leaves();
    (1..1u32 << leaves).map(move |mask| (0..leaves).filter(|leaf| mask >> leaf & 1 == 1).collect())
}

fn describes(tree: &Hierarchy, nodes: &[u32], leaves: &[u32]) -> bool {
    let below = |leaf: u32, node: u32| tree.is_below(tree.node_of(leaf), node);
    leaves
        .iter()
        .all(|leaf| nodes.iter().any(|node| below(*leaf, *node)))
        && nodes
            .iter()
            .all(|node| leaves.iter().any(|leaf| below(*leaf, *node)))
}

/// The most individuals whose fingerprints describe the same set, by trying all sets.
fn alike_by_trying(tree: &Hierarchy, class: &[Vec<u32>]) -> usize {
    let count = |leaves: Vec<u32>| {
        class
            .iter()
            .filter(|set| describes(tree, set, &leaves))
            .count()
    };
    possible_sets(tree).map(count).max().unwrap()
}

/// The most individuals related to a published value, by looking at all pairs.
fn related_by_trying(tree: &Hierarchy, class: &[Vec<u32>]) -> usize {
    let related = |a: u32, b: u32| tree.is_below(a, b) || tree.is_below(b, a);
    let values = class.concat().into_iter().filter(|value| *value != ROOT);
    let count = |value| {
        class
            .iter()
            .filter(|set| set.iter().any(|own| related(*own, value)))
            .count()
    };
    values.map(count).max().unwrap_or(0)
}

/// Nodes of which none lies below another.
fn fingerprint() -> impl Strategy<Value = Vec<u32>> {
    let nodes = prop::collection::vec(1..12u32, 1..4);
    (nodes, prop::bool::weighted(0.03)).prop_map(|(mut nodes, root)| {
        let tree = tree();
        nodes.sort_unstable();
        nodes.dedup();
        let all = nodes.clone();
        nodes.retain(|node| {
            !all.iter()
                .any(|other| other != node && tree.is_below(*node, *other))
        });
        if root { vec![ROOT] } else { nodes }
    })
}

proptest! {
    #![proptest_config(crate::repeatable::cases(3000))]

    #[test]
    fn decisions_agree_with_trying_everything(
        class in prop::collection::vec(fingerprint(), 1..12), l in 2..5u64, value_l in 1..4u64,
    ) {
        let tree = tree();
        let value_l = Some(value_l).filter(|l| *l > 1);
        let n = class.len();
        let alike = alike_by_trying(&tree, &class);
        let related = related_by_trying(&tree, &class);
        let values_hold = match value_l {
            Some(value_l) => related as u64 * value_l <= n as u64,
            None => related < n,
        };
        let holds = alike as u64 * l <= n as u64 && values_hold;
        let (sets, numbers) = numbered(&class);
        let shares = over(&sets, l, value_l).shares(&mut numbers.iter().map(|id| member(std::slice::from_ref(id))));
        // What is counted for fingerprints is never too little; for values it is exact.
        prop_assert!(shares.fingerprint as usize >= alike);
        prop_assert_eq!(shares.value as usize, related);
        let satisfied = satisfied(&class, l, value_l);
        prop_assert!(!satisfied || holds);
        prop_assert!(!satisfied || n >= over(&sets, l, value_l).min_individuals());
        if shares.fingerprint as usize == alike {
            prop_assert_eq!(satisfied, holds);
        }
    }

    #[test]
    fn the_union_of_two_classes_is_one(
        a in prop::collection::vec(fingerprint(), 2..10), b in prop::collection::vec(fingerprint(), 2..10), l in 2..4u64,
    ) {
        // docs/theory/papers.md G7. What is safe to say no to may be refused, so the definition is asked.
        if !satisfied(&a, l, None) || !satisfied(&b, l, None) {
            return Ok(());
        }
        let union = [a, b].concat();
        let tree = tree();
        prop_assert!(alike_by_trying(&tree, &union) as u64 * l <= union.len() as u64);
        prop_assert!(related_by_trying(&tree, &union) < union.len());
    }
}

#[test]
fn counting_together_is_hardly_ever_too_much() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut exact, mut all) = (0, 0);
    for _ in 0..500 {
        let class = prop::collection::vec(fingerprint(), 4..12)
            .new_tree(&mut runner)
            .unwrap()
            .current();
        let (sets, numbers) = numbered(&class);
        let shares = over(&sets, 2, None)
            .shares(&mut numbers.iter().map(|id| member(std::slice::from_ref(id))));
        all += 1;
        exact += usize::from(shares.fingerprint as usize == alike_by_trying(&tree(), &class));
    }
    assert!(exact * 100 >= all * 95, "{exact} of {all}");
}
