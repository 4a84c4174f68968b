//! `information_loss`: what was lost on the way from the original table to the published one.

mod sensitive;

use std::borrow::Cow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{count, max, min, sum};
use datafusion::functions_nested::expr_fn::make_array;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Expr, JoinType, LogicalPlan, LogicalPlanBuilder, cast, col, lit, try_cast, when,
};

use super::audit::PUBLISHED;
use super::roles::{CLASS, INDIVIDUAL, find};
use super::{class_tuple, classes, different_values};
use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::call::source::hierarchy::{plan_levels, plan_rows};
use crate::call::value::ArgumentValue;
use crate::measure::cells::is_generalized;
use crate::measure::{
    GatherSpec, LossCall, LossColumn, LossLevels, LossSpec, Report, inside_name, loss_schema,
    plain_type,
};
use crate::pipeline::{LossNode, gather, report};
use crate::system::{BUCKET, BUCKETIZED, INDIVIDUAL as PSEUDONYM};
use crate::table::coding::Levels;

/// The entry of `information_loss`.
pub(super) const INFORMATION_LOSS: Function = Function {
    name: "information_loss",
    help: "what was lost on the way from the original table to the published one, per column and in total",
    positional: 2,
    arguments: Cow::Borrowed(&[
        Argument::required("original", ArgumentKind::Relation, "the table before it was anonymized"),
        PUBLISHED,
        classes::ID,
        Argument::optional("original_id", ArgumentKind::Column, "the column of the original table that tells individuals apart").or("the one named by id"),
        classes::ONE_ROW,
        classes::QI,
        Argument::optional("sensitive", ArgumentKind::Column, "the sensitive column; records are its different values per individual").or("all records"),
        Argument::optional("categorical", ArgumentKind::Columns, "quasi-identifiers of a numeric type whose values are names, such as postcodes").or("lists"),
        Argument::optional("domain", ArgumentKind::Domains, "domains stated instead of learned: {age: [0, 120], sex: ['F', 'M']}").or("from the original"),
        HIERARCHY,
        Argument::optional("same_ids", ArgumentKind::Flag, "true if the published ids are those of the original, so that SA-NCP can be told per original value").or("false"),
        Argument::optional("k", ArgumentKind::Count, "the k that CAVG is measured against").or("the smallest class"),
        Argument::optional("published_only", ArgumentKind::Flag, "true if records that were dropped do not count, and domains are what the published cells stand for").or("false")]),
    refused: &[],
    plan,
};

pub(super) const HIERARCHY: Argument = Argument::optional(
    "hierarchy",
    ArgumentKind::Hierarchies,
    "columns published as labels: {age: 'bins(5, 20)', postcode: 'mask', city: 'city.csv'}",
)
.or("none");

/// Both tables with their roles.
struct LossTables {
    function: &'static str,
    original: LogicalPlan,
    published: LogicalPlan,
    /// The columns of individuals in both; `None` if every record is one.
    ids: Option<(Column, Column)>,
    sensitive: Option<String>,
    qi: Vec<String>,
    /// The bucket ids of each quasi-identifier, where the published table has local groups and buckets.
    buckets: Option<Vec<Option<Column>>>,
}

fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let tables = LossTables::take(given)?;
    let categorical = given.columns("categorical")?;
    let domains = take_domains(given)?;
    let hierarchies = given.hierarchies()?;
    let (k, same_ids) = (given.count("k")?, given.flag("same_ids")?);
    let published_only = given.flag("published_only")?;
    let named = categorical.iter().map(|name| ("categorical", name));
    let named = named.chain(domains.iter().map(|(name, _)| ("domain", name)));
    let levelled = hierarchies.iter().map(|(name, _)| name);
    let levelled = levelled.filter(|name| Some(*name) != tables.sensitive.as_ref());
    for (argument, name) in named.chain(levelled.map(|name| ("hierarchy", name))) {
        if !tables.qi.contains(name) {
            let message =
                format!("names column '{name}', which is not in qi; add it there, or leave it out");
            return Err(given.refuse(argument, message));
        }
    }
    let mut spec = LossSpec {
        function: given.function().to_owned(),
        columns: vec![],
    };
    let (mut domains_of, mut levels) = (vec![], vec![]);
    let mut measured = tables.qi.clone();
    for name in tables.qi.iter().chain(&tables.sensitive) {
        let hierarchy = hierarchies.iter().find(|(column, _)| column == name);
        let hierarchy = hierarchy.map(|(_, levels)| levels);
        let (_, from) = find(given.function(), "qi", name, tables.original.schema())?;
        let (_, to) = find(given.function(), "qi", name, tables.published.schema())?;
        if Some(name) == tables.sensitive.as_ref() {
            if is_list(to) {
                return Err(given.refuse(
                    "sensitive",
                    format!(
                        "names column '{name}', which has lists; publish a row per value: \
                         (SELECT …, unnest({name}) AS {name} FROM published)"
                    ),
                ));
            }
            // A sensitive column is usually published as it is, and then loses nothing.
            if hierarchy.is_none() && !is_generalized(to) {
                continue;
            }
            measured.push(name.clone());
        }
        let labels = hierarchy.is_some_and(|h| h.tree().is_some());
        let named =
            labels || matches!(hierarchy, Some(Levels::Mask(_))) || categorical.contains(name);
        let categorical =
            named || is_list(to) || Some(name) == tables.sensitive.as_ref() || !is_line(from);
        let stated = domains.iter().find(|(column, _)| column == name);
        domains_of.extend(match stated {
            Some((_, values)) => stated_domain(given, name, values, from, categorical)?,
            None if published_only => tables.shown(name, from)?,
            None => tables.domain(name, from, categorical)?,
        });
        spec.columns.push(LossColumn {
            name: name.clone(),
            categorical,
            of_published: published_only && stated.is_none(),
            levels: match hierarchy {
                None => LossLevels::None,
                Some(_) if labels => LossLevels::Labels,
                Some(_) => LossLevels::Heights,
            },
        });
        if let Some(hierarchy) = hierarchy {
            levels.push(tables.levels(name, hierarchy)?);
        }
    }
    let sensitive_tree = hierarchies
        .iter()
        .find(|(column, _)| Some(column) == tables.sensitive.as_ref())
        .and_then(|(_, levels)| levels.tree());
    let per_original = match (same_ids, sensitive_tree) {
        (false, _) => None,
        (true, Some(taxonomy)) => Some(sensitive::per_original_value(&tables, taxonomy)?),
        (true, None) => {
            return Err(given.refuse(
                "same_ids",
                "needs a given hierarchy of the sensitive column: hierarchy => {disease: 'diseases.csv'}",
            ));
        }
    };
    let sensitive_as_is = tables.sensitive.is_some() && measured.len() == tables.qi.len();
    let call = LossCall {
        columns: measured,
        qi: tables.qi.len(),
        sensitive: tables.sensitive.is_some(),
        sensitive_as_is,
        per_original_value: per_original.is_some(),
        hierarchies: spec
            .columns
            .iter()
            .map(|c| c.levels != LossLevels::None)
            .collect(),
        stated: domains.len(),
        k,
        published_only,
        buckets: tables.buckets.is_some(),
    };
    let mut inputs = vec![tables.published_columns(&call.columns)?];
    inputs.push(tables.domains(domains_of, published_only)?);
    inputs.extend(levels);
    let mut figures =
        LogicalPlanBuilder::from(sums(spec, inputs)?).cross_join(tables.classes()?)?;
    if !published_only {
        figures = figures.cross_join(tables.sizes()?)?;
    }
    if let Some(buckets) = &tables.buckets {
        figures = figures.cross_join(tables.inside(buckets)?)?;
    }
    if let Some(sensitive) = tables.sensitive.as_ref().filter(|_| sensitive_as_is) {
        figures = figures.cross_join(tables.foreign_values(sensitive)?)?;
    }
    if let Some(per_original) = per_original {
        figures = figures.cross_join(per_original)?;
    }
    report(given.function(), Report::Loss(call), figures)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Original,
    Published,
}

impl LossTables {
    fn take(given: &mut Arguments) -> Result<Self> {
        let (original, published) = (given.relation("original")?, given.relation("published")?);
        let (id, alone) = (given.column("id")?, given.flag("one_row_per_individual")?);
        let original_id = given.column("original_id")?;
        let (qi, sensitive) = (given.columns("qi")?, given.column("sensitive")?);
        if qi.is_empty() {
            return Err(given.refuse("qi", "is missing: name the generalized columns"));
        }
        let function = given.function();
        let ids = match (id, alone) {
            (Some(_), true) => {
                return Err(
                    given.refuse("one_row_per_individual", "contradicts id: give one of them")
                );
            }
            (None, true) => None,
            (None, false) => {
                return Err(given.refuse(
                    "id",
                    "is missing: name the column of the published table that tells individuals apart, and \
                     original_id for the original one, or say one_row_per_individual => true",
                ));
            }
            (Some(id), false) => {
                let original_id = original_id.unwrap_or_else(|| id.clone());
                let (from, _) = find(function, "original_id", &original_id, original.schema())?;
                let (to, _) = find(function, "id", &id, published.schema())?;
                Some((from, to))
            }
        };
        let buckets = bucket_ids(published.schema(), &qi);
        let published = match &buckets {
            None => published,
            Some(_) => {
                let column = |name: &str| find(function, "id", name, published.schema());
                if let Some(name) = sensitive.as_ref().filter(|n| column(n).is_err())
                    && column(&format!("{name}{BUCKET}")).is_ok()
                {
                    return Err(given.refuse(
                        "sensitive",
                        format!(
                            "names column '{name}', whose values are all in buckets and lose nothing; leave it out"
                        ),
                    ));
                }
                // Values of buckets may stand in rows of their own, which are nobody's.
                let (individual, _) = column(PSEUDONYM)?;
                LogicalPlanBuilder::from(published)
                    .filter(Expr::Column(individual).is_not_null())?
                    .build()?
            }
        };
        Ok(Self {
            function,
            original,
            published,
            ids,
            sensitive,
            qi,
            buckets,
        })
    }

    fn column(&self, side: Side, name: &str) -> Result<Expr> {
        let table = match side {
            Side::Original => &self.original,
            Side::Published => &self.published,
        };
        let (column, _) = find(self.function, "qi", name, table.schema())?;
        Ok(Expr::Column(column))
    }

    fn table(&self, side: Side) -> LogicalPlanBuilder {
        LogicalPlanBuilder::from(match side {
            Side::Original => self.original.clone(),
            Side::Published => self.published.clone(),
        })
    }

    fn id(&self, side: Side) -> Option<Expr> {
        let (original, published) = self.ids.as_ref()?;
        Some(Expr::Column(match side {
            Side::Original => original.clone(),
            Side::Published => published.clone(),
        }))
    }

    fn published_columns(&self, names: &[String]) -> Result<LogicalPlan> {
        let column = |(at, name): (usize, &String)| {
            let (column, data_type) = find(self.function, "qi", name, self.published.schema())?;
            let column = Expr::Column(column);
            let buckets = self.buckets.as_ref().and_then(|b| b.get(at));
            let shown = match buckets {
                // As text, a cell without a value would be one whose value is missing and not one that is not shown.
                Some(Some(_)) if !is_generalized(data_type) => {
                    coalesce(vec![cast(column, DataType::Utf8), lit("*")])
                }
                _ => column,
            };
            Ok(shown.alias(format!("__{name}")))
        };
        let columns = names.iter().enumerate().map(column);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.table(Side::Published).project(columns)?.build()
    }

    /// The rows of a hierarchy: as it was given, or for the values of the original table.
    fn levels(&self, name: &str, levels: &Levels) -> Result<LogicalPlan> {
        match levels.tree() {
            Some(taxonomy) => plan_rows(taxonomy),
            None => {
                let original = self.original.clone();
                plan_levels(self.function, "hierarchy", original, name, levels)
            }
        }
    }

    /// The domains of all columns in one row, learned from one of the tables.
    fn domains(&self, domains: Vec<Domain>, published_only: bool) -> Result<LogicalPlan> {
        let side = match published_only {
            true => Side::Published,
            false => Side::Original,
        };
        let (mut learned, mut row) = (vec![], vec![]);
        for (at, domain) in domains.into_iter().enumerate() {
            let name = format!("__domain_{at}");
            row.push(match domain {
                Domain::Learned(aggregate) => {
                    learned.push(aggregate.alias(&name));
                    col(&name)
                }
                Domain::Stated(value) => value.alias(&name),
            });
        }
        let domains = match learned.is_empty() {
            true => LogicalPlanBuilder::empty(true),
            false => self.table(side).aggregate(Vec::<Expr>::new(), learned)?,
        };
        domains.project(row)?.build()
    }

    /// The different values of a column of the original table, or the smallest and the largest one.
    fn domain(&self, name: &str, data_type: &DataType, categorical: bool) -> Result<Vec<Domain>> {
        let value = self.column(Side::Original, name)?;
        if categorical {
            return Ok(vec![Domain::Learned(different_values().call(vec![value]))]);
        }
        // NaN is a missing value.
        let value = if data_type.is_floating() {
            let (least, most) = (lit(f64::NEG_INFINITY), lit(f64::INFINITY));
            when(value.clone().between(least, most), value).end()?
        } else {
            value
        };
        Ok(vec![
            Domain::Learned(min(value.clone())),
            Domain::Learned(max(value)),
        ])
    }

    /// The different published cells of a column, beside nothing of the type that its values have in the original table.
    fn shown(&self, name: &str, data_type: &DataType) -> Result<Vec<Domain>> {
        let cell = self.column(Side::Published, name)?;
        let nothing = cast(lit(ScalarValue::Null), plain_type(data_type));
        Ok(vec![
            Domain::Learned(different_values().call(vec![cell])),
            Domain::Stated(nothing),
        ])
    }

    /// The individuals of a table, with their classes if they are given.
    fn gathered(&self, side: Side, id: Expr, class: Option<Expr>) -> Result<LogicalPlan> {
        let spec = GatherSpec {
            function: self.function.to_owned(),
            classes: class.is_some(),
            sensitive: usize::from(self.sensitive.is_some()),
        };
        let mut columns = vec![id.alias(INDIVIDUAL)];
        columns.extend(class.map(|class| class.alias(CLASS)));
        if let Some(sensitive) = &self.sensitive {
            columns.push(self.column(side, sensitive)?.alias("__value"));
        }
        gather(spec, self.table(side).project(columns)?.build()?)
    }

    /// What counts as a record: a pair of individual and sensitive value, if these are named.
    fn records(&self) -> Expr {
        match self.sensitive {
            Some(_) => col("values"),
            None => col("records"),
        }
    }

    /// Records and individuals of the original table.
    fn sizes(&self) -> Result<LogicalPlan> {
        let (individuals, records) = ("original_individuals", "original_records");
        let sizes = match self.id(Side::Original) {
            Some(id) => LogicalPlanBuilder::from(self.gathered(Side::Original, id, None)?)
                .aggregate(
                    Vec::<Expr>::new(),
                    vec![
                        sum(col("individuals")).alias(individuals),
                        sum(self.records()).alias(records),
                    ],
                )?,
            None => self.table(Side::Original).aggregate(
                Vec::<Expr>::new(),
                vec![
                    count(lit(1)).alias(individuals),
                    count(lit(1)).alias(records),
                ],
            )?,
        };
        let float = |name: &str| cast(col(name), DataType::Float64).alias(name);
        sizes
            .project(vec![float(individuals), float(records)])?
            .build()
    }

    /// How many different values of a published column the original does not have: labels, most likely.
    fn foreign_values(&self, name: &str) -> Result<LogicalPlan> {
        let (_, wanted) = find(self.function, "sensitive", name, self.original.schema())?;
        let values = |side: Side| -> Result<LogicalPlanBuilder> {
            self.table(side)
                .project(vec![self.column(side, name)?.alias("__value")])?
                .filter(col("__value").is_not_null())?
                .distinct()
        };
        let key = |value: Expr, name: &str| {
            Expr::ScalarFunction(ScalarFunction::new_udf(class_tuple(), vec![value])).alias(name)
        };
        let known = values(Side::Original)?
            .project(vec![key(col("__value"), "__known")])?
            .build()?;
        // What cannot be a value of the original's type is none of its values.
        let typed = try_cast(col("__value"), wanted.clone());
        values(Side::Published)?
            .project(vec![key(typed, "__shown")])?
            .join(
                known,
                JoinType::LeftAnti,
                (vec!["__shown"], vec!["__known"]),
                None,
            )?
            .aggregate(Vec::<Expr>::new(), vec![count(lit(1)).alias("__foreign")])?
            .project(vec![
                cast(col("__foreign"), DataType::Float64).alias("foreign_values"),
            ])?
            .build()
    }

    /// How many values of each quasi-identifier are in buckets. Those show nothing, which would count as lost.
    fn inside(&self, buckets: &[Option<Column>]) -> Result<LogicalPlan> {
        let inside = |(at, bid): (usize, &Option<Column>)| {
            let inside = match bid {
                Some(bid) => count(Expr::Column(bid.clone())),
                None => count(lit(ScalarValue::Int64(None))),
            };
            inside.alias(inside_name(at))
        };
        let counts: Vec<Expr> = buckets.iter().enumerate().map(inside).collect();
        let names = (0..buckets.len()).map(inside_name);
        let floats = names.map(|name| cast(col(&name), DataType::Float64).alias(&name));
        self.table(Side::Published)
            .aggregate(Vec::<Expr>::new(), counts)?
            .project(floats.collect::<Vec<_>>())?
            .build()
    }

    /// Records and individuals of the published table; how many classes there are, the least of them, and the sum of their
    /// squared sizes, in individuals.
    fn classes(&self) -> Result<LogicalPlan> {
        let qi = self
            .qi
            .iter()
            .map(|name| self.column(Side::Published, name));
        let mut shown = qi.collect::<Result<Vec<_>>>()?;
        // That a value is in a bucket is visible, too.
        let buckets = self.buckets.iter().flatten().flatten();
        shown.extend(buckets.map(|bid| Expr::Column(bid.clone()).is_not_null()));
        let class = Expr::ScalarFunction(ScalarFunction::new_udf(class_tuple(), shown));
        let size = || count(lit(1)).alias("__size");
        let classes = match self.id(Side::Published) {
            Some(id) => {
                LogicalPlanBuilder::from(self.gathered(Side::Published, id, Some(class))?)
                    .aggregate(
                        vec![col("class")],
                        vec![
                            size(),
                            sum(col("individuals")).alias("__individuals"),
                            sum(self.records()).alias("__records"),
                        ],
                    )?
            }
            None => self
                .table(Side::Published)
                .project(vec![class.alias(CLASS)])?
                .aggregate(vec![col(CLASS)], vec![size()])?
                .project(vec![
                    col("__size"),
                    col("__size").alias("__individuals"),
                    col("__size").alias("__records"),
                ])?,
        };
        let float = |name: &str| cast(col(name), DataType::Float64).alias(name);
        let square =
            cast(col("__size"), DataType::Float64) * cast(col("__size"), DataType::Float64);
        classes
            .aggregate(
                Vec::<Expr>::new(),
                vec![
                    count(lit(1)).alias("classes"),
                    min(col("__size")).alias("smallest_class"),
                    sum(square).alias("squares"),
                    sum(col("__individuals")).alias("published_individuals"),
                    sum(col("__records")).alias("published_records"),
                ],
            )?
            .project(vec![
                float("classes"),
                float("smallest_class"),
                float("squares"),
                float("published_individuals"),
                float("published_records"),
            ])?
            .build()
    }
}

/// A part of a domain.
enum Domain {
    /// An aggregate of a table.
    Learned(Expr),
    /// A constant.
    Stated(Expr),
}

/// The bucket ids of columns, if any column of the table has buckets.
fn bucket_ids(published: &DFSchema, qi: &[String]) -> Option<Vec<Option<Column>>> {
    let column = |name: &str| {
        let found = published.iter().find(|(_, field)| field.name() == name);
        found.map(|(qualifier, _)| Column::new(qualifier.cloned(), name))
    };
    let bid = |name: &str| {
        column(&format!("{name}{BUCKETIZED}"))?;
        column(&format!("{name}{BUCKET}"))
    };
    let names = published.fields().iter().map(|field| field.name());
    let mut names = names.filter_map(|name| name.strip_suffix(BUCKET));
    names.any(|name| bid(name).is_some()).then_some(())?;
    column(PSEUDONYM)?;
    Some(qi.iter().map(|name| bid(name)).collect())
}

/// The sums of all partitions, in one row of floats.
fn sums(spec: LossSpec, inputs: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    let schema = loss_schema(spec.columns.len());
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let add = names.iter().map(|name| sum(col(*name)).alias(*name));
    let float = names
        .iter()
        .map(|name| cast(col(*name), DataType::Float64).alias(*name));
    LogicalPlanBuilder::from(LossNode::plan(spec, inputs)?)
        .aggregate(Vec::<Expr>::new(), add)?
        .project(float)?
        .build()
}

/// Whether the values of a type are points on a line.
fn is_line(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_line(value),
        other => other.is_numeric() || other.is_temporal(),
    }
}

fn is_list(data_type: &DataType) -> bool {
    is_generalized(data_type) && !matches!(data_type, DataType::Struct(_))
}

/// Stated domains: columns with the values as they were written.
fn take_domains(given: &mut Arguments) -> Result<Vec<(String, Vec<String>)>> {
    const SHAPE: &str = "must map columns to [smallest, largest] or to the list of their values";
    let Some(value) = given.take("domain") else {
        return Ok(vec![]);
    };
    let ArgumentValue::Map(entries) = &value else {
        return Err(given.wrong("domain", SHAPE, &value));
    };
    let entry = |(column, value): &(String, ArgumentValue)| {
        let values: Option<Vec<String>> = match value {
            ArgumentValue::List(items) => items.iter().map(ArgumentValue::plain).collect(),
            _ => None,
        };
        let values = values.filter(|v| !v.is_empty());
        let values = values.ok_or_else(|| given.wrong("domain", SHAPE, value))?;
        Ok((column.clone(), values))
    };
    entries.iter().map(entry).collect()
}

fn stated_domain(
    given: &Arguments,
    name: &str,
    values: &[String],
    data_type: &DataType,
    categorical: bool,
) -> Result<Vec<Domain>> {
    let value = |text: &String| cast(lit(text.as_str()), plain_type(data_type));
    if categorical {
        let values = make_array(values.iter().map(value).collect());
        return Ok(vec![Domain::Stated(values)]);
    }
    match values {
        [lo, hi] => Ok(vec![Domain::Stated(value(lo)), Domain::Stated(value(hi))]),
        _ => Err(given.refuse(
            "domain",
            format!(
                "gives a list of values for '{name}', which is numeric; give [smallest, largest]"
            ),
        )),
    }
}
