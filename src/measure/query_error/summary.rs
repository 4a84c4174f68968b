//! How far estimates are from the truth.

/// The error of an estimate relative to the exact answer, or to the floor where that is larger (Wang 2018, section 5.1).
///
/// `None` where both are 0: no error can be relative to nothing.
pub fn relative_error(estimate: f64, exact: f64, floor: f64) -> Option<f64> {
    let base = exact.abs().max(floor);
    (base > 0.0).then(|| (estimate - exact).abs() / base)
}

/// The width of an answer's bounds relative to the exact answer, or to the floor where that is larger: R_error of Li 2020,
/// section 4.2, which is no error (docs/theory/papers.md L9).
///
/// `None` where both are 0.
pub fn relative_width(lower: f64, upper: f64, exact: f64, floor: f64) -> Option<f64> {
    let base = exact.abs().max(floor);
    (base > 0.0).then(|| (upper - lower) / base)
}

/// Errors of a workload in few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of queries.
    pub queries: u64,
    /// Queries whose exact answer is 0 and that therefore have no error.
    pub without_error: u64,
    /// The mean error.
    pub mean: Option<f64>,
    /// The smallest error that half of the queries do not exceed.
    pub median: Option<f64>,
    /// The smallest error that 95 % of the queries do not exceed.
    pub p95: Option<f64>,
    /// The largest error.
    pub max: Option<f64>,
}

impl Summary {
    /// Sums up errors; `None` is a query without one.
    pub fn of(errors: &[Option<f64>]) -> Self {
        let mut known: Vec<f64> = errors.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let n = known.len();
        // Nearest rank: the smallest error such that at least this percentage of all is not larger.
        let percentile =
            |percent: usize| known.get((percent * n).div_ceil(100).max(1) - 1).copied();
        Self {
            queries: errors.len() as u64,
            without_error: (errors.len() - n) as u64,
            mean: (n > 0).then(|| known.iter().sum::<f64>() / n as f64),
            median: percentile(50),
            p95: percentile(95),
            max: known.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let errors: Vec<Option<f64>> = (1..=100)
            .rev()
            .map(|i| Some(f64::from(i)))
            .chain([None])
            .collect();
        let summary = Summary::of(&errors);
        assert_eq!((summary.queries, summary.without_error), (101, 1));
        assert_eq!(summary.mean, Some(50.5));
        assert_eq!(summary.median, Some(50.0));
        assert_eq!(summary.p95, Some(95.0));
        assert_eq!(summary.max, Some(100.0));
        assert_eq!(Summary::of(&[None]).median, None);
        assert_eq!(Summary::of(&[Some(2.0)]).p95, Some(2.0));
    }

    #[test]
    fn errors() {
        assert_eq!(relative_error(4.0, 5.0, 0.0), Some(0.2));
        assert_eq!(relative_error(1.0, 0.0, 0.0), None);
        assert_eq!(relative_error(1.0, 0.0, 10.0), Some(0.1));
        assert_eq!(relative_width(80.0, 170.0, 100.0, 0.0), Some(0.9));
        assert_eq!(relative_width(0.0, 1.0, 0.0, 0.0), None);
    }
}
