//! [`DivisionExec`]: which quasi-identifiers would share a sub-table, and why.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PlanProperties, SendableRecordBatchStream,
};

use super::block::merged_profiles;
use crate::engine::{only_child, properties, show};
use crate::error;
use crate::spec::Spec;
use crate::system::Layout;
use crate::system::anatomy::slppa::TableProfile;

/// Shows weights, coefficients and the division of the quasi-identifiers, from the profiles of all partitions.
#[derive(Debug)]
pub struct DivisionExec {
    spec: Arc<Spec>,
    layout: Arc<Layout>,
    profile: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl DivisionExec {
    /// Over the output of [`ProfileExec`](super::ProfileExec), in one partition.
    pub(crate) fn try_new(
        spec: Arc<Spec>,
        layout: Arc<Layout>,
        profile: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let properties = properties(layout.published(), 1, EmissionType::Final);
        Ok(Self {
            spec,
            layout,
            profile,
            metrics: ExecutionPlanMetricsSet::new(),
            properties,
        })
    }

    /// What is asked for.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.spec
    }

    pub(crate) fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }
}

impl DisplayAs for DivisionExec {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(t, f, "DivisionExec", &self.spec.facts())
    }
}

impl ExecutionPlan for DivisionExec {
    fn name(&self) -> &str {
        "DivisionExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.profile]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        let division = Self::try_new(spec, layout, only_child(children)?)?;
        Ok(Arc::new(division))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("DivisionExec has one partition");
        }
        let profile = Arc::clone(&self.profile);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let (spec, layout) = (Arc::clone(&self.spec), Arc::clone(&self.layout));
        let stream = async_stream::try_stream! {
            let (profile, _reserved) = merged_profiles(&spec, profile, context).await?;
            let timer = baseline.elapsed_compute().timer();
            let described = described(&spec, &layout, &profile)?;
            timer.done();
            yield described.record_output(&baseline);
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// One row of the description: of a column, or of two.
#[derive(Default)]
struct Described<'a> {
    subtable: Option<String>,
    attribute: &'a str,
    other: Option<&'a str>,
    weight: Option<f64>,
    distinct: Option<i64>,
    bins: Option<i64>,
    share: Option<f64>,
    coefficient: Option<f64>,
}

fn described(spec: &Spec, layout: &Layout, profile: &TableProfile) -> Result<RecordBatch> {
    let division = profile
        .division(&spec.anatomy()?)
        .map_err(|e| error::argument(spec.function(), "tables:", e.to_string()))?;
    let associations = profile.associations();
    let names = spec.qi();
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let share = |most: u64| most as f64 / profile.individuals().max(1) as f64;
    let mut rows = vec![];
    let mut table_of = vec![0; names.len()];
    for (table, columns) in division.tables().iter().enumerate() {
        for column in columns {
            table_of[*column] = table;
            let others = columns.iter().filter(|other| *other != column);
            let coefficients = others.map(|other| associations.coefficients[*column][*other]);
            let mean = coefficients.sum::<f64>() / (columns.len() - 1).max(1) as f64;
            rows.push(Described {
                subtable: Some(format!("qi_{}", table + 1)),
                attribute: &names[*column],
                weight: Some(associations.weights[*column]),
                distinct: Some(number(associations.distinct[*column])),
                bins: Some(number(associations.bins[*column] as u64)),
                share: Some(share(profile.tuple_at_most(&[*column]))),
                coefficient: (columns.len() > 1).then_some(mean),
                ..Described::default()
            });
        }
    }
    rows.push(Described {
        subtable: Some("sa".to_owned()),
        attribute: &spec.sensitive()[0],
        weight: Some(profile.entropy()),
        distinct: Some(number(profile.different_values() as u64)),
        share: Some(share(profile.most_frequent())),
        ..Described::default()
    });
    for (a, name) in names.iter().enumerate() {
        for (b, other) in names.iter().enumerate().skip(a + 1) {
            let same = table_of[a] == table_of[b];
            rows.push(Described {
                subtable: same.then(|| format!("qi_{}", table_of[a] + 1)),
                attribute: name,
                other: Some(other),
                coefficient: Some(associations.coefficients[a][b]),
                ..Described::default()
            });
        }
    }
    let text = |of: fn(&Described<'_>) -> Option<String>| {
        let texts: StringArray = rows.iter().map(of).collect();
        Arc::new(texts)
    };
    let real = |of: fn(&Described<'_>) -> Option<f64>| {
        let reals: Float64Array = rows.iter().map(of).collect();
        Arc::new(reals)
    };
    let whole = |of: fn(&Described<'_>) -> Option<i64>| {
        let numbers: Int64Array = rows.iter().map(of).collect();
        Arc::new(numbers)
    };
    Ok(RecordBatch::try_new(
        layout.published(),
        vec![
            text(|row| row.subtable.clone()),
            text(|row| Some(row.attribute.to_owned())),
            text(|row| row.other.map(str::to_owned)),
            real(|row| row.weight),
            whole(|row| row.distinct),
            whole(|row| row.bins),
            real(|row| row.share),
            real(|row| row.coefficient),
        ],
    )?)
}
