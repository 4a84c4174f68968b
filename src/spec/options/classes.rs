//! What only functions that publish classes of records are told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SystemOptions;
use crate::spec::Spec;
use crate::table::Categories;

/// The name of the argument, and of the models' parameter that is the number of categories.
pub(crate) const CATEGORIES: &str = "categories";

static NO_CATEGORIES: BTreeMap<String, Categories> = BTreeMap::new();

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ClassOptions {
    keep: Vec<String>,
    categories: BTreeMap<String, Categories>,
}

impl Spec {
    /// Other columns to publish as they are.
    pub fn with_keep<T: Into<String>>(mut self, columns: impl IntoIterator<Item = T>) -> Self {
        let keep: Vec<String> = columns.into_iter().map(Into::into).collect();
        match &mut self.options {
            SystemOptions::Classes(own) => own.keep = keep,
            _ => self.refuse("keep", !keep.is_empty()),
        }
        self
    }

    /// Orders the values of a sensitive column in categories, from the most to the least sensitive.
    pub fn with_categories(mut self, column: impl Into<String>, categories: Categories) -> Self {
        // Models know how many there are; where attributes differ, the fewest.
        let fewest = match &mut self.options {
            SystemOptions::Classes(own) => {
                let others = own.categories.values().map(Categories::len);
                let fewest = others.chain([categories.len()]).min();
                own.categories.insert(column.into(), categories);
                fewest
            }
            _ => {
                self.refuse(CATEGORIES, true);
                Some(categories.len())
            }
        };
        match fewest {
            Some(fewest) => self.with_parameter(CATEGORIES, fewest),
            None => self,
        }
    }

    /// The kept columns.
    pub fn keep(&self) -> &[String] {
        match &self.options {
            SystemOptions::Classes(own) => &own.keep,
            _ => &[],
        }
    }

    /// Categories by sensitive column.
    pub fn categories(&self) -> &BTreeMap<String, Categories> {
        match &self.options {
            SystemOptions::Classes(own) => &own.categories,
            _ => &NO_CATEGORIES,
        }
    }
}
