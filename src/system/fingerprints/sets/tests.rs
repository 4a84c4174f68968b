use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::algorithm::{Algorithm, BestCut, Cancel, Classes, Danonyir, Mondrian};
use crate::engine::threads::Threads;
use crate::model::{Member, Model, Parameters, Value};
use crate::table::{
    Block, Fingerprints, Hierarchical, Hierarchy, LossTree, Numeric, QuasiIdentifier, Taxonomy,
};
use crate::table::{co_occurrence, even};

fn taxonomy(rows: &[&str]) -> Taxonomy {
    let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(';').collect()).collect();
    Taxonomy::from_rows(&rows).unwrap()
}

/// Figure 1, the diseases.
fn diseases() -> Taxonomy {
    taxonomy(&["a1;A;*", "a2;A;*", "b1;B;*", "b2;B;*", "c1;C;*", "c2;C;*"])
}

/// Table 1(a): Bob, David, Tom, Simon, Daisy, Alice; leaves in the order of Figure 1.
const PATIENTS: [&[u32]; 6] = [&[0, 1, 3], &[2], &[3], &[5], &[1, 3], &[4, 5]];

fn fingerprints(sets: &[&[u32]]) -> Fingerprints {
    let mut all = Fingerprints::new();
    for set in sets {
        all.push(&mut set.to_vec());
    }
    all
}

fn parameters(k: u64, l: u64) -> Parameters {
    let mut parameters = Parameters::default();
    parameters.set("k", Value::Integer(k));
    parameters.set("l", Value::Integer(l));
    parameters
}

fn generalize(k: usize, fingerprints: &Fingerprints, tree: &Hierarchy) -> Generalized {
    Partition
        .generalize(k, fingerprints, tree, &Threads::new(2), &Cancel::default())
        .unwrap()
}

/// The number of individuals with each published fingerprint.
fn sizes(generalized: &Generalized) -> Vec<usize> {
    let of = |set: u32| generalized.of.iter().filter(|own| **own == set).count();
    (0..generalized.sets.len() as u32).map(of).collect()
}

/// What a node loses, in leaves: nothing if it is one.
fn lost_leaves(tree: &Hierarchy, node: u32) -> u64 {
    match tree.size(node) {
        1 => 0,
        size => u64::from(size),
    }
}

/// The published labels of each individual.
fn labels(generalized: &Generalized, taxonomy: &Taxonomy) -> Vec<String> {
    let text = |set: &u32| {
        let nodes = generalized.sets.of(*set).iter();
        nodes
            .map(|node| taxonomy.label(*node))
            .collect::<Vec<_>>()
            .join(" ")
    };
    generalized.of.iter().map(text).collect()
}

#[test]
fn the_running_example_gives_figure_3c() {
    let taxonomy = diseases();
    let patients = fingerprints(&PATIENTS);
    let generalized = generalize(2, &patients, taxonomy.tree());
    assert_eq!(
        labels(&generalized, &taxonomy),
        ["A b2", "B", "B", "C", "A b2", "C"]
    );
    // M3: Bob's two diseases of A are one published value, as Daisy's one is.
    assert_eq!(sizes(&generalized), [2, 2, 2]);
    // M9: printed 20 %; 25 % per published value, 26.67 % per original value.
    let tree = taxonomy.tree();
    let (mut published, mut original) = ((0, 0), (0, 0));
    for (individual, leaves) in PATIENTS.iter().enumerate() {
        let nodes = generalized.sets.of(generalized.of[individual]);
        for node in nodes {
            published = (published.0 + lost_leaves(tree, *node), published.1 + 1);
        }
        for leaf in *leaves {
            let above = |node: &&u32| tree.is_below(tree.node_of(*leaf), **node);
            let lost = nodes
                .iter()
                .find(above)
                .map(|node| lost_leaves(tree, *node));
            original = (original.0 + lost.unwrap(), original.1 + 1);
        }
    }
    // Of 6 leaves: 12 / (8 · 6) and 16 / (10 · 6).
    assert_eq!((published, original), ((12, 8), (16, 10)));
}

/// A hierarchy of ranges of the given widths over so many leaves, with losses by counts in units of `full`.
fn ranges(leaves: u32, widths: &[u32], full: u64) -> LossTree {
    let mut parents: Vec<Option<u32>> = vec![None];
    let (mut above, mut wide) = (0, leaves);
    for width in widths.iter().chain([&1]) {
        let begin = parents.len() as u32;
        parents.extend((0..leaves / width).map(|n| Some(above + n * width / wide)));
        (above, wide) = (begin, *width);
    }
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let loss = |node| match hierarchy.size(node) {
        1 => 0,
        size => full * u64::from(size) / u64::from(leaves),
    };
    LossTree {
        losses: Arc::new((0..hierarchy.len()).map(loss).collect()),
        hierarchy: Arc::new(hierarchy),
    }
}

fn hierarchical(leaves: &[u32], tree: LossTree) -> QuasiIdentifier {
    QuasiIdentifier::Hierarchical(Hierarchical {
        lo: leaves.to_vec(),
        hi: leaves.to_vec(),
        tree,
    })
}

#[test]
fn the_running_example_is_2_3_diverse() {
    const FULL: u64 = 600;
    let taxonomy = diseases();
    let tree = Arc::new(taxonomy.tree().clone());
    let patients = fingerprints(&PATIENTS);
    let prepared = prepare(
        &Partition,
        &parameters(2, 3),
        &patients,
        &tree,
        &Threads::new(2),
        &Cancel::default(),
    )
    .unwrap()
    .unwrap();
    // Footnote 6: ages 1 to 100, zip codes 10001 to 30000.
    let age = [18, 14, 21, 16, 27, 28].map(|age| age - 1);
    let zip = [12000, 13000, 21000, 14000, 22000, 21000].map(|zip| zip - 10001);
    let columns = vec![
        hierarchical(&age, ranges(100, &[10, 5], FULL)),
        hierarchical(&[0, 0, 1, 0, 1, 1], ranges(2, &[], FULL)),
        hierarchical(&zip, ranges(20000, &[5000], FULL)),
    ];
    let published = prepared.generalized.of.iter().map(|set| [*set]).collect();
    let block = Block::new(columns, published, vec![1; 6], FULL);
    let algorithms: [&dyn Algorithm; 3] =
        [&Mondrian::strict(), &BestCut::ncp(), &Mondrian::relaxed()];
    for algorithm in algorithms {
        let classes = algorithm
            .form_classes(&block, &prepared.model, &Cancel::default())
            .unwrap();
        // Table 2(b), with Simon in the first class, as Figure 3 has it, and Tom in the second.
        assert_eq!(classes.classes, [[0, 1, 3], [2, 4, 5]]);
        // M9: printed 26.67 %, by Eqs. 2 and 3 it is 11.67 %.
        let regions = classes
            .classes
            .iter()
            .filter_map(|c| crate::table::Region::covering(&block, c));
        let loss: u64 = regions.map(|region| 3 * region.loss()).sum();
        assert_eq!(loss * 10_000 / (6 * 3 * FULL), 1166);
    }
}

#[test]
fn left_over_individuals_are_topped_up_or_roll_back() {
    // docs/theory/papers.md M5, k = 3. Seven have a1, one has a2: two of the seven keep A with it.
    let taxonomy = diseases();
    let one: Vec<&[u32]> = vec![&[0], &[0], &[0], &[0], &[0], &[0], &[0], &[1]];
    let generalized = generalize(3, &fingerprints(&one), taxonomy.tree());
    assert_eq!(
        labels(&generalized, &taxonomy),
        ["a1", "a1", "a1", "a1", "a1", "A", "A", "A"]
    );
    // Three have a1, three have a2 and one both: nobody can be spared, one part goes back.
    let two: Vec<&[u32]> = vec![&[0], &[0], &[0], &[1], &[1], &[1], &[0, 1]];
    let generalized = generalize(3, &fingerprints(&two), taxonomy.tree());
    assert_eq!(
        labels(&generalized, &taxonomy),
        ["A", "A", "A", "a2", "a2", "a2", "A"]
    );
    // Three have a1 and one has a2: all stay at A.
    let three: Vec<&[u32]> = vec![&[0], &[0], &[0], &[1]];
    let generalized = generalize(3, &fingerprints(&three), taxonomy.tree());
    assert_eq!(labels(&generalized, &taxonomy), ["A"; 4]);
}

#[test]
fn individuals_without_values_and_too_few_individuals() {
    let taxonomy = diseases();
    let some: Vec<&[u32]> = vec![&[0], &[], &[0]];
    let generalized = generalize(2, &fingerprints(&some), taxonomy.tree());
    assert_eq!(generalized.of, [0, UNPUBLISHED, 0]);
    let generalized = generalize(3, &fingerprints(&some), taxonomy.tree());
    assert_eq!(generalized.of, [UNPUBLISHED; 3]);
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(
        Partition
            .generalize(
                2,
                &fingerprints(&some),
                taxonomy.tree(),
                &Threads::new(2),
                &cancel
            )
            .is_err()
    );
}

#[test]
fn records_that_repeat_a_value_change_nothing() {
    // docs/theory/papers.md M10.
    let taxonomy = diseases();
    let twice: Vec<&[u32]> = vec![&[0, 1, 3, 3, 0], &[2, 2], &[3], &[5], &[1, 3], &[4, 5]];
    let (a, b) = (fingerprints(&twice), fingerprints(&PATIENTS));
    let published = |f: &Fingerprints| labels(&generalize(2, f, taxonomy.tree()), &taxonomy);
    assert_eq!(published(&a), published(&b));
}

#[test]
fn what_cannot_be_reached_is_refused_with_what_can() {
    // docs/theory/papers.md M4.
    let taxonomy = diseases();
    let tree = Arc::new(taxonomy.tree().clone());
    let attempt = |k, l, value_l: Option<u64>, sets: &[&[u32]]| {
        let mut parameters = parameters(k, l);
        if let Some(value_l) = value_l {
            parameters.set("value_l", Value::Integer(value_l));
        }
        prepare(
            &Partition,
            &parameters,
            &fingerprints(sets),
            &tree,
            &Threads::new(2),
            &Cancel::default(),
        )
        .unwrap()
        .map(|p| p.shares)
    };
    assert!(attempt(2, 3, None, &PATIENTS).is_ok());
    // Three fingerprints of two each.
    let refused = attempt(2, 4, None, &PATIENTS).unwrap_err();
    assert_eq!((refused.largest_l, refused.largest_k), (Some(3), None));
    assert_eq!(
        refused.to_string(),
        "with this k the largest l that works is 3"
    );
    // With k = 6 all publish the root; with 3, {A, B} and {C} do not suffice for three fingerprints.
    let refused = attempt(6, 3, None, &PATIENTS).unwrap_err();
    assert_eq!((refused.largest_l, refused.largest_k), (None, Some(2)));
    assert_eq!(
        refused.to_string(),
        "with this l the largest k found to work is 2"
    );
    // More than there are.
    let refused = attempt(7, 2, None, &PATIENTS).unwrap_err();
    assert!(
        refused
            .largest_k
            .is_some_and(|k| attempt(k, 2, None, &PATIENTS).is_ok())
    );
    assert_eq!(
        attempt(2, 2, None, &[]).unwrap_err().to_string(),
        "no k and l work for 0 individuals"
    );
    // Everybody has a1.
    let common: Vec<&[u32]> = vec![&[0, 2], &[0, 2], &[0, 4], &[0, 4], &[0], &[0]];
    let refused = attempt(2, 3, None, &common).unwrap_err();
    assert_eq!(
        (refused.largest_k, refused.largest_value_l),
        (None, Some(0))
    );
    let refused = attempt(2, 3, Some(2), &PATIENTS).unwrap_err();
    assert_eq!(refused.largest_value_l, Some(1));
    assert!(
        refused
            .to_string()
            .ends_with("no value_l works, but leaving it out does")
    );
}

/// A tree of so many leaves whose shape comes from numbers.
fn random_tree(leaves: u32, shape: &[u32]) -> Hierarchy {
    let mut parents: Vec<Option<u32>> = vec![None];
    for (number, under) in shape.iter().enumerate() {
        parents.push(Some(under % (number as u32 + 1)));
    }
    // Every inner node has a leaf of its own, so that it stays inner.
    let inner = parents.len() as u32;
    parents.extend((0..inner).map(Some));
    parents.extend((inner..leaves.max(inner)).map(|leaf| Some(leaf % inner)));
    Hierarchy::from_parents(&parents).unwrap().0
}

fn tables() -> impl Strategy<Value = (Hierarchy, Vec<Vec<u32>>)> {
    let tree = (4..30u32, prop::collection::vec(0..100u32, 0..6));
    let set = prop::collection::vec((0..1000u32, 0..1000u32), 1..6);
    (tree, prop::collection::vec(set, 1..80)).prop_map(|((leaves, shape), sets)| {
        let tree = random_tree(leaves, &shape);
        let n = tree.leaves();
        // Small leaves are more frequent.
        let sets = sets
            .into_iter()
            .map(|set| set.into_iter().map(|(a, b)| (a % n).min(b % n)).collect());
        let sets = sets.collect();
        (tree, sets)
    })
}

fn all(sets: &[Vec<u32>]) -> Fingerprints {
    let sets: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
    fingerprints(&sets)
}

proptest! {
    #![proptest_config(crate::repeatable::cases(3000))]

    #[test]
    fn published_fingerprints_are_shared_and_true((tree, sets) in tables(), k in 1..9usize) {
        let fingerprints = all(&sets);
        let generalized = generalize(k, &fingerprints, &tree);
        prop_assert_eq!(&generalized.of, &generalize(k, &fingerprints, &tree).of);
        if sets.len() < k {
            prop_assert!(generalized.of.iter().all(|set| *set == UNPUBLISHED));
            return Ok(());
        }
        // Counted again by the published sets themselves.
        let mut shared: HashMap<&[u32], usize> = HashMap::new();
        for (individual, set) in generalized.of.iter().enumerate() {
            let nodes = generalized.sets.of(*set);
            *shared.entry(nodes).or_default() += 1;
            let leaves = fingerprints.of(individual as u32);
            let below = |leaf: u32, node: u32| tree.is_below(tree.node_of(leaf), node);
            // Every value lies below exactly one node, and every node has one of the values below it.
            for leaf in leaves {
                prop_assert_eq!(nodes.iter().filter(|node| below(*leaf, **node)).count(), 1);
            }
            prop_assert!(nodes.iter().all(|node| leaves.iter().any(|leaf| below(*leaf, *node))));
        }
        prop_assert!(shared.values().all(|n| *n >= k));
        prop_assert_eq!(shared.len(), generalized.sets.len());
        if k == 1 {
            let sets = (0..generalized.sets.len() as u32).map(|set| generalized.sets.of(set));
            prop_assert!(sets.flatten().all(|node| lost_leaves(&tree, *node) == 0));
        }
    }

    #[test]
    fn tables_are_diverse_or_refused((tree, sets) in tables(), k in 2..5u64, l in 2..5u64, value_l in 1..4u64) {
        let fingerprints = all(&sets);
        let tree = Arc::new(tree);
        let mut parameters = parameters(k, l);
        if value_l > 1 {
            parameters.set("value_l", Value::Integer(value_l));
        }
        let attempt = |parameters: &Parameters| {
            prepare(&Partition, parameters, &fingerprints, &tree, &Threads::new(2), &Cancel::default()).unwrap()
        };
        match attempt(&parameters) {
            Ok(prepared) => {
                let block = block(&prepared.generalized);
                let algorithms: [&dyn Algorithm; 3] = [&Mondrian::strict(), &BestCut::ncp(), &Danonyir::new()];
                for algorithm in algorithms {
                    let classes = algorithm.form_classes(&block, &prepared.model, &Cancel::default()).unwrap();
                    check(&tree, &prepared.generalized, &classes, l, Some(value_l).filter(|l| *l > 1))?;
                    prop_assert!(!classes.classes.is_empty());
                }
            }
            // What is said to work does.
            Err(refusal) if refusal.largest_value_l.is_none() => {
                for (name, best) in [("k", refusal.largest_k), ("l", refusal.largest_l)] {
                    let Some(best) = best.filter(|_| refusal.largest_value_l.is_none()) else { continue };
                    let mut workable = parameters.clone();
                    workable.set(name, Value::Integer(best));
                    let again = attempt(&workable).err();
                    prop_assert!(again.is_none_or(|refusal| refusal.largest_value_l.is_some()));
                }
            }
            Err(_) => {}
        }
    }
}

/// One column of numbers.
fn block(generalized: &Generalized) -> Block {
    let n = generalized.of.len() as u32;
    let at: Vec<u32> = (0..n).map(|i| i.wrapping_mul(2_654_435_761) % 64).collect();
    let column = Numeric {
        lo: at.clone(),
        hi: at,
        step: 10,
    };
    let fingerprints = generalized.of.iter().map(|set| [*set]).collect();
    Block::new(
        vec![QuasiIdentifier::Numeric(column)],
        fingerprints,
        vec![1; n as usize],
        630,
    )
}

/// The constraints on classes, from their definitions and in pairs.
fn check(
    tree: &Hierarchy,
    generalized: &Generalized,
    classes: &Classes,
    l: u64,
    value_l: Option<u64>,
) -> Result<(), TestCaseError> {
    let related = |a: u32, b: u32| tree.is_below(a, b) || tree.is_below(b, a);
    for class in &classes.classes {
        let sets: Vec<&[u32]> = class
            .iter()
            .map(|i| generalized.sets.of(generalized.of[*i as usize]))
            .collect();
        let n = sets.len() as u64;
        for set in &sets {
            let same = sets.iter().filter(|other| other == &set).count() as u64;
            prop_assert!(same * l <= n);
        }
        for value in sets.concat().into_iter().filter(|value| *value != 0) {
            let has = |set: &&&[u32]| set.iter().any(|own| related(*own, value));
            let holders = sets.iter().filter(has).count() as u64;
            match value_l {
                Some(value_l) => prop_assert!(holders * value_l <= n),
                None => prop_assert!(holders < n),
            }
        }
    }
    Ok(())
}

#[test]
fn even_hierarchies() {
    let values: Vec<String> = (0..632).map(|n| format!("{n:03}")).collect();
    let taxonomy = Taxonomy::from_rows(&even(&values, 5)).unwrap();
    let tree = taxonomy.tree();
    assert_eq!((tree.leaves(), tree.height()), (632, 5));
    for node in 0..tree.len() {
        assert!(tree.children(node).count() <= 5);
    }
    assert_eq!(
        taxonomy.chain(0).collect::<Vec<_>>(),
        ["000", "000..003", "000..018", "000..093", "000..312", "*"]
    );
    for n in 1..60 {
        for fan_out in 2..7 {
            let taxonomy = Taxonomy::from_rows(&even(&values[..n], fan_out)).unwrap();
            assert_eq!(taxonomy.tree().leaves() as usize, n);
            let mut children =
                (0..taxonomy.tree().len()).map(|node| taxonomy.tree().children(node).count());
            assert!(children.all(|count| count <= fan_out));
        }
    }
}

#[test]
fn values_that_occur_together_are_grouped() {
    // 0 goes with 3, 1 with 4, 2 with 5; 6 with nothing.
    let sets: Vec<&[u32]> = vec![&[0, 3], &[0, 3], &[0, 3], &[1, 4], &[1, 4], &[2, 5], &[6]];
    let values = ["v0", "v1", "v2", "v3", "v4", "v5", "v6"];
    let rows = co_occurrence(&fingerprints(&sets), &values, 2);
    let taxonomy = Taxonomy::from_rows(&rows).unwrap();
    let group = |value: usize| rows[value][1].as_str();
    assert_eq!(
        (group(0), group(1), group(2)),
        ("v0 and 1 more", "v1 and 1 more", "v2 and 1 more")
    );
    assert_eq!(
        (group(3), group(4), group(5), group(6)),
        (group(0), group(1), group(2), "v6")
    );
    assert_eq!(taxonomy.tree().leaves(), 7);
    assert_eq!(rows, co_occurrence(&fingerprints(&sets), &values, 2));
    let none = co_occurrence(&Fingerprints::new(), &values, 3);
    assert_eq!(Taxonomy::from_rows(&none).unwrap().tree().leaves(), 7);
}

proptest! {
    #![proptest_config(crate::repeatable::cases(300))]

    #[test]
    fn rmr_is_k_km_anonymous((tree, sets) in tables(), k in 2..5usize, m in 1..4usize, delta in 1..10u64) {
        let fingerprints = all(&sets);
        let column = Numeric {
            lo: (0..sets.len() as u32).collect(),
            hi: (0..sets.len() as u32).collect(),
            step: 7,
        };
        let block = Block::new(vec![QuasiIdentifier::Numeric(column)], fingerprints, vec![1; sets.len()], 7 * 79);
        let mut given = Parameters::default();
        given.set("k", Value::Integer(k as u64));
        let model = (crate::model::find("ir_k_anonymity").unwrap().build)(&given).unwrap();
        let classes = BestCut::ncp().form_classes(&block, model.as_ref(), &Cancel::default()).unwrap();
        let delta = crate::model::Ratio::new(delta, 10).unwrap();
        // Of the 80 values of the column some may not occur.
        let values = [80];
        let clusters = Rmr::new(k, m, delta).anonymize(&block, &values, &classes, &tree, &Cancel::default()).unwrap();
        let members: usize = clusters.iter().map(|cluster| cluster.members.len()).sum();
        prop_assert_eq!(members, sets.len() - classes.suppressed.len());
        prop_assert!(clusters.len() <= classes.classes.len());
        for cluster in &clusters {
            prop_assert!(cluster.members.len() >= k);
            // Whatever up to m values of one of them are known, k of them have them.
            for set in &cluster.sets {
                for mask in 1..1u32 << set.len() {
                    let known: Vec<u32> = (0..set.len()).filter(|at| mask >> at & 1 == 1).map(|at| set[at]).collect();
                    if known.len() <= m {
                        let holds = |other: &&Vec<u32>| known.iter().all(|node| other.contains(node));
                        prop_assert!(cluster.sets.iter().filter(holds).count() >= k);
                    }
                }
            }
        }
        // Whoever is merged loses values by count: b − a + 1 of 80, and nothing if that is one.
        if clusters.len() < classes.classes.len() {
            let count = |cluster: &Cluster| match cluster.members.iter().max().unwrap() - cluster.members.iter().min().unwrap() {
                0 => 0,
                width => cluster.members.len() as u64 * u64::from(width + 1),
            };
            let lost: u64 = clusters.iter().map(count).sum();
            prop_assert!(delta.at_least(lost, members as u64 * 80));
        }
    }
}

/// Another sensitive step: who has a value of one branch publishes all branches it has values of, if k do, and else the
/// root. What follows takes it as it takes Partition.
#[derive(Debug)]
struct Branches;

impl SensitiveStep for Branches {
    fn generalize(
        &self,
        k: usize,
        fingerprints: &Fingerprints,
        tree: &Hierarchy,
        _: &Threads,
        _: &Cancel,
    ) -> Result<Generalized, crate::algorithm::Cancelled> {
        let branch = |leaf: &u32| {
            let node = tree.node_of(*leaf);
            tree.up(node, tree.depth(node).saturating_sub(1))
        };
        let of = |i: u32| -> Vec<u32> {
            let mut nodes: Vec<u32> = fingerprints.of(i).iter().map(branch).collect();
            nodes.dedup();
            nodes
        };
        let all = 0..fingerprints.len() as u32;
        let common = |nodes: &Vec<u32>| all.clone().filter(|i| of(*i) == *nodes).count() >= k;
        let mut known: Vec<Vec<u32>> = vec![];
        let mut generalized = Generalized {
            sets: Fingerprints::new(),
            of: vec![],
        };
        for i in all.clone() {
            let nodes = Some(of(i))
                .filter(common)
                .unwrap_or(vec![crate::table::ROOT]);
            let at = known.iter().position(|other| *other == nodes);
            generalized.of.push(at.unwrap_or(known.len()) as u32);
            if at.is_none() {
                generalized.sets.push(&mut nodes.clone());
                known.push(nodes);
            }
        }
        Ok(generalized)
    }
}

#[test]
fn the_sensitive_step_can_be_another_one() {
    let taxonomy = diseases();
    let tree = Arc::new(taxonomy.tree().clone());
    let prepare = |step: &dyn SensitiveStep| {
        let patients = fingerprints(&PATIENTS);
        prepare(
            step,
            &parameters(2, 3),
            &patients,
            &tree,
            &Threads::new(2),
            &Cancel::default(),
        )
        .unwrap()
        .unwrap()
    };
    let (printed, other) = (prepare(&Partition), prepare(&Branches));
    assert_eq!(
        labels(&other.generalized, &taxonomy),
        ["A B", "B", "B", "C", "A B", "C"]
    );
    assert_eq!(printed.shares.largest_l(), other.shares.largest_l());
    let block = block(&other.generalized);
    let classes = BestCut::ncp()
        .form_classes(&block, &other.model, &Cancel::default())
        .unwrap();
    assert_eq!(classes.classes.concat().len(), 6);
}

#[test]
fn threads_change_nothing() {
    let rows: Vec<String> = (0..200)
        .map(|leaf| format!("v{leaf};w{};u{};*", leaf / 5, leaf / 40))
        .collect();
    let tree = taxonomy(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let mut people = Fingerprints::new();
    for i in 0..20_000u32 {
        let leaf = |n: u32| (i.wrapping_mul(2_654_435_761) >> (3 * n)) % (200 >> (i % 4));
        people.push(&mut (0..1 + i % 5).map(leaf).collect());
    }
    let run = |threads| {
        let threads = Threads::new(threads);
        let cancel = Cancel::default();
        Partition
            .generalize(10, &people, tree.tree(), &threads, &cancel)
            .unwrap()
    };
    let one = run(1);
    assert!(one.sets.len() > 100);
    for threads in [2, 3, 8] {
        let other = run(threads);
        assert_eq!(one.of, other.of);
        let ids = 0..one.sets.len() as u32;
        assert!(
            ids.into_iter()
                .all(|id| one.sets.of(id) == other.sets.of(id))
        );
    }
}

#[test]
fn members_of_a_published_block_are_numbers() {
    let taxonomy = diseases();
    let tree = Arc::new(taxonomy.tree().clone());
    let prepared = prepare(
        &Partition,
        &parameters(2, 3),
        &fingerprints(&PATIENTS),
        &tree,
        &Threads::new(2),
        &Cancel::default(),
    )
    .unwrap()
    .unwrap();
    let block = block(&prepared.generalized);
    let mut tally = prepared.model.tally();
    (0..6).for_each(|i| tally.add(Member::of(&block, i)));
    assert!(tally.satisfied());
}
