//! The paper's walk-through, its tables, and random blocks against the plain way.

use super::super::trees::example;
use super::*;
use crate::model::{self, Member, Parameters};
use crate::table::{
    Cell, Fingerprints, LossTree, NULL_CODE, QuasiIdentifier, Region, Sensitive, Taxonomy,
};

/// A model with parameters as they are written; four categories.
fn model(name: &str, given: &[(&str, &str)]) -> Box<dyn Model> {
    let entry = model::find(name).unwrap();
    let mut parameters = Parameters::default();
    for parameter in entry.parameters {
        let text = given.iter().find(|(n, _)| *n == parameter.name);
        let text = text.map(|(_, text)| *text);
        if let Some(text) = text.or((parameter.name == "categories").then_some("4")) {
            parameters.set(parameter.name, parameter.parse(text).unwrap());
        }
    }
    (entry.build)(&parameters).unwrap()
}

fn alpha(k: &str, p: &str, alpha: &str) -> Box<dyn Model> {
    let parameters = [("k", k), ("p", p), ("alpha", alpha)];
    model("p_alpha_sensitive_k_anonymity", &parameters)
}

fn plus(k: &str, p: &str) -> Box<dyn Model> {
    model("p_plus_sensitive_k_anonymity", &[("k", k), ("p", p)])
}

fn run(localpk: Localpk, block: &Block, model: &dyn Model) -> Classes {
    localpk
        .form_classes(block, model, &Cancel::default())
        .unwrap()
}

/// With the widest column first.
fn widest_first() -> Localpk {
    Localpk {
        first: First::Widest,
        ..Localpk::new()
    }
}

/// As printed, as far as that is safe and decided: whole children go back, and the widest column comes first.
fn printed() -> Localpk {
    Localpk {
        ways: &[Back::Children],
        ..widest_first()
    }
}

const ALL: [fn() -> Localpk; 3] = [Localpk::new, widest_first, printed];

/// Diseases of Table 4 in its order: two of each category.
const DISEASES: [&str; 8] = [
    "HIV",
    "Cancer",
    "Phthisis",
    "Hepatitis",
    "Obesity",
    "Asthma",
    "Flu",
    "Indigestion",
];

fn block(columns: Vec<(&[&str], &Taxonomy)>, diseases: &[&str]) -> Block {
    let column = |(values, taxonomy): (&[&str], &Taxonomy)| {
        let tree = taxonomy.tree();
        let leaf = |value: &&str| {
            let mut leaves = 0..tree.leaves();
            leaves.find(|l| taxonomy.label(tree.node_of(*l)) == *value)
        };
        let leaves: Vec<u32> = values.iter().map(|v| leaf(v).unwrap()).collect();
        example::hierarchical(&leaves, &leaves, &losses(taxonomy))
    };
    let columns = columns.into_iter().map(column).collect();
    let mut fingerprints = Fingerprints::with_levels(vec![4]);
    for disease in diseases {
        let code = DISEASES.iter().position(|d| d == disease).unwrap() as u32;
        fingerprints.push_sensitive(&mut vec![Sensitive {
            code,
            attribute: 0,
            category: code / 2,
        }]);
    }
    Block::new(columns, fingerprints, vec![1; diseases.len()], 60)
}

fn losses(taxonomy: &Taxonomy) -> LossTree {
    let parents = (0..taxonomy.tree().len()).map(|n| taxonomy.tree().parent(n));
    let parents: Vec<u32> = parents.map(|p| p.unwrap_or(u32::MAX)).collect();
    example::hierarchy(&parents, 60)
}

fn taxonomy(rows: &[String]) -> Taxonomy {
    let rows: Vec<Vec<&str>> = rows.iter().map(|r| r.split(';').collect()).collect();
    Taxonomy::from_rows(&rows).unwrap()
}

/// Digits of a code are masked one by one: 14248, 1424*, 142**, …
fn zip_codes(codes: &[&str]) -> Taxonomy {
    let masked = |code: &str, stars: usize| format!("{}{}", &code[..5 - stars], "*".repeat(stars));
    let row = |code: &&str| {
        let labels: Vec<String> = (0..=5).map(|stars| masked(code, stars)).collect();
        labels.join(";")
    };
    let mut codes: Vec<&str> = codes.to_vec();
    codes.sort_unstable();
    codes.dedup();
    taxonomy(&codes.iter().map(row).collect::<Vec<_>>())
}

/// Every specialization: what was specialized, the children with their members, those left.
type Steps = Vec<(String, Vec<(String, Vec<u32>)>, Vec<u32>)>;

fn watched(localpk: Localpk, block: &Block, zip: &Taxonomy) -> (Steps, Vec<Vec<u32>>) {
    let mut steps = vec![];
    let label = |group: &Group| zip.label(group.labels[0]).to_owned();
    let mut watch = |group: &Group, split: &Split| {
        let children = split.children.iter();
        let children = children.map(|child| (label(child), child.members.clone()));
        let left = split.left.iter().flat_map(|left| left.members.clone());
        steps.push((label(group), children.collect(), left.collect()));
    };
    let cancel = Cancel::default();
    let model = alpha("2", "2", "1");
    let classes = form_classes(localpk, block, model.as_ref(), &cancel, &mut watch).unwrap();
    (steps, classes.classes)
}

/// Table 8 (a); its 14247 is Table 1's 14249 (docs/theory/papers.md P10), which changes nothing here.
const TABLE_8: [(&str, &str); 4] = [
    ("14248", "HIV"),
    ("14248", "Indigestion"),
    ("14248", "Flu"),
    ("14247", "Cancer"),
];

/// Tuples of Table 8 in an order, which is random where it counts.
fn table_8(order: [usize; 4]) -> (Block, Taxonomy) {
    let zip = zip_codes(&TABLE_8.map(|(zip, _)| zip));
    let tuples = order.map(|number| TABLE_8[number - 1]);
    let values = tuples.map(|(zip, _)| zip);
    let diseases = tuples.map(|(_, disease)| disease);
    let block = block(vec![(&values, &zip)], &diseases);
    (block, zip)
}

#[test]
fn the_walk_through_of_figure_1() {
    let all = vec![0, 1, 2, 3];
    let down = |from: &str, to: &str| {
        let children = vec![(to.to_owned(), all.clone())];
        (from.to_owned(), children, vec![])
    };
    let first = [
        down("*****", "1****"),
        down("1****", "14***"),
        down("14***", "142**"),
        down("142**", "1424*"),
    ];
    // Figure 1 (a) to (e). In (f), 14247 has one tuple and goes back; in (g) the parent is not valid, and 14248 goes
    // back as a whole (docs/theory/papers.md P5).
    let (block, zip) = table_8([1, 2, 3, 4]);
    let (steps, classes) = watched(printed(), &block, &zip);
    assert_eq!(steps, first);
    assert_eq!(classes, [vec![0, 1, 2, 3]]);

    // Figure 1 (h) and Table 8 (c): tuple 3 goes back, if it is the one that comes first in the random order.
    let (block, zip) = table_8([3, 1, 2, 4]);
    let (steps, classes) = watched(Localpk::new(), &block, &zip);
    assert_eq!(steps[..4], first);
    let last = (
        "1424*".to_owned(),
        vec![("14248".to_owned(), vec![1, 2])],
        vec![0, 3],
    );
    assert_eq!(steps[4..], [last]);
    assert_eq!(classes, [[0, 3], [1, 2]]);
    let labels: Vec<&str> = Classes {
        classes,
        ..Classes::default()
    }
    .regions(&block)
    .map(|region| match region.cells()[0] {
        Cell::Node(node) => zip.label(node),
        _ => "",
    })
    .collect();
    assert_eq!(labels, ["1424*", "14248"]);

    // Tuple 1 would not do, and nobody looks for one that does: that would depend on the diseases.
    let (block, zip) = table_8([1, 2, 3, 4]);
    let (steps, classes) = watched(Localpk::new(), &block, &zip);
    assert_eq!((steps.len(), classes.len()), (4, 1));
}

/// Table 1 with hierarchies as Tables 2, 5 and 6 show them.
fn table_1() -> (Block, Vec<Taxonomy>) {
    let rows = [
        ("27", "USA", "14248", "HIV"),
        ("28", "Canada", "14207", "HIV"),
        ("26", "USA", "14206", "Cancer"),
        ("25", "Canada", "14249", "Cancer"),
        ("41", "China", "13053", "Hepatitis"),
        ("48", "Japan", "13074", "Phthisis"),
        ("45", "India", "13064", "Asthma"),
        ("42", "India", "13062", "Obesity"),
        ("33", "USA", "14248", "Flu"),
        ("37", "Canada", "14204", "Flu"),
        ("36", "Canada", "14205", "Flu"),
        ("35", "USA", "14248", "Indigestion"),
    ];
    let age = |age: u32| match age {
        25..30 => format!("{age};<30;<40;*"),
        30..40 => format!("{age};3*;<40;*"),
        _ => format!("{age};>40;*"),
    };
    let countries = [
        "USA;America;*",
        "Canada;America;*",
        "China;Asia;*",
        "Japan;Asia;*",
        "India;Asia;*",
    ];
    let zips = rows.map(|r| r.2);
    let taxonomies = vec![
        taxonomy(&(25..50).map(age).collect::<Vec<_>>()),
        taxonomy(&countries.map(str::to_owned)),
        zip_codes(&zips),
    ];
    let columns = [rows.map(|r| r.0), rows.map(|r| r.1), zips];
    let columns = columns.iter().map(|c| &c[..]).zip(&taxonomies).collect();
    (block(columns, &rows.map(|r| r.3)), taxonomies)
}

fn published(block: &Block, taxonomies: &[Taxonomy], classes: &Classes) -> Vec<Vec<String>> {
    let label = |(cell, taxonomy): (&Cell, &Taxonomy)| match cell {
        Cell::Node(node) => taxonomy.label(*node).to_owned(),
        _ => String::new(),
    };
    let tuple = |region: Region| region.cells().iter().zip(taxonomies).map(label).collect();
    classes.regions(block).map(tuple).collect()
}

#[test]
fn table_1_becomes_valid_tables() {
    let (block, taxonomies) = table_1();
    for localpk in ALL.map(|l| l()) {
        for model in [plus("4", "2"), alpha("4", "3", "1")] {
            let classes = run(localpk, &block, model.as_ref());
            let tuples = published(&block, &taxonomies, &classes);
            // Asia is a class of its own as in Tables 5, 6 and 7.
            assert!(classes.classes.contains(&vec![4, 5, 6, 7]), "{tuples:?}");
            assert!(tuples.contains(&vec![
                ">40".to_owned(),
                "Asia".to_owned(),
                "130**".to_owned()
            ]));
            assert!(classes.suppressed.is_empty());
        }
    }
    // Table 6, with three groups.
    let classes = run(Localpk::new(), &block, plus("4", "2").as_ref());
    assert_eq!(
        classes.classes,
        [vec![0, 3, 8, 11], vec![1, 2, 9, 10], vec![4, 5, 6, 7]]
    );
    let tuples = published(&block, &taxonomies, &classes);
    let table_6 = [
        ["<40", "America", "1424*"],
        ["<40", "America", "1420*"],
        [">40", "Asia", "130**"],
    ];
    assert_eq!(tuples, table_6);
}

#[test]
fn nobody_is_lost() {
    // docs/theory/papers.md P4: line 13 after the loop would keep the last group only. Two levels, one leaf at the first: a leaf
    // "one level down" is itself, and never queued again.
    let tree = example::hierarchy(&[7, 6, 6, 5, 5, 7, 7, u32::MAX], 60);
    let at = [0, 0, 1, 1, 2, 2, 3, 3];
    let column = example::hierarchical(&at, &at, &tree);
    let fingerprints = (0..8).map(|i| [i]).collect();
    let block = Block::new(vec![column], fingerprints, vec![1; 8], 60);
    let p = model("p_sensitive_k_anonymity", &[("k", "2"), ("p", "2")]);
    for localpk in ALL.map(|l| l()) {
        let classes = run(localpk, &block, p.as_ref());
        assert_eq!(classes.classes, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    }
}

#[test]
fn without_a_solution_everybody_is_suppressed() {
    // docs/theory/papers.md P6.
    let (block, _) = table_1();
    for model in [plus("13", "2"), plus("2", "4"), alpha("2", "2", "99")] {
        let classes = run(Localpk::new(), &block, model.as_ref());
        let feasible = model.feasible(&mut (0..12).map(|i| Member::of(&block, i)));
        assert_eq!(classes.classes.is_empty(), feasible.is_err());
        assert_eq!(
            classes.suppressed.len(),
            if feasible.is_err() { 12 } else { 0 }
        );
    }
    let empty = Block::new(vec![], Fingerprints::new(), vec![], 1);
    assert_eq!(
        run(Localpk::new(), &empty, plus("2", "2").as_ref()),
        Classes::default()
    );
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(
        Localpk::new()
            .form_classes(&block, plus("2", "2").as_ref(), &cancel)
            .is_err()
    );
}

#[test]
fn the_column_rule_is_fixed() {
    // docs/theory/papers.md P7: two equal columns; the first is specialized first, and then no second split is valid.
    let tree = example::hierarchy(&[2, 2, u32::MAX], 60);
    let (a, b) = ([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]);
    let columns = |first: &[u32; 6], second: &[u32; 6]| {
        let column = |values: &[u32; 6]| example::hierarchical(values, values, &tree);
        let fingerprints = (0..6).map(|i| [i]).collect();
        Block::new(
            vec![column(first), column(second)],
            fingerprints,
            vec![1; 6],
            60,
        )
    };
    let p = model("p_sensitive_k_anonymity", &[("k", "3"), ("p", "2")]);
    for localpk in ALL.map(|l| l()) {
        let classes = run(localpk, &columns(&a, &b), p.as_ref()).classes;
        assert_eq!(classes, [[0, 1, 2], [3, 4, 5]]);
        let classes = run(localpk, &columns(&b, &a), p.as_ref()).classes;
        assert_eq!(classes, [[0, 2, 4], [1, 3, 5]]);
    }
}

/// The block with values that have one of four categories, two values each.
fn categorised(block: &Block) -> Block {
    let mut fingerprints = Fingerprints::with_levels(vec![4]);
    for i in 0..block.len() as u32 {
        let value = |code: &u32| Sensitive {
            code: *code,
            attribute: 0,
            category: code / 2,
        };
        let shown = block.fingerprints().of(i).iter().map(value);
        fingerprints.push_sensitive(&mut shown.collect());
    }
    let records = (0..block.len() as u32).map(|i| block.records(i)).collect();
    let columns = block.quasi_identifiers().to_vec();
    Block::new(columns, fingerprints, records, block.full())
}

fn valid(block: &Block, model: &dyn Model, members: &[u32]) -> bool {
    let mut tally = model.tally();
    members
        .iter()
        .for_each(|i| tally.add(Member::of(block, *i)));
    tally.satisfied()
}

/// The algorithm by its description, with everything looked for anew.
fn plain(block: &Block, model: &dyn Model, localpk: Localpk) -> Vec<Vec<u32>> {
    let trees = trees(block);
    let everybody: Vec<u32> = (0..block.len() as u32).collect();
    let mut classes = vec![];
    if valid(block, model, &everybody) {
        let labels = vec![ROOT; trees.len()];
        plain_group(
            block,
            model,
            localpk,
            &trees,
            (labels, everybody, None),
            &mut classes,
        );
    }
    classes.sort();
    classes
}

fn plain_group(
    block: &Block,
    model: &dyn Model,
    localpk: Localpk,
    trees: &[Tree],
    (labels, members, exhausted): (Vec<u32>, Vec<u32>, Option<usize>),
    classes: &mut Vec<Vec<u32>>,
) {
    let enough = model.min_individuals();
    let parts = |c: usize| -> (Vec<Child>, Vec<u32>) {
        let tree = trees[c].hierarchy();
        let below = |node: u32| -> Vec<u32> {
            let starts = members
                .iter()
                .filter(|m| tree.is_below(trees[c].start(**m), node));
            starts.copied().collect()
        };
        let children: Vec<Child> = tree.children(labels[c]).map(|n| (n, below(n))).collect();
        let children: Vec<Child> = children
            .into_iter()
            .filter(|(_, m)| !m.is_empty())
            .collect();
        let stays = members.iter().filter(|m| trees[c].start(**m) == labels[c]);
        (children, stays.copied().collect())
    };
    let mut columns: Vec<usize> = (0..trees.len())
        .filter(|c| exhausted != Some(*c) && !trees[*c].hierarchy().is_leaf(labels[*c]))
        .collect();
    columns.sort_by_key(|c| {
        let (children, stays) = parts(*c);
        let small = children.iter().filter(|(_, m)| m.len() < enough);
        let alone = stays.len() + small.map(|(_, m)| m.len()).sum::<usize>();
        match localpk.first {
            First::Widest => (Reverse(trees[*c].loss(labels[*c])), 0, Reverse(0), 0),
            First::FewestLeft => {
                let leaves = trees[*c].hierarchy().leaves();
                (Reverse(0), alone, Reverse(trees[*c].levels()), leaves)
            }
        }
    });
    let two = members.len() >= 2 * enough;
    for way in localpk.ways.iter().filter(|_| two) {
        for c in &columns {
            let (children, mut left) = parts(*c);
            let (mut good, bad): (Vec<Child>, Vec<Child>) = children
                .into_iter()
                .partition(|(_, m)| valid(block, model, m));
            bad.into_iter().for_each(|(_, m)| left.extend(m));
            let small = |good: &[Child]| {
                let sizes = good.iter().enumerate().map(|(i, (n, m))| (m.len(), *n, i));
                sizes.min().map(|(_, _, i)| i)
            };
            if *way == Back::Children {
                while !left.is_empty() && !valid(block, model, &left) {
                    let Some(at) = small(&good) else { break };
                    left.extend(good.remove(at).1);
                }
            } else if !left.is_empty()
                && !valid(block, model, &left)
                && !keep_borrowed(block, model, trees, &mut left, &mut good)
            {
                continue;
            }
            if good.is_empty() {
                continue;
            }
            for (node, members) in good {
                let mut labels = labels.clone();
                labels[*c] = node;
                plain_group(
                    block,
                    model,
                    localpk,
                    trees,
                    (labels, members, None),
                    classes,
                );
            }
            if !left.is_empty() {
                left.sort_unstable();
                let group = (labels.clone(), left, Some(*c));
                plain_group(block, model, localpk, trees, group, classes);
            }
            return;
        }
    }
    classes.push(members);
}

type Child = (u32, Vec<u32>);

/// The nearest members of children that can spare them, so that all are valid.
fn keep_borrowed(
    block: &Block,
    model: &dyn Model,
    trees: &[Tree],
    left: &mut Vec<u32>,
    good: &mut [Child],
) -> bool {
    let enough = model.min_individuals();
    let need = match left.len() {
        n if n >= enough => enough - 1,
        n => (enough - n).min(enough - 1),
    };
    let lost = |member: u32| -> u64 {
        let loss = |tree: &Tree| {
            let nodes = left.iter().map(|i| tree.start(*i));
            let hull = nodes
                .chain([tree.start(member)])
                .reduce(|a, b| tree.join(a, b));
            hull.map_or(0, |node| tree.loss(node))
        };
        trees.iter().map(loss).sum()
    };
    let spare = good.iter().filter(|(_, m)| m.len() >= enough + need);
    let mut candidates: Vec<(u64, u32)> = spare
        .flat_map(|(_, m)| m.iter().map(|i| (lost(*i), *i)))
        .collect();
    candidates.sort_unstable();
    let borrowed: Vec<u32> = candidates.iter().take(need).map(|(_, i)| *i).collect();
    if need == 0 || borrowed.len() < need {
        return false;
    }
    let mut together = left.clone();
    together.extend(&borrowed);
    let mut rest: Vec<Child> = good.to_vec();
    rest.iter_mut()
        .for_each(|(_, m)| m.retain(|i| !borrowed.contains(i)));
    let holds = valid(block, model, &together) && rest.iter().all(|(_, m)| valid(block, model, m));
    if holds {
        *left = together;
        good.clone_from_slice(&rest);
    }
    holds
}

fn models() -> Vec<Box<dyn Model>> {
    vec![
        model("p_sensitive_k_anonymity", &[("k", "3"), ("p", "2")]),
        plus("2", "2"),
        alpha("3", "2", "1.5"),
        model(
            "p_plus_sensitive_k_anonymity",
            &[("k", "2"), ("p", "2"), ("max_category_share", "0.7")],
        ),
        model("ir_k_anonymity", &[("k", "2")]),
        model("eir_l_diversity", &[("l", "2")]),
        model(
            "eir_alpha_beta_anonymity",
            &[("alpha", "0.6"), ("beta", "0.7")],
        ),
    ]
}

#[test]
fn random_blocks_agree_with_the_plain_way() {
    let (mut split, mut borrowed) = (0, 0);
    for seed in 0..2500 {
        let block = categorised(&example::block(seed));
        for model in models() {
            let model = model.as_ref();
            for localpk in ALL.map(|l| l()) {
                let classes = run(localpk, &block, model);
                assert_eq!(classes.classes, plain(&block, model, localpk), "{seed}");
                check(&block, model, &classes);
                split += usize::from(classes.classes.len() > 1);
            }
            let [new, printed] =
                [Localpk::new(), printed()].map(|l| run(l, &block, model).classes.len());
            borrowed += usize::from(new > printed);
        }
    }
    assert!(split > 8_000 && borrowed > 800, "{split} {borrowed}");
}

/// Everybody is in one valid class, or all are suppressed; no two classes publish the same values.
fn check(block: &Block, model: &dyn Model, classes: &Classes) {
    assert!(classes.classes.iter().all(|c| valid(block, model, c)));
    let mut all = [classes.classes.concat(), classes.suppressed.clone()].concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..block.len() as u32));
    let everybody: Vec<u32> = (0..block.len() as u32).collect();
    assert_eq!(
        classes.suppressed.is_empty(),
        valid(block, model, &everybody)
    );
    let regions: Vec<Region> = classes.regions(block).collect();
    for (i, a) in regions.iter().enumerate() {
        assert!(regions[..i].iter().all(|b| a.cells() != b.cells()));
    }
}

#[test]
fn columns_without_hierarchies_and_missing_values() {
    // Ages 1, 1, 2, 2, 40, 40 and two missing ones; the names differ and cannot be told apart.
    let ages = [1, 1, 2, 2, 40, 40, NULL_CODE, NULL_CODE];
    let age = QuasiIdentifier::Numeric(crate::table::Numeric {
        lo: ages.to_vec(),
        hi: ages.to_vec(),
        step: 1,
    });
    let names = QuasiIdentifier::Categorical(crate::table::Categorical {
        offsets: (0..=8).collect(),
        codes: (0..8).collect(),
        cardinality: 8,
        step: 8,
    });
    let block = Block::new(
        vec![age, names],
        (0..8).map(|i| [i]).collect(),
        vec![1; 8],
        60,
    );
    let k = model("ir_k_anonymity", &[("k", "2")]);
    let classes = run(Localpk::new(), &block, k.as_ref());
    assert_eq!(classes.classes, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    let cells: Vec<Cell> = classes
        .regions(&block)
        .map(|r| r.cells()[0].clone())
        .collect();
    assert_eq!(cells[0], Cell::Interval { lo: 1, hi: 1 });
    assert_eq!(cells[3], Cell::Null);
}
