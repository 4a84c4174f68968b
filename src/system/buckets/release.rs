//! Releases of local groups and buckets.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{ident, when};

use super::{BUCKET, BUCKETIZED, Buckets, COUNT, GROUP};
use crate::spec::{Output, Spec};
use crate::system::INDIVIDUAL;
use crate::system::release::{
    ReleaseFacts, ReleaseLayout, ReleaseWords, SystemRelease, TableLayout, columns,
};

impl SystemRelease for Buckets {
    fn tables(&self, spec: &Spec, relation: &Schema, _: &[Vec<String>]) -> Result<ReleaseLayout> {
        match spec.output() {
            Output::Detached => detached(spec, relation),
            Output::Rows => Ok(ReleaseLayout::one(relation, vec![GROUP.to_owned()])),
        }
    }

    fn smallest_told(&self, _: &Spec) -> Result<u64> {
        Ok(2)
    }

    fn words(&self, release: &ReleaseFacts) -> ReleaseWords {
        let secret = |qi: &String| {
            let rules = ["l", "t"].map(|rule| format!("{rule} of {qi}"));
            rules
                .iter()
                .any(|rule| release.parameters.contains_key(rule))
        };
        let qi = release.qi.iter().map(|qi| match secret(qi) {
            true => "generalized, so that a whole group shows the same, or in a bucket where its owner keeps it secret",
            false => "generalized, so that a whole class shows the same",
        });
        ReleaseWords {
            guarantee: guarantee(release),
            exact: Some(
                "The release is true: what every person shows covers the person's own values, and the values of every bucket \
                 are those of its members.",
            ),
            qi: qi.collect(),
            sensitive: "in buckets, apart from whose it is: this is what others must not learn about a person",
        }
    }
}

/// A table of individuals with the ids of buckets, and one of the values of buckets for each attribute.
fn detached(spec: &Spec, relation: &Schema) -> Result<ReleaseLayout> {
    let attributes = spec.local_requirement()?.attributes;
    let named = |suffix: &str| -> Vec<String> {
        let names = attributes.iter().map(|a| a.name.clone() + suffix);
        names.collect()
    };
    let (bids, values) = (named(BUCKET), named(BUCKETIZED));
    let person = || ident(INDIVIDUAL).is_not_null();
    let mut tables = vec![TableLayout {
        name: "individuals".to_owned(),
        columns: columns(relation, |column| {
            column != COUNT && values.iter().all(|v| v != column)
        }),
        class: vec![GROUP.to_owned()],
        rows: person(),
        shows_classes: true,
    }];
    for ((attribute, bid), value) in attributes.iter().zip(&bids).zip(&values) {
        tables.push(TableLayout {
            name: format!("{}_buckets", attribute.name),
            columns: columns(relation, |column| {
                [bid.as_str(), value, COUNT].contains(&column)
            }),
            class: vec![bid.clone()],
            rows: ident(bid).is_not_null(),
            shows_classes: false,
        });
    }
    let bid = coalesce(bids.iter().map(ident).collect());
    Ok(ReleaseLayout {
        tables,
        class: vec![when(person(), ident(GROUP)).otherwise(bid)?],
        table_name: None,
    })
}

fn guarantee(release: &ReleaseFacts) -> Vec<String> {
    let mut said = vec![format!(
        "Somebody who knows everything about a person that the person does not keep secret, of {}, and looks for that person \
         in the release, finds at least {} people who show the same and keep the same columns secret. Nothing published \
         says which of them it is.",
        release.qi.join(", "),
        release.smallest()
    )];
    for (name, value) in release.parameters {
        if let Some(column) = name.strip_prefix("l of ") {
            said.push(format!(
                "A secret value of {column} is in a bucket of at least {value} people with different values. Nothing \
                 published says which of the values is whose."
            ));
        } else if let Some(column) = name.strip_prefix("t of ") {
            said.push(format!(
                "A secret value of {column} is in a bucket whose shares of values are at most {value} away from those of all \
                 secret values of the column. Nothing published says which of the values is whose."
            ));
        }
    }
    said
}
