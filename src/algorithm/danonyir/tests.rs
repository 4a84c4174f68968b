use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{self, Closure, Infeasible, Parameters, Value};
use crate::table::example::patients;
use crate::table::{
    Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, NULL_CODE, Numeric,
    QuasiIdentifier,
};

fn eir(l: u64) -> Box<dyn Model> {
    let mut parameters = Parameters::default();
    parameters.set("l", Value::Integer(l));
    (model::find("eir_l_diversity").unwrap().build)(&parameters).unwrap()
}

fn shares(name: &str, alpha: &str, beta: &str) -> Box<dyn Model> {
    let mut parameters = Parameters::default();
    parameters.set("alpha", Value::Ratio(alpha.parse().unwrap()));
    parameters.set("beta", Value::Ratio(beta.parse().unwrap()));
    (model::find(name).unwrap().build)(&parameters).unwrap()
}

/// One of the five identity-reserved models, with counts and hundredths for its parameters.
fn any_model() -> impl Strategy<Value = Box<dyn Model>> {
    const NAMES: [&str; 5] = [
        "ir_k_anonymity",
        "ir_kl_anonymity",
        "ir_alpha_beta_anonymity",
        "eir_l_diversity",
        "eir_alpha_beta_anonymity",
    ];
    (0..NAMES.len(), 2u64..7, 2u64..7, 15u64..95, 15u64..95).prop_map(
        |(number, k, l, alpha, beta)| {
            let entry = model::find(NAMES[number]).unwrap();
            let mut parameters = Parameters::default();
            for parameter in entry.parameters {
                let text = match parameter.name {
                    "k" => k.to_string(),
                    "l" => l.to_string(),
                    "alpha" => format!("0.{alpha}"),
                    _ => format!("0.{beta}"),
                };
                parameters.set(parameter.name, parameter.parse(&text).unwrap());
            }
            (entry.build)(&parameters).unwrap()
        },
    )
}

fn run(algorithm: Danonyir, block: &Block, model: &dyn Model) -> Classes {
    algorithm
        .form_classes(block, model, &Cancel::default())
        .unwrap()
}

#[test]
fn the_running_example_gives_table_4() {
    // The random picks of the paper are individuals 6 and 3.
    let order = [6, 3, 1, 2, 4, 5, 7];
    let block = patients(order);
    // Table 4 comes out for either of the paper's two enhanced models.
    let models = [eir(3), shares("eir_alpha_beta_anonymity", "0.4", "0.6")];
    let runs = [Danonyir::naive(), Danonyir::new()].map(|run| models.each_ref().map(|m| (run, m)));
    for (algorithm, model) in runs.concat() {
        let classes = run(algorithm, &block, model.as_ref());
        let numbers = |class: &Vec<u32>| {
            let mut numbers: Vec<usize> = class.iter().map(|i| order[*i as usize]).collect();
            numbers.sort_unstable();
            numbers
        };
        let published: Vec<Vec<usize>> = classes.classes.iter().map(numbers).collect();
        assert_eq!(published, [vec![4, 6, 7], vec![1, 2, 3, 5]]);
        assert!(classes.suppressed.is_empty());
    }
}

#[test]
fn residual_individuals_join_or_are_suppressed() {
    let block = patients([6, 3, 1, 2, 4, 5, 7]);
    for algorithm in [Danonyir::naive(), Danonyir::new()] {
        // Individuals 6, 7, 4 and 2 are a class; 3, 1 and 5 are left over. Suppressing 5 would lose 54, joining
        // loses 22 + 6 · 5; 3 and 1 would bring the other gender, 38 + 6 · 21 and 2 · 38 + 6 · 21.
        let classes = run(algorithm, &block, eir(4).as_ref());
        assert_eq!(classes.classes, [[0, 3, 4, 5, 6]]);
        assert_eq!(classes.suppressed, [1, 2]);
        // Without any class there is nothing to join.
        let classes = run(algorithm, &block, eir(7).as_ref());
        assert_eq!((classes.classes.len(), classes.suppressed.len()), (0, 7));
    }
}

#[test]
fn a_finished_class_outlives_the_class_that_swallowed_it() {
    // docs/theory/papers.md E6: 0 and 1 are a class; 2 comes to it with a third record of its first value and spoils it.
    let block = points(&[0, 0, 1, 9], &[0, 1, 0, 0], &[1, 1, 1, 1]);
    for algorithm in [Danonyir::naive(), Danonyir::new()] {
        let classes = run(algorithm, &block, &Half);
        assert_eq!(classes.classes, [[0, 1]]);
        assert_eq!(classes.suppressed, [2, 3]);
    }
}

#[test]
fn an_empty_block_and_no_columns() {
    for algorithm in [Danonyir::naive(), Danonyir::new()] {
        let empty = points(&[], &[], &[]);
        assert_eq!(run(algorithm, &empty, eir(2).as_ref()), Classes::default());
        let no_columns = Block::new(vec![], [[0], [1], [0]].into_iter().collect(), vec![1; 3], 1);
        assert_eq!(
            run(algorithm, &no_columns, eir(2).as_ref()).classes,
            [[0, 1, 2]]
        );
    }
}

#[test]
fn a_cancelled_run_stops() {
    let cancel = Cancel::default();
    cancel.cancel();
    let block = patients([1, 2, 3, 4, 5, 6, 7]);
    assert!(
        Danonyir::new()
            .form_classes(&block, eir(2).as_ref(), &cancel)
            .is_err()
    );
}

/// One numeric column; one sensitive value each.
fn points(at: &[u32], values: &[u32], records: &[u32]) -> Block {
    let column = Numeric {
        lo: at.to_vec(),
        hi: at.to_vec(),
        step: 1,
    };
    let fingerprints = values.iter().map(|value| [*value]).collect();
    Block::new(
        vec![QuasiIdentifier::Numeric(column)],
        fingerprints,
        records.to_vec(),
        10,
    )
}

/// At least two individuals, and no value is held by more than half of them: neither kept by one more member,
/// as EIR (α, β)-anonymity.
#[derive(Debug)]
struct Half;

#[derive(Default)]
struct HalfTally(std::collections::BTreeMap<u32, u32>, u32);

impl Model for Half {
    fn describe(&self) -> String {
        "half".to_owned()
    }

    fn closure(&self) -> Closure {
        Closure {
            union: true,
            extension: false,
        }
    }

    fn min_individuals(&self) -> usize {
        2
    }

    fn tally(&self) -> Box<dyn Tally> {
        Box::<HalfTally>::default()
    }

    fn feasible(&self, _: &mut dyn Iterator<Item = Member<'_>>) -> Result<(), Infeasible> {
        Ok(())
    }
}

impl Tally for HalfTally {
    fn add(&mut self, member: Member<'_>) {
        self.1 += 1;
        for value in member.fingerprint {
            *self.0.entry(*value).or_default() += 1;
        }
    }

    fn satisfied(&mut self) -> bool {
        self.1 >= 2 && self.0.values().all(|count| count * 2 <= self.1)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A column to draw values for: its kind, with missing values or not, how far apart codes lie.
#[derive(Debug, Clone, Copy)]
struct Shape {
    kind: ColumnKind,
    nullable: bool,
    scale: u32,
    constant: bool,
}

#[derive(Debug, Clone, Copy)]
enum ColumnKind {
    Numeric,
    Categorical,
    Hierarchical,
}

/// A tree over so many leaves: in threes, except for the last ones, and these in halves.
fn tree(leaves: u32, constant: bool) -> LossTree {
    let threes = leaves / 3;
    let (root, half) = (leaves + threes, leaves + threes + 1);
    let mut parents: Vec<Option<u32>> = (0..leaves)
        .map(|leaf| {
            Some(if leaf / 3 < threes {
                leaves + leaf / 3
            } else {
                root
            })
        })
        .collect();
    parents.extend((0..threes).map(|three| Some(half + u32::from(three > threes / 2))));
    parents.extend([None, Some(root), Some(root)]);
    // An inner node without children would be a leaf.
    if threes / 2 + 1 >= threes {
        parents.pop();
    }
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let loss = |node| match hierarchy.size(node) {
        1 => 0,
        size if constant => u64::from(size == leaves) * 5040,
        size => 5040 * u64::from(size) / u64::from(leaves),
    };
    LossTree {
        losses: Arc::new((0..hierarchy.len()).map(loss).collect()),
        hierarchy: Arc::new(hierarchy),
    }
}

/// An individual: per column what kind of value and two small numbers, its fingerprint, its records.
type Drawn = (Vec<(u8, u32, u32)>, Vec<u32>, u32);

const VALUES: u32 = 7;

fn block(shapes: &[Shape], individuals: &[Drawn], contradictions: bool) -> Block {
    let codes = |shape: Shape, (kind, a, b): (u8, u32, u32)| {
        let (a, b) = (a.min(b) * shape.scale, a.max(b) * shape.scale);
        match kind {
            0 | 1 if shape.nullable => vec![NULL_CODE],
            2 if shape.nullable && contradictions => vec![a, NULL_CODE],
            3 if a < b && contradictions => vec![a, b],
            _ => vec![b],
        }
    };
    let column = |(number, shape): (usize, &Shape)| {
        let cells = individuals
            .iter()
            .map(|(cells, _, _)| codes(*shape, cells[number]));
        let cells: Vec<Vec<u32>> = cells.collect();
        let step = |parts: u32| {
            if shape.constant {
                0
            } else {
                5040 / u64::from(parts)
            }
        };
        let lo = || cells.iter().map(|cell| cell[0]).collect();
        let hi = || cells.iter().map(|cell| cell[cell.len() - 1]).collect();
        let codes = VALUES * shape.scale;
        match shape.kind {
            ColumnKind::Categorical => {
                let mut offsets = vec![0];
                offsets.extend(cells.iter().scan(0, |end, cell| {
                    *end += cell.len() as u32;
                    Some(*end)
                }));
                QuasiIdentifier::Categorical(Categorical {
                    offsets,
                    codes: cells.concat(),
                    cardinality: codes,
                    step: step(codes - 1),
                })
            }
            ColumnKind::Numeric => QuasiIdentifier::Numeric(Numeric {
                lo: lo(),
                hi: hi(),
                step: step(codes - 1),
            }),
            ColumnKind::Hierarchical => QuasiIdentifier::Hierarchical(Hierarchical {
                lo: lo(),
                hi: hi(),
                tree: tree(codes, shape.constant),
            }),
        }
    };
    let mut fingerprints = Fingerprints::new();
    for (_, fingerprint, _) in individuals {
        fingerprints.push(&mut fingerprint.clone());
    }
    let records = individuals.iter().map(|(_, _, records)| *records).collect();
    Block::new(
        shapes.iter().enumerate().map(column).collect(),
        fingerprints,
        records,
        5040,
    )
}

fn blocks(individuals: std::ops::Range<usize>) -> impl Strategy<Value = Block> {
    use ColumnKind::*;
    let kind = prop::sample::select(vec![Numeric, Categorical, Hierarchical]);
    let shape =
        (kind, 0..3u8, 0..3usize, 0..8u8).prop_map(|(kind, nullable, scale, constant)| Shape {
            kind,
            nullable: nullable == 0,
            scale: [1, 1, 37][scale],
            constant: constant == 0,
        });
    let individual = (
        prop::collection::vec((0..20u8, 0..VALUES, 0..VALUES), 4),
        prop::collection::vec(0..9u32, 0..5),
        1..6u32,
    );
    (
        prop::collection::vec(shape, 1..5),
        prop::collection::vec(individual, individuals),
        any::<bool>(),
    )
        .prop_map(|(shapes, individuals, contradictions)| {
            block(&shapes, &individuals, contradictions)
        })
}

fn satisfied(block: &Block, model: &dyn Model, class: &[u32]) -> bool {
    let mut tally = model.tally();
    for individual in class {
        tally.add(Member::of(block, *individual));
    }
    tally.satisfied()
}

/// The index gives the same classes as looking at everything; they are valid, and hold everybody once.
fn check(block: &Block, model: &dyn Model) -> Result<(), TestCaseError> {
    let classes = run(Danonyir::new(), block, model);
    prop_assert_eq!(&classes, &run(Danonyir::naive(), block, model));
    for class in &classes.classes {
        prop_assert!(satisfied(block, model, class));
    }
    let mut all = classes.classes.concat();
    all.extend(&classes.suppressed);
    all.sort_unstable();
    prop_assert!(all.iter().copied().eq(0..block.len() as u32));
    Ok(())
}

proptest! {
    #![proptest_config(crate::repeatable::cases(4000))]

    #[test]
    fn small_blocks(block in blocks(1..60), l in 2u64..7) {
        check(&block, eir(l).as_ref())?;
    }

    #[test]
    fn small_blocks_under_every_model(block in blocks(1..60), model in any_model()) {
        check(&block, model.as_ref())?;
    }

    #[test]
    fn small_blocks_under_a_model_that_one_more_member_can_break(block in blocks(1..60)) {
        check(&block, &Half)?;
    }
}

proptest! {
    #![proptest_config(crate::repeatable::cases(40))]

    #[test]
    fn larger_blocks(block in blocks(300..700), l in 2u64..7, model in any_model()) {
        check(&block, eir(l).as_ref())?;
        check(&block, &Half)?;
        check(&block, model.as_ref())?;
    }
}
