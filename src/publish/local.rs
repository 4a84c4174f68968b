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
use super::twin::{column, columns, failed};
use crate::check::{self, BucketRule, BucketTable, LocalColumn, ShownBuckets};
use crate::spec::{Output, Spec};
use crate::system::buckets::checked_rule;
use crate::system::{BUCKET, BUCKETIZED, COUNT, INDIVIDUAL, Layout, flag_name};

/// The verifier's own reading of what is asked for.
#[derive(Debug)]
pub(super) struct LocalTwin {
    k: usize,
    /// Quasi-identifiers that nobody keeps secret.
    plain: Vec<String>,
    attributes: Vec<Attribute>,
    detached: bool,
    /// Whether spellings of one sensitive value count as one.
    normalize: bool,
}

/// A column with secret values.
#[derive(Debug)]
struct Attribute {
    name: String,
    /// Whether it is a quasi-identifier, which others show.
    shown: bool,
    rule: BucketRule,
}

impl LocalTwin {
    pub fn of(spec: &Spec, layout: &Layout) -> Result<Self> {
        let requirement = spec.local_requirement()?;
        let mut attributes = vec![];
        for attribute in &requirement.attributes {
            attributes.push(Attribute {
                name: attribute.name.clone(),
                shown: attribute.qi.is_some(),
                rule: checked_rule(layout, attribute)?,
            });
        }
        let secret = |qi: &&String| attributes.iter().all(|a| a.name != **qi);
        Ok(Self {
            k: requirement.k,
            plain: spec.qi().iter().filter(secret).cloned().collect(),
            attributes,
            detached: spec.output() == Output::Detached,
            normalize: spec.normalize,
        })
    }

    /// Verifies whole local groups, whatever their buckets hold.
    pub fn verify_groups(&self, rows: &RecordBatch) -> Result<()> {
        let (mut semi_sensitive, mut sensitive) = (vec![], vec![]);
        for attribute in &self.attributes {
            let bucket = column(rows, &(attribute.name.clone() + BUCKET))?;
            let (kind, value) = match attribute.shown {
                true => (&mut semi_sensitive, column(rows, &attribute.name)?),
                false => (&mut sensitive, Arc::clone(&bucket)),
            };
            kind.push(LocalColumn {
                value,
                bucket,
                table: None,
            });
        }
        let individual = column(rows, INDIVIDUAL)?;
        let plain = columns(rows, &self.plain)?;
        let release = ShownBuckets::try_new(&individual, &plain, &semi_sensitive, &sensitive)?;
        check::verify_groups(&release, self.k).map_err(|violation| failed(&violation))
    }

    /// Verifies the buckets of every attribute, and measures what they attain.
    pub async fn verify_buckets(&self, measuring: &Measuring) -> Result<Vec<Measure>> {
        for attribute in &self.attributes {
            let name = |suffix: &str| quoted_name(&(attribute.name.clone() + suffix));
            let (bid, value) = (name(BUCKET), name(BUCKETIZED));
            let shown = match attribute.shown {
                true => format!("{} IS NOT NULL", quoted_name(&attribute.name)),
                false => "false".to_owned(),
            };
            let times = match self.detached {
                true => COUNT,
                false => "1",
            };
            let sql = format!(
                "SELECT {bid} AS bid, {value} AS value, {times} AS times, {INDIVIDUAL} AS who, {shown} AS shown \
                 FROM published WHERE {bid} IS NOT NULL OR {value} IS NOT NULL ORDER BY bid"
            );
            // How near a bucket is to all of them can be told of all of them only.
            let whole = matches!(attribute.rule, BucketRule::Closeness { .. });
            let (rule, detached) = (attribute.rule, self.detached);
            let one_spelling = self.normalize;
            let verify = move |rows: RecordBatch| verify_part(&rows, rule, detached, one_spelling);
            verify_parts(measuring, &sql, whole, Arc::new(verify)).await?;
        }
        measuring.audit_buckets().await
    }
}

/// Verifies whole buckets of one attribute: rows of members, rows of values, or rows that are both.
fn verify_part(
    rows: &RecordBatch,
    rule: BucketRule,
    detached: bool,
    one_spelling: bool,
) -> Result<()> {
    let [bid, value, times, who, shown] = rows.columns() else {
        return Err(failed(&"a column is missing"));
    };
    let value = match one_spelling {
        true => &check::one_spelling(value)?,
        false => value,
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
    let release = ShownBuckets::try_new(&who, &[], &[], &[member])?;
    check::verify_local(&release, 1, &[rule]).map_err(|violation| failed(&violation))?;
    Ok(())
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
