//! What a call must say where fingerprints are published.

use std::sync::Arc;

use datafusion::common::Result;

use crate::error;
use crate::spec::{BlockSize, NullSensitive, Spec};
use crate::table::Taxonomy;
use crate::table::coding::Levels;

/// The hierarchy of the sensitive column, if it has a given one.
pub(crate) fn sensitive_tree(spec: &Spec) -> Option<&Arc<Taxonomy>> {
    spec.hierarchies().get(spec.sensitive().first()?)?.tree()
}

/// Whether two classes with the same published values may not form a third, so that no two blocks may publish the same:
/// shares of values are not closed under union (docs/theory/papers.md M1).
pub(super) fn needs_whole_table(spec: &Spec) -> bool {
    spec.parameter("value_l").is_some()
}

/// Checks what only this system asks for.
pub(super) fn check(spec: &Spec) -> Result<()> {
    let refuse =
        |argument: &str, message: &str| Err(error::argument(spec.function(), argument, message));
    if spec.is_refused("keep") {
        return refuse(
            "keep",
            "cannot be used: an individual publishes labels, not records, and what stands beside them would tell apart \
             individuals who share them",
        );
    }
    if spec.normalize {
        return refuse(
            "normalize",
            "cannot be used: sensitive values are those of their hierarchy; put other spellings below one label",
        );
    }
    if spec.null_sensitive == NullSensitive::Conservative {
        return refuse(
            "null_sensitive",
            "must be 'error' or 'drop_rows': a missing value would tell apart individuals who share all labels",
        );
    }
    if needs_whole_table(spec) && spec.block() != BlockSize::All {
        return refuse(
            "block",
            "must be 'all', or left out, with value_l: classes of two blocks may publish the same quasi-identifiers, and \
             together break it",
        );
    }
    check_hierarchy(spec)
}

fn check_hierarchy(spec: &Spec) -> Result<()> {
    let [column] = spec.sensitive() else {
        return Ok(());
    };
    let levels = spec.hierarchies().get(column);
    if matches!(levels, Some(Levels::Tree(_))) {
        return Ok(());
    }
    let given = match levels {
        Some(_) => "must be a file or table, which tells all values",
        None => "is missing",
    };
    let id = spec.id().unwrap_or("id");
    Err(error::argument(
        spec.function(),
        "hierarchy",
        format!(
            "of the sensitive column '{column}' {given}: {{{column}: 'file.csv'}}. One can be made, looked at and used: \
             CREATE VIEW labels AS SELECT * FROM hierarchy(input, column => {column}, by => 'even(5)'), or by => \
             'co_occurrence(5)', id => {id}; then hierarchy => {{{column}: 'labels'}}",
        ),
    ))
}
