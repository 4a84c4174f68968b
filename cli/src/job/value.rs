//! Values of TOML as arguments in SQL.

use toml::Value;

use super::identifier;
use crate::measure::quoted;

/// A value as SQL.
pub fn sql(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) if number.is_finite() => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Array(items) => {
            let items = items.iter().map(sql).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Table(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| Ok(format!("{}: {}", identifier(key), sql(value)?)));
            let entries = entries.collect::<Result<Vec<_>, String>>()?;
            format!("{{{}}}", entries.join(", "))
        }
        _ => return Err("must be a text, a number, true, false, a list or a table".to_owned()),
    })
}
