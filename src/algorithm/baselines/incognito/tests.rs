//! Against trying every recoding.

use std::collections::BTreeMap;

use super::*;
use crate::algorithm::trees::{Tree, example};
use crate::model::{self, Member, Parameters};
use crate::table::{Cell, Fingerprints, Region};

fn model(name: &str, given: &[(&str, &str)]) -> Box<dyn Model> {
    let entry = model::find(name).unwrap();
    let mut parameters = Parameters::default();
    for (name, text) in given {
        let parameter = entry.parameters.iter().find(|p| p.name == *name).unwrap();
        parameters.set(*name, parameter.parse(text).unwrap());
    }
    (entry.build)(&parameters).unwrap()
}

fn incognito(suppress: Option<&str>) -> Incognito {
    Incognito {
        suppress: suppress.map(|s| s.parse().unwrap()),
    }
}

fn valid(block: &Block, model: &dyn Model, members: &[u32]) -> bool {
    let mut tally = model.tally();
    members
        .iter()
        .for_each(|i| tally.add(Member::of(block, *i)));
    tally.satisfied()
}

/// What a recoding publishes: classes with their labels and who is suppressed; nothing if that are too many.
struct Plain {
    classes: BTreeMap<Vec<u32>, Vec<u32>>,
    suppressed: usize,
    loss: u128,
}

fn plain(
    block: &Block,
    model: &dyn Model,
    trees: &[Tree],
    levels: &[u32],
    suppress: Option<f64>,
) -> Option<Plain> {
    let label = |tree: &Tree, level: u32, i: u32| {
        (1..=level).fold(tree.start(i), |node, l| tree.step_up(l)[node as usize])
    };
    let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for i in 0..block.len() as u32 {
        let labels = trees
            .iter()
            .zip(levels)
            .map(|(tree, level)| label(tree, *level, i));
        groups.entry(labels.collect()).or_default().push(i);
    }
    let records =
        |members: &[u32]| -> u128 { members.iter().map(|i| u128::from(block.records(*i))).sum() };
    let (mut suppressed, mut loss) = (0, 0);
    groups.retain(|labels, members| {
        let holds = valid(block, model, members);
        if holds {
            let each = trees
                .iter()
                .zip(labels)
                .map(|(tree, l)| u128::from(tree.loss(*l)));
            loss += records(members) * each.sum::<u128>();
        } else {
            suppressed += members.len();
            loss += records(members) * u128::from(block.full()) * trees.len() as u128;
        }
        holds
    });
    let most = suppress.map_or(0.0, |share| share * block.len() as f64 + 1e-9);
    (suppressed as f64 <= most && suppressed < block.len()).then_some(Plain {
        classes: groups,
        suppressed,
        loss,
    })
}

/// Every combination of levels.
fn all(trees: &[Tree]) -> Vec<Vec<u32>> {
    trees.iter().fold(vec![vec![]], |some, tree| {
        let longer = |levels: &Vec<u32>| {
            let levels = levels.clone();
            (0..=tree.levels()).map(move |l| [levels.clone(), vec![l]].concat())
        };
        some.iter().flat_map(longer).collect()
    })
}

fn models() -> Vec<Box<dyn Model>> {
    vec![
        model("ir_k_anonymity", &[("k", "2")]),
        model("p_sensitive_k_anonymity", &[("k", "3"), ("p", "2")]),
        model("eir_l_diversity", &[("l", "2")]),
        model(
            "ir_alpha_beta_anonymity",
            &[("alpha", "0.5"), ("beta", "0.6")],
        ),
    ]
}

#[test]
fn random_blocks_agree_with_trying_everything() {
    let mut some = 0;
    for seed in 0..600 {
        let block = example::block(seed);
        let trees = trees(&block);
        if all(&trees).len() > 400 {
            continue;
        }
        for (model, suppress) in models().into_iter().flat_map(|m| {
            let m: std::rc::Rc<dyn Model> = m.into();
            [None, Some("0.2")].map(|s| (m.clone(), s))
        }) {
            let model = model.as_ref();
            let share = suppress.map(|s: &str| s.parse().unwrap());
            let tables: Vec<(Vec<u32>, Plain)> = all(&trees)
                .into_iter()
                .filter_map(|levels| {
                    let table = plain(&block, model, &trees, &levels, share)?;
                    Some((levels, table))
                })
                .collect();
            let below = |a: &[u32], b: &[u32]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
            let minimal: Vec<&(Vec<u32>, Plain)> = tables
                .iter()
                .filter(|(levels, _)| !tables.iter().any(|(other, _)| below(other, levels)))
                .collect();
            let best = minimal
                .iter()
                .min_by_key(|(levels, table)| (table.loss, levels));
            if suppress.is_none() {
                let least = tables.iter().map(|(_, table)| table.loss).min();
                assert_eq!(best.map(|(_, table)| table.loss), least, "{seed}");
            }
            let algorithm = incognito(suppress);
            let cancel = Cancel::default();
            let found = algorithm.minimal_tables(&block, model, &cancel).unwrap();
            assert_eq!(found.len(), minimal.len(), "{seed} {suppress:?}");
            let classes = algorithm.form_classes(&block, model, &cancel).unwrap();
            let Some((_, table)) = best else {
                assert_eq!(classes.suppressed.len(), block.len(), "{seed}");
                continue;
            };
            some += 1;
            let mut expected: Vec<Vec<u32>> = table.classes.values().cloned().collect();
            expected.sort();
            assert_eq!(classes.classes, expected, "{seed}");
            assert_eq!(classes.suppressed.len(), table.suppressed, "{seed}");
            for (class, nodes) in classes.classes.iter().zip(&classes.nodes) {
                let labels = table.classes.iter().find(|(_, members)| *members == class);
                let labels = labels.map(|(labels, _)| labels).unwrap();
                let given: Vec<Option<u32>> = trees
                    .iter()
                    .zip(labels)
                    .map(|(tree, l)| tree.given(*l))
                    .collect();
                assert_eq!(*nodes, given, "{seed}");
            }
        }
    }
    assert!(some > 1000, "{some}");
}

#[test]
fn the_whole_column_has_one_level() {
    // Leaves 0 1 | 2 3; one individual at 3 forces everybody one level up, where local recoding would not.
    let tree = example::hierarchy(&[4, 4, 5, 5, 6, 6, u32::MAX], 60);
    let at = [0, 0, 1, 1, 2, 2, 3];
    let column = example::hierarchical(&at, &at, &tree);
    let block = Block::new(vec![column], (0..7).map(|i| [i]).collect(), vec![1; 7], 60);
    let k = model("ir_k_anonymity", &[("k", "2")]);
    let run = |suppress| {
        let cancel = Cancel::default();
        incognito(suppress)
            .form_classes(&block, k.as_ref(), &cancel)
            .unwrap()
    };
    let classes = run(None);
    assert_eq!(classes.classes, [vec![0, 1, 2, 3], vec![4, 5, 6]]);
    let cells = |classes: &Classes| -> Vec<Cell> {
        classes
            .regions(&block)
            .map(|r: Region| r.cells()[0].clone())
            .collect()
    };
    let pair = |leaf| Cell::Node(tree.hierarchy.covering(leaf, leaf + 1));
    assert_eq!(cells(&classes), [pair(0), pair(2)]);
    // One of seven may be suppressed: all others keep their values.
    let classes = run(Some("0.15"));
    assert_eq!((classes.classes.len(), classes.suppressed), (3, vec![6]));
    let classes = run(Some("0.14"));
    assert_eq!((classes.classes.len(), classes.suppressed.len()), (2, 0));
}

#[test]
fn empty_blocks_no_columns_and_a_cancelled_run() {
    let k = model("ir_k_anonymity", &[("k", "2")]);
    let cancel = Cancel::default();
    let run = |block: &Block, cancel: &Cancel| {
        Incognito::default().form_classes(block, k.as_ref(), cancel)
    };
    let empty = Block::new(vec![], Fingerprints::new(), vec![], 1);
    assert_eq!(run(&empty, &cancel), Ok(Classes::default()));
    let no_columns = Block::new(vec![], [[0], [1]].into_iter().collect(), vec![1; 2], 1);
    assert_eq!(run(&no_columns, &cancel).unwrap().classes, [[0, 1]]);
    cancel.cancel();
    assert!(run(&no_columns, &cancel).is_err());
}
