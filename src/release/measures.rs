//! What a staged release attains and has lost, measured from its files by the functions of this crate.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider,
};
use datafusion::common::{Result, exec_datafusion_err, internal_datafusion_err};
use datafusion::datasource::ViewTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;

use super::manifest::{FileEntry, Loss, Measure, Truth};
use super::place::Place;
use super::tables::sensitive;
use crate::physical::Summary;
use crate::spec::{GivenDomain, INDIVIDUAL, Spec};

/// A session of its own, in which the written files are `published` and the input is `original`.
pub(super) struct Measuring {
    context: SessionContext,
    spec: Arc<Spec>,
}

impl Measuring {
    pub async fn try_new(
        state: &SessionState,
        spec: &Arc<Spec>,
        place: &Place,
        files: &[FileEntry],
        original: LogicalPlan,
    ) -> Result<Self> {
        let context = empty_session(state)?;
        let urls = files.iter().map(|file| place.url_of(&file.path));
        let options =
            ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(".parquet");
        let config = ListingTableConfig::new_with_multi_paths(urls.collect::<Result<_>>()?)
            .with_listing_options(options)
            .infer_schema(&context.state())
            .await?;
        context.register_table("published", Arc::new(ListingTable::try_new(config)?))?;
        context.register_table("original", Arc::new(ViewTable::new(original, None)))?;
        Ok(Self {
            context,
            spec: Arc::clone(spec),
        })
    }

    /// Runs SQL over `published` and `original`.
    pub async fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.context.sql(sql).await?.collect().await
    }

    /// The columns of the written files.
    pub async fn published_schema(&self) -> Result<SchemaRef> {
        Ok(self.context.table_provider("published").await?.schema())
    }

    /// What the files attain, by `audit`. Refuses individuals in several classes and the like.
    pub async fn audit(&self) -> Result<Vec<Measure>> {
        let sql = format!(
            "SELECT section, measure, value, better, note FROM audit(published, {})",
            self.arguments(self.spec.qi())
        );
        let measures = read_measures(&self.query(&sql).await?);
        for measure in &measures {
            let fault = measure.section == "faults" && measure.better.is_some();
            if fault && measure.value.is_none_or(|value| value > 0.0) {
                return Err(internal_datafusion_err!(
                    "publish: nothing is published, because what was written has {}",
                    measure.measure
                ));
            }
        }
        let shown = |m: &Measure| m.measure != "duplicate_records";
        Ok(measures.into_iter().filter(shown).collect())
    }

    /// Whether everybody's published values cover his own, by `audit` with the input as original.
    pub async fn truth(&self) -> Result<Truth> {
        let columns = self.compared();
        let same_ids = self.spec.id().is_some();
        if columns.is_empty() {
            return Ok(truth("not", columns, 0, 0));
        }
        let ids = if same_ids {
            format!(", original_id => '{INDIVIDUAL}', same_ids => true")
        } else {
            String::new()
        };
        let sql = format!(
            "SELECT section, measure, value, better, note FROM audit(published, {}, original => original{ids}) \
             WHERE section = 'original'",
            self.arguments(&columns)
        );
        let measures = read_measures(&self.query(&sql).await?);
        let value = |name: &str| {
            let found = measures.iter().find(|m| m.measure == name);
            found.and_then(|m| m.value).ok_or_else(|| {
                internal_datafusion_err!("publish: the audit has no measure '{name}'")
            })
        };
        let (untrue, invented) = if same_ids {
            (value("untrue_individuals")?, value("invented_records")?)
        } else {
            (value("untraceable_individuals")?, value("invented_values")?)
        };
        let added = value("added_individuals")?;
        if untrue > 0.0 || invented > 0.0 || added > 0.0 {
            return Err(exec_datafusion_err!(
                "publish: nothing is published, because what was written is not true of the input when that is read \
                 again: {untrue} individuals, {invented} records, {added} individuals too many; if the input changes \
                 from one reading to the next, store it first"
            ));
        }
        let checked = if same_ids { "exact" } else { "possible" };
        Ok(truth(checked, columns, untrue as u64, invented as u64))
    }

    /// What was lost: of all columns as the algorithm counted it, and column by column from the files.
    pub async fn loss(&self, summary: &Summary) -> Result<Vec<Loss>> {
        let mut losses = vec![Loss {
            measure: "information_loss".to_owned(),
            column: None,
            value: Some(rounded(summary.information_loss)),
        }];
        let columns = self.compared();
        if columns.is_empty() {
            return Ok(losses);
        }
        let sql = format!(
            "SELECT measure, \"column\", value FROM information_loss(original, published, {}{}) \
             WHERE better IS NOT NULL AND measure NOT IN ('dm', 'dropped_records', 'dropped_individuals')",
            self.arguments(&columns),
            self.domains(&columns),
        );
        for batch in self.query(&sql).await? {
            for row in 0..batch.num_rows() {
                losses.push(Loss {
                    measure: text(&batch, 0, row).unwrap_or_default(),
                    column: text(&batch, 1, row),
                    value: number(&batch, 2, row).map(rounded),
                });
            }
        }
        Ok(losses)
    }

    /// Quasi-identifiers whose published values can be compared with the input's. The labels of a hierarchy cannot.
    pub fn compared(&self) -> Vec<String> {
        let plain = |column: &&String| !self.spec.hierarchies().contains_key(*column);
        self.spec.qi().iter().filter(plain).cloned().collect()
    }

    /// Roles as arguments of a measuring function.
    pub fn arguments(&self, qi: &[String]) -> String {
        let who = match self.spec.id() {
            Some(_) => format!("id => '{INDIVIDUAL}'"),
            None => "one_row_per_individual => true".to_owned(),
        };
        let sensitive = match sensitive(&self.spec).as_slice() {
            [one] => quoted(one),
            several => list(several),
        };
        format!("{who}, qi => {}, sensitive => {sensitive}", list(qi))
    }

    /// Which columns hold names, and the domains that were stated.
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
                format!("\"{}\": {values}", column.replace('"', "\"\""))
            })
            .collect();
        if !stated.is_empty() {
            arguments += &format!(", domain => {{{}}}", stated.join(", "));
        }
        arguments
    }
}

fn truth(checked: &str, columns: Vec<String>, untrue: u64, invented: u64) -> Truth {
    Truth {
        checked: checked.to_owned(),
        columns,
        untrue_individuals: untrue,
        invented_records: invented,
    }
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
    let state = SessionStateBuilder::new_from_existing(state.clone())
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

/// Texts as SQL.
pub(super) fn list(texts: &[String]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}
