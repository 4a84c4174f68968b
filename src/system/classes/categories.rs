//! Categories of sensitive values.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::Result;

use crate::error;
use crate::spec::{CATEGORIES, Spec};
use crate::system::Layout;
use crate::table::coding::ColumnCategories;

/// The categories of each sensitive column that has them, in the column's own type.
pub(crate) fn column_categories(
    spec: &Spec,
    layout: &Layout,
) -> Result<Vec<Option<ColumnCategories>>> {
    let column = |(name, field): (&String, &FieldRef)| {
        let Some(categories) = spec.categories().get(name) else {
            return Ok(None);
        };
        let read = ColumnCategories::try_new(categories, field.data_type());
        let read = read.and_then(|read| match spec.normalize && read.divides_spellings()? {
            true => Err(
                "have spellings of one value in two categories, while normalize counts them as one"
                    .to_owned(),
            ),
            false => Ok(read),
        });
        read.map(Some).map_err(|reason| {
            error::argument(
                spec.function(),
                "categories",
                format!("of '{name}' {reason}"),
            )
        })
    };
    let columns = spec.sensitive().iter().zip(layout.record_fields());
    columns.map(column).collect()
}

/// Either no sensitive column has categories, or every one has.
pub(in crate::system) fn check(spec: &Spec) -> Result<()> {
    let refuse = |message: String| Err(error::argument(spec.function(), "categories", message));
    if let Some(column) = spec
        .categories()
        .keys()
        .find(|c| !spec.sensitive().contains(c))
    {
        let nearest = error::did_you_mean(column, spec.sensitive().iter().map(String::as_str));
        return refuse(format!(
            "names column '{column}', which is not a sensitive column{nearest}"
        ));
    }
    let without = spec
        .sensitive()
        .iter()
        .find(|c| !spec.categories().contains_key(*c));
    match without {
        Some(column) if spec.parameter(CATEGORIES).is_some() => refuse(format!(
            "is missing for '{column}': give the categories of every sensitive column, {{{column}: …}}"
        )),
        _ => Ok(()),
    }
}
