//! Values of TOML as arguments in SQL.

use datafusion_anonymize::publish::visible;
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

/// A text as it is written in a job.
pub fn toml_text(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.replace("${", "$${").chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            // Nothing that acts on the line, so that it cannot be continued in another one.
            c if visible(c.encode_utf8(&mut [0; 4])).starts_with('\\') => {
                written.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => written.push(c),
        }
    }
    written + "\""
}

/// All texts in a value.
pub fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Table(entries) => entries.iter().flat_map(|(_, value)| texts(value)).collect(),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_written() {
        for text in [
            "a\nb = 1",
            "\"",
            "\\",
            "'",
            "\0\u{1b}\u{7f}\u{202e}",
            "\"\"\"",
            "# x",
            "ü, [",
        ] {
            let written = toml_text(text);
            assert_eq!(written.lines().count(), 1, "{written}");
            let table: toml::Table = format!("a = {written}").parse().unwrap();
            assert_eq!(table["a"].as_str(), Some(text));
        }
        assert_eq!(toml_text("${HOME}"), "\"$${HOME}\"");
    }
}
