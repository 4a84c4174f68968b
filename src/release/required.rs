//! Levels that a table must reach: `--require k=10`, `require => {k: 10}`, `[require]` in a job.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A level that a measure must reach: at least this where more is better, otherwise at most this.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredLevel {
    /// The measure.
    pub measure: String,
    /// The level.
    pub level: f64,
}

/// What a table attains of a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attained<'a> {
    /// The measure.
    pub measure: &'a str,
    /// Whether this is about all columns, where there are others about one of several.
    pub total: bool,
    /// How much; none where that is not known.
    pub value: Option<f64>,
    /// Whether more is better.
    pub higher: bool,
}

/// Whether a required level is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Required {
    /// The measure.
    pub measure: String,
    /// `higher` or `lower` is better.
    pub better: String,
    /// What was required.
    pub level: f64,
    /// What is attained; none where that is not known.
    pub value: Option<f64>,
    /// Whether the level is reached.
    pub passed: bool,
}

impl fmt::Display for Required {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.better.as_str() {
            "higher" => "at least",
            _ => "at most",
        };
        let Self { measure, level, .. } = self;
        write!(f, "{measure} must be {bound} {level}, ")?;
        match (self.passed, self.value) {
            (true, Some(value)) => write!(f, "and is {value}"),
            (false, Some(value)) => write!(f, "but is {value}"),
            (_, None) => f.write_str("but is not known"),
        }
    }
}

/// A level of a measure that there is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel {
    /// The name.
    pub measure: String,
    /// The names that there are.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.iter().map(String::as_str);
        let near = crate::error::did_you_mean(&self.measure, known);
        let (measure, known) = (&self.measure, self.known.join(", "));
        write!(f, "there is no level '{measure}'{near} (levels: {known})")
    }
}

/// Judges levels. A measure of several columns counts in total, or, where there is no total, by the worst of them. What is
/// not known reaches no level.
///
/// # Errors
///
/// If there is no such measure.
pub fn judge(
    levels: &[RequiredLevel],
    attained: &[Attained<'_>],
) -> Result<Vec<Required>, UnknownLevel> {
    levels
        .iter()
        .map(|level| judge_one(level, attained))
        .collect()
}

fn judge_one(
    required: &RequiredLevel,
    attained: &[Attained<'_>],
) -> Result<Required, UnknownLevel> {
    let own = attained.iter().filter(|a| a.measure == required.measure);
    let total = attained
        .iter()
        .any(|a| a.measure == required.measure && a.total);
    let own: Vec<&Attained> = own.filter(|a| a.total || !total).collect();
    let Some(higher) = own.first().map(|a| a.higher) else {
        let mut known: Vec<String> = vec![];
        for Attained { measure, .. } in attained {
            if !known.iter().any(|name| name == measure) {
                known.push((*measure).to_owned());
            }
        }
        let measure = required.measure.clone();
        return Err(UnknownLevel { measure, known });
    };
    let values: Option<Vec<f64>> = own.iter().map(|a| a.value).collect();
    let worse = |a: f64, b: f64| if higher { a.min(b) } else { a.max(b) };
    let value = values.and_then(|values| values.into_iter().reduce(worse));
    let passed = value.is_some_and(|value| match higher {
        true => value >= required.level,
        false => value <= required.level,
    });
    Ok(Required {
        measure: required.measure.clone(),
        better: if higher { "higher" } else { "lower" }.to_owned(),
        level: required.level,
        value,
        passed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attained(measure: &str, total: bool, value: Option<f64>, higher: bool) -> Attained<'_> {
        Attained {
            measure,
            total,
            value,
            higher,
        }
    }

    fn judged(measure: &str, level: f64, attained: &[Attained<'_>]) -> Result<Required, String> {
        let measure = measure.to_owned();
        let judged = judge(&[RequiredLevel { measure, level }], attained);
        judged
            .map(|mut all| all.remove(0))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn levels_are_bounds_in_the_right_direction() {
        let all = [
            attained("k", false, Some(4.0), true),
            attained("risk", false, Some(0.25), false),
            attained("t", false, None, false),
        ];
        for (measure, level, passed) in [
            ("k", 4.0, true),
            ("k", 4.5, false),
            ("risk", 0.25, true),
            ("risk", 0.24, false),
            ("t", 1.0, false),
        ] {
            assert_eq!(
                judged(measure, level, &all).unwrap().passed,
                passed,
                "{measure} {level}"
            );
        }
        let said = judged("k", 5.0, &all).unwrap().to_string();
        assert_eq!(said, "k must be at least 5, but is 4");
        let said = judged("rsk", 1.0, &all).unwrap_err();
        assert_eq!(
            said,
            "there is no level 'rsk'; did you mean 'risk'? (levels: k, risk, t)"
        );
    }

    #[test]
    fn the_total_counts_or_the_worst() {
        let column = |value| attained("loss", false, value, false);
        let columns = [column(Some(0.1)), column(Some(0.4))];
        assert_eq!(judged("loss", 1.0, &columns).unwrap().value, Some(0.4));
        let unknown = [column(Some(0.1)), column(None)];
        assert!(!judged("loss", 1.0, &unknown).unwrap().passed);
        let total = [column(Some(0.4)), attained("loss", true, Some(0.2), false)];
        assert_eq!(judged("loss", 0.3, &total).unwrap().value, Some(0.2));
        let least = [
            attained("l", false, Some(5.0), true),
            attained("l", false, Some(3.0), true),
        ];
        assert_eq!(judged("l", 4.0, &least).unwrap().value, Some(3.0));
    }
}
