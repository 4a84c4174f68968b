//! What a release of a system consists of, and how a report tells of it.

use std::collections::BTreeMap;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ident, lit};

use crate::spec::Spec;

/// What sets releases of one system apart from those of the others.
pub(crate) trait SystemRelease {
    /// A call that has to run first: it shows which quasi-identifiers share a table.
    fn division_first(&self, _spec: &Spec) -> Option<Spec> {
        None
    }

    /// The tables that a relation is cut into. `division` are the quasi-identifiers that share a table, if they do.
    fn tables(
        &self,
        spec: &Spec,
        relation: &Schema,
        division: &[Vec<String>],
    ) -> Result<ReleaseLayout>;

    /// The fewest individuals that a class or group may have, or that may share a fingerprint. Smaller counts are not told.
    fn smallest_told(&self, spec: &Spec) -> Result<u64> {
        Ok(spec.model()?.min_individuals() as u64)
    }

    /// What a report says.
    fn words(&self, release: &ReleaseFacts) -> ReleaseWords;
}

/// The tables of a release, and how rows of the relation that was published belong to them.
#[derive(Debug)]
pub(crate) struct ReleaseLayout {
    pub tables: Vec<TableLayout>,
    /// What makes the class of a row of the relation.
    pub class: Vec<Expr>,
    /// The column of the relation that names the table of a row, if there is one. No table has it.
    pub table_name: Option<&'static str>,
}

/// A table of a release.
#[derive(Debug)]
pub(crate) struct TableLayout {
    /// Its name in the manifest.
    pub name: String,
    /// Its columns, in their order in the relation.
    pub columns: Vec<String>,
    /// The columns whose values make a class; its rows stand together.
    pub class: Vec<String>,
    /// Which rows of the relation belong to it, if to none of the tables before.
    pub rows: Expr,
    /// Whether each class can be verified by itself, and not only several tables together.
    pub shows_classes: bool,
}

impl ReleaseLayout {
    /// The relation as it is.
    pub fn one(relation: &Schema, class: Vec<String>) -> Self {
        Self {
            class: class.iter().map(ident).collect(),
            tables: vec![TableLayout {
                name: "published".to_owned(),
                columns: columns(relation, |_| true),
                class,
                rows: lit(true),
                shows_classes: true,
            }],
            table_name: None,
        }
    }
}

/// The columns of a relation that are shown.
pub(super) fn columns(relation: &Schema, shown: impl Fn(&str) -> bool) -> Vec<String> {
    let names = relation.fields().iter().map(|field| field.name());
    names.filter(|name| shown(name)).cloned().collect()
}

/// What is known of a release when it is told in words.
#[derive(Debug)]
pub(crate) struct ReleaseFacts<'a> {
    pub function: &'a str,
    /// The model with its parameters.
    pub model: &'a str,
    pub qi: &'a [String],
    pub sensitive: &'a [String],
    /// Parameters as they were written.
    pub parameters: &'a BTreeMap<String, String>,
    /// Individuals in the smallest class or local group, if this is measured.
    pub k: Option<f64>,
}

impl ReleaseFacts<'_> {
    /// A parameter, as it was written.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Individuals in the smallest class or local group.
    pub fn smallest(&self) -> u64 {
        self.k.map_or(0, |k| k as u64)
    }
}

/// What a report says of a release.
#[derive(Debug)]
pub(crate) struct ReleaseWords {
    /// The guarantee, a paragraph each.
    pub guarantee: Vec<String>,
    /// What was found where each individual could be compared with itself, if this is possible.
    pub exact: Option<&'static str>,
    /// How each quasi-identifier is published.
    pub qi: Vec<&'static str>,
    /// How sensitive columns are published.
    pub sensitive: &'static str,
}

/// What is said of all classes, with what their values satisfy.
pub(super) fn words_of_classes(
    release: &ReleaseFacts,
    of_values: impl IntoIterator<Item = String>,
) -> ReleaseWords {
    let first = format!(
        "Somebody who knows all of these about a person, {}, and looks for that person in the release, finds a class of \
         at least {} people who look the same. Nothing published says which of them it is.",
        release.qi.join(", "),
        release.smallest()
    );
    ReleaseWords {
        guarantee: [first].into_iter().chain(of_values).collect(),
        exact: Some(
            "The release is true: every person's published values cover the person's own, and no record was invented. Each \
             person was compared with itself.",
        ),
        qi: vec!["generalized, so that a whole class shows the same"; release.qi.len()],
        sensitive: "as it is: this is what others must not learn about a person",
    }
}
