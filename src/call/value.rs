//! Arguments as they were written, before anybody knows what they mean.

mod literal;
mod sql;

use std::fmt;

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// A quoted string.
    Text(String),
    /// An identifier, normalized as the session does.
    Name(String),
    /// A number, digit by digit as it was written.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    /// NULL.
    Null,
    /// `[a, b]` or `(a, b)`.
    List(Vec<Argument>),
    /// `{a: 1, b: 2}`.
    Map(Vec<(String, Argument)>),
}

impl Argument {
    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Argument::Text(_) => "a string",
            Argument::Name(_) => "a name",
            Argument::Number(_) => "a number",
            Argument::Boolean(_) => "a boolean",
            Argument::Null => "NULL",
            Argument::List(_) => "a list",
            Argument::Map(_) => "a map",
        }
    }

    /// A name or string.
    pub fn text(&self) -> Option<&str> {
        match self {
            Argument::Text(text) | Argument::Name(text) => Some(text),
            _ => None,
        }
    }

    /// One name or a list of names; a string may hold several, separated by commas.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Argument::Name(name) => Some(vec![name.clone()]),
            Argument::Text(text) => {
                let names = text.split(',').map(str::trim).filter(|n| !n.is_empty());
                Some(names.map(str::to_owned).collect())
            }
            Argument::List(items) => items.iter().map(|i| i.text().map(str::to_owned)).collect(),
            _ => None,
        }
    }

    /// A plain value as it was written: a number, string, name or boolean.
    pub fn plain(&self) -> Option<String> {
        match self {
            Argument::Text(s) | Argument::Name(s) | Argument::Number(s) => Some(s.clone()),
            Argument::Boolean(b) => Some(b.to_string()),
            _ => None,
        }
    }
}

/// Arguments come from the query, not from cells, so they may be shown.
impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Text(text) => write!(f, "'{text}'"),
            Argument::Name(text) | Argument::Number(text) => f.write_str(text),
            Argument::Boolean(b) => write!(f, "{b}"),
            Argument::Null => f.write_str("NULL"),
            Argument::List(_) | Argument::Map(_) => f.write_str(self.kind()),
        }
    }
}
