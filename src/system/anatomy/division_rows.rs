//! How the division of an anatomized release is described.

use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::common::Result;

use super::slppa::TableProfile;
use crate::error;
use crate::spec::Spec;
use crate::system::Layout;

/// One row of the description: of a column, or of two.
#[derive(Default)]
struct Described<'a> {
    subtable: Option<String>,
    attribute: &'a str,
    other: Option<&'a str>,
    weight: Option<f64>,
    distinct: Option<i64>,
    bins: Option<i64>,
    share: Option<f64>,
    coefficient: Option<f64>,
}

/// Weights, coefficients and the sub-table of each quasi-identifier, and what each two have in common.
pub(crate) fn division_rows(
    spec: &Spec,
    layout: &Layout,
    profile: &TableProfile,
) -> Result<RecordBatch> {
    let division = profile
        .division(&spec.anatomy()?)
        .map_err(|e| error::argument(spec.function(), "tables:", e.to_string()))?;
    let associations = profile.associations();
    let names = spec.qi();
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let share = |most: u64| most as f64 / profile.individuals().max(1) as f64;
    let mut rows = vec![];
    let mut table_of = vec![0; names.len()];
    for (table, columns) in division.tables().iter().enumerate() {
        for column in columns {
            table_of[*column] = table;
            let others = columns.iter().filter(|other| *other != column);
            let coefficients = others.map(|other| associations.coefficients[*column][*other]);
            let mean = coefficients.sum::<f64>() / (columns.len() - 1).max(1) as f64;
            rows.push(Described {
                subtable: Some(format!("qi_{}", table + 1)),
                attribute: &names[*column],
                weight: Some(associations.weights[*column]),
                distinct: Some(number(associations.distinct[*column])),
                bins: Some(number(associations.bins[*column] as u64)),
                share: Some(share(profile.tuple_at_most(&[*column]))),
                coefficient: (columns.len() > 1).then_some(mean),
                ..Described::default()
            });
        }
    }
    rows.push(Described {
        subtable: Some("sa".to_owned()),
        attribute: &spec.sensitive()[0],
        weight: Some(profile.entropy()),
        distinct: Some(number(profile.different_values() as u64)),
        share: Some(share(profile.most_frequent())),
        ..Described::default()
    });
    for (a, name) in names.iter().enumerate() {
        for (b, other) in names.iter().enumerate().skip(a + 1) {
            let same = table_of[a] == table_of[b];
            rows.push(Described {
                subtable: same.then(|| format!("qi_{}", table_of[a] + 1)),
                attribute: name,
                other: Some(other),
                coefficient: Some(associations.coefficients[a][b]),
                ..Described::default()
            });
        }
    }
    let text = |of: fn(&Described<'_>) -> Option<String>| {
        let texts: StringArray = rows.iter().map(of).collect();
        Arc::new(texts)
    };
    let real = |of: fn(&Described<'_>) -> Option<f64>| {
        let reals: Float64Array = rows.iter().map(of).collect();
        Arc::new(reals)
    };
    let whole = |of: fn(&Described<'_>) -> Option<i64>| {
        let numbers: Int64Array = rows.iter().map(of).collect();
        Arc::new(numbers)
    };
    Ok(RecordBatch::try_new(
        layout.published(),
        vec![
            text(|row| row.subtable.clone()),
            text(|row| Some(row.attribute.to_owned())),
            text(|row| row.other.map(str::to_owned)),
            real(|row| row.weight),
            whole(|row| row.distinct),
            whole(|row| row.bins),
            real(|row| row.share),
            real(|row| row.coefficient),
        ],
    )?)
}
