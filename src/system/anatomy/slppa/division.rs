//! Table division: which quasi-identifiers are published together.

mod medoids;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::statistics::Associations;

/// Sub-tables, each with its quasi-identifier columns by number. The sensitive column has a table of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Division(Vec<Vec<usize>>);

/// Why there is no such division.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DivisionError {
    /// A number of sub-tables must be at least 1 and at most the number of columns (docs/theory/papers.md S9).
    Tables {
        /// How many were asked for.
        tables: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A sub-table has no column.
    Empty {
        /// Its number, from 0.
        table: usize,
    },
    /// There is no column of that number.
    Unknown {
        /// The number.
        column: usize,
    },
    /// A column is in several sub-tables, or twice in one.
    Repeated {
        /// Its number.
        column: usize,
    },
    /// A column is in no sub-table.
    Missing {
        /// Its number.
        column: usize,
    },
}

/// A division with what it was decided by, to be looked at before anything is published.
#[derive(Debug, Clone, PartialEq)]
pub struct DivisionReport {
    /// The division.
    pub division: Division,
    /// Weights and coefficients.
    pub associations: Associations,
    /// Per sub-table the sum of its columns' weights.
    pub table_weights: Vec<f64>,
    /// Per sub-table the mean coefficient of its pairs of columns; 0 for a single column.
    pub table_coefficients: Vec<f64>,
}

impl Division {
    /// A division chosen by hand: each of the `columns` columns in exactly one sub-table.
    pub fn try_new(tables: Vec<Vec<usize>>, columns: usize) -> Result<Self, DivisionError> {
        let mut seen = vec![false; columns];
        for (table, members) in tables.iter().enumerate() {
            if members.is_empty() {
                return Err(DivisionError::Empty { table });
            }
            for &column in members {
                match seen.get_mut(column) {
                    None => return Err(DivisionError::Unknown { column }),
                    Some(true) => return Err(DivisionError::Repeated { column }),
                    Some(seen) => *seen = true,
                }
            }
        }
        match seen.iter().position(|seen| !seen) {
            Some(column) => Err(DivisionError::Missing { column }),
            None => Ok(Self(tables)),
        }
    }

    /// Each column its own sub-table, as ASN has it (Rajaei et al. 2015).
    pub fn each(columns: usize) -> Self {
        Self((0..columns).map(|column| vec![column]).collect())
    }

    /// By entropy and contingency (Yao 2021, Section 4.3.1).
    ///
    /// The heaviest columns found one sub-table each; the others follow by weight, each to the sub-table with whose
    /// columns it hangs together most on average. Ties go to the smaller number, of column and of sub-table.
    pub fn by_weight(associations: &Associations, tables: usize) -> Result<Self, DivisionError> {
        let columns = associations.weights.len();
        in_range(tables, columns)?;
        let weight = |c: usize| associations.weights[c];
        let mut order: Vec<usize> = (0..columns).collect();
        order.sort_by(|a, b| weight(*b).total_cmp(&weight(*a)));
        let (first, rest) = order.split_at(tables);
        let mut division: Vec<Vec<usize>> = first.iter().map(|c| vec![*c]).collect();
        for &column in rest {
            let mut best = (f64::NEG_INFINITY, 0);
            for (table, members) in division.iter().enumerate() {
                let mean = mean(
                    members
                        .iter()
                        .map(|m| associations.coefficients[column][*m]),
                );
                if mean > best.0 {
                    best = (mean, table);
                }
            }
            division[best.1].push(column);
        }
        Ok(Self(division))
    }

    /// By k-medoid clustering of columns with the distance 1 − φ², as Slicing has it (Li et al. 2012).
    pub fn by_medoids(associations: &Associations, tables: usize) -> Result<Self, DivisionError> {
        in_range(tables, associations.weights.len())?;
        Ok(Self(medoids::cluster(&associations.coefficients, tables)))
    }

    /// The columns of each sub-table.
    pub fn tables(&self) -> &[Vec<usize>] {
        &self.0
    }

    /// How many columns all sub-tables have together.
    pub fn columns(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The division with what it was decided by.
    pub fn report(&self, associations: &Associations) -> DivisionReport {
        let weight = |table: &Vec<usize>| table.iter().map(|c| associations.weights[*c]).sum();
        let coefficient = |table: &Vec<usize>| {
            let pairs = table.iter().enumerate().flat_map(|(at, a)| {
                table[..at]
                    .iter()
                    .map(|b| associations.coefficients[*a][*b])
            });
            mean(pairs)
        };
        DivisionReport {
            division: self.clone(),
            associations: associations.clone(),
            table_weights: self.0.iter().map(weight).collect(),
            table_coefficients: self.0.iter().map(coefficient).collect(),
        }
    }
}

fn in_range(tables: usize, columns: usize) -> Result<(), DivisionError> {
    if (1..=columns).contains(&tables) {
        Ok(())
    } else {
        Err(DivisionError::Tables { tables, columns })
    }
}

/// 0 of nothing.
fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0u32);
    for number in numbers {
        sum += number;
        count += 1;
    }
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

impl fmt::Display for DivisionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tables { tables, columns } => write!(
                f,
                "the number of sub-tables must be from 1 to {columns}, the number of quasi-identifiers, not {tables}"
            ),
            Self::Empty { table } => write!(f, "sub-table {} has no column", table + 1),
            Self::Unknown { column } => write!(f, "there is no quasi-identifier {}", column + 1),
            Self::Repeated { column } => {
                write!(f, "quasi-identifier {} is named more than once", column + 1)
            }
            Self::Missing { column } => {
                write!(f, "quasi-identifier {} is in no sub-table", column + 1)
            }
        }
    }
}

impl std::error::Error for DivisionError {}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn the_rule_does_not_give_table_4() {
        let associations = example::associations();
        let weight = |c: usize| associations.weights[c];
        assert!((weight(example::AGE) - 2.5).abs() < 1e-12);
        assert!(weight(example::AGE) > weight(example::JOB));
        assert!(weight(example::JOB) > weight(example::ZIP));
        assert!(weight(example::ZIP) > weight(example::GENDER));
        // An age tells the zip code, but it also tells the gender: φ² is 1 where values are nearly unique. Job: 1/9.
        let phi = |a: usize, b: usize| associations.coefficients[a][b];
        assert!((phi(example::AGE, example::ZIP) - 1.0).abs() < 1e-12);
        assert!((phi(example::AGE, example::GENDER) - 1.0).abs() < 1e-12);
        assert!((phi(example::JOB, example::GENDER) - 1.0 / 9.0).abs() < 1e-12);
        let division = Division::by_weight(&associations, 2).unwrap();
        let expected = [
            vec![example::AGE, example::ZIP, example::GENDER],
            vec![example::JOB],
        ];
        assert_eq!(division.tables(), expected);
        assert_ne!(division, example::table_4());
        let report = division.report(&associations);
        assert!((report.table_weights[1] - weight(example::JOB)).abs() < 1e-12);
        assert_eq!(report.table_coefficients[1], 0.0);
        assert!(report.table_coefficients[0] > 0.7);
    }

    #[test]
    fn ties_go_to_the_smaller_number() {
        let associations = Associations {
            individuals: 4,
            weights: vec![1.0; 4],
            distinct: vec![2; 4],
            bins: vec![2; 4],
            coefficients: vec![vec![0.25; 4]; 4],
        };
        let divided = |tables| Division::by_weight(&associations, tables).unwrap();
        assert_eq!(divided(2).tables(), [vec![0, 2, 3], vec![1]]);
        assert_eq!(divided(4), Division::each(4));
        assert_eq!(divided(1).tables(), [vec![0, 1, 2, 3]]);
    }

    #[test]
    fn more_tables_than_columns_are_refused() {
        let associations = example::associations();
        for tables in [0, 5] {
            let refused = Err(DivisionError::Tables { tables, columns: 4 });
            assert_eq!(Division::by_weight(&associations, tables), refused);
            assert_eq!(Division::by_medoids(&associations, tables), refused);
        }
    }

    #[test]
    fn a_division_by_hand_has_every_column_once() {
        let by_hand =
            |tables: &[&[usize]]| Division::try_new(tables.iter().map(|t| t.to_vec()).collect(), 3);
        assert!(by_hand(&[&[2], &[0, 1]]).is_ok());
        assert_eq!(
            by_hand(&[&[0, 1, 2], &[]]),
            Err(DivisionError::Empty { table: 1 })
        );
        assert_eq!(
            by_hand(&[&[0, 1], &[3]]),
            Err(DivisionError::Unknown { column: 3 })
        );
        assert_eq!(
            by_hand(&[&[0, 1], &[1, 2]]),
            Err(DivisionError::Repeated { column: 1 })
        );
        assert_eq!(
            by_hand(&[&[0, 2]]),
            Err(DivisionError::Missing { column: 1 })
        );
    }
}
