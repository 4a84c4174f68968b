//! What a call of `query_error` says.

use datafusion::arrow::datatypes::DataType;
use std::sync::Arc;

use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::plain_type;
use crate::call::arguments::{Argument, ArgumentKind, Arguments};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::measure::query_error::Draw;
use crate::measure::sql::domain::given_domain;
use crate::measure::sql::estimate::ANATOMIZED;
use crate::system::{BUCKET, BUCKETIZED, COUNT, GROUP, INDIVIDUAL};
use crate::table::coding::Levels;

/// The arguments of both functions.
pub(super) const ARGUMENTS: &[Argument] = &[
    Argument::required(
        "original",
        ArgumentKind::Relation,
        "the table before it was anonymized",
    ),
    Argument::required(
        "published",
        ArgumentKind::Relation,
        "the table as it was published",
    ),
    Argument::optional(
        "id",
        ArgumentKind::Column,
        "for count => 'individuals': the column that tells individuals apart in the original",
    ),
    Argument::required(
        "qi",
        ArgumentKind::Columns,
        "the generalized columns, of the same names in both tables",
    ),
    Argument::optional(
        "sensitive",
        ArgumentKind::Column,
        "has a predicate in every query",
    )
    .or("none"),
    Argument::optional(
        "sum",
        ArgumentKind::Column,
        "for a table with buckets: a column of numbers, all of whose values are in buckets",
    )
    .or("none: records are counted"),
    Argument::optional(
        "categorical",
        ArgumentKind::Columns,
        "numeric columns whose values are names, such as postcodes",
    )
    .or("none"),
    Argument::optional(
        "domain",
        ArgumentKind::Domains,
        "domains stated instead of learned: {age: [0, 120], sex: ['F', 'M']}",
    )
    .or("from the original"),
    Argument::optional(
        "hierarchy",
        ArgumentKind::Hierarchies,
        "columns published as labels: {city: 'city.csv', age: 'bins(5, 20)'}",
    )
    .or("none"),
    Argument::optional(
        "anatomized",
        ArgumentKind::Flag,
        "whether the published table is anatomized, in long form",
    )
    .or("whether it has columns subtable, gid and count"),
    Argument::optional(
        "queries",
        ArgumentKind::Count,
        "how many queries, up to 100000",
    )
    .or("1000"),
    Argument::optional(
        "dimensions",
        ArgumentKind::Count,
        "the number of quasi-identifiers with a predicate",
    )
    .or("2, or 1"),
    Argument::optional(
        "selectivity",
        ArgumentKind::Share,
        "the share of all records that a query is meant to select",
    )
    .or("0.1"),
    Argument::optional("seed", ArgumentKind::Count, "another seed, other queries").or("1"),
    Argument::optional(
        "count",
        ArgumentKind::Choice(COUNTED),
        "what queries count: 'records' or 'individuals'",
    )
    .or("'records'"),
    Argument::optional(
        "floor",
        ArgumentKind::Share,
        "errors are relative to at least this share of all records or individuals",
    )
    .or("0"),
    Argument::optional(
        "show_predicates",
        ArgumentKind::Flag,
        "shows what each query asks",
    )
    .or("false"),
];

const COUNTED: &[&str] = &["records", "individuals"];

const MAX_QUERIES: u32 = 100_000;

/// What is counted.
#[derive(Debug)]
pub(super) enum Counted {
    Records,
    Individuals(Box<Ids>),
}

/// The columns that tell individuals apart.
#[derive(Debug)]
pub(super) struct Ids {
    pub original: Expr,
    pub published: Expr,
}

/// The columns that make a table an anatomized one in long form.
#[derive(Debug)]
pub(super) struct Anatomy {
    pub subtable: Expr,
    pub gid: Expr,
    pub count: Expr,
}

/// The columns that make a table one with local groups and buckets.
#[derive(Debug)]
pub(super) struct Local {
    pub individual: Expr,
    pub gid: Expr,
    /// How many members have a value that stands in a row of its own.
    pub times: Option<Expr>,
    /// What is summed; without it, individuals are counted.
    pub summed: Option<Summed>,
}

/// A column that is summed.
#[derive(Debug)]
pub(super) struct Summed {
    pub name: String,
    pub original: Expr,
    pub bucket: Bucket,
}

/// The columns of an attribute's buckets.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    pub values: Expr,
    pub bid: Expr,
}

/// A column that queries ask for.
#[derive(Debug)]
pub(super) struct QueriedColumn {
    pub name: String,
    pub original: Expr,
    /// The published column; `None` where all its values are in buckets.
    pub shown: Option<Expr>,
    /// Where some or all of its values are in buckets.
    pub bucket: Option<Bucket>,
    /// The type of its original values.
    pub value_type: DataType,
    /// Whether ranges are asked for; else sets of values.
    pub is_range: bool,
    /// Its domain, if it was given.
    pub domain: Option<ScalarValue>,
    /// Its hierarchy, if it is published as labels.
    pub levels: Option<Levels>,
}

/// A call, checked against both tables.
#[derive(Debug)]
pub(super) struct Request {
    pub original: LogicalPlan,
    pub published: LogicalPlan,
    /// The columns of an anatomized table in long form, if the published one is.
    pub anatomy: Option<Anatomy>,
    /// The columns of a table with buckets, if the published one is.
    pub local: Option<Local>,
    pub qi: Vec<QueriedColumn>,
    pub sensitive: Option<QueriedColumn>,
    pub counted: Counted,
    pub draw: Draw,
    pub floor: f64,
    pub show_predicates: bool,
}

impl Request {
    /// The columns that queries ask for: quasi-identifiers, then the sensitive one.
    pub fn columns(&self) -> impl Iterator<Item = &QueriedColumn> {
        self.qi.iter().chain(&self.sensitive)
    }

    /// Takes the arguments of a call.
    pub fn take(given: &mut Arguments) -> Result<Self> {
        let function = given.function();
        let (original, published) = (given.relation("original")?, given.relation("published")?);
        let hierarchies = given.hierarchies()?;
        let tables = Tables {
            function,
            original: Arc::clone(original.schema()),
            published: Arc::clone(published.schema()),
            categorical: given.columns("categorical")?,
            domains: given.domains("domain")?,
            hierarchies: &hierarchies,
        };
        let qi = given.columns("qi")?;
        if qi.is_empty() {
            return Err(error::argument(
                function,
                "qi",
                "is missing: name the generalized columns",
            ));
        }
        let sensitive = given.column("sensitive")?;
        let id = given.column("id")?;
        let asked = |name: &String| qi.contains(name) || sensitive.as_ref() == Some(name);
        if let Some((name, _)) = hierarchies.iter().find(|(name, _)| !asked(name)) {
            return Err(error::argument(
                function,
                "hierarchy",
                format!("names column '{name}', which is neither in qi nor sensitive"),
            ));
        }
        let qi = qi
            .iter()
            .map(|name| tables.asked("qi", name))
            .collect::<Result<Vec<_>>>()?;
        let dimensions = given.count_within("dimensions", 1, qi.len() as u64)?;
        let draw = Draw {
            queries: given
                .count_within("queries", 1, MAX_QUERIES.into())?
                .unwrap_or(1_000) as u32,
            dimensions: dimensions.unwrap_or_else(|| 2.min(qi.len() as u64)) as u32,
            selectivity: share(given, "selectivity", false)?.unwrap_or(0.1),
            seed: given.count_within("seed", 0, u64::MAX)?.unwrap_or(1),
            sensitive: sensitive.is_some(),
        };
        let sensitive = sensitive
            .map(|name| tables.asked("sensitive", &name))
            .transpose()?;
        let counted = tables.counted(given.choice("count", COUNTED)?, id)?;
        if matches!(counted, Counted::Individuals(_))
            && sensitive.as_ref().is_some_and(|s| s.levels.is_some())
        {
            return Err(error::argument(
                function,
                "count",
                "must be 'records' where the sensitive column has a hierarchy: whether any of an individual's records \
                 matches cannot be told from their labels",
            ));
        }
        let anatomy = tables.anatomy(given.optional_flag("anatomized")?)?;
        let local = match anatomy {
            Some(_) => None,
            None => tables.local()?,
        };
        let single = match (&anatomy, &local) {
            (Some(_), _) => Some("an anatomized table"),
            (_, Some(_)) => Some("a table with buckets"),
            _ => None,
        };
        if let (Counted::Individuals(_), Some(table)) = (&counted, single) {
            return Err(error::argument(
                function,
                "count",
                format!("must be 'records' for {table}, which has a record per individual"),
            ));
        }
        let floor = share(given, "floor", true)?;
        let local = match (given.column("sum")?, local) {
            (None, local) => local,
            (Some(_), None) => {
                return Err(error::argument(
                    function,
                    "sum",
                    format!(
                        "needs a published table with buckets, whose columns are called x{BUCKETIZED} and x{BUCKET}"
                    ),
                ));
            }
            (Some(_), Some(_)) if floor.is_some() => {
                return Err(error::argument(
                    function,
                    "floor",
                    "is a share of all records and cannot be used with sum",
                ));
            }
            (Some(name), Some(local)) => Some(Local {
                summed: Some(tables.summed(&name)?),
                ..local
            }),
        };
        Ok(Self {
            anatomy,
            local,
            sensitive,
            counted,
            draw,
            floor: floor.unwrap_or(0.0),
            show_predicates: given.flag("show_predicates")?,
            qi,
            original,
            published,
        })
    }
}

/// A share up to 1 as a number; 0 is one if `zero` says so.
fn share(given: &mut Arguments, name: &str, zero: bool) -> Result<Option<f64>> {
    let allowed = match zero {
        true => "a share between 0 and 1",
        false => "a share above 0 and at most 1",
    };
    given.number(name, allowed, |digits| {
        let share: Option<f64> = digits.parse().ok();
        share.filter(|s| (0.0..=1.0).contains(s) && (zero || *s > 0.0))
    })
}

/// Both tables, and what is said of their columns.
struct Tables<'a> {
    function: &'static str,
    original: DFSchemaRef,
    published: DFSchemaRef,
    categorical: Vec<String>,
    domains: Vec<(String, ArgumentValue)>,
    hierarchies: &'a [(String, Levels)],
}

impl Tables<'_> {
    fn asked(&self, argument: &str, name: &str) -> Result<QueriedColumn> {
        let (original, data_type) = self.find(argument, name, &self.original, "original")?;
        let bucket = self.bucket(name);
        let shown = match (
            &bucket,
            self.find(argument, name, &self.published, "published"),
        ) {
            (_, Ok((shown, _))) => Some(shown),
            (Some(_), Err(_)) => None,
            (None, Err(missing)) => return Err(missing),
        };
        let value_type = plain_type(&data_type);
        let names = value_type == DataType::Utf8
            || value_type == DataType::Boolean
            || argument == "sensitive"
            || self.categorical.iter().any(|c| c == name);
        if value_type.is_nested() || matches!(value_type, DataType::Binary | DataType::BinaryView) {
            return Err(error::argument(
                self.function,
                argument,
                format!(
                    "names column '{name}' of type {data_type}, about which nothing can be asked"
                ),
            ));
        }
        let given = self.domains.iter().find(|(c, _)| c == name);
        let domain = given
            .map(|(_, domain)| given_domain(self.function, name, Some(&value_type), !names, domain))
            .transpose()?;
        Ok(QueriedColumn {
            name: name.to_owned(),
            original,
            shown,
            bucket,
            value_type,
            is_range: !names,
            domain,
            levels: self.levels(name),
        })
    }

    /// The columns of an anatomized table, if the published one has all of them and nobody denies it.
    fn anatomy(&self, told: Option<bool>) -> Result<Option<Anatomy>> {
        let all = || ANATOMIZED.into_iter().all(|name| self.has(name));
        if told == Some(false) || told.is_none() && !all() {
            return Ok(None);
        }
        let column = |name: &str| -> Result<Expr> {
            let (column, _) = self.find("anatomized", name, &self.published, "published")?;
            Ok(column)
        };
        let [subtable, gid, count] = ANATOMIZED;
        Ok(Some(Anatomy {
            subtable: column(subtable)?,
            gid: column(gid)?,
            count: column(count)?,
        }))
    }

    fn has(&self, name: &str) -> bool {
        self.published.fields().iter().any(|f| f.name() == name)
    }

    /// The columns of a table with buckets, if the published one has all of them.
    fn local(&self) -> Result<Option<Local>> {
        let mut fields = self.published.fields().iter();
        let buckets = fields.any(|field| {
            let name = field.name().strip_suffix(BUCKET);
            name.is_some_and(|name| self.bucket(name).is_some())
        });
        if !buckets || !self.has(INDIVIDUAL) || !self.has(GROUP) {
            return Ok(None);
        }
        let column = |name: &str| -> Result<Expr> {
            let (column, _) = self.find("published", name, &self.published, "published")?;
            Ok(column)
        };
        Ok(Some(Local {
            individual: column(INDIVIDUAL)?,
            gid: column(GROUP)?,
            times: self.has(COUNT).then(|| column(COUNT)).transpose()?,
            summed: None,
        }))
    }

    /// The columns of an attribute's buckets, if it has any.
    fn bucket(&self, name: &str) -> Option<Bucket> {
        let column = |suffix: &str| {
            let name = format!("{name}{suffix}");
            let found = self.find("published", &name, &self.published, "published");
            found.ok().map(|(column, _)| column)
        };
        Some(Bucket {
            values: column(BUCKETIZED)?,
            bid: column(BUCKET)?,
        })
    }

    /// A column all of whose values are numbers in buckets.
    fn summed(&self, name: &str) -> Result<Summed> {
        let (original, data_type) = self.find("sum", name, &self.original, "original")?;
        let refuse = |reason: String| {
            let message = format!("names column '{name}', which cannot be summed: {reason}");
            Err(error::argument(self.function, "sum", message))
        };
        let Some(bucket) = self.bucket(name).filter(|_| !self.has(name)) else {
            return refuse("not all its values are in buckets".to_owned());
        };
        if !plain_type(&data_type).is_numeric() {
            return refuse(format!("it is {data_type}"));
        }
        Ok(Summed {
            name: name.to_owned(),
            original,
            bucket,
        })
    }

    fn levels(&self, name: &str) -> Option<Levels> {
        let found = self.hierarchies.iter().find(|(column, _)| column == name);
        found.map(|(_, levels)| levels.clone())
    }

    fn counted(&self, choice: Option<&str>, id: Option<String>) -> Result<Counted> {
        if choice != Some("individuals") {
            return Ok(Counted::Records);
        }
        let Some(id) = id else {
            return Err(error::argument(
                self.function,
                "id",
                "is missing: name the column that tells individuals apart",
            ));
        };
        let (original, _) = self.find("id", &id, &self.original, "original")?;
        let id = if self.has(INDIVIDUAL) {
            INDIVIDUAL
        } else {
            &id
        };
        let (published, _) = self.find("id", id, &self.published, "published")?;
        Ok(Counted::Individuals(Box::new(Ids {
            original,
            published,
        })))
    }

    fn find(
        &self,
        argument: &str,
        name: &str,
        schema: &DFSchema,
        table: &str,
    ) -> Result<(Expr, DataType)> {
        let found = schema.iter().find(|(_, field)| field.name() == name);
        if let Some((qualifier, field)) = found {
            let column = Expr::Column(Column::new(qualifier.cloned(), name));
            return Ok((column, field.data_type().clone()));
        }
        let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let nearest = error::did_you_mean(name, names.iter().copied());
        Err(error::argument(
            self.function,
            argument,
            format!(
                "names column '{name}', which the {table} table does not have{nearest} (columns: {})",
                names.join(", ")
            ),
        ))
    }
}
