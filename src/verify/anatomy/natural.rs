//! Natural numbers of any size.

use std::cmp::Ordering;

/// Digits in base 2³², the smallest first, without zeros at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        Self(vec![number as u32, (number >> 32) as u32]).trimmed()
    }
}

impl Natural {
    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    pub fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u32; self.0.len() + other.0.len()];
        for (i, a) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (j, b) in other.0.iter().enumerate() {
                let sum = u64::from(*a) * u64::from(*b) + u64::from(digits[i + j]) + carry;
                digits[i + j] = sum as u32;
                carry = sum >> 32;
            }
            digits[i + other.0.len()] = carry as u32;
        }
        Self(digits).trimmed()
    }

    /// The difference, or 0 if `other` is more.
    pub fn minus(&self, other: &Self) -> Self {
        if *self <= *other {
            return Self(vec![]);
        }
        let mut borrow = false;
        let mut digits = Vec::with_capacity(self.0.len());
        for (at, digit) in self.0.iter().enumerate() {
            let taken = other.0.get(at).copied().unwrap_or(0);
            let (less, first) = digit.overflowing_sub(taken);
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            digits.push(less);
            borrow = first || second;
        }
        Self(digits).trimmed()
    }

    /// The nearest floating-point number, more or less.
    pub fn to_f64(&self) -> f64 {
        let digits = self.0.iter().rev();
        digits.fold(0.0, |number, digit| {
            number * 4_294_967_296.0 + f64::from(*digit)
        })
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Self) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(number: u128) -> Natural {
        let digits = (0..4).map(|place| (number >> (32 * place)) as u32);
        Natural(digits.collect()).trimmed()
    }

    proptest! {
        #![proptest_config(crate::repeatable::cases(256))]

        #[test]
        fn arithmetic_agrees_with_128_bits(a in any::<u64>(), b in any::<u64>(), c in any::<u128>(), d in any::<u128>()) {
            let product = Natural::from(a).times(&Natural::from(b));
            prop_assert_eq!(&product, &of(u128::from(a) * u128::from(b)));
            prop_assert_eq!(of(c).minus(&of(d)), of(c.saturating_sub(d)));
            prop_assert_eq!(of(c).cmp(&of(d)), c.cmp(&d));
            let near = |x: f64, y: f64| (x - y).abs() <= 1e-12 * y.abs();
            prop_assert!(near(of(c).to_f64(), c as f64));
        }

        #[test]
        fn larger_numbers_keep_their_order(a in 1u64.., b in 1u64.., by in 1u64..) {
            let power = |n: u64| (0..9).fold(Natural::from(n), |p, _| p.times(&Natural::from(by)));
            prop_assert_eq!(power(a).cmp(&power(b)), a.cmp(&b));
        }
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(Natural::from(0).times(&of(u128::MAX)), Natural::from(0));
        assert!(Natural::from(0) < Natural::from(1));
        assert_eq!(Natural::from(7).minus(&Natural::from(7)), Natural::from(0));
    }
}
