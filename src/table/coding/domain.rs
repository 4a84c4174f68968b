//! Domains: the range or the number of values of each quasi-identifier, against which loss is measured.

use serde::{Deserialize, Serialize};

use super::Key;

/// Finest division of a numeric domain: wider ranges are coded on a grid of this many steps. Only the choice of
/// classes sees the grid; published ends are always attained values.
const MAX_STEPS: u128 = 1 << 22;

/// The domain of one quasi-identifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Domain {
    /// Smallest and largest whole number.
    Integer(i128, i128),
    /// Smallest and largest real.
    Real(f64, f64),
    /// Number of distinct values.
    Categories(u64),
    /// All values of a column to be masked.
    Values(Vec<String>),
    /// No value was seen.
    Empty,
}

/// The domains of all quasi-identifiers, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Domains(pub Vec<Domain>);

impl Domain {
    /// Number of steps from one end to the other (U − L, |X| − 1), at most [`MAX_STEPS`] for numbers.
    pub fn steps(&self) -> u64 {
        match *self {
            Domain::Values(ref values) => (values.len() as u64).saturating_sub(1),
            Domain::Integer(lo, hi) => hi.abs_diff(lo).min(MAX_STEPS) as u64,
            Domain::Real(lo, hi) if hi > lo => MAX_STEPS as u64,
            Domain::Categories(values) => values.saturating_sub(1),
            Domain::Real(..) | Domain::Empty => 0,
        }
    }

    /// Position of a whole number in the domain; numbers outside take the nearest end.
    pub fn code_integer(&self, value: i128) -> u32 {
        let Domain::Integer(lo, hi) = *self else {
            return 0;
        };
        let (offset, range) = (value.clamp(lo, hi).abs_diff(lo), hi.abs_diff(lo));
        let code = if range <= MAX_STEPS {
            offset
        } else {
            // Both are cut to 100 bits so that the product fits.
            let shift = (u128::BITS - range.leading_zeros()).saturating_sub(100);
            (offset >> shift) * MAX_STEPS / (range >> shift)
        };
        code as u32
    }

    /// Position of a real in the domain; numbers outside take the nearest end.
    pub fn code_real(&self, value: f64) -> u32 {
        match *self {
            // Halved, because hi − lo may overflow.
            Domain::Real(lo, hi) if hi > lo => {
                let share = (value.clamp(lo, hi) / 2.0 - lo / 2.0) / (hi / 2.0 - lo / 2.0);
                (share * MAX_STEPS as f64).round() as u32
            }
            _ => 0,
        }
    }

    /// Whether a key lies in a numeric domain. Missing values do.
    pub fn contains(&self, key: &Key) -> bool {
        match (self, key) {
            (Domain::Integer(lo, hi), Key::Integer(v)) => (lo..=hi).contains(&v),
            (Domain::Real(lo, hi), Key::Real(v)) => (lo..=hi).contains(&v),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ranges_are_exact() {
        let age = Domain::Integer(30, 39);
        assert_eq!(age.steps(), 9);
        assert_eq!(
            (30..=39).map(|v| age.code_integer(v)).collect::<Vec<_>>(),
            (0..=9).collect::<Vec<_>>()
        );
        assert_eq!((age.code_integer(-5), age.code_integer(100)), (0, 9));
    }

    #[test]
    fn huge_ranges_keep_their_order() {
        let domain = Domain::Integer(i128::MIN, i128::MAX);
        assert_eq!(domain.code_integer(i128::MIN), 0);
        assert_eq!(domain.code_integer(i128::MAX), MAX_STEPS as u32);
        assert!(domain.code_integer(0) > domain.code_integer(i128::MIN / 2));
        let domain = Domain::Real(f64::MIN, f64::MAX);
        assert_eq!(domain.code_real(f64::MAX), MAX_STEPS as u32);
        assert_eq!(domain.code_real(0.0), MAX_STEPS as u32 / 2);
        assert_eq!(domain.code_real(f64::INFINITY), MAX_STEPS as u32);
    }

    #[test]
    fn one_value_has_no_steps() {
        assert_eq!(Domain::Real(1.5, 1.5).steps(), 0);
        assert_eq!(Domain::Categories(1).steps(), 0);
        assert_eq!(Domain::Empty.steps(), 0);
    }
}
