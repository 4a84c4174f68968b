//! What arguments name and planning needs whole: hierarchies and categories, in a registered table or a file.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::datasource::{TableType, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource, lit};
use datafusion::physical_plan::ExecutionPlan;

use super::categories::{self, CATEGORIES_FUNCTION};
use super::hierarchy::{self, HIERARCHY_FUNCTION, Made};
use crate::table::{Categories, Taxonomy};

/// Reads what arguments name.
pub(crate) trait Load {
    /// The hierarchy in the table of that name, or in the file at that path.
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy>;

    /// The categories in the table of that name, or in the file at that path.
    fn categories(&mut self, name: &str) -> Result<Categories>;

    /// The hierarchy that is made from the values of a column.
    fn made(&mut self, made: Made, _column: &str) -> Result<Taxonomy> {
        plan_err!(
            "{made} makes a hierarchy from the input of a function that anonymizes; here, name a table or file that holds it"
        )
    }
}

/// Makes hierarchies from values.
pub(crate) trait Make: Load {
    /// The hierarchy of the values that a plan gives.
    fn make(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy>;
}

/// Loads, and makes hierarchies from the input of a call.
pub(crate) struct InputLoad<'a, L> {
    /// What loads all else.
    pub load: L,
    /// The input of the call.
    pub input: &'a LogicalPlan,
    /// Its column that tells individuals apart, if it has one.
    pub id: Option<&'a str>,
}

impl<L: Make> Load for InputLoad<'_, L> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        self.load.hierarchy(name)
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        self.load.categories(name)
    }

    fn made(&mut self, made: Made, column: &str) -> Result<Taxonomy> {
        let values = made.values(self.input.clone(), column, self.id)?;
        self.load.make(made, values)
    }
}

/// Loads while SQL is planned: the engine hands its session to table functions only.
pub(crate) struct PlanningLoad<'a>(pub &'a mut dyn RelationPlannerContext);

impl Load for PlanningLoad<'_> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        self.loaded(HIERARCHY_FUNCTION, name)
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        self.loaded(CATEGORIES_FUNCTION, name)
    }
}

impl Make for PlanningLoad<'_> {
    fn make(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy> {
        let arguments = made.arguments(values);
        let context = self.0.context_provider();
        let source = context.get_table_function_source(HIERARCHY_FUNCTION, arguments)?;
        of_source(HIERARCHY_FUNCTION, &source)
    }
}

impl PlanningLoad<'_> {
    /// A table of what one of our table functions loads.
    pub fn source(&mut self, function: &str, name: &str) -> Result<Arc<dyn TableSource>> {
        self.0
            .context_provider()
            .get_table_function_source(function, vec![lit(name)])
    }

    fn loaded<T: Loadable>(&mut self, function: &str, name: &str) -> Result<T> {
        of_source(function, &self.source(function, name)?)
    }
}

/// What a table of one of our table functions was loaded from.
fn of_source<T: Loadable>(function: &str, source: &Arc<dyn TableSource>) -> Result<T> {
    let provider = source_as_provider(source)?;
    match (provider.as_ref() as &dyn Any).downcast_ref::<Loaded<T>>() {
        Some(loaded) => Ok(loaded.value.clone()),
        None => internal_err!("{function} gives another table"),
    }
}

/// Loads where the session is known.
pub(crate) struct SessionLoad<'a>(pub &'a SessionState);

impl Load for SessionLoad<'_> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        hierarchy::load(self.0, name)
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        categories::load(self.0, name)
    }
}

impl Make for SessionLoad<'_> {
    fn make(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy> {
        made.make(self.0, &values)
    }
}

/// What can be loaded.
pub(super) trait Loadable: Clone + std::fmt::Debug + Send + Sync + 'static {}

impl<T: Clone + std::fmt::Debug + Send + Sync + 'static> Loadable for T {}

/// Something loaded, as a table of its rows.
#[derive(Debug)]
pub(super) struct Loaded<T> {
    value: T,
    rows: MemTable,
}

impl<T> Loaded<T> {
    pub(super) fn try_new(value: T, rows: RecordBatch) -> Result<Self> {
        let rows = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        Ok(Self { value, rows })
    }
}

#[async_trait]
impl<T: Loadable> TableProvider for Loaded<T> {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.scan(state, projection, filters, limit).await
    }
}
