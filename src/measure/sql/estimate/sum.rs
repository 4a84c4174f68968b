//! `estimate_sum(published, 'SELECT sum(salary) FROM published WHERE age > 30 …')`: sums over local buckets, with bounds
//! (Li 2020, Section 4.2).
//!
//! ```text
//! Projection      lower, expected, upper, least, most
//!   Aggregate       fixed_sum of each
//!     Aggregate       by bucket of the summed column: bucket_sum(p, value, individuals)
//!       Projection      p of each individual, values of the buckets
//!         Join            per secret column with a condition: how much of each bucket it selects
//!           the published table
//! ```

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DataFusionError, JoinType, Result};
use datafusion::functions::core::expr_fn::{coalesce, get_field};
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when};
use datafusion::sql::sqlparser::ast::{GroupByExpr, Select, SelectItem};

use super::bucket_sum::{FIELDS, bucket_sum, fixed_sum};
use super::condition::Generalized;
use super::formula::Formula;
use super::known_fraction::known_fraction;
use super::plan::{Options, column_of, domain_of};
use super::share::{scalar, share};
use super::{ARGUMENTS, QueryCall};
use crate::call::arguments::{Arguments, Function};
use crate::error;
use crate::measure::cells::{Point, Selection, is_generalized, value_type};
use crate::system::{BUCKET, BUCKETIZED, COUNT, GROUP, INDIVIDUAL};

/// The function's name.
const NAME: &str = "estimate_sum";

/// The function.
pub(crate) const SUM: Function = Function {
    name: NAME,
    help: "a sum or count over the original, estimated from a table with buckets, with bounds",
    positional: 2,
    arguments: Cow::Borrowed(ARGUMENTS),
    refused: &[],
    plan,
};

fn refuse(message: impl AsRef<str>) -> DataFusionError {
    error::call(NAME, message)
}

/// A column of which some or all values are in buckets.
#[derive(Debug)]
struct SummedColumn {
    name: String,
    /// The type of its exact values.
    exact: DataType,
    /// Whether values that are in no bucket are generalized.
    semi: bool,
}

/// What a query must be.
const SHAPE: &str = "SELECT sum(column) or count(*) FROM published [WHERE …]";

/// What is asked for.
struct Sum {
    /// The summed column, by its place among the attributes; individuals are counted without one.
    summed: Option<usize>,
    conditions: Vec<Expr>,
}

/// Plans a call.
fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    // What is shared with `estimate` speaks in its name.
    planned(given).map_err(|e| match e {
        DataFusionError::Plan(message) => {
            let own = message.strip_prefix("estimate: ").map(refuse);
            own.unwrap_or(DataFusionError::Plan(message))
        }
        other => other,
    })
}

fn planned(given: &mut Arguments) -> Result<LogicalPlan> {
    let QueryCall {
        select,
        published,
        options,
    } = QueryCall::take(given, SHAPE)?;
    let attributes = attributes(published.schema());
    if attributes.is_empty() {
        return Err(error::argument(
            NAME,
            "published",
            format!("has no column with buckets, which are called x{BUCKETIZED} and x{BUCKET}"),
        ));
    }
    let original = original_schema(published.schema(), &attributes)?;
    let sum = Sum::read(*select, &original, &attributes, given)?;
    Estimator::new(published, &original, attributes, options)?.plan(sum)
}

/// The columns of a published table that have buckets.
fn attributes(published: &DFSchema) -> Vec<SummedColumn> {
    let field = |name: &str| {
        let mut fields = published.fields().iter();
        fields.find(|f| f.name() == name)
    };
    let attribute = |bid: &Arc<Field>| {
        let name = bid.name().strip_suffix(BUCKET)?;
        let values = field(&format!("{name}{BUCKETIZED}"))?;
        Some(SummedColumn {
            name: name.to_owned(),
            exact: values.data_type().clone(),
            semi: field(name).is_some(),
        })
    };
    published.fields().iter().filter_map(attribute).collect()
}

/// The schema as it was before anything was generalized or put into buckets, which the query is written for.
fn original_schema(published: &DFSchema, attributes: &[SummedColumn]) -> Result<DFSchema> {
    let mut fields = vec![];
    for (qualifier, field) in published.iter() {
        let name = field.name();
        let is = |suffix: &str| {
            let name = name.strip_suffix(suffix);
            attributes.iter().find(|a| Some(a.name.as_str()) == name)
        };
        let field = match (is(BUCKETIZED), is(""), is(BUCKET)) {
            (Some(attribute), ..) if !attribute.semi => {
                Field::new(&attribute.name, attribute.exact.clone(), true)
            }
            (Some(_), ..) | (_, _, Some(_)) => continue,
            (_, Some(attribute), _) => Field::new(name, attribute.exact.clone(), true),
            _ => {
                let data_type = field.data_type();
                let value = value_type(data_type).filter(|_| is_generalized(data_type));
                Field::new(name, value.unwrap_or_else(|| data_type.clone()), true)
            }
        };
        fields.push((qualifier.cloned(), Arc::new(field)));
    }
    DFSchema::new_with_metadata(fields, Default::default())
}

impl Sum {
    fn read(
        select: Select,
        original: &DFSchema,
        attributes: &[SummedColumn],
        given: &mut Arguments,
    ) -> Result<Self> {
        let shape = || refuse(format!("the query must be {SHAPE}"));
        let grouped = match &select.group_by {
            GroupByExpr::Expressions(groups, modifiers) => {
                !groups.is_empty() || !modifiers.is_empty()
            }
            GroupByExpr::All(_) => true,
        };
        if grouped {
            return Err(refuse(
                "GROUP BY is not possible, because a table with buckets keeps no column as it is; ask for one group in WHERE",
            ));
        }
        let mut items = select.projection.into_iter();
        let item = match (items.next(), items.next()) {
            (Some(SelectItem::UnnamedExpr(expr)), None)
            | (Some(SelectItem::ExprWithAlias { expr, .. }), None) => expr,
            _ => return Err(shape()),
        };
        let Expr::AggregateFunction(function) = given.expression(item, original)?.unalias() else {
            return Err(shape());
        };
        let params = &function.params;
        if params.distinct {
            return Err(refuse(
                "DISTINCT is not possible: an individual has one record",
            ));
        }
        let mut conditions: Vec<Expr> = vec![];
        if let Some(condition) = select.selection {
            conditions.push(given.expression(condition, original)?);
        }
        conditions.extend(params.filter.iter().map(|f| f.as_ref().clone()));
        let conditions = conditions.into_iter().flat_map(split_conjunction_owned);
        let summed = match (function.func.name(), params.args.as_slice()) {
            ("count", [] | [Expr::Literal(..)]) => None,
            #[expect(deprecated)]
            ("count", [Expr::Wildcard { .. }]) => None,
            ("sum", [argument]) => Some(summed(argument, attributes)?),
            ("sum" | "count", _) => return Err(shape()),
            (name, _) => {
                return Err(refuse(format!(
                    "{name} cannot be estimated; sum and count(*) can"
                )));
            }
        };
        Ok(Self {
            summed,
            conditions: conditions.collect(),
        })
    }
}

/// The sensitive column behind the argument of sum.
fn summed(argument: &Expr, attributes: &[SummedColumn]) -> Result<usize> {
    let column = match argument {
        Expr::Cast(cast) => cast.expr.as_ref(),
        other => other,
    };
    let Expr::Column(column) = column else {
        return Err(refuse("sum takes one column"));
    };
    let at = attributes.iter().position(|a| a.name == column.name);
    match at {
        Some(at) if !attributes[at].semi => {
            if attributes[at].exact.is_numeric() {
                return Ok(at);
            }
            let data_type = &attributes[at].exact;
            Err(refuse(format!(
                "'{}' cannot be summed: it is {data_type}",
                column.name
            )))
        }
        _ => Err(refuse(format!(
            "'{}' cannot be summed: not all its values are in buckets",
            column.name
        ))),
    }
}

/// A column with how much of each of its buckets a condition selects.
struct BucketShare {
    attribute: usize,
    selection: Selection,
}

struct Estimator<'a> {
    published: LogicalPlan,
    original: &'a DFSchema,
    attributes: Vec<SummedColumn>,
    options: Options,
    /// Domains of generalized columns, in the order of [`Estimator::columns`].
    domains: Vec<Option<Expr>>,
    /// Generalized columns, then attributes.
    columns: Vec<(Column, DataType)>,
    shares: Vec<BucketShare>,
}

impl<'a> Estimator<'a> {
    fn new(
        published: LogicalPlan,
        original: &'a DFSchema,
        attributes: Vec<SummedColumn>,
        options: Options,
    ) -> Result<Self> {
        let schema = Arc::clone(published.schema());
        let (mut columns, mut domains) = (vec![], vec![]);
        for (qualifier, field) in schema.iter() {
            let name = field.name();
            let own = attributes.iter().find(|a| a.name == *name);
            if own.is_none() && !is_generalized(field.data_type()) && !options.qi.contains(name) {
                continue;
            }
            let column = Column::new(qualifier.cloned(), name);
            domains.push(Some(domain_of(
                &published,
                &column,
                field.data_type(),
                &options,
            )?));
            let data_type = own.map(|a| list_of(&a.exact));
            columns.push((
                column,
                data_type.unwrap_or_else(|| field.data_type().clone()),
            ));
        }
        for attribute in attributes.iter().filter(|a| !a.semi) {
            let Expr::Column(column) = column_of(original, &attribute.name) else {
                continue;
            };
            columns.push((column, list_of(&attribute.exact)));
            domains.push(None);
        }
        Ok(Self {
            published,
            original,
            attributes,
            options,
            domains,
            columns,
            shares: vec![],
        })
    }

    fn plan(mut self, asked: Sum) -> Result<LogicalPlan> {
        let (mut formula, mut on_value) = (Formula::Constant(true), None::<Expr>);
        let summed = asked.summed.map(|at| self.attributes[at].name.clone());
        let generalized = Generalized::new(self.original, self.columns.clone());
        for condition in &asked.conditions {
            let uses = |column: &&Column| Some(&column.name) == summed.as_ref();
            let columns = condition.column_refs();
            if !columns.iter().any(uses) {
                formula = formula.and(generalized.formula(condition)?);
            } else if columns.iter().all(uses) {
                let exact = self.on_buckets(condition.clone())?;
                on_value = Some(match on_value {
                    Some(others) => others.and(exact),
                    None => exact,
                });
            } else {
                return Err(refuse(
                    "a condition on the summed column may be combined with others by AND only",
                ));
            }
        }
        let p =
            formula.probability(&mut |column, selection| self.probability(column, selection))?;

        let mut builder = LogicalPlanBuilder::from(self.published.clone());
        for at in 0..self.shares.len() {
            let bid = self.bid(self.shares[at].attribute);
            let (left, right) = (name_of(&bid)?, Column::from_name(key_name(at)));
            let share = self.bucket_share(at)?;
            builder = builder.join(share, JoinType::Left, (vec![left], vec![right]), None)?;
        }
        let id = self.options.id.as_deref().unwrap_or(INDIVIDUAL);
        let is_somebody = self.column(id).is_not_null();
        let p = when(is_somebody.clone(), p).end()?;
        let builder = match asked.summed {
            Some(at) => {
                let value = cast(self.values(at), DataType::Float64);
                // Whoever does not satisfy it adds nothing.
                let value = match on_value {
                    Some(holds) => {
                        let chosen = when(holds, value).otherwise(lit(0.0))?;
                        when(self.values(at).is_not_null(), chosen).end()?
                    }
                    None => value,
                };
                builder.project([
                    self.bid(at).alias("__bucket"),
                    p.alias("__p"),
                    value.alias("__value"),
                    self.weight().alias("__weight"),
                ])?
            }
            None => builder.filter(is_somebody)?.project([
                self.column(GROUP).alias("__bucket"),
                p.alias("__p"),
                lit(1.0).alias("__value"),
                lit(1i64).alias("__weight"),
            ])?,
        };
        let bounds = bucket_sum().call(vec![col("__p"), col("__value"), col("__weight")]);
        let whole = FIELDS.map(|f| fixed_sum().call(vec![get_field(col("__sum"), f)]).alias(f));
        builder
            .filter(col("__bucket").is_not_null())?
            .aggregate([col("__bucket")], [bounds.alias("__sum")])?
            .aggregate(Vec::<Expr>::new(), whole)?
            .build()
    }

    /// How likely a cell satisfies a selection.
    fn probability(&mut self, column: usize, selection: &Selection) -> Result<Expr> {
        let (name, data_type) = self.columns[column].clone();
        let attribute = self.attributes.iter().position(|a| a.name == name.name);
        let generalized = |domain: &Expr| -> Result<Expr> {
            let value_type = value_type(&data_type);
            let cell = Expr::Column(name.clone());
            let share = share(&cell, value_type.as_ref(), selection, Some(domain))?;
            Ok(known_fraction().call(vec![share, lit(name.name.as_str())]))
        };
        let shown = self.domains[column].as_ref().map(generalized).transpose()?;
        let Some(attribute) = attribute else {
            return shown.ok_or_else(|| refuse("a column has no domain"));
        };
        let known = self
            .shares
            .iter()
            .position(|s| s.attribute == attribute && s.selection == *selection);
        let at = known.unwrap_or(self.shares.len());
        if known.is_none() {
            self.shares.push(BucketShare {
                attribute,
                selection: selection.clone(),
            });
        }
        let inside = coalesce(vec![col(share_name(at)), lit(0.0)]);
        match shown {
            Some(shown) => when(self.bid(attribute).is_null(), shown).otherwise(inside),
            None => Ok(inside),
        }
    }

    /// How much of each bucket a selection takes: bucket and share.
    fn bucket_share(&self, at: usize) -> Result<LogicalPlan> {
        let BucketShare {
            attribute,
            selection,
        } = &self.shares[at];
        let values = self.values(*attribute);
        let exact = &self.attributes[*attribute].exact;
        let holds = selected(&values, exact, selection)?;
        let hit = when(holds, self.weight()).otherwise(lit(0i64))?;
        LogicalPlanBuilder::from(self.published.clone())
            .filter(values.is_not_null())?
            .project([
                self.bid(*attribute).alias(key_name(at)),
                hit.alias("__hits"),
                self.weight().alias("__all"),
            ])?
            .aggregate(
                [col(key_name(at))],
                [
                    sum(col("__hits")).alias("__hit"),
                    sum(col("__all")).alias("__of"),
                ],
            )?
            .project([
                col(key_name(at)),
                (cast(col("__hit"), DataType::Float64) / cast(col("__of"), DataType::Float64))
                    .alias(share_name(at)),
            ])?
            .build()
    }

    /// A condition on the summed column, asked of the values in its buckets.
    fn on_buckets(&self, condition: Expr) -> Result<Expr> {
        let replaced = condition.transform(|expr| match &expr {
            Expr::Column(column) => {
                let values = format!("{}{BUCKETIZED}", column.name);
                Ok(Transformed::yes(self.column(&values)))
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(replaced.data)
    }

    fn column(&self, name: &str) -> Expr {
        column_of(self.published.schema(), name)
    }

    fn values(&self, attribute: usize) -> Expr {
        self.column(&format!("{}{BUCKETIZED}", self.attributes[attribute].name))
    }

    fn bid(&self, attribute: usize) -> Expr {
        self.column(&format!("{}{BUCKET}", self.attributes[attribute].name))
    }

    /// How many individuals a row with a value of a bucket stands for.
    fn weight(&self) -> Expr {
        let mut fields = self.published.schema().fields().iter();
        if fields.any(|f| f.name() == COUNT) {
            let count = cast(self.column(COUNT), DataType::Int64);
            coalesce(vec![count, lit(1i64)])
        } else {
            lit(1i64)
        }
    }
}

fn name_of(expr: &Expr) -> Result<Column> {
    match expr {
        Expr::Column(column) => Ok(column.clone()),
        _ => Err(refuse("a bucket id is not a column")),
    }
}

fn key_name(at: usize) -> String {
    format!("__bucket_{at}")
}

fn share_name(at: usize) -> String {
    format!("__share_{at}")
}

fn list_of(value: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(value.clone(), true)))
}

/// Whether an exact value is selected.
fn selected(value: &Expr, exact: &DataType, selection: &Selection) -> Result<Expr> {
    let point = |p: &Point| Ok::<_, DataFusionError>(lit(scalar(p, Some(exact))?));
    let mut any: Option<Expr> = None;
    for (lo, hi) in selection.bounds() {
        let lo = match lo {
            Bound::Included(p) => Some(value.clone().gt_eq(point(p)?)),
            Bound::Excluded(p) => Some(value.clone().gt(point(p)?)),
            Bound::Unbounded => None,
        };
        let hi = match hi {
            Bound::Included(p) => Some(value.clone().lt_eq(point(p)?)),
            Bound::Excluded(p) => Some(value.clone().lt(point(p)?)),
            Bound::Unbounded => None,
        };
        let range = [lo, hi].into_iter().flatten().reduce(Expr::and);
        let range = range.unwrap_or_else(|| lit(true));
        any = Some(match any {
            Some(any) => any.or(range),
            None => range,
        });
    }
    Ok(any.unwrap_or_else(|| lit(false)))
}
