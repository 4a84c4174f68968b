//! From values to leaves of a hierarchy, with what each node loses.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType, TimeUnit, UInt32Type};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{DateLevel, Domain, Keys, Levels};
use crate::table::{LossTree, NULL_CODE, Taxonomy};

/// The label of every root that is not given.
const ANYTHING: &str = "*";

/// The levels of a column whose type is known.
#[derive(Debug, Clone)]
pub enum Ladder {
    /// Values are leaves of a taxonomy already, see [`Levels::Tree`].
    Tree(Arc<Taxonomy>),
    /// Bins of whole steps.
    Bins {
        /// Their widths.
        widths: Vec<i128>,
        /// Digits after the decimal point.
        scale: i8,
    },
    /// Bins of reals, without their upper end.
    Reals(Vec<f64>),
    /// Masked characters at the end.
    Mask(Vec<u32>),
    /// Parts of the calendar, for values that count so many units a day.
    Dates {
        /// From fine to coarse.
        levels: Vec<DateLevel>,
        /// Units per day.
        units: i128,
    },
}

/// One level above a value: its label, and the smallest and largest value it stands for.
struct Step<T> {
    label: String,
    ends: (T, T),
}

/// A column's values as leaves.
#[derive(Debug)]
pub struct Leaves {
    /// The leaf of each value; [`NULL_CODE`] where it is missing.
    pub codes: Vec<u32>,
    /// The labels.
    pub taxonomy: Arc<Taxonomy>,
    /// What each node loses.
    pub tree: LossTree,
}

impl Ladder {
    /// The levels for a column of some type; else why they cannot be.
    pub fn try_new(levels: &Levels, data_type: &DataType) -> Result<Self, String> {
        match levels {
            Levels::Tree(taxonomy) => Ok(Self::Tree(Arc::clone(taxonomy))),
            Levels::Mask(characters) => Ok(Self::Mask(characters.clone())),
            Levels::Bins(widths) => bins(widths, data_type),
            Levels::Dates(levels) => match units_per_day(data_type) {
                Some(units) => Ok(Self::Dates {
                    levels: levels.clone(),
                    units,
                }),
                None => Err(format!(
                    "dates are for dates and timestamps, not {data_type}"
                )),
            },
        }
    }

    /// Levels above a value, the root included; of a taxonomy, above its deepest value.
    pub fn height(&self) -> usize {
        match self {
            Self::Tree(taxonomy) => taxonomy.tree().height() as usize,
            Self::Bins { widths, .. } => widths.len() + 1,
            Self::Reals(widths) => widths.len() + 1,
            Self::Mask(characters) => characters.len() + 1,
            Self::Dates { levels, .. } => levels.len() + 1,
        }
    }

    /// Finds the leaf of every value, and the tree over them.
    pub fn leaves(
        &self,
        values: &ArrayRef,
        keys: &Keys,
        domain: &Domain,
        full: u64,
    ) -> Result<Leaves, ArrowError> {
        match (self, keys) {
            (Self::Tree(taxonomy), _) => {
                let codes = values.as_primitive::<UInt32Type>().iter();
                Ok(Leaves {
                    codes: codes.map(|c| c.unwrap_or(NULL_CODE)).collect(),
                    taxonomy: Arc::clone(taxonomy),
                    tree: counted(taxonomy, full),
                })
            }
            (Self::Mask(characters), Keys::Bytes(..)) => {
                let Domain::Values(all) = domain else {
                    return Err(unfit());
                };
                masked(values, characters, all, full)
            }
            (_, Keys::Integer(keys)) => {
                let keys = keys.iter();
                let Domain::Integer(lo, hi) = *domain else {
                    return self.measured(values, keys, |_| 0);
                };
                let range = hi.abs_diff(lo);
                self.measured(values, keys, |(a, b): (i128, i128)| {
                    let width = b.min(hi).abs_diff(a.max(lo));
                    // Both are cut to 90 bits so that the product fits.
                    let shift = (u128::BITS - range.leading_zeros()).saturating_sub(90);
                    let (width, range) = (width >> shift, range >> shift);
                    (u128::from(full) * width.min(range))
                        .checked_div(range)
                        .map_or(0, |loss| loss as u64)
                })
            }
            (_, Keys::Real(keys)) => {
                let keys = keys.iter().copied();
                let Domain::Real(lo, hi) = *domain else {
                    return self.measured(values, keys, |_| 0);
                };
                self.measured(values, keys, |(a, b): (f64, f64)| {
                    let share = (b.min(hi) - a.max(lo)) / (hi - lo);
                    (share.clamp(0.0, 1.0) * full as f64) as u64
                })
            }
            _ => Err(unfit()),
        }
    }

    /// Leaves of measured values: those that occur, with the loss of each level by how much of the domain it spans.
    fn measured<T>(
        &self,
        values: &ArrayRef,
        keys: impl Iterator<Item = Option<T>>,
        loss: impl Fn((T, T)) -> u64,
    ) -> Result<Leaves, ArrowError>
    where
        T: Measured,
    {
        let mut sorted: Vec<(T, usize)> = keys
            .enumerate()
            .filter_map(|(at, key)| key.map(|key| (key, at)))
            .collect();
        sorted.sort_unstable_by(|a, b| a.0.compare(&b.0).then(a.1.cmp(&b.1)));
        let options = FormatOptions::default();
        let format = ArrayFormatter::try_new(values.as_ref(), &options)?;
        let mut codes = vec![NULL_CODE; values.len()];
        let mut rows: Vec<Vec<String>> = vec![];
        let mut losses: HashMap<String, u64> = HashMap::new();
        let mut previous: Option<T> = None;
        for (key, at) in sorted {
            if previous.is_none_or(|previous| previous.compare(&key).is_ne()) {
                let mut row = vec![format.value(at).to_string()];
                for step in key.steps(self) {
                    losses.insert(step.label.clone(), loss(step.ends));
                    row.push(step.label);
                }
                row.push(ANYTHING.to_owned());
                rows.push(row);
                previous = Some(key);
            }
            codes[at] = rows.len() as u32 - 1;
        }
        let whole = previous.map(|_| loss(T::everything()));
        losses.insert(ANYTHING.to_owned(), whole.unwrap_or(0));
        let taxonomy = if rows.is_empty() {
            Taxonomy::from_rows(&[vec![ANYTHING]])
        } else {
            Taxonomy::from_rows(&rows)
        };
        let taxonomy = taxonomy.map_err(|_| unfit())?;
        let tree = taxonomy.tree();
        let loss = |node| match tree.is_leaf(node) {
            true => 0,
            false => losses.get(taxonomy.label(node)).copied().unwrap_or(0),
        };
        let tree = LossTree {
            losses: Arc::new((0..tree.len()).map(loss).collect()),
            hierarchy: Arc::new(tree.clone()),
        };
        Ok(Leaves {
            codes,
            taxonomy: Arc::new(taxonomy),
            tree,
        })
    }

    /// The labels above a value, from fine to coarse, the root left out.
    pub fn labels(&self, keys: &Keys, at: usize) -> Vec<String> {
        match (self, keys) {
            (Self::Mask(characters), Keys::Bytes(names)) if names.column.is_valid(at) => {
                let text = names.column.as_string::<i32>().value(at);
                masks(text, characters).collect()
            }
            (_, Keys::Integer(keys)) => above(keys.get(at), self),
            (_, Keys::Real(keys)) => above(keys[at], self),
            _ => vec![],
        }
    }
}

fn above<T: Measured>(key: Option<T>, ladder: &Ladder) -> Vec<String> {
    let steps = key.map(|key| key.steps(ladder)).unwrap_or_default();
    steps.into_iter().map(|step| step.label).collect()
}

fn unfit() -> ArrowError {
    ArrowError::InvalidArgumentError("a hierarchy does not fit its column".to_owned())
}

/// Values on a line.
trait Measured: Copy {
    fn compare(&self, other: &Self) -> std::cmp::Ordering;
    /// The levels above, the root left out.
    fn steps(&self, ladder: &Ladder) -> Vec<Step<Self>>;
    /// Ends of the root.
    fn everything() -> (Self, Self);
}

impl Measured for i128 {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.cmp(other)
    }

    fn steps(&self, ladder: &Ladder) -> Vec<Step<Self>> {
        match ladder {
            Ladder::Bins { widths, scale } => {
                let bin = |width: &i128| {
                    let lo = self.div_euclid(*width).saturating_mul(*width);
                    let hi = lo.saturating_add(width - 1);
                    let print = |value| Decimal128Type::format_decimal(value, 38, *scale);
                    Step {
                        label: format!("[{}, {}]", print(lo), print(hi)),
                        ends: (lo, hi),
                    }
                };
                widths.iter().map(bin).collect()
            }
            Ladder::Dates { levels, units } => {
                let days = i32::try_from(self.div_euclid(*units)).ok();
                let day = days.and_then(NaiveDate::from_epoch_days);
                let step = |level: &DateLevel| {
                    let (label, first, last) = calendar(day?, *level)?;
                    let start = |day: NaiveDate| i128::from(day.to_epoch_days()) * units;
                    Some(Step {
                        label,
                        ends: (start(first), start(last) + units - 1),
                    })
                };
                levels.iter().filter_map(step).collect()
            }
            _ => vec![],
        }
    }

    fn everything() -> (Self, Self) {
        (i128::MIN, i128::MAX)
    }
}

impl Measured for f64 {
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        self.total_cmp(other)
    }

    fn steps(&self, ladder: &Ladder) -> Vec<Step<Self>> {
        let Ladder::Reals(widths) = ladder else {
            return vec![];
        };
        let bin = |width: &f64| {
            let lo = (self / width).floor() * width;
            Step {
                label: format!("[{lo}, {})", lo + width),
                ends: (lo, lo + width),
            }
        };
        match self.is_finite() {
            true => widths.iter().map(bin).collect(),
            false => vec![],
        }
    }

    fn everything() -> (Self, Self) {
        (f64::NEG_INFINITY, f64::INFINITY)
    }
}

fn bins(widths: &[String], data_type: &DataType) -> Result<Ladder, String> {
    let rising = "bins take rising widths, each a multiple of the one before";
    if data_type.is_floating() {
        let parsed: Option<Vec<f64>> = widths.iter().map(|w| w.parse().ok()).collect();
        return parsed
            .filter(|w| w[0] > 0.0 && w[0].is_finite())
            .filter(|w| {
                w.windows(2)
                    .all(|w| w[1] > w[0] && (w[1] / w[0]).fract() == 0.0)
            })
            .map(Ladder::Reals)
            .ok_or_else(|| format!("{rising}, in the column's type {data_type}"));
    }
    let scale = match data_type {
        t if t.is_integer() => 0,
        DataType::Decimal32(_, s) | DataType::Decimal64(_, s) | DataType::Decimal128(_, s) => *s,
        _ => return Err(format!("bins are for numbers, not {data_type}")),
    };
    let parsed: Option<Vec<i128>> = widths.iter().map(|w| unscaled(w, scale)).collect();
    parsed
        .filter(|w| w[0] > 1 && w.windows(2).all(|w| w[1] > w[0] && w[1] % w[0] == 0))
        .map(|widths| Ladder::Bins { widths, scale })
        .ok_or_else(|| format!("{rising}, of more than one step of the column's type {data_type}"))
}

/// A number such as `2.5` as whole units of 10⁻ˢᶜᵃˡᵉ; `None` if it is not one.
fn unscaled(text: &str, scale: i8) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let missing = usize::try_from(scale).ok()?.checked_sub(fraction.len())?;
    format!("{whole}{fraction}{}", "0".repeat(missing))
        .parse()
        .ok()
}

fn units_per_day(data_type: &DataType) -> Option<i128> {
    let seconds = 24 * 60 * 60;
    Some(match data_type {
        DataType::Date32 => 1,
        DataType::Timestamp(TimeUnit::Second, _) => seconds,
        DataType::Timestamp(TimeUnit::Millisecond, _) => seconds * 1_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => seconds * 1_000_000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => seconds * 1_000_000_000,
        _ => return None,
    })
}

/// Label, first and last day of the part of the calendar in which a day lies.
fn calendar(day: NaiveDate, level: DateLevel) -> Option<(String, NaiveDate, NaiveDate)> {
    let year = day.year();
    let from = |year, month| NaiveDate::from_ymd_opt(year, month, 1);
    let (label, first, next) = match level {
        DateLevel::Day => (day.to_string(), day, day.succ_opt()?),
        DateLevel::Month => {
            let month = day.month();
            let next = if month == 12 {
                from(year + 1, 1)
            } else {
                from(year, month + 1)
            };
            (format!("{year:04}-{month:02}"), from(year, month)?, next?)
        }
        DateLevel::Quarter => {
            let quarter = day.month0() / 3;
            let next = if quarter == 3 {
                from(year + 1, 1)
            } else {
                from(year, 3 * quarter + 4)
            };
            let label = format!("{year:04}-Q{}", quarter + 1);
            (label, from(year, 3 * quarter + 1)?, next?)
        }
        DateLevel::Year => (format!("{year:04}"), from(year, 1)?, from(year + 1, 1)?),
        DateLevel::Decade => {
            let decade = year.div_euclid(10) * 10;
            (
                format!("{decade:04}s"),
                from(decade, 1)?,
                from(decade + 10, 1)?,
            )
        }
    };
    Some((label, first, next.pred_opt()?))
}

/// A code with more and more characters masked; what would leave none is left to the root.
fn masks<'a>(text: &'a str, characters: &'a [u32]) -> impl Iterator<Item = String> + 'a {
    let length = text.chars().count();
    let shorter = characters.iter().map(|n| *n as usize);
    shorter.filter(move |n| *n < length).map(move |masked| {
        let kept: String = text.chars().take(length - masked).collect();
        kept + &ANYTHING.repeat(masked)
    })
}

/// The taxonomy of masked codes over all values of a column.
pub fn mask_taxonomy<S: AsRef<str>>(
    values: impl Iterator<Item = S>,
    characters: &[u32],
) -> Result<Taxonomy, crate::table::HierarchyError> {
    // Codes of one length stand together, because masks tell lengths apart.
    let mut values: Vec<S> = values.collect();
    values.sort_unstable_by(|a, b| {
        let (a, b) = (a.as_ref(), b.as_ref());
        (a.chars().count(), a).cmp(&(b.chars().count(), b))
    });
    let row = |value: &S| {
        let value = value.as_ref();
        let mut row = vec![value.to_owned()];
        row.extend(masks(value, characters));
        row.push(ANYTHING.to_owned());
        row
    };
    let mut rows: Vec<Vec<String>> = values.iter().map(row).collect();
    if rows.is_empty() {
        rows.push(vec![ANYTHING.to_owned()]);
    }
    Taxonomy::from_rows(&rows)
}

fn masked(
    values: &ArrayRef,
    characters: &[u32],
    all: &[String],
    full: u64,
) -> Result<Leaves, ArrowError> {
    let taxonomy = mask_taxonomy(all.iter(), characters).map_err(|_| unfit())?;
    let tree = taxonomy.tree();
    let leaf_of: HashMap<&str, u32> = (0..tree.leaves())
        .map(|leaf| (taxonomy.label(tree.node_of(leaf)), leaf))
        .collect();
    let codes = values.as_string::<i32>().iter().map(|value| match value {
        Some(value) => leaf_of.get(value).copied().ok_or_else(unfit),
        None => Ok(NULL_CODE),
    });
    let codes = codes.collect::<Result<_, _>>()?;
    let tree = counted(&taxonomy, full);
    Ok(Leaves {
        codes,
        taxonomy: Arc::new(taxonomy),
        tree,
    })
}

/// Losses by the number of leaves below a node: (|v| − 1) / (|X| − 1).
fn counted(taxonomy: &Taxonomy, full: u64) -> LossTree {
    let tree = taxonomy.tree();
    let steps = u128::from(tree.leaves()) - 1;
    let loss = |node| {
        let below = u128::from(tree.size(node)) - 1;
        (u128::from(full) * below).checked_div(steps).unwrap_or(0) as u64
    };
    LossTree {
        losses: Arc::new((0..tree.len()).map(loss).collect()),
        hierarchy: Arc::new(tree.clone()),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Date32Array, Float64Array, Int32Array, StringArray};

    use super::super::Kind;
    use super::*;

    fn ladder(text: &str, data_type: &DataType) -> Result<Ladder, String> {
        Ladder::try_new(&Levels::built_in(text).unwrap().unwrap(), data_type)
    }

    /// Each value's chain of labels and losses.
    fn chains(
        text: &str,
        values: ArrayRef,
        kind: Kind,
        domain: &Domain,
    ) -> Vec<Vec<(String, u64)>> {
        let keys = Keys::try_new(&values, kind).unwrap();
        let leaves = ladder(text, values.data_type())
            .unwrap()
            .leaves(&values, &keys, domain, 1000)
            .unwrap();
        let tree = leaves.taxonomy.tree();
        let chain = |leaf: &u32| {
            let nodes = std::iter::successors(Some(tree.node_of(*leaf)), |n| tree.parent(*n));
            nodes
                .map(|n| (leaves.taxonomy.label(n).to_owned(), leaves.tree.loss(n)))
                .collect()
        };
        leaves
            .codes
            .iter()
            .filter(|c| **c != NULL_CODE)
            .map(chain)
            .collect()
    }

    fn owned(chain: &[(&str, u64)]) -> Vec<(String, u64)> {
        chain
            .iter()
            .map(|(label, loss)| ((*label).to_owned(), *loss))
            .collect()
    }

    #[test]
    fn numbers_fall_into_bins() {
        let ages: ArrayRef = Arc::new(Int32Array::from(vec![Some(34), None, Some(-1), Some(34)]));
        let found = chains("bins(5, 20)", ages, Kind::Integer, &Domain::Integer(0, 100));
        let old = owned(&[("34", 0), ("[30, 34]", 40), ("[20, 39]", 190), ("*", 1000)]);
        // Of a bin that reaches beyond the domain only the part inside counts.
        let young = owned(&[("-1", 0), ("[-5, -1]", 10), ("[-20, -1]", 10), ("*", 1000)]);
        assert_eq!(found[0], old);
        assert_eq!(found[2], old);
        assert_eq!(found[1][0], young[0]);
        let reals: ArrayRef = Arc::new(Float64Array::from(vec![2.5, f64::INFINITY]));
        let found = chains("bins(0.5, 2)", reals, Kind::Real, &Domain::Real(0.0, 10.0));
        assert_eq!(
            found[0],
            owned(&[("2.5", 0), ("[2.5, 3)", 50), ("[2, 4)", 200), ("*", 1000)])
        );
        assert_eq!(found[1], owned(&[("inf", 0), ("*", 1000)]));
    }

    #[test]
    fn dates_go_up_the_calendar() {
        let dates: ArrayRef = Arc::new(Date32Array::from(vec![20_773, -1]));
        let domain = Domain::Integer(20_773 - 364, 20_773);
        let found = chains(
            "dates(month, quarter, year, decade)",
            dates,
            Kind::Integer,
            &domain,
        );
        let labels: Vec<&str> = found[0].iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(
            labels,
            ["2026-11-16", "2026-11", "2026-Q4", "2026", "2020s", "*"]
        );
        let labels: Vec<&str> = found[1].iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(
            labels,
            ["1969-12-31", "1969-12", "1969-Q4", "1969", "1960s", "*"]
        );
        // 16 of November's days and 47 of the quarter's lie in the domain.
        assert_eq!(
            (found[0][1].1, found[0][2].1),
            (15 * 1000 / 364, 46 * 1000 / 364)
        );
    }

    #[test]
    fn codes_are_masked_from_the_end() {
        let all: Vec<String> = ["14247", "14249", "14206", "9", "1424"]
            .map(str::to_owned)
            .to_vec();
        let codes: ArrayRef = Arc::new(StringArray::from(vec!["14249", "9", "1424"]));
        let found = chains("mask(1, 3)", codes, Kind::Masked, &Domain::Values(all));
        assert_eq!(
            found[0],
            owned(&[("14249", 0), ("1424*", 250), ("14***", 500), ("*", 1000)])
        );
        assert_eq!(found[1], owned(&[("9", 0), ("*", 1000)]));
        assert_eq!(
            found[2],
            owned(&[("1424", 0), ("142*", 0), ("1***", 0), ("*", 1000)])
        );
    }

    #[test]
    fn levels_must_fit_the_type() {
        for (text, data_type) in [
            ("bins(5)", DataType::Utf8),
            ("bins(1)", DataType::Int32),
            ("bins(5, 7)", DataType::Int32),
            ("bins(2.5)", DataType::Int32),
            ("bins(-1.0)", DataType::Float64),
            ("dates", DataType::Int64),
        ] {
            assert!(ladder(text, &data_type).is_err(), "{text} of {data_type}");
        }
        let money = DataType::Decimal128(10, 2);
        let Ok(Ladder::Bins { widths, scale }) = ladder("bins(2.5, 10)", &money) else {
            panic!("decimals have bins");
        };
        assert_eq!((widths, scale), (vec![250, 1000], 2));
    }
}
