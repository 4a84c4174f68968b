//! SUM over buckets of values whose owners are not told, with its bounds (Li 2020, Section 4.2).
//!
//! Probabilities are floating-point numbers: an estimate decides nothing about privacy.

/// How near to a whole number a sum of probabilities counts as that number.
const ROUNDING: f64 = 1e-9;

/// How many individuals of one bucket satisfy a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Hits {
    /// The sum of their probabilities.
    pub expected: f64,
    /// Individuals who certainly satisfy it.
    pub certain: usize,
    /// Individuals who possibly do.
    pub possible: usize,
}

/// An answer with its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Lower bound of the paper: from the expected number of hits, rounded down.
    pub lower: f64,
    /// What is expected if values are spread evenly.
    pub expected: f64,
    /// Upper bound of the paper: from the expected number of hits, rounded up.
    pub upper: f64,
    /// The true answer is at least this.
    pub least: f64,
    /// The true answer is at most this.
    pub most: f64,
}

impl Hits {
    /// Counts an individual who satisfies the condition with this probability.
    pub fn add(&mut self, probability: f64) {
        self.expected += probability;
        self.certain += usize::from(probability >= 1.0);
        self.possible += usize::from(probability > 0.0);
    }

    /// The expected number rounded down and up.
    pub(crate) fn rounded(&self) -> (usize, usize) {
        let near = self.expected.round();
        if (self.expected - near).abs() <= ROUNDING * (1.0 + self.expected) {
            return (near as usize, near as usize);
        }
        (
            self.expected.floor() as usize,
            self.expected.ceil() as usize,
        )
    }
}

impl Estimate {
    /// Adds the sum over one bucket with these hits and values, which are sorted.
    ///
    /// With h hits it lies between the sums of the h smallest and h largest values; where values are negative, over all
    /// h within the bounds.
    pub fn add_bucket(&mut self, hits: &Hits, values: &mut [f64]) {
        values.sort_unstable_by(f64::total_cmp);
        let (fewest, most) = hits.rounded();
        let (lower, upper) = extremes(values, fewest, most);
        let (least, greatest) = extremes(values, hits.certain, hits.possible);
        self.lower += lower;
        self.upper += upper;
        self.least += least;
        self.most += greatest;
        if !values.is_empty() {
            self.expected += hits.expected * values.iter().sum::<f64>() / values.len() as f64;
        }
    }
}

/// The smallest and the largest sum of `fewest..=most` of the sorted values.
fn extremes(values: &[f64], fewest: usize, most: usize) -> (f64, f64) {
    let (fewest, most) = (fewest.min(values.len()), most.min(values.len()));
    let (mut low, mut high): (f64, f64) = (
        values[..fewest].iter().sum(),
        values[values.len() - fewest..].iter().sum(),
    );
    let (mut smallest, mut largest) = (low, high);
    for hits in fewest..most {
        low += values[hits];
        high += values[values.len() - 1 - hits];
        smallest = smallest.min(low);
        largest = largest.max(high);
    }
    (smallest, largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_probabilities_are_not_rounded_by_accident() {
        let mut hits = Hits::default();
        (0..10).for_each(|_| hits.add(0.1));
        assert_ne!(hits.expected, 1.0);
        assert_eq!(hits.rounded(), (1, 1));
    }

    #[test]
    fn negative_values_widen_the_bounds() {
        let values = [-5.0, -1.0, 2.0];
        assert_eq!(extremes(&values, 0, 3), (-6.0, 2.0));
        assert_eq!(extremes(&values, 1, 2), (-6.0, 2.0));
        assert_eq!(extremes(&values, 2, 2), (-6.0, 1.0));
        assert_eq!(extremes(&[], 0, 4), (0.0, 0.0));
    }
}
