//! The way of a release, from a plan to its manifest.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use datafusion::common::{
    DataFusionError, Result, exec_datafusion_err, internal_datafusion_err, plan_datafusion_err,
};
use datafusion::dataframe::DataFrame;
use datafusion::execution::{SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore, ident};
use datafusion::physical_plan::{collect, execute_stream};

use super::comparison::{original, truth};
use super::ledger::{BegunEntry, Entered, Ledger};
use super::manifest::{Counts, FileEntry, Manifest, Roles, TableEntry, Tool};
use super::measuring::{KNOWN_PROGRAM, Measuring, not_protected, text};
use super::place::{NotCommitted, Place, random_name};
use super::report::Figures;
use super::subject::Subject;
use super::tables::{ReleaseTable, ReleaseTables, sensitive};
use super::writer::{ROW_GROUP_ROWS, write};
use super::{read_back, sources};
use crate::error;
use crate::pipeline::{AnonymizeNode, Summary};
use crate::spec::Spec;
use crate::system::{INDIVIDUAL, SecretRule};

/// How to publish.
///
/// ```
/// use datafusion::prelude::*;
/// use datafusion_anonymize::publish::Publish;
/// use datafusion_anonymize::register_all;
///
/// # #[tokio::main(flavor = "multi_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let folder = tempfile::tempdir()?;
/// # let target = folder.path().join("2026-11");
/// # let target = target.to_str().unwrap();
/// let ctx = SessionContext::new();
/// register_all(&ctx)?;
/// let published = ctx
///     .sql(
///         "SELECT * FROM anonymize_eir(
///            (SELECT * FROM sample_patients(individuals => 200, seed => 1)),
///            id => patient_id, qi => [sex, birth_year], sensitive => diagnosis, l => 3)",
///     )
///     .await?;
/// let release = Publish::to(target).run(published).await?;
/// assert_eq!(release.manifest.model, "EIR 3-diversity");
/// assert!(release.manifest.counts.individuals_out <= 200);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Publish {
    target: String,
    figures: bool,
    ledger: Option<Ledger>,
    population: Option<Population>,
}

/// The people among whom somebody may be looked for.
#[derive(Debug, Clone)]
pub(super) struct Population {
    pub people: LogicalPlan,
    /// The column that tells them apart; none if each row is another one.
    pub id: Option<String>,
}

/// A release that can be read.
#[derive(Debug, Clone)]
pub struct Release {
    /// Where it is.
    pub url: String,
    /// What it is.
    pub manifest: Manifest,
    /// Figures for a report, if they were asked for. For the publisher: some are of the input.
    pub figures: Option<Figures>,
    /// What the publisher should know.
    pub warnings: Vec<String>,
}

impl Publish {
    /// Publishes to a folder, or to the URL of one in an object store that the session knows.
    pub fn to(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            figures: false,
            ledger: None,
            population: None,
        }
    }

    /// Measures the journalist's risk: how many of these people fit a class. They have the quasi-identifiers of the input
    /// under the same names, and an id if somebody has several rows.
    pub fn with_population(mut self, people: DataFrame, id: Option<String>) -> Self {
        let people = people.into_unoptimized_plan();
        self.population = Some(Population { people, id });
        self
    }

    /// Also computes the figures of a report.
    pub fn with_figures(mut self, figures: bool) -> Self {
        self.figures = figures;
        self
    }

    /// Looks the individuals up in a ledger of earlier releases, and enters this one.
    pub fn with_ledger(mut self, ledger: Option<Ledger>) -> Self {
        self.ledger = ledger;
        self
    }

    /// Publishes the result of one call of an anonymizing function.
    ///
    /// # Errors
    ///
    /// If the target is not empty, if the plan is anything else than such a call, or if what was written differs from
    /// what was to be written, fails its verification or is not true of the input. In each case nothing is visible.
    pub async fn run(&self, frame: DataFrame) -> Result<Release> {
        let (state, plan) = frame.into_parts();
        self.run_plan(&state, &plan).await
    }

    pub(crate) async fn run_plan(
        &self,
        state: &SessionState,
        plan: &LogicalPlan,
    ) -> Result<Release> {
        // Types are what they will be, also where a union has to make its parts alike.
        let (analyzer, options) = (state.analyzer(), state.config_options());
        let plan = analyzer.execute_and_check(plan.clone(), options, |_, _| {});
        let plan = plan.map_err(error::without_values)?;
        let done = self.run_call(state, &Call::of(&plan)?).await;
        done.map_err(|e| error::input("publish", e))
    }

    async fn run_call(&self, state: &SessionState, call: &Call) -> Result<Release> {
        let state = &with_ids_in_place(state);
        let runtime = state.runtime_env();
        let place = Place::find(runtime, &self.target)?;
        sources::check(state, &place, self.ledger.as_ref(), &call.input).await?;
        place.prepare().await?;
        let staging = place.begin(random_name()?).await?;
        let work = Work {
            publish: self,
            state,
            call,
            place: &place,
            release: &staging.release,
        };
        let (done, entry) = match work.stage().await {
            Ok(staged) => staged,
            Err(error) => return Err(discard(&place, &staging.release, error).await),
        };
        match place.commit(&done.manifest, entry).await {
            Ok(()) => {}
            Err(NotCommitted::Refused(error)) => {
                return Err(discard(&place, &staging.release, error).await);
            }
            Err(NotCommitted::Unknown(error)) => {
                return Err(exec_datafusion_err!(
                    "publish: it is not known whether the release is visible, because the store did not answer: \
                     {error}; look for {} at the target",
                    super::MANIFEST
                ));
            }
        }
        // The release is out; what could not be swept will be by the next run.
        if let Err(error) = place.sweep_others(&staging.release).await {
            log::warn!("publish: staging of other runs is left: {error}");
        }
        Ok(Release {
            url: place.url().to_string(),
            ..done
        })
    }
}

/// A session that moves no record to another partition before its id is replaced: what is moved may be spilled.
fn with_ids_in_place(state: &SessionState) -> SessionState {
    let config = state.config().clone();
    SessionStateBuilder::new_from_existing(state.clone())
        .with_config(config.with_round_robin_repartition(false))
        .build()
}

/// Leaves nothing behind of a run that failed. The failure is what is reported.
async fn discard(place: &Place, release: &str, error: DataFusionError) -> DataFusionError {
    if let Err(left) = place.sweep(release).await {
        log::warn!(
            "publish: temporary files are left at the target; the next run removes them: {left}"
        );
    }
    error
}

/// One call of an anonymizing function, with a key that is the same in all passes over the input.
struct Call {
    /// As it was called.
    spec: Arc<Spec>,
    /// With the key of this release.
    fixed: Arc<Spec>,
    /// The input in canonical form.
    input: LogicalPlan,
    /// What is published of it.
    published: LogicalPlan,
}

impl Call {
    /// The call that a plan consists of. Anything above it that would change what is published is refused.
    fn of(plan: &LogicalPlan) -> Result<Self> {
        match plan {
            LogicalPlan::Extension(Extension { node }) => {
                let node = node.as_any().downcast_ref::<AnonymizeNode>();
                let node = node.ok_or_else(not_a_call)?;
                let input = node.inputs().into_iter().next().cloned();
                let input = input.ok_or_else(not_a_call)?;
                let fixed = Arc::new(node.spec().with_fixed_key()?);
                Ok(Self {
                    spec: Arc::clone(node.spec()),
                    published: called(&fixed, &input)?,
                    fixed,
                    input,
                })
            }
            LogicalPlan::SubqueryAlias(alias) => Self::of(&alias.input),
            LogicalPlan::Projection(projection) if changes_nothing(plan, &projection.expr) => {
                Self::of(&projection.input)
            }
            _ => Err(not_a_call()),
        }
    }
}

/// The plan of a call.
fn called(spec: &Arc<Spec>, input: &LogicalPlan) -> Result<LogicalPlan> {
    let node = AnonymizeNode::try_new(Arc::clone(spec), input.clone(), vec![])?;
    Ok(LogicalPlan::Extension(Extension {
        node: Arc::new(node),
    }))
}

/// Whether a projection gives the columns of its input as they are.
pub(super) fn changes_nothing(plan: &LogicalPlan, expressions: &[Expr]) -> bool {
    let input = plan.inputs().first().map(|input| input.schema().columns());
    input.is_some_and(|columns| {
        columns.len() == expressions.len()
            && columns
                .into_iter()
                .zip(expressions)
                .all(|(column, expression)| *expression == Expr::Column(column))
    })
}

fn not_a_call() -> DataFusionError {
    plan_datafusion_err!(
        "publish: the second argument must be (SELECT * FROM f(…)) with one of the anonymizing functions f, and nothing \
         else: what is filtered, joined or reordered afterwards is no longer what was verified"
    )
}

/// The work before the commit.
struct Work<'a> {
    publish: &'a Publish,
    state: &'a SessionState,
    call: &'a Call,
    place: &'a Place,
    release: &'a str,
}

impl Work<'_> {
    /// Everything before the commit; with the entry in the ledger, which goes if there is none.
    async fn stage(&self) -> Result<(Release, Option<Arc<BegunEntry>>)> {
        let spec = &self.call.fixed;
        let population = self.publish.population.as_ref();
        if population.is_some() {
            check_population(spec)?;
        }
        let division = self.division().await?;
        let (input, published) = (&self.call.input, &self.call.published);
        let tables = ReleaseTables::of(spec, input, published, &division)?;
        let entered = self.enter_ledger().await?;
        let (files, summary) = self.write(&tables).await?;
        let original = original(spec, input.clone())?;
        let measuring =
            Measuring::try_new(self.state, spec, self.place, &tables, &files, original).await?;
        let mut audit = match tables.verifier.verify_tables(&measuring).await? {
            Some(measured) => measured,
            None => measuring.audit(population).await?,
        };
        audit.extend(not_protected(&[KNOWN_PROGRAM]));
        let mut counts = Counts::new(hidden_below(&self.call.spec)?, &summary);
        // Classes that show the same values are one.
        let classes = audit.iter().find(|m| m.measure == "classes");
        if let Some(classes) = classes.and_then(|m| m.value) {
            counts.classes = classes as u64;
        }
        let manifest = Manifest {
            manifest_version: Manifest::version(),
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            release: self.release.to_owned(),
            created: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
            function: spec.function().to_owned(),
            model: self.call.spec.describe()?,
            parameters: parameters(&self.call.spec),
            reproducible: self.call.spec.is_seeded(),
            roles: roles(spec, &tables),
            information_loss: measuring.loss(&counts).await?,
            counts,
            audit,
            truth: truth(&measuring, spec, &tables).await?,
            tables: tables.all.iter().map(|t| entry(t, &files)).collect(),
            files,
        };
        let figures = match self.publish.figures {
            true => Some(Figures::gather(&measuring, &manifest).await?),
            false => None,
        };
        let (warnings, entry) = match entered {
            Some(Entered { warnings, entry }) => (warnings, Some(Arc::new(entry))),
            None => (vec![], None),
        };
        let release = Release {
            url: String::new(),
            manifest,
            figures,
            warnings,
        };
        Ok((release, entry))
    }

    /// Writes all tables, and checks their files. The function runs once.
    async fn write(&self, tables: &ReleaseTables) -> Result<(Vec<FileEntry>, Summary)> {
        let class_tuple = self.state.scalar_functions().get("anonymize_class_tuple");
        let class_tuple = class_tuple.ok_or_else(|| {
            internal_datafusion_err!("publish: the session has not all functions of this crate")
        })?;
        let rows = tables.rows(self.call.published.clone(), class_tuple)?;
        let plan = self.state.create_physical_plan(&rows).await?;
        let rows = execute_stream(Arc::clone(&plan), Arc::new(TaskContext::from(self.state)))?;
        let written = write(self.place, self.release, &tables.all, rows, ROW_GROUP_ROWS).await?;
        let pool = &self.state.runtime_env().memory_pool;
        let mut files = vec![];
        for (table, written) in tables.all.iter().zip(&written) {
            files.extend(read_back::check(self.place, table, written, pool).await?);
        }
        Ok((files, Summary::of(&plan).unwrap_or_default()))
    }

    /// The quasi-identifiers that share a table, if the release is divided into tables.
    async fn division(&self) -> Result<Vec<Vec<String>>> {
        let spec = &self.call.fixed;
        let Some(first) = spec.entry()?.system.division_first(spec) else {
            return Ok(vec![]);
        };
        let plan = called(&Arc::new(first), &self.call.input)?;
        let plan = self.state.create_physical_plan(&plan).await?;
        let rows = collect(plan, Arc::new(TaskContext::from(self.state))).await?;
        let mut division: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for batch in &rows {
            for row in 0..batch.num_rows() {
                // The other rows are of the sensitive column, or of two columns.
                let table = text(batch, 0, row).filter(|_| text(batch, 2, row).is_none());
                let number = table.and_then(|t| t.strip_prefix("qi_")?.parse().ok());
                if let (Some(number), Some(column)) = (number, text(batch, 1, row)) {
                    division.entry(number).or_default().push(column);
                }
            }
        }
        Ok(division.into_values().collect())
    }

    /// Looks the individuals up in the ledger, and enters them.
    async fn enter_ledger(&self) -> Result<Option<Entered>> {
        let Some(ledger) = &self.publish.ledger else {
            return Ok(None);
        };
        let function = self.call.spec.function();
        if self.call.spec.id().is_none() {
            return Err(plan_datafusion_err!(
                "{function}: a ledger needs an id: individuals without one cannot be recognized"
            ));
        }
        let id = self.call.input.schema().field(0).name().clone();
        let plan = datafusion::logical_expr::LogicalPlanBuilder::from(self.call.input.clone())
            .project(vec![datafusion::logical_expr::cast(
                ident(id),
                datafusion::arrow::datatypes::DataType::Utf8,
            )])?
            .build()?;
        let plan = self.state.create_physical_plan(&plan).await?;
        let ids = execute_stream(plan, Arc::new(TaskContext::from(self.state)))?;
        let target = self.place.url().to_string();
        let subject = Subject::of(&self.call.spec, &self.call.input)?;
        let entered = ledger.enter(self.release, &target, &subject, ids);
        entered.await.map(Some)
    }
}

/// A population is compared with published values, which labels of a hierarchy cannot be, and only classes have any.
fn check_population(spec: &Spec) -> Result<()> {
    let labelled = |qi: &&String| spec.hierarchies().contains_key(*qi);
    let labelled = spec.qi().iter().find(labelled);
    let why = match (spec.entry()?.forms_classes(), labelled) {
        (true, None) => return Ok(()),
        (true, Some(qi)) => format!("column '{qi}' is published as labels of a hierarchy"),
        (false, _) => format!(
            "{} forms no classes of people who look the same",
            spec.function()
        ),
    };
    Err(plan_datafusion_err!(
        "publish: the risk in a population cannot be measured, because {why}; leave the population out"
    ))
}

/// Counts of people below this are not told: the fewest individuals that the model allows in a class or group, or lets
/// share a fingerprint.
fn hidden_below(spec: &Spec) -> Result<u64> {
    let k = spec.parameter("k").and_then(|k| k.parse().ok());
    let smallest = spec.entry()?.system.smallest_told(spec)?;
    Ok(smallest.max(k.unwrap_or(0)).max(2))
}

/// A table in the manifest.
fn entry(table: &ReleaseTable, files: &[FileEntry]) -> TableEntry {
    let own = files.iter().filter(|file| file.table == table.name);
    let columns = table.schema.fields().iter();
    TableEntry {
        name: table.name.clone(),
        columns: columns.map(|field| field.name().clone()).collect(),
        records: own.map(|file| file.records).sum(),
    }
}

/// What the requirement is and how it is reached. Never the seed, a stated domain or a key.
pub(super) fn parameters(spec: &Spec) -> BTreeMap<String, String> {
    let mut parameters: BTreeMap<String, String> = spec
        .parameters()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in spec.facts() {
        if spec.properties().told.contains(&name) {
            parameters.insert(name.to_owned(), value);
        }
    }
    let local = spec.local_requirement().ok();
    for attribute in local.iter().flat_map(|local| &local.attributes) {
        let (name, value) = match &attribute.rule {
            SecretRule::Diversity(l) => ("l", l.to_string()),
            SecretRule::Closeness(t, _) => ("t", t.clone()),
        };
        parameters.insert(format!("{name} of {}", attribute.name), value);
    }
    parameters
}

fn roles(spec: &Spec, tables: &ReleaseTables) -> Roles {
    let shown = |table: &Arc<ReleaseTable>| table.schema.field_with_name(INDIVIDUAL).is_ok();
    Roles {
        individual: match spec.id() {
            Some(_) if tables.all.iter().any(shown) => Some(INDIVIDUAL.to_owned()),
            _ => None,
        },
        qi: spec.qi().to_vec(),
        sensitive: sensitive(spec),
        keep: spec.keep().to_vec(),
    }
}

#[cfg(test)]
mod tests;
