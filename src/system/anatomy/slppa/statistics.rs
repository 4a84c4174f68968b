//! What table division needs to know of the columns: how much each tells, and how they hang together.

mod bins;
mod values;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use self::bins::{Bins, SLOTS};
use self::values::Values;
use super::mix::{NumberMap, mix};

/// The position of a missing value, which is a value of its own and never shares a bin.
pub const MISSING: u64 = u64::MAX;

/// Counts of columns and of pairs of columns, in one pass and in bounded memory.
///
/// Parts of a table may be counted apart and merged; how the table was cut does not matter. A value is given as its
/// *position*, a number that equal values share: [`position_of_i64`] and [`position_of_f64`] keep the order of numbers,
/// [`position_of_bytes`] scatters anything else.
///
/// # Bins
/// Entropies (Yao 2021, Eq. 9) are those of exact values. Contingency (Eq. 10) is counted over at most 64 bins per
/// column and one for missing values, because a column of nearly unique values hangs together with every other
/// (docs/theory/papers.md S9). Bins have equal widths, a power of two of positions, on a grid that starts at 0; the width is
/// the smallest for which no more than 64 bins are occupied. So integers that lie close share a bin, floating-point
/// numbers share one with numbers of about the same size, and categories beyond 64 share one at random.
///
/// # Memory
/// Per column up to 65,536 counted values, per pair of columns 34 kB. If a column has more different values, its entropy
/// is estimated from those whose hash is small.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DivisionStatistics {
    individuals: u64,
    values: Vec<Values>,
    bins: Vec<Bins>,
    /// Row-major tables of `SLOTS` × `SLOTS`, for the pairs (0, 1), (0, 2), (1, 2), (0, 3) …
    pairs: Vec<Vec<u64>>,
}

/// Weights of columns and coefficients of pairs of columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Associations {
    /// How many individuals were counted.
    pub individuals: u64,
    /// The entropy of each column in bits (Yao 2021, Eq. 9).
    pub weights: Vec<f64>,
    /// The number of different values of each column; an estimate beyond 65,536.
    pub distinct: Vec<u64>,
    /// The number of bins of each column over which contingency was counted, with that of missing values.
    pub bins: Vec<usize>,
    /// The mean-square contingency coefficient φ² of each pair of columns (Eq. 10), between 0 and 1.
    pub coefficients: Vec<Vec<f64>>,
}

/// The position of a whole number, or of anything that is counted in whole numbers, such as days.
pub fn position_of_i64(value: i64) -> u64 {
    // The largest number shares the position of the second largest: the last one means "missing".
    (value.cast_unsigned() ^ (1 << 63)).min(MISSING - 1)
}

/// The position of a floating-point number; NaN is missing, and both zeros are one.
pub fn position_of_f64(value: f64) -> u64 {
    if value.is_nan() {
        return MISSING;
    }
    let bits = (value + 0.0).to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | (1 << 63)
    };
    ordered.min(MISSING - 1)
}

/// The position of a value without an order, from bytes that equal values share.
pub fn position_of_bytes(bytes: &[u8]) -> u64 {
    let mut position = mix(bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        position = mix(position ^ u64::from_le_bytes(word));
    }
    position.min(MISSING - 1)
}

/// The positions of a column's different values, in the order in which they come.
pub(super) struct Numbered {
    positions: Vec<u64>,
    /// How many individuals have each.
    counts: Vec<u64>,
    /// Which of them each individual has.
    of: Vec<u32>,
}

impl Numbered {
    /// Of values that are numbered already, given their positions and the number that each individual has: beyond all
    /// positions for a missing one.
    pub fn of_values(mut positions: Vec<u64>, mut of: Vec<u32>) -> Self {
        let known = positions.len() as u32;
        let mut counts = vec![0; positions.len() + 1];
        for number in &mut of {
            *number = (*number).min(known);
            counts[*number as usize] += 1;
        }
        match counts.last() {
            Some(0) => drop(counts.pop()),
            _ => positions.push(MISSING),
        }
        Self {
            positions,
            counts,
            of,
        }
    }

    fn new(column: &[u64]) -> Self {
        let (mut positions, mut counts) = (vec![], vec![]);
        let mut of = Vec::with_capacity(column.len());
        let mut known: NumberMap<u32> = NumberMap::default();
        let mut last = None;
        for position in column {
            let number = match last {
                Some((before, number)) if before == *position => number,
                _ => *known.entry(*position).or_insert_with(|| {
                    positions.push(*position);
                    counts.push(0);
                    positions.len() as u32 - 1
                }),
            };
            last = Some((*position, number));
            counts[number as usize] += 1;
            of.push(number);
        }
        Self {
            positions,
            counts,
            of,
        }
    }
}

impl DivisionStatistics {
    /// Nothing counted yet.
    pub fn new(columns: usize) -> Self {
        Self {
            individuals: 0,
            values: vec![Values::default(); columns],
            bins: vec![Bins::default(); columns],
            pairs: vec![vec![0; SLOTS * SLOTS]; columns * columns.saturating_sub(1) / 2],
        }
    }

    /// Counts individuals, given as one slice of positions per column.
    ///
    /// Individuals beyond the shortest slice are not counted, nor columns beyond those announced.
    pub fn update(&mut self, columns: &[&[u64]]) {
        let rows = columns.iter().map(|c| c.len()).min().unwrap_or(0);
        let columns = columns.iter().map(|column| Numbered::new(&column[..rows]));
        self.count(rows, &columns.collect::<Vec<_>>());
    }

    /// Counts so many individuals.
    pub(super) fn count(&mut self, individuals: usize, columns: &[Numbered]) {
        self.individuals += individuals as u64;
        let mut slots: Vec<Vec<u8>> = Vec::with_capacity(self.bins.len());
        for (c, numbered) in columns.iter().enumerate().take(self.bins.len()) {
            self.values[c].count(numbered);
            if self.bins[c].admit(&numbered.positions) {
                self.fold(c);
            }
            let slot_of = self.bins[c].slots(&numbered.positions);
            let of = numbered.of.iter();
            slots.push(of.map(|number| slot_of[*number as usize]).collect());
        }
        for (b, second) in slots.iter().enumerate() {
            for (a, first) in slots.iter().enumerate().take(b) {
                let table = &mut self.pairs[pair(a, b)];
                for (x, y) in first.iter().zip(second) {
                    table[usize::from(*x) * SLOTS + usize::from(*y)] += 1;
                }
            }
        }
    }

    /// Adds what was counted elsewhere, of the same columns.
    pub fn merge(&mut self, mut other: Self) {
        self.individuals += other.individuals;
        for c in 0..self.bins.len().min(other.bins.len()) {
            self.values[c].merge(&other.values[c]);
            if self.bins[c].admit_bins(&other.bins[c]) {
                self.fold(c);
            }
            other.bins[c].widen_to(&self.bins[c]);
            other.fold(c);
        }
        let columns = self.bins.len().min(other.bins.len());
        for b in 0..columns {
            for a in 0..b {
                let (mine, theirs) = (&mut self.pairs[pair(a, b)], &other.pairs[pair(a, b)]);
                let (first, second) = (
                    self.bins[a].slots_of(&other.bins[a]),
                    self.bins[b].slots_of(&other.bins[b]),
                );
                for (x, to) in first.iter().enumerate() {
                    for (y, and) in second.iter().enumerate() {
                        mine[usize::from(*to) * SLOTS + usize::from(*and)] += theirs[x * SLOTS + y];
                    }
                }
            }
        }
    }

    /// Moves the counts of a column's old slots to its new ones.
    fn fold(&mut self, column: usize) {
        let Some(moves) = self.bins[column].take_moves() else {
            return;
        };
        for other in (0..self.bins.len()).filter(|o| *o != column) {
            let first = column < other;
            let table = &mut self.pairs[pair(column.min(other), column.max(other))];
            let mut folded = vec![0; SLOTS * SLOTS];
            for x in 0..SLOTS {
                for y in 0..SLOTS {
                    let count = table[x * SLOTS + y];
                    if count > 0 {
                        let old = if first { x } else { y };
                        let new = usize::from(moves[old]);
                        let (x, y) = if first { (new, y) } else { (x, new) };
                        folded[x * SLOTS + y] += count;
                    }
                }
            }
            *table = folded;
        }
    }

    /// How many individuals have the most frequent tuple of these columns, at most: as many as have the most frequent
    /// value of any of them, or the most frequent pair of bins of any two.
    pub fn tuple_at_most(&self, columns: &[usize]) -> u64 {
        let single = columns.iter().filter_map(|c| self.values[*c].most());
        let pairs = columns.iter().flat_map(|b| {
            let before = columns.iter().filter(move |a| *a < b);
            before.filter_map(|a| self.pairs[pair(*a, *b)].iter().copied().max())
        });
        single.chain(pairs).min().unwrap_or(self.individuals)
    }

    /// Bytes held, roughly.
    pub fn size(&self) -> usize {
        let values: usize = self.values.iter().map(Values::size).sum();
        values + self.pairs.len() * SLOTS * SLOTS * size_of::<u64>()
    }

    /// Weights and coefficients of what was counted.
    pub fn finish(&self) -> Associations {
        let columns = 0..self.bins.len();
        let coefficient = |a: usize, b: usize| match a.cmp(&b) {
            Ordering::Less => contingency(&self.pairs[pair(a, b)]),
            Ordering::Equal => 1.0,
            Ordering::Greater => contingency(&self.pairs[pair(b, a)]),
        };
        let coefficients = columns
            .clone()
            .map(|a| columns.clone().map(|b| coefficient(a, b)).collect())
            .collect();
        let individuals = self.individuals;
        Associations {
            individuals,
            weights: self.values.iter().map(|v| v.entropy(individuals)).collect(),
            distinct: self.values.iter().map(Values::distinct).collect(),
            bins: self.bins.iter().map(Bins::occupied).collect(),
            coefficients,
        }
    }
}

/// Where the pair (a, b), a < b, stands among all pairs.
fn pair(a: usize, b: usize) -> usize {
    b * (b - 1) / 2 + a
}

/// φ² (Yao 2021, Eq. 10), which is (Σ n_ij² / (n_i · n_j) − 1) / (min(m₁, m₂) − 1); 0 where a column has one value.
fn contingency(table: &[u64]) -> f64 {
    let mut rows = [0u64; SLOTS];
    let mut columns = [0u64; SLOTS];
    for x in 0..SLOTS {
        for y in 0..SLOTS {
            rows[x] += table[x * SLOTS + y];
            columns[y] += table[x * SLOTS + y];
        }
    }
    let occupied = |totals: &[u64]| totals.iter().filter(|n| **n > 0).count();
    let least = occupied(&rows).min(occupied(&columns));
    if least < 2 {
        return 0.0;
    }
    let mut terms = Vec::new();
    for x in 0..SLOTS {
        for y in 0..SLOTS {
            let count = table[x * SLOTS + y] as f64;
            if count > 0.0 {
                terms.push(count / rows[x] as f64 * (count / columns[y] as f64));
            }
        }
    }
    // Sums of floating-point numbers depend on their order, and the order of slots on that of the input.
    terms.sort_unstable_by(f64::total_cmp);
    ((terms.iter().sum::<f64>() - 1.0) / (least - 1) as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counted(columns: &[Vec<u64>]) -> DivisionStatistics {
        let mut statistics = DivisionStatistics::new(columns.len());
        let slices: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        statistics.update(&slices);
        statistics
    }

    /// Eq. 9 and Eq. 10 word by word, for columns that need no bins.
    fn plain(columns: &[Vec<u64>]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let n = columns[0].len() as f64;
        let distinct = |c: &Vec<u64>| {
            let mut values = c.clone();
            values.sort_unstable();
            values.dedup();
            values
        };
        let share = |c: &Vec<u64>, v: u64| c.iter().filter(|x| **x == v).count() as f64 / n;
        let entropy = |c: &Vec<u64>| {
            let terms = distinct(c).into_iter().map(|v| {
                let p = share(c, v);
                -p * p.log2()
            });
            terms.sum::<f64>()
        };
        let phi = |a: &Vec<u64>, b: &Vec<u64>| {
            let (x, y) = (distinct(a), distinct(b));
            let mut sum = 0.0;
            for v in &x {
                for w in &y {
                    let both = a.iter().zip(b).filter(|(p, q)| (*p, *q) == (v, w)).count();
                    let independent = share(a, *v) * share(b, *w);
                    sum += (both as f64 / n - independent).powi(2) / independent;
                }
            }
            match x.len().min(y.len()) {
                1 => 0.0,
                m => sum / (m - 1) as f64,
            }
        };
        let pairs = columns
            .iter()
            .map(|a| columns.iter().map(|b| phi(a, b)).collect());
        (columns.iter().map(entropy).collect(), pairs.collect())
    }

    proptest! {
        #![proptest_config(crate::repeatable::cases(256))]

        #[test]
        fn few_values_agree_with_the_equations(
            rows in prop::collection::vec((0u64..3, 0u64..5, 7u64..8, 0u64..40), 1..60)
        ) {
            let columns: Vec<Vec<u64>> = vec![
                rows.iter().map(|r| r.0).collect(),
                rows.iter().map(|r| r.1).collect(),
                rows.iter().map(|r| r.2).collect(),
                rows.iter().map(|r| r.3).collect(),
            ];
            let found = counted(&columns).finish();
            let (weights, coefficients) = plain(&columns);
            for a in 0..4 {
                prop_assert!((found.weights[a] - weights[a]).abs() < 1e-9);
                for b in (0..4).filter(|b| *b != a) {
                    prop_assert!((found.coefficients[a][b] - coefficients[a][b]).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn the_order_and_the_parts_do_not_matter(
            rows in prop::collection::vec((any::<u64>(), -500i64..500, 0u64..3, any::<bool>()), 1..400),
            cut in 0usize..400,
        ) {
            let columns = |rows: &[(u64, i64, u64, bool)]| vec![
                rows.iter().map(|r| r.0).collect::<Vec<u64>>(),
                rows.iter().map(|r| if r.3 { MISSING } else { position_of_i64(r.1) }).collect(),
                rows.iter().map(|r| r.2).collect(),
            ];
            let whole = counted(&columns(&rows)).finish();
            let mut reversed = rows.clone();
            reversed.reverse();
            prop_assert_eq!(&counted(&columns(&reversed)).finish(), &whole);
            let (left, right) = rows.split_at(cut.min(rows.len()));
            let mut merged = counted(&columns(left));
            merged.merge(counted(&columns(right)));
            prop_assert_eq!(&merged.finish(), &whole);
        }
    }

    #[test]
    fn many_values_share_bins() {
        // Unique numbers would have a coefficient of 1 with everything.
        let unique: Vec<u64> = (0..5000).map(position_of_i64).collect();
        let other: Vec<u64> = (0..5000).map(|i| mix(i) % 2).collect();
        let found = counted(&[unique, other]).finish();
        assert_eq!((found.distinct[0], found.bins[0]), (5000, 40));
        assert!(found.coefficients[0][1] < 0.05);
        // Missing values never share a bin.
        let column: Vec<u64> = (0..5000)
            .map(|i| if i % 2 == 0 { MISSING } else { mix(i) })
            .collect();
        let parity: Vec<u64> = (0..5000).map(|i| i % 2).collect();
        assert!(counted(&[column, parity]).finish().coefficients[0][1] > 0.999);
    }

    #[test]
    fn entropies_of_very_many_values_are_near() {
        let column: Vec<u64> = (0..400_000).map(|i| mix(i / 2)).collect();
        let found = counted(&[column]).finish();
        assert!((found.weights[0] - 200_000f64.log2()).abs() < 0.3);
        assert!(found.distinct[0].abs_diff(200_000) < 4_000);
    }

    #[test]
    fn a_column_of_one_value_hangs_together_with_nothing() {
        let found = counted(&[vec![4; 9], (0..9).collect()]).finish();
        assert_eq!((found.weights[0], found.coefficients[0][1]), (0.0, 0.0));
        let empty = DivisionStatistics::new(2).finish();
        assert_eq!((empty.weights[0], empty.coefficients[0][1]), (0.0, 0.0));
    }

    #[test]
    fn counts_can_be_sent_elsewhere() {
        let column =
            |from: u64| -> Vec<u64> { (from..from + 300).map(mix).chain([MISSING]).collect() };
        let mut here = counted(&[column(0), (0..301).map(|i| i % 7).collect()]);
        let there = counted(&[column(200), (0..301).map(|i| i % 5).collect()]);
        let sent = serde_json::to_vec(&there).unwrap();
        let mut also = here.clone();
        also.merge(serde_json::from_slice(&sent).unwrap());
        here.merge(there);
        assert_eq!(also.finish(), here.finish());
    }

    #[test]
    fn positions_keep_the_order_of_numbers() {
        let floats = [f64::NEG_INFINITY, -2.5, -0.0, 1e-9, 3.0, f64::INFINITY];
        let positions: Vec<u64> = floats.iter().map(|f| position_of_f64(*f)).collect();
        assert!(positions.is_sorted_by(|a, b| a < b));
        assert_eq!(position_of_f64(0.0), position_of_f64(-0.0));
        assert_eq!(position_of_f64(f64::NAN), MISSING);
        assert!(position_of_i64(-3) < position_of_i64(2));
        assert!(position_of_i64(i64::MAX) < MISSING);
        assert_ne!(position_of_bytes(b"a"), position_of_bytes(b"a\0"));
    }
}
