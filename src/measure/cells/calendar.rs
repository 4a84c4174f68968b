//! Parts of the calendar as labels: `2026-11-16`, `2026-11`, `2026-Q4`, `2026`, `2020s`.

use chrono::NaiveDate;
use datafusion::arrow::datatypes::{DataType, TimeUnit};

use super::{Cell, Point};

/// What a label stands for in a column of dates or timestamps; `None` if it is no label of the calendar.
///
/// A day is an exact value of a column of dates.
pub(super) fn calendar(text: &str, value_type: &DataType) -> Option<Cell> {
    let units = units_per_day(value_type)?;
    let (first, next) = days(text.trim())?;
    let start = |day: NaiveDate| i128::from(day.to_epoch_days()) * units;
    let (from, to) = (start(first), start(next) - 1);
    if from == to {
        return Some(Cell::exact(Point::Integer(from)));
    }
    Some(Cell::Interval(Point::Integer(from), Point::Integer(to)))
}

fn units_per_day(data_type: &DataType) -> Option<i128> {
    let seconds = 24 * 60 * 60;
    Some(match data_type {
        DataType::Date32 => 1,
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => seconds,
            TimeUnit::Millisecond => seconds * 1_000,
            TimeUnit::Microsecond => seconds * 1_000_000,
            TimeUnit::Nanosecond => seconds * 1_000_000_000,
        },
        _ => return None,
    })
}

/// The first day of a part of the calendar, and the first one behind it.
fn days(text: &str) -> Option<(NaiveDate, NaiveDate)> {
    let first = |year: i32, month: u32| NaiveDate::from_ymd_opt(year, month, 1);
    if let Some(decade) = text.strip_suffix('s') {
        let year = year(decade).filter(|year| year % 10 == 0)?;
        return Some((first(year, 1)?, first(year + 10, 1)?));
    }
    let mut parts = text.splitn(3, '-');
    let year = year(parts.next()?)?;
    let Some(part) = parts.next() else {
        return Some((first(year, 1)?, first(year + 1, 1)?));
    };
    if let Some(quarter) = part.strip_prefix('Q') {
        let quarter = quarter.parse().ok().filter(|q| (1..=4).contains(q))?;
        return match (parts.next(), quarter) {
            (Some(_), _) => None,
            (None, 4) => Some((first(year, 10)?, first(year + 1, 1)?)),
            (None, quarter) => Some((first(year, 3 * quarter - 2)?, first(year, 3 * quarter + 1)?)),
        };
    }
    let month = number(part, 2)?;
    match parts.next() {
        Some(day) => {
            let day = NaiveDate::from_ymd_opt(year, month, number(day, 2)?)?;
            Some((day, day.succ_opt()?))
        }
        None if month == 12 => Some((first(year, 12)?, first(year + 1, 1)?)),
        None => Some((first(year, month)?, first(year, month + 1)?)),
    }
}

fn year(text: &str) -> Option<i32> {
    number(text, 4).and_then(|year| i32::try_from(year).ok())
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_calendar() {
        let values = |text: &str| calendar(text, &DataType::Date32).and_then(|c| c.values());
        for (text, days) in [
            ("2026-11-16", 1),
            ("2026-11", 30),
            ("2026-12", 31),
            ("2024-02", 29),
            ("2026-Q1", 90),
            ("2026-Q4", 92),
            ("2026", 365),
            ("2020s", 3653),
        ] {
            assert_eq!(values(text), Some(days), "{text}");
        }
        for text in [
            "",
            "26",
            "2026-13",
            "2026-Q5",
            "2026-Q1-1",
            "2025s",
            "2026-1",
            "2026-11-31",
            "a",
            "[1, 2]",
        ] {
            assert_eq!(values(text), None, "{text}");
        }
        assert_eq!(calendar("2026", &DataType::Int32), None);
    }

    #[test]
    fn a_day_is_an_interval_of_times() {
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let day = calendar("1970-01-02", &seconds);
        let (from, to) = (Point::Integer(86_400), Point::Integer(2 * 86_400 - 1));
        assert_eq!(day, Some(Cell::Interval(from, to)));
    }
}
