//! Sums of probabilities in fixed point.

/// A sum of numbers in steps of 2⁻⁵⁶, so that neither order nor partitions change it.
///
/// Steps are far below the precision of a probability that was itself rounded, and 128 bits hold 10²¹ of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fixed(i128);

const ONE: f64 = (1u64 << 56) as f64;
const HALF_64: f64 = (1u64 << 62) as f64;

impl Fixed {
    /// Adds a number. What is not finite adds nothing.
    pub fn add(&mut self, value: f64) {
        let steps = value * ONE;
        // Conversions to 64 bits are a single instruction.
        let steps = if steps.abs() < HALF_64 {
            i128::from((steps + 0.5f64.copysign(steps)) as i64)
        } else {
            steps.round() as i128
        };
        self.0 = self.0.saturating_add(steps);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    /// The sum.
    pub fn value(self) -> f64 {
        self.0 as f64 / ONE
    }

    /// The number of steps.
    pub fn raw(self) -> i128 {
        self.0
    }

    /// The sum of so many steps.
    pub fn from_raw(raw: i128) -> Self {
        Self(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_thirds_make_a_whole() {
        let sum = |values: &[f64]| {
            let mut sum = Fixed::default();
            values.iter().for_each(|v| sum.add(*v));
            sum
        };
        assert_eq!(sum(&[1.0 / 3.0; 3]).value(), 1.0);
        assert_eq!(sum(&[0.1, 0.2, 1e9]), sum(&[1e9, 0.2, 0.1]));
        let mut merged = sum(&[0.1]);
        merged.merge(sum(&[0.2]));
        assert_eq!(merged, sum(&[0.1, 0.2]));
        assert_eq!(Fixed::from_raw(merged.raw()), merged);
    }
}
