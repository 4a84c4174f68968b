//! Exact shares: two integers, compared by multiplication.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A share of a whole, at most 1, held exactly as `numerator / denominator`.
///
/// `63 <= 0.7 * 90` is false in floating point; here it is true.
///
/// Two ratios are equal if their values are, however written: `4/10 == 2/5`.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// Why a text or a pair of integers is no [`Ratio`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseRatioError {
    /// Not of the form `0.58`, `1` or `.5`.
    NotDecimal,
    /// More digits than 64 bits hold.
    TooManyDigits,
    /// Zero, more than one, or a zero denominator.
    OutOfRange,
}

impl Ratio {
    /// The bound `numerator / denominator`, which must be more than 0 and at most 1.
    pub fn try_new(numerator: u64, denominator: u64) -> Result<Self, ParseRatioError> {
        if numerator == 0 || numerator > denominator {
            return Err(ParseRatioError::OutOfRange);
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }

    /// What share `part` is of `whole`; 0 of nothing is 0.
    pub(crate) fn of(part: usize, whole: usize) -> Self {
        Self {
            numerator: part as u64,
            denominator: (whole as u64).max(1),
        }
    }

    /// The number above the line.
    pub fn numerator(&self) -> u64 {
        self.numerator
    }

    /// The number below the line, never 0.
    pub fn denominator(&self) -> u64 {
        self.denominator
    }

    /// `part / whole <= self`, exactly.
    pub fn admits(&self, part: usize, whole: usize) -> bool {
        part as u128 * u128::from(self.denominator) <= whole as u128 * u128::from(self.numerator)
    }
}

impl FromStr for Ratio {
    type Err = ParseRatioError;

    /// Reads a decimal number such as `0.58`, above 0.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = Self::or_zero(text)?;
        Self::try_new(read.numerator, read.denominator)
    }
}

impl Ratio {
    /// Reads a decimal number such as `0.58` or `0` without passing through floating point.
    pub(crate) fn or_zero(text: &str) -> Result<Self, ParseRatioError> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().next().is_none() || !digits().all(|b| b.is_ascii_digit()) {
            return Err(ParseRatioError::NotDecimal);
        }
        let kept = whole.len() + fraction.trim_end_matches('0').len();
        let mut numerator = 0u64;
        let mut denominator = 1u64;
        for (place, digit) in digits().take(kept).enumerate() {
            numerator = numerator
                .checked_mul(10)
                .and_then(|n| n.checked_add(u64::from(digit - b'0')))
                .ok_or(ParseRatioError::TooManyDigits)?;
            if place >= whole.len() {
                denominator = denominator
                    .checked_mul(10)
                    .ok_or(ParseRatioError::TooManyDigits)?;
            }
        }
        if numerator > denominator {
            return Err(ParseRatioError::OutOfRange);
        }
        Ok(Self {
            numerator,
            denominator,
        })
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        let right = u128::from(other.numerator) * u128::from(self.denominator);
        left.cmp(&right)
    }
}

impl fmt::Display for Ratio {
    /// A decimal where the denominator is a power of ten, else `numerator/denominator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.denominator.ilog10();
        if 10u64.pow(places) != self.denominator {
            return write!(f, "{}/{}", self.numerator, self.denominator);
        }
        let whole = self.numerator / self.denominator;
        if places == 0 {
            return write!(f, "{whole}");
        }
        let fraction = self.numerator % self.denominator;
        write!(f, "{whole}.{fraction:0width$}", width = places as usize)
    }
}

impl fmt::Display for ParseRatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotDecimal => "a share is a decimal number such as 0.58",
            Self::TooManyDigits => "a share has at most 19 digits",
            Self::OutOfRange => "a share is more than 0 and at most 1",
        })
    }
}

impl std::error::Error for ParseRatioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_exact() {
        let ratio = |text: &str| text.parse::<Ratio>();
        assert_eq!(ratio("0.58").map(|r| r.admits(29, 50)), Ok(true));
        assert_eq!(ratio("0.58").map(|r| r.admits(30, 50)), Ok(false));
        assert_eq!(ratio("0.7").map(|r| r.admits(63, 90)), Ok(true));
        assert_eq!(ratio("0.7").map(|r| r.admits(64, 90)), Ok(false));
        // A third is more than any decimal near it.
        assert_eq!(
            ratio("0.3333333333333333").map(|r| r.admits(1, 3)),
            Ok(false)
        );
        assert_eq!(Ratio::try_new(1, 3).map(|r| r.admits(1, 3)), Ok(true));
        let tiny = ratio("0.0000000000000000001");
        assert_eq!(tiny.map(|r| r.admits(1, usize::MAX)), Ok(true));
    }

    #[test]
    fn every_three_digit_decimal_agrees_with_integers() {
        for thousandths in 1..=1000u64 {
            let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            let ratio: Ratio = text.parse().unwrap();
            for whole in 1..=200usize {
                let most = whole * thousandths as usize / 1000;
                assert!(ratio.admits(most, whole));
                assert!(!ratio.admits(most + 1, whole));
            }
        }
    }

    #[test]
    fn reading_and_printing() {
        for (text, printed) in [
            ("0.4", "0.4"),
            (".50", "0.5"),
            ("1", "1"),
            ("1.000", "1"),
            ("0.007", "0.007"),
            ("0.40000000000000000000000000", "0.4"),
        ] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), printed);
        }
        assert_eq!(Ratio::try_new(2, 5), "0.4".parse());
        assert_eq!(Ratio::try_new(1, 3).unwrap().to_string(), "1/3");
        for (text, error) in [
            ("", ParseRatioError::NotDecimal),
            (".", ParseRatioError::NotDecimal),
            ("-0.5", ParseRatioError::NotDecimal),
            ("+0.5", ParseRatioError::NotDecimal),
            ("5e-1", ParseRatioError::NotDecimal),
            ("0.5.5", ParseRatioError::NotDecimal),
            ("NaN", ParseRatioError::NotDecimal),
            ("0", ParseRatioError::OutOfRange),
            ("0.000", ParseRatioError::OutOfRange),
            ("1.01", ParseRatioError::OutOfRange),
            ("0.33333333333333333333333", ParseRatioError::TooManyDigits),
        ] {
            assert_eq!(text.parse::<Ratio>(), Err(error), "{text}");
        }
    }
}
