//! Values of TOML as arguments of functions.

use datafusion_anonymize::ArgumentValue;
use datafusion_anonymize::publish::visible;
use toml::Value;

/// A value as an argument of a function.
pub fn argument(value: &Value) -> Result<ArgumentValue, String> {
    Ok(match value {
        Value::String(text) => ArgumentValue::Text(text.clone()),
        Value::Integer(number) => ArgumentValue::Number(number.to_string()),
        Value::Float(number) if number.is_finite() => ArgumentValue::Number(number.to_string()),
        Value::Boolean(flag) => ArgumentValue::Boolean(*flag),
        Value::Array(items) => {
            let items = items.iter().map(argument);
            ArgumentValue::List(items.collect::<Result<_, _>>()?)
        }
        Value::Table(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| Ok((key.clone(), argument(value)?)));
            ArgumentValue::Map(entries.collect::<Result<_, String>>()?)
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
#[path = "../../../tests/suite/argument_calls.rs"]
mod argument_calls;

#[cfg(test)]
mod tests {
    use super::*;

    /// The suite shows that these values are what SQL makes of the same calls.
    #[test]
    fn values_of_jobs_are_those_of_other_calls() {
        fn value(json: &serde_json::Value) -> ArgumentValue {
            match json {
                serde_json::Value::String(text) => ArgumentValue::Text(text.clone()),
                serde_json::Value::Number(number) => ArgumentValue::Number(number.to_string()),
                serde_json::Value::Bool(flag) => ArgumentValue::Boolean(*flag),
                serde_json::Value::Null => ArgumentValue::Null,
                serde_json::Value::Array(items) => {
                    ArgumentValue::List(items.iter().map(value).collect())
                }
                serde_json::Value::Object(entries) => {
                    let entries = entries.iter();
                    ArgumentValue::Map(entries.map(|(n, v)| (n.clone(), value(v))).collect())
                }
            }
        }
        let mut seen = 0;
        for (function, _, call) in argument_calls::CALLS {
            let arguments = argument_calls::arguments(function, call);
            for (name, json) in &arguments {
                let table = toml::Table::try_from(serde_json::json!({ name: json })).unwrap();
                assert_eq!(
                    argument(&table[name]),
                    Ok(value(json)),
                    "{function}: {name}"
                );
                seen += 1;
            }
        }
        assert!(seen > 200, "{seen}");
    }

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
