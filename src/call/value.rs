//! Arguments as they were written, before anybody knows what they mean.

mod literal;
mod sql;

use std::fmt;

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
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
    List(Vec<ArgumentValue>),
    /// `{a: 1, b: 2}`.
    Map(Vec<(String, ArgumentValue)>),
}

impl ArgumentValue {
    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            ArgumentValue::Text(_) => "a string",
            ArgumentValue::Name(_) => "a name",
            ArgumentValue::Number(_) => "a number",
            ArgumentValue::Boolean(_) => "a boolean",
            ArgumentValue::Null => "NULL",
            ArgumentValue::List(_) => "a list",
            ArgumentValue::Map(_) => "a map",
        }
    }

    /// A name or string.
    pub fn text(&self) -> Option<&str> {
        match self {
            ArgumentValue::Text(text) | ArgumentValue::Name(text) => Some(text),
            _ => None,
        }
    }

    /// One name or a list of names; a string may hold several, separated by commas.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            ArgumentValue::Name(name) => Some(vec![name.clone()]),
            ArgumentValue::Text(text) => {
                let names = text.split(',').map(str::trim).filter(|n| !n.is_empty());
                Some(names.map(str::to_owned).collect())
            }
            ArgumentValue::List(items) => {
                items.iter().map(|i| i.text().map(str::to_owned)).collect()
            }
            _ => None,
        }
    }

    /// A plain value as it was written: a number, string, name or boolean.
    pub fn plain(&self) -> Option<String> {
        match self {
            ArgumentValue::Text(s) | ArgumentValue::Name(s) | ArgumentValue::Number(s) => {
                Some(s.clone())
            }
            ArgumentValue::Boolean(b) => Some(b.to_string()),
            _ => None,
        }
    }
}

/// Arguments come from the query, not from cells, so they may be shown.
impl fmt::Display for ArgumentValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentValue::Text(text) => write!(f, "'{text}'"),
            ArgumentValue::Name(text) | ArgumentValue::Number(text) => f.write_str(text),
            ArgumentValue::Boolean(b) => write!(f, "{b}"),
            ArgumentValue::Null => f.write_str("NULL"),
            ArgumentValue::List(_) | ArgumentValue::Map(_) => f.write_str(self.kind()),
        }
    }
}
