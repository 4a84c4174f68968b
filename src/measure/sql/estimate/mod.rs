//! `estimate(published, 'SELECT count(*) FROM published WHERE age > 30 …')`: count queries over generalized tables.
//!
//! The query becomes an ordinary plan: predicates over generalized columns are calls of `match_fraction`, those over
//! other columns stay as they are, and `estimate_count` adds up.
//!
//! ```text
//! Projection      keys, estimate, standard_error, low, high
//!   Aggregate       by keys: estimate_count(p)
//!     Aggregate       by keys and individual
//!       Projection      p of each record
//!         Filter          what is known exactly
//!           the published table
//! ```

mod anatomized;
mod bucket_sum;
mod column_values;
mod condition;
mod estimate_count;
pub(crate) mod estimated;
mod expected_members;
mod formula;
mod known_fraction;
mod match_fraction;
mod plan;
mod query;
mod relative_error;
mod share;
mod sum;

pub(crate) use bucket_sum::{bucket_sum, fixed_sum};
pub(crate) use column_values::column_values;
pub(crate) use estimate_count::estimate_count;
pub(crate) use known_fraction::known_fraction;
pub(crate) use match_fraction::match_fraction;
pub(crate) use relative_error::relative_error;

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::Select;

use crate::call::arguments::{Argument, ArgumentKind, Arguments, Function};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::measure::cells::{is_generalized, value_type};
pub(super) use anatomized::COLUMNS as ANATOMIZED;
pub(crate) use expected_members::expected_members;
pub(super) use plan::{Options, plan as plan_query};
pub(super) use query::Query;
pub(super) use share::{list, scalar};
pub(super) use sum::SUM;

/// The function's name.
const NAME: &str = "estimate";

/// The function.
pub(super) const FUNCTION: Function = Function {
    name: NAME,
    help: "a count over the original, estimated from a published table, with bounds and a standard error",
    positional: 2,
    arguments: Cow::Borrowed(ARGUMENTS),
    refused: &[],
    plan,
};

/// The arguments of all functions that estimate from a published table.
const ARGUMENTS: &[Argument] = &[
    PUBLISHED,
    QUERY,
    plan::ID,
    plan::QI,
    plan::DOMAIN,
    plan::HIERARCHY,
    plan::ANATOMIZED,
];

const PUBLISHED: Argument = Argument::required(
    "published",
    ArgumentKind::Relation,
    "the table as it was published",
);

const QUERY: Argument = Argument::required(
    "query",
    ArgumentKind::Text,
    "a query in quotes, written as if the table were not generalized",
);

fn refuse(message: impl AsRef<str>) -> DataFusionError {
    error::call(NAME, message)
}

/// What a query must be.
const SHAPE: &str = "SELECT count(*) or count(DISTINCT …) FROM published [WHERE …] [GROUP BY …]";

/// Plans a call.
fn plan(given: &mut Arguments) -> Result<LogicalPlan> {
    let asked = QueryCall::take(given, SHAPE)?;
    let schema = original_schema(asked.published.schema())?;
    let query = Query::read(*asked.select, &schema, asked.options.id.as_deref(), given)?;
    plan::plan(asked.published, query, &asked.options)
}

/// A call with a query over a published table.
struct QueryCall {
    select: Box<Select>,
    /// The table under the name that the query gives it.
    published: LogicalPlan,
    options: Options,
}

impl QueryCall {
    /// Takes a query of a shape, and what is said beside it.
    fn take(given: &mut Arguments, shape: &str) -> Result<Self> {
        let sql = match given.take("query") {
            Some(ArgumentValue::Text(sql)) => sql,
            Some(value) => {
                return Err(given.wrong("query", &format!("must be {shape} in quotes"), &value));
            }
            None => {
                let message =
                    format!("is missing: give {shape} in quotes after the published table");
                return Err(given.refuse("query", message));
            }
        };
        let options = Options::take(given)?;
        let published = given.relation("published")?;
        let function = given.function();
        let (select, table) = query::parse(function, shape, &sql)?;
        let published = LogicalPlanBuilder::from(published).alias(table)?.build()?;
        Ok(Self {
            options: options.checked(function, published.schema())?,
            select,
            published,
        })
    }
}

/// The schema as it was before generalization: the query is written as if the table still had it, and the engine checks
/// the types of some expressions while it reads them.
pub(super) fn original_schema(published: &DFSchema) -> Result<DFSchema> {
    let fields = published.iter().map(|(qualifier, field)| {
        let data_type = value_type(field.data_type()).filter(|_| is_generalized(field.data_type()));
        let field = match data_type {
            Some(data_type) => Arc::new(field.as_ref().clone().with_data_type(data_type)),
            None => Arc::clone(field),
        };
        (qualifier.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), published.metadata().clone())
}
