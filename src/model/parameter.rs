//! Parameters of models and algorithms: declared once, parsed exactly, checked against their range.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A declared parameter.
#[derive(Debug)]
pub struct Parameter {
    /// Argument name.
    pub name: &'static str,
    /// Type and range.
    pub kind: ParameterKind,
    /// Whether it may be left out.
    pub required: bool,
    /// One line of help.
    pub help: &'static str,
}

/// Type and range of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum ParameterKind {
    /// A whole number within bounds.
    Integer {
        /// Smallest allowed value.
        min: u64,
        /// Largest allowed value.
        max: u64,
    },
    /// A share strictly between 0 and 1, kept as the exact decimal that was written.
    Share,
    /// A total weight above 0, kept as the exact decimal that was written.
    Weight,
}

/// An exact non-negative rational number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// A parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// An exact decimal, an upper bound.
    Ratio(Ratio),
    /// An exact decimal, a lower bound.
    Weight(Ratio),
}

/// Values by parameter name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parameters(BTreeMap<String, Value>);

/// What is wrong with a parameter, without the name of the function it was given to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterError {
    /// The parameter.
    pub parameter: String,
    /// What is allowed, and what came.
    pub message: String,
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = |a: &Self, b: &Self| u128::from(a.numerator) * u128::from(b.denominator);
        cross(self, other).cmp(&cross(other, self))
    }
}

impl Ratio {
    /// `numerator / denominator`; `None` if the denominator is zero.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        (denominator > 0).then(|| {
            let divisor = gcd(numerator, denominator);
            Self {
                numerator: numerator / divisor,
                denominator: denominator / divisor,
            }
        })
    }

    /// Whether `part / whole` is at most this ratio, exactly.
    pub fn at_least(&self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(self.denominator)
            <= u128::from(self.numerator) * u128::from(whole)
    }

    /// The smallest whole number not below `1 / self`.
    pub fn ceil_of_inverse(&self) -> Option<u64> {
        (self.numerator > 0).then(|| self.denominator.div_ceil(self.numerator))
    }

    /// The numerator in lowest terms.
    pub fn numerator(&self) -> u64 {
        self.numerator
    }

    /// The denominator in lowest terms.
    pub fn denominator(&self) -> u64 {
        self.denominator
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

impl FromStr for Ratio {
    type Err = ();

    /// Reads a plain decimal such as `0.4` or `2`, digit by digit, without a detour through floating point.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(());
        }
        let numerator = digits.parse().map_err(|_| ())?;
        let denominator = 10u64
            .checked_pow(u32::try_from(fraction.len()).map_err(|_| ())?)
            .ok_or(())?;
        Self::new(numerator, denominator).ok_or(())
    }
}

impl Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A denominator of only twos and fives is a finite decimal; print what the user wrote.
        let mut places = 0;
        let mut scale = 1u64;
        while places < 19 && !scale.is_multiple_of(self.denominator) {
            scale = match scale.checked_mul(10) {
                Some(s) => s,
                None => break,
            };
            places += 1;
        }
        if !scale.is_multiple_of(self.denominator) {
            return write!(f, "{}/{}", self.numerator, self.denominator);
        }
        let digits = u128::from(self.numerator) * u128::from(scale / self.denominator);
        if places == 0 {
            return write!(f, "{digits}");
        }
        let text = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = text.split_at(text.len() - places);
        write!(f, "{whole}.{fraction}")
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(n) => write!(f, "{n}"),
            Value::Ratio(r) | Value::Weight(r) => write!(f, "{r}"),
        }
    }
}

impl Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterKind::Integer { min, max } if *max == u64::MAX => {
                write!(f, "a whole number of at least {min}")
            }
            ParameterKind::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            ParameterKind::Share => write!(f, "a decimal between 0 and 1, both excluded"),
            ParameterKind::Weight => write!(f, "a decimal above 0"),
        }
    }
}

impl Parameter {
    /// Reads a value as it was written and checks its range.
    pub fn parse(&self, text: &str) -> Result<Value, ParameterError> {
        let value = match self.kind {
            ParameterKind::Integer { min, max } => text
                .parse::<u64>()
                .ok()
                .filter(|n| (min..=max).contains(n))
                .map(Value::Integer),
            ParameterKind::Share => text
                .parse::<Ratio>()
                .ok()
                .filter(|r| r.numerator > 0 && r.numerator < r.denominator)
                .map(Value::Ratio),
            ParameterKind::Weight => text
                .parse::<Ratio>()
                .ok()
                .filter(|r| r.numerator > 0)
                .map(Value::Weight),
        };
        value.ok_or_else(|| ParameterError {
            parameter: self.name.to_owned(),
            message: format!("must be {}, not '{text}'", self.kind),
        })
    }
}

impl Parameters {
    /// Adds or replaces a value.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        self.0.insert(name.into(), value);
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Whether no parameter is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole number of that name.
    pub fn integer(&self, name: &str) -> Result<u64, ParameterError> {
        match self.0.get(name) {
            Some(Value::Integer(n)) => Ok(*n),
            _ => Err(missing(name, "a whole number")),
        }
    }

    /// The ratio of that name.
    pub fn ratio(&self, name: &str) -> Result<Ratio, ParameterError> {
        match self.0.get(name) {
            Some(Value::Ratio(r)) => Ok(*r),
            _ => Err(missing(name, "a decimal")),
        }
    }

    /// The weight of that name.
    pub fn weight(&self, name: &str) -> Result<Ratio, ParameterError> {
        match self.0.get(name) {
            Some(Value::Weight(w)) => Ok(*w),
            _ => Err(missing(name, "a decimal above 0")),
        }
    }
}

fn missing(name: &str, kind: &str) -> ParameterError {
    ParameterError {
        parameter: name.to_owned(),
        message: format!("must be given as {kind}"),
    }
}

impl Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.parameter, self.message)
    }
}

impl std::error::Error for ParameterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let r: Ratio = "0.58".parse().unwrap();
        assert!(r.at_least(29, 50), "29 / 50 is exactly 0.58");
        let r: Ratio = "0.7".parse().unwrap();
        assert!(r.at_least(63, 90) && !r.at_least(64, 90));
        let r: Ratio = "0.3333333333333333".parse().unwrap();
        assert_eq!(r.ceil_of_inverse(), Some(4));
    }

    #[test]
    fn ratios_print_as_written() {
        for text in ["0.4", "0.05", "1", "12.375", "0.3333333333333333"] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), text);
        }
        assert_eq!(Ratio::new(1, 3).unwrap().to_string(), "1/3");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", ".", "-1", "1e3", "0x1", "1.2.3", "99999999999999999999"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }
}
