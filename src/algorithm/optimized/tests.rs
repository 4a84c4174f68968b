use std::sync::Arc;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::model::{self, Member, Parameters};
use crate::table::example::patients;
use crate::table::{
    Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, NULL_CODE, Numeric,
    QuasiIdentifier, Region,
};

const FULL: u64 = 5040;

fn model(name: &str, parameters: &[(&str, &str)]) -> Box<dyn Model> {
    let entry = model::find(name).unwrap();
    let mut values = Parameters::default();
    for (name, text) in parameters {
        let declared = entry.parameters.iter().find(|p| p.name == *name).unwrap();
        values.set(*name, declared.parse(text).unwrap());
    }
    (entry.build)(&values).unwrap()
}

/// Each of the five models, weaker and stronger.
fn models() -> Vec<Box<dyn Model>> {
    let share = |name, alpha, beta| model(name, &[("alpha", alpha), ("beta", beta)]);
    vec![
        model("ir_k_anonymity", &[("k", "2")]),
        model("ir_k_anonymity", &[("k", "5")]),
        model("ir_kl_anonymity", &[("k", "2"), ("l", "4")]),
        model("ir_kl_anonymity", &[("k", "4"), ("l", "3")]),
        model("eir_l_diversity", &[("l", "2")]),
        model("eir_l_diversity", &[("l", "4")]),
        share("ir_alpha_beta_anonymity", "0.5", "0.6"),
        share("ir_alpha_beta_anonymity", "0.3", "0.3"),
        share("eir_alpha_beta_anonymity", "0.6", "0.5"),
        share("eir_alpha_beta_anonymity", "0.4", "0.35"),
    ]
}

/// A tree over leaves in threes.
fn tree(leaves: u32) -> LossTree {
    let threes = leaves.div_ceil(3);
    let mut parents: Vec<Option<u32>> = (0..leaves).map(|i| Some(leaves + i / 3)).collect();
    parents.extend((0..threes).map(|_| Some(leaves + threes)));
    parents.push(None);
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let loss = |node| match hierarchy.size(node) {
        1 => 0,
        size => FULL * u64::from(size) / u64::from(leaves),
    };
    LossTree {
        losses: Arc::new((0..hierarchy.len()).map(loss).collect()),
        hierarchy: Arc::new(hierarchy),
    }
}

/// A column: of any kind, with few or many codes, with or without missing and contradictory values.
fn column(rng: &mut ChaCha8Rng, individuals: usize) -> QuasiIdentifier {
    let codes = [2, 7, 7, 150][rng.random_range(0..4)];
    let (nullable, contradictions) = (rng.random_ratio(1, 3), rng.random_ratio(1, 3));
    let cell = |rng: &mut ChaCha8Rng| {
        let (a, b) = (rng.random_range(0..codes), rng.random_range(0..codes));
        match rng.random_range(0..8) {
            0 if nullable => vec![NULL_CODE],
            1 if nullable && contradictions => vec![a, NULL_CODE],
            2 if a != b && contradictions => vec![a.min(b), a.max(b)],
            _ => vec![a],
        }
    };
    let cells: Vec<Vec<u32>> = (0..individuals).map(|_| cell(rng)).collect();
    let lo = cells.iter().map(|cell| cell[0]).collect();
    let hi = cells.iter().map(|cell| cell[cell.len() - 1]).collect();
    let step = if rng.random_ratio(1, 8) {
        0
    } else {
        FULL / u64::from(codes - 1)
    };
    match rng.random_range(0..3) {
        0 => QuasiIdentifier::Numeric(Numeric { lo, hi, step }),
        1 => {
            let mut offsets = vec![0];
            offsets.extend(cells.iter().scan(0, |end, cell| {
                *end += cell.len() as u32;
                Some(*end)
            }));
            QuasiIdentifier::Categorical(Categorical {
                offsets,
                codes: cells.concat(),
                cardinality: codes,
                step,
            })
        }
        _ => QuasiIdentifier::Hierarchical(Hierarchical {
            lo,
            hi,
            tree: tree(codes),
        }),
    }
}

fn block(seed: u64, individuals: usize) -> Block {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let columns = rng.random_range(0..5);
    let columns = (0..columns)
        .map(|_| column(&mut rng, individuals))
        .collect();
    let values = rng.random_range(4..30);
    let mut fingerprints = Fingerprints::new();
    let mut records = vec![];
    for _ in 0..individuals {
        let count = rng.random_range(1..6);
        let value = |rng: &mut ChaCha8Rng| match rng.random_range(0..40) {
            0 => NULL_CODE,
            _ => rng.random_range(0..values).min(rng.random_range(0..values)),
        };
        let mut codes = (0..count).map(|_| value(&mut rng)).collect();
        fingerprints.push(&mut codes);
        records.push(count);
    }
    Block::new(columns, fingerprints, records, FULL)
}

fn run(algorithm: &dyn Algorithm, block: &Block, model: &dyn Model) -> Classes {
    let cancel = Cancel::default();
    algorithm.form_classes(block, model, &cancel).unwrap()
}

/// What all records lose, by regions, suppressed ones in full.
fn total(block: &Block, classes: &Classes) -> u128 {
    let region = |class: &Vec<u32>| Region::covering(block, class).unwrap();
    let lost = |region: Region| u128::from(region.records()) * u128::from(region.loss());
    let cells = block.quasi_identifiers().len() as u128 * u128::from(FULL);
    let suppressed = |i: &u32| u128::from(block.records(*i)) * cells;
    let classes_lose: u128 = classes.classes.iter().map(region).map(lost).sum();
    classes_lose + classes.suppressed.iter().map(suppressed).sum::<u128>()
}

/// Valid classes, everybody once, the same again, and never worse than DAnonyIR.
fn check(block: &Block, model: &dyn Model, effort: u64) -> Result<(), TestCaseError> {
    let algorithm = Optimized::new(effort);
    let classes = run(&algorithm, block, model);
    for class in &classes.classes {
        let mut tally = model.tally();
        for member in class {
            tally.add(Member::of(block, *member));
        }
        prop_assert!(tally.satisfied(), "{} {class:?}", model.describe());
    }
    let mut all = classes.classes.concat();
    all.extend(&classes.suppressed);
    all.sort_unstable();
    prop_assert!(all.iter().copied().eq(0..block.len() as u32));
    prop_assert_eq!(&classes, &run(&algorithm, block, model));
    let printed = run(&Danonyir::new(), block, model);
    prop_assert!(total(block, &classes) <= total(block, &printed));
    prop_assert!(classes.suppressed.len() <= printed.suppressed.len());
    Ok(())
}

proptest! {
    #![proptest_config(crate::repeatable::cases(500))]

    #[test]
    fn small_blocks(seed in any::<u64>(), individuals in 1..60usize, effort in 0..5u64) {
        let block = block(seed, individuals);
        for model in models() {
            check(&block, model.as_ref(), effort)?;
        }
    }

    #[test]
    fn words_lose_what_regions_lose(seed in any::<u64>(), individuals in 3..12usize) {
        let block = block(seed, individuals);
        let shape = Shape::new(&block);
        let points = shape.points();
        let mut groups = Groups::new(&block, &shape, &points);
        let all: Vec<u32> = (0..individuals as u32).collect();
        let (class, others) = all.split_at(individuals / 2);
        let number = groups.add(class.to_vec());
        let cost = |members: Vec<u32>| Region::covering(&block, &members).map_or(0, |region| {
            i128::from(region.records()) * i128::from(region.loss())
        });
        prop_assert_eq!(groups.cost(number), cost(class.to_vec()));
        for member in class {
            let rest: Vec<u32> = class.iter().copied().filter(|i| i != member).collect();
            prop_assert_eq!(groups.cost_without(*member), cost(rest.clone()));
            for other in others {
                let exchanged = cost([&rest[..], &[*other]].concat());
                prop_assert_eq!(groups.cost_exchanged(*member, *other), exchanged);
                prop_assert!(groups.cost_exchanged_at_least(*member, *other) <= exchanged);
            }
        }
        let cover = groups.area_of(others);
        for other in others {
            prop_assert_eq!(groups.cost_with(number, *other), cost([class, &[*other]].concat()));
            let area = groups.area(number);
            let wide = || shape.wide_loss(area, None, None);
            let bound = shape.extended_at_least(area.loss, &area.words, &cover.words, wide);
            let wide = || shape.wide_loss(area, None, Some(*other));
            let loss = shape.extended(area.loss, &area.words, groups.point(*other), wide);
            prop_assert!(bound <= loss);
        }
    }
}

proptest! {
    #![proptest_config(crate::repeatable::cases(20))]

    #[test]
    fn larger_blocks(seed in any::<u64>(), individuals in 300..700usize, effort in 0..5u64) {
        let block = block(seed, individuals);
        for model in models() {
            check(&block, model.as_ref(), effort)?;
        }
    }

    #[test]
    fn who_is_nearest(seed in any::<u64>(), individuals in 100..300usize) {
        let block = block(seed, individuals);
        let shape = Shape::new(&block);
        let points = shape.points();
        let mut cloud = Cloud::new(&shape, &points, individuals);
        let groups = Groups::new(&block, &shape, &points);
        let area = groups.area_of(&[0, 1]);
        let added = |i: u32| groups.area_of(&[0, 1, i]).loss - area.loss;
        let mut left: Vec<u32> = (0..individuals as u32).collect();
        let mut found = vec![];
        while !left.is_empty() {
            cloud.nearest(&area, 4, |least| least, &mut found);
            let least = left.iter().map(|i| added(*i)).min().unwrap();
            for (loss, individual) in &found {
                prop_assert_eq!(*loss, least);
                prop_assert_eq!(added(*individual), least);
                prop_assert!(cloud.holds(*individual));
            }
            let taken = found[0].1;
            cloud.take(taken);
            left.retain(|i| *i != taken);
        }
        cloud.nearest(&area, 4, |least| least, &mut found);
        prop_assert!(found.is_empty());
    }
}

#[test]
fn more_effort_loses_less() {
    let model = model("eir_l_diversity", &[("l", "3")]);
    let blocks: Vec<Block> = (0..8).map(|seed| block(seed, 300)).collect();
    let [none, some, much] = [0, 1, 10].map(|effort| {
        let algorithm = Optimized::new(effort);
        let lost = |block| total(block, &run(&algorithm, block, model.as_ref()));
        blocks.iter().map(lost).collect::<Vec<u128>>()
    });
    assert!(some.iter().zip(&none).all(|(some, none)| some <= none));
    assert!(much.iter().zip(&some).all(|(much, some)| much <= some));
    assert!(some.iter().sum::<u128>() < none.iter().sum());
    assert!(much.iter().sum::<u128>() < some.iter().sum());
}

#[test]
fn the_running_example() {
    let block = patients([6, 3, 1, 2, 4, 5, 7]);
    let model = model("eir_l_diversity", &[("l", "3")]);
    let classes = run(&Optimized::default(), &block, model.as_ref());
    assert!(classes.suppressed.is_empty());
    let printed = run(&Danonyir::new(), &block, model.as_ref());
    assert!(total(&block, &classes) <= total(&block, &printed));
}

#[test]
fn an_empty_block_and_nobody_fits() {
    let model = model("eir_l_diversity", &[("l", "8")]);
    let algorithm = Optimized::default();
    assert_eq!(
        run(&algorithm, &block(1, 0), model.as_ref()),
        Classes::default()
    );
    let classes = run(&algorithm, &patients([1, 2, 3, 4, 5, 6, 7]), model.as_ref());
    assert_eq!((classes.classes.len(), classes.suppressed.len()), (0, 7));
}

#[test]
fn a_cancelled_run_stops() {
    let cancel = Cancel::default();
    cancel.cancel();
    let model = model("ir_k_anonymity", &[("k", "2")]);
    let stopped = Optimized::default().form_classes(&block(1, 50), model.as_ref(), &cancel);
    assert_eq!(stopped, Err(Cancelled));
}

#[test]
fn effort_is_an_option() {
    let effort = &ENTRY.options[0];
    assert!(!effort.required);
    assert!(effort.parse("0").is_ok() && effort.parse("10").is_ok());
    assert!(effort.parse("11").is_err());
    let mut options = Parameters::default();
    let built = |options: &Parameters| format!("{:?}", (ENTRY.build)(options).unwrap());
    assert_eq!(built(&options), format!("{:?}", Optimized::default()));
    options.set("effort", effort.parse("7").unwrap());
    assert_eq!(built(&options), format!("{:?}", Optimized::new(7)));
}
