//! Count queries over anatomized tables (Yao 2021, Section 5.1), and how far their answers are off (Eq. 13).

/// An estimate of a count query, added up group by group (Eq. 11).
///
/// In each group, the share of sub-tuples that satisfy the query's condition on a sub-table stands for the probability
/// that a member does, and conditions on different sub-tables count as independent:
///
/// ```text
///   Σ over groups   n₁/m · n₂/m · … · n_k/m · n_SA
/// ```
///
/// where m is the size of the group, n_i its members whose sub-tuple in sub-table i satisfies the condition on it (all m
/// without a condition), and n_SA those whose sensitive value does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountEstimate {
    value: f64,
    exact: Option<(u128, u128)>,
}

impl Default for CountEstimate {
    fn default() -> Self {
        Self {
            value: 0.0,
            exact: Some((0, 1)),
        }
    }
}

impl CountEstimate {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group of `individuals`: how many satisfy the condition on each sub-table, and that on the sensitive value.
    pub fn add(&mut self, individuals: u64, matching: &[u64], sensitive: u64) {
        if individuals == 0 {
            return;
        }
        let shares = matching.iter().map(|n| *n as f64 / individuals as f64);
        self.value += sensitive as f64 * shares.product::<f64>();
        let term = matching
            .iter()
            .try_fold((u128::from(sensitive), 1), |term, n| {
                times(term, (u128::from(*n), u128::from(individuals)))
            });
        self.exact = self.exact.zip(term).and_then(|(sum, term)| plus(sum, term));
    }

    /// Adds what was estimated from other groups.
    pub fn merge(&mut self, other: &Self) {
        self.value += other.value;
        self.exact = self.exact.zip(other.exact).and_then(|(a, b)| plus(a, b));
    }

    /// The estimate, to the precision of floating point.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// Numerator and denominator in lowest terms, as long as both fit into 128 bits; with many groups of different
    /// sizes they do not.
    pub fn exact(&self) -> Option<(u128, u128)> {
        self.exact
    }
}

fn times(a: (u128, u128), b: (u128, u128)) -> Option<(u128, u128)> {
    // Crosswise, so that the products are in lowest terms and as small as can be.
    let (a, b) = (reduced((a.0, b.1)), reduced((b.0, a.1)));
    Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
}

fn plus(a: (u128, u128), b: (u128, u128)) -> Option<(u128, u128)> {
    let common = gcd(a.1, b.1);
    let left = a.0.checked_mul(b.1 / common)?;
    let right = b.0.checked_mul(a.1 / common)?;
    let denominator = a.1.checked_mul(b.1 / common)?;
    Some(reduced((left.checked_add(right)?, denominator)))
}

fn reduced(fraction: (u128, u128)) -> (u128, u128) {
    let divisor = gcd(fraction.0, fraction.1).max(1);
    (fraction.0 / divisor, fraction.1 / divisor)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// |Q(T) − Q(T*)| / Q(T) (Eq. 13); `None` where nobody satisfies the query, which the equation does not cover.
pub fn relative_error(truth: u64, estimate: f64) -> Option<f64> {
    (truth > 0).then(|| (truth as f64 - estimate).abs() / truth as f64)
}

/// The relative errors of many queries.
#[derive(Debug, Clone, Default)]
pub struct RelativeErrors {
    errors: Vec<f64>,
    without_answer: usize,
}

impl RelativeErrors {
    /// Adds a query by its answer over the table and its estimate.
    pub fn add(&mut self, truth: u64, estimate: f64) {
        match relative_error(truth, estimate) {
            Some(error) => self.errors.push(error),
            None => self.without_answer += 1,
        }
    }

    /// How many queries count.
    pub fn queries(&self) -> usize {
        self.errors.len()
    }

    /// How many queries were left out because nobody satisfies them.
    pub fn without_answer(&self) -> usize {
        self.without_answer
    }

    /// The mean relative error.
    pub fn mean(&self) -> Option<f64> {
        (!self.errors.is_empty())
            .then(|| self.errors.iter().sum::<f64>() / self.errors.len() as f64)
    }

    /// The median relative error, the smaller of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.errors.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{self, AGE, JOB};
    use super::super::{Groups, publish};
    use super::*;

    /// Age above 30, doctors, a salary of 6,700: how many, by the given groups of Table 1.
    fn doctors(groups: Vec<Vec<u32>>) -> CountEstimate {
        let individuals = example::table_1();
        let groups = Groups::new(groups);
        let gids: Vec<u64> = (1..).take(groups.len()).collect();
        let published = publish(&individuals, &example::table_4(), &groups, &gids).unwrap();
        let code = |column: usize, row: u32| individuals.columns()[column][row as usize];
        let matches = |table: usize, row: &super::super::Row| match table {
            0 => code(AGE, row.individual) > 0,
            _ => code(JOB, row.individual) == 0,
        };
        published.estimate(matches, |row| {
            individuals.sensitive()[row.individual as usize] == 5
        })
    }

    #[test]
    fn the_papers_query_is_nine_sixteenths_with_groups() {
        let estimate = doctors(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
        assert_eq!(estimate.exact(), Some((9, 16)));
        assert_eq!(estimate.value(), 9.0 / 16.0);
    }

    #[test]
    fn and_nine_thirty_seconds_without() {
        let estimate = doctors(vec![(0..8).collect()]);
        assert_eq!(estimate.exact(), Some((9, 32)));
        assert_eq!(estimate.value(), 9.0 / 32.0);
    }

    #[test]
    fn a_query_without_conditions_counts_everybody() {
        let mut estimate = CountEstimate::new();
        estimate.add(5, &[5, 5, 5], 5);
        estimate.add(0, &[0, 0, 0], 0);
        let mut other = CountEstimate::new();
        other.add(3, &[3, 3, 3], 3);
        estimate.merge(&other);
        assert_eq!((estimate.value(), estimate.exact()), (8.0, Some((8, 1))));
    }

    #[test]
    fn fractions_that_no_longer_fit_are_left_out() {
        let mut estimate = CountEstimate::new();
        for size in 1..400 {
            estimate.add(size, &[1, 1, 1], 1);
        }
        assert_eq!(estimate.exact(), None);
        let expected: f64 = (1..400).map(|size| f64::from(size).powi(-3)).sum();
        assert!((estimate.value() - expected).abs() < 1e-12);
    }

    #[test]
    fn errors_are_relative_to_the_truth() {
        assert_eq!(relative_error(1, 9.0 / 16.0), Some(7.0 / 16.0));
        assert_eq!(relative_error(0, 3.0), None);
        let mut errors = RelativeErrors::default();
        assert_eq!((errors.mean(), errors.median()), (None, None));
        for (truth, estimate) in [(4, 5.0), (4, 2.0), (0, 1.0), (10, 10.0)] {
            errors.add(truth, estimate);
        }
        assert_eq!((errors.queries(), errors.without_answer()), (3, 1));
        assert_eq!((errors.mean(), errors.median()), (Some(0.25), Some(0.25)));
    }
}
