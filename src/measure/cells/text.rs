//! The text notation: `34`, `[33, 34]`, `{10070, 10073}`, `1007*`, `*`.

/// A published text, taken apart but not yet read as values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notation<'a> {
    Suppressed,
    /// Ends of an interval, and whether they belong to it.
    Interval {
        lo: &'a str,
        hi: &'a str,
        lo_open: bool,
        hi_open: bool,
    },
    Set(Vec<&'a str>),
    Masked {
        prefix: &'a str,
        stars: u32,
    },
    Plain(&'a str),
}

impl<'a> Notation<'a> {
    /// Takes a text apart. What is in no notation is a plain value.
    pub fn of(text: &'a str) -> Self {
        let trimmed = text.trim();
        let shown = trimmed.trim_end_matches('*');
        let stars = trimmed.len() - shown.len();
        if stars > 0 {
            return match shown {
                "" => Notation::Suppressed,
                prefix => Notation::Masked {
                    prefix,
                    stars: u32::try_from(stars).unwrap_or(u32::MAX),
                },
            };
        }
        if let Some(inner) = trimmed.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            return Notation::Set(inner.split(',').map(str::trim).collect());
        }
        Self::interval(trimmed).unwrap_or(Notation::Plain(text))
    }

    /// `[a, b]`, or half open as `[a, b)` and `[a, b[`.
    fn interval(text: &'a str) -> Option<Self> {
        let lo_open = match text.chars().next()? {
            '[' => false,
            '(' | ']' => true,
            _ => return None,
        };
        let hi_open = match text.chars().next_back()? {
            ']' => false,
            ')' | '[' => true,
            _ => return None,
        };
        let inner = text.get(1..text.len() - 1)?;
        let mut ends = inner.split(',').map(str::trim);
        match (ends.next(), ends.next(), ends.next()) {
            (Some(lo), Some(hi), None) => Some(Notation::Interval {
                lo,
                hi,
                lo_open,
                hi_open,
            }),
            _ => None,
        }
    }

    /// The texts that are to be read as values.
    pub fn values(&self) -> Vec<&'a str> {
        match self {
            Notation::Interval { lo, hi, .. } => vec![lo, hi],
            Notation::Set(items) => items.clone(),
            Notation::Plain(text) => vec![text],
            Notation::Suppressed | Notation::Masked { .. } => vec![],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notations() {
        let interval = |lo, hi, lo_open, hi_open| Notation::Interval {
            lo,
            hi,
            lo_open,
            hi_open,
        };
        for (text, expected) in [
            ("*", Notation::Suppressed),
            ("*****", Notation::Suppressed),
            ("34", Notation::Plain("34")),
            ("[33, 34]", interval("33", "34", false, false)),
            ("[33,34[", interval("33", "34", false, true)),
            ("(0.5, 1.5]", interval("0.5", "1.5", true, false)),
            ("{a, b c}", Notation::Set(vec!["a", "b c"])),
            (
                "1007*",
                Notation::Masked {
                    prefix: "1007",
                    stars: 1,
                },
            ),
            (
                "14***",
                Notation::Masked {
                    prefix: "14",
                    stars: 3,
                },
            ),
            ("a [b]", Notation::Plain("a [b]")),
            ("", Notation::Plain("")),
            ("[", Notation::Plain("[")),
        ] {
            assert_eq!(Notation::of(text), expected, "{text}");
        }
    }
}
