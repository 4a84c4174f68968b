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

impl From<u128> for Natural {
    fn from(number: u128) -> Self {
        let digit = |place: u32| (number >> (32 * place)) as u32;
        Self((0..4).map(digit).collect()).trimmed()
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

    proptest! {
        #![proptest_config(crate::repeatable::cases(256))]

        #[test]
        fn arithmetic_agrees_with_128_bits(a in any::<u64>(), b in any::<u64>(), c in any::<u128>(), d in any::<u128>()) {
            let product = Natural::from(a).times(&Natural::from(b));
            prop_assert_eq!(&product, &Natural::from(u128::from(a) * u128::from(b)));
            prop_assert_eq!(Natural::from(c).cmp(&Natural::from(d)), c.cmp(&d));
        }

        #[test]
        fn larger_numbers_keep_their_order(a in 1u64.., b in 1u64.., by in 1u64..) {
            let power = |n: u64| (0..9).fold(Natural::from(n), |p, _| p.times(&Natural::from(by)));
            prop_assert_eq!(power(a).cmp(&power(b)), a.cmp(&b));
        }
    }

    #[test]
    fn nothing_is_nothing() {
        let nothing = Natural::from(0u64);
        assert_eq!(nothing.times(&Natural::from(u128::MAX)), nothing);
        assert!(nothing < Natural::from(1u64));
    }
}
