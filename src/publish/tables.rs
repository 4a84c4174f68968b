//! Which tables a release has, how they are cut out of what a function gives, and in which order their rows stand.
//!
//! ```text
//! one relation, in long form ──► sorted by table, class and values ──► files of each table
//!                                                                            │
//! the same relation          ◄── rows of all tables, NULL elsewhere      ◄───┘  as audits read it
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, ident, lit, when,
};

use super::verification::FileVerifier;
use super::writer::fresh;
use crate::spec::Spec;
use crate::system::{Layout, TableLayout};

/// The column that says to which table a row belongs; not published.
const TABLE: &str = "__table";

/// The column that says where row groups may end; not published.
const CLASS: &str = "__class";

/// A table of a release.
#[derive(Debug)]
pub(super) struct ReleaseTable {
    /// Its name in the manifest.
    pub name: String,
    pub schema: SchemaRef,
    /// Where its columns stand in the relation.
    pub columns: Vec<usize>,
    /// The columns whose values make a class; its rows stand together.
    pub class: Vec<String>,
    /// What must hold of every class; none where only several tables together can show it.
    pub verifier: Option<Arc<FileVerifier>>,
}

/// The tables of a release, and the relation that they are cut out of.
#[derive(Debug)]
pub(super) struct ReleaseTables {
    pub all: Vec<Arc<ReleaseTable>>,
    /// What must hold of them.
    pub verifier: Arc<FileVerifier>,
    relation: SchemaRef,
    /// The number of the table that a row of the relation belongs to.
    number: Expr,
    /// What makes the class of a row.
    class: Vec<Expr>,
    /// The column of the relation that names the table of a row, if there is one.
    table_name: Option<&'static str>,
}

impl ReleaseTables {
    /// The tables that a function publishes of an input in canonical form. What cannot be verified from files is refused.
    /// `division` are the quasi-identifiers that share a table, if they do.
    pub fn of(
        spec: &Spec,
        input: &LogicalPlan,
        published: &LogicalPlan,
        division: &[Vec<String>],
    ) -> Result<Self> {
        let relation = fresh(published.schema().as_arrow().fields().iter());
        let release = spec.entry()?.system.tables(spec, &relation, division)?;
        let layout = Layout::try_new(spec, Arc::new(input.schema().as_arrow().clone()))?;
        let verifier = Arc::new(FileVerifier::of(spec, &layout, division)?);
        let conditions = release.tables.iter().map(|table| table.rows.clone());
        let number = number(conditions.collect())?;
        let tables = release.tables.into_iter().map(|table| {
            Arc::new(ReleaseTable {
                verifier: table.shows_classes.then(|| Arc::clone(&verifier)),
                ..ReleaseTable::new(table, &relation)
            })
        });
        Ok(Self {
            all: tables.collect(),
            verifier,
            number,
            class: release.class,
            table_name: release.table_name,
            relation,
        })
    }

    /// The rows to write: table by table, class by class, and within a class in the order of pseudonyms and values. All
    /// of these are random or published, so the order says nothing else. The last two columns are the number of the
    /// table and the class.
    pub fn rows(
        &self,
        published: LogicalPlan,
        class_tuple: &Arc<ScalarUDF>,
    ) -> Result<LogicalPlan> {
        let class = ScalarFunction::new_udf(Arc::clone(class_tuple), self.class.clone());
        let added = [
            self.number.clone().alias(TABLE),
            Expr::ScalarFunction(class).alias(CLASS),
        ];
        let columns = self.relation.fields().iter().map(|f| ident(f.name()));
        let order = self.relation.fields().iter().filter(|f| is_sorted_by(f));
        let order = order.map(|f| ident(f.name()));
        let order = [ident(TABLE), ident(CLASS)].into_iter().chain(order);
        LogicalPlanBuilder::from(published)
            .project(columns.chain(added).collect::<Vec<_>>())?
            .sort(order.map(|column| column.sort(true, true)))?
            .build()
    }

    /// The relation again, out of plans that read the tables.
    pub fn relation(&self, read: Vec<LogicalPlan>) -> Result<LogicalPlan> {
        let mut whole: Option<LogicalPlanBuilder> = None;
        for (table, plan) in self.all.iter().zip(read) {
            let mut columns = vec![];
            for (place, field) in self.relation.fields().iter().enumerate() {
                columns.push(if table.columns.contains(&place) {
                    ident(field.name())
                } else if self.table_name.is_some_and(|name| name == field.name()) {
                    lit(table.name.as_str()).alias(field.name())
                } else {
                    let missing = ScalarValue::try_from(field.data_type())?;
                    lit(missing).alias(field.name())
                });
            }
            let part = LogicalPlanBuilder::from(plan).project(columns)?;
            whole = Some(match whole {
                Some(others) => others.union(part.build()?)?,
                None => part,
            });
        }
        let whole = whole.ok_or_else(|| internal_datafusion_err!("publish: there is no table"))?;
        whole.build()
    }
}

impl ReleaseTable {
    /// A table of columns of a relation.
    fn new(table: TableLayout, relation: &SchemaRef) -> Self {
        let fields = relation.fields().iter().enumerate();
        let own = fields.filter(|(_, field)| table.columns.contains(field.name()));
        let (columns, fields): (Vec<usize>, Vec<&Arc<Field>>) = own.unzip();
        Self {
            name: table.name,
            schema: fresh(fields.into_iter()),
            columns,
            class: table.class,
            verifier: None,
        }
    }

    /// The columns by which the rows of a class are sorted.
    pub fn order(&self) -> impl Iterator<Item = usize> + '_ {
        let fields = self.schema.fields().iter().enumerate();
        let sorted = fields.filter(|(_, field)| is_sorted_by(field));
        sorted.map(|(place, _)| place)
    }
}

/// Lists and intervals have no order, and are the same in a class, or follow from the pseudonym.
fn is_sorted_by(field: &Field) -> bool {
    !matches!(field.data_type(), DataType::Struct(_) | DataType::List(_))
}

/// The number of the first condition that a row satisfies. A single table has all rows.
fn number(conditions: Vec<Expr>) -> Result<Expr> {
    let [first, others @ ..] = conditions.as_slice() else {
        return internal_err!("publish: there is no table");
    };
    if others.is_empty() {
        return Ok(lit(0u32));
    }
    let mut choice = when(first.clone(), lit(0u32));
    for (number, condition) in (1u32..).zip(others) {
        choice = choice.when(condition.clone(), lit(number));
    }
    choice.end()
}

/// The sensitive columns.
pub(super) fn sensitive(spec: &Spec) -> Vec<String> {
    spec.sensitive().iter().map(|c| (*c).to_owned()).collect()
}
