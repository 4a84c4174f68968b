//! The loss of one published cell, against the domain of its column.

use super::{Cell, Point};

/// The values that a column has in the original table, or that it is said to have.
#[derive(Debug, Clone, PartialEq)]
pub enum CellDomain {
    /// A line from the smallest to the largest value.
    Range(Point, Point),
    /// Names, or values treated as such, in order and distinct.
    Values(Box<[Point]>),
    /// Nothing is known of any value: the column is empty, or has missing values only.
    Empty,
}

/// What one cell loses, by each measure; 0 for an exact value, 1 for one that is suppressed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CellLoss {
    /// Wang 2018, Eqs. 11 and 12 for an exact original: (b − a) / (U − L), or (|v| − 1) / (|X| − 1).
    pub glm: f64,
    /// Gong 2017's NCP, values counted: |v| / |A|, and 0 for one value.
    pub ncp_count: f64,
    /// Wang 2018, Eqs. 3 and 4: (u − l) / (U − L), or |v| / |A| and 0 for one value.
    pub ncp_range: f64,
}

const FULL: CellLoss = CellLoss {
    glm: 1.0,
    ncp_count: 1.0,
    ncp_range: 1.0,
};

impl CellDomain {
    /// The smallest range with these ends; [`CellDomain::Empty`] if one is missing.
    pub fn range(lo: Option<Point>, hi: Option<Point>) -> Self {
        match (lo, hi) {
            (Some(lo), Some(hi)) if lo <= hi => CellDomain::Range(lo, hi),
            _ => CellDomain::Empty,
        }
    }

    /// These values.
    pub fn values(points: impl IntoIterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.into_iter().collect();
        points.sort_unstable();
        points.dedup();
        if points.is_empty() {
            CellDomain::Empty
        } else {
            CellDomain::Values(points.into())
        }
    }

    /// What a cell loses. What reaches beyond the domain loses as much as the whole of it.
    pub fn loss(&self, cell: &Cell) -> CellLoss {
        if matches!(cell, Cell::Suppressed) {
            return FULL;
        }
        if cell.is_exact() {
            return CellLoss::default();
        }
        match self {
            CellDomain::Empty => FULL,
            CellDomain::Range(lo, hi) => range_loss(cell, lo, hi),
            CellDomain::Values(values) => values_loss(cell, values),
        }
    }
}

fn range_loss(cell: &Cell, lo: &Point, hi: &Point) -> CellLoss {
    let whole = Cell::Interval(lo.clone(), hi.clone());
    let (Some(width), Some(whole_width)) = (cell.range(), whole.range()) else {
        return FULL;
    };
    let range = share(width, whole_width);
    let count = match (cell, cell.values(), whole.values()) {
        // Between the ends of a set of numbers there may be others that it does not stand for.
        (_, Some(values), Some(all)) => share(values as f64, all as f64),
        _ => range,
    };
    CellLoss {
        glm: range,
        ncp_count: count,
        ncp_range: range,
    }
}

fn values_loss(cell: &Cell, domain: &[Point]) -> CellLoss {
    let values = match cell {
        Cell::Set(values) => values.len(),
        _ => domain.iter().filter(|v| cell.covers(Some(v))).count(),
    };
    if values <= 1 {
        return CellLoss::default();
    }
    let counted = share(values as f64, domain.len() as f64);
    CellLoss {
        glm: share((values - 1) as f64, (domain.len() - 1) as f64),
        ncp_count: counted,
        ncp_range: counted,
    }
}

/// A part of a whole, at most 1; a column with one value loses nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (part / whole).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(n: i128) -> Point {
        Point::Integer(n)
    }

    fn postcodes() -> CellDomain {
        CellDomain::values([10070, 10073, 10076, 10077, 10085, 10086, 10087].map(whole))
    }

    /// Wang 2018, Section 2.2: 32 → [30, 34] in [30, 39], 10073 → 1007* in seven postcodes.
    #[test]
    fn the_papers_example() {
        let age = CellDomain::Range(whole(30), whole(39));
        let loss = age.loss(&Cell::Interval(whole(30), whole(34)));
        assert_eq!((loss.glm, loss.ncp_range), (4.0 / 9.0, 4.0 / 9.0));
        assert_eq!(loss.ncp_count, 5.0 / 10.0);
        let masked = Cell::Masked {
            prefix: "1007".into(),
            stars: 1,
        };
        let loss = postcodes().loss(&masked);
        assert_eq!((loss.glm, loss.ncp_range), (1.0 / 2.0, 4.0 / 7.0));
        assert_eq!(loss.ncp_count, 4.0 / 7.0);
    }

    #[test]
    fn nothing_and_everything() {
        for domain in [
            postcodes(),
            CellDomain::Range(whole(0), whole(9)),
            CellDomain::Empty,
        ] {
            assert_eq!(domain.loss(&Cell::Suppressed), FULL);
            assert_eq!(domain.loss(&Cell::Missing), CellLoss::default());
            assert_eq!(domain.loss(&Cell::exact(whole(5))), CellLoss::default());
        }
        let wide = Cell::Interval(whole(-50), whole(50));
        assert_eq!(CellDomain::Range(whole(0), whole(9)).loss(&wide), FULL);
        // A column with one value: E11.
        let one = CellDomain::Range(whole(7), whole(7));
        assert_eq!(one.loss(&Cell::Interval(whole(7), whole(8))).glm, 0.0);
        let one = CellDomain::values([whole(7)]);
        assert_eq!(one.loss(&Cell::set([whole(7), whole(8)])).glm, 0.0);
    }

    #[test]
    fn reals_are_measured_by_length() {
        let domain = CellDomain::Range(Point::Real(0.0), Point::Real(8.0));
        let loss = domain.loss(&Cell::Interval(Point::Real(1.0), Point::Real(3.0)));
        assert_eq!(
            (loss.glm, loss.ncp_count, loss.ncp_range),
            (0.25, 0.25, 0.25)
        );
    }
}
