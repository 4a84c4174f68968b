//! Truthfulness: whether a published table can be, or is, the original one generalized.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::{bit_xor, count, first_value, min, sum};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Expr, JoinType, LogicalPlan, LogicalPlanBuilder, cast, col, ident, lit, when,
};

use super::roles::{CLASS, INDIVIDUAL, Roles, SENSITIVE, find, qi_name};
use super::{class_tuple, value_hash};
use crate::call::arguments::Arguments;
use crate::measure::{COUNTS, CompareSpec};
use crate::pipeline::compare;

/// The original table beside the published one.
struct Original<'a> {
    function: &'static str,
    roles: &'a Roles,
    table: LogicalPlan,
    id: Option<Column>,
    sensitive: (Column, DataType),
}

/// The figures of a comparison with the original table, in one row of floats.
///
/// Where both tables have the same ids, every individual is compared with itself, and the published individuals are counted
/// on the way. Otherwise ids are pseudonyms, and what can be compared is who has the same fingerprint and fits.
pub(super) fn figures(
    given: &mut Arguments,
    roles: &Roles,
    table: LogicalPlan,
    same_ids: bool,
) -> Result<LogicalPlan> {
    let function = given.function();
    let original_id = given.column("original_id")?;
    if roles.one_row_per_individual() && (same_ids || original_id.is_some()) {
        return Err(given.refuse(
            "id",
            "is missing: the published table has no ids to compare",
        ));
    }
    let id = match (original_id, roles.id_name()) {
        (Some(name), _) => Some(name),
        (None, Some(name)) => Some(name.to_owned()),
        (None, None) => None,
    };
    let id = id
        .map(|name| find(function, "original_id", &name, table.schema()))
        .transpose()?
        .map(|(column, _)| column);
    let (sensitive, sensitive_type) = find(
        function,
        "sensitive",
        roles.sensitive_name(),
        table.schema(),
    )?;
    let original = Original {
        function,
        roles,
        id,
        sensitive: (sensitive, sensitive_type.clone()),
        table: table.clone(),
    };
    if same_ids {
        return original.comparison();
    }
    LogicalPlanBuilder::from(original.covers()?)
        .cross_join(original.values()?)?
        .cross_join(original.sizes()?)?
        .build()
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Original,
    Published,
}

impl Original<'_> {
    /// Individual, if there are ids, and sensitive value of each record, in the original's types.
    fn records(&self, side: Side) -> Result<LogicalPlanBuilder> {
        match side {
            Side::Original => {
                let id = self.id.clone().map(|id| Expr::Column(id).alias(INDIVIDUAL));
                let sensitive = Expr::Column(self.sensitive.0.clone()).alias(SENSITIVE);
                let columns: Vec<Expr> = id.into_iter().chain([sensitive]).collect();
                self.named(LogicalPlanBuilder::from(self.table.clone()).project(columns)?)
            }
            Side::Published => {
                let records = LogicalPlanBuilder::from(self.roles.records()?);
                let mut columns = vec![];
                if let Some(id) = &self.id {
                    let (_, wanted) = find(self.function, "id", &id.name, self.table.schema())?;
                    columns.push(self.typed(&records, INDIVIDUAL, wanted, false)?);
                }
                columns.push(self.typed(&records, SENSITIVE, &self.sensitive.1, true)?);
                records.project(columns)
            }
        }
    }

    /// Without records that are nobody's.
    fn named(&self, records: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
        match self.id {
            Some(_) => records.filter(col(INDIVIDUAL).is_not_null()),
            None => Ok(records),
        }
    }

    /// A column in a type of the original, so that equal values have equal keys. Ids need not have it: pseudonyms differ.
    fn typed(
        &self,
        plan: &LogicalPlanBuilder,
        name: &str,
        wanted: &DataType,
        always: bool,
    ) -> Result<Expr> {
        let (_, given) = find(self.function, name, name, plan.schema())?;
        let texts =
            |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let castable = always || texts(given) == texts(wanted);
        Ok(if given != wanted && castable {
            cast(col(name), wanted.clone()).alias(name)
        } else {
            col(name)
        })
    }

    /// Every individual compared with itself.
    fn comparison(&self) -> Result<LogicalPlan> {
        let (sensitive, sensitive_type) = self.sensitive.clone();
        let mut columns: Vec<Expr> = self.id.clone().map(Expr::Column).into_iter().collect();
        columns.extend(self.values_of_qi()?);
        columns.push(Expr::Column(sensitive).alias(SENSITIVE));
        let original = LogicalPlanBuilder::from(self.table.clone())
            .project(columns)?
            .build()?;
        let (columns, hierarchies) = self.roles.compared(original.schema())?;
        let spec = CompareSpec {
            function: self.function.to_owned(),
            columns,
            sensitive: 1,
        };
        let published = self.roles.shown(&sensitive_type)?;
        let counts = compare(spec, published, original, hierarchies)?;
        let figures = [
            ("published_individuals", "individuals"),
            ("published_records_without_id", "records_without_id"),
        ];
        let named = COUNTS.map(|count| {
            let figure = figures.iter().find(|(from, _)| *from == count);
            float(count, figure.map_or(count, |(_, to)| to))
        });
        LogicalPlanBuilder::from(counts).project(named)?.build()
    }

    /// The quasi-identifiers of the original.
    fn values_of_qi(&self) -> Result<Vec<Expr>> {
        let column = |name: &String| {
            let (column, _) = find(self.function, "original", name, self.table.schema())?;
            Ok(Expr::Column(column).alias(qi_name(name)))
        };
        self.roles.qi.iter().map(column).collect()
    }

    /// Who is published without anybody in the original to stand for.
    fn covers(&self) -> Result<LogicalPlan> {
        let covers = self
            .roles
            .covers(self.individuals()?, self.classes()?, true)?;
        let missing = col("individuals") - col("covered");
        let missing = when(missing.clone().gt(lit(0i64)), missing).otherwise(lit(0i64))?;
        LogicalPlanBuilder::from(covers)
            .aggregate(
                vec![col("class"), col("key"), col("individuals")],
                vec![sum(col("covered")).alias("covered")],
            )?
            .project(vec![missing.alias("__missing")])?
            .aggregate(
                Vec::<Expr>::new(),
                vec![sum(col("__missing")).alias("__missing")],
            )?
            .project(vec![float("__missing", "untrue_individuals")])?
            .build()
    }

    /// Every original individual: its values, its key, and 1. Where its records disagree, the published value covers all
    /// of theirs, so also the smallest.
    fn individuals(&self) -> Result<LogicalPlan> {
        let mut columns = self.values_of_qi()?;
        columns.push(Expr::Column(self.sensitive.0.clone()).alias(SENSITIVE));
        columns.extend(self.id.clone().map(|id| Expr::Column(id).alias(INDIVIDUAL)));
        let records = self.named(LogicalPlanBuilder::from(self.table.clone()).project(columns)?)?;
        let names = || self.roles.qi.iter().map(|name| qi_name(name));
        let mut kept: Vec<Expr> = names().map(ident).collect();
        if self.id.is_none() {
            kept.push(hash(vec![col(SENSITIVE)]).alias("__key"));
            kept.push(lit(1i64).alias("__weight"));
            return records.project(kept)?.build();
        }
        let schema = records.schema().clone();
        let least = || {
            names().map(|name| {
                let field = schema.field_with_unqualified_name(&name);
                // In groups, the engine's min of infinity alone is the largest finite number.
                let floating = field.is_ok_and(|field| field.data_type().is_floating());
                let column = ident(&name);
                let least = match floating {
                    true => first_value(column.clone(), vec![column.sort(true, false)]),
                    false => min(column),
                };
                least.alias(name)
            })
        };
        kept.push(col("__fingerprint").alias("__key"));
        kept.push(lit(1i64).alias("__weight"));
        let fingerprint = bit_xor(hash(vec![col(SENSITIVE)])).alias("__fingerprint");
        records
            .aggregate(vec![col(INDIVIDUAL), col(SENSITIVE)], least())?
            .aggregate(vec![col(INDIVIDUAL)], least().chain([fingerprint]))?
            .project(kept)?
            .build()
    }

    /// Every class with its values, and how many of its individuals have each key.
    fn classes(&self) -> Result<LogicalPlan> {
        let records = LogicalPlanBuilder::from(self.roles.records()?);
        let mut columns = vec![col(CLASS)];
        let keys = if let Some(id) = &self.id {
            let (_, wanted) = find(self.function, "id", &id.name, self.table.schema())?;
            columns.push(self.typed(&records, INDIVIDUAL, wanted, false)?);
            columns.push(self.typed(&records, SENSITIVE, &self.sensitive.1, true)?);
            let key = bit_xor(hash(vec![col(SENSITIVE)]));
            records
                .project(columns)?
                .distinct()?
                .aggregate(vec![col(CLASS), col(INDIVIDUAL)], vec![key.alias("__key")])?
        } else {
            columns.push(self.typed(&records, SENSITIVE, &self.sensitive.1, true)?);
            let key = hash(vec![col(SENSITIVE)]).alias("__key");
            records.project(columns)?.project(vec![col(CLASS), key])?
        };
        let keys = keys
            .aggregate(
                vec![col(CLASS), col("__key")],
                vec![count(lit(1)).alias("__individuals")],
            )?
            .project(vec![
                col(CLASS).alias("__of"),
                col("__key"),
                col("__individuals"),
            ])?
            .build()?;
        let mut columns = vec![col(CLASS)];
        columns.extend(self.roles.qi.iter().map(|name| ident(qi_name(name))));
        let all = columns
            .clone()
            .into_iter()
            .chain([col("__key"), col("__individuals")]);
        self.roles
            .cells()?
            .project(columns)?
            .distinct()?
            .join(keys, JoinType::Inner, (vec![CLASS], vec!["__of"]), None)?
            .project(all)?
            .build()
    }

    /// Different pairs of individual and value, or all records where there are no ids.
    fn pairs(&self, side: Side) -> Result<LogicalPlanBuilder> {
        let records = self.records(side)?;
        if self.id.is_some() {
            records.distinct()
        } else {
            Ok(records)
        }
    }

    /// Records with a value beyond those that the original has with it.
    fn values(&self) -> Result<LogicalPlan> {
        let by_value = |side: Side, value: &str, records: &str| -> Result<LogicalPlanBuilder> {
            self.pairs(side)?
                .project(vec![tuple(vec![col(SENSITIVE)]).alias(value)])?
                .aggregate(vec![col(value)], vec![count(lit(1)).alias(records)])
        };
        let original = by_value(Side::Original, "__original_value", "__original")?.build()?;
        let keys = (vec!["__value"], vec!["__original_value"]);
        let known = when(col("__original").is_null(), lit(0i64)).otherwise(col("__original"))?;
        let beyond = col("__published") - known;
        let beyond = when(beyond.clone().gt(lit(0i64)), beyond).otherwise(lit(0i64))?;
        by_value(Side::Published, "__value", "__published")?
            .join(original, JoinType::Left, keys, None)?
            .project(vec![beyond.alias("__beyond")])?
            .aggregate(
                Vec::<Expr>::new(),
                vec![sum(col("__beyond")).alias("__beyond")],
            )?
            .project(vec![float("__beyond", "values_beyond")])?
            .build()
    }

    fn sizes(&self) -> Result<LogicalPlan> {
        let records = self.records(Side::Original)?;
        let people = match self.id {
            Some(_) => records.aggregate(vec![col(INDIVIDUAL)], Vec::<Expr>::new())?,
            None => records,
        };
        let people = people
            .aggregate(Vec::<Expr>::new(), vec![count(lit(1)).alias("__people")])?
            .project(vec![float("__people", "original_individuals")])?;
        let Some(id) = &self.id else {
            return people.build();
        };
        let nameless = LogicalPlanBuilder::from(self.table.clone())
            .filter(Expr::Column(id.clone()).is_null())?
            .aggregate(Vec::<Expr>::new(), vec![count(lit(1)).alias("__nameless")])?
            .project(vec![float("__nameless", "original_records_without_id")])?
            .build()?;
        people.cross_join(nameless)?.build()
    }
}

fn float(from: &str, to: &str) -> Expr {
    cast(col(from), DataType::Float64).alias(to)
}

fn hash(values: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(value_hash(), values))
}

fn tuple(values: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(class_tuple(), values))
}
