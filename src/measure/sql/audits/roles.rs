//! Columns with a role, and the plan over them that all audits start from.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, internal_err};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Case, ScalarFunction};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, col, lit};

use super::class_tuple;
use crate::call::arguments::Arguments;
use crate::call::source::hierarchy::plan_rows;
use crate::error;
use crate::measure::{CoverColumn, CoverSpec, GatherSpec, plain_type};
use crate::pipeline::{CoverNode, gather};
use crate::system::{BUCKETIZED, check_levels};
use crate::table::coding::Levels;
use crate::table::{Categories, Taxonomy};

pub(super) const CLASS: &str = "__class";
pub(super) const INDIVIDUAL: &str = "__individual";
pub(super) const SENSITIVE: &str = "__sensitive";

/// The name of a quasi-identifier inside plans, whatever the column's own name is.
pub(super) fn qi_name(column: &str) -> String {
    format!("__qi_{column}")
}

/// The published table with its roles.
pub(super) struct Roles {
    function: &'static str,
    table: LogicalPlan,
    /// `None` if every record is an individual.
    id: Option<(Column, DataType)>,
    pub qi: Vec<String>,
    sensitive: Column,
    /// Type of the sensitive column.
    sensitive_type: DataType,
    /// Columns without a role.
    pub others: Vec<String>,
    /// The hierarchies of quasi-identifiers that are published as labels.
    pub hierarchies: Vec<(String, Levels)>,
    /// The hierarchy of the sensitive column, if it is published as labels.
    labels: Option<Arc<Taxonomy>>,
}

impl Roles {
    /// Takes the table and its roles from a call.
    pub fn take(given: &mut Arguments) -> Result<Self> {
        let sensitive = given.column("sensitive")?;
        let mut each = Self::take_with(given, &Vec::from_iter(sensitive))?;
        Ok(each.remove(0))
    }

    /// Takes the table and its roles from a call, once for each of its sensitive columns, of which there is one at least.
    pub fn take_each(given: &mut Arguments) -> Result<Vec<Self>> {
        let sensitive = given.columns("sensitive")?;
        Self::take_with(given, &sensitive)
    }

    fn take_with(given: &mut Arguments, sensitive: &[String]) -> Result<Vec<Self>> {
        let table = given.relation("published")?;
        let (id, alone) = (given.column("id")?, given.flag("one_row_per_individual")?);
        let qi = given.columns("qi")?;
        match (&id, alone) {
            (None, false) => {
                return Err(given.refuse(
                    "id",
                    "is missing: name the column that tells individuals apart, or say \
                     one_row_per_individual => true if no individual has two records",
                ));
            }
            (Some(_), true) => {
                return Err(
                    given.refuse("one_row_per_individual", "contradicts id: give one of them")
                );
            }
            _ => {}
        }
        if qi.is_empty() {
            return Err(given.refuse("qi", "is missing: name the columns an attacker may know"));
        }
        if sensitive.is_empty() {
            return Err(given.refuse("sensitive", "is missing: name the column to protect"));
        }
        let function = given.function();
        let schema = table.schema();
        let mut roles: Vec<(&str, &String)> = vec![];
        roles.extend(id.iter().map(|name| ("id", name)));
        roles.extend(qi.iter().map(|name| ("qi", name)));
        roles.extend(sensitive.iter().map(|name| ("sensitive", name)));
        for (i, (role, name)) in roles.iter().enumerate() {
            let bucketized = format!("{name}{BUCKETIZED}");
            if find(function, role, name, schema).is_err()
                && find(function, role, &bucketized, schema).is_ok()
            {
                return Err(given.refuse(
                    role,
                    format!(
                        "names column '{name}', whose values are in buckets; audit_buckets(published) says what they \
                         attain, and what an insider learns"
                    ),
                ));
            }
            find(function, role, name, schema)?;
            if let Some((other, _)) = roles[..i].iter().find(|(_, n)| n == name) {
                return Err(given.refuse(
                    role,
                    format!("names column '{name}', which already has the role {other}"),
                ));
            }
        }
        let others = schema.fields().iter().map(|f| f.name());
        let others = others.filter(|name| !roles.iter().any(|(_, n)| n == name));
        let others: Vec<String> = others.cloned().collect();
        let id = id.map(|id| find(function, "id", &id, schema)).transpose()?;
        let id = id.map(|(column, data_type)| (column, data_type.clone()));
        let hierarchies = given.hierarchies()?;
        let (hierarchies, others_with): (Vec<_>, Vec<_>) = hierarchies
            .into_iter()
            .partition(|(name, _)| qi.contains(name));
        let foreign = others_with
            .iter()
            .find(|(name, _)| !sensitive.contains(name));
        if let Some((name, _)) = foreign {
            let reason = "it is neither the sensitive column nor one of those in qi";
            return Err(given.refuse("hierarchy", format!("cannot be of '{name}': {reason}")));
        }
        let with = |sensitive: &String| {
            let (column, data_type) = find(function, "sensitive", sensitive, schema)?;
            let labels = others_with.iter().find(|(name, _)| name == sensitive);
            let labels = labels
                .map(|(name, levels)| labels_of(given, name, levels, data_type))
                .transpose()?;
            Ok(Self {
                function,
                table: table.clone(),
                id: id.clone(),
                qi: qi.clone(),
                sensitive: column,
                sensitive_type: data_type.clone(),
                others: others.clone(),
                hierarchies: hierarchies.clone(),
                labels,
            })
        };
        sensitive.iter().map(with).collect()
    }

    /// The hierarchy of the sensitive column, if there is one.
    pub fn labels(&self) -> Option<&Taxonomy> {
        self.labels.as_deref()
    }

    /// Whether every record is an individual of its own.
    pub fn one_row_per_individual(&self) -> bool {
        self.id.is_none()
    }

    /// Whether the sensitive values have an order.
    pub fn ordered(&self) -> bool {
        self.sensitive_type.is_numeric() || self.sensitive_type.is_temporal()
    }

    /// The class of a record.
    fn class(&self) -> Result<Expr> {
        let schema = self.table.schema();
        let columns = self.qi.iter().map(|name| {
            let (column, _) = find(self.function, "qi", name, schema)?;
            Ok(Expr::Column(column))
        });
        let call = ScalarFunction::new_udf(class_tuple(), columns.collect::<Result<_>>()?);
        Ok(Expr::ScalarFunction(call).alias(CLASS))
    }

    fn individual(&self) -> Option<Expr> {
        let (id, data_type) = self.id.clone()?;
        Some(plain(id, &data_type).alias(INDIVIDUAL))
    }

    fn sensitive_value(&self) -> Expr {
        plain(self.sensitive.clone(), &self.sensitive_type).alias(SENSITIVE)
    }

    /// The name of the column of individuals.
    pub fn id_name(&self) -> Option<&str> {
        self.id.as_ref().map(|(id, _)| id.name.as_str())
    }

    /// The name of the sensitive column.
    pub fn sensitive_name(&self) -> &str {
        &self.sensitive.name
    }

    /// Class, quasi-identifiers and, where there is one, individual of each record.
    pub fn cells(&self) -> Result<LogicalPlanBuilder> {
        let schema = self.table.schema();
        let mut columns = vec![self.class()?];
        for name in &self.qi {
            let (column, _) = find(self.function, "qi", name, schema)?;
            columns.push(Expr::Column(column).alias(qi_name(name)));
        }
        columns.extend(self.individual());
        LogicalPlanBuilder::from(self.table.clone()).project(columns)
    }

    /// Class, individual and sensitive value of each record.
    pub fn records(&self) -> Result<LogicalPlan> {
        let sensitive = self.sensitive_value();
        let columns = [self.class()?]
            .into_iter()
            .chain(self.individual())
            .chain([sensitive]);
        self.project(columns.collect())
    }

    /// Class and, where there is one, individual of each record.
    pub fn members(&self) -> Result<LogicalPlan> {
        let columns = [self.class()?].into_iter().chain(self.individual());
        self.project(columns.collect())
    }

    /// The individuals, one by one, with their classes.
    pub fn gathered(&self) -> Result<LogicalPlan> {
        let spec = GatherSpec {
            function: self.function.to_owned(),
            classes: true,
            sensitive: 0,
        };
        let columns = self.individual().into_iter().chain([self.class()?]);
        gather(spec, self.project(columns.collect())?)
    }

    /// Who of another table fits into which class. With a key beside the values of both, only where keys are equal.
    pub fn covers(
        &self,
        people: LogicalPlan,
        classes: LogicalPlan,
        keyed: bool,
    ) -> Result<LogicalPlan> {
        let (columns, hierarchies) = self.compared(people.schema())?;
        let spec = CoverSpec {
            function: self.function.to_owned(),
            columns,
            keyed,
        };
        let inputs = [people, classes].into_iter().chain(hierarchies);
        CoverNode::plan(spec, inputs.collect())
    }

    /// The quasi-identifiers as columns that are compared with those of another table, and the hierarchies of those that are
    /// labels.
    pub fn compared(&self, people: &DFSchema) -> Result<(Vec<CoverColumn>, Vec<LogicalPlan>)> {
        let (mut columns, mut hierarchies) = (vec![], vec![]);
        for name in &self.qi {
            let mut labels = false;
            if let Some((_, levels)) = self.hierarchies.iter().find(|(column, _)| column == name) {
                // Labels of built-in hierarchies say themselves what they stand for.
                let column = qi_name(name);
                check_levels(self.function, "hierarchy", &column, people, levels)?;
                hierarchies.extend(levels.tree().map(|tree| plan_rows(tree)).transpose()?);
                labels = levels.tree().is_some();
            }
            columns.push(CoverColumn {
                name: name.clone(),
                labels,
            });
        }
        Ok((columns, hierarchies))
    }

    /// Individual, quasi-identifiers and sensitive value of each record, the last as a value of the given type.
    pub fn shown(&self, sensitive: &DataType) -> Result<LogicalPlan> {
        let schema = self.table.schema();
        let Some((id, _)) = self.id.clone() else {
            return internal_err!("{} compares individuals by their ids", self.function);
        };
        let mut columns = vec![Expr::Column(id).alias(INDIVIDUAL)];
        for name in &self.qi {
            let (column, _) = find(self.function, "qi", name, schema)?;
            columns.push(Expr::Column(column).alias(qi_name(name)));
        }
        let value = Expr::Column(self.sensitive.clone());
        let wanted = plain_type(sensitive);
        let value = match plain_type(&self.sensitive_type) == wanted {
            true => value,
            false => cast(value, wanted),
        };
        columns.push(value.alias(SENSITIVE));
        self.project(columns)
    }

    /// Every sensitive value with its number of records and, where there are some, its category.
    pub fn values(&self, categories: Option<&Categories>) -> Result<LogicalPlan> {
        let value = self.sensitive_value();
        let values = LogicalPlanBuilder::from(self.project(vec![value])?)
            .filter(col(SENSITIVE).is_not_null())?
            .aggregate(vec![col(SENSITIVE)], vec![count(lit(1)).alias("__records")])?;
        match categories {
            None => values.build(),
            Some(categories) => {
                let category = category(categories, &col(SENSITIVE)).alias("__category");
                let columns = vec![col(SENSITIVE), col("__records"), category];
                values.project(columns)?.build()
            }
        }
    }

    fn project(&self, columns: Vec<Expr>) -> Result<LogicalPlan> {
        LogicalPlanBuilder::from(self.table.clone())
            .project(columns)?
            .build()
    }
}

/// The hierarchy of a sensitive column, which must say the labels of every value.
fn labels_of(
    given: &Arguments,
    name: &str,
    levels: &Levels,
    data_type: &DataType,
) -> Result<Arc<Taxonomy>> {
    if data_type.is_nested() {
        return Err(given.refuse(
            "sensitive",
            format!(
                "names column '{name}', which has lists; give a row per value: \
                 (SELECT …, unnest({name}) AS {name} FROM published)"
            ),
        ));
    }
    levels.tree().map(Arc::clone).ok_or_else(|| {
        given.refuse(
            "hierarchy",
            format!("of the sensitive column '{name}' must be a file or table with its labels"),
        )
    })
}

/// The category of a value, NULL if it has none.
fn category(categories: &Categories, value: &Expr) -> Expr {
    let mut members = vec![vec![]; categories.len() as usize];
    for (member, category) in categories.iter() {
        members[category as usize].push(member);
    }
    let branches = (0i32..).zip(members).map(|(category, mut members)| {
        members.sort_unstable();
        let members = members.into_iter().map(lit).collect();
        (value.clone().in_list(members, false), lit(category))
    });
    let branches = branches.map(|(holds, category)| (Box::new(holds), Box::new(category)));
    Expr::Case(Case::new(None, branches.collect(), None))
}

/// A column without dictionaries and views: shuffles and sorts would carry, and count, all their buffers with every row.
fn plain(column: Column, data_type: &DataType) -> Expr {
    let wanted = plain_type(data_type);
    match wanted == *data_type {
        true => Expr::Column(column),
        false => cast(Expr::Column(column), wanted),
    }
}

/// The column of that name.
pub(super) fn find<'a>(
    function: &str,
    role: &str,
    name: &str,
    schema: &'a DFSchema,
) -> Result<(Column, &'a DataType)> {
    let mut hits = schema.iter().filter(|(_, field)| field.name() == name);
    match (hits.next(), hits.next()) {
        (Some((qualifier, field)), None) => {
            Ok((Column::new(qualifier.cloned(), name), field.data_type()))
        }
        (Some(_), Some(_)) => Err(error::argument(
            function,
            role,
            format!(
                "names column '{name}', which the table has more than once; rename one in a subquery"
            ),
        )),
        (None, _) => {
            let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let nearest = error::did_you_mean(name, names.iter().copied());
            Err(error::argument(
                function,
                role,
                format!(
                    "names column '{name}', which the table does not have{nearest} (columns: {})",
                    names.join(", ")
                ),
            ))
        }
    }
}
