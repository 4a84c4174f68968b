//! The arguments of a call, taken one by one.
//!
//! SQL, ordinary table functions and Rust write arguments in their own ways. All of them become [`Arguments`]: every value has
//! a name that the [`Function`] lists, and whoever plans the call takes each in the form that it needs.

mod function;

use datafusion::common::{DFSchema, DataFusionError, Result, internal_err};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;

use super::source::{Load, categories, hierarchy};
use super::value::ArgumentValue;
use crate::error;
use crate::table::Categories;
use crate::table::coding::Levels;

pub use function::{Argument, ArgumentKind, DefaultValue, Function};

/// An argument as it was written.
#[derive(Debug, Clone)]
pub(crate) enum Written {
    /// In SQL.
    Sql(SqlExpr),
    /// As a constant.
    Value(ArgumentValue),
    /// As a plan.
    Plan(LogicalPlan),
}

/// Looks up what arguments name.
pub(crate) trait Resolve: Load {
    /// The value of an expression; `None` unless it is constant.
    fn constant(&mut self, expr: &SqlExpr) -> Option<ArgumentValue>;

    /// The plan of a relation, with the types that it will have.
    fn relation(&mut self, function: &str, written: Written) -> Result<LogicalPlan>;

    /// An expression over a schema.
    fn expression(&mut self, expr: SqlExpr, schema: &DFSchema) -> Result<Expr>;
}

/// What a call gives.
pub(crate) struct Arguments<'a> {
    function: &'static Function,
    relations: Vec<(String, Written)>,
    values: Vec<(String, ArgumentValue)>,
    resolve: &'a mut dyn Resolve,
}

impl<'a> Arguments<'a> {
    /// Names what was written without a name, and checks all names; values are checked when they are taken.
    pub(super) fn try_new(
        function: &'static Function,
        written: Vec<(Option<String>, Written)>,
        resolve: &'a mut dyn Resolve,
    ) -> Result<Self> {
        let mut arguments = Self {
            function,
            relations: vec![],
            values: vec![],
            resolve,
        };
        let names: Vec<String> = written.iter().filter_map(|(n, _)| n.clone()).collect();
        let is_named = |argument: &&Argument| names.iter().any(|name| name == argument.name);
        let mut free = function.positional().iter().filter(|a| !is_named(a));
        let mut after_named = false;
        for (name, written) in written {
            let free = match name {
                Some(name) => {
                    after_named |= !arguments.is_relation(&name);
                    arguments.add(name, written)?;
                    continue;
                }
                None if after_named => {
                    let message = "an argument without a name stands after one with a name";
                    return Err(error::call(function.name, message));
                }
                None => free.next(),
            };
            match free {
                Some(argument) if !is_struct(&written) => {
                    arguments.add(argument.name.to_owned(), written)?;
                }
                // A struct of arguments, as ordinary table functions are called.
                _ => match arguments.constant(written) {
                    Some(ArgumentValue::Map(options)) => {
                        for (name, value) in options {
                            arguments.add(name, Written::Value(value))?;
                        }
                    }
                    _ => {
                        let twice = function.positional().iter().find(is_named);
                        let twice = twice.map(|a| arguments.refuse(a.name, "is given twice"));
                        return Err(twice.unwrap_or_else(|| function.too_many()));
                    }
                },
            }
        }
        arguments.check_names()?;
        Ok(arguments)
    }

    fn is_relation(&self, name: &str) -> bool {
        let argument = self.function.argument(name);
        argument.is_some_and(|a| a.kind == ArgumentKind::Relation)
    }

    fn add(&mut self, name: String, written: Written) -> Result<()> {
        if self.names().any(|known| known == name) {
            return Err(self.refuse(&name, "is given twice"));
        }
        if self.is_relation(&name) {
            self.relations.push((name, written));
            return Ok(());
        }
        match self.constant(written) {
            Some(value) => self.values.push((name, value)),
            None => {
                let message = "must be constant: it is needed to plan the query";
                return Err(self.refuse(&name, message));
            }
        }
        Ok(())
    }

    fn constant(&mut self, written: Written) -> Option<ArgumentValue> {
        match written {
            Written::Sql(expr) => self.resolve.constant(&expr),
            Written::Value(value) => Some(value),
            Written::Plan(_) => None,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let relations = self.relations.iter().map(|(name, _)| name.as_str());
        relations.chain(self.values.iter().map(|(name, _)| name.as_str()))
    }

    fn check_names(&self) -> Result<()> {
        for (name, _) in &self.values {
            if self.function.argument(name).is_none() {
                return Err(self.function.unknown(name));
            }
        }
        for argument in self.function.arguments.iter() {
            let required = argument.default == DefaultValue::Required;
            if required && self.is_relation(argument.name) && !self.has(argument.name) {
                let message = "is missing: name a table, a (SELECT …) or the path of files";
                return Err(self.refuse(argument.name, message));
            }
        }
        Ok(())
    }

    /// Refuses what nobody took, which is a mistake of the function.
    pub(super) fn finish(&self) -> Result<()> {
        match self.names().next() {
            Some(name) => internal_err!("{} lists {name} and does not read it", self.function()),
            None => Ok(()),
        }
    }

    /// The function's name.
    pub fn function(&self) -> &'static str {
        self.function.name
    }

    /// Whether an argument is given that nobody has taken yet.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// A relation that the call must give.
    pub fn relation(&mut self, name: &str) -> Result<LogicalPlan> {
        let relation = self.optional_relation(name)?;
        relation.ok_or_else(|| self.refuse(name, "is missing"))
    }

    /// A relation that the call may give.
    pub fn optional_relation(&mut self, name: &str) -> Result<Option<LogicalPlan>> {
        let written = taken(&mut self.relations, name);
        written
            .map(|written| self.resolve.relation(self.function.name, written))
            .transpose()
    }

    /// The name under which a relation is given, where it need not be one of a table.
    pub fn relation_name(&mut self, name: &str) -> Option<String> {
        let written = taken(&mut self.relations, name)?;
        let value = self.constant(written)?;
        value.text().map(str::to_owned)
    }

    /// Any argument.
    pub fn take(&mut self, name: &str) -> Option<ArgumentValue> {
        taken(&mut self.values, name)
    }

    /// All arguments that are left and are no relations.
    pub fn take_all(&mut self) -> Vec<(String, ArgumentValue)> {
        std::mem::take(&mut self.values)
    }

    /// What looks up the names in arguments.
    pub fn load(&mut self) -> &mut dyn Load {
        self.resolve
    }

    /// An expression over a schema.
    pub fn expression(&mut self, expr: SqlExpr, schema: &DFSchema) -> Result<Expr> {
        self.resolve.expression(expr, schema)
    }

    /// The categories of each of these sensitive columns that has some.
    pub fn categories(&mut self, sensitive: &[String]) -> Result<Vec<(String, Categories)>> {
        let Some(value) = self.take("categories") else {
            return Ok(vec![]);
        };
        categories::read_each(&value, sensitive, self.load())
            .map_err(|reason| self.refuse("categories", reason))
    }

    /// The hierarchies of columns that are published as labels.
    pub fn hierarchies(&mut self) -> Result<Vec<(String, Levels)>> {
        let Some(value) = self.take("hierarchy") else {
            return Ok(vec![]);
        };
        hierarchy::read_map(&value, self.load()).map_err(|reason| self.refuse("hierarchy", reason))
    }

    /// An argument as `read` reads it; `allowed` says what that is.
    pub fn read<T>(
        &mut self,
        name: &str,
        allowed: &str,
        read: impl FnOnce(&ArgumentValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let wrong = || self.wrong(name, &format!("must be {allowed}"), &value);
        read(&value).map(Some).ok_or_else(wrong)
    }

    /// One column.
    pub fn column(&mut self, name: &str) -> Result<Option<String>> {
        self.read(name, "the name of one column", |value| {
            let text = value.text().filter(|text| !text.is_empty())?;
            Some(text.to_owned())
        })
    }

    /// Some columns; none if the argument is not given.
    pub fn columns(&mut self, name: &str) -> Result<Vec<String>> {
        let columns = self.read(name, "a list of column names", ArgumentValue::names)?;
        Ok(columns.unwrap_or_default())
    }

    /// True or false; false if the argument is not given.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// True or false.
    pub fn optional_flag(&mut self, name: &str) -> Result<Option<bool>> {
        self.read(name, "true or false", |value| match value {
            ArgumentValue::Boolean(flag) => Some(*flag),
            _ => None,
        })
    }

    /// A whole number of at least 1.
    pub fn count(&mut self, name: &str) -> Result<Option<u64>> {
        self.number(name, "a whole number of at least 1", |digits| {
            digits.parse().ok().filter(|n| *n > 0)
        })
    }

    /// A whole number within bounds.
    pub fn count_within(&mut self, name: &str, least: u64, most: u64) -> Result<Option<u64>> {
        let allowed = match most {
            u64::MAX => "a whole number".to_owned(),
            _ => format!("a whole number between {least} and {most}"),
        };
        self.number(name, &allowed, |digits| {
            let number = digits.parse().ok();
            number.filter(|n| (least..=most).contains(n))
        })
    }

    /// A decimal number above 0, as a fraction.
    pub fn fraction(&mut self, name: &str) -> Result<Option<(u64, u64)>> {
        self.number(name, "a decimal number above 0, such as 2.5", fraction)
    }

    /// A share above 0 and at most 1, as it was written.
    pub fn share(&mut self, name: &str) -> Result<Option<String>> {
        self.number(name, "a share above 0 and at most 1", |digits| {
            let share = fraction(digits).filter(|(a, b)| a <= b);
            share.map(|_| digits.to_owned())
        })
    }

    /// A number, read from its digits.
    pub fn number<T>(
        &mut self,
        name: &str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        self.read(name, allowed, |value| match value {
            ArgumentValue::Number(digits) => read(digits),
            _ => None,
        })
    }

    /// One of some texts.
    pub fn choice(&mut self, name: &str, choices: &[&'static str]) -> Result<Option<&'static str>> {
        let allowed = format!("one of '{}'", choices.join("', '"));
        self.read(name, &allowed, |value| {
            let text = value.text()?;
            choices.iter().find(|c| **c == text).copied()
        })
    }

    /// Columns with domains, which are read where the types of the columns are known.
    pub fn domains(&mut self, name: &str) -> Result<Vec<(String, ArgumentValue)>> {
        let allowed = "a map from columns to [smallest, largest] or to their values";
        let domains = self.read(name, allowed, |value| match value {
            ArgumentValue::Map(entries) => Some(entries.clone()),
            _ => None,
        })?;
        Ok(domains.unwrap_or_default())
    }

    /// A seed.
    pub fn seed(&mut self) -> Result<Option<String>> {
        self.read("seed", "a number or a string", |value| match value {
            ArgumentValue::Number(seed) | ArgumentValue::Text(seed) => Some(seed.clone()),
            _ => None,
        })
    }

    /// An error about an argument.
    pub fn refuse(&self, name: &str, message: impl AsRef<str>) -> DataFusionError {
        error::argument(self.function.name, name, message)
    }

    /// An error about the value of an argument.
    pub fn wrong(&self, name: &str, allowed: &str, value: &ArgumentValue) -> DataFusionError {
        self.refuse(name, format!("{allowed}, not {value}"))
    }
}

/// Whether this is a map of names to values, wherever it stands.
fn is_struct(written: &Written) -> bool {
    matches!(
        written,
        Written::Sql(SqlExpr::Dictionary(_) | SqlExpr::Map(_))
            | Written::Value(ArgumentValue::Map(_))
    )
}

fn taken<T>(arguments: &mut Vec<(String, T)>, name: &str) -> Option<T> {
    let at = arguments.iter().position(|(known, _)| known == name)?;
    Some(arguments.remove(at).1)
}

/// A decimal number above 0 without passing through floating point.
fn fraction(digits: &str) -> Option<(u64, u64)> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = part.trim_end_matches('0');
    let numerator: u64 = format!("{whole}{part}").parse().ok()?;
    let denominator = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    (numerator > 0).then_some((numerator, denominator))
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
