//! Which trend of a paper holds, in a sentence made from the numbers.

use crate::plot::Plot;

/// How a curve goes from its first point to its last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    Rises,
    Falls,
    /// The last point differs from the first by less than a twentieth.
    Stays,
    /// Every point lies below that of the curve with this name.
    Below(&'static str),
}

impl Trend {
    fn of(points: &[(f64, f64)]) -> Self {
        let ends = points.first().zip(points.last());
        let (first, last) = ends.map_or((0.0, 0.0), |(first, last)| (first.1, last.1));
        if (last - first).abs() < 0.05 * first.abs().max(last.abs()).max(f64::MIN_POSITIVE) {
            return Self::Stays;
        }
        if last > first {
            Self::Rises
        } else {
            Self::Falls
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Rises => "rises",
            Self::Falls => "falls",
            Self::Stays => "stays",
            Self::Below(_) => "lies below",
        }
    }
}

/// What the paper says of some curves, and for which of them it holds here.
pub struct Claim {
    pub says: &'static str,
    pub trend: Trend,
    /// Only curves whose name has this part.
    pub of: &'static str,
}

impl Claim {
    /// The sentence under a plot.
    pub fn sentence(&self, plot: &Plot) -> String {
        let (mut holds, mut fails) = (vec![], vec![]);
        for (name, points) in plot
            .series
            .iter()
            .filter(|(name, _)| name.contains(self.of))
        {
            let seen = match self.trend {
                Trend::Below(other) if is_below(points, other, plot) => self.trend,
                Trend::Below(_) => {
                    fails.push(name.clone());
                    continue;
                }
                _ => Trend::of(points),
            };
            match seen == self.trend {
                true => holds.push(name.clone()),
                false => fails.push(format!("{name}, which {}", seen.word())),
            }
        }
        let way = match self.trend {
            Trend::Below(_) => "At every point",
            _ => "From the first point to the last",
        };
        let list = |names: Vec<String>| match names.is_empty() {
            true => "no curve".to_owned(),
            false => names.join("; "),
        };
        let exceptions = match fails.is_empty() {
            true => String::new(),
            false => format!(", not for {}", list(fails)),
        };
        format!(
            "The paper: {} {way} this holds for {}{exceptions}.",
            self.says,
            list(holds)
        )
    }
}

fn is_below(points: &[(f64, f64)], other: &str, plot: &Plot) -> bool {
    let other = plot.series.iter().find(|(name, _)| name == other);
    other.is_some_and(|(_, others)| points.iter().zip(others).all(|(a, b)| a.1 < b.1))
}
