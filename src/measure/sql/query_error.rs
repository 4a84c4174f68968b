//! `query_error(original, published, …)`: random count queries, or sums, answered from both tables.
//!
//! The workload is drawn from the domains of the original's columns and then answered in one pass over each table, all
//! queries at once:
//!
//! ```text
//! Projection        a row per query (or one row: the summary)
//!   CrossJoin
//!     Aggregate       exact answers from the original
//!     Aggregate       estimates from the published table
//! with the scalar subquery
//!   Projection        the workload
//!     Aggregate         smallest and largest or distinct values of each column of the original
//! ```

mod answers;
mod arguments;
mod buckets;
mod draw;
mod matches;
mod predicate;
mod report;

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Fields};
use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::functions::core::expr_fn::{coalesce, get_field, named_struct};
use datafusion::functions_aggregate::expr_fn::{array_agg, max, min};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, scalar_subquery,
};

use self::answers::workload_answers;
use self::arguments::{ARGUMENTS, Bucket, Counted, Local, Request};
use self::draw::Drawn;
use self::matches::workload_matches;
use super::estimate::column_values;
use crate::call::arguments::{Arguments, Function};
use crate::call::source::hierarchy::rows_value;
use crate::table::coding::Levels;

const NAME: &str = "query_error";

/// One row per query.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "how wrong counts over a published table are: one row per random query",
    positional: 2,
    arguments: Cow::Borrowed(ARGUMENTS),
    refused: &[],
    plan: plan_report,
};

/// One row for all queries.
pub(super) const SUMMARY: Function = Function {
    name: "query_error_summary",
    help: "how wrong counts over a published table are: one row for all random queries",
    positional: 2,
    arguments: Cow::Borrowed(ARGUMENTS),
    refused: &[],
    plan: plan_summary,
};

/// Registers what the plans call.
pub(crate) fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    registry.register_udf(draw::workload())?;
    for bounds in [false, true] {
        registry.register_udf(report::workload_report(bounds))?;
        registry.register_udf(report::workload_summary(bounds))?;
    }
    registry.register_udaf(workload_answers())?;
    registry.register_udaf(workload_matches())?;
    Ok(())
}

fn plan_report(given: &mut Arguments) -> Result<LogicalPlan> {
    let request = Request::take(given)?;
    let builder = answered(
        &request,
        report::workload_report(request.local.is_some()).as_ref(),
    )?;
    let builder = builder.unnest_column("__result")?;
    shown(builder, &report::report_fields(request.local.is_some()))
}

fn plan_summary(given: &mut Arguments) -> Result<LogicalPlan> {
    let request = Request::take(given)?;
    let builder = answered(
        &request,
        report::workload_summary(request.local.is_some()).as_ref(),
    )?;
    shown(builder, &report::summary_fields(request.local.is_some()))
}

fn shown(builder: LogicalPlanBuilder, fields: &Fields) -> Result<LogicalPlan> {
    let fields = fields
        .iter()
        .map(|f| get_field(col("__result"), f.name().as_str()).alias(f.name()));
    builder.project(fields.collect::<Vec<_>>())?.build()
}

/// Both tables' answers, made into a result.
fn answered(
    request: &Request,
    result: &datafusion::logical_expr::ScalarUDF,
) -> Result<LogicalPlanBuilder> {
    let workload = workload(&request.original, request)?;
    let exact = exact(&request.original, request, &workload)?;
    let estimated = estimated(&request.published, request, &workload)?;
    let names: Vec<Expr> = request.columns().map(|c| lit(c.name.as_str())).collect();
    let names = datafusion::functions_nested::expr_fn::make_array(names);
    let args = vec![
        workload,
        lit(""),
        col("__exact"),
        col("__estimated"),
        lit(request.floor),
        lit(request.show_predicates),
        names,
    ];
    LogicalPlanBuilder::from(exact)
        .cross_join(estimated)?
        .project([result.call(args).alias("__result")])
}

/// The workload: drawn at once where all domains are given, else by a subquery over the original.
fn workload(original: &LogicalPlan, request: &Request) -> Result<Expr> {
    let (mut learned, mut columns) = (vec![], vec![]);
    for (i, column) in request.columns().enumerate() {
        let value = column.original.clone();
        let domain = match &column.domain {
            Some(domain) => lit(domain.clone()),
            None if column.is_range => {
                let (lo, hi) = (format!("__lo_{i}"), format!("__hi_{i}"));
                learned.push(min(value.clone()).alias(&lo));
                learned.push(max(value).alias(&hi));
                named_struct(vec![lit("lo"), col(lo), lit("hi"), col(hi)])
            }
            None => {
                let name = format!("__values_{i}");
                learned.push(column_values().call(vec![value]).alias(&name));
                col(name)
            }
        };
        columns.push(Drawn {
            name: column.name.clone(),
            value_type: column.value_type.clone(),
            domain,
            hierarchy: match column.levels.as_ref().and_then(Levels::tree) {
                Some(taxonomy) => rows_value(taxonomy)?,
                None => lit(ScalarValue::Null),
            },
        });
    }
    let drawn = draw::call(&request.draw, columns);
    if learned.is_empty() {
        return Ok(drawn);
    }
    let plan = LogicalPlanBuilder::from(original.clone())
        .aggregate(Vec::<Expr>::new(), learned)?
        .project([drawn])?
        .build()?;
    Ok(scalar_subquery(Arc::new(plan)))
}

/// Positions of columns with a role, as [`Role::parse`](crate::measure::query_error::Role::parse) reads them.
fn roles(role: char, columns: std::ops::Range<usize>) -> String {
    let words: Vec<String> = columns.map(|i| format!("{role}{i}")).collect();
    words.join(" ")
}

fn exact(original: &LogicalPlan, request: &Request, workload: &Expr) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = request.columns().map(|c| c.original.clone()).collect();
    let roles = roles('e', 0..columns.len());
    let builder = LogicalPlanBuilder::from(original.clone());
    let call = |roles: &str, columns: Vec<Expr>| {
        let mut args = vec![workload.clone(), lit(roles)];
        args.extend(columns);
        args
    };
    let none = Vec::<Expr>::new();
    if let Some(summed) = request.local.as_ref().and_then(|l| l.summed.as_ref()) {
        let number = cast(summed.original.clone(), DataType::Float64);
        let args = call(&format!("{roles} n"), [columns, vec![number]].concat());
        return builder
            .aggregate(none, [workload_answers().call(args).alias("__exact")])?
            .build();
    }
    match &request.counted {
        Counted::Records => builder.aggregate(
            none,
            [workload_answers()
                .call(call(&roles, columns))
                .alias("__exact")],
        )?,
        Counted::Individuals(ids) => builder
            .filter(ids.original.clone().is_not_null())?
            .aggregate(
                [ids.original.clone()],
                [workload_matches()
                    .call(call(&roles, columns))
                    .alias("__bits")],
            )?
            .aggregate(
                none,
                [workload_answers()
                    .call(call("b", vec![col("__bits")]))
                    .alias("__exact")],
            )?,
    }
    .build()
}

/// Estimates (Wang 2018, Eq. 19): records, or individuals once each (see E12 in docs/theory/papers.md).
fn estimated(published: &LogicalPlan, request: &Request, workload: &Expr) -> Result<LogicalPlan> {
    if let Some(local) = &request.local {
        return bounded(published, request, local, workload);
    }
    let qi: Vec<Expr> = request.qi.iter().filter_map(|c| c.shown.clone()).collect();
    let sensitive = request.sensitive.iter().filter_map(|c| c.shown.clone());
    let sensitive: Vec<Expr> = sensitive.collect();
    // Sensitive values are published as they are, or as labels.
    let labelled = request.sensitive.iter().any(|c| c.levels.is_some());
    let role = if labelled { 'p' } else { 'e' };
    let exact_roles = roles(role, qi.len()..qi.len() + sensitive.len());
    let qi_roles = roles('p', 0..qi.len());
    let builder = LogicalPlanBuilder::from(published.clone());
    let none = Vec::<Expr>::new();
    if let Some(anatomy) = &request.anatomy {
        let mut fields = vec![lit("subtable"), anatomy.subtable.clone()];
        fields.extend([lit("count"), anatomy.count.clone()]);
        for (i, column) in qi.iter().chain(&sensitive).enumerate() {
            fields.extend([lit(format!("c{i}")), column.clone()]);
        }
        let rows = array_agg(named_struct(fields)).alias("__rows");
        let args = vec![workload.clone(), lit("g"), col("__rows")];
        return builder
            .aggregate([anatomy.gid.clone()], [rows])?
            .aggregate(none, [workload_answers().call(args).alias("__estimated")])?
            .build();
    }
    let answers = |roles: String, columns: Vec<Expr>| {
        let mut args = vec![workload.clone(), lit(roles)];
        args.extend(columns);
        workload_answers().call(args).alias("__estimated")
    };
    match &request.counted {
        Counted::Records => builder.aggregate(
            none,
            [answers(
                format!("{qi_roles} {exact_roles}"),
                [qi, sensitive].concat(),
            )],
        )?,
        Counted::Individuals(ids) => {
            let id = &ids.published;
            // An individual shows one tuple, so that grouping by it changes nothing.
            let mut keys = vec![id.clone().alias("__individual")];
            keys.extend(
                qi.iter()
                    .enumerate()
                    .map(|(i, c)| c.clone().alias(format!("__qi_{i}"))),
            );
            let mut names: Vec<Expr> = (0..qi.len()).map(|i| col(format!("__qi_{i}"))).collect();
            let mut args = vec![workload.clone(), lit(exact_roles.as_str())];
            args.extend(sensitive.iter().cloned());
            let (bits, roles) = if sensitive.is_empty() {
                (vec![], qi_roles)
            } else {
                names.push(col("__bits"));
                let bits = workload_matches().call(args).alias("__bits");
                (vec![bits], format!("{qi_roles} b"))
            };
            builder
                .filter(id.clone().is_not_null())?
                .aggregate(keys, bits)?
                .aggregate(none, [answers(roles, names)])?
        }
    }
    .build()
}

/// Estimates with bounds from a table with buckets: its rows by bucket of the summed column, or by local group, each with
/// the values of the buckets that its other secrets are in.
fn bounded(
    published: &LogicalPlan,
    request: &Request,
    local: &Local,
    workload: &Expr,
) -> Result<LogicalPlan> {
    let times = match &local.times {
        Some(times) => coalesce(vec![cast(times.clone(), DataType::Int64), lit(1i64)]),
        None => lit(1i64),
    };
    let somebody = local.individual.clone().is_not_null();
    let mut fields = vec![lit(buckets::SOMEBODY), somebody.clone()];
    let mut builder = LogicalPlanBuilder::from(published.clone());
    for (i, column) in request.columns().enumerate() {
        let summed = local.summed.as_ref().filter(|s| s.name == column.name);
        if let Some(summed) = summed {
            fields.extend([lit(format!("v{i}")), summed.bucket.values.clone()]);
            continue;
        }
        if let Some(shown) = &column.shown {
            fields.extend([lit(format!("c{i}")), shown.clone()]);
        }
        if let Some(Bucket { values, bid }) = &column.bucket {
            let (key, contents) = (format!("__bid_{i}"), format!("__values_{i}"));
            let entry = named_struct(vec![
                lit(buckets::VALUE),
                values.clone(),
                lit(buckets::TIMES),
                times.clone(),
            ]);
            let inside = LogicalPlanBuilder::from(published.clone())
                .filter(values.clone().is_not_null())?
                .project([bid.clone().alias(&key), entry.alias("__entry")])?
                .aggregate([col(&key)], [array_agg(col("__entry")).alias(&contents)])?
                .build()?;
            let on = (
                bid.column_refs().into_iter().cloned().collect::<Vec<_>>(),
                vec![Column::from_name(key)],
            );
            builder = builder.join(inside, JoinType::Left, on, None)?;
            fields.extend([lit(format!("b{i}")), col(contents)]);
        }
    }
    let (key, value, times, builder) = match &local.summed {
        Some(summed) => (
            &summed.bucket.bid,
            cast(summed.bucket.values.clone(), DataType::Float64),
            times,
            builder,
        ),
        None => (&local.gid, lit(1.0), lit(1i64), builder.filter(somebody)?),
    };
    fields.extend([lit(buckets::VALUE), value, lit(buckets::TIMES), times]);
    let args = vec![workload.clone(), lit("l"), col("__rows")];
    builder
        .filter(key.clone().is_not_null())?
        .project([
            key.clone().alias("__key"),
            named_struct(fields).alias("__row"),
        ])?
        .aggregate([col("__key")], [array_agg(col("__row")).alias("__rows")])?
        .aggregate(
            Vec::<Expr>::new(),
            [workload_answers().call(args).alias("__estimated")],
        )?
        .build()
}

/// The type under which values are compared.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, value) => plain_type(value.data_type()),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    }
}
