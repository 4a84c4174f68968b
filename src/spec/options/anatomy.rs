//! What only the anatomizing functions are told.

use serde::{Deserialize, Serialize};

use super::SystemOptions;
use crate::spec::Spec;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct AnatomyOptions {
    /// Quasi-identifiers by sub-table, if chosen by hand.
    division: Vec<Vec<String>>,
}

impl Spec {
    /// Chooses by hand which quasi-identifiers share a sub-table of an anatomized release.
    pub fn with_division<T: Into<String>, U: IntoIterator<Item = T>>(
        mut self,
        tables: impl IntoIterator<Item = U>,
    ) -> Self {
        let names = |table: U| table.into_iter().map(Into::into).collect();
        let division: Vec<Vec<String>> = tables.into_iter().map(names).collect();
        match &mut self.options {
            SystemOptions::Anatomy(own) => own.division = division,
            _ => self.refuse("division", !division.is_empty()),
        }
        self
    }

    /// Quasi-identifiers by sub-table, if chosen by hand.
    pub(crate) fn division(&self) -> &[Vec<String>] {
        match &self.options {
            SystemOptions::Anatomy(own) => &own.division,
            _ => &[],
        }
    }
}
