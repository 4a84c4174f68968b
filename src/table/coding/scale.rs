//! Losses as integers over a common denominator, so that ties are exact and runs repeat.

use super::{Domain, Domains};

/// Largest common denominator, and so the precision where the exact one would be larger.
const MAX_FULL: u64 = 1 << 34;

/// The common denominator of all losses and each column's share of it per step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Loss of one suppressed cell.
    pub full: u64,
    /// Loss of one step per column; 0 where a column has only one value.
    pub steps: Vec<u64>,
}

impl Scale {
    /// The scale for a block of so many records. Sums over all its cells fit into 63 bits.
    pub fn new(domains: &Domains, records: u64) -> Self {
        let counts: Vec<u64> = domains.0.iter().map(Domain::steps).collect();
        let cells = u128::from(records.max(1)) * counts.len().max(1) as u128;
        let limit = ((1u128 << 63) / cells).clamp(1, u128::from(MAX_FULL)) as u64;
        let exact = counts
            .iter()
            .filter(|&&n| n > 0)
            .try_fold(1u64, |lcm, &n| lcm_within(lcm, n, limit));
        let full = exact.unwrap_or(limit);
        let step = |n: &u64| if *n == 0 { 0 } else { (full / n).max(1) };
        Self {
            full,
            steps: counts.iter().map(step).collect(),
        }
    }
}

fn lcm_within(a: u64, b: u64, limit: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).filter(|lcm| *lcm <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_domains_are_exact() {
        // Gender (2 values), age 30..39, postcode (7 values): Wang 2018, running example.
        let domains = Domains(vec![
            Domain::Categories(2),
            Domain::Integer(30, 39),
            Domain::Categories(7),
        ]);
        let scale = Scale::new(&domains, 10);
        assert_eq!(scale.full, 18);
        assert_eq!(scale.steps, [18, 2, 3]);
    }

    #[test]
    fn large_denominators_are_approximated() {
        let domains = Domains(vec![
            Domain::Integer(0, 1_000_003),
            Domain::Categories(99_992),
        ]);
        let scale = Scale::new(&domains, 1_000);
        assert_eq!(scale.full, MAX_FULL);
        assert_eq!(scale.steps[0], MAX_FULL / 1_000_003);
    }
}
