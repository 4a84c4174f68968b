//! The keys of a table of a job, taken one by one. Whatever nobody took is unknown.

use datafusion::common::utils::datafusion_strsim::levenshtein;
use toml::{Table, Value};

use crate::Failure;

/// A table of a job.
pub struct Keys {
    path: String,
    table: Table,
}

impl Keys {
    pub fn new(path: &str, table: Table) -> Self {
        Self {
            path: path.to_owned(),
            table,
        }
    }

    /// A text that must be there.
    pub fn required(&mut self, key: &str) -> Result<String, Failure> {
        let name = self.name(key);
        let text = self.text(key)?;
        text.ok_or_else(|| format!("{name} is missing").into())
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, Failure> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{} must be a text in quotes", self.name(key)).into()),
        }
    }

    /// True or false.
    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, Failure> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Boolean(flag)) => Ok(Some(flag)),
            Some(_) => Err(format!("{} must be true or false", self.name(key)).into()),
        }
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, key: &str) -> Result<Option<usize>, Failure> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Integer(n)) if n > 0 => Ok(Some(usize::try_from(n)?)),
            Some(_) => {
                Err(format!("{} must be a whole number of at least 1", self.name(key)).into())
            }
        }
    }

    /// A table that must be there.
    pub fn table(&mut self, key: &str) -> Result<Table, Failure> {
        let name = self.name(key);
        let table = self.optional_table(key)?;
        table.ok_or_else(|| format!("[{name}] is missing").into())
    }

    /// A table.
    pub fn optional_table(&mut self, key: &str) -> Result<Option<Table>, Failure> {
        match self.table.remove(key) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(_) => {
                Err(format!("{} must be a table, [{}]", self.name(key), self.name(key)).into())
            }
        }
    }

    /// Whatever is left.
    pub fn rest(self) -> Table {
        self.table
    }

    /// Refuses whatever is left, with the nearest of the names that there are.
    pub fn finish(self, known: &[&str]) -> Result<(), Failure> {
        let Some(key) = self.table.keys().next() else {
            return Ok(());
        };
        let near = nearest(key, known);
        let near = near.map(|name| format!("; did you mean '{}'?", self.name(name)));
        let near = near.unwrap_or_else(|| format!(" (keys: {})", known.join(", ")));
        Err(format!("there is no key '{}'{near}", self.name(key)).into())
    }

    fn name(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

/// The name that is meant, if one is near.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known
        .iter()
        .map(|known| (levenshtein(name, known), *known))
        .filter(|(distance, known)| *distance <= 1 + known.len() / 3);
    near.min().map(|(_, known)| known)
}
