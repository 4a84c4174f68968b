//! `audit_buckets(published)`: what a table with local groups and buckets attains, and what an insider learns.
//!
//! ```text
//!   people    ──► by what their quasi-identifiers show ──► groups: how many, how large
//!   values    ──► by bucket and value ──► by bucket    ──► buckets: how large, how sure one can be of a value
//! ```

mod distance;

pub(crate) use distance::bucket_distance;

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::functions::core::expr_fn::{coalesce, get_field, named_struct};
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit, when};

use super::audits::class_tuple;
use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::error;
use crate::system::{BUCKET, BUCKETIZED, COUNT, GROUP, INDIVIDUAL};

const NAME: &str = "audit_buckets";

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "what a table with local groups and buckets attains, one row per measure",
    positional: 1,
    arguments: Cow::Borrowed(&[Argument::required(
        "published",
        ArgumentKind::Relation,
        "a table that anonymize_lgb published, in either form",
    )]),
    refused: &[],
    plan,
};

/// A measure: its name, its value, whether higher or lower is safer, and what it means.
type Measure = (&'static str, Expr, Option<&'static str>, &'static str);

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let table = AuditedBuckets::try_new(given.relation("published")?)?;
    let mut report = table.groups()?;
    for name in &table.attributes {
        report = report.union(table.buckets(name)?.build()?)?;
    }
    report.build()
}

/// A published table and its columns.
struct AuditedBuckets {
    published: LogicalPlan,
    /// Columns with secret values, by name.
    attributes: Vec<String>,
    /// Quasi-identifiers.
    qi: Vec<Expr>,
}

impl AuditedBuckets {
    fn try_new(published: LogicalPlan) -> Result<Self> {
        let schema = published.schema();
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let attributes = names
            .iter()
            .filter_map(|name| name.strip_suffix(BUCKET))
            .filter(|name| names.contains(&format!("{name}{BUCKETIZED}").as_str()));
        let attributes: Vec<String> = attributes.map(str::to_owned).collect();
        let missing =
            |what: &str| Err(error::argument(NAME, "published", format!("has no {what}")));
        if attributes.is_empty() {
            return missing("column with buckets, which are called x_bucketized and x_bid");
        }
        if !names.contains(&INDIVIDUAL) {
            return missing("column 'individual'");
        }
        let is_qi = |name: &&&str| {
            let of = |suffix: &str| {
                let base = name.strip_suffix(suffix);
                base.is_some_and(|base| attributes.iter().any(|a| a == base))
            };
            ![INDIVIDUAL, GROUP, COUNT].contains(name) && !of(BUCKET) && !of(BUCKETIZED)
        };
        let qi = names.iter().filter(is_qi).map(|name| column(schema, name));
        let qi = qi.collect();
        Ok(Self {
            published,
            attributes,
            qi,
        })
    }

    fn column(&self, name: &str) -> Expr {
        column(self.published.schema(), name)
    }

    /// Whether a secret value of each attribute is in a bucket: the flags that a reader sees.
    fn presence(&self) -> Vec<Expr> {
        let inside = |name: &String| self.column(&format!("{name}{BUCKET}")).is_not_null();
        self.attributes.iter().map(inside).collect()
    }

    /// Local groups, found again from what their members show.
    fn groups(&self) -> Result<LogicalPlanBuilder> {
        let tuple =
            ScalarFunction::new_udf(class_tuple(), [self.qi.clone(), self.presence()].concat());
        let pattern = ScalarFunction::new_udf(class_tuple(), self.presence());
        let number = |expr: Expr| cast(expr, DataType::Float64);
        let by_group = LogicalPlanBuilder::from(self.published.clone())
            .filter(self.column(INDIVIDUAL).is_not_null())?
            .project([
                Expr::ScalarFunction(tuple).alias("__group"),
                Expr::ScalarFunction(pattern).alias("__pattern"),
            ])?
            .aggregate(
                [col("__group"), col("__pattern")],
                [count(lit(1)).alias("__size")],
            )?;
        let by_pattern = by_group.aggregate(
            [col("__pattern")],
            [
                count(lit(1)).alias("__groups"),
                sum(col("__size")).alias("__members"),
                min(col("__size")).alias("__least"),
                max(col("__size")).alias("__most"),
                sum(number(col("__size")) * number(col("__size"))).alias("__squares"),
            ],
        )?;
        let whole = by_pattern.aggregate(
            Vec::<Expr>::new(),
            [
                sum(col("__members")).alias("__all"),
                sum(col("__groups")).alias("__of_all"),
                min(col("__least")).alias("__smallest"),
                max(col("__most")).alias("__largest"),
                sum(col("__squares")).alias("__discernibility"),
                count(lit(1)).alias("__patterns"),
                min(col("__members")).alias("__rarest"),
            ],
        )?;
        rows(
            whole,
            None,
            vec![
                (
                    "individuals",
                    number(col("__all")),
                    None,
                    "individuals, one record each",
                ),
                (
                    "groups",
                    number(col("__of_all")),
                    None,
                    "local groups: individuals who show the same",
                ),
                (
                    "k",
                    number(col("__smallest")),
                    Some("higher"),
                    "individuals in the smallest group",
                ),
                (
                    "group_max",
                    number(col("__largest")),
                    None,
                    "individuals in the largest group",
                ),
                (
                    "discernibility",
                    col("__discernibility"),
                    None,
                    "C_DM: the sum of the squared sizes of the groups",
                ),
                (
                    "patterns",
                    number(col("__patterns")),
                    Some("lower"),
                    "different choices of what is secret, which readers see",
                ),
                (
                    "pattern_min",
                    number(col("__rarest")),
                    Some("higher"),
                    "individuals with the rarest choice",
                ),
            ],
        )
    }

    /// The buckets of one attribute.
    fn buckets(&self, name: &str) -> Result<LogicalPlanBuilder> {
        let values = self.column(&format!("{name}{BUCKETIZED}"));
        let schema = self.published.schema();
        let weight = match schema.fields().iter().any(|f| f.name() == COUNT) {
            true => coalesce(vec![cast(self.column(COUNT), DataType::Int64), lit(1i64)]),
            false => lit(1i64),
        };
        let number = |name: &str| cast(col(name), DataType::Float64);
        let data_type = self.published.schema().data_type(name_of(&values)?)?;
        let in_order = data_type.is_numeric() || data_type.is_temporal();
        let by_value = LogicalPlanBuilder::from(self.published.clone())
            .filter(values.clone().is_not_null())?
            .project([
                self.column(&format!("{name}{BUCKET}")).alias("__bucket"),
                values.alias("__value"),
                weight.alias("__times"),
            ])?
            .aggregate(
                [col("__bucket"), col("__value")],
                [sum(col("__times")).alias("__n")],
            )?
            .build()?;
        let distance = |ordered: bool| {
            let args = ["__bucket", "__value", "__n"].map(col).to_vec();
            bucket_distance().call([args, vec![lit(ordered)]].concat())
        };
        let distances = LogicalPlanBuilder::from(by_value.clone()).aggregate(
            Vec::<Expr>::new(),
            [
                distance(false).alias("__distance"),
                match in_order {
                    true => distance(true).alias("__ordered"),
                    false => max(lit(ScalarValue::Float64(None))).alias("__ordered"),
                },
            ],
        )?;
        let by_bucket = LogicalPlanBuilder::from(by_value).aggregate(
            [col("__bucket")],
            [
                sum(col("__n")).alias("__size"),
                max(col("__n")).alias("__most"),
                count(lit(1)).alias("__values"),
            ],
        )?;
        let outsider = number("__most") / number("__size");
        // Whoever knows the value of one member, as each member does: another value than the most frequent one.
        let others = number("__size") - lit(1.0);
        let insider =
            when(col("__values").gt(lit(1i64)), number("__most") / others).otherwise(lit(1.0))?;
        let whole = by_bucket.aggregate(
            Vec::<Expr>::new(),
            [
                count(lit(1)).alias("__buckets"),
                sum(col("__size")).alias("__owners"),
                min(col("__values")).alias("__l"),
                max(col("__size")).alias("__largest"),
                max(outsider).alias("__outsider"),
                max(insider).alias("__insider"),
            ],
        )?;
        let whole = whole.cross_join(distances.build()?)?;
        let report = rows(
            whole,
            Some(name),
            vec![
                (
                    "buckets",
                    number("__buckets"),
                    None,
                    "buckets of secret values",
                ),
                ("values", number("__owners"), None, "secret values"),
                (
                    "l",
                    number("__l"),
                    Some("higher"),
                    "different values in the poorest bucket",
                ),
                (
                    "bucket_max",
                    number("__largest"),
                    None,
                    "values in the largest bucket",
                ),
                (
                    "outsider_share",
                    col("__outsider"),
                    Some("lower"),
                    "how sure an outsider can be of somebody's value",
                ),
                (
                    "insider_share",
                    col("__insider"),
                    Some("lower"),
                    "the same for a member, or whoever knows the value of one: 1 / (l - 1) where all values of a bucket \
                     are different, more where one repeats",
                ),
                (
                    "t",
                    col("__distance"),
                    Some("lower"),
                    "how far a bucket is from all secret values of the column: variational distance",
                ),
                (
                    "t_ordered",
                    col("__ordered"),
                    Some("lower"),
                    "the same in the order of the values: earth mover's distance",
                ),
            ],
        )?;
        // Without a value: too many different values, or none that have an order.
        let told = col("measure").in_list(vec![lit("t"), lit("t_ordered")], true);
        report.filter(told.or(col("value").is_not_null()))
    }
}

/// One row of figures as rows with names and notes.
fn rows(
    figures: LogicalPlanBuilder,
    attribute: Option<&str>,
    measures: Vec<Measure>,
) -> Result<LogicalPlanBuilder> {
    let text = |text: Option<&str>| lit(ScalarValue::Utf8(text.map(str::to_owned)));
    let row = |(name, value, better, note): Measure| {
        named_struct(vec![
            lit("measure"),
            text(Some(name)),
            lit("value"),
            value,
            lit("better"),
            text(better),
            lit("note"),
            text(Some(note)),
        ])
    };
    let list = make_array(measures.into_iter().map(row).collect());
    let field = |name: &str| get_field(col("__row"), name).alias(name);
    figures
        .project([list.alias("__row")])?
        .unnest_column(Column::from_name("__row"))?
        .project([
            text(attribute).alias("attribute"),
            field("measure"),
            field("value"),
            field("better"),
            field("note"),
        ])
}

fn name_of(expr: &Expr) -> Result<&Column> {
    match expr {
        Expr::Column(column) => Ok(column),
        _ => datafusion::common::internal_err!("values of buckets are a column"),
    }
}

fn column(schema: &DFSchema, name: &str) -> Expr {
    let found = schema.iter().find(|(_, field)| field.name() == name);
    let qualifier = found.and_then(|(qualifier, _)| qualifier.cloned());
    Expr::Column(Column::new(qualifier, name))
}
