//! Which tables a release has, how they are cut out of what a function gives, and in which order their rows stand.
//!
//! ```text
//! one relation, in long form ──► sorted by table, class and values ──► files of each table
//!                                                                            │
//! the same relation          ◄── rows of all tables, NULL elsewhere      ◄───┘  as audits read it
//! ```

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::common::{
    Result, ScalarValue, internal_datafusion_err, internal_err, plan_datafusion_err,
};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, ident, lit, when,
};

use super::verification::FileVerifier;
use super::writer::fresh;
use crate::spec::{Output, Spec};
use crate::system::{
    BUCKET, BUCKETIZED, COUNT, Form, GID, GROUP, INDIVIDUAL, Layout, SUBTABLE, TIMES,
};

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
}

impl ReleaseTables {
    /// The tables that a function publishes of an input in canonical form. What cannot be verified from files is refused.
    /// `division` are the quasi-identifiers of each sub-table of an anatomized release.
    pub fn of(
        spec: &Spec,
        input: &LogicalPlan,
        published: &LogicalPlan,
        division: &[Vec<String>],
    ) -> Result<Self> {
        let form = spec.entry()?.form;
        if form == Form::Division {
            return Err(plan_datafusion_err!(
                "publish: {} shows statistics of the input and anonymizes nothing; publish anatomize_slppa",
                spec.function()
            ));
        }
        let layout = Layout::try_new(spec, Arc::new(input.schema().as_arrow().clone()))?;
        let relation = fresh(published.schema().as_arrow().fields().iter());
        let verifier = Arc::new(FileVerifier::of(spec, &layout, division)?);
        match form {
            Form::Anatomy => Self::anatomy(spec, relation, division, verifier),
            Form::Buckets if spec.output() == Output::Detached => {
                Self::detached(spec, relation, verifier)
            }
            Form::Buckets => Ok(Self::one(relation, vec![GROUP.to_owned()], verifier)),
            _ => Ok(Self::one(relation, spec.qi().to_vec(), verifier)),
        }
    }

    /// The relation as it is.
    fn one(relation: SchemaRef, class: Vec<String>, verifier: Arc<FileVerifier>) -> Self {
        let mut table = ReleaseTable::new("published", &relation, |_| true, class);
        table.verifier = Some(Arc::clone(&verifier));
        Self {
            number: lit(0u32),
            class: table.class.iter().map(ident).collect(),
            all: vec![Arc::new(table)],
            verifier,
            relation,
        }
    }

    /// A table for each part of the division, and one for the sensitive values, linked by the ids of groups.
    fn anatomy(
        spec: &Spec,
        relation: SchemaRef,
        division: &[Vec<String>],
        verifier: Arc<FileVerifier>,
    ) -> Result<Self> {
        let named = division.iter().zip(1..);
        let mut named: Vec<(String, &[String])> = named
            .map(|(own, number)| (format!("qi_{number}"), own.as_slice()))
            .collect();
        named.push(("sa".to_owned(), spec.sensitive()));
        let table = |(name, own): (String, &[String])| {
            let shown =
                |column: &str| [GID, TIMES].contains(&column) || own.iter().any(|c| c == column);
            Arc::new(ReleaseTable::new(
                &name,
                &relation,
                shown,
                vec![GID.to_owned()],
            ))
        };
        let all: Vec<Arc<ReleaseTable>> = named.into_iter().map(table).collect();
        let of = |table: &Arc<ReleaseTable>| ident(SUBTABLE).eq(lit(table.name.as_str()));
        Ok(Self {
            number: number(all.iter().map(of).collect())?,
            class: vec![ident(GID)],
            all,
            verifier,
            relation,
        })
    }

    /// A table of individuals with the ids of buckets, and one of the values of buckets for each attribute.
    fn detached(spec: &Spec, relation: SchemaRef, verifier: Arc<FileVerifier>) -> Result<Self> {
        let attributes = spec.local_requirement()?.attributes;
        let bids: Vec<String> = attributes.iter().map(|a| a.name.clone() + BUCKET).collect();
        let values: Vec<String> = attributes
            .iter()
            .map(|a| a.name.clone() + BUCKETIZED)
            .collect();
        let shown = |column: &str| column != COUNT && values.iter().all(|v| v != column);
        let mut people = ReleaseTable::new("individuals", &relation, shown, vec![GROUP.to_owned()]);
        people.verifier = Some(Arc::clone(&verifier));
        let mut all = vec![Arc::new(people)];
        for ((attribute, bid), value) in attributes.iter().zip(&bids).zip(&values) {
            let shown = |column: &str| [bid.as_str(), value, COUNT].contains(&column);
            let name = format!("{}_buckets", attribute.name);
            all.push(Arc::new(ReleaseTable::new(
                &name,
                &relation,
                shown,
                vec![bid.clone()],
            )));
        }
        let person = || ident(INDIVIDUAL).is_not_null();
        let mut of = vec![person()];
        of.extend(bids.iter().map(|bid| ident(bid).is_not_null()));
        let bid = coalesce(bids.iter().map(ident).collect());
        Ok(Self {
            number: number(of)?,
            class: vec![when(person(), ident(GROUP)).otherwise(bid)?],
            all,
            verifier,
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
                } else if field.name() == SUBTABLE && self.all.len() > 1 {
                    lit(table.name.as_str()).alias(SUBTABLE)
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
    /// The columns of a relation that are shown.
    fn new(
        name: &str,
        relation: &SchemaRef,
        shown: impl Fn(&str) -> bool,
        class: Vec<String>,
    ) -> Self {
        let fields = relation.fields().iter();
        let own = fields.enumerate().filter(|(_, field)| shown(field.name()));
        let (columns, fields): (Vec<usize>, Vec<&Arc<Field>>) = own.unzip();
        Self {
            name: name.to_owned(),
            schema: fresh(fields.into_iter()),
            columns,
            class,
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

/// The number of the first condition that a row satisfies.
fn number(conditions: Vec<Expr>) -> Result<Expr> {
    let mut conditions = (0u32..).zip(conditions);
    let Some((_, first)) = conditions.next() else {
        return internal_err!("publish: there is no table");
    };
    let mut choice = when(first, lit(0u32));
    for (number, condition) in conditions {
        choice = choice.when(condition, lit(number));
    }
    choice.end()
}

/// The sensitive columns.
pub(super) fn sensitive(spec: &Spec) -> Vec<String> {
    spec.sensitive().iter().map(|c| (*c).to_owned()).collect()
}
