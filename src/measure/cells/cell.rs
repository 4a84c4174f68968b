//! What one published value may stand for.

use std::ops::Bound;

use super::selection::Range;
use super::{Point, Selection};

/// What one published value may stand for.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Anything: nothing is said, not even whether there is a value.
    Suppressed,
    /// There is no value.
    Missing,
    /// A value between both, ends included.
    Interval(Point, Point),
    /// One of these, in order and distinct.
    Set(Box<[Point]>),
    /// A name whose last characters are hidden: `1007*`.
    ///
    /// Several stars stand for one character each; a single star stands for any ending.
    Masked {
        /// What is shown.
        prefix: Box<str>,
        /// Number of stars.
        stars: u32,
    },
}

impl Cell {
    /// An exact value.
    pub fn exact(point: Point) -> Self {
        Cell::Set(Box::new([point]))
    }

    /// One of some values.
    pub fn set(points: impl IntoIterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.into_iter().collect();
        points.sort_unstable();
        points.dedup();
        Cell::Set(points.into())
    }

    /// The cell as it is read by somebody who knows the domain of the column, itself a cell: what is suppressed may be any
    /// value of the domain, and a mask those values of the domain that it fits.
    #[must_use]
    pub fn within(&self, domain: &Cell) -> Cell {
        match (self, domain) {
            (Cell::Suppressed, _) => domain.clone(),
            (Cell::Masked { .. }, Cell::Set(values)) => {
                let fitting: Vec<Point> = values
                    .iter()
                    .filter(|v| self.covers(Some(v)))
                    .cloned()
                    .collect();
                // A domain that does not know the mask says nothing about it.
                if fitting.is_empty() {
                    self.clone()
                } else {
                    Cell::Set(fitting.into())
                }
            }
            _ => self.clone(),
        }
    }

    /// All that some cells may stand for, as one cell: the domain of a column of which nothing else is known. Cells that
    /// say nothing add nothing.
    pub fn hull<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Option<Cell> {
        let (mut line, mut points) = (false, vec![]);
        for cell in cells {
            match cell {
                Cell::Interval(lo, hi) => {
                    line = true;
                    points.extend([lo.clone(), hi.clone()]);
                }
                Cell::Set(values) => points.extend(values.iter().cloned()),
                Cell::Suppressed | Cell::Missing | Cell::Masked { .. } => {}
            }
        }
        let (lo, hi) = (points.iter().min()?.clone(), points.iter().max()?.clone());
        Some(if line {
            Cell::Interval(lo, hi)
        } else {
            Cell::set(points)
        })
    }

    /// Whether the original value may have been this one; `None` is a missing value.
    pub fn covers(&self, value: Option<&Point>) -> bool {
        match (self, value) {
            (Cell::Suppressed, _) => true,
            (Cell::Missing, value) => value.is_none(),
            (_, None) => false,
            (Cell::Interval(lo, hi), Some(value)) => lo <= value && value <= hi,
            (Cell::Set(values), Some(value)) => values.binary_search(value).is_ok(),
            (Cell::Masked { prefix, stars }, Some(value)) => {
                let number;
                let text: &str = match value {
                    Point::Text(text) => text,
                    Point::Integer(whole) => {
                        number = whole.to_string();
                        &number
                    }
                    Point::Real(_) => return false,
                };
                text.strip_prefix(prefix.as_ref())
                    .is_some_and(|rest| *stars == 1 || rest.chars().count() == *stars as usize)
            }
        }
    }

    /// Whether it says which value it is, or that there is none.
    pub fn is_exact(&self) -> bool {
        match self {
            Cell::Missing => true,
            Cell::Interval(lo, hi) => lo == hi,
            Cell::Set(values) => values.len() == 1,
            Cell::Suppressed | Cell::Masked { .. } => false,
        }
    }

    /// Number of values it may stand for: `b - a + 1` for whole numbers.
    ///
    /// `None` where values cannot be counted: reals between two ends, names behind a mask without digits, and suppressed
    /// cells, unless the domain is known ([`Cell::within`]).
    pub fn values(&self) -> Option<u128> {
        match self {
            Cell::Missing => Some(1),
            Cell::Interval(Point::Integer(lo), Point::Integer(hi)) => {
                u128::try_from(hi.checked_sub(*lo)?).ok()?.checked_add(1)
            }
            Cell::Interval(lo, hi) => (lo == hi).then_some(1),
            Cell::Set(values) => Some(values.len() as u128),
            Cell::Masked { prefix, stars } => completions(prefix, *stars),
            Cell::Suppressed => None,
        }
    }

    /// Distance between the smallest and the largest number it may stand for: `b - a`. `None` for names.
    pub fn range(&self) -> Option<f64> {
        let (lo, hi) = match self {
            Cell::Missing => return Some(0.0),
            Cell::Interval(lo, hi) => (lo, hi),
            Cell::Set(values) => (values.first()?, values.last()?),
            Cell::Suppressed | Cell::Masked { .. } => return None,
        };
        match (lo, hi) {
            (Point::Integer(lo), Point::Integer(hi)) => Some(hi.checked_sub(*lo)? as f64),
            _ => Some(hi.number()? - lo.number()?),
        }
    }

    /// The share of the values it may stand for that are selected: the probability that the original value is, if each
    /// of them is as likely as any other.
    ///
    /// Whole numbers are counted, reals are measured by length, a point is inside or not. `None` where it cannot be said:
    /// a suppressed cell or a mask of unknown extent, unless the selection takes everything or nothing.
    pub fn share(&self, selection: &Selection) -> Option<f64> {
        if selection.is_nothing() {
            return Some(0.0);
        }
        match self {
            Cell::Missing => Some(f64::from(u8::from(selection.selects_missing()))),
            Cell::Interval(lo, hi) if lo == hi => Some(inside(selection, lo)),
            Cell::Interval(Point::Integer(lo), Point::Integer(hi)) => {
                let all = hi.checked_sub(*lo)?.checked_add(1)?;
                let ranges = selection.ranges().iter();
                let selected: i128 = ranges
                    .map(|r| whole_numbers(r, *lo, *hi))
                    .sum::<Option<i128>>()?;
                Some(selected as f64 / all as f64)
            }
            Cell::Interval(lo, hi) => {
                let (lo, hi) = (lo.number()?, hi.number()?);
                let ranges = selection.ranges().iter();
                let selected: f64 = ranges.map(|r| length(r, lo, hi)).sum();
                Some((selected / (hi - lo)).clamp(0.0, 1.0))
            }
            Cell::Set(values) => {
                let selected = values.iter().filter(|v| selection.contains(v)).count();
                Some(selected as f64 / values.len() as f64)
            }
            Cell::Masked { prefix, stars } => {
                if let Some(all) = completions(prefix, *stars) {
                    let ranges = selection.ranges().iter();
                    let selected: u128 = ranges.map(|r| completed(r, prefix, *stars)).sum();
                    return Some(selected as f64 / all as f64);
                }
                selection.is_everything().then_some(1.0)
            }
            Cell::Suppressed => selection.is_everything().then_some(1.0),
        }
    }
}

fn inside(selection: &Selection, point: &Point) -> f64 {
    f64::from(u8::from(selection.contains(point)))
}

/// How many whole numbers from `lo` to `hi` are in a range; `None` for a range of names.
fn whole_numbers(range: &Range, lo: i128, hi: i128) -> Option<i128> {
    let from = match &range.lo {
        Bound::Unbounded => lo,
        Bound::Included(Point::Text(_)) | Bound::Excluded(Point::Text(_)) => return None,
        Bound::Included(Point::Integer(x)) => *x,
        Bound::Excluded(Point::Integer(x)) => x.saturating_add(1),
        Bound::Included(Point::Real(x)) => x.ceil() as i128,
        Bound::Excluded(Point::Real(x)) => (x.floor() as i128).saturating_add(1),
    };
    let to = match &range.hi {
        Bound::Unbounded => hi,
        Bound::Included(Point::Text(_)) | Bound::Excluded(Point::Text(_)) => return None,
        Bound::Included(Point::Integer(x)) => *x,
        Bound::Excluded(Point::Integer(x)) => x.saturating_sub(1),
        Bound::Included(Point::Real(x)) => x.floor() as i128,
        Bound::Excluded(Point::Real(x)) => (x.ceil() as i128).saturating_sub(1),
    };
    let count = to.min(hi).saturating_sub(from.max(lo)).saturating_add(1);
    Some(count.max(0))
}

/// How much of the line from `lo` to `hi` is in a range.
fn length(range: &Range, lo: f64, hi: f64) -> f64 {
    let end = |bound: &Bound<Point>, open: f64| match bound {
        Bound::Included(point) | Bound::Excluded(point) => point.number().unwrap_or(open),
        Bound::Unbounded => open,
    };
    (end(&range.hi, hi).min(hi) - end(&range.lo, lo).max(lo)).max(0.0)
}

/// How many names a mask of digits stands for; one star is one digit here, because without a domain nothing else can be
/// counted.
fn completions(prefix: &str, stars: u32) -> Option<u128> {
    let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    if digits {
        10u128.checked_pow(stars)
    } else {
        None
    }
}

/// How many completions of a mask of digits are in a range of names.
fn completed(range: &Range, prefix: &str, stars: u32) -> u128 {
    let below = |point: &Point| match point {
        Point::Text(text) => completions_below(text, prefix, stars),
        Point::Integer(whole) => completions_below(&whole.to_string(), prefix, stars),
        Point::Real(_) => (0, false),
    };
    let from = match &range.lo {
        Bound::Unbounded => 0,
        Bound::Included(point) => below(point).0,
        Bound::Excluded(point) => {
            let (count, itself) = below(point);
            count + u128::from(itself)
        }
    };
    let to = match &range.hi {
        Bound::Unbounded => 10u128.checked_pow(stars).unwrap_or(u128::MAX),
        Bound::Excluded(point) => below(point).0,
        Bound::Included(point) => {
            let (count, itself) = below(point);
            count + u128::from(itself)
        }
    };
    to.saturating_sub(from)
}

/// How many completions stand before a name in the order of names, and whether it is one itself.
fn completions_below(name: &str, prefix: &str, stars: u32) -> (u128, bool) {
    let power = |digits: u32| 10u128.saturating_pow(digits);
    let Some(rest) = name.strip_prefix(prefix) else {
        let all = if name > prefix { power(stars) } else { 0 };
        return (all, false);
    };
    let mut below = 0;
    let mut rest = rest.bytes();
    for left in (0..stars).rev() {
        match rest.next() {
            None => return (below, false),
            Some(digit) if digit.is_ascii_digit() => {
                below += u128::from(digit - b'0') * power(left);
            }
            Some(byte) if byte < b'0' => return (below, false),
            Some(_) => return (below + power(left + 1), false),
        }
    }
    // The name goes on behind a completion, which therefore stands before it.
    match rest.next() {
        None => (below, true),
        Some(_) => (below + 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Comparison;
    use super::*;
    use Comparison::*;

    fn interval(lo: i128, hi: i128) -> Cell {
        Cell::Interval(Point::Integer(lo), Point::Integer(hi))
    }

    fn share(cell: &Cell, how: Comparison, point: Point) -> Option<f64> {
        cell.share(&Selection::compared(how, point))
    }

    #[test]
    fn whole_numbers_are_counted() {
        let cell = interval(33, 34);
        for (how, at, expected) in [
            (Greater, 33, 0.5),
            (GreaterOrEqual, 33, 1.0),
            (Less, 33, 0.0),
            (Equal, 34, 0.5),
            (NotEqual, 34, 0.5),
            (NotEqual, 35, 1.0),
        ] {
            assert_eq!(share(&cell, how, Point::Integer(at)), Some(expected));
        }
        assert_eq!(share(&cell, Greater, Point::Real(33.5)), Some(0.5));
        assert_eq!(share(&cell, Equal, Point::Real(33.5)), Some(0.0));
        let ten = interval(30, 39);
        let between = Selection::between(Point::Integer(28), Point::Integer(32));
        assert_eq!(ten.share(&between), Some(0.3));
    }

    #[test]
    fn counting_agrees_with_trying_every_number() {
        for lo in -3..3i128 {
            for hi in lo..4 {
                for at in -5..6i128 {
                    for how in [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual] {
                        for point in [Point::Integer(at), Point::Real(at as f64 + 0.5)] {
                            let selection = Selection::compared(how, point);
                            let inside = (lo..=hi)
                                .filter(|x| selection.contains(&Point::Integer(*x)))
                                .count();
                            let expected = inside as f64 / (hi - lo + 1) as f64;
                            assert_eq!(interval(lo, hi).share(&selection), Some(expected));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn reals_are_measured_and_points_are_inside_or_not() {
        let cell = Cell::Interval(Point::Real(1.0), Point::Real(3.0));
        assert_eq!(share(&cell, Less, Point::Real(1.5)), Some(0.25));
        assert_eq!(share(&cell, Equal, Point::Real(2.0)), Some(0.0));
        assert_eq!(share(&cell, NotEqual, Point::Real(2.0)), Some(1.0));
        let point = Cell::Interval(Point::Real(2.0), Point::Real(2.0));
        assert_eq!(share(&point, Equal, Point::Real(2.0)), Some(1.0));
        assert_eq!(share(&point, Less, Point::Real(2.0)), Some(0.0));
    }

    #[test]
    fn missing_matches_nothing_but_is_null() {
        assert_eq!(
            share(&Cell::Missing, NotEqual, Point::Integer(1)),
            Some(0.0)
        );
        assert_eq!(Cell::Missing.share(&Selection::missing()), Some(1.0));
        assert_eq!(interval(1, 2).share(&Selection::missing()), Some(0.0));
        assert!(Cell::Missing.covers(None) && !interval(1, 2).covers(None));
    }

    #[test]
    fn suppressed_is_unknown_unless_the_domain_is_known() {
        let half = Selection::compared(Less, Point::Integer(5));
        assert_eq!(Cell::Suppressed.share(&half), None);
        let within = Cell::Suppressed.within(&interval(0, 9));
        assert_eq!(within.share(&half), Some(0.5));
        assert!(Cell::Suppressed.covers(None));
    }

    #[test]
    fn masks_count_digits_or_the_domain() {
        let mask = |prefix: &str, stars| Cell::Masked {
            prefix: prefix.into(),
            stars,
        };
        let text = |t: &str| Point::text(t);
        assert_eq!(share(&mask("1007", 1), Equal, text("10073")), Some(0.1));
        assert_eq!(share(&mask("1007", 1), Less, text("10073")), Some(0.3));
        assert_eq!(
            share(&mask("1007", 1), LessOrEqual, text("10073")),
            Some(0.4)
        );
        assert_eq!(share(&mask("100", 2), Greater, text("1007")), Some(0.3));
        assert_eq!(share(&mask("SW", 1), Equal, text("SW1")), None);
        let domain = Cell::set(["10070", "10073", "10085", "SW1"].map(text));
        let within = mask("1007", 1).within(&domain);
        assert_eq!(share(&within, Equal, text("10073")), Some(0.5));
        assert!(mask("100", 1).covers(Some(&text("10073"))));
        assert!(mask("1007", 1).covers(Some(&Point::Integer(10_073))));
        assert!(!mask("100", 3).covers(Some(&text("10073"))));
        // Trying every completion.
        for at in [
            "09", "10", "100", "1000", "10045", "10050", "1006", "10072", "101", "1:",
        ] {
            for how in [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual] {
                let selection = Selection::compared(how, text(at));
                let all = (0..100).map(|n| text(&format!("100{n:02}")));
                let inside = all.filter(|p| selection.contains(p)).count();
                assert_eq!(
                    mask("100", 2).share(&selection),
                    Some(inside as f64 / 100.0),
                    "{at}"
                );
            }
        }
    }

    #[test]
    fn hulls() {
        let cells = [
            interval(3, 5),
            Cell::Suppressed,
            interval(1, 2),
            Cell::Missing,
        ];
        assert_eq!(Cell::hull(&cells), Some(interval(1, 5)));
        let sets = [Cell::exact(Point::text("b")), Cell::exact(Point::text("a"))];
        assert_eq!(
            Cell::hull(&sets),
            Some(Cell::set([Point::text("a"), Point::text("b")]))
        );
        assert_eq!(Cell::hull([&Cell::Suppressed]), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(interval(30, 39).values(), Some(10));
        assert_eq!(interval(30, 39).range(), Some(9.0));
        let real = Cell::Interval(Point::Real(0.5), Point::Real(2.0));
        assert_eq!((real.values(), real.range()), (None, Some(1.5)));
        let names = Cell::set([Point::text("b"), Point::text("a"), Point::text("b")]);
        assert_eq!((names.values(), names.range()), (Some(2), None));
        assert_eq!(Cell::Suppressed.values(), None);
        assert_eq!(Cell::Missing.values(), Some(1));
    }
}
