//! As much of JSON Schema as the published schemas use. A keyword that is not known here fails, so that none is skipped.

use serde_json::{Map, Value};

/// Everything that is wrong with a value.
pub fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = vec![];
    check(schema, schema, value, "$", &mut faults);
    faults
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let empty = Map::new();
    let rules = schema.as_object().unwrap();
    let object = value.as_object();
    for (keyword, rule) in rules {
        let mut fault = |wrong: bool| {
            if wrong {
                faults.push(format!("{at}: {keyword} {rule}, not {value}"));
            }
        };
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" => {}
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).unwrap(), value, at, faults);
            }
            "type" => {
                let one = std::slice::from_ref(rule);
                let types = rule.as_array().map_or(one, Vec::as_slice);
                fault(!types.iter().any(|t| is(t.as_str().unwrap(), value)));
            }
            "const" => fault(value != rule),
            "enum" => fault(!rule.as_array().unwrap().contains(value)),
            "minimum" => fault(value.as_f64().is_some_and(|v| v < rule.as_f64().unwrap())),
            "pattern" => fault(
                value
                    .as_str()
                    .is_some_and(|v| !matches(rule.as_str().unwrap(), v)),
            ),
            "required" => {
                let missing =
                    |key: &Value| object.is_some_and(|o| !o.contains_key(key.as_str().unwrap()));
                fault(rule.as_array().unwrap().iter().any(missing));
            }
            "anyOf" => {
                let fits = |schema: &Value| {
                    let mut inner = vec![];
                    check(root, schema, value, at, &mut inner);
                    inner.is_empty()
                };
                fault(!rule.as_array().unwrap().iter().any(fits));
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}[{i}]"), faults);
                }
            }
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(inner) = object.and_then(|o| o.get(name)) {
                        check(root, schema, inner, &format!("{at}.{name}"), faults);
                    }
                }
            }
            "additionalProperties" => {
                let named = rules
                    .get("properties")
                    .and_then(Value::as_object)
                    .unwrap_or(&empty);
                for (name, inner) in object.into_iter().flatten() {
                    if named.contains_key(name) {
                        continue;
                    }
                    match rule {
                        Value::Bool(true) => {}
                        Value::Bool(false) => faults.push(format!("{at}: there is no {name}")),
                        schema => check(root, schema, inner, &format!("{at}.{name}"), faults),
                    }
                }
            }
            other => panic!("the schema uses {other}, which this check does not know"),
        }
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the schema has the type {other}"),
    }
}

/// Patterns of literal characters, `[…]` and `{n}` between `^` and `$`.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern = pattern
        .strip_prefix('^')
        .unwrap()
        .strip_suffix('$')
        .unwrap();
    let (mut p, mut t) = (pattern.chars().peekable(), text.chars());
    while let Some(c) = p.next() {
        let set: Vec<char> = match c {
            '[' => {
                let mut set = vec![];
                while let Some(c) = p.next().filter(|c| *c != ']') {
                    if p.peek() == Some(&'-') {
                        p.next();
                        set.extend(c..=p.next().unwrap());
                    } else {
                        set.push(c);
                    }
                }
                set
            }
            '\\' => vec![p.next().unwrap()],
            c => vec![c],
        };
        let mut times = 1;
        if p.peek() == Some(&'{') {
            p.next();
            let digits: String = p.by_ref().take_while(|c| *c != '}').collect();
            times = digits.parse().unwrap();
        }
        for _ in 0..times {
            if !t.next().is_some_and(|c| set.contains(&c)) {
                return false;
            }
        }
    }
    t.next().is_none()
}

#[test]
fn the_check_can_fail() {
    let schema = serde_json::json!({"type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {"a": {"type": "string", "pattern": "^x-[0-9a-f]{2}\\.p$"}}});
    let check = |value: Value| faults(&schema, &value).len();
    assert_eq!(check(serde_json::json!({"a": "x-0f.p"})), 0);
    assert_eq!(check(serde_json::json!({"a": "x-0g.p"})), 1);
    assert_eq!(check(serde_json::json!({"a": "x-0f.pp"})), 1);
    assert_eq!(check(serde_json::json!({"b": 1})), 2);
    assert_eq!(check(serde_json::json!([])), 1);
}
