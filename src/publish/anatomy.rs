//! Anatomized releases: what must hold of their tables together, and whether they are true.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::{Result, internal_datafusion_err};

use super::comparison::differences;
use super::manifest::Measure;
use super::measuring::{Measuring, OTHER_RELEASES, not_protected, quoted_name};
use super::parts::verify_parts;
use super::tables::{ReleaseTables, sensitive};
use super::verification::{FileVerifier, column, columns, failed, refused};
use crate::check::{self, AnatomyAttained, AnatomyTable, ShownTables, Verifier};
use crate::spec::Spec;
use crate::system::{GID, SUBTABLE, TIMES};

/// Verifies all groups, some at a time, against the shares of the whole release.
pub(super) async fn verify_sub_tables(
    files: &FileVerifier,
    measuring: &Measuring,
) -> Result<Vec<Measure>> {
    let [sensitive] = files.asked.sensitive.as_slice() else {
        return Err(failed(&"there is no sensitive column"));
    };
    let name = quoted_name(sensitive);
    let whole = format!(
        "SELECT {name}, sum({TIMES}) FROM published WHERE {SUBTABLE} = 'sa' GROUP BY {name}"
    );
    let whole = measuring.query(&whole).await?;
    let schema = whole.first().map(RecordBatch::schema);
    let schema = schema.ok_or_else(|| failed(&"there are no sensitive values"))?;
    let groups = GroupReader {
        verifier: Arc::clone(&files.verifier),
        qi: files.asked.qi.clone(),
        division: places(files)?,
        sensitive: sensitive.clone(),
        whole: concat_batches(&schema, &whole)?,
    };
    let verify = move |rows: RecordBatch| groups.verify(&rows);
    let sql = format!("SELECT {GID} AS of_group, * FROM published ORDER BY of_group");
    let attained = verify_parts(measuring, &sql, false, Arc::new(verify)).await?;
    let attained = attained.into_iter().reduce(AnatomyAttained::and);
    let attained = attained.ok_or_else(|| failed(&"there are no groups"))?;
    Ok(measures(&attained))
}

/// The places of each sub-table's columns among the quasi-identifiers.
fn places(files: &FileVerifier) -> Result<Vec<Vec<usize>>> {
    let place = |name: &String| files.asked.qi.iter().position(|qi| qi == name);
    let places = |own: &Vec<String>| own.iter().map(place).collect::<Option<Vec<_>>>();
    let division = files.division.iter().map(places).collect::<Option<_>>();
    division.ok_or_else(|| failed(&"a sub-table has a column that is no quasi-identifier"))
}

/// Reads groups out of rows of all tables.
struct GroupReader {
    verifier: Arc<Verifier>,
    qi: Vec<String>,
    division: Vec<Vec<usize>>,
    sensitive: String,
    /// Sensitive values and how many individuals of the release have each.
    whole: RecordBatch,
}

impl GroupReader {
    fn verify(&self, rows: &RecordBatch) -> Result<AnatomyAttained> {
        let (gid, count) = (column(rows, GID)?, column(rows, TIMES)?);
        let table = AnatomyTable {
            gid: &gid,
            columns: &columns(rows, &self.qi)?,
            count: &count,
        };
        let [values, counts] = self.whole.columns() else {
            return Err(internal_datafusion_err!("publish: a column is missing"));
        };
        let (subtable, sensitive) = (column(rows, SUBTABLE)?, column(rows, &self.sensitive)?);
        let whole = Some((values, counts));
        let shown =
            ShownTables::from_long_form(&subtable, table, &self.division, &sensitive, whole)?;
        self.verifier.check_tables(&shown).map_err(refused)
    }
}

/// What the groups attain, as an audit tells it.
fn measures(attained: &AnatomyAttained) -> Vec<Measure> {
    let measure =
        |section: &str, name: &str, value: f64, better: Option<&str>, note: &str| Measure {
            section: section.to_owned(),
            measure: name.to_owned(),
            value: Some(value),
            better: better.map(str::to_owned),
            note: note.to_owned(),
        };
    let lower = Some("lower");
    let share = |ratio: check::Ratio| ratio.numerator() as f64 / ratio.denominator() as f64;
    let mut measures = vec![
        measure(
            "table",
            "individuals",
            attained.individuals as f64,
            None,
            "individuals",
        ),
        measure("table", "groups", attained.groups as f64, None, "groups"),
        measure(
            "table",
            "group_min",
            attained.smallest_group as f64,
            Some("higher"),
            "individuals in the smallest group",
        ),
        measure(
            "table",
            "group_max",
            attained.largest_group as f64,
            None,
            "individuals in the largest group",
        ),
        measure(
            "models",
            "alpha",
            share(attained.alpha),
            lower,
            "the largest share of a tuple in a sub-table of a group",
        ),
        measure(
            "models",
            "beta",
            share(attained.beta),
            lower,
            "the largest share of a sensitive value in a group",
        ),
        measure(
            "models",
            "gamma",
            attained.gamma,
            lower,
            "the largest product of the shares of the most frequent tuples and of the most frequent sensitive value",
        ),
        measure(
            "models",
            "delta",
            attained.delta,
            lower,
            "the largest distance of a sensitive value's share of a group from its share of the whole table",
        ),
    ];
    measures.extend(not_protected(&[
        (
            "membership",
            "values are published as they are: whoever knows a tuple that is unique sees whether its owner is in the table",
        ),
        (
            "shared_tables",
            "what the columns of one sub-table say together is published as it is",
        ),
        (
            "correlations",
            "whoever knows which values usually belong together, such as a job and its salary, can link them again",
        ),
        (
            "known_values",
            "whoever knows the values of some of a group knows more about the others",
        ),
        OTHER_RELEASES,
    ]));
    measures
}

/// Rows of all tables that are published more often than the input has them, and less often.
pub(super) async fn differences_of_tables(
    measuring: &Measuring,
    spec: &Spec,
    tables: &ReleaseTables,
) -> Result<(f64, f64)> {
    let (mut beyond, mut missing) = (0.0, 0.0);
    let secret: Vec<String> = sensitive(spec).iter().map(|c| quoted_name(c)).collect();
    for table in &tables.all {
        let columns = table.schema.fields().iter().map(|f| f.name().as_str());
        let own = columns.filter(|name| ![GID, TIMES].contains(name));
        let own: Vec<String> = own.map(quoted_name).collect();
        let tuple = format!(
            "0 AS place, anonymize_class_tuple({}) AS value",
            own.join(", ")
        );
        let published = format!(
            "SELECT {tuple}, {TIMES} AS n FROM published WHERE {SUBTABLE} = '{}'",
            table.name
        );
        let input = format!(
            "SELECT {tuple}, 1 AS n FROM original WHERE {} IS NOT NULL",
            secret.join("")
        );
        let found = differences(measuring, &published, &input).await?;
        beyond += found.0;
        missing += found.1;
    }
    Ok((beyond, missing))
}
