//! The tables of an anatomized release, one by one.

use datafusion::arrow::array::{AsArray, Int64Array};
use datafusion::common::{Result, internal_datafusion_err, plan_datafusion_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{col, ident, lit};
use datafusion::prelude::DataFrame;

use crate::system::{GID, SUBTABLE, TIMES};

/// The tables `qi_1`, `qi_2` … and `sa` of a release by `anatomize_slppa`, each with its own columns only, sorted by group
/// and values: what is written to a file each.
///
/// `release` must be stored already, for example in a table of the session: a frame that calls the function would be
/// another release each time that it is read. A column without any value belongs to the first table.
pub async fn sub_tables(release: DataFrame) -> Result<Vec<(String, DataFrame)>> {
    let fields = release.schema().fields();
    let names: Vec<String> = fields.iter().map(|f| f.name().clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let [SUBTABLE, GID, values @ .., TIMES] = names.as_slice() else {
        return Err(plan_datafusion_err!(
            "sub_tables: the columns must be those of an anatomized release: {SUBTABLE}, {GID}, …, {TIMES}"
        ));
    };
    let shown = values
        .iter()
        .enumerate()
        .map(|(i, name)| count(ident(*name)).alias(format!("c{i}")));
    let counts = release
        .clone()
        .aggregate(vec![col(SUBTABLE)], shown.collect())?
        .sort_by(vec![col(SUBTABLE)])?
        .collect()
        .await?;
    let mut tables: Vec<(String, Vec<usize>)> = vec![];
    for batch in &counts {
        let column = |name: &str| {
            let found = batch.column_by_name(name);
            found.ok_or_else(|| internal_datafusion_err!("the counts have no column {name}"))
        };
        let named = datafusion::arrow::compute::cast(
            column(SUBTABLE)?,
            &datafusion::arrow::datatypes::DataType::Utf8,
        )?;
        let counts = (0..values.len()).map(|i| Ok(column(&format!("c{i}"))?.as_primitive()));
        let counts: Vec<&Int64Array> = counts.collect::<Result<_>>()?;
        for (row, name) in named.as_string::<i32>().iter().enumerate() {
            let shows = |column: &usize| counts[*column].value(row) > 0;
            let own = (0..values.len()).filter(shows).collect();
            tables.push((name.unwrap_or_default().to_owned(), own));
        }
    }
    let placed: Vec<usize> = tables.iter().flat_map(|(_, own)| own).copied().collect();
    if let Some((_, first)) = tables.first_mut() {
        first.extend((0..values.len()).filter(|column| !placed.contains(column)));
        first.sort_unstable();
    }
    let part = |(name, own): (String, Vec<usize>)| {
        let columns = own.iter().map(|column| ident(values[*column]));
        let order = [ident(GID)].into_iter().chain(columns.clone());
        let all = [ident(GID)]
            .into_iter()
            .chain(columns)
            .chain([ident(TIMES)]);
        let rows = release
            .clone()
            .filter(ident(SUBTABLE).eq(lit(name.as_str())))?;
        let rows = rows
            .sort_by(order.collect())?
            .select(all.collect::<Vec<_>>())?;
        Ok((name, rows))
    };
    tables.into_iter().map(part).collect()
}
