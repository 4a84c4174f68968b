//! Regions: the generalized quasi-identifier values of a class, and the distances between classes.

use super::{Block, Categorical, Hierarchical, NULL_CODE, Numeric, QuasiIdentifier};

/// What a set of individuals publishes as its quasi-identifiers (the *identity element* r̄ of Wang 2018, Section 2.2),
/// with the number of records that publish it and the loss of each.
///
/// Losses and distances are integers in units of [`Block::full`], so that ties are exact. The steps of a block are such
/// that no column loses more than [`Block::full`], and the sum over all columns fits in a `u64`.
///
/// A column in which all records are missing loses nothing; one with missing and present values is suppressed for
/// the whole class and loses [`Block::full`] (docs/theory/papers.md X6). A column whose step is zero has one value only and its
/// values lose nothing (E11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    cells: Vec<Cell>,
    records: u64,
    loss: u64,
}

/// The generalized value of one column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Cell {
    /// All values are missing.
    Null,
    /// All values lie between these codes, both included and both attained.
    Interval {
        /// The smallest code.
        lo: u32,
        /// The largest code.
        hi: u32,
    },
    /// The attained codes, sorted and distinct.
    Set(Vec<u32>),
    /// The smallest node of the column's hierarchy that covers all values.
    Node(u32),
    /// Some values are missing and some are not: nothing may be said about the column.
    Suppressed,
}

impl Region {
    /// The region of one individual: its own values.
    pub fn of(block: &Block, individual: u32) -> Self {
        let cells = block
            .quasi_identifiers()
            .iter()
            .map(|column| Cell::of(column, individual))
            .collect();
        let mut region = Self {
            cells,
            records: u64::from(block.records(individual)),
            loss: 0,
        };
        region.refresh_loss(block);
        region
    }

    /// The region of a class; `None` if it has no members.
    pub fn covering(block: &Block, members: &[u32]) -> Option<Self> {
        let (first, rest) = members.split_first()?;
        let mut region = Self::of(block, *first);
        for member in rest {
            region.include(block, *member);
        }
        Some(region)
    }

    /// The same region with these nodes of the columns' hierarchies instead of the smallest ones, where given. A column
    /// without values, or with some, stays as it is.
    pub fn with_nodes(mut self, block: &Block, nodes: &[Option<u32>]) -> Self {
        for (cell, node) in self.cells.iter_mut().zip(nodes) {
            if let (Cell::Node(smallest), Some(node)) = (cell, node) {
                *smallest = *node;
            }
        }
        self.refresh_loss(block);
        self
    }

    /// Generalizes both regions to one: δ(r̄₁, r̄₂) of Wang 2018, Section 2.2.
    pub fn extend(&mut self, block: &Block, other: &Region) {
        let columns = block.quasi_identifiers().iter();
        for ((cell, other), column) in self.cells.iter_mut().zip(&other.cells).zip(columns) {
            cell.extend(other, column);
        }
        self.records += other.records;
        self.refresh_loss(block);
    }

    /// Generalizes the region so that it covers one more individual.
    pub fn include(&mut self, block: &Block, individual: u32) {
        for (cell, column) in self.cells.iter_mut().zip(block.quasi_identifiers()) {
            cell.include(column, individual);
        }
        self.records += u64::from(block.records(individual));
        self.refresh_loss(block);
    }

    /// The generalized value of each column.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Number of records in the region: |Q|.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Loss of one record in this region against exact values (Wang 2018, Eqs. 11–13).
    pub fn loss(&self) -> u64 {
        self.loss
    }

    /// What all records of both regions lose when the regions become one (Wang 2018, Eqs. 16–18).
    ///
    /// ```text
    /// Dist(Q₁, Q₂) = |Q₁| · (L(Q₁Q₂) − L(Q₁)) + |Q₂| · (L(Q₁Q₂) − L(Q₂))
    /// ```
    pub fn distance(&self, block: &Block, other: &Region) -> u128 {
        let joined = sum(self
            .cells
            .iter()
            .zip(&other.cells)
            .zip(block.quasi_identifiers())
            .map(|((a, b), column)| a.loss_with(b, column, block.full())));
        joined_distance(
            joined,
            (self.records, self.loss),
            (other.records, other.loss),
        )
    }

    /// [`Region::distance`] to the region of one individual, without building that region.
    pub fn distance_to(&self, block: &Block, individual: u32) -> u128 {
        let (mut joined, mut own) = (0u64, 0u64);
        for (cell, column) in self.cells.iter().zip(block.quasi_identifiers()) {
            let (with, alone) = match column {
                QuasiIdentifier::Numeric(n) => cell.numeric_losses(n, individual, block.full()),
                QuasiIdentifier::Categorical(c) => {
                    cell.categorical_losses(c, individual, block.full())
                }
                QuasiIdentifier::Hierarchical(h) => {
                    cell.hierarchical_losses(h, individual, block.full())
                }
            };
            joined = joined.saturating_add(with);
            own = own.saturating_add(alone);
        }
        let records = u64::from(block.records(individual));
        joined_distance(joined, (self.records, self.loss), (records, own))
    }

    fn refresh_loss(&mut self, block: &Block) {
        self.loss = sum(self
            .cells
            .iter()
            .zip(block.quasi_identifiers())
            .map(|(cell, column)| cell.loss(column, block.full())));
    }
}

/// What each of two individuals loses in one column if both publish the same there.
pub fn loss_of_two(block: &Block, column: usize, a: u32, b: u32) -> u64 {
    let column = &block.quasi_identifiers()[column];
    let mut cell = Cell::of(column, a);
    if a != b {
        cell.include(column, b);
    }
    cell.loss(column, block.full())
}

/// What two groups of `(records, loss per record)` lose together when each record then loses `joined`.
fn joined_distance(joined: u64, a: (u64, u64), b: (u64, u64)) -> u128 {
    u128::from(a.0) * u128::from(joined.saturating_sub(a.1))
        + u128::from(b.0) * u128::from(joined.saturating_sub(b.1))
}

fn sum(losses: impl Iterator<Item = u64>) -> u64 {
    losses.fold(0, u64::saturating_add)
}

impl Cell {
    fn of(column: &QuasiIdentifier, individual: u32) -> Self {
        match column {
            QuasiIdentifier::Numeric(n) => {
                let i = individual as usize;
                match (n.lo[i], n.hi[i]) {
                    (NULL_CODE, _) => Self::Null,
                    // Some records of the individual have a value and some have none.
                    (_, NULL_CODE) => Self::Suppressed,
                    (lo, hi) => Self::Interval { lo, hi },
                }
            }
            QuasiIdentifier::Categorical(c) => match c.of(individual) {
                [] | [NULL_CODE] => Self::Null,
                [.., NULL_CODE] => Self::Suppressed,
                codes => Self::Set(codes.to_vec()),
            },
            QuasiIdentifier::Hierarchical(h) => {
                let i = individual as usize;
                match (h.lo[i], h.hi[i]) {
                    (NULL_CODE, _) => Self::Null,
                    (_, NULL_CODE) => Self::Suppressed,
                    (lo, hi) => Self::Node(h.tree.hierarchy.covering(lo, hi)),
                }
            }
        }
    }

    fn extend(&mut self, other: &Cell, column: &QuasiIdentifier) {
        match (&mut *self, other) {
            (Self::Null, Self::Null) => {}
            (Self::Interval { lo, hi }, Self::Interval { lo: l, hi: h }) => {
                *lo = (*lo).min(*l);
                *hi = (*hi).max(*h);
            }
            (Self::Set(codes), Self::Set(more)) => insert_all(codes, more),
            (Self::Node(node), Self::Node(other)) => *node = joined_node(column, *node, *other),
            _ => *self = Self::Suppressed,
        }
    }

    fn include(&mut self, column: &QuasiIdentifier, individual: u32) {
        match (&mut *self, column) {
            // A set is the one cell that is costly to build just for a moment.
            (Self::Set(codes), QuasiIdentifier::Categorical(c))
                if c.of(individual)
                    .last()
                    .is_some_and(|code| *code != NULL_CODE) =>
            {
                insert_all(codes, c.of(individual));
            }
            _ => self.extend(&Self::of(column, individual), column),
        }
    }

    /// Loss of one record that publishes this cell (Wang 2018, Eqs. 11 and 12).
    fn loss(&self, column: &QuasiIdentifier, full: u64) -> u64 {
        match self {
            Self::Null => 0,
            Self::Interval { lo, hi } => width_loss(step(column), *lo, *hi),
            Self::Set(codes) => set_loss(step(column), codes.len()),
            Self::Node(node) => node_loss(column, *node),
            Self::Suppressed => full,
        }
    }

    /// Loss of one record after the cell is united with `other`.
    fn loss_with(&self, other: &Cell, column: &QuasiIdentifier, full: u64) -> u64 {
        match (self, other) {
            (Self::Null, Self::Null) => 0,
            (Self::Interval { lo, hi }, Self::Interval { lo: l, hi: h }) => {
                width_loss(step(column), *lo.min(l), *hi.max(h))
            }
            (Self::Set(a), Self::Set(b)) => set_loss(step(column), union_len(a, b)),
            (Self::Node(a), Self::Node(b)) => node_loss(column, joined_node(column, *a, *b)),
            _ => full,
        }
    }

    /// Losses of a record after the cell is united with an individual's value, and of that value alone.
    fn numeric_losses(&self, column: &Numeric, individual: u32, full: u64) -> (u64, u64) {
        let i = individual as usize;
        match (self, column.lo[i], column.hi[i]) {
            (Self::Null, NULL_CODE, _) => (0, 0),
            (_, NULL_CODE, _) => (full, 0),
            (_, _, NULL_CODE) => (full, full),
            (Self::Interval { lo, hi }, l, h) => (
                width_loss(column.step, (*lo).min(l), (*hi).max(h)),
                width_loss(column.step, l, h),
            ),
            (_, l, h) => (full, width_loss(column.step, l, h)),
        }
    }

    fn hierarchical_losses(&self, column: &Hierarchical, individual: u32, full: u64) -> (u64, u64) {
        let i = individual as usize;
        match (self, column.lo[i], column.hi[i]) {
            (Self::Null, NULL_CODE, _) => (0, 0),
            (_, NULL_CODE, _) => (full, 0),
            (_, _, NULL_CODE) => (full, full),
            (Self::Node(node), lo, hi) => {
                let tree = &column.tree.hierarchy;
                let joined = tree.join(tree.join(*node, lo), hi);
                (column.tree.loss(joined), column.tree.span_loss(lo, hi))
            }
            (_, lo, hi) => (full, column.tree.span_loss(lo, hi)),
        }
    }

    fn categorical_losses(&self, column: &Categorical, individual: u32, full: u64) -> (u64, u64) {
        match (self, column.of(individual)) {
            (Self::Null, [] | [NULL_CODE]) => (0, 0),
            (_, [] | [NULL_CODE]) => (full, 0),
            (_, [.., NULL_CODE]) => (full, full),
            (Self::Set(codes), own) => (
                set_loss(column.step, union_len(codes, own)),
                set_loss(column.step, own.len()),
            ),
            (_, own) => (full, set_loss(column.step, own.len())),
        }
    }
}

fn step(column: &QuasiIdentifier) -> u64 {
    match column {
        QuasiIdentifier::Numeric(n) => n.step,
        QuasiIdentifier::Categorical(c) => c.step,
        // Its loss is that of a node.
        QuasiIdentifier::Hierarchical(_) => 0,
    }
}

fn node_loss(column: &QuasiIdentifier, node: u32) -> u64 {
    match column {
        QuasiIdentifier::Hierarchical(h) => h.tree.loss(node),
        _ => 0,
    }
}

/// The smallest node that covers both.
fn joined_node(column: &QuasiIdentifier, a: u32, b: u32) -> u32 {
    match column {
        QuasiIdentifier::Hierarchical(h) => {
            let tree = &h.tree.hierarchy;
            let ((first, last), (f, l)) = (tree.range(a), tree.range(b));
            tree.join(tree.join(a, f.min(first)), l.max(last))
        }
        _ => a,
    }
}

fn width_loss(step: u64, lo: u32, hi: u32) -> u64 {
    step.saturating_mul(u64::from(hi.saturating_sub(lo)))
}

fn set_loss(step: u64, codes: usize) -> u64 {
    step.saturating_mul(codes.saturating_sub(1) as u64)
}

fn insert_all(codes: &mut Vec<u32>, more: &[u32]) {
    for code in more {
        if let Err(at) = codes.binary_search(code) {
            codes.insert(at, *code);
        }
    }
}

/// Size of the union of two sorted sets.
fn union_len(a: &[u32], b: &[u32]) -> usize {
    if let [code] = b {
        return a.len() + usize::from(a.binary_search(code).is_err());
    }
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        common += usize::from(a[i] == b[j]);
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    a.len() + b.len() - common
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::table::example::patients;
    use crate::table::{Fingerprints, Hierarchy, LossTree};

    /// The block of the paper's running example and the index of each of its individuals 1–7.
    fn example() -> Block {
        patients([1, 2, 3, 4, 5, 6, 7])
    }

    fn class(block: &Block, numbers: &[u32]) -> Region {
        let members: Vec<u32> = numbers.iter().map(|number| number - 1).collect();
        Region::covering(block, &members).unwrap()
    }

    /// Distances in eighteenths from a class to individuals, checked in both ways of computing them.
    fn distances(block: &Block, class: &Region, numbers: &[u32]) -> Vec<u128> {
        let distance = |number: &u32| {
            let p = Region::of(block, number - 1);
            let distance = class.distance(block, &p);
            assert_eq!(distance, p.distance(block, class));
            assert_eq!(distance, class.distance_to(block, number - 1));
            distance
        };
        numbers.iter().map(distance).collect()
    }

    #[test]
    fn printed_distances_to_individual_6() {
        // Printed: 5.556, 1.500, 4.167, 1.111, 1.833, 0.833.
        let block = example();
        let q = class(&block, &[6]);
        assert_eq!(
            distances(&block, &q, &[1, 2, 3, 4, 5, 7]),
            [100, 27, 75, 20, 33, 15]
        );
    }

    #[test]
    fn printed_distances_to_individuals_6_and_7() {
        // Printed 1.389 for 4; 2.278 and 2.722 for 2 and 5; 7.501 and 5.834 for 1 and 3 are 7.5 and 5.833 (E14).
        let block = example();
        let q = class(&block, &[6, 7]);
        assert_eq!(
            distances(&block, &q, &[4, 1, 2, 3, 5]),
            [25, 135, 41, 105, 49]
        );
    }

    #[test]
    fn printed_distances_to_individual_3() {
        // Printed: 0.5 to individual 1, 8.778 to the class {4, 6, 7}.
        let block = example();
        let q = class(&block, &[3]);
        assert_eq!(distances(&block, &q, &[1]), [9]);
        assert_eq!(q.distance(&block, &class(&block, &[4, 6, 7])), 158);
    }

    #[test]
    fn the_regions_of_table_4() {
        let block = example();
        let q1 = class(&block, &[4, 6, 7]);
        assert_eq!(
            q1.cells(),
            [
                Cell::Set(vec![1]),
                Cell::Interval { lo: 33, hi: 34 },
                Cell::Set(vec![3, 5, 6])
            ]
        );
        assert_eq!((q1.records(), q1.loss()), (5, 2 + 2 * 3));
        let q2 = class(&block, &[1, 2, 3, 5]);
        assert_eq!(
            q2.cells(),
            [
                Cell::Set(vec![0, 1]),
                Cell::Interval { lo: 36, hi: 38 },
                Cell::Set(vec![0, 1, 2, 4])
            ]
        );
        assert_eq!((q2.records(), q2.loss()), (5, 18 + 2 * 2 + 3 * 3));
    }

    /// Two columns; individuals: (5, {1}), (NULL, NULL), (NULL, NULL), (7 and NULL, {1, NULL}), (5..=8, {0, 2}).
    fn with_nulls(step: u64) -> Block {
        let numeric = Numeric {
            lo: vec![5, NULL_CODE, NULL_CODE, 7, 5],
            hi: vec![5, NULL_CODE, NULL_CODE, NULL_CODE, 8],
            step,
        };
        let categorical = Categorical {
            offsets: vec![0, 1, 2, 3, 5, 7],
            codes: vec![1, NULL_CODE, NULL_CODE, 1, NULL_CODE, 0, 2],
            cardinality: 3,
            step,
        };
        Block::new(
            vec![
                QuasiIdentifier::Numeric(numeric),
                QuasiIdentifier::Categorical(categorical),
            ],
            Fingerprints::from_iter([[0], [1], [2], [3], [4]]),
            vec![1; 5],
            1000,
        )
    }

    #[test]
    fn missing_values_go_together_or_are_suppressed() {
        let block = with_nulls(10);
        let loss = |members: &[u32]| Region::covering(&block, members).unwrap().loss();
        assert_eq!(loss(&[1]), 0);
        assert_eq!(loss(&[1, 2]), 0);
        assert_eq!(loss(&[0, 1]), 2000);
        assert_eq!(loss(&[3]), 2000, "an individual with both is suppressed");
        assert_eq!(loss(&[1, 3]), 2000);
        assert_eq!(loss(&[4]), 30 + 10);
        assert_eq!(loss(&[0, 4]), 30 + 20);
        for a in 0..5 {
            let p = Region::of(&block, a);
            for b in 0..5 {
                let q = Region::of(&block, b);
                let joined = loss(&[a, b]);
                let distance = joined_distance(joined, (1, p.loss()), (1, q.loss()));
                assert_eq!(p.distance(&block, &q), distance);
                assert_eq!(p.distance_to(&block, b), distance);
            }
        }
    }

    #[test]
    fn hierarchies_generalize_to_the_smallest_node() {
        // ((0 1) (2 3)) 4: losses 0 for leaves, 5 and 6 for the pairs, 9 for both, 20 for all.
        let parents = [
            Some(7),
            Some(7),
            Some(8),
            Some(8),
            Some(6),
            None,
            Some(5),
            Some(9),
            Some(9),
            Some(5),
        ];
        let (hierarchy, numbers) = Hierarchy::from_parents(&parents).unwrap();
        let mut losses = vec![0; 10];
        for (node, loss) in [(7, 5), (8, 6), (9, 9), (5, 20)] {
            losses[numbers[node] as usize] = loss;
        }
        let leaf = |node: usize| hierarchy.range(numbers[node]).0;
        let column = Hierarchical {
            lo: vec![
                leaf(0),
                leaf(1),
                leaf(2),
                leaf(4),
                NULL_CODE,
                leaf(0),
                leaf(3),
            ],
            hi: vec![
                leaf(0),
                leaf(1),
                leaf(2),
                leaf(4),
                NULL_CODE,
                leaf(1),
                NULL_CODE,
            ],
            tree: LossTree {
                hierarchy: Arc::new(hierarchy.clone()),
                losses: Arc::new(losses),
            },
        };
        let n = column.lo.len() as u32;
        let block = Block::new(
            vec![QuasiIdentifier::Hierarchical(column)],
            (0..n).map(|i| [i]).collect(),
            vec![1; n as usize],
            20,
        );
        let region = |members: &[u32]| Region::covering(&block, members).unwrap();
        let loss = |members: &[u32]| region(members).loss();
        assert_eq!((loss(&[0]), loss(&[0, 1]), loss(&[5])), (0, 5, 5));
        assert_eq!((loss(&[1, 2]), loss(&[5, 2]), loss(&[0, 3])), (9, 9, 20));
        assert_eq!((loss(&[4]), loss(&[4, 0]), loss(&[6])), (0, 20, 20));
        assert_eq!(region(&[0, 1]).cells(), [Cell::Node(numbers[7])]);
        for a in 0..n {
            for b in 0..n {
                let (p, q) = (region(&[a]), region(&[b]));
                let distance = joined_distance(loss(&[a, b]), (1, p.loss()), (1, q.loss()));
                assert_eq!(p.distance(&block, &q), distance);
                assert_eq!(p.distance_to(&block, b), distance);
            }
        }
    }

    #[test]
    fn a_column_with_one_value_loses_nothing() {
        // docs/theory/papers.md E11: never a division by zero.
        let block = with_nulls(0);
        assert_eq!(Region::covering(&block, &[0, 4]).unwrap().loss(), 0);
        assert_eq!(Region::covering(&block, &[0, 1]).unwrap().loss(), 2000);
        assert_eq!(Region::covering(&block, &[]), None);
    }
}
