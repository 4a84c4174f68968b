//! What a staged release attains and has lost, measured from its files by the functions of this crate.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Float64Type, Int64Type, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider,
};
use datafusion::common::{Result, TableReference, internal_datafusion_err};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::datasource::{TableProvider, ViewTable, provider_as_source};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, cast, ident, lit};
use datafusion::prelude::SessionContext;

use super::manifest::{Counts, FileEntry, Loss, Measure};
use super::place::Place;
use super::run::Population;
use super::tables::{ReleaseTable, ReleaseTables, sensitive};
use crate::measure::{CompareSpec, CoverColumn, plain_type};
use crate::pipeline::compare;
use crate::spec::{FingerprintRows, GivenDomain, Notation, Spec};
use crate::system::{Compared, INDIVIDUAL, sensitive_tree};
use crate::table::coding::Levels;

/// The labels of sensitive values.
const LABELS: &str = "labels";

/// The files as they were written.
const FILES: &str = "files";

/// A session of its own, in which the written files are `published` and the input is `original`. Where sensitive values
/// are published as labels, `labels` has a row for each value, with all labels above it.
pub(super) struct Measuring {
    context: SessionContext,
    spec: Arc<Spec>,
}

impl Measuring {
    pub async fn try_new(
        state: &SessionState,
        spec: &Arc<Spec>,
        place: &Place,
        tables: &ReleaseTables,
        files: &[FileEntry],
        original: LogicalPlan,
    ) -> Result<Self> {
        let context = empty_session(state)?;
        let mut read = vec![];
        for table in &tables.all {
            read.push(written(&context, place, table, files).await?);
        }
        let relation = tables.relation(read)?;
        context.register_table(FILES, Arc::new(ViewTable::new(relation, None)))?;
        context.register_table("original", Arc::new(ViewTable::new(original, None)))?;
        let names = (0..spec.qi().len()).map(labels_of);
        let columns = spec.qi().iter().zip(names);
        let sensitive = spec.sensitive().iter().map(|c| (c, LABELS.to_owned()));
        for (column, name) in columns.chain(sensitive) {
            let levels = spec.hierarchies().get(column);
            if let Some(labels) = levels.map(labels).transpose()?.flatten() {
                context.register_batch(&name, labels)?;
            }
        }
        let measuring = Self {
            context,
            spec: Arc::clone(spec),
        };
        let published = measuring.context.sql(&measuring.published()).await?;
        let published = ViewTable::new(published.into_unoptimized_plan(), None);
        measuring
            .context
            .register_table("published", Arc::new(published))?;
        Ok(measuring)
    }

    /// The relation that was written, with a row for each value where it has lists of them.
    fn published(&self) -> String {
        if self.spec.fingerprint_rows() == FingerprintRows::Records {
            return format!("SELECT * FROM {FILES}");
        }
        let name = |column: &String| quoted_name(column);
        let mut columns = vec![INDIVIDUAL.to_owned()];
        columns.extend(self.spec.qi().iter().map(name));
        let lists = self.spec.sensitive().iter().map(name);
        columns.extend(lists.map(|column| format!("unnest({column}) AS {column}")));
        format!("SELECT {} FROM {FILES}", columns.join(", "))
    }

    /// Runs SQL over `published` and `original`.
    pub async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.context.sql(sql).await?.collect().await
    }

    /// The same, as it comes.
    pub async fn stream(&self, sql: &str) -> Result<SendableRecordBatchStream> {
        self.context.sql(sql).await?.execute_stream().await
    }

    /// The pool that memory comes from.
    pub fn memory(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.context.runtime_env().memory_pool)
    }

    /// The columns of the written files.
    pub async fn published_schema(&self) -> Result<SchemaRef> {
        Ok(self.context.table_provider("published").await?.schema())
    }

    /// What the files attain, by `audit`, once for each sensitive column. Refuses individuals in several classes and the
    /// like. With a population, also the risk in it.
    pub async fn audit(&self, population: Option<&Population>) -> Result<Vec<Measure>> {
        let columns = sensitive(&self.spec);
        let mut among = String::new();
        if let Some(Population { people, id }) = population {
            let people = Arc::new(ViewTable::new(people.clone(), None));
            self.context.register_table("population", people)?;
            let id = id
                .as_ref()
                .map(|id| format!(", population_id => {}", quoted(id)));
            among = format!(", population => population{}", id.unwrap_or_default());
        }
        let mut found: Vec<Measure> = vec![];
        for column in &columns {
            let sql = format!(
                "SELECT section, measure, value, better, note FROM audit(published, {}{among}{})",
                self.arguments(self.spec.qi(), Some(column)),
                self.labels(&[])
            );
            for mut measure in read_measures(&self.query(&sql).await?) {
                let fault = measure.section == "faults" && measure.better.is_some();
                if fault && measure.value.is_none_or(|value| value > 0.0) {
                    return Err(internal_datafusion_err!(
                        "publish: nothing is published, because what was written has {}",
                        measure.measure
                    ));
                }
                let of_values =
                    ["models", "values", "fingerprints"].contains(&measure.section.as_str());
                if of_values && columns.len() > 1 {
                    measure.section = format!("{} of {column}", measure.section);
                }
                let known = found
                    .iter()
                    .any(|m| (&m.section, &m.measure) == (&measure.section, &measure.measure));
                if !known && measure.measure != "duplicate_records" {
                    found.push(measure);
                }
            }
        }
        Ok(found)
    }

    /// What groups and buckets attain, by `audit_buckets`.
    pub async fn audit_buckets(&self) -> Result<Vec<Measure>> {
        let sql = "SELECT coalesce('buckets of ' || attribute, 'groups'), measure, value, better, note \
                   FROM audit_buckets(published) ORDER BY attribute NULLS FIRST";
        let mut measures = read_measures(&self.query(sql).await?);
        measures.extend(not_protected(&[
            (
                "membership",
                "whoever looks like nobody in the table is known not to be in it",
            ),
            ("choices", "who keeps what secret is visible to everybody"),
            (
                "insiders",
                "whoever knows the value of one in a bucket can rule it out for the others",
            ),
            (
                "correlations",
                "secrets of one person that rule each other out leave fewer values",
            ),
            OTHER_RELEASES,
        ]));
        Ok(measures)
    }

    /// Compares every individual with itself in the input, in some quasi-identifiers and sensitive columns.
    pub async fn differences(
        &self,
        columns: &[String],
        sensitive: &[String],
    ) -> Result<Differences> {
        let buckets = self.spec.properties().compared == Compared::Buckets;
        let input = self.context.table("original").await?;
        let mut of_input = vec![ident(INDIVIDUAL)];
        let mut shown = vec![ident(INDIVIDUAL)];
        for column in columns {
            of_input.push(ident(column));
            // In text an empty cell would be a missing value, and not one that is in a bucket.
            shown.push(match buckets && self.spec.notation == Notation::Text {
                true => coalesce(vec![ident(column), lit("*")]).alias(column),
                false => ident(column),
            });
        }
        for column in sensitive {
            of_input.push(ident(column));
            let wanted = input.schema().field_with_unqualified_name(column)?;
            let wanted = plain_type(wanted.data_type());
            shown.push(cast(ident(column), wanted).alias(column));
        }
        let mut published = self.context.table("published").await?;
        if buckets {
            // Rows of buckets are nobody's.
            published = published.filter(ident(INDIVIDUAL).is_not_null())?;
        }
        let compared = |name: &String| CoverColumn {
            name: name.clone(),
            labels: false,
        };
        let spec = CompareSpec {
            function: "publish".to_owned(),
            columns: columns.iter().map(compared).collect(),
            sensitive: sensitive.len(),
        };
        let published = published.select(shown)?.into_unoptimized_plan();
        let input = input.select(of_input)?.into_unoptimized_plan();
        let counts = compare(spec, published, input, vec![])?;
        let counts = self.context.execute_logical_plan(counts).await?;
        let counts = counts.collect().await?;
        let count = |name: &str| -> Result<f64> {
            let found = counts.iter().find_map(|batch| {
                let column = batch
                    .column_by_name(name)?
                    .as_primitive_opt::<Int64Type>()?;
                (column.len() == 1 && column.is_valid(0)).then(|| column.value(0))
            });
            let found = found.ok_or_else(|| {
                internal_datafusion_err!("publish: a comparison does not count {name}")
            })?;
            Ok(found as f64)
        };
        Ok(Differences {
            untrue: count("untrue_individuals")? + count("individuals_only_published")?,
            invented: count("records_only_published")?,
        })
    }

    /// The section `original` of an audit of some columns and a sensitive one, by name, where there are no ids.
    pub async fn against_original(
        &self,
        published: &str,
        columns: &[String],
        sensitive: &String,
    ) -> Result<Audited> {
        let sql = format!(
            "SELECT section, measure, value, better, note FROM audit({published}, {}) WHERE section = 'original'",
            self.arguments(columns, Some(sensitive))
        );
        Ok(Audited(read_measures(&self.query(&sql).await?)))
    }

    /// The first number of the first row.
    pub async fn number(&self, sql: &str) -> Result<f64> {
        let batches = self.query(sql).await?;
        let found = batches.iter().find_map(|batch| number(batch, 0, 0));
        found.ok_or_else(|| internal_datafusion_err!("publish: a comparison has no result"))
    }

    /// What was lost, in all columns and column by column.
    ///
    /// Everybody can compute it: it is measured from the written files alone, against the domains that these show and those
    /// that were stated. A domain of the input would tell values of people who are not published. Whoever is left out has lost
    /// everything, if it is told how many they are: in a mean, their number could be solved for.
    pub async fn loss(&self, counts: &Counts) -> Result<Vec<Loss>> {
        // How many values a mask stands for is known to those who know the values.
        let masked = |qi: &&String| {
            let levels = self.spec.hierarchies().get(*qi);
            matches!(levels, Some(Levels::Mask(_)))
        };
        let columns: Vec<String> = self
            .spec
            .qi()
            .iter()
            .filter(|qi| !masked(qi))
            .cloned()
            .collect();
        if !self.spec.properties().generalizes || columns.is_empty() {
            // In an anatomy every value is as it was; what is lost is which belong together.
            return Ok(vec![]);
        }
        // What is in the buckets of a group is there as it was, and loses nothing.
        let sensitive = match self.spec.properties().groups {
            Some(_) => None,
            None => only(self.spec.sensitive()),
        };
        // So does what is published as it was: nobody needs to look at it.
        let as_it_was = sensitive.filter(|_| self.spec.properties().compared == Compared::Records);
        let sensitive = sensitive.filter(|_| as_it_was.is_none());
        let sql = format!(
            "SELECT measure, \"column\", value FROM information_loss(original, published, {}{}, published_only => true)",
            self.arguments(&columns, sensitive),
            self.domains(&columns),
        );
        let left_out = counts.share_left_out().unwrap_or(0.0);
        let mut losses = vec![];
        for batch in self.query(&sql).await? {
            for row in 0..batch.num_rows() {
                let measure = text(&batch, 0, row).unwrap_or_default();
                if COUNTS.contains(&measure.as_str()) {
                    continue;
                }
                let value = number(&batch, 2, row).map(|value| match measure.as_str() {
                    // Of published individuals anyway.
                    "cavg" => value,
                    _ => (1.0 - left_out) * value + left_out,
                });
                let column = text(&batch, 1, row);
                let last_of_qi = measure == "ncp_range" && column.is_none();
                losses.push(Loss {
                    measure,
                    column,
                    value: value.map(rounded),
                });
                if last_of_qi && as_it_was.is_some() {
                    losses.push(Loss {
                        measure: "sa_ncp".to_owned(),
                        column: None,
                        value: Some(rounded(left_out)),
                    });
                }
            }
        }
        let total = losses
            .iter()
            .find(|loss| loss.measure == "nloss" && loss.column.is_none());
        let total = total.map(|total| Loss {
            measure: "information_loss".to_owned(),
            ..total.clone()
        });
        Ok(total.into_iter().chain(losses).collect())
    }

    /// Quasi-identifiers whose published values can be compared with the input's. The labels of a hierarchy cannot.
    pub fn compared(&self) -> Vec<String> {
        let plain = |column: &&String| !self.spec.hierarchies().contains_key(*column);
        self.spec.qi().iter().filter(plain).cloned().collect()
    }

    /// Quasi-identifiers that are published as intervals or sets for everybody.
    pub fn generalized(&self) -> Vec<String> {
        match self.spec.properties().groups {
            Some(_) => vec![],
            None => self.compared(),
        }
    }

    /// The individuals of each class or group, as a relation.
    pub fn sizes(&self) -> String {
        match &self.spec.properties().groups {
            Some(groups) => format!("({})", groups.sizes("published")),
            None => {
                let first = self.spec.sensitive().first();
                let arguments = self.arguments(self.spec.qi(), first);
                format!("audit_classes(published, {arguments})")
            }
        }
    }

    /// Roles as arguments of a measuring function.
    pub fn arguments(&self, qi: &[String], sensitive: Option<&String>) -> String {
        let who = match self.spec.id() {
            Some(_) => format!("id => '{INDIVIDUAL}'"),
            None => "one_row_per_individual => true".to_owned(),
        };
        let sensitive = sensitive.map(|column| format!(", sensitive => {}", quoted(column)));
        format!("{who}, qi => {}{}", list(qi), sensitive.unwrap_or_default())
    }

    /// Which columns hold names, the domains that were stated, and the labels of sensitive values.
    pub fn domains(&self, columns: &[String]) -> String {
        let names = self.spec.categorical().iter();
        let names: Vec<_> = names.filter(|c| columns.contains(c)).cloned().collect();
        let mut arguments = String::new();
        if !names.is_empty() {
            arguments += &format!(", categorical => {}", list(&names));
        }
        let stated = self.spec.domains().iter();
        let stated: Vec<String> = stated
            .filter(|(column, _)| columns.contains(column))
            .map(|(column, domain)| {
                let numeric = |text: &String| text.parse::<f64>().is_ok();
                let values: Vec<String> = match domain {
                    GivenDomain::Range(from, to) => vec![from.clone(), to.clone()],
                    GivenDomain::Values(values) => values.clone(),
                };
                let plain = values.iter().all(numeric);
                let values = if plain {
                    format!("[{}]", values.join(", "))
                } else {
                    list(&values)
                };
                format!("{}: {values}", quoted_name(column))
            })
            .collect();
        if !stated.is_empty() {
            arguments += &format!(", domain => {{{}}}", stated.join(", "));
        }
        arguments + &self.labels(columns)
    }

    /// The hierarchies of some quasi-identifiers and of sensitive values.
    fn labels(&self, columns: &[String]) -> String {
        let mut labelled = vec![];
        for (at, column) in self.spec.qi().iter().enumerate() {
            let levels = self.spec.hierarchies().get(column);
            if let Some(levels) = levels.filter(|_| columns.contains(column)) {
                let levels = match levels.tree() {
                    Some(_) => labels_of(at),
                    None => quoted(&levels.to_string()),
                };
                labelled.push(format!("{}: {levels}", quoted_name(column)));
            }
        }
        if sensitive_tree(&self.spec).is_some() {
            let sensitive = sensitive(&self.spec);
            let sensitive = sensitive.iter().map(|column| quoted_name(column));
            labelled.extend(sensitive.map(|column| format!("{column}: {LABELS}")));
        }
        match labelled.is_empty() {
            true => String::new(),
            false => format!(", hierarchy => {{{}}}", labelled.join(", ")),
        }
    }
}

/// The files of a table as a plan; a table without rows has none.
async fn written(
    context: &SessionContext,
    place: &Place,
    table: &ReleaseTable,
    files: &[FileEntry],
) -> Result<LogicalPlan> {
    let own = files.iter().filter(|file| file.table == table.name);
    let urls = own
        .map(|file| place.url_of(&file.path))
        .collect::<Result<Vec<_>>>()?;
    let provider: Arc<dyn TableProvider> = if urls.is_empty() {
        Arc::new(EmptyTable::new(Arc::clone(&table.schema)))
    } else {
        let options =
            ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .infer_schema(&context.state())
            .await?;
        Arc::new(ListingTable::try_new(config)?)
    };
    let name = TableReference::bare(table.name.as_str());
    LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.build()
}

/// What every release leaves open.
pub(super) const OTHER_RELEASES: (&str, &str) = (
    "other_releases",
    "another table about the same people may tell more than both do",
);

/// What every release leaves open, and an audit cannot know of a table that others made (docs/theory/guarantees.md).
pub(super) const KNOWN_PROGRAM: (&str, &str) = (
    "known_program",
    "how people are divided may depend on their sensitive values: whoever knows all quasi-identifiers, the program and its \
     parameters can conclude from it what some of them have, even with certainty",
);

/// What a release does not protect, as an audit says it.
pub(super) fn not_protected(notes: &[(&str, &str)]) -> Vec<Measure> {
    let measure = |(name, note): &(&str, &str)| Measure {
        section: "not protected".to_owned(),
        measure: (*name).to_owned(),
        value: None,
        better: None,
        note: (*note).to_owned(),
    };
    notes.iter().map(measure).collect()
}

/// The one column, if there are no others. Records of several are what they are together.
fn only(columns: &[String]) -> Option<&String> {
    match columns {
        [one] => Some(one),
        _ => None,
    }
}

/// What `information_loss` counts, which a manifest says elsewhere or not at all.
const COUNTS: [&str; 7] = [
    "dm",
    "original_records",
    "published_records",
    "original_individuals",
    "published_individuals",
    "dropped_records",
    "dropped_individuals",
];

/// What is not true of the input.
pub(super) struct Differences {
    /// Individuals that are not in it, or not as they are published.
    pub untrue: f64,
    /// Published pairs of individual and sensitive value that it does not have.
    pub invented: f64,
}

/// Measures by name.
pub(super) struct Audited(Vec<Measure>);

impl Audited {
    pub fn value(&self, name: &str) -> Result<f64> {
        let found = self.0.iter().find(|m| m.measure == name);
        found
            .and_then(|m| m.value)
            .ok_or_else(|| internal_datafusion_err!("publish: the audit has no measure '{name}'"))
    }
}

/// The labels of a quasi-identifier with a given hierarchy, as a table.
fn labels_of(qi: usize) -> String {
    format!("{LABELS}_of_{qi}")
}

/// A row per value of a column that is published as labels: it, and the labels above it.
fn labels(levels: &Levels) -> Result<Option<RecordBatch>> {
    let Some(taxonomy) = levels.tree() else {
        return Ok(None);
    };
    let tree = taxonomy.tree();
    let chains = (0..tree.leaves()).map(|leaf| taxonomy.chain(leaf).collect());
    let chains: Vec<Vec<&str>> = chains.collect();
    let level = |at: usize| -> (String, ArrayRef, bool) {
        let labels = chains.iter().map(|chain| chain.get(at).copied());
        let labels = labels.collect::<StringArray>();
        (format!("level_{at}"), Arc::new(labels), true)
    };
    let levels = (0..=tree.height() as usize).map(level);
    Ok(Some(RecordBatch::try_from_iter_with_nullable(levels)?))
}

/// A session like another one, without its tables.
fn empty_session(state: &SessionState) -> Result<SessionContext> {
    let defaults = &state.config_options().catalog;
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(
        &defaults.default_schema,
        Arc::new(MemorySchemaProvider::new()),
    )?;
    let catalogs = MemoryCatalogProviderList::new();
    catalogs.register_catalog(defaults.default_catalog.clone(), Arc::new(catalog));
    let mut config = state.config().clone();
    let pool = state.runtime_env().memory_pool.memory_limit();
    if !matches!(pool, MemoryLimit::Infinite) {
        // Everybody is compared with himself. Joins by hash keep all of one side in memory; those by sorting spill, and
        // are only planned where there are several partitions.
        config.options_mut().optimizer.prefer_hash_join = false;
        config = config.with_target_partitions(state.config().target_partitions().max(2));
    }
    let state = SessionStateBuilder::new_from_existing(state.clone())
        .with_config(config)
        .with_catalog_list(Arc::new(catalogs))
        .build();
    Ok(SessionContext::new_with_state(state))
}

fn read_measures(batches: &[RecordBatch]) -> Vec<Measure> {
    let mut measures = vec![];
    for batch in batches {
        for row in 0..batch.num_rows() {
            measures.push(Measure {
                section: text(batch, 0, row).unwrap_or_default(),
                measure: text(batch, 1, row).unwrap_or_default(),
                value: number(batch, 2, row),
                better: text(batch, 3, row),
                note: text(batch, 4, row).unwrap_or_default(),
            });
        }
    }
    measures
}

/// A cell of a text column.
pub(super) fn text(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let column = batch.column(column).as_string_opt::<i32>()?;
    column.is_valid(row).then(|| column.value(row).to_owned())
}

/// A cell of a column of floats.
pub(super) fn number(batch: &RecordBatch, column: usize, row: usize) -> Option<f64> {
    let column = batch.column(column).as_primitive_opt::<Float64Type>()?;
    column.is_valid(row).then(|| column.value(row))
}

/// Four digits: enough to compare releases, too few to count a single record in most.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// A text as SQL.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as SQL.
pub(super) fn quoted_name(column: &str) -> String {
    format!("\"{}\"", column.replace('"', "\"\""))
}

/// Texts as SQL.
pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}
