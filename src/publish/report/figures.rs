//! The figures of a report: how large classes are, how wrong counts become, and how distributions change.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use serde::Serialize;

use crate::publish::manifest::Manifest;
use crate::publish::measuring::{Measuring, list, number, quoted_name, text};
use crate::system::INDIVIDUAL;

/// Bars of a distribution.
const BARS: usize = 12;

/// Queries whose error is measured.
const QUERIES: u32 = 400;

/// What a report shows beside the manifest. For the publisher: some of it is of the input. No count of people below the
/// manifest's `hidden_below` is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The manifest of the release.
    pub manifest: Manifest,
    /// Individuals by the size of their class.
    pub class_sizes: Vec<Bar>,
    /// Count queries by their error.
    pub query_errors: Vec<Bar>,
    /// Half of the count queries are wrong by at most this share.
    pub query_error_median: Option<f64>,
    /// Nineteen of twenty count queries are wrong by at most this share.
    pub query_error_p95: Option<f64>,
    /// Individuals by value before and after, per quasi-identifier.
    pub distributions: Vec<Distribution>,
}

/// A bar of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// What it stands for.
    pub label: String,
    /// How many.
    pub value: f64,
}

/// Individuals by the value of a quasi-identifier. A count that is too small to be shown is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Distribution {
    /// The column.
    pub column: String,
    /// Values or ranges.
    pub labels: Vec<String>,
    /// Individuals of the input.
    pub before: Vec<Option<f64>>,
    /// Individuals of the release, each spread evenly over the values it may have.
    pub after: Vec<Option<f64>>,
}

impl Figures {
    /// Measures the staged files against the input.
    pub(in crate::publish) async fn gather(
        measuring: &Measuring,
        manifest: &Manifest,
    ) -> Result<Self> {
        let mut figures = Self {
            manifest: manifest.clone(),
            class_sizes: class_sizes(measuring).await?,
            query_errors: vec![],
            query_error_median: None,
            query_error_p95: None,
            distributions: vec![],
        };
        if let Err(error) = figures.add_query_errors(measuring).await {
            log::warn!(
                "report: without the error of queries: {}",
                error.strip_backtrace()
            );
        }
        let published = measuring.published_schema().await?;
        for column in measuring.generalized() {
            let field = published.field_with_name(&column)?;
            let found = match field.data_type() {
                DataType::Struct(fields) => {
                    let inner = fields.first().map(|f| f.data_type().clone());
                    let inner = inner.unwrap_or(DataType::Null);
                    ranges(measuring, manifest, &column, inner).await
                }
                DataType::List(_) => names(measuring, manifest, &column).await,
                _ => Ok(None),
            };
            let found = found.unwrap_or_else(|error| {
                let reason = error.strip_backtrace();
                log::warn!("report: without the distribution of '{column}': {reason}");
                None
            });
            figures.distributions.extend(found);
        }
        Ok(figures)
    }

    async fn add_query_errors(&mut self, measuring: &Measuring) -> Result<()> {
        let columns = measuring.compared();
        let ([sensitive], false) = (self.manifest.roles.sensitive.as_slice(), columns.is_empty())
        else {
            return Ok(());
        };
        let sql = format!(
            "SELECT error FROM query_error(original, published, qi => {}, sensitive => {}, queries => {QUERIES}{}) \
             WHERE error IS NOT NULL ORDER BY error",
            list(&columns),
            crate::publish::measuring::quoted(sensitive),
            measuring.domains(&columns),
        );
        let mut errors = vec![];
        for batch in measuring.query(&sql).await? {
            errors.extend((0..batch.num_rows()).filter_map(|row| number(&batch, 0, row)));
        }
        let at = |share: f64| {
            let index = (errors.len() as f64 * share).ceil() as usize;
            errors.get(index.saturating_sub(1)).copied()
        };
        self.query_error_median = at(0.5);
        self.query_error_p95 = at(0.95);
        let bounds = [0.05, 0.1, 0.25, 0.5, 1.0, f64::INFINITY];
        let labels = ["≤ 5 %", "≤ 10 %", "≤ 25 %", "≤ 50 %", "≤ 100 %", "more"];
        let mut from = f64::NEG_INFINITY;
        for (bound, label) in bounds.into_iter().zip(labels) {
            let here = errors.iter().filter(|e| **e > from && **e <= bound).count();
            self.query_errors.push(Bar {
                label: label.to_owned(),
                value: here as f64,
            });
            from = bound;
        }
        Ok(())
    }
}

/// Individuals by the size of their class or group, in ranges that double.
async fn class_sizes(measuring: &Measuring) -> Result<Vec<Bar>> {
    let sql = format!(
        "SELECT CAST(size AS DOUBLE), CAST(people AS DOUBLE) \
         FROM (SELECT individuals AS size, sum(individuals) AS people FROM {} GROUP BY 1) ORDER BY size",
        measuring.sizes()
    );
    let mut sizes: Vec<(f64, f64)> = vec![];
    for batch in measuring.query(&sql).await? {
        for row in 0..batch.num_rows() {
            sizes.extend(number(&batch, 0, row).zip(number(&batch, 1, row)));
        }
    }
    let (Some(smallest), Some(largest)) = (sizes.first(), sizes.last()) else {
        return Ok(vec![]);
    };
    let spread = largest.0 - smallest.0 + 1.0;
    let step = (spread / BARS as f64).ceil().max(1.0);
    // Even steps where there are few sizes, else ranges that double.
    let mut bounds = vec![];
    let (mut from, even) = (smallest.0, step <= 3.0);
    while from <= largest.0 {
        let next = if even { from + step } else { from * 2.0 };
        bounds.push((from, next));
        from = next;
    }
    let bar = |(from, next): (f64, f64)| Bar {
        label: range_label(from, next - 1.0),
        value: sizes
            .iter()
            .filter(|(size, _)| *size >= from && *size < next)
            .map(|(_, individuals)| individuals)
            .sum(),
    };
    Ok(bounds.into_iter().map(bar).collect())
}

/// A numeric column or one of dates: individuals by range.
async fn ranges(
    measuring: &Measuring,
    manifest: &Manifest,
    column: &str,
    data_type: DataType,
) -> Result<Option<Distribution>> {
    let dates = matches!(data_type, DataType::Date32);
    let whole = dates || data_type.is_integer();
    if !dates && !data_type.is_numeric() {
        return Ok(None);
    }
    let number_of = |expression: &str| {
        if dates {
            format!("CAST(CAST({expression} AS INT) AS DOUBLE)")
        } else {
            format!("CAST({expression} AS DOUBLE)")
        }
    };
    let name = quoted_name(column);
    let (lo, hi) = (
        number_of(&format!("{name}['lo']")),
        number_of(&format!("{name}['hi']")),
    );
    let ends = format!("SELECT min({lo}), max({hi}) FROM published");
    let ends = measuring.query(&ends).await?;
    let Some((least, most)) = ends
        .first()
        .and_then(|batch| number(batch, 0, 0).zip(number(batch, 1, 0)))
    else {
        return Ok(None);
    };
    let unit = f64::from(u8::from(whole));
    let width = (most + unit - least) / BARS as f64;
    let width = if whole { width.ceil() } else { width };
    if width <= 0.0 {
        return Ok(None);
    }
    let bars = ((most + unit - least) / width).ceil().max(1.0) as usize;
    let who = who(manifest);
    let top = bars - 1;
    let before = format!(
        "SELECT CAST(least(floor((v - {least}) / {width}), {top}) AS DOUBLE) AS bar, CAST(count(*) AS DOUBLE) \
         FROM (SELECT {who}{} AS v FROM original) \
         WHERE v >= {least} AND v <= {most} GROUP BY 1",
        number_of(&name)
    );
    let numbered: Vec<String> = (0..bars)
        .map(|bar| {
            let from = least + width * bar as f64;
            format!(
                "({bar}, CAST({from} AS DOUBLE), CAST({} AS DOUBLE))",
                from + width
            )
        })
        .collect();
    let after = format!(
        "SELECT CAST(bar AS DOUBLE), sum(CASE WHEN hi + {unit} = lo \
           THEN CASE WHEN lo >= a AND (lo < b OR bar = {top}) THEN 1.0 ELSE 0.0 END \
           ELSE greatest(0.0, least(hi + {unit}, b) - greatest(lo, a)) / (hi + {unit} - lo) END) \
         FROM (SELECT {who}{lo} AS lo, {hi} AS hi FROM published) \
         CROSS JOIN (VALUES {}) AS bars(bar, a, b) WHERE lo IS NOT NULL GROUP BY bar",
        numbered.join(", ")
    );
    let labels = (0..bars).map(|bar| {
        let from = least + width * bar as f64;
        let to = if whole {
            (from + width - 1.0).min(most)
        } else {
            from + width
        };
        if dates {
            format!("{}–{}", date(from), date(to))
        } else {
            range_label(from, to)
        }
    });
    let read = async |sql: &str| -> Result<Vec<f64>> {
        let mut counts = vec![0.0; bars];
        for batch in measuring.query(sql).await? {
            for row in 0..batch.num_rows() {
                if let Some((bar, count)) = number(&batch, 0, row).zip(number(&batch, 1, row)) {
                    counts[(bar as usize).min(top)] = count;
                }
            }
        }
        Ok(counts)
    };
    let (before, after) = (read(&before).await?, read(&after).await?);
    let k = manifest.counts.hidden_below;
    Ok(Some(Distribution {
        column: column.to_owned(),
        labels: labels.collect(),
        before: hidden(k, before),
        after: hidden(k, after),
    }))
}

/// A column of names: individuals by value, the most frequent published ones.
async fn names(
    measuring: &Measuring,
    manifest: &Manifest,
    column: &str,
) -> Result<Option<Distribution>> {
    let (name, who) = (quoted_name(column), who(manifest));
    let after = format!(
        "SELECT arrow_cast(v, 'Utf8') AS shown, CAST(sum(w) AS DOUBLE) AS n FROM \
           (SELECT unnest({name}) AS v, 1.0 / array_length({name}) AS w \
            FROM (SELECT {who}{name} FROM published)) \
         WHERE v IS NOT NULL GROUP BY v ORDER BY n DESC, v LIMIT {BARS}"
    );
    // Only of the values that are shown; they stand in no text of a query, which may be logged.
    let before = format!(
        "SELECT v, CAST(count(*) AS DOUBLE) \
         FROM (SELECT {who}arrow_cast({name}, 'Utf8') AS v FROM original) \
         WHERE v IN (SELECT shown FROM ({after}) AS most) GROUP BY v"
    );
    let pairs = |batches: Vec<RecordBatch>| -> Vec<(String, f64)> {
        let mut pairs = vec![];
        for batch in &batches {
            for row in 0..batch.num_rows() {
                pairs.extend(text(batch, 0, row).zip(number(batch, 1, row)));
            }
        }
        pairs
    };
    let after = pairs(measuring.query(&after).await?);
    let before = pairs(measuring.query(&before).await?);
    if after.is_empty() {
        return Ok(None);
    }
    let k = manifest.counts.hidden_below;
    let counted = |label: &str| before.iter().find(|(l, _)| l == label).map_or(0.0, |b| b.1);
    Ok(Some(Distribution {
        column: column.to_owned(),
        before: hidden(k, after.iter().map(|(l, _)| counted(l)).collect()),
        labels: after.iter().map(|(label, _)| label.clone()).collect(),
        after: hidden(k, after.iter().map(|(_, n)| *n).collect()),
    }))
}

/// Counts above 0 and below the bound are not shown. One of them alone would be what is missing to the number of all
/// individuals, so that the next larger count is not shown, either.
fn hidden(bound: u64, counts: Vec<f64>) -> Vec<Option<f64>> {
    let bound = bound as f64;
    let told = |count: f64| count == 0.0 || count >= bound;
    let mut shown: Vec<Option<f64>> = counts
        .into_iter()
        .map(|count| Some(count.round()).filter(|_| told(count)))
        .collect();
    if shown.iter().filter(|count| count.is_none()).count() == 1 {
        // A bar without anybody only if there is no other.
        let order = |count: f64| (count == 0.0, count);
        let others = shown.iter_mut().filter(|count| count.is_some());
        let next = others.min_by(|a, b| {
            let (a, b) = (a.map(order), b.map(order));
            a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal)
        });
        if let Some(next) = next {
            *next = None;
        }
    }
    shown
}

/// One row per individual: by the column that tells them apart, or as the rows are.
fn who(manifest: &Manifest) -> String {
    match &manifest.roles.individual {
        Some(_) => format!("DISTINCT {INDIVIDUAL}, "),
        None => String::new(),
    }
}

fn range_label(from: f64, to: f64) -> String {
    let shown = |x: f64| {
        if x.fract() == 0.0 && x.abs() < 1e15 {
            format!("{x:.0}")
        } else {
            format!("{x:.3e}").parse::<f64>().unwrap_or(x).to_string()
        }
    };
    if from == to {
        shown(from)
    } else {
        format!("{}–{}", shown(from), shown(to))
    }
}

fn date(days: f64) -> String {
    let epoch = chrono::NaiveDate::default();
    let day = epoch.checked_add_signed(chrono::Duration::days(days as i64));
    day.map(|d| d.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_cannot_be_subtracted() {
        let shown = |counts: &[f64]| hidden(5, counts.to_vec());
        assert_eq!(shown(&[7.0, 0.0, 9.0]), [Some(7.0), Some(0.0), Some(9.0)]);
        assert_eq!(
            shown(&[7.0, 0.0, 4.9, 9.0]),
            [None, Some(0.0), None, Some(9.0)]
        );
        assert_eq!(shown(&[1.0, 7.0, 4.0]), [None, Some(7.0), None]);
        assert_eq!(shown(&[0.0, 2.0]), [None, None]);
        assert_eq!(shown(&[2.0]), [None]);
    }

    #[test]
    fn labels() {
        assert_eq!(range_label(20.0, 29.0), "20–29");
        assert_eq!(range_label(3.0, 3.0), "3");
        assert_eq!(range_label(0.123456, 1.0), "0.1235–1");
        assert_eq!(date(0.0), "1970-01-01");
    }
}
