//! From the logical node to the operators.

mod errors;
mod order;
mod spread;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::engine::BlockPartitioning;
use crate::error;
use crate::pipeline::{
    AnonymizeExec, AnonymizeNode, BlockExec, ClassesExec, ClassesNode, CollapseExec, CollapseNode,
    CompareExec, CompareNode, CoverExec, CoverNode, DivisionExec, GatherExec, GatherNode,
    IndividualsExec, LossExec, LossNode, MaskErrorsExec, ProfileExec, PseudonymizeExec, ReportExec,
    ReportNode,
};
use crate::publish::{PublishExec, PublishNode};
use crate::spec::Spec;
use crate::system::{Layout, ProfileColumns, ProfileReads};

#[cfg(test)]
pub(crate) use errors::EXPRESSIONS;
pub use errors::MaskErrors;
pub use order::OrderInMemory;
pub use spread::SpreadInput;

/// Plans the nodes of this crate. Compose it with others when your session has a query planner of its own.
#[derive(Debug, Default)]
pub struct AnonymizePlanner;

#[async_trait]
impl ExtensionPlanner for AnonymizePlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning_ctx: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(node) = node.as_any().downcast_ref::<PublishNode>() {
            let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
                return internal_err!("publish needs a session of DataFusion");
            };
            let plan = PublishExec::new(node.clone(), state.clone());
            return Ok(Some(Arc::new(plan)));
        }
        let (plan, filters, schema): (_, _, &DFSchema) =
            if let Some(node) = node.as_any().downcast_ref::<AnonymizeNode>() {
                let [input] = physical_inputs else {
                    return internal_err!("Anonymize has one input");
                };
                let started = session.execution_props().query_execution_start_time;
                let moment = started.map(|time| time.to_rfc3339());
                let spec = Arc::new(node.spec().at(moment.as_deref().map(str::as_bytes))?);
                let partitions = session.config().target_partitions();
                let plan = operators(&spec, Arc::clone(input), partitions)?;
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<ClassesNode>() {
                let plan: Arc<dyn ExecutionPlan> = Arc::new(ClassesExec::try_new(
                    Arc::clone(node.spec()),
                    physical_inputs.to_vec(),
                )?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<LossNode>() {
                let plan: Arc<dyn ExecutionPlan> = Arc::new(LossExec::try_new(
                    Arc::clone(node.spec()),
                    physical_inputs.to_vec(),
                )?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<CoverNode>() {
                let plan: Arc<dyn ExecutionPlan> = Arc::new(CoverExec::try_new(
                    Arc::clone(node.spec()),
                    physical_inputs.to_vec(),
                )?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<CollapseNode>() {
                let [records] = physical_inputs else {
                    return internal_err!("Collapse has one input");
                };
                let spec = Arc::clone(node.spec());
                let plan: Arc<dyn ExecutionPlan> =
                    Arc::new(CollapseExec::try_new(spec, Arc::clone(records))?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<GatherNode>() {
                let [records] = physical_inputs else {
                    return internal_err!("Gather has one input");
                };
                let spec = Arc::clone(node.spec());
                let plan: Arc<dyn ExecutionPlan> =
                    Arc::new(GatherExec::try_new(spec, Arc::clone(records))?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<CompareNode>() {
                let plan: Arc<dyn ExecutionPlan> = Arc::new(CompareExec::try_new(
                    Arc::clone(node.spec()),
                    physical_inputs.to_vec(),
                )?);
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else if let Some(node) = node.as_any().downcast_ref::<ReportNode>() {
                let [figures] = physical_inputs else {
                    return internal_err!("Report has one input");
                };
                let plan: Arc<dyn ExecutionPlan> = Arc::new(ReportExec::new(
                    Arc::clone(node.report()),
                    node.function().to_owned(),
                    Arc::clone(figures),
                ));
                (
                    plan,
                    node.filters(),
                    UserDefinedLogicalNodeCore::schema(node),
                )
            } else {
                return Ok(None);
            };
        let Some(filter) = conjunction(filters.to_vec()) else {
            return Ok(Some(plan));
        };
        let predicate = planner.create_physical_expr(&filter, schema, session, planning_ctx)?;
        Ok(Some(Arc::new(FilterExec::try_new(predicate, plan)?)))
    }
}

/// The tree of operators over an input in canonical form. Shuffles, to so many partitions, and sorts are added by the engine.
fn operators(
    spec: &Arc<Spec>,
    input: Arc<dyn ExecutionPlan>,
    partitions: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let layout = Arc::new(Layout::try_new(spec, input.schema())?);

    let deal = BlockPartitioning::new(partitions)?;
    let gathered = |rows| -> Result<Arc<dyn ExecutionPlan>> {
        let (spec, layout) = (Arc::clone(spec), Arc::clone(&layout));
        let individuals = IndividualsExec::try_new(spec, layout, rows, deal.clone())?;
        Ok(Arc::new(individuals))
    };
    let tag = |input| -> Result<Arc<dyn ExecutionPlan>> {
        let tagged = PseudonymizeExec::try_new(Arc::clone(spec), input)?;
        Ok(Arc::new(tagged))
    };

    let again = reset_plan_states(Arc::clone(&input))?;
    let profiled = match spec.profiles_individuals() {
        true => gathered(tag(again)?)?,
        false => {
            let reads = spec
                .entry()?
                .system
                .profile_reads(spec, records_of(&input))?;
            let profiled = profiled(spec, again, &reads)?;
            Arc::new(PseudonymizeExec::for_profile(Arc::clone(spec), profiled)?)
        }
    };
    let profile = ProfileExec::try_new(Arc::clone(spec), profiled)?;
    let profile = Arc::new(CoalescePartitionsExec::new(Arc::new(profile)));
    if spec.properties().shows_division_only {
        let division = DivisionExec::try_new(Arc::clone(spec), layout, profile)?;
        return Ok(Arc::new(division));
    }

    let tagged = tag(input)?;
    let routed = |rows| -> Result<Arc<dyn ExecutionPlan>> {
        let blocks = BlockExec::try_new(Arc::clone(spec), Arc::clone(&layout), profile, rows)?;
        Ok(Arc::new(blocks))
    };
    let blocks = match spec.routes_records() {
        true => gathered(routed(tagged)?)?,
        false => routed(gathered(tagged)?)?,
    };
    Ok(Arc::new(AnonymizeExec::try_new(
        Arc::clone(spec),
        Arc::clone(&layout),
        blocks,
        deal.clone(),
    )?))
}

/// The first columns of the input.
fn profiled(
    spec: &Spec,
    input: Arc<dyn ExecutionPlan>,
    reads: &ProfileReads,
) -> Result<Arc<dyn ExecutionPlan>> {
    let input = match reads.views {
        true => with_views(input)?,
        false => input,
    };
    let schema = input.schema();
    let columns = match reads.columns {
        ProfileColumns::QuasiIdentifiers => 1 + spec.qi().len(),
        ProfileColumns::Sensitive => 1 + spec.qi().len() + spec.sensitive().len(),
        ProfileColumns::All => schema.fields().len(),
    };
    let column = |at: usize| -> (Arc<dyn PhysicalExpr>, String) {
        let name = schema.field(at).name();
        (Arc::new(Column::new(name, at)), name.clone())
    };
    let columns: Vec<_> = (0..columns).map(column).collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
}

/// An input in canonical form, but for texts that the scan gives as views: counting them needs no copies.
fn with_views(input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(projection) = input.downcast_ref::<ProjectionExec>() else {
        return Ok(input);
    };
    let below = projection.input();
    let exprs = projection.expr().iter().map(|column| {
        let cast = column.expr.downcast_ref::<CastExpr>();
        let text = cast.filter(|cast| *cast.cast_type() == DataType::Utf8);
        let view = text.map(CastExpr::expr).filter(|text| {
            let given = text.data_type(&below.schema());
            matches!(given, Ok(DataType::Utf8View))
        });
        let expr = view.unwrap_or(&column.expr);
        (Arc::clone(expr), column.alias.clone())
    });
    let exprs: Vec<_> = exprs.collect();
    Ok(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(below))?))
}

/// How many records an input has, if that is known.
fn records_of(input: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let statistics = StatisticsContext::new().compute(input.as_ref(), &StatisticsArgs::new());
    let statistics = statistics.ok()?;
    match statistics.num_rows {
        Precision::Exact(records) => Some(records),
        _ => None,
    }
}

/// A query planner for sessions without another: DataFusion's own with [`AnonymizePlanner`]. A plan that calls a function of
/// this crate shows no value of the data in its errors.
#[derive(Debug, Default)]
pub struct AnonymizeQueryPlanner;

#[async_trait]
impl QueryPlanner for AnonymizeQueryPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner =
            DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AnonymizePlanner)]);
        let Some(function) = errors::masked_for(plan, session)? else {
            return planner.create_physical_plan(plan, session).await;
        };
        let planned = planner.create_physical_plan(plan, session).await;
        let planned = planned.map_err(error::without_values)?;
        let files = errors::files_of(plan)?;
        Ok(Arc::new(MaskErrorsExec::new(function, files, planned)))
    }
}
