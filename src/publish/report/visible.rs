//! Names from elsewhere, so that they can be read: they cannot break a line, move the cursor or turn the text around.

/// Text in which such characters are escaped: `\n`, `\u{1b}`.
pub fn visible(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same for text of several lines, which stay lines.
pub fn visible_lines(text: &str) -> String {
    escaped(text, |c| c == '\n' || c == '\t')
}

fn escaped(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) && !kept(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Whether a character acts on the text around it instead of being seen: control characters, line separators, and what
/// changes the direction of writing.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_the_text_is_escaped() {
        let name = "a\u{1b}[31m\r\n\tü\u{202e}\u{9b}\u{7f}'\\";
        let line = r"a\u{1b}[31m\r\n\tü\u{202e}\u{9b}\u{7f}'\";
        assert_eq!(visible(name), line);
        let lines = line.replace(r"\n\t", "\n\t");
        assert_eq!(visible_lines(name), lines);
    }
}
