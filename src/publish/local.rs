//! Releases with local groups and buckets: what must hold of them, and whether they are true.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{cast, filter, is_not_null, is_null, nullif};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;

use super::comparison::differences;
use super::manifest::Measure;
use super::measuring::{Measuring, quoted_name};
use super::parts::verify_parts;
use super::verification::{FileVerifier, column, columns, failed, refused};
use crate::check::{BucketRequirement, BucketTable, LocalColumn, ShownPeople, Verifier};
use crate::spec::{Output, Spec};
use crate::system::{BUCKET, BUCKETIZED, COUNT, INDIVIDUAL, flag_name};

/// Verifies whole local groups, whatever their buckets hold.
pub(super) fn verify_groups(verifier: &Verifier, rows: &RecordBatch) -> Result<()> {
    let requirement = requirement(verifier)?;
    let mut attributes = vec![];
    for attribute in &requirement.attributes {
        let bucket = column(rows, &(attribute.name.clone() + BUCKET))?;
        attributes.push(LocalColumn {
            value: match attribute.semi_sensitive {
                true => column(rows, &attribute.name)?,
                false => Arc::clone(&bucket),
            },
            bucket,
            table: None,
        });
    }
    let people = ShownPeople {
        individual: column(rows, INDIVIDUAL)?,
        plain: columns(rows, &requirement.plain)?,
        attributes,
    };
    verifier.check_groups(&people).map_err(refused)
}

/// Verifies the buckets of every attribute, and measures what they attain.
pub(super) async fn verify_all_buckets(
    files: &FileVerifier,
    measuring: &Measuring,
) -> Result<Vec<Measure>> {
    for (place, attribute) in requirement(&files.verifier)?.attributes.iter().enumerate() {
        let name = |suffix: &str| quoted_name(&(attribute.name.clone() + suffix));
        let (bid, value) = (name(BUCKET), name(BUCKETIZED));
        let shown = match attribute.semi_sensitive {
            true => format!("{} IS NOT NULL", quoted_name(&attribute.name)),
            false => "false".to_owned(),
        };
        let times = match files.detached {
            true => COUNT,
            false => "1",
        };
        let sql = format!(
            "SELECT {bid} AS bid, {value} AS value, {times} AS times, {INDIVIDUAL} AS who, {shown} AS shown \
             FROM published WHERE {bid} IS NOT NULL OR {value} IS NOT NULL ORDER BY bid"
        );
        // How near a bucket is to all of them can be told of all of them only.
        let whole = attribute.is_of_whole_table();
        let (verifier, detached) = (Arc::clone(&files.verifier), files.detached);
        let verify = move |rows: RecordBatch| verify_buckets(&verifier, place, &rows, detached);
        verify_parts(measuring, &sql, whole, Arc::new(verify)).await?;
    }
    measuring.audit_buckets().await
}

fn requirement(verifier: &Verifier) -> Result<&BucketRequirement> {
    let requirement = verifier.buckets();
    requirement.ok_or_else(|| failed(&"it has no buckets"))
}

/// Verifies whole buckets of one attribute: rows of members, rows of values, or rows that are both.
fn verify_buckets(
    verifier: &Verifier,
    attribute: usize,
    rows: &RecordBatch,
    detached: bool,
) -> Result<()> {
    let [bid, value, times, who, shown] = rows.columns() else {
        return Err(failed(&"a column is missing"));
    };
    let members = is_not_null(who)?;
    let values = match detached {
        true => is_null(who)?,
        false => BooleanArray::from(vec![true; rows.num_rows()]),
    };
    // A member shows nothing beside its bucket.
    let hidden: BooleanArray = shown
        .as_boolean()
        .iter()
        .map(|s| Some(s != Some(true)))
        .collect();
    let beside = nullif(shown, &hidden)?;
    let member = LocalColumn {
        value: filter(&beside, &members)?,
        bucket: filter(bid, &members)?,
        table: Some(BucketTable {
            bucket: filter(bid, &values)?,
            value: filter(value, &values)?,
            individuals: filter(&cast(times, &DataType::UInt64)?, &values)?,
        }),
    };
    let who = filter(who, &members)?;
    let checked = verifier.check_buckets(attribute, &who, member);
    checked.map_err(refused)
}

/// Individuals whose secrets are not treated as they wish, and values in buckets that are not those of their members.
/// Without an id: values that are in buckets more often than they are secret.
pub(super) async fn differences_of_buckets(
    measuring: &Measuring,
    spec: &Spec,
) -> Result<(f64, f64)> {
    let (mut untrue, mut invented) = (0.0, 0.0);
    for attribute in spec.local_requirement()?.attributes {
        let name = quoted_name(&attribute.name);
        let bid = quoted_name(&(attribute.name.clone() + BUCKET));
        let bucketized = quoted_name(&(attribute.name.clone() + BUCKETIZED));
        let secret = match attribute.qi {
            Some(_) => quoted_name(&flag_name(&attribute.name)),
            None => "true".to_owned(),
        };
        let times = match spec.output() {
            Output::Detached => format!("coalesce({COUNT}, 0)"),
            Output::Rows => "1".to_owned(),
        };
        let published = format!(
            "SELECT {bid} AS place, anonymize_class_tuple({bucketized}) AS value, {times} AS n FROM published \
             WHERE {bucketized} IS NOT NULL"
        );
        if spec.id().is_none() {
            let secrets = format!(
                "SELECT 0 AS place, anonymize_class_tuple({name}) AS value, 1 AS n FROM original WHERE {secret}"
            );
            let published = format!("SELECT 0 AS place, value, n FROM ({published})");
            invented += differences(measuring, &published, &secrets).await?.0;
            continue;
        }
        if attribute.qi.is_some() {
            let wrong = format!(
                "SELECT CAST(count(*) AS DOUBLE) FROM published AS p JOIN original AS o ON p.{INDIVIDUAL} = o.{INDIVIDUAL} \
                 WHERE CASE WHEN o.{secret} THEN p.{name} IS NOT NULL ELSE p.{bid} IS NOT NULL END"
            );
            untrue += measuring.number(&wrong).await?;
        }
        let own = format!(
            "SELECT p.{bid} AS place, anonymize_class_tuple(o.{name}) AS value, 1 AS n \
             FROM published AS p JOIN original AS o ON p.{INDIVIDUAL} = o.{INDIVIDUAL} WHERE p.{bid} IS NOT NULL"
        );
        let (beyond, missing) = differences(measuring, &published, &own).await?;
        invented += beyond + missing;
    }
    Ok((untrue, invented))
}
