//! Which tables a release has, in which order their rows stand, and what must hold of them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DataFusionError, Result, internal_datafusion_err, plan_datafusion_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF, ident};

use super::writer::fresh;
use crate::coding::ColumnCategories;
use crate::spec::{Form, INDIVIDUAL, Layout, Spec, column_categories};
use crate::verify::{self, Listed, Requirement, SensitiveColumn, SensitiveTable, Sensitivity};

/// The column that says where row groups may end; not published.
const CLASS: &str = "__class";

/// A table of a release.
#[derive(Debug)]
pub(super) struct Table {
    /// Its name in the manifest.
    pub name: String,
    pub schema: SchemaRef,
    /// The columns whose values make a class; its rows stand together.
    pub class: Vec<String>,
    spec: Arc<Spec>,
    twin: Twin,
}

impl Table {
    /// The tables that a function publishes of an input in canonical form. What cannot be verified from files is refused.
    pub fn of(
        spec: &Arc<Spec>,
        input: &LogicalPlan,
        published: &LogicalPlan,
    ) -> Result<Vec<Arc<Self>>> {
        if spec.entry()?.form != Form::Classes {
            return Err(plan_datafusion_err!(
                "publish: what {} gives has no classes that could be verified from files; functions that form classes \
                 can be published",
                spec.function()
            ));
        }
        let layout = Layout::try_new(spec, Arc::new(input.schema().as_arrow().clone()))?;
        Ok(vec![Arc::new(Self {
            name: "published".to_owned(),
            schema: fresh(published.schema().as_arrow().fields().iter()),
            class: spec.qi().to_vec(),
            spec: Arc::clone(spec),
            twin: Twin::of(spec, &layout)?,
        })])
    }

    /// The rows to write: class by class, and within a class in the order of pseudonyms and values. Both are random or
    /// published, so the order says nothing else.
    pub fn rows(
        &self,
        published: LogicalPlan,
        class_tuple: &Arc<ScalarUDF>,
    ) -> Result<LogicalPlan> {
        let tuple = self.class.iter().map(ident).collect();
        let class = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(class_tuple), tuple));
        let fields = self.schema.fields();
        let columns = fields.iter().map(|field| ident(field.name()));
        let columns: Vec<Expr> = columns.chain([class.alias(CLASS)]).collect();
        let nested = |t: &DataType| matches!(t, DataType::Struct(_) | DataType::List(_));
        let order = fields
            .iter()
            .filter(|field| !nested(field.data_type()) && !self.class.contains(field.name()))
            .map(|field| ident(field.name()));
        let order = [ident(CLASS)].into_iter().chain(order);
        LogicalPlanBuilder::from(published)
            .project(columns)?
            .sort(order.map(|column| column.sort(true, true)))?
            .build()
    }

    /// Verifies rows of whole classes, with code that knows nothing of how they came about.
    pub fn verify(&self, rows: &RecordBatch) -> Result<()> {
        let columns = |names: &[String]| -> Result<Vec<ArrayRef>> {
            let found = names.iter().map(|name| rows.column_by_name(name).cloned());
            let found: Option<Vec<ArrayRef>> = found.collect();
            found.ok_or_else(|| internal_datafusion_err!("publish: a written column is missing"))
        };
        let qi = columns(&self.class)?;
        let individual = &columns(&[INDIVIDUAL.to_owned()])?[0];
        let sensitive = columns(&sensitive(&self.spec))?;
        match &self.twin {
            Twin::Counts(requirement) => {
                let counted = sensitive.first().unwrap_or(individual);
                counts(&qi, individual, counted, requirement)
            }
            Twin::Sensitivity(requirement, categories) => {
                let k = requirement.individuals();
                for column in &sensitive {
                    counts(&qi, individual, column, &Requirement::IrK { k })?;
                }
                let listed = categories.iter().zip(&sensitive);
                let listed = listed.map(|(categories, values)| SensitiveColumn {
                    values,
                    listed: categories.as_ref().map(|c| Listed {
                        values: &c.values,
                        category: &c.category,
                        categories: c.categories,
                    }),
                });
                let tuples: Vec<u32> = (0u32..).take(rows.num_rows()).collect();
                let listed: Vec<_> = listed.collect();
                let table = SensitiveTable::try_new(&qi, &tuples, individual, &listed)?;
                if table.uncategorised_records > 0 {
                    return Err(failed(&"it has values without a category"));
                }
                verify::check_sensitivity(&table.records(), requirement)
                    .map_err(|violation| failed(&violation))?;
                Ok(())
            }
        }
    }
}

/// The verifier's own reading of the spec.
#[derive(Debug)]
enum Twin {
    /// What is counted in a class.
    Counts(Requirement),
    /// What is counted of each sensitive column, with its categories.
    Sensitivity(Sensitivity, Vec<Option<ColumnCategories>>),
}

impl Twin {
    fn of(spec: &Spec, layout: &Layout) -> Result<Self> {
        let name = spec.model_entry()?.name;
        let parameter = |parameter: &str| spec.parameter(parameter);
        if let Some(requirement) = Sensitivity::named(name, parameter) {
            return Ok(Self::Sensitivity(
                requirement,
                column_categories(spec, layout)?,
            ));
        }
        let requirement = Requirement::named(name, parameter);
        requirement.map(Self::Counts).ok_or_else(|| {
            plan_datafusion_err!(
                "publish: the model of {} cannot be verified from files yet, so nothing is published",
                spec.function()
            )
        })
    }
}

fn counts(
    qi: &[ArrayRef],
    individual: &ArrayRef,
    sensitive: &ArrayRef,
    requirement: &Requirement,
) -> Result<()> {
    let read = verify::Published::from_columns(qi, individual, sensitive)?;
    verify::verify(&read, requirement).map_err(|violation| failed(&violation))?;
    Ok(())
}

fn failed(reason: &dyn std::fmt::Display) -> DataFusionError {
    internal_datafusion_err!(
        "publish: nothing is published, because what was written failed its verification: {reason}"
    )
}

/// The sensitive columns.
pub(super) fn sensitive(spec: &Spec) -> Vec<String> {
    spec.sensitive().iter().map(|c| (*c).to_owned()).collect()
}
