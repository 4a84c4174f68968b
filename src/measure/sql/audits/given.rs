//! The arguments of a measuring call, taken one by one.

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;

use super::AuditEntry;
use crate::call::source::{Load, categories, hierarchy};
use crate::call::value::ArgumentValue;
use crate::error;
use crate::table::Categories;
use crate::table::coding::Levels;

/// What a call gives. Whatever nobody took is unknown.
#[derive(Debug)]
pub struct Given {
    entry: &'static AuditEntry,
    relations: Vec<(String, LogicalPlan)>,
    named: Vec<(String, ArgumentValue)>,
    /// Of each sensitive column that has some.
    categories: Vec<(String, Categories)>,
    hierarchies: Vec<(String, Levels)>,
}

impl Given {
    /// Checks names; values are checked when they are taken.
    pub fn try_new(
        entry: &'static AuditEntry,
        relations: Vec<(String, LogicalPlan)>,
        mut named: Vec<(String, ArgumentValue)>,
        load: &mut dyn Load,
    ) -> Result<Self> {
        let names = || {
            relations
                .iter()
                .map(|(n, _)| n)
                .chain(named.iter().map(|(n, _)| n))
        };
        for (i, name) in names().enumerate() {
            if names().take(i).any(|earlier| earlier == name) {
                return Err(error::argument(entry.name, name, "is given twice"));
            }
        }
        for (name, _) in &named {
            if !entry.arguments.iter().any(|a| a.name == name) {
                return Err(unknown(entry, name));
            }
        }
        for relation in entry.relations.iter().filter(|r| r.required) {
            if !relations.iter().any(|(name, _)| name == relation.name) {
                return Err(error::argument(
                    entry.name,
                    relation.name,
                    "is missing: name a table, a (SELECT …) or the path of files",
                ));
            }
        }
        let mut take = |name: &str| {
            let at = named.iter().position(|(n, _)| n == name)?;
            Some(named.swap_remove(at).1)
        };
        let categories = take("categories");
        let hierarchies = take("hierarchy");
        let sensitive = named.iter().find(|(n, _)| n == "sensitive");
        let sensitive = sensitive.and_then(|(_, value)| value.names());
        let sensitive = sensitive.unwrap_or_default();
        let categories = categories
            .map(|value| categories::read_each(&value, &sensitive, load))
            .transpose()
            .map_err(|reason| error::argument(entry.name, "categories", reason))?;
        let hierarchies = hierarchies
            .map(|value| hierarchy::read_map(&value, load))
            .transpose()
            .map_err(|reason| error::argument(entry.name, "hierarchy", reason))?;
        Ok(Self {
            entry,
            relations,
            named,
            categories: categories.unwrap_or_default(),
            hierarchies: hierarchies.unwrap_or_default(),
        })
    }

    /// The function's name.
    pub fn function(&self) -> &'static str {
        self.entry.name
    }

    /// A relation that the call must give.
    pub fn relation(&mut self, name: &str) -> Result<LogicalPlan> {
        self.optional_relation(name)
            .ok_or_else(|| self.refuse(name, "is missing"))
    }

    /// A relation that the call may give.
    pub fn optional_relation(&mut self, name: &str) -> Option<LogicalPlan> {
        let at = self.relations.iter().position(|(n, _)| n == name)?;
        Some(self.relations.swap_remove(at).1)
    }

    /// Any argument.
    pub fn take(&mut self, name: &str) -> Option<ArgumentValue> {
        let at = self.named.iter().position(|(n, _)| n == name)?;
        Some(self.named.swap_remove(at).1)
    }

    /// The categories of a sensitive column.
    pub fn categories(&mut self, column: &str) -> Option<Categories> {
        let at = self.categories.iter().position(|(of, _)| of == column)?;
        Some(self.categories.swap_remove(at).1)
    }

    /// The hierarchies of columns that are published as labels.
    pub fn hierarchies(&mut self) -> Vec<(String, Levels)> {
        std::mem::take(&mut self.hierarchies)
    }

    /// One column.
    pub fn column(&mut self, name: &str) -> Result<Option<String>> {
        self.take(name)
            .map(|value| match value.text().filter(|text| !text.is_empty()) {
                Some(text) => Ok(text.to_owned()),
                None => Err(self.wrong(name, "must be the name of one column", &value)),
            })
            .transpose()
    }

    /// Some columns; none if the argument is not given.
    pub fn columns(&mut self, name: &str) -> Result<Vec<String>> {
        match self.take(name) {
            None => Ok(vec![]),
            Some(value) => value
                .names()
                .ok_or_else(|| self.wrong(name, "must be a list of column names", &value)),
        }
    }

    /// True or false; false if the argument is not given.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        match self.take(name) {
            None => Ok(false),
            Some(ArgumentValue::Boolean(flag)) => Ok(flag),
            Some(value) => Err(self.wrong(name, "must be true or false", &value)),
        }
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>> {
        self.take(name)
            .map(|value| {
                let count = match &value {
                    ArgumentValue::Number(digits) => digits.parse::<u64>().ok().filter(|n| *n > 0),
                    _ => None,
                };
                count
                    .ok_or_else(|| self.wrong(name, "must be a whole number of at least 1", &value))
            })
            .transpose()
    }

    /// A decimal number above 0, as a fraction.
    pub fn fraction(&mut self, name: &str) -> Result<Option<(u64, u64)>> {
        self.take(name)
            .map(|value| {
                let fraction = match &value {
                    ArgumentValue::Number(digits) => fraction(digits),
                    _ => None,
                };
                fraction.ok_or_else(|| {
                    self.wrong(
                        name,
                        "must be a decimal number above 0, such as 2.5",
                        &value,
                    )
                })
            })
            .transpose()
    }

    /// A share above 0 and at most 1, as it was written.
    pub fn share(&mut self, name: &str) -> Result<Option<String>> {
        self.take(name)
            .map(|value| {
                let share = match &value {
                    ArgumentValue::Number(digits) => {
                        fraction(digits).filter(|(a, b)| a <= b).map(|_| digits)
                    }
                    _ => None,
                };
                share.cloned().ok_or_else(|| {
                    self.wrong(name, "must be a share above 0 and at most 1", &value)
                })
            })
            .transpose()
    }

    /// A seed.
    pub fn seed(&mut self) -> Result<Option<String>> {
        self.take("seed")
            .map(|value| match value {
                ArgumentValue::Number(seed) | ArgumentValue::Text(seed) => Ok(seed),
                other => Err(self.wrong("seed", "must be a number or a string", &other)),
            })
            .transpose()
    }

    /// An error about an argument.
    pub fn refuse(&self, name: &str, message: impl AsRef<str>) -> DataFusionError {
        error::argument(self.entry.name, name, message)
    }

    /// An error about the value of an argument.
    pub fn wrong(&self, name: &str, allowed: &str, value: &ArgumentValue) -> DataFusionError {
        self.refuse(name, format!("{allowed}, not {value}"))
    }
}

/// A decimal number above 0 without passing through floating point.
fn fraction(digits: &str) -> Option<(u64, u64)> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let numerator: u64 = format!("{whole}{part}").parse().ok()?;
    let denominator = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    (numerator > 0).then_some((numerator, denominator))
}

fn unknown(entry: &AuditEntry, name: &str) -> DataFusionError {
    let relations = entry.relations.iter().map(|r| r.name);
    let names: Vec<&str> = relations
        .chain(entry.arguments.iter().map(|a| a.name))
        .collect();
    let nearest = error::did_you_mean(name, names.iter().copied());
    error::call(
        entry.name,
        format!(
            "there is no argument '{name}'{nearest} (arguments: {})",
            names.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn fractions_are_exact() {
        assert_eq!(fraction("2.50"), Some((25, 10)));
        assert_eq!(fraction("3"), Some((3, 1)));
        assert_eq!(fraction("0.1"), Some((1, 10)));
        for wrong in ["0", "0.0", "-1", "1e3", "", "1.2.3"] {
            assert_eq!(fraction(wrong), None, "{wrong}");
        }
    }
}
