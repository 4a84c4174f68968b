//! Conditions over generalized columns, and their probability.
//!
//! What is known exactly is true or false; what is generalized is true with the share of the cell that a selection takes.
//! Columns are independent of each other within a class, as Wang 2018 (Eq. 19) and the anatomized estimators assume;
//! several predicates over one column are not, and are combined as sets of values:
//!
//! ```text
//! age > 30 AND age < 40 AND sex = 'F'        share(age in (30, 40)) * share(sex = 'F')
//! age > 30 OR sex = 'F'                      1 - (1 - share(age > 30)) * (1 - share(sex = 'F'))
//! (age > 30 AND sex = 'F') OR (age < 20 AND sex = 'M')
//!                                            share(age > 30) * share(sex = 'F') + share(age < 20) * share(sex = 'M')
//! ```

use datafusion::common::Result;
use datafusion::logical_expr::{Expr, lit, when};

use super::refuse;
use crate::measure::cells::Selection;

/// More terms than this are no query that somebody wrote.
const MAX_TERMS: usize = 4_096;
/// So many different conditions on exact columns may be mixed with generalized ones.
const MAX_EXACT: usize = 8;

/// A condition in negation normal form: NOT has been moved into its leaves.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Formula {
    Constant(bool),
    /// A condition on one generalized column.
    Cell(usize, Selection),
    /// A condition on exact columns only.
    Exact(Expr),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

/// Makes the expression for the share of a column's cell that a selection takes.
pub(super) type Share<'a> = dyn FnMut(usize, &Selection) -> Result<Expr> + 'a;

impl Formula {
    /// Both hold.
    pub fn and(self, other: Self) -> Self {
        Self::all(vec![self, other])
    }

    /// All hold. Conditions on one column become one.
    pub fn all(parts: Vec<Self>) -> Self {
        Self::joined(parts, true)
    }

    /// Any holds. Conditions on one column become one.
    pub fn any(parts: Vec<Self>) -> Self {
        Self::joined(parts, false)
    }

    fn joined(parts: Vec<Self>, all: bool) -> Self {
        let mut flat = vec![];
        for part in parts {
            match part {
                Formula::All(inner) if all => flat.extend(inner),
                Formula::Any(inner) if !all => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let mut joined: Vec<Self> = vec![];
        for part in flat {
            match &part {
                // True adds nothing to AND, false nothing to OR; the other decides.
                Formula::Constant(value) if *value == all => continue,
                Formula::Constant(_) => return part,
                _ => {}
            }
            let same = joined.iter_mut().find_map(|known| match (known, &part) {
                (Formula::Cell(a, known), Formula::Cell(b, selection)) if a == b => {
                    *known = if all {
                        known.and(selection)
                    } else {
                        known.or(selection)
                    };
                    Some(())
                }
                (Formula::Exact(known), Formula::Exact(expr)) => {
                    *known = if all {
                        known.clone().and(expr.clone())
                    } else {
                        known.clone().or(expr.clone())
                    };
                    Some(())
                }
                _ => None,
            });
            if same.is_none() {
                joined.push(part);
            }
        }
        if joined.iter().any(|part| match part {
            Formula::Cell(_, s) => {
                if all {
                    s.is_nothing()
                } else {
                    s.is_everything()
                }
            }
            _ => false,
        }) {
            return Formula::Constant(!all);
        }
        match (joined.len(), joined.pop()) {
            (_, None) => Formula::Constant(all),
            (1, Some(part)) => part,
            (_, Some(last)) => {
                joined.push(last);
                if all {
                    Formula::All(joined)
                } else {
                    Formula::Any(joined)
                }
            }
        }
    }

    /// A condition that every match must satisfy and that is known exactly, to leave out other records early.
    pub fn certain(&self) -> Option<&Expr> {
        match self {
            Formula::Exact(expr) => Some(expr),
            Formula::All(parts) => parts.iter().find_map(|part| match part {
                Formula::Exact(expr) => Some(expr),
                _ => None,
            }),
            _ => None,
        }
    }

    /// The probability that the condition holds, as an expression.
    pub fn probability(&self, share: &mut Share) -> Result<Expr> {
        self.terms(share, &mut 0)
    }

    fn terms(&self, share: &mut Share, terms: &mut usize) -> Result<Expr> {
        *terms += 1;
        if *terms > MAX_TERMS {
            return Err(refuse(
                "the condition mixes too many predicates over the same columns",
            ));
        }
        match self {
            Formula::Constant(value) => Ok(lit(f64::from(u8::from(*value)))),
            Formula::Cell(column, selection) => share(*column, selection),
            Formula::Exact(expr) => when(expr.clone(), lit(1.0)).otherwise(lit(0.0)),
            Formula::All(parts) => {
                let mut product: Option<Expr> = None;
                for group in independent(parts) {
                    let p = Self::dependent(group, true, share, terms)?;
                    product = Some(match product {
                        Some(product) => product * p,
                        None => p,
                    });
                }
                Ok(product.unwrap_or(lit(1.0)))
            }
            Formula::Any(parts) => {
                let mut none: Option<Expr> = None;
                for group in independent(parts) {
                    let p = lit(1.0) - Self::dependent(group, false, share, terms)?;
                    none = Some(match none {
                        Some(none) => none * p,
                        None => p,
                    });
                }
                Ok(none.map_or(lit(0.0), |none| lit(1.0) - none))
            }
        }
    }

    /// The probability of conditions that share columns: one column after the other is split into what the conditions
    /// tell apart, and the probabilities of the cases are added.
    fn dependent(
        mut parts: Vec<Self>,
        all: bool,
        share: &mut Share,
        terms: &mut usize,
    ) -> Result<Expr> {
        if parts.len() == 1 {
            return parts.remove(0).terms(share, terms);
        }
        let Some(column) = shared_column(&parts) else {
            return Err(refuse("the condition cannot be taken apart"));
        };
        let formula = Self::joined(parts, all);
        let mut cases: Vec<(Self, Selection)> = vec![];
        for region in formula.regions(column) {
            let case = formula.given(column, &region);
            match cases.iter_mut().find(|(known, _)| *known == case) {
                Some((_, selection)) => *selection = selection.or(&region),
                None => cases.push((case, region)),
            }
        }
        let mut sum: Option<Expr> = None;
        for (case, selection) in cases {
            let term = match case {
                Formula::Constant(false) => continue,
                Formula::Constant(true) => share(column, &selection)?,
                case => share(column, &selection)? * case.terms(share, terms)?,
            };
            sum = Some(match sum {
                Some(sum) => sum + term,
                None => term,
            });
        }
        Ok(sum.unwrap_or(lit(0.0)))
    }

    /// What is left of the condition where a column is known to be in a region, which no leaf splits.
    fn given(&self, column: usize, region: &Selection) -> Self {
        match self {
            Formula::Cell(c, selection) if *c == column => {
                Formula::Constant(!region.and(selection).is_nothing())
            }
            Formula::All(parts) => {
                Self::all(parts.iter().map(|p| p.given(column, region)).collect())
            }
            Formula::Any(parts) => {
                Self::any(parts.iter().map(|p| p.given(column, region)).collect())
            }
            other => other.clone(),
        }
    }

    /// The coarsest split of a column's values such that every leaf takes or leaves each part as a whole.
    fn regions(&self, column: usize) -> Vec<Selection> {
        let mut regions = vec![Selection::nothing().complement()];
        self.leaves(&mut |leaf| {
            if let Formula::Cell(c, selection) = leaf
                && *c == column
            {
                let outside = selection.complement();
                regions = regions
                    .iter()
                    .flat_map(|r| [r.and(selection), r.and(&outside)])
                    .filter(|r| !r.is_nothing())
                    .collect();
            }
        });
        regions
    }

    fn leaves<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        match self {
            Formula::All(parts) | Formula::Any(parts) => {
                parts.iter().for_each(|part| part.leaves(visit));
            }
            leaf => visit(leaf),
        }
    }

    /// The generalized columns it speaks of.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = vec![];
        self.leaves(&mut |leaf| {
            if let Formula::Cell(column, _) = leaf {
                columns.push(*column);
            }
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// What a record's exact columns leave to the generalized ones: conditions under which a record belongs to a case,
    /// and what must then hold. A record belongs to one case at most.
    pub fn cases(&self) -> Result<Vec<(Expr, Self)>> {
        let mut exact: Vec<&Expr> = vec![];
        self.leaves(&mut |leaf| {
            if let Formula::Exact(expr) = leaf
                && !exact.contains(&expr)
            {
                exact.push(expr);
            }
        });
        if exact.len() > MAX_EXACT {
            return Err(refuse(format!(
                "the condition mixes {} conditions on exact columns with generalized ones; at most {MAX_EXACT} are possible",
                exact.len()
            )));
        }
        let mut cases: Vec<(Expr, Self)> = vec![];
        for truth in 0..1u32 << exact.len() {
            let holds = |i: usize| truth >> i & 1 == 1;
            let rest = self.assuming(&exact, &holds);
            if rest == Formula::Constant(false) {
                continue;
            }
            let condition = exact
                .iter()
                .enumerate()
                .map(|(i, expr)| {
                    let expr = (*expr).clone();
                    if holds(i) {
                        expr
                    } else {
                        // NULL does not hold either.
                        expr.is_not_true()
                    }
                })
                .reduce(Expr::and)
                .unwrap_or(lit(true));
            match cases.iter_mut().find(|(_, known)| *known == rest) {
                Some((known, _)) => *known = known.clone().or(condition),
                None => cases.push((condition, rest)),
            }
        }
        Ok(cases)
    }

    fn assuming(&self, exact: &[&Expr], holds: &dyn Fn(usize) -> bool) -> Self {
        match self {
            Formula::Exact(expr) => match exact.iter().position(|e| *e == expr) {
                Some(i) => Formula::Constant(holds(i)),
                None => self.clone(),
            },
            Formula::All(parts) => {
                Self::all(parts.iter().map(|p| p.assuming(exact, holds)).collect())
            }
            Formula::Any(parts) => {
                Self::any(parts.iter().map(|p| p.assuming(exact, holds)).collect())
            }
            other => other.clone(),
        }
    }
}

/// Groups of parts such that no two groups share a generalized column.
fn independent(parts: &[Formula]) -> Vec<Vec<Formula>> {
    let mut groups: Vec<(Vec<usize>, Vec<Formula>)> = vec![];
    for part in parts {
        let mut columns = part.columns();
        let mut group = vec![];
        let (shared, apart): (Vec<_>, Vec<_>) = groups
            .into_iter()
            .partition(|(known, _)| known.iter().any(|c| columns.contains(c)));
        groups = apart;
        for (known, parts) in shared {
            columns.extend(known);
            group.extend(parts);
        }
        group.push(part.clone());
        groups.push((columns, group));
    }
    groups.into_iter().map(|(_, parts)| parts).collect()
}

/// The column that most parts speak of, if any two do.
fn shared_column(parts: &[Formula]) -> Option<usize> {
    let columns: Vec<Vec<usize>> = parts.iter().map(Formula::columns).collect();
    let uses = |column: usize| columns.iter().filter(|c| c.contains(&column)).count();
    let mut all: Vec<usize> = columns.concat();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
        .filter(|c| uses(*c) > 1)
        .max_by_key(|c| (uses(*c), std::cmp::Reverse(*c)))
}
