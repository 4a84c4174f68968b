//! What can be wrong with an anatomized release.

use std::fmt;

use super::tables::{Group, ShownTables};

/// What does not hold. Counts only, never a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnatomyViolation {
    /// A row belongs to no table that the release has.
    UnknownTable {
        /// Such rows.
        rows: usize,
    },
    /// A row shows values of columns that are not of its table, and so links what the tables keep apart.
    Stray {
        /// Such rows.
        rows: usize,
    },
    /// A row belongs to no group.
    NoGroup {
        /// Such rows.
        rows: usize,
    },
    /// A row's count is missing, 0 or negative.
    NoCount {
        /// Such rows.
        rows: usize,
    },
    /// A tuple is shown in several rows of the same group and table.
    Repeated {
        /// Rows too many.
        rows: usize,
    },
    /// A sensitive value occurs more often than in what was given as the whole table.
    BeyondPrior {
        /// Such values.
        values: usize,
    },
    /// A group is not in all tables, or not with the same number of individuals.
    Sizes {
        /// Such groups.
        groups: usize,
    },
    /// Groups exceed a bound.
    Bound {
        /// Its name.
        parameter: &'static str,
        /// Groups that exceed it.
        violating: usize,
        /// All groups.
        groups: usize,
        /// Individuals of the first group that exceeds it.
        individuals: u64,
    },
}

impl ShownTables {
    /// What must hold whatever the bounds.
    pub(super) fn check_form(&self, tables: usize) -> Result<(), AnatomyViolation> {
        let faults = &self.faults;
        let rows = [
            (
                faults.unknown_table,
                AnatomyViolation::UnknownTable {
                    rows: faults.unknown_table,
                },
            ),
            (faults.stray, AnatomyViolation::Stray { rows: faults.stray }),
            (
                faults.no_gid,
                AnatomyViolation::NoGroup {
                    rows: faults.no_gid,
                },
            ),
            (
                faults.no_count,
                AnatomyViolation::NoCount {
                    rows: faults.no_count,
                },
            ),
            (
                faults.repeated,
                AnatomyViolation::Repeated {
                    rows: faults.repeated,
                },
            ),
            (
                faults.beyond_prior,
                AnatomyViolation::BeyondPrior {
                    values: faults.beyond_prior,
                },
            ),
        ];
        if let Some((_, violation)) = rows.into_iter().find(|(count, _)| *count > 0) {
            return Err(violation);
        }
        let differs = |group: &&Group| {
            let sizes = &group.individuals;
            sizes.len() != tables || sizes.windows(2).any(|pair| pair[0] != pair[1])
        };
        match self.groups.iter().filter(differs).count() {
            0 => Ok(()),
            groups => Err(AnatomyViolation::Sizes { groups }),
        }
    }
}

impl fmt::Display for AnatomyViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTable { rows } => {
                write!(f, "{rows} rows belong to no table of the release")
            }
            Self::Stray { rows } => {
                write!(
                    f,
                    "{rows} rows show values of columns that are not of their table"
                )
            }
            Self::NoGroup { rows } => write!(f, "{rows} rows have no group id"),
            Self::NoCount { rows } => write!(f, "{rows} rows have no positive count"),
            Self::Repeated { rows } => {
                write!(
                    f,
                    "{rows} rows repeat the tuple of another row of their group and table"
                )
            }
            Self::BeyondPrior { values } => write!(
                f,
                "{values} sensitive values occur more often than in the whole table"
            ),
            Self::Sizes { groups } => write!(
                f,
                "{groups} groups are not in all tables with the same number of individuals"
            ),
            Self::Bound {
                parameter,
                violating,
                groups,
                individuals,
            } => write!(
                f,
                "{violating} of {groups} groups exceed {parameter}; the first of them has {individuals} individuals"
            ),
        }
    }
}

impl std::error::Error for AnatomyViolation {}
