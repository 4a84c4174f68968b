//! What a function is called, what it takes, and how a call of it is planned.

use std::borrow::Cow;

use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;

use super::{Arguments, Resolve, Written};
use crate::error;

/// A table function of this crate.
#[derive(Debug)]
pub struct Function {
    /// Its SQL name.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// How many of its arguments, from the first, may go without a name.
    pub positional: usize,
    /// Its arguments, those that may go without a name first.
    pub arguments: Cow<'static, [Argument]>,
    /// Arguments of similar functions that it refuses, with the reason.
    pub(crate) refused: &'static [(&'static str, &'static str)],
    pub(crate) plan: fn(&mut Arguments) -> Result<LogicalPlan>,
}

/// An argument of a function.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: ArgumentKind,
    /// What holds without it.
    pub default: DefaultValue,
    /// One line of help, without the default.
    pub help: &'static str,
}

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A table, view or query, or files.
    Relation,
    /// The name of a column.
    Column,
    /// Names of columns.
    Columns,
    /// True or false.
    Flag,
    /// A whole number.
    Count,
    /// A decimal number.
    Decimal,
    /// A share of something: a decimal number up to 1.
    Share,
    /// One of some texts.
    Choice(&'static [&'static str]),
    /// A text.
    Text,
    /// A number or a text.
    Seed,
    /// A number of individuals, or `'all'`.
    Block,
    /// Columns with their domains.
    Domains,
    /// Columns with their hierarchies.
    Hierarchies,
    /// Categories of sensitive values: lists, or a table or file; for several columns, a map to these.
    Categories,
    /// Lists of columns.
    Division,
    /// Columns with what says whose values are secret: a column, a condition, true or false.
    Secrecy,
    /// A whole number, or columns with one each.
    CountPerColumn,
    /// Columns with a decimal number each.
    DecimalPerColumn,
    /// Measures with a level each.
    Levels,
}

/// What holds where an argument is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// It must be given.
    Required,
    /// Whether it must be given depends on others.
    Depends,
    /// This, in words.
    Is(&'static str),
}

impl Argument {
    /// An argument that must be given.
    pub(crate) const fn required(
        name: &'static str,
        kind: ArgumentKind,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default: DefaultValue::Required,
            help,
        }
    }

    /// An argument that may be left out, or is needed beside others only.
    pub(crate) const fn optional(
        name: &'static str,
        kind: ArgumentKind,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default: DefaultValue::Depends,
            help,
        }
    }

    /// What holds without it.
    pub(crate) const fn or(mut self, default: &'static str) -> Self {
        self.default = DefaultValue::Is(default);
        self
    }

    /// The line of help with the default.
    pub fn described(&self) -> String {
        match self.default {
            DefaultValue::Is(default) => format!("{} (default: {default})", self.help),
            _ => self.help.to_owned(),
        }
    }
}

impl Function {
    /// The argument of that name.
    pub fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// The arguments that may go without a name.
    pub fn positional(&self) -> &[Argument] {
        self.arguments.get(..self.positional).unwrap_or_default()
    }

    /// Plans a call. Whatever its arguments name is looked up by `resolve`.
    pub(crate) fn call(
        &'static self,
        written: Vec<(Option<String>, Written)>,
        resolve: &mut dyn Resolve,
    ) -> Result<LogicalPlan> {
        let mut arguments = Arguments::try_new(self, written, resolve)?;
        let plan = (self.plan)(&mut arguments)?;
        arguments.finish()?;
        Ok(plan)
    }

    /// The error for arguments without a name that stand after those which may have none.
    pub(super) fn too_many(&self) -> DataFusionError {
        let first: Vec<&str> = self.positional().iter().map(|a| a.name).collect();
        let first = first.join(", ");
        let mut rest = self.arguments.iter().skip(self.positional);
        let message = match rest.find(|a| a.kind != ArgumentKind::Relation) {
            Some(other) => format!("arguments after {first} have names: {} => …", other.name),
            None => format!("takes {first}, and no other arguments"),
        };
        error::call(self.name, message)
    }

    /// The error for an argument that the function does not take.
    pub(super) fn unknown(&self, name: &str) -> DataFusionError {
        if let Some((_, reason)) = self.refused.iter().find(|(refused, _)| *refused == name) {
            return error::argument(self.name, name, reason);
        }
        let names: Vec<&str> = self.arguments.iter().map(|a| a.name).collect();
        let nearest = error::did_you_mean(name, names.iter().copied());
        let names = names.join(", ");
        let message = format!("there is no argument '{name}'{nearest} (arguments: {names})");
        error::call(self.name, message)
    }
}
