//! Products of integers, compared exactly.

/// Whether the product of `left` is at most the product of `right`.
///
/// The combinations of a group (Yao 2021, Eq. 7) are a product of one count per sub-table, which soon exceeds 128 bits.
pub(super) fn at_most(left: impl Iterator<Item = u64>, right: impl Iterator<Item = u64>) -> bool {
    let (left, right) = (product(left), product(right));
    left.len()
        .cmp(&right.len())
        .then_with(|| left.iter().rev().cmp(right.iter().rev()))
        .is_le()
}

/// Digits in base 2⁶⁴, smallest first, the last one not 0.
fn product(factors: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut digits = vec![1u64];
    for factor in factors {
        let mut carry = 0u128;
        for digit in &mut digits {
            let sum = u128::from(*digit) * u128::from(factor) + carry;
            *digit = sum as u64;
            carry = sum >> 64;
        }
        if carry > 0 {
            digits.push(carry as u64);
        }
        if factor == 0 {
            return vec![];
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compare(left: &[u64], right: &[u64]) -> bool {
        at_most(left.iter().copied(), right.iter().copied())
    }

    proptest! {
        #![proptest_config(crate::repeatable::cases(256))]

        #[test]
        fn small_products_agree_with_128_bits(
            left in prop::collection::vec(0u64..1 << 31, 0..4),
            right in prop::collection::vec(0u64..1 << 31, 0..4),
        ) {
            let product = |of: &[u64]| of.iter().map(|n| u128::from(*n)).product::<u128>();
            prop_assert_eq!(compare(&left, &right), product(&left) <= product(&right));
        }

        #[test]
        fn a_common_factor_changes_nothing(
            left in prop::collection::vec(1u64.., 0..3),
            right in prop::collection::vec(1u64.., 0..3),
            common in prop::collection::vec(1u64.., 0..5),
        ) {
            let longer = |of: &[u64]| [of, &common].concat();
            prop_assert_eq!(compare(&longer(&left), &longer(&right)), compare(&left, &right));
        }
    }

    #[test]
    fn twelve_factors_beyond_128_bits() {
        let million = [5_000_000u64; 12];
        let mut more = million;
        more[7] += 1;
        assert!(compare(&million, &million));
        assert!(compare(&million, &more) && !compare(&more, &million));
        assert!(compare(&[0, u64::MAX], &[]) && !compare(&[], &[0, u64::MAX]));
    }
}
