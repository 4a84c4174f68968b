//! The paper's answers to SUM and COUNT over what is published (Li 2020, Section 4.2), from the people instead of the rows.
//!
//! ```text
//!   condition ──► per individual and column: how likely it holds           share_of_…
//!             ──► per individual: the product                              Pro(t)
//!             ──► per bucket of the summed attribute: number of hits       hits
//!             ──► per bucket: lower, expected and upper sum, all added up  sum_estimate, count_estimate
//! ```

use super::super::Buckets;
use crate::measure::{Estimate, Hits};

/// How likely a generalized whole number `lo..=hi` lies in `from..=to`, all its numbers equally likely.
///
/// Whole numbers are counted, so an interval of one number has no width of zero to divide by (docs/theory/papers.md E12).
pub fn share_of_interval(lo: i128, hi: i128, from: i128, to: i128) -> f64 {
    let (begin, end) = (lo.max(from), hi.min(to));
    if hi < lo || end < begin {
        return 0.0;
    }
    (end.abs_diff(begin) as f64 + 1.0) / (hi.abs_diff(lo) as f64 + 1.0)
}

/// How likely a generalized set of values satisfies a condition, all its values equally likely; 0 for no values.
pub fn share_of_set(codes: impl IntoIterator<Item = u32>, condition: impl Fn(u32) -> bool) -> f64 {
    let (mut all, mut holds) = (0u64, 0u64);
    for code in codes {
        all += 1;
        holds += u64::from(condition(code));
    }
    match all {
        0 => 0.0,
        all => holds as f64 / all as f64,
    }
}

/// How likely the secret value of a bucket's member satisfies a condition on its rank.
pub fn share_of_bucket(
    buckets: &Buckets,
    bucket: usize,
    ranks: &[u32],
    condition: impl Fn(u32) -> bool,
) -> f64 {
    let members = buckets.members(bucket).iter();
    share_of_set(members.map(|member| ranks[*member as usize]), condition)
}

/// The hits of each bucket, and those of everybody who is in none: `probabilities` are the Pro(t) of all individuals, 0
/// for those who are not published.
pub fn hits(probabilities: &[f64], buckets: &Buckets) -> (Vec<Hits>, Hits) {
    let mut per_bucket = vec![Hits::default(); buckets.len()];
    let mut others = Hits::default();
    for (individual, probability) in probabilities.iter().enumerate() {
        let hits = match buckets.of(individual as u32) {
            Some(bucket) => &mut per_bucket[bucket],
            None => &mut others,
        };
        hits.add(*probability);
    }
    (per_bucket, others)
}

/// The sum of a sensitive attribute over those who satisfy a condition, from the hits of its buckets.
///
/// `value` gives the number behind an individual's secret. From published rows, add bucket by bucket with
/// [`Estimate::add_bucket`].
pub fn sum_estimate(buckets: &Buckets, hits: &[Hits], value: impl Fn(u32) -> f64) -> Estimate {
    let mut sum = Estimate::default();
    let mut values = vec![];
    for (bucket, hits) in hits.iter().enumerate() {
        values.clear();
        values.extend(buckets.members(bucket).iter().map(|m| value(*m)));
        sum.add_bucket(hits, &mut values);
    }
    sum
}

/// The number of those who satisfy a condition: each counts 1.
pub fn count_estimate(hits: &[Hits]) -> Estimate {
    let mut count = Estimate::default();
    for hits in hits {
        let (fewest, most) = hits.rounded();
        count.lower += fewest as f64;
        count.expected += hits.expected;
        count.upper += most as f64;
        count.least += hits.certain as f64;
        count.most += hits.possible as f64;
    }
    count
}

/// R_error of the paper: the width of the bounds over the true answer, which is the width of an interval and no error
/// (docs/theory/papers.md L9); `None` if the true answer is 0.
pub fn relative_error(estimate: &Estimate, truth: f64) -> Option<f64> {
    (truth != 0.0).then(|| (estimate.upper - estimate.lower) / truth)
}

#[cfg(test)]
mod tests {
    use super::super::super::example::diversity;
    use super::super::super::{AttributePlace, bucketize};
    use super::*;
    use crate::algorithm::Cancel;

    /// Salaries 10, 20, … 80 in buckets {10, 20}, {30, 40}, {50, 60}, {70, 80}.
    fn salaries() -> (Buckets, Vec<u32>) {
        let ranks: Vec<u32> = (0..8).collect();
        let owners = (0..8).collect();
        let (rule, cancel) = (diversity(2), Cancel::default());
        let attribute = AttributePlace::Sensitive(0);
        let buckets = bucketize(attribute, &ranks, owners, &rule, &[1; 32], 1, &cancel).unwrap();
        assert_eq!(buckets.len(), 4);
        (buckets, ranks)
    }

    fn salary(individual: u32) -> f64 {
        10.0 * f64::from(individual + 1)
    }

    #[test]
    fn certain_conditions_give_exact_bounds_of_whole_buckets() {
        let (buckets, _) = salaries();
        let (hits, none) = hits(&[1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], &buckets);
        assert_eq!(none, Hits::default());
        let sum = sum_estimate(&buckets, &hits, salary);
        let exact = Estimate {
            lower: 140.0,
            expected: 140.0,
            upper: 140.0,
            least: 140.0,
            most: 140.0,
        };
        assert_eq!(sum, exact);
        assert_eq!(count_estimate(&hits).expected, 4.0);
        assert_eq!(relative_error(&sum, 140.0), Some(0.0));
    }

    #[test]
    fn hits_are_rounded_down_and_up_per_bucket() {
        let (buckets, _) = salaries();
        // Expected hits: 0.7 of {10, 20}, 1 of {30, 40}, 1.5 of {50, 60}, none of {70, 80}.
        let (hits, _) = hits(&[0.5, 0.2, 1.0, 0.0, 1.0, 0.5, 0.0, 0.0], &buckets);
        let sum = sum_estimate(&buckets, &hits, salary);
        assert_eq!(
            (sum.lower, sum.upper),
            (0.0 + 30.0 + 50.0, 20.0 + 40.0 + 110.0)
        );
        assert!((sum.expected - (0.7 * 15.0 + 35.0 + 1.5 * 55.0)).abs() < 1e-9);
        // Certain: one of each of two buckets; possible: two of two and one of one.
        assert_eq!((sum.least, sum.most), (30.0 + 50.0, 30.0 + 40.0 + 110.0));
        assert_eq!(relative_error(&sum, 100.0), Some(0.9));
        let count = count_estimate(&hits);
        assert_eq!((count.lower, count.upper), (2.0, 4.0));
        assert_eq!((count.least, count.most), (2.0, 5.0));
    }

    #[test]
    fn shares() {
        assert_eq!(share_of_interval(16, 22, 20, 99), 3.0 / 7.0);
        assert_eq!(share_of_interval(30, 30, 30, 30), 1.0);
        assert_eq!(share_of_interval(30, 30, 31, 99), 0.0);
        assert_eq!(share_of_interval(-3, 3, -1, 1), 3.0 / 7.0);
        assert_eq!(share_of_set([1, 4, 6], |code| code > 3), 2.0 / 3.0);
        assert_eq!(share_of_set([], |_| true), 0.0);
        let (buckets, ranks) = salaries();
        let bucket = buckets.of(0).unwrap();
        assert_eq!(
            share_of_bucket(&buckets, bucket, &ranks, |rank| rank == 0),
            0.5
        );
    }

    #[test]
    fn the_true_sum_lies_within_least_and_most() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(8);
        let (buckets, _) = salaries();
        for _ in 0..2000 {
            let truth: Vec<bool> = (0..8).map(|_| rng.random()).collect();
            // What a reader believes is never certain of what is false.
            let believed: Vec<f64> = truth
                .iter()
                .map(|holds| match (rng.random_bool(0.5), holds) {
                    (true, _) => rng.random_range(0.1..0.9),
                    (false, true) => 1.0,
                    (false, false) => 0.0,
                })
                .collect();
            let (hits, _) = hits(&believed, &buckets);
            let estimate = sum_estimate(&buckets, &hits, salary);
            let sum: f64 = (0..8).filter(|i| truth[*i as usize]).map(salary).sum();
            assert!(estimate.least <= sum && sum <= estimate.most);
            assert!(estimate.lower <= estimate.expected && estimate.expected <= estimate.upper);
            let (count, number) = (count_estimate(&hits), truth.iter().filter(|t| **t).count());
            assert!(count.least <= number as f64 && number as f64 <= count.most);
        }
    }
}
