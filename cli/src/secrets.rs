//! Values of the environment that `${NAME}` brought into a job, and how they are kept out of what the program prints.

use std::env;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A run of this many characters of a value is hidden also where the rest of it is missing.
const PART: usize = 8;

/// A shorter value is hidden only where it stands alone: `3` is not hidden in `13`.
const SHORT: usize = 4;

/// The values that were put into texts so far.
static VALUES: Mutex<Vec<Secret>> = Mutex::new(Vec::new());

/// A value: its characters, each in all the ways in which it may be printed, the longest first.
struct Secret {
    name: String,
    characters: Vec<Vec<Vec<char>>>,
}

/// Puts the values of environment variables in the place of `${NAME}`, and remembers them; `$${` stands for `${`. Else says
/// what is wrong.
pub fn expand(text: &str) -> Result<String, String> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            whole += before;
            whole += "${";
            rest = after;
            continue;
        }
        let (name, tail) = after.split_once('}').ok_or("'${' without '}'")?;
        let value =
            env::var(name).map_err(|_| format!("the environment variable {name} is not set"))?;
        let mut values = values();
        if !value.is_empty() && !values.iter().any(|known| known.name == name) {
            values.push(Secret::new(name, &value));
        }
        whole += before;
        whole += &value;
        rest = tail;
    }
    Ok(whole + rest)
}

/// A text with `${NAME}` in the place of every value that was put into a text, however it is quoted or encoded.
pub fn hide(text: &str) -> String {
    let values = values();
    if values.is_empty() {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let mut hidden = String::new();
    let mut at = 0;
    while let Some(character) = characters.get(at) {
        let found = values
            .iter()
            .map(|value| (value.found(&characters, at), value));
        match found.max_by_key(|(length, _)| *length) {
            Some((length @ 1.., value)) => {
                hidden += &format!("${{{}}}", value.name);
                at += length;
            }
            _ => {
                hidden.push(*character);
                at += 1;
            }
        }
    }
    hidden
}

fn values() -> MutexGuard<'static, Vec<Secret>> {
    VALUES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Secret {
    fn new(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            characters: value.chars().map(forms).collect(),
        }
    }

    /// How many characters of a text are this value, or a long part of it, at a place.
    fn found(&self, text: &[char], at: usize) -> usize {
        let whole = self.characters.len();
        let (matched, length) = self.run(0, text, at);
        if matched == whole && (whole >= SHORT || stands_alone(text, at, length)) {
            return length;
        }
        let last = whole.saturating_sub(PART);
        let parts = (0..=last).map(|from| self.run(from, text, at));
        let long = parts.filter(|(matched, _)| *matched >= PART);
        long.map(|(_, length)| length).max().unwrap_or(0)
    }

    /// How many characters of this value follow each other in a text, and in how many characters of the text.
    fn run(&self, from: usize, text: &[char], at: usize) -> (usize, usize) {
        let mut end = at;
        let mut matched = 0;
        for forms in &self.characters[from..] {
            let rest = text.get(end..).unwrap_or_default();
            let Some(form) = forms.iter().find(|form| begins_with(rest, form)) else {
                break;
            };
            end += form.len();
            matched += 1;
        }
        (matched, end - at)
    }
}

/// A character as it is, doubled in quotes, escaped, and as a URL and a page write it.
fn forms(character: char) -> Vec<Vec<char>> {
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).as_bytes();
    let percent: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
    let mut units = [0; 2];
    let json: String = character
        .encode_utf16(&mut units)
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let mut forms = vec![
        character.to_string(),
        character.escape_debug().to_string(),
        character.escape_default().to_string(),
        percent.replace('%', "%25"),
        percent,
        json,
    ];
    if character.is_ascii_punctuation() {
        forms.push(format!("\\{character}"));
    }
    let others: &[&str] = match character {
        '\'' => &["''", "&#39;", "&#x27;", "&apos;"],
        '"' => &["\"\"", "&quot;", "&#34;", "\\\\\""],
        '`' => &["``"],
        '&' => &["&amp;"],
        '<' => &["&lt;"],
        '>' => &["&gt;"],
        ' ' => &["+"],
        _ => &[],
    };
    forms.extend(others.iter().map(|form| (*form).to_owned()));
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    forms.iter().map(|form| form.chars().collect()).collect()
}

/// In either case: SQL makes names small, and escapes are written both ways.
fn begins_with(text: &[char], form: &[char]) -> bool {
    let same = |a: &char, b: &char| a == b || a.to_lowercase().eq(b.to_lowercase());
    text.len() >= form.len() && text.iter().zip(form).all(|(a, b)| same(a, b))
}

/// Whether neither a letter nor a digit stands beside a part of a text.
fn stands_alone(text: &[char], at: usize, length: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let after = text.get(at + length);
    let word = |c: &&char| c.is_alphanumeric() || **c == '_';
    before.filter(word).is_none() && after.filter(word).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(value: &str, text: &str) -> String {
        let secret = Secret::new("KEY", value);
        let characters: Vec<char> = text.chars().collect();
        let (mut hidden, mut at) = (String::new(), 0);
        while at < characters.len() {
            let length = secret.found(&characters, at);
            hidden += if length > 0 { "*" } else { "" };
            if length == 0 {
                hidden.push(characters[at]);
            }
            at += length.max(1);
        }
        hidden
    }

    #[test]
    fn values_are_found_however_they_are_written() {
        let value = "pa'ss \"wörd\"/x\\&<1>\n%";
        for text in [
            value.to_owned(),
            value.to_uppercase(),
            format!("{value:?}").trim_matches('"').to_owned(),
            value.replace('\'', "''"),
            value.replace('"', "\"\""),
            serde_json::to_string(value)
                .unwrap()
                .trim_matches('"')
                .to_owned(),
            "pa%27ss%20%22w%C3%B6rd%22%2Fx%5C%26%3C1%3E%0A%25".to_owned(),
            "pa'ss%20%22w%c3%b6rd%22/x%5C&%3C1%3E%0A%25".to_owned(),
            "pa%2527ss%2520%2522w%25C3%25B6rd%2522/x\\&<1>\n%25".to_owned(),
            "pa&#39;ss &quot;wörd&quot;/x\\&amp;&lt;1&gt;\n%".to_owned(),
            value.escape_default().to_string(),
        ] {
            assert_eq!(hidden(value, &format!("<{text}>")), "<*>", "{text}");
        }
    }

    #[test]
    fn parts_are_found_and_short_values_where_they_stand_alone() {
        let value = "abcdefgh-ijklmnop";
        assert_eq!(hidden(value, "found: ijklmnop at 3"), "found: * at 3");
        assert_eq!(hidden(value, "found: ijklmno at 3"), "found: ijklmno at 3");
        assert_eq!(hidden("3", "l = 3, not 13 or '3'"), "l = *, not 13 or '*'");
        assert_eq!(hidden("3", "l3 3"), "l3 *");
        assert_eq!(hidden("abcd", "xabcdy"), "x*y");
    }

    #[test]
    fn what_was_expanded_is_hidden() {
        let said = expand("a${ANONYMIZE_TEST_NO_SUCH_KEY}").unwrap_err();
        assert_eq!(
            said,
            "the environment variable ANONYMIZE_TEST_NO_SUCH_KEY is not set"
        );
        assert_eq!(expand("a${").unwrap_err(), "'${' without '}'");
        assert_eq!(expand("$5 $${PATH}$").unwrap(), "$5 ${PATH}$");
        let expanded = expand("a${CARGO_MANIFEST_DIR}b").unwrap();
        assert_eq!(expanded, format!("a{}b", env!("CARGO_MANIFEST_DIR")));
        assert_eq!(hide(&expanded), "a${CARGO_MANIFEST_DIR}b");
    }
}
