//! The rows of `information_loss`.

use serde::{Deserialize, Serialize};

use super::{Figures, ReportRow};
use crate::measure::{inside_name, sum_names};

/// What the rows need of the call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LossCall {
    /// The columns measured: the quasi-identifiers, then perhaps the sensitive one.
    pub columns: Vec<String>,
    /// How many of them are quasi-identifiers.
    pub qi: usize,
    /// Whether a sensitive column was named.
    pub sensitive: bool,
    /// Whether it is taken as published as it is.
    pub sensitive_as_is: bool,
    /// Whether SA-NCP is known per original value.
    pub per_original_value: bool,
    /// Whether each column has a hierarchy.
    pub hierarchies: Vec<bool>,
    /// How many domains were stated.
    pub stated: usize,
    /// The k of CAVG, if the call says one.
    pub k: Option<u64>,
    /// Whether dropped records do not count, and domains are what published cells stand for.
    pub published_only: bool,
    /// Whether some values are in buckets, which lose nothing and are no cells.
    pub buckets: bool,
}

const SA_NCP: &str = "SA-NCP: mean over published sensitive values, dropped ones lost";

const FOREIGN: &str = "unknown: sensitive values are published that the original does not have; \
    if they are labels, say what they stand for, hierarchy => {disease: 'diseases.csv'}";

/// What one column loses, dropped records included.
struct ColumnLoss {
    glm: Option<f64>,
    ncp_count: Option<f64>,
    ncp_range: Option<f64>,
    /// Sum of heights and of depths over published records.
    heights: Option<(f64, f64)>,
    /// Its published cells: records whose value is in no bucket.
    published: f64,
    /// Its values in buckets.
    inside: f64,
}

/// The rows of an information loss.
pub(super) fn rows(call: &LossCall, figures: &Figures<'_>) -> Vec<ReportRow> {
    // Values that the original does not have are labels of which nobody said what they stand for.
    let foreign = call.sensitive_as_is && figures.get("foreign_values").is_some_and(|n| n > 0.0);
    let merged = foreign || call.columns.len() > call.qi;
    let sizes = Sizes::new(figures, merged, call.published_only);
    let columns: Vec<ColumnLoss> = (0..call.columns.len())
        .map(|at| column_loss(at, figures, &sizes))
        .collect();
    let mut rows = Rows(vec![]);
    for ((name, loss), hierarchy) in call.columns.iter().zip(&columns).zip(&call.hierarchies) {
        rows.add(
            "nloss",
            Some(name),
            loss.glm,
            "Eqs. 11 and 12: (b − a) / (U − L), (|v| − 1) / (|X| − 1)",
        );
        rows.add(
            "ncp_count",
            Some(name),
            loss.ncp_count,
            "values counted: |v| / |A|, 0 for one value",
        );
        rows.add(
            "ncp_range",
            Some(name),
            loss.ncp_range,
            "(u − l) / (U − L), or |v| / |A| for names",
        );
        if *hierarchy {
            let ratio = sizes.with_dropped(ratio(loss.heights), loss.inside);
            rows.add(
                "distortion_ratio",
                Some(name),
                ratio,
                "height in the hierarchy / its depth",
            );
        }
    }
    let (qi, sensitive) = columns.split_at(call.qi.min(columns.len()));
    let source = match call.published_only {
        true => "the published cells",
        false => "the original",
    };
    let domains = match call.stated {
        0 => format!("domains from {source}"),
        n if n >= call.qi => "domains as stated".to_owned(),
        _ => format!("some domains as stated, others from {source}"),
    };
    let total = |of: fn(&ColumnLoss) -> Option<f64>| match call.buckets {
        false => mean(qi.iter().map(of)),
        true => {
            let dropped = sizes.dropped_records();
            weighted(qi.iter().map(|c| (of(c), c.published + dropped)))
        }
    };
    let domains = match call.buckets {
        true => format!("{domains}; values in buckets are no cells"),
        false => domains,
    };
    rows.add(
        "nloss",
        None,
        total(|c| c.glm),
        format!("NLoss, Eq. 15: mean over cells; {domains}"),
    );
    rows.add(
        "ncp_count",
        None,
        total(|c| c.ncp_count),
        "QID-NCP, values counted: mean over cells",
    );
    rows.add(
        "ncp_range",
        None,
        total(|c| c.ncp_range),
        "QID-NCP, by range: mean over cells",
    );
    if call.sensitive {
        let (loss, note) = match sensitive.first() {
            Some(column) => (column.ncp_count, SA_NCP),
            None if foreign => (None, FOREIGN),
            None => (sizes.with_dropped(Some(0.0), 0.0), SA_NCP),
        };
        rows.add("sa_ncp", None, loss, note);
    }
    if call.per_original_value {
        rows.add(
            "sa_ncp_original",
            None,
            figures.get("sa_ncp_original"),
            "SA-NCP: mean over original sensitive values, dropped ones lost",
        );
    }
    if call.hierarchies.iter().take(call.qi).any(|h| *h) {
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        let ratio = match call.buckets {
            false => {
                let heights = qi.iter().filter_map(|c| c.heights);
                sizes.with_dropped(ratio(Some(heights.fold((0.0, 0.0), add))), 0.0)
            }
            // Columns have different numbers of cells: whoever is dropped stands at the top of each.
            true => {
                let dropped = sizes.dropped_records();
                let with_dropped = |c: &ColumnLoss| {
                    let (height, depth) = c.heights?;
                    let lost = dropped * depth / c.published;
                    Some((height + lost, depth + lost))
                };
                ratio(Some(
                    qi.iter().filter_map(with_dropped).fold((0.0, 0.0), add),
                ))
            }
        };
        rows.add(
            "distortion_ratio",
            None,
            ratio,
            "over the quasi-identifiers with a hierarchy",
        );
    }
    rows.classes(call, figures, &sizes);
    rows.sizes(&sizes);
    rows.0
}

fn column_loss(at: usize, figures: &Figures<'_>, sizes: &Sizes) -> ColumnLoss {
    let [glm, ncp_count, ncp_range, height, depth] = sum_names(at).map(|name| figures.get(&name));
    let records = figures.get("published").unwrap_or(0.0);
    // A value in a bucket shows nothing and was added up as if it were lost.
    let inside = figures.get(&inside_name(at)).unwrap_or(0.0);
    let published = records - inside;
    let mean = |sum: Option<f64>| {
        let mean = sum.filter(|_| published > 0.0);
        let mean = mean.map(|sum| ((sum - inside) / published).max(0.0));
        sizes.with_dropped(mean, inside)
    };
    let heights = height.zip(depth).map(|(height, depth)| {
        let of_buckets = match records > 0.0 {
            true => inside * depth / records,
            false => 0.0,
        };
        (height - of_buckets, depth - of_buckets)
    });
    ColumnLoss {
        glm: mean(glm),
        ncp_count: mean(ncp_count),
        ncp_range: mean(ncp_range),
        heights: heights.filter(|(_, depth)| *depth > 0.0),
        published,
        inside,
    }
}

/// 0 / 0 is 0: a hierarchy without levels distorts nothing.
fn ratio(heights: Option<(f64, f64)>) -> Option<f64> {
    Some(match heights {
        Some((height, depth)) if depth > 0.0 => height / depth,
        _ => 0.0,
    })
}

/// The mean of columns by how many cells they have; a column without any says nothing.
fn weighted(columns: impl Iterator<Item = (Option<f64>, f64)>) -> Option<f64> {
    let (mut sum, mut all) = (0.0, 0.0);
    for (value, cells) in columns.filter(|(_, cells)| *cells > 0.0) {
        sum += value? * cells;
        all += cells;
    }
    (all > 0.0).then(|| sum / all)
}

fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    let values = values.filter(|v| !v.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// How much of the original was published.
struct Sizes {
    /// One published sensitive value may stand for several of an individual, so that records cannot be compared.
    merged: bool,
    original_records: f64,
    published_records: f64,
    original_individuals: f64,
    published_individuals: f64,
}

impl Sizes {
    /// With `published_only` as if nothing else had been there.
    fn new(figures: &Figures<'_>, merged: bool, published_only: bool) -> Self {
        let get = |name| figures.get(name).unwrap_or(0.0);
        let [original_records, original_individuals] = match published_only {
            true => ["published_records", "published_individuals"],
            false => ["original_records", "original_individuals"],
        };
        Self {
            merged,
            original_records: get(original_records),
            published_records: get("published_records"),
            original_individuals: get(original_individuals),
            published_individuals: get("published_individuals"),
        }
    }

    fn dropped_records(&self) -> f64 {
        (self.original_records - self.published_records).max(0.0)
    }

    fn dropped_individuals(&self) -> f64 {
        (self.original_individuals - self.published_individuals).max(0.0)
    }

    /// A mean over published records, with those that were dropped lost in full; so many of the published ones are not
    /// counted.
    fn with_dropped(&self, published: Option<f64>, apart: f64) -> Option<f64> {
        let (dropped, all) = match self.merged {
            true => (self.dropped_individuals(), self.original_individuals),
            false => (self.dropped_records(), self.original_records),
        };
        let all = all - apart;
        if all <= 0.0 {
            return published;
        }
        let dropped = dropped / all;
        // Nothing is published: everything is lost.
        if dropped >= 1.0 {
            return Some(1.0);
        }
        published.map(|mean| (1.0 - dropped) * mean + dropped)
    }
}

struct Rows(Vec<ReportRow>);

impl Rows {
    fn add(
        &mut self,
        measure: &'static str,
        column: Option<&String>,
        value: Option<f64>,
        note: impl Into<String>,
    ) {
        self.push(measure, column, value, Some("lower"), note);
    }

    fn push(
        &mut self,
        measure: &'static str,
        column: Option<&String>,
        value: Option<f64>,
        better: Option<&'static str>,
        note: impl Into<String>,
    ) {
        self.0.push(ReportRow {
            section: column.cloned(),
            measure,
            value,
            better,
            note: note.into(),
        });
    }

    fn classes(&mut self, call: &LossCall, figures: &Figures<'_>, sizes: &Sizes) {
        let squares = figures.get("squares").unwrap_or(0.0);
        let dm = squares + sizes.dropped_individuals() * sizes.original_individuals;
        let note =
            "discernability: squared class sizes, and the whole table for each individual dropped";
        self.add("dm", None, Some(dm), note);
        let (classes, smallest) = (figures.get("classes"), figures.get("smallest_class"));
        let k = call.k.map(|k| k as f64);
        let cavg = match (classes, k.or(smallest)) {
            (Some(classes), Some(k)) if classes > 0.0 && k > 0.0 => {
                Some(sizes.published_individuals / classes / k)
            }
            _ => None,
        };
        let note = match k {
            Some(k) => format!("individuals per class / {k}"),
            None => "individuals per class / individuals in the smallest class".to_owned(),
        };
        self.add("cavg", None, cavg, note);
    }

    fn sizes(&mut self, sizes: &Sizes) {
        let records = "different pairs of individual and sensitive value where both are named";
        let counts = [
            ("original_records", sizes.original_records, records),
            ("published_records", sizes.published_records, records),
            (
                "original_individuals",
                sizes.original_individuals,
                "different ids",
            ),
            (
                "published_individuals",
                sizes.published_individuals,
                "different ids",
            ),
        ];
        for (measure, value, note) in counts {
            self.push(measure, None, Some(value), None, note);
        }
        if sizes.merged {
            let note = "unknown: one published value may stand for several of an individual";
            self.add("dropped_records", None, None, note);
        } else {
            let note = "every measure above counts them as lost in full";
            self.add("dropped_records", None, Some(sizes.dropped_records()), note);
        }
        let note = "individuals of the original that are not published";
        self.add(
            "dropped_individuals",
            None,
            Some(sizes.dropped_individuals()),
            note,
        );
        let added = (sizes.published_records - sizes.original_records)
            .max(sizes.published_individuals - sizes.original_individuals);
        if added > 0.0 {
            let note = "the published table has more records or individuals than the original: it is not of it";
            self.add("added", None, Some(added), note);
        }
    }
}
