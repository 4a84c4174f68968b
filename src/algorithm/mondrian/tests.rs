//! Also the random blocks on which algorithms that cut are tested.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{self, Member, Parameters, Value};
use crate::table::{
    Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, NULL_CODE, Numeric,
    QuasiIdentifier,
};

const FULL: u64 = 5040;

/// One row per column of codes per individual: what an individual has in a column.
fn cells(column: &[&[u32]]) -> (Vec<u32>, Vec<u32>) {
    let lo = column.iter().map(|cell| cell[0]).collect();
    let hi = column.iter().map(|cell| cell[cell.len() - 1]).collect();
    (lo, hi)
}

fn numeric(column: &[&[u32]], step: u64) -> QuasiIdentifier {
    let (lo, hi) = cells(column);
    QuasiIdentifier::Numeric(Numeric { lo, hi, step })
}

fn categorical(column: &[&[u32]], cardinality: u32, step: u64) -> QuasiIdentifier {
    let mut offsets = vec![0];
    offsets.extend(column.iter().scan(0, |end, cell| {
        *end += cell.len() as u32;
        Some(*end)
    }));
    QuasiIdentifier::Categorical(Categorical {
        offsets,
        codes: column.concat(),
        cardinality,
        step,
    })
}

/// Twelve leaves in fours, these in twos.
fn hierarchical(column: &[&[u32]]) -> QuasiIdentifier {
    let mut parents: Vec<Option<u32>> = vec![None];
    parents.extend([Some(0); 3]);
    parents.extend((0..6).map(|two| Some(1 + two / 2)));
    parents.extend((0..12).map(|leaf| Some(4 + leaf / 2)));
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let loss = |node| match hierarchy.size(node) {
        1 => 0,
        size => FULL * u64::from(size) / 12,
    };
    let (lo, hi) = cells(column);
    QuasiIdentifier::Hierarchical(Hierarchical {
        lo,
        hi,
        tree: LossTree {
            losses: Arc::new((0..hierarchy.len()).map(loss).collect()),
            hierarchy: Arc::new(hierarchy),
        },
    })
}

fn block(columns: Vec<QuasiIdentifier>, values: &[u32]) -> Block {
    let fingerprints = values.iter().map(|value| [*value]).collect();
    Block::new(columns, fingerprints, vec![1; values.len()], FULL)
}

pub(in crate::algorithm) fn named(name: &str, given: &[(&str, &str)]) -> Box<dyn Model> {
    let entry = model::find(name).unwrap();
    let mut parameters = Parameters::default();
    for (parameter, text) in given {
        let declared = entry.parameters.iter().find(|p| p.name == *parameter);
        parameters.set(*parameter, declared.unwrap().parse(text).unwrap());
    }
    (entry.build)(&parameters).unwrap()
}

/// The five models of Wang 2018, each with a weak and a strong choice of parameters.
pub(in crate::algorithm) fn models() -> Vec<Box<dyn Model>> {
    let mut models = vec![];
    for (n, share) in [("2", "0.6"), ("4", "0.35")] {
        models.push(named("ir_k_anonymity", &[("k", n)]));
        models.push(named("ir_kl_anonymity", &[("k", n), ("l", n)]));
        models.push(named(
            "ir_alpha_beta_anonymity",
            &[("alpha", "0.5"), ("beta", share)],
        ));
        models.push(named("eir_l_diversity", &[("l", n)]));
        models.push(named(
            "eir_alpha_beta_anonymity",
            &[("alpha", "0.5"), ("beta", share)],
        ));
    }
    models
}

fn run(algorithm: Mondrian, block: &Block, model: &dyn Model) -> Classes {
    algorithm
        .form_classes(block, model, &Cancel::default())
        .unwrap()
}

fn two_anonymous(columns: Vec<QuasiIdentifier>, n: usize) -> Vec<Vec<u32>> {
    let block = block(columns, &vec![0; n]);
    run(
        Mondrian::strict(),
        &block,
        named("ir_k_anonymity", &[("k", "2")]).as_ref(),
    )
    .classes
}

#[test]
fn numbers_are_cut_between_two_values_nearest_to_the_middle() {
    // docs/theory/papers.md M7: the middle individual has 3; three of eight are below, seven are not above it.
    let column: &[&[u32]] = &[&[1], &[2], &[2], &[3], &[3], &[3], &[3], &[9]];
    assert_eq!(
        two_anonymous(vec![numeric(column, 10)], 8),
        [vec![0, 1, 2], vec![3, 4, 5, 6, 7]]
    );
    let block = block(vec![numeric(column, 10)], &[0; 8]);
    let model = named("ir_k_anonymity", &[("k", "2")]);
    let relaxed = run(Mondrian::relaxed(), &block, model.as_ref()).classes;
    assert_eq!(
        relaxed,
        [[0, 1], [2, 3], [4, 5], [6, 7]],
        "3 is on both sides of a cut"
    );
    // Nothing to tell apart.
    let same: Vec<&[u32]> = vec![&[4]; 6];
    assert_eq!(two_anonymous(vec![numeric(&same, 10)], 6).len(), 1);
    let spans: Vec<&[u32]> = vec![&[4, 9]; 6];
    assert_eq!(two_anonymous(vec![numeric(&spans, 10)], 6).len(), 1);
}

#[test]
fn the_next_column_is_tried_where_a_cut_is_not_allowed() {
    // The wide column leaves one individual alone.
    let wide: &[&[u32]] = &[&[0], &[90], &[90], &[90]];
    let narrow: &[&[u32]] = &[&[1], &[1], &[2], &[2]];
    let columns = vec![numeric(wide, 10), numeric(narrow, 10)];
    assert_eq!(two_anonymous(columns, 4), [[0, 1], [2, 3]]);
}

#[test]
fn frequent_values_are_cut_from_rare_ones() {
    let column: &[&[u32]] = &[&[2], &[0], &[2], &[1], &[2], &[1, 2], &[2], &[0]];
    // The individual with 1 and 2 is with its rarer value.
    assert_eq!(
        two_anonymous(vec![categorical(column, 3, 2520)], 8),
        [vec![0, 2, 4, 6], vec![1, 7], vec![3, 5]]
    );
}

#[test]
fn hierarchies_are_cut_into_children() {
    let column: &[&[u32]] = &[&[0], &[1], &[0], &[2], &[3], &[11], &[10], &[2]];
    assert_eq!(
        two_anonymous(vec![hierarchical(column)], 8),
        [vec![0, 1, 2], vec![3, 4, 7], vec![5, 6]]
    );
    // All children must be valid (M7): the one with a single individual forbids the cut.
    let column: &[&[u32]] = &[&[0], &[1], &[0], &[2], &[3], &[11]];
    assert_eq!(two_anonymous(vec![hierarchical(column)], 6).len(), 1);
    // Who spans children is described by none of them.
    let column: &[&[u32]] = &[&[0], &[1], &[5], &[6], &[0, 11], &[1, 5]];
    assert_eq!(
        two_anonymous(vec![hierarchical(column)], 6),
        [[0, 1], [2, 3], [4, 5]]
    );
}

#[test]
fn missing_values_are_cut_from_others() {
    const N: u32 = NULL_CODE;
    let column: &[&[u32]] = &[&[1], &[N], &[2], &[N], &[3, N], &[1, N], &[3], &[4]];
    let apart = [vec![0, 2], vec![1, 3], vec![4, 5], vec![6, 7]];
    assert_eq!(two_anonymous(vec![numeric(column, 10)], 8), apart);
    assert_eq!(two_anonymous(vec![hierarchical(column)], 8).len(), 3);
    assert_eq!(two_anonymous(vec![categorical(column, 5, 10)], 8).len(), 4);
}

#[test]
fn a_block_that_is_no_class() {
    let ages: &[&[u32]] = &[&[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8]];
    let block = block(vec![numeric(ages, 10)], &[0, 1, 0, 2, 0, 0, 0, 0]);
    // More members never break l values, so that no part can have them either.
    let model = named("ir_kl_anonymity", &[("k", "2"), ("l", "4")]);
    let classes = run(Mondrian::strict(), &block, model.as_ref());
    assert_eq!((classes.classes.len(), classes.suppressed.len()), (0, 8));
    // Half of a class may have value 0: the block has not enough others, some parts have (docs/theory/papers.md E8).
    let model = named(
        "eir_alpha_beta_anonymity",
        &[("alpha", "0.5"), ("beta", "0.5")],
    );
    let classes = run(Mondrian::strict(), &block, model.as_ref());
    assert_eq!(
        classes,
        Danonyir::new()
            .form_classes(&block, model.as_ref(), &Cancel::default())
            .unwrap()
    );
    assert!(!classes.classes.is_empty());
}

#[test]
fn an_empty_block_no_columns_and_cancelling() {
    let model = named("ir_k_anonymity", &[("k", "2")]);
    let empty = block(vec![numeric(&[], 1)], &[]);
    assert_eq!(
        run(Mondrian::strict(), &empty, model.as_ref()),
        Classes::default()
    );
    let bare = block(vec![], &[1, 2, 3]);
    assert_eq!(
        run(Mondrian::strict(), &bare, model.as_ref()).classes,
        [[0, 1, 2]]
    );
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(
        Mondrian::strict()
            .form_classes(&bare, model.as_ref(), &cancel)
            .is_err()
    );
    let mut options = Parameters::default();
    options.set("relaxed", Value::Integer(1));
    assert!(format!("{:?}", (ENTRY.build)(&options).unwrap()).contains("true"));
}

/// Kind of a column, whether it has missing values, and whether all its losses are 0.
type Shape = (u8, bool, bool);

/// Per column a kind of cell and two small numbers; fingerprint; records.
type Drawn = (Vec<(u8, u32, u32)>, Vec<u32>, u32);

fn drawn(shapes: &[Shape], individuals: &[Drawn]) -> Block {
    let column = |(number, (kind, nullable, flat)): (usize, &Shape)| {
        let cells: Vec<Vec<u32>> = individuals
            .iter()
            .map(|(cells, _, _)| {
                let (cell, a, b) = cells[number];
                match (cell, nullable) {
                    (0..2, true) => vec![NULL_CODE],
                    (2, true) => vec![a, NULL_CODE],
                    (3, _) if a != b => vec![a.min(b), a.max(b)],
                    _ => vec![a],
                }
            })
            .collect();
        let cells: Vec<&[u32]> = cells.iter().map(Vec::as_slice).collect();
        let step = if *flat { 0 } else { FULL / 11 };
        match kind {
            0 => numeric(&cells, step),
            1 => categorical(&cells, 12, step),
            _ => hierarchical(&cells),
        }
    };
    let mut fingerprints = Fingerprints::new();
    for (_, fingerprint, _) in individuals {
        fingerprints.push(&mut fingerprint.clone());
    }
    Block::new(
        shapes.iter().enumerate().map(column).collect(),
        fingerprints,
        individuals.iter().map(|(_, _, records)| *records).collect(),
        FULL,
    )
}

/// Blocks with columns of all kinds, missing and contradicting values.
pub(in crate::algorithm) fn blocks(
    individuals: std::ops::Range<usize>,
) -> impl Strategy<Value = Block> {
    let shape = (0..3u8, prop::bool::weighted(0.3), prop::bool::weighted(0.1));
    let individual = (
        prop::collection::vec((0..20u8, 0..12u32, 0..12u32), 4),
        prop::collection::vec(0..9u32, 1..5),
        1..6u32,
    );
    (
        prop::collection::vec(shape, 0..5),
        prop::collection::vec(individual, individuals),
    )
        .prop_map(|(shapes, individuals)| drawn(&shapes, &individuals))
}

/// Classes are valid and hold everybody once, and the same again.
pub(in crate::algorithm) fn check(
    algorithm: &dyn Algorithm,
    block: &Block,
    model: &dyn Model,
) -> Result<Classes, TestCaseError> {
    let run = || {
        algorithm
            .form_classes(block, model, &Cancel::default())
            .unwrap()
    };
    let classes = run();
    prop_assert_eq!(&classes, &run());
    for class in &classes.classes {
        let mut tally = model.tally();
        class.iter().for_each(|i| tally.add(Member::of(block, *i)));
        prop_assert!(tally.satisfied(), "{}", model.describe());
        prop_assert!(class.is_sorted());
    }
    let mut all = classes.classes.concat();
    all.extend(&classes.suppressed);
    all.sort_unstable();
    prop_assert!(all.iter().copied().eq(0..block.len() as u32));
    Ok(classes)
}

proptest! {
    #![proptest_config(crate::repeatable::cases(1000))]

    #[test]
    fn classes_are_valid_under_every_model(block in blocks(1..60)) {
        for model in models() {
            for mondrian in [Mondrian::strict(), Mondrian::relaxed()] {
                let classes = check(&mondrian, &block, model.as_ref())?;
                // Nobody is suppressed where all together are a class.
                let mut tally = model.tally();
                (0..block.len() as u32).for_each(|i| tally.add(Member::of(&block, i)));
                prop_assert!(!tally.satisfied() || classes.suppressed.is_empty());
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::repeatable::cases(20))]

    #[test]
    fn larger_blocks(block in blocks(300..900)) {
        for model in models() {
            check(&Mondrian::strict(), &block, model.as_ref())?;
            check(&Mondrian::relaxed(), &block, model.as_ref())?;
        }
    }
}
