//! From a count query to a plan.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::functions_aggregate::expr_fn::{bool_or, max, min, sum};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, col, lit, scalar_subquery, when,
};

use super::column_values::column_values;
use super::condition::Generalized;
use super::estimate_count::estimate_count;
use super::formula::Formula;
use super::known_fraction::known_fraction;
use super::query::{Counted, Query};
use super::share::share;
use super::{NAME, anatomized, refuse};
use crate::call::arguments::{Argument, ArgumentKind, Arguments};
use crate::call::source::hierarchy::rows_value;
use crate::call::value::ArgumentValue;
use crate::error;
use crate::measure::cells::{CellForm, Selection, is_generalized, value_type};
use crate::measure::sql::domain::given_domain;
use crate::system::INDIVIDUAL;
use crate::table::Taxonomy;
use crate::table::coding::Levels;

/// What a call says besides the query.
#[derive(Debug)]
pub(crate) struct Options {
    /// The column that tells individuals apart.
    pub id: Option<String>,
    /// Columns in the text notation; those of typed intervals and sets are known by their types.
    pub qi: Vec<String>,
    /// Domains of generalized columns.
    pub domains: Vec<(String, ArgumentValue)>,
    /// Hierarchies of columns that are published as labels.
    pub hierarchies: Vec<(String, Levels)>,
    /// Whether the table is anatomized, in long form.
    pub anatomized: Option<bool>,
}

pub(super) const ID: Argument = Argument::optional(
    "id",
    ArgumentKind::Column,
    "the column that tells individuals apart",
)
.or("individual, if there is one");

pub(super) const QI: Argument = Argument::optional(
    "qi",
    ArgumentKind::Columns,
    "columns in the text notation, which their type does not tell",
)
.or("those of typed intervals and sets");

pub(super) const DOMAIN: Argument = Argument::optional(
    "domain",
    ArgumentKind::Domains,
    "what suppressed cells and masks may stand for: {age: [0, 120], sex: ['F', 'M']}",
)
.or("what the other cells of the column span");

pub(super) const HIERARCHY: Argument = Argument::optional(
    "hierarchy",
    ArgumentKind::Hierarchies,
    "columns published as labels: {city: 'city.csv', age: 'bins(5, 20)', birth: 'dates'}",
)
.or("none");

pub(super) const ANATOMIZED: Argument = Argument::optional(
    "anatomized",
    ArgumentKind::Flag,
    "whether the table is anatomized, in long form",
)
.or("whether there are columns subtable, gid and count");

impl Options {
    /// Takes them from a call.
    pub fn take(given: &mut Arguments) -> Result<Self> {
        Ok(Self {
            id: given.column("id")?,
            qi: given.columns("qi")?,
            domains: given.domains("domain")?,
            hierarchies: given.hierarchies()?,
            anatomized: given.optional_flag("anatomized")?,
        })
    }

    /// Checks names against the published table; `individual` is the id unless another is named.
    pub fn checked(mut self, function: &str, schema: &DFSchema) -> Result<Self> {
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let missing = anatomized::COLUMNS.iter().find(|c| !names.contains(c));
        if let (Some(column), Some(true)) = (missing, self.anatomized) {
            return Err(error::argument(
                function,
                "anatomized",
                format!("is true, but the table has no column '{column}'"),
            ));
        }
        self.anatomized = Some(self.anatomized.unwrap_or(missing.is_none()));
        if self.id.is_none() && names.contains(&INDIVIDUAL) {
            self.id = Some(INDIVIDUAL.to_owned());
        }
        let id = self.id.iter().map(|c| ("id", c));
        let qi = self.qi.iter().map(|c| ("qi", c));
        let domains = self.domains.iter().map(|(c, _)| ("domain", c));
        let hierarchies = self.hierarchies.iter().map(|(c, _)| ("hierarchy", c));
        for (argument, column) in id.chain(qi).chain(domains).chain(hierarchies) {
            if !names.contains(&column.as_str()) {
                let nearest = error::did_you_mean(column, names.iter().copied());
                return Err(error::argument(
                    function,
                    argument,
                    format!(
                        "names column '{column}', which the published table does not have{nearest} (columns: {})",
                        names.join(", ")
                    ),
                ));
            }
        }
        Ok(self)
    }

    fn generalized<'a>(&self, schema: &'a DFSchema) -> Generalized<'a> {
        let columns = schema
            .iter()
            .filter(|(_, field)| {
                is_generalized(field.data_type())
                    || self.qi.contains(field.name())
                    || self.hierarchies.iter().any(|(c, _)| c == field.name())
            })
            .map(|(qualifier, field)| {
                let column = Column::new(qualifier.cloned(), field.name());
                (column, field.data_type().clone())
            });
        Generalized::new(schema, columns.collect())
    }

    /// The given hierarchy of a column.
    fn taxonomy(&self, column: &str) -> Option<&Taxonomy> {
        let (_, levels) = self.hierarchies.iter().find(|(c, _)| c == column)?;
        levels.tree().map(Arc::as_ref)
    }
}

/// Names of columns on the way, which no published table has.
const EXPECTED: &str = "__expected";
const LEAST: &str = "__least";
const MOST: &str = "__most";
const ESTIMATE: &str = "__estimate";
const WHO: &str = "__individual";

/// Plans a query over a published table.
pub(crate) fn plan(published: LogicalPlan, query: Query, options: &Options) -> Result<LogicalPlan> {
    if options.anatomized == Some(true) {
        return anatomized::plan(published, &query);
    }
    let schema = Arc::clone(published.schema());
    let generalized = options.generalized(&schema);
    let mut formula = Formula::Constant(true);
    for condition in &query.conditions {
        formula = formula.and(generalized.formula(condition)?);
    }
    if let Some((_, name)) = query.keys.iter().find(|(key, _)| generalized.used_by(key)) {
        return Err(refuse(format!(
            "GROUP BY {name}: groups are those of sensitive or kept columns, because a generalized value may belong to several"
        )));
    }
    let mut shares = Shares::new(&published, &generalized, options)?;
    let id = options.id.as_ref().map(|id| column_of(&schema, id));

    let mut builder = LogicalPlanBuilder::from(published.clone());
    if let Some(certain) = formula.certain() {
        builder = builder.filter(certain.clone())?;
    }
    let keys: Vec<Expr> = query
        .keys
        .iter()
        .enumerate()
        .map(|(i, (key, _))| key.clone().alias(format!("__key_{i}")))
        .collect();
    let key_columns: Vec<Expr> = (0..keys.len()).map(|i| col(format!("__key_{i}"))).collect();

    let builder = match (query.counted, id) {
        (Counted::Records, None) => {
            let p = formula.probability(&mut |c, s| shares.of(c, s))?;
            builder
                .project(keys.into_iter().chain([p.alias(EXPECTED)]))?
                .filter(col(EXPECTED).gt(lit(0.0)))?
                .aggregate(key_columns.clone(), [estimated(vec![col(EXPECTED)])])?
        }
        (Counted::Records, Some(id)) => {
            let p = formula.probability(&mut |c, s| shares.of(c, s))?;
            let by_individual = key_columns.iter().cloned().chain([col(WHO)]);
            let certain = when(col(EXPECTED).gt_eq(lit(1.0)), lit(1.0)).otherwise(lit(0.0))?;
            builder
                .project(keys.into_iter().chain([id.alias(WHO), p.alias(EXPECTED)]))?
                .filter(col(EXPECTED).gt(lit(0.0)))?
                .aggregate(
                    by_individual,
                    [
                        sum(col(EXPECTED)).alias("__sum"),
                        sum(certain).alias(LEAST),
                        sum(lit(1.0)).alias(MOST),
                    ],
                )?
                .aggregate(
                    key_columns.clone(),
                    [estimated(vec![col("__sum"), col(LEAST), col(MOST)])],
                )?
        }
        (Counted::Individuals, Some(id)) => {
            individuals(builder, &formula, &mut shares, keys, &key_columns, id)?
        }
        (Counted::Individuals, None) => {
            return Err(error::argument(
                NAME,
                "id",
                "is missing: name the column that tells individuals apart",
            ));
        }
    };
    shown(builder, &query, &key_columns)
}

/// Keys under the names that the query gives them, and the fields of the estimate.
pub(super) fn shown(
    builder: LogicalPlanBuilder,
    query: &Query,
    key_columns: &[Expr],
) -> Result<LogicalPlan> {
    let keys = query
        .keys
        .iter()
        .zip(key_columns)
        .map(|((_, name), key)| key.clone().alias(name));
    let results = ["estimate", "standard_error", "low", "high"]
        .map(|name| get_field(col(ESTIMATE), name).alias(name));
    builder
        .project(keys.chain(results).collect::<Vec<_>>())?
        .build()
}

/// An individual counts with the probability that at least one of its records matches: its quasi-identifiers once, and
/// all its records for what is known exactly.
fn individuals(
    builder: LogicalPlanBuilder,
    formula: &Formula,
    shares: &mut Shares,
    keys: Vec<Expr>,
    key_columns: &[Expr],
    id: Expr,
) -> Result<LogicalPlanBuilder> {
    let cases = formula.cases()?;
    let case = |i: usize| format!("__case_{i}");
    let any = cases
        .iter()
        .enumerate()
        .map(|(i, (_, rest))| Formula::Exact(col(case(i))).and(rest.clone()));
    let any = Formula::any(any.collect());

    // The shares of a record are those of its individual, which has one tuple of quasi-identifiers.
    let mut used: Vec<(usize, Selection)> = vec![];
    let fraction = |i: usize| format!("__share_{i}");
    let p = any.probability(&mut |column, selection| {
        let wanted = (column, selection.clone());
        let at = used.iter().position(|known| *known == wanted);
        let at = at.unwrap_or_else(|| {
            used.push(wanted);
            used.len() - 1
        });
        Ok(col(fraction(at)))
    })?;

    let mut columns = keys;
    columns.push(id.alias(WHO));
    let mut per_individual = vec![];
    for (i, (condition, _)) in cases.iter().enumerate() {
        columns.push(condition.clone().alias(format!("__record_{}", case(i))));
        per_individual.push(bool_or(col(format!("__record_{}", case(i)))).alias(case(i)));
    }
    for (i, (column, selection)) in used.iter().enumerate() {
        let share = shares.of(*column, selection)?;
        columns.push(share.alias(format!("__record_{}", fraction(i))));
        per_individual.push(max(col(format!("__record_{}", fraction(i)))).alias(fraction(i)));
    }
    let by_individual = key_columns.iter().cloned().chain([col(WHO)]);
    builder
        .project(columns)?
        .aggregate(by_individual, per_individual)?
        .project(key_columns.iter().cloned().chain([p.alias(EXPECTED)]))?
        .filter(col(EXPECTED).gt(lit(0.0)))?
        .aggregate(key_columns.to_vec(), [estimated(vec![col(EXPECTED)])])
}

pub(super) fn estimated(args: Vec<Expr>) -> Expr {
    estimate_count().call(args).alias(ESTIMATE)
}

pub(super) fn column_of(schema: &DFSchema, name: &str) -> Expr {
    let found = schema.iter().find(|(_, field)| field.name() == name);
    let qualifier = found.and_then(|(qualifier, _)| qualifier.cloned());
    Expr::Column(Column::new(qualifier, name))
}

/// Shares of generalized columns, each with its domain.
struct Shares {
    columns: Vec<(Expr, Option<DataType>, Expr)>,
    names: Vec<String>,
}

impl Shares {
    fn new(published: &LogicalPlan, generalized: &Generalized, options: &Options) -> Result<Self> {
        let mut columns = vec![];
        let mut names = vec![];
        for (column, data_type) in &generalized.columns {
            let domain = domain_of(published, column, data_type, options)?;
            let told = generalized.value_type(column, data_type);
            columns.push((Expr::Column(column.clone()), told, domain));
            names.push(column.name.clone());
        }
        Ok(Self { columns, names })
    }

    fn of(&mut self, column: usize, selection: &Selection) -> Result<Expr> {
        let (expr, value_type, domain) = &self.columns[column];
        let share = share(expr, value_type.as_ref(), selection, Some(domain))?;
        Ok(known_fraction().call(vec![share, lit(self.names[column].as_str())]))
    }
}

/// The domain of a generalized column, as given or learned, or its hierarchy.
pub(super) fn domain_of(
    published: &LogicalPlan,
    column: &Column,
    data_type: &DataType,
    options: &Options,
) -> Result<Expr> {
    if let Some(taxonomy) = options.taxonomy(&column.name) {
        return rows_value(taxonomy);
    }
    let mut given = options.domains.iter();
    let Some((name, domain)) = given.find(|(c, _)| *c == column.name) else {
        return learned_domain(published, column, data_type);
    };
    let range = CellForm::of(data_type) == CellForm::Intervals;
    let value_type = value_type(data_type);
    let domain = given_domain(NAME, name, value_type.as_ref(), range, domain)?;
    Ok(lit(domain))
}

/// What the published table itself says a column may hold: a suppressed cell may be any of that.
fn learned_domain(published: &LogicalPlan, column: &Column, data_type: &DataType) -> Result<Expr> {
    let values = Expr::Column(column.clone());
    let builder = LogicalPlanBuilder::from(published.clone());
    let builder = if CellForm::of(data_type) == CellForm::Intervals {
        let end = |name: &str| get_field(values.clone(), name);
        builder
            .aggregate(
                Vec::<Expr>::new(),
                [min(end("lo")).alias("__lo"), max(end("hi")).alias("__hi")],
            )?
            .project([named_struct(vec![
                lit("lo"),
                col("__lo"),
                lit("hi"),
                col("__hi"),
            ])])?
    } else {
        builder.aggregate(Vec::<Expr>::new(), [column_values().call(vec![values])])?
    };
    Ok(scalar_subquery(Arc::new(builder.build()?)))
}
