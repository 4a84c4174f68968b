use std::sync::Arc;

use proptest::prelude::*;

use super::super::Mondrian;
use super::super::mondrian::tests::{blocks, check, models, named};
use super::*;
use crate::model::{Parameters, Value};
use crate::table::{Categorical, NULL_CODE, Numeric, Region};

const FULL: u64 = 5040;

fn points(at: &[u32]) -> Block {
    let column = Numeric {
        lo: at.to_vec(),
        hi: at.to_vec(),
        step: FULL / 99,
    };
    let fingerprints = (0..at.len() as u32).map(|i| [i]).collect();
    Block::new(
        vec![QuasiIdentifier::Numeric(column)],
        fingerprints,
        vec![1; at.len()],
        FULL,
    )
}

fn run(algorithm: BestCut, block: &Block, model: &dyn Model) -> Classes {
    algorithm
        .form_classes(block, model, &Cancel::default())
        .unwrap()
}

#[test]
fn cuts_lie_where_they_lose_least() {
    // The middle is between 3 and 4, the gap between 4 and 90.
    let block = points(&[1, 2, 3, 4, 90, 91]);
    let model = named("ir_k_anonymity", &[("k", "2")]);
    for algorithm in [BestCut::records(), BestCut::ncp()] {
        let classes = run(algorithm, &block, model.as_ref());
        assert_eq!(classes.classes, [[0, 1], [2, 3], [4, 5]]);
    }
}

#[test]
fn the_measures_differ_in_what_a_single_value_is_worth() {
    // Three individuals with one value and one beside them: by ranges 1 + 1 on one side or the other, by counts a class
    // with a single value is free.
    let block = points(&[5, 5, 6, 7]);
    let model = named("ir_k_anonymity", &[("k", "2")]);
    assert_eq!(
        run(BestCut::ncp(), &block, model.as_ref()).classes,
        [[0, 1], [2, 3]]
    );
    let steps = CutMeasure::Individuals.steps(&block);
    assert_eq!(steps[0].loss(0), 0);
    // A step of 1/99 of the range is 1/100 of the values.
    assert_eq!(steps[0].loss(1), 2 * (50 * FULL / (50 + FULL)));
    assert_eq!(CutMeasure::Records.steps(&block)[0].loss(3), 3 * 50);
}

#[test]
fn threads_change_nothing() {
    let at: Vec<u32> = (0..30_000u32)
        .map(|i| i.wrapping_mul(2_654_435_761) % 97)
        .collect();
    let mut columns = points(&at).quasi_identifiers().to_vec();
    let other: Vec<u32> = (0..30_000u32)
        .map(|i| i.wrapping_mul(40_503) % 89)
        .collect();
    columns.extend_from_slice(points(&other).quasi_identifiers());
    let fingerprints = (0..30_000).map(|i| [i % 13]).collect();
    let block = Block::new(columns, fingerprints, vec![1; 30_000], FULL);
    let model = named("eir_l_diversity", &[("l", "4")]);
    let same = |one: &dyn Algorithm, with: &dyn Fn(Arc<Threads>) -> Box<dyn Algorithm>| {
        let form = |algorithm: &dyn Algorithm| {
            let cancel = Cancel::default();
            algorithm.form_classes(&block, model.as_ref(), &cancel)
        };
        let one = form(one).unwrap();
        assert!(one.classes.len() > 1000);
        for threads in [1, 2, 3, 8] {
            assert_eq!(one, form(&*with(Arc::new(Threads::new(threads)))).unwrap());
        }
    };
    same(&BestCut::ncp(), &|threads| {
        Box::new(BestCut::ncp().with_crew(threads))
    });
    same(&Mondrian::strict(), &|threads| {
        Box::new(Mondrian::strict().with_crew(threads))
    });
    same(&Mondrian::relaxed(), &|threads| {
        Box::new(Mondrian::relaxed().with_crew(threads))
    });
}

#[test]
fn missing_values_and_sets() {
    let column = Categorical {
        offsets: (0..=6).collect(),
        codes: vec![1, NULL_CODE, 1, NULL_CODE, 0, 0],
        cardinality: 2,
        step: FULL,
    };
    let fingerprints = (0..6).map(|i| [i]).collect();
    let block = Block::new(
        vec![QuasiIdentifier::Categorical(column)],
        fingerprints,
        vec![1; 6],
        FULL,
    );
    let model = named("ir_k_anonymity", &[("k", "2")]);
    assert_eq!(
        run(BestCut::records(), &block, model.as_ref()).classes,
        [[0, 2], [1, 3], [4, 5]]
    );
}

#[test]
fn options_empty_blocks_and_cancelling() {
    let model = named("ir_k_anonymity", &[("k", "2")]);
    assert_eq!(
        run(BestCut::ncp(), &points(&[]), model.as_ref()),
        Classes::default()
    );
    let bare = Block::new(vec![], (0..3).map(|i| [i]).collect(), vec![1; 3], FULL);
    assert_eq!(
        run(BestCut::ncp(), &bare, model.as_ref()).classes,
        [[0, 1, 2]]
    );
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(
        BestCut::ncp()
            .form_classes(&bare, model.as_ref(), &cancel)
            .is_err()
    );
    let mut options = Parameters::default();
    options.set("ncp", Value::Integer(1));
    assert!(format!("{:?}", (ENTRY.build)(&options).unwrap()).contains("Individuals"));
}

fn loss(block: &Block, classes: &Classes) -> u64 {
    let regions = classes
        .classes
        .iter()
        .filter_map(|class| Region::covering(block, class));
    regions.map(|region| region.records() * region.loss()).sum()
}

/// What all records lose after the best cut into two parts of at least `least`, found by trying every place of every
/// column that has an order.
fn best_by_trying(block: &Block, least: usize) -> Option<u64> {
    let n = block.len();
    let mut best = None;
    for column in block.quasi_identifiers() {
        let Some((lo, hi)) = ends(column) else {
            continue;
        };
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|i| place(lo, hi, *i));
        for left in least..=n.saturating_sub(least) {
            if left < n && left > 0 && place(lo, hi, order[left - 1]) != place(lo, hi, order[left])
            {
                let parts = [order[..left].to_vec(), order[left..].to_vec()];
                let parts = Classes {
                    classes: parts.to_vec(),
                    ..Classes::default()
                };
                let loss = loss(block, &parts);
                best = Some(best.map_or(loss, |best: u64| best.min(loss)));
            }
        }
    }
    best
}

proptest! {
    #![proptest_config(crate::repeatable::cases(1000))]

    #[test]
    fn classes_are_valid_under_every_model(block in blocks(1..60)) {
        for model in models() {
            check(&BestCut::records(), &block, model.as_ref())?;
            check(&BestCut::ncp(), &block, model.as_ref())?;
        }
    }

    #[test]
    fn the_first_cut_is_the_best_one(block in blocks(2..12)) {
        // With room for two classes only, the classes are those of the first cut.
        let least = block.len() / 2;
        prop_assume!(least > 1);
        let model = named("ir_k_anonymity", &[("k", &least.to_string())]);
        let classes = check(&BestCut::records(), &block, model.as_ref())?;
        if let Some(best) = best_by_trying(&block, least) {
            prop_assert!(loss(&block, &classes) <= best);
        }
    }
}

proptest! {
    #![proptest_config(crate::repeatable::cases(20))]

    #[test]
    fn larger_blocks(block in blocks(300..1500)) {
        for model in models() {
            check(&BestCut::records(), &block, model.as_ref())?;
        }
    }
}
