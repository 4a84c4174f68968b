//! SA-NCP per original value (Gong 2017, Eq. 4; docs/theory/papers.md M9).

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::MemTable;
use datafusion::common::{Result, internal_err};
use datafusion::datasource::provider_as_source;
use datafusion::functions_aggregate::expr_fn::{count, min, sum};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, cast, col, lit, when};

use super::{LossTables, Side};
use crate::call::source::input;
use crate::table::Taxonomy;

/// The mean loss of an individual's original values, each with the published label of this individual that covers it. What
/// no label covers is lost in full.
pub(super) fn per_original_value(tables: &LossTables, taxonomy: &Taxonomy) -> Result<LogicalPlan> {
    let pairs = |side: Side, id: &str, value: &str| {
        let (Some(who), Some(sensitive)) = (tables.id(side), &tables.sensitive) else {
            return internal_err!("SA-NCP needs individuals and a sensitive column");
        };
        let what = tables.column(side, sensitive)?;
        let columns = [
            cast(who, DataType::Utf8).alias(id),
            cast(what, DataType::Utf8).alias(value),
        ];
        tables
            .table(side)
            .project(columns)?
            .filter(col(value).is_not_null())?
            .distinct()
    };
    let none = Vec::<Expr>::new;
    let all = pairs(Side::Original, "__who", "__value")?
        .aggregate(none(), [count(lit(1)).alias("__all")])?
        .build()?;
    let published = pairs(Side::Published, "__published_who", "__published")?.build()?;
    let float = |name: &str| cast(col(name), DataType::Float64);
    let lost = when(col("__lost").is_null(), lit(0.0)).otherwise(col("__lost"))?;
    let lost = (lost + float("__all") - float("__covered")) / float("__all");
    pairs(Side::Original, "__who", "__value")?
        .join(
            labels(taxonomy)?,
            JoinType::Inner,
            (vec!["__value"], vec!["__leaf"]),
            None,
        )?
        .join(
            published,
            JoinType::Inner,
            (
                vec!["__who", "__label"],
                vec!["__published_who", "__published"],
            ),
            None,
        )?
        .aggregate(
            [col("__who"), col("__value")],
            [min(col("__loss")).alias("__loss")],
        )?
        .aggregate(
            none(),
            [
                sum(col("__loss")).alias("__lost"),
                count(lit(1)).alias("__covered"),
            ],
        )?
        .cross_join(all)?
        .project([lost.alias("sa_ncp_original")])?
        .build()
}

/// Every leaf with each label above it, itself included, and what the label loses: its share of all leaves, nothing for a
/// leaf (Eq. 1).
fn labels(taxonomy: &Taxonomy) -> Result<LogicalPlan> {
    let tree = taxonomy.tree();
    let (mut leaves, mut labels, mut losses) = (vec![], vec![], vec![]);
    for leaf in 0..tree.leaves() {
        let first = tree.node_of(leaf);
        for node in std::iter::successors(Some(first), |node| tree.parent(*node)) {
            leaves.push(taxonomy.label(first));
            labels.push(taxonomy.label(node));
            losses.push(match tree.size(node) {
                1 => 0.0,
                size => f64::from(size) / f64::from(tree.leaves()),
            });
        }
    }
    let rows = RecordBatch::try_from_iter([
        ("__leaf", Arc::new(StringArray::from(leaves)) as ArrayRef),
        ("__label", Arc::new(StringArray::from(labels))),
        ("__loss", Arc::new(Float64Array::from(losses))),
    ])?;
    let rows = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
    input::scan_apart("labels", provider_as_source(Arc::new(rows)))
}
