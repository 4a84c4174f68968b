//! Whether a release is true of its input, which is read again with pseudonyms instead of ids, so that everybody can be
//! compared with himself.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, ident, when,
};

use super::anatomy::differences_of_tables;
use super::local::differences_of_buckets;
use super::manifest::Truth;
use super::measuring::{Audited, Measuring, quoted_name};
use super::tables::{ReleaseTables, sensitive};
use crate::spec::{Notation, ReleaseKey, Spec};
use crate::system::{Compared, INDIVIDUAL, flag_name, sensitive_tree};
use crate::table::coding::{canonical, hex};

/// The input, in the form that the operators see, under the names of the published columns.
///
/// Where there is an id, it is replaced by the pseudonym that the release gives it.
pub(super) fn original(spec: &Spec, canonical: LogicalPlan) -> Result<LogicalPlan> {
    let fields = canonical.schema().fields().clone();
    let mut records = LogicalPlanBuilder::from(canonical);
    let mut columns = vec![];
    if spec.id().is_some() {
        // Asked of the id and not of its pseudonym, so that what needs neither is read without a hash.
        records = records.filter(ident(fields[0].name()).is_not_null())?;
        let function = ScalarUDF::from(PseudonymOf::new(spec.key()?.clone()));
        let id = ident(fields[0].name());
        let pseudonym = ScalarFunction::new_udf(Arc::new(function), vec![id]);
        columns.push(Expr::ScalarFunction(pseudonym).alias(INDIVIDUAL));
    }
    let names = published_names(spec);
    if names.len() + 1 != fields.len() {
        return internal_err!("publish: the input is not in canonical form");
    }
    for (field, name) in fields[1..].iter().zip(names) {
        let value = ident(field.name());
        // What cannot be measured is published as missing.
        let measured = spec.qi().contains(&name) && !spec.is_categorical(&name);
        let exact = !spec.properties().generalizes;
        let value = match exact && measured && field.data_type().is_floating() {
            true => when(isnan(value.clone()).is_not_true(), value).end()?,
            false => value,
        };
        columns.push(value.alias(name));
    }
    records.project(columns)?.build()
}

/// Compares the written files with the input. Refuses what is not true of it.
pub(super) async fn truth(
    measuring: &Measuring,
    spec: &Spec,
    tables: &ReleaseTables,
) -> Result<Truth> {
    let columns = measuring.compared();
    let compared = spec.properties().compared;
    let (untrue, invented) = match compared {
        Compared::Labels => {
            let (uncovered, invented) = labels(measuring, spec).await?;
            let untrue = quasi_identifiers(measuring, spec, &columns).await?;
            (untrue + uncovered, invented)
        }
        Compared::Buckets => {
            let (unwished, invented) = differences_of_buckets(measuring, spec).await?;
            let untrue = quasi_identifiers(measuring, spec, &columns).await?;
            (untrue + unwished, invented)
        }
        Compared::Tables => {
            let (beyond, missing) = differences_of_tables(measuring, spec, tables).await?;
            (missing, beyond)
        }
        Compared::Records if columns.is_empty() => (0.0, 0.0),
        Compared::Records if spec.id().is_some() => {
            let differences = measuring.differences(&columns, &sensitive(spec)).await?;
            (differences.untrue, differences.invented)
        }
        // Without ids only what is possible can be told.
        Compared::Records => {
            let (mut untrue, mut invented) = (0.0, 0.0);
            for secret in &sensitive(spec) {
                let tables = "published, original => original";
                let audited = measuring.against_original(tables, &columns, secret).await?;
                untrue += untraceable_individuals(&audited)?;
                invented += audited.value("invented_values")?;
            }
            (untrue, invented)
        }
    };
    if untrue > 0.0 || invented > 0.0 {
        return Err(exec_datafusion_err!(
            "publish: nothing is published, because what was written is not true of the input when that is read again: \
             {untrue} individuals, {invented} records; if the input changes from one reading to the next, store it first"
        ));
    }
    let checked = match (compared, spec.id()) {
        // Nobody can be found again in the tables.
        (Compared::Tables, _) => "possible",
        (Compared::Records, _) if columns.is_empty() => "not",
        (_, Some(_)) => "exact",
        (_, None) => "possible",
    };
    Ok(Truth {
        checked: checked.to_owned(),
        columns,
        untrue_individuals: 0,
        invented_records: 0,
    })
}

/// How often values stand in the one and not in the other, and the other way round. Both have the columns `place`,
/// `value` and `n`, how often.
pub(super) async fn differences(
    measuring: &Measuring,
    published: &str,
    input: &str,
) -> Result<(f64, f64)> {
    let balance = format!(
        "SELECT place, value, sum(n) AS n FROM (SELECT place, value, CAST(n AS BIGINT) AS n FROM ({published}) \
         UNION ALL SELECT place, value, -CAST(n AS BIGINT) AS n FROM ({input})) GROUP BY place, value"
    );
    let beyond = |n: &str| {
        format!("SELECT CAST(coalesce(sum({n}), 0) AS DOUBLE) FROM ({balance}) WHERE {n} > 0")
    };
    Ok((
        measuring.number(&beyond("n")).await?,
        measuring.number(&beyond("-n")).await?,
    ))
}

/// Individuals that nobody of the input can be.
fn untraceable_individuals(audited: &Audited) -> Result<f64> {
    Ok(audited.value("untraceable_individuals")? + audited.value("added_individuals")?)
}

/// Individuals whose published quasi-identifiers do not cover their own, whatever their sensitive values.
async fn quasi_identifiers(measuring: &Measuring, spec: &Spec, columns: &[String]) -> Result<f64> {
    if columns.is_empty() {
        return Ok(0.0);
    }
    if spec.id().is_some() {
        return Ok(measuring.differences(columns, &[]).await?.untrue);
    }
    let buckets = spec.properties().compared == Compared::Buckets;
    let nothing = "__nothing".to_owned();
    let select = |blank: bool, from: &str| {
        let value = columns.iter().map(|column| match quoted_name(column) {
            // In text an empty cell would be a missing value, and not one that is in a bucket.
            name if blank => format!("coalesce({name}, '*') AS {name}"),
            name => name,
        });
        let columns: Vec<String> = value.chain([format!("0 AS {nothing}")]).collect();
        format!("(SELECT {} FROM {from})", columns.join(", "))
    };
    // Rows of buckets are nobody's.
    let people = match buckets {
        true => format!("published WHERE {INDIVIDUAL} IS NOT NULL"),
        false => "published".to_owned(),
    };
    let text = buckets && spec.notation == Notation::Text;
    let relations = format!(
        "{}, original => {}",
        select(text, &people),
        select(false, "original")
    );
    let audited = measuring.against_original(&relations, columns, &nothing);
    untraceable_individuals(&audited.await?)
}

/// Individuals with a value that none of their labels stands for, and labels that stand for no value. Without an id:
/// labels that more individuals publish than have a value below them.
async fn labels(measuring: &Measuring, spec: &Spec) -> Result<(f64, f64)> {
    let column = quoted_name(&sensitive(spec)[0]);
    let levels = sensitive_tree(spec).map_or(0, |taxonomy| taxonomy.tree().height());
    let levels: Vec<String> = (0..=levels).map(|n| format!("level_{n}")).collect();
    let pairs = format!(
        "SELECT level_0 AS value, unnest([{}]) AS label FROM labels",
        levels.join(", ")
    );
    // Every value of an individual with every label above it.
    let who = match spec.id() {
        Some(_) => format!("{INDIVIDUAL}, "),
        None => String::new(),
    };
    let own = format!(
        "SELECT {who}value, label FROM original JOIN ({pairs}) AS pairs ON {column} = value WHERE label IS NOT NULL"
    );
    if spec.id().is_none() {
        let count = |what: &str, from: &str| {
            format!("SELECT {what} AS label, count(*) AS n FROM {from} GROUP BY 1")
        };
        let sql = format!(
            "SELECT CAST(coalesce(sum(greatest(p.n - coalesce(o.n, 0), 0)), 0) AS DOUBLE) \
             FROM ({}) AS p LEFT JOIN ({}) AS o ON p.label = o.label",
            count(&column, "published"),
            count("label", &format!("({own}) AS own")),
        );
        return Ok((0.0, measuring.number(&sql).await?));
    }
    let shown = format!("SELECT DISTINCT {INDIVIDUAL}, {column} AS label FROM published");
    let both = format!("p.{INDIVIDUAL} = o.{INDIVIDUAL} AND p.label = o.label");
    let uncovered = format!(
        "SELECT CAST(count(DISTINCT {INDIVIDUAL}) AS DOUBLE) FROM \
           (SELECT o.{INDIVIDUAL}, o.value FROM ({own}) AS o LEFT JOIN ({shown}) AS p ON {both} \
            WHERE o.{INDIVIDUAL} IN (SELECT {INDIVIDUAL} FROM published) \
            GROUP BY o.{INDIVIDUAL}, o.value HAVING count(p.label) = 0)"
    );
    let invented = format!(
        "SELECT CAST(count(*) AS DOUBLE) FROM ({shown}) AS p LEFT ANTI JOIN ({own}) AS o ON {both}"
    );
    Ok((
        measuring.number(&uncovered).await?,
        measuring.number(&invented).await?,
    ))
}

fn published_names(spec: &Spec) -> Vec<String> {
    let qi = spec.qi().iter();
    let names = qi.cloned().chain(sensitive(spec));
    let names = names.chain(spec.keep().iter().cloned());
    let secret = spec.semi_sensitive().into_iter();
    names
        .chain(secret.map(|(name, _)| flag_name(name)))
        .collect()
}

/// The pseudonym that a release gives to an id. Never registered, never printed: it holds the key.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PseudonymOf {
    key: ReleaseKey,
    signature: Signature,
}

impl PseudonymOf {
    fn new(key: ReleaseKey) -> Self {
        Self {
            key,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for PseudonymOf {
    fn name(&self) -> &str {
        "anonymize_pseudonym"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    /// Never NULL: it is only asked where there is an id, and nobody needs to look at pseudonyms to know.
    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ids = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(pseudonyms(&self.key, &ids)?))
    }
}

fn pseudonyms(key: &ReleaseKey, ids: &ArrayRef) -> Result<ArrayRef> {
    let converter = RowConverter::new(vec![SortField::new(ids.data_type().clone())])?;
    let rows = converter.convert_columns(&[canonical(ids)])?;
    let mut names = StringBuilder::new();
    // Records of one individual often stand together: one hash serves them all.
    let (mut last, mut name) = (None, vec![]);
    for i in 0..ids.len() {
        if ids.is_null(i) {
            names.append_null();
            continue;
        }
        let id = rows.row(i);
        let pseudonym = match last {
            Some((same, pseudonym)) if same == id => pseudonym,
            _ => key.tag(id.data()).pseudonym,
        };
        last = Some((id, pseudonym));
        names.append_value(hex(&pseudonym, &mut name));
    }
    Ok(Arc::new(names.finish()))
}
