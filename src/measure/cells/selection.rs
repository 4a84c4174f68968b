//! Sets of values that a question asks for.

use std::ops::Bound;

use super::Point;

/// How a column is compared with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// One stretch of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    pub lo: Bound<Point>,
    pub hi: Bound<Point>,
}

/// Values that a question asks for, and whether it asks for missing values too.
///
/// ```text
/// age > 30 AND age <= 40      (30, 40]
/// age IN (20, 30)             [20, 20] [30, 30]
/// age IS NULL                 missing
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// In order, without overlap.
    ranges: Vec<Range>,
    missing: bool,
}

impl Selection {
    /// No value.
    pub fn nothing() -> Self {
        Self {
            ranges: vec![],
            missing: false,
        }
    }

    /// Every value, but not a missing one: `IS NOT NULL`.
    pub fn values() -> Self {
        Self::of(vec![Range {
            lo: Bound::Unbounded,
            hi: Bound::Unbounded,
        }])
    }

    /// Missing values: `IS NULL`.
    pub fn missing() -> Self {
        Self {
            ranges: vec![],
            missing: true,
        }
    }

    /// The values that compare so with a constant.
    pub fn compared(how: Comparison, point: Point) -> Self {
        use Bound::*;
        let range = |lo, hi| Self::of(vec![Range { lo, hi }]);
        match how {
            Comparison::Equal => range(Included(point.clone()), Included(point)),
            Comparison::NotEqual => Self::of(vec![
                Range {
                    lo: Unbounded,
                    hi: Excluded(point.clone()),
                },
                Range {
                    lo: Excluded(point),
                    hi: Unbounded,
                },
            ]),
            Comparison::Less => range(Unbounded, Excluded(point)),
            Comparison::LessOrEqual => range(Unbounded, Included(point)),
            Comparison::Greater => range(Excluded(point), Unbounded),
            Comparison::GreaterOrEqual => range(Included(point), Unbounded),
        }
    }

    /// `BETWEEN lo AND hi`.
    pub fn between(lo: Point, hi: Point) -> Self {
        Self::compared(Comparison::GreaterOrEqual, lo)
            .and(&Self::compared(Comparison::LessOrEqual, hi))
    }

    /// `IN (…)`.
    pub fn one_of(points: impl IntoIterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.into_iter().collect();
        points.sort_unstable();
        points.dedup();
        let point = |p: Point| Range {
            lo: Bound::Included(p.clone()),
            hi: Bound::Included(p),
        };
        Self::of(points.into_iter().map(point).collect())
    }

    /// Names that begin so: `LIKE 'abc%'`.
    pub fn prefixed(prefix: &str) -> Self {
        let from = Self::compared(Comparison::GreaterOrEqual, Point::text(prefix));
        // The next name that does not begin so: the last character that has a successor is raised.
        let mut next: Vec<char> = prefix.chars().collect();
        while let Some(last) = next.pop() {
            let successor = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
            if let Some(successor) = successor {
                next.push(successor);
                let below: String = next.into_iter().collect();
                return from.and(&Self::compared(Comparison::Less, Point::text(&below)));
            }
        }
        from
    }

    fn of(ranges: Vec<Range>) -> Self {
        Self {
            ranges,
            missing: false,
        }
    }

    /// What both select.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut ranges = vec![];
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
            let lo = later_start(&a.lo, &b.lo);
            let hi = earlier_end(&a.hi, &b.hi);
            if !is_empty(lo, hi) {
                ranges.push(Range {
                    lo: lo.clone(),
                    hi: hi.clone(),
                });
            }
            // The range that ends first cannot meet any later one.
            if std::ptr::eq(hi, &a.hi) {
                i += 1;
            } else {
                j += 1;
            }
        }
        Self {
            ranges,
            missing: self.missing && other.missing,
        }
    }

    /// What either selects.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        self.complement().and(&other.complement()).complement()
    }

    /// All that this does not select, missing values among it.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut ranges = vec![];
        let mut lo = Bound::Unbounded;
        let mut open = true;
        for range in &self.ranges {
            let hi = flipped(&range.lo);
            if !matches!(hi, Bound::Unbounded) && !is_empty(&lo, &hi) {
                ranges.push(Range { lo, hi });
            }
            open = !matches!(range.hi, Bound::Unbounded);
            lo = flipped(&range.hi);
        }
        if open {
            ranges.push(Range {
                lo,
                hi: Bound::Unbounded,
            });
        }
        Self {
            ranges,
            missing: !self.missing,
        }
    }

    /// Whether it selects a value.
    pub fn contains(&self, point: &Point) -> bool {
        let after = self.ranges.partition_point(|range| match &range.hi {
            Bound::Included(hi) => hi < point,
            Bound::Excluded(hi) => hi <= point,
            Bound::Unbounded => false,
        });
        self.ranges.get(after).is_some_and(|range| match &range.lo {
            Bound::Included(lo) => lo <= point,
            Bound::Excluded(lo) => lo < point,
            Bound::Unbounded => true,
        })
    }

    /// Whether it selects missing values.
    pub fn selects_missing(&self) -> bool {
        self.missing
    }

    /// Whether it selects nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.ranges.is_empty() && !self.missing
    }

    /// Whether every outcome is selected.
    pub fn is_everything(&self) -> bool {
        self.complement().is_nothing()
    }

    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Its stretches as text, for plans: `(30, 40]`.
    pub fn bounds(&self) -> impl Iterator<Item = (Bound<&Point>, Bound<&Point>)> {
        self.ranges.iter().map(|r| (r.lo.as_ref(), r.hi.as_ref()))
    }
}

/// The end that stands where a start stood, or the other way round.
fn flipped(bound: &Bound<Point>) -> Bound<Point> {
    match bound {
        Bound::Included(point) => Bound::Excluded(point.clone()),
        Bound::Excluded(point) => Bound::Included(point.clone()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn later_start<'a>(a: &'a Bound<Point>, b: &'a Bound<Point>) -> &'a Bound<Point> {
    use Bound::*;
    match (a, b) {
        (Unbounded, _) => b,
        (_, Unbounded) => a,
        (Included(x) | Excluded(x), Included(y) | Excluded(y)) => match x.cmp(y) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal if matches!(a, Excluded(_)) => a,
            std::cmp::Ordering::Equal => b,
        },
    }
}

fn earlier_end<'a>(a: &'a Bound<Point>, b: &'a Bound<Point>) -> &'a Bound<Point> {
    use Bound::*;
    match (a, b) {
        (_, Unbounded) => a,
        (Unbounded, _) => b,
        (Included(x) | Excluded(x), Included(y) | Excluded(y)) => match x.cmp(y) {
            std::cmp::Ordering::Less => a,
            std::cmp::Ordering::Greater => b,
            std::cmp::Ordering::Equal if matches!(a, Excluded(_)) => a,
            std::cmp::Ordering::Equal => b,
        },
    }
}

fn is_empty(lo: &Bound<Point>, hi: &Bound<Point>) -> bool {
    use Bound::*;
    match (lo, hi) {
        (Unbounded, _) | (_, Unbounded) => false,
        (Included(lo), Included(hi)) => lo > hi,
        (Included(lo) | Excluded(lo), Included(hi) | Excluded(hi)) => lo >= hi,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn atom() -> impl Strategy<Value = (Selection, Vec<bool>)> {
        let how = prop_oneof![
            Just(Comparison::Equal),
            Just(Comparison::NotEqual),
            Just(Comparison::Less),
            Just(Comparison::LessOrEqual),
            Just(Comparison::Greater),
            Just(Comparison::GreaterOrEqual),
        ];
        (how, 0..8i128).prop_map(|(how, at)| {
            let truth = (0..8i128).map(|x| match how {
                Comparison::Equal => x == at,
                Comparison::NotEqual => x != at,
                Comparison::Less => x < at,
                Comparison::LessOrEqual => x <= at,
                Comparison::Greater => x > at,
                Comparison::GreaterOrEqual => x >= at,
            });
            let truth = truth.collect();
            (Selection::compared(how, Point::Integer(at)), truth)
        })
    }

    proptest! {
        #![proptest_config(crate::repeatable::cases(256))]

        #[test]
        fn algebra_is_that_of_sets(atoms in prop::collection::vec((atom(), 0..3u8), 1..8)) {
            let mut selection = Selection::nothing();
            let mut truth = [false; 8];
            let mut missing = false;
            for ((s, t), how) in atoms {
                match how {
                    0 => {
                        selection = selection.and(&s);
                        truth.iter_mut().zip(&t).for_each(|(a, b)| *a &= b);
                        missing = false;
                    }
                    1 => {
                        selection = selection.or(&s);
                        truth.iter_mut().zip(&t).for_each(|(a, b)| *a |= b);
                    }
                    _ => {
                        selection = selection.complement();
                        truth.iter_mut().for_each(|a| *a = !*a);
                        missing = !missing;
                    }
                }
            }
            for (x, expected) in truth.iter().enumerate() {
                prop_assert_eq!(selection.contains(&Point::Integer(x as i128)), *expected);
            }
            prop_assert_eq!(selection.selects_missing(), missing);
        }
    }

    #[test]
    fn extremes() {
        assert!(Selection::nothing().complement().is_everything());
        assert!(
            Selection::values()
                .or(&Selection::missing())
                .is_everything()
        );
        assert!(Selection::values().and(&Selection::missing()).is_nothing());
        assert!(Selection::between(Point::Integer(3), Point::Integer(2)).is_nothing());
    }

    #[test]
    fn prefixes() {
        let selection = Selection::prefixed("1007");
        for (text, inside) in [
            ("1007", true),
            ("10079", true),
            ("1008", false),
            ("100", false),
        ] {
            assert_eq!(selection.contains(&Point::text(text)), inside, "{text}");
        }
        assert!(Selection::prefixed("").contains(&Point::text("x")));
        let last = char::MAX.to_string();
        assert!(Selection::prefixed(&last).contains(&Point::text(&format!("{last}a"))));
    }
}
