//! What arguments name and planning needs whole: hierarchies and categories, in a registered table or a file.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::datasource::{TableType, provider_as_source, source_as_provider};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource, lit, scalar_subquery};
use datafusion::physical_plan::ExecutionPlan;

use super::categories::{self, CATEGORIES_FUNCTION};
use super::hierarchy::{self, HIERARCHY_FUNCTION, Made};
use super::release::{self, RELEASE_FUNCTION};
use crate::table::{Categories, Taxonomy};

/// Reads what arguments name.
pub(crate) trait Load {
    /// The hierarchy in the table of that name, or in the file at that path.
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy>;

    /// A hierarchy made, as [`Made`] says, of the values that a plan gives.
    fn made(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy>;

    /// The categories in the table of that name, or in the file at that path.
    fn categories(&mut self, name: &str) -> Result<Categories>;

    /// A table of a release, by default the only one; with its hashes checked if `verify`.
    fn release(
        &mut self,
        target: &str,
        table: Option<&str>,
        verify: bool,
    ) -> Result<Arc<dyn TableSource>>;

    /// A hierarchy made of the values of a column of the input.
    fn made_of_input(&mut self, made: Made, _column: &str) -> Result<Taxonomy> {
        plan_err!(
            "{made} makes a hierarchy from the input of a function that anonymizes; here, name a table or file that holds it"
        )
    }
}

/// Loads, and makes hierarchies from the input of a call.
pub(crate) struct InputLoad<'a> {
    /// What loads all else.
    pub load: &'a mut dyn Load,
    /// The input of the call.
    pub input: &'a LogicalPlan,
    /// Its column that tells individuals apart, if it has one.
    pub id: Option<&'a str>,
}

impl Load for InputLoad<'_> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        self.load.hierarchy(name)
    }

    fn made(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy> {
        self.load.made(made, values)
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        self.load.categories(name)
    }

    fn release(
        &mut self,
        target: &str,
        table: Option<&str>,
        verify: bool,
    ) -> Result<Arc<dyn TableSource>> {
        self.load.release(target, table, verify)
    }

    fn made_of_input(&mut self, made: Made, column: &str) -> Result<Taxonomy> {
        let values = made.values(self.input.clone(), column, self.id)?;
        self.load.made(made, values)
    }
}

/// Loads while SQL is planned: the engine hands its session to table functions only.
pub(crate) struct PlanningLoad<'a>(pub &'a mut dyn RelationPlannerContext);

impl Load for PlanningLoad<'_> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        self.loaded(HIERARCHY_FUNCTION, vec![lit(name)])
    }

    fn made(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy> {
        let values = scalar_subquery(Arc::new(values));
        self.loaded(HIERARCHY_FUNCTION, vec![lit(made.to_string()), values])
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        self.loaded(CATEGORIES_FUNCTION, vec![lit(name)])
    }

    fn release(
        &mut self,
        target: &str,
        table: Option<&str>,
        verify: bool,
    ) -> Result<Arc<dyn TableSource>> {
        let context = self.0.context_provider();
        context
            .get_table_function_source(RELEASE_FUNCTION, release::arguments(target, table, verify))
    }
}

impl PlanningLoad<'_> {
    /// What one of our table functions loads.
    fn loaded<T: Loadable>(&mut self, function: &str, args: Vec<Expr>) -> Result<T> {
        let context = self.0.context_provider();
        let source = context.get_table_function_source(function, args)?;
        let provider = source_as_provider(&source)?;
        match (provider.as_ref() as &dyn Any).downcast_ref::<Loaded<T>>() {
            Some(loaded) => Ok(loaded.value.clone()),
            None => internal_err!("{function} gives another table"),
        }
    }
}

/// Loads where the session is known.
pub(crate) struct SessionLoad<'a>(pub &'a SessionState);

impl Load for SessionLoad<'_> {
    fn hierarchy(&mut self, name: &str) -> Result<Taxonomy> {
        hierarchy::load(self.0, name)
    }

    fn made(&mut self, made: Made, values: LogicalPlan) -> Result<Taxonomy> {
        made.make(self.0, &values)
    }

    fn categories(&mut self, name: &str) -> Result<Categories> {
        categories::load(self.0, name)
    }

    fn release(
        &mut self,
        target: &str,
        table: Option<&str>,
        verify: bool,
    ) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(release::open(
            self.0, target, table, verify,
        )?))
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
