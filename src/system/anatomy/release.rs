//! Releases of sub-tables.

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{ident, lit};

use super::{Anatomy, DIVISION, GID, SLPPA, SUBTABLE, TIMES};
use crate::spec::Spec;
use crate::system::release::{
    ReleaseFacts, ReleaseLayout, ReleaseWords, SystemRelease, TableLayout, columns,
};

impl SystemRelease for Anatomy {
    fn division_first(&self, spec: &Spec) -> Option<Spec> {
        (!self.division_only).then(|| spec.of_function(DIVISION.name))
    }

    /// A table for each part of the division, and one for the sensitive values, linked by the ids of groups.
    fn tables(
        &self,
        spec: &Spec,
        relation: &Schema,
        division: &[Vec<String>],
    ) -> Result<ReleaseLayout> {
        if self.division_only {
            return plan_err!(
                "publish: {} shows statistics of the input and anonymizes nothing; publish {}",
                spec.function(),
                SLPPA.name
            );
        }
        let parts = division.iter().zip(1..);
        let parts = parts.map(|(own, number)| (format!("qi_{number}"), own.as_slice()));
        let named = parts.chain([("sa".to_owned(), spec.sensitive())]);
        let tables = named.map(|(name, own)| TableLayout {
            columns: columns(relation, |column| {
                [GID, TIMES].contains(&column) || own.iter().any(|c| c == column)
            }),
            class: vec![GID.to_owned()],
            rows: ident(SUBTABLE).eq(lit(name.as_str())),
            name,
            shows_classes: false,
        });
        Ok(ReleaseLayout {
            tables: tables.collect(),
            class: vec![ident(GID)],
            table_name: Some(SUBTABLE),
        })
    }

    /// As many as a group has different sensitive values.
    fn smallest_told(&self, spec: &Spec) -> Result<u64> {
        let beta = spec.anatomy()?.requirements.beta;
        Ok(beta.denominator().div_ceil(beta.numerator().max(1)))
    }

    fn words(&self, release: &ReleaseFacts) -> ReleaseWords {
        ReleaseWords {
            guarantee: guarantee(release),
            exact: None,
            qi: vec![
                "as it is, in one of the tables that only random group ids link";
                release.qi.len()
            ],
            sensitive: "as it is, in a table of its own: this is what others must not learn about a person",
        }
    }
}

fn guarantee(release: &ReleaseFacts) -> Vec<String> {
    let protected = release.sensitive.join(", ");
    let mut said = vec![
        "Values are published as they are, and the links between them are cut. People are divided into groups; a reader learns \
         which values occur in each table of a group, and how often, and not which of different tables belong to one person."
            .to_owned(),
    ];
    let bounds = [
        (
            "alpha",
            "of the people of a group at most this share show the same in any one table".to_owned(),
        ),
        (
            "beta",
            format!(
                "of the people of a group at most this share have the same value of {protected}"
            ),
        ),
        (
            "gamma",
            "the product of these shares over all tables of a group is at most this".to_owned(),
        ),
        (
            "delta",
            format!(
                "a value's share of {protected} in a group is at most this far from its share of the whole table"
            ),
        ),
    ];
    let given = bounds.iter().filter_map(|(name, meaning)| {
        let bound = release.parameter(name)?;
        Some(format!("{bound}: {meaning} ({name})."))
    });
    said.extend(given);
    said
}
