//! The four bounds, and what is said when they cannot be met.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::groups::DivideError;
use crate::model::Ratio;

/// Upper bounds on every group; a bound that is not given is not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupBounds {
    /// Share of the most frequent sub-tuple in each sub-table (Yao 2021, Definition 1, Eq. 3).
    pub alpha: Option<Ratio>,
    /// Share of the most frequent sensitive value (Definition 2, Eq. 5).
    pub beta: Ratio,
    /// Product of the shares of the most frequent sub-tuples and of the most frequent sensitive value (Definition 3,
    /// Eq. 7). It bounds the probability of a combination; it does not hide who is in the table (docs/theory/papers.md S6).
    pub gamma: Option<Ratio>,
    /// Distance between a sensitive value's share of the group and of the whole table (Definition 4, Eq. 8).
    pub delta: Option<Ratio>,
}

/// Why no division into groups satisfies the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Infeasible {
    /// Every bound that stands in the way, at least one.
    pub shortfalls: Vec<Shortfall>,
}

/// A bound that cannot be met, and a value that can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// A sub-tuple is too frequent.
    Alpha {
        /// The number of the sub-table, from 0.
        table: usize,
        /// The smallest α that works: the share of the most frequent sub-tuple.
        best: Ratio,
    },
    /// A sensitive value is too frequent.
    Beta {
        /// The smallest β that works: the share of the most frequent value.
        best: Ratio,
    },
    /// Combinations are too frequent in the groups that were found.
    Gamma {
        /// A γ that works, rounded up to twelve decimals. A smaller one may.
        best: Ratio,
    },
    /// The block's shares of sensitive values differ too much from those of the whole table. Never for a block that is
    /// the whole table.
    Delta {
        /// The smallest δ that works, rounded up to twelve decimals.
        best: Ratio,
    },
}

/// Bounds have at most this denominator in lowest terms, so that all products fit into 128 bits.
pub(super) const FINEST: u64 = 1_000_000_000_000;

impl GroupBounds {
    /// Bounds must be more than 0 and at most 1, with at most twelve decimals.
    pub fn check(&self) -> Result<(), DivideError> {
        let bounds = [self.alpha, Some(self.beta), self.gamma, self.delta];
        for bound in bounds.into_iter().flatten() {
            if bound.numerator() == 0 || bound.numerator() > bound.denominator() {
                return Err(DivideError::Malformed(
                    "a bound is more than 0 and at most 1",
                ));
            }
            if bound.denominator() > FINEST {
                return Err(DivideError::Malformed(
                    "a bound has at most twelve decimals",
                ));
            }
        }
        Ok(())
    }
}

impl Shortfall {
    /// The name of the parameter.
    pub fn parameter(&self) -> &'static str {
        match self {
            Self::Alpha { .. } => "alpha",
            Self::Beta { .. } => "beta",
            Self::Gamma { .. } => "gamma",
            Self::Delta { .. } => "delta",
        }
    }

    /// A value that works.
    pub fn best(&self) -> Ratio {
        match self {
            Self::Alpha { best, .. }
            | Self::Beta { best }
            | Self::Gamma { best }
            | Self::Delta { best } => *best,
        }
    }
}

/// The number rounded up to at most six decimals: what a user can write, and that still works.
fn shown(best: Ratio) -> Ratio {
    const PARTS: u64 = 1_000_000;
    if PARTS.is_multiple_of(best.denominator()) {
        return best;
    }
    let parts = u128::from(best.numerator()) * u128::from(PARTS);
    let parts = parts.div_ceil(u128::from(best.denominator()));
    let rounded = u64::try_from(parts).ok();
    rounded
        .and_then(|parts| Ratio::new(parts, PARTS))
        .unwrap_or(best)
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = shown(self.best());
        match self {
            Self::Alpha { table, .. } => write!(
                f,
                "one sub-tuple has a share of {best} in sub-table {}, so the smallest alpha that works is {best}; \
                 fewer sub-tables or another division may allow a smaller one",
                table + 1
            ),
            Self::Beta { .. } => write!(
                f,
                "one sensitive value has a share of {best}, so the smallest beta that works is {best}"
            ),
            Self::Gamma { .. } => write!(
                f,
                "no groups were found with this gamma; {best} works, and a smaller one may"
            ),
            Self::Delta { .. } => write!(
                f,
                "shares of sensitive values differ from those of the whole table by up to {best}, so the smallest \
                 delta that works is {best}"
            ),
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said: Vec<String> = self.shortfalls.iter().map(Shortfall::to_string).collect();
        f.write_str(&said.join("; and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_decimals_that_work() {
        let shown = |n: u64, d: u64| shown(Ratio::new(n, d).unwrap()).to_string();
        assert_eq!(shown(3, 4), "0.75");
        assert_eq!(shown(1, 3), "0.333334");
        assert_eq!(shown(27_504, 30_162), "0.911876");
        assert_eq!(shown(1, 64_000_000), "0.000001");
        assert_eq!(shown(1, 1), "1");
    }
}
