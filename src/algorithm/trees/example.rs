//! Small random blocks with all kinds of columns, for tests.

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::table::{
    Block, Categorical, Fingerprints, Hierarchical, Hierarchy, LossTree, NULL_CODE, Numeric,
    QuasiIdentifier,
};

/// The hierarchy in which each node has the given parent; `u32::MAX` is the root's.
/// Leaves are numbered depth-first.
pub(in crate::algorithm) fn hierarchy(parents: &[u32], full: u64) -> LossTree {
    let parents: Vec<Option<u32>> = parents
        .iter()
        .map(|parent| Some(*parent).filter(|p| *p != u32::MAX))
        .collect();
    let (hierarchy, _) = Hierarchy::from_parents(&parents).unwrap();
    let steps = u64::from(hierarchy.leaves().max(2) - 1);
    let loss = |node| full * u64::from(hierarchy.size(node) - 1) / steps;
    LossTree {
        losses: Arc::new((0..hierarchy.len()).map(loss).collect()),
        hierarchy: Arc::new(hierarchy),
    }
}

/// A column over a hierarchy, by first and last leaf.
pub(in crate::algorithm) fn hierarchical(
    lo: &[u32],
    hi: &[u32],
    tree: &LossTree,
) -> QuasiIdentifier {
    QuasiIdentifier::Hierarchical(Hierarchical {
        lo: lo.to_vec(),
        hi: hi.to_vec(),
        tree: tree.clone(),
    })
}

/// Up to 30 individuals, one to four columns of any kind, some with missing or contradicting values, up to three
/// values and records each.
pub(in crate::algorithm) fn block(seed: u64) -> Block {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let n = rng.random_range(1..=30);
    let contradictions = rng.random_bool(0.3);
    let columns = rng.random_range(1..=4);
    let columns = (0..columns)
        .map(|_| column(&mut rng, n, contradictions))
        .collect();
    let values = rng.random_range(2..=6);
    let mut fingerprints = Fingerprints::new();
    let mut records = vec![];
    for _ in 0..n {
        let shown = if rng.random_bool(0.7) {
            1
        } else {
            rng.random_range(1..=3)
        };
        let mut codes: Vec<u32> = (0..shown).map(|_| rng.random_range(0..values)).collect();
        records.push(shown);
        fingerprints.push(&mut codes);
    }
    Block::new(columns, fingerprints, records, 60)
}

fn column(rng: &mut ChaCha8Rng, n: usize, contradictions: bool) -> QuasiIdentifier {
    let (kind, missing) = (rng.random_range(0..4), rng.random_bool(0.3));
    let tree = random_tree(rng);
    let leaves = match kind {
        0 | 1 => tree.hierarchy.leaves(),
        2 => 21,
        _ => 4,
    };
    let ends: Vec<(u32, u32)> = (0..n)
        .map(|_| {
            let (a, b) = (rng.random_range(0..leaves), rng.random_range(0..leaves));
            match rng.random_range(0..10) {
                0 if missing => (NULL_CODE, NULL_CODE),
                1 if missing && contradictions => (a, NULL_CODE),
                2 if contradictions => (a.min(b), a.max(b)),
                _ => (a, a),
            }
        })
        .collect();
    let (lo, hi): (Vec<u32>, Vec<u32>) = ends.iter().copied().unzip();
    match kind {
        0 | 1 => hierarchical(&lo, &hi, &tree),
        2 => QuasiIdentifier::Numeric(Numeric { lo, hi, step: 3 }),
        _ => {
            let (mut offsets, mut codes) = (vec![0], vec![]);
            for (lo, hi) in ends {
                codes.push(lo);
                codes.extend((hi != lo).then_some(hi));
                offsets.push(codes.len() as u32);
            }
            QuasiIdentifier::Categorical(Categorical {
                offsets,
                codes,
                cardinality: leaves,
                step: 20,
            })
        }
    }
}

/// Balanced or not, with two to eight leaves.
fn random_tree(rng: &mut ChaCha8Rng) -> LossTree {
    let leaves = rng.random_range(2..=8u32);
    let mut parents = vec![u32::MAX; leaves as usize];
    // Neighbours get a parent until one node is left; in between, some wait a round.
    let mut level: Vec<u32> = (0..leaves).collect();
    while level.len() > 1 {
        let (mut next, mut at) = (vec![], 0);
        while at < level.len() {
            let take = rng.random_range(1..=3).min(level.len() - at);
            if take == 1 && rng.random_bool(0.6) {
                next.push(level[at]);
            } else {
                let parent = parents.len() as u32;
                parents.push(u32::MAX);
                level[at..at + take]
                    .iter()
                    .for_each(|n| parents[*n as usize] = parent);
                next.push(parent);
            }
            at += take;
        }
        level = next;
        if parents.len() > 60 {
            let root = parents.len() as u32;
            parents.push(u32::MAX);
            level.iter().for_each(|n| parents[*n as usize] = root);
            level = vec![root];
        }
    }
    hierarchy(&parents, 60)
}
