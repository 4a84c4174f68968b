//! The report on a release: for people, in one file.

mod figures;
mod html;
mod markdown;
mod svg;
mod visible;
mod words;

pub use figures::{Bar, Distribution, Figures};

use datafusion::common::{DataFusionError, Result};

pub use visible::{visible, visible_lines};

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReportFormat {
    /// One page with charts that needs nothing else, to read and to print.
    #[default]
    Html,
    /// Text with tables.
    Markdown,
    /// The figures alone.
    Json,
}

impl ReportFormat {
    /// The format that a name stands for: `html`, `md` or `json`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "html" => Self::Html,
            "md" => Self::Markdown,
            "json" => Self::Json,
            _ => return None,
        })
    }

    /// Whether the beginning of a file is that of a report in any format, so that a new report may replace it.
    pub fn begins(file: &[u8]) -> bool {
        [html::BEGINNING, markdown::BEGINNING, JSON_BEGINNING]
            .iter()
            .any(|beginning| file.starts_with(beginning.as_bytes()))
    }
}

/// How every report of figures alone begins.
const JSON_BEGINNING: &str = "{\n  \"manifest\": {\n    \"manifest_version\"";

impl Figures {
    /// The report.
    pub fn report(&self, format: ReportFormat) -> Result<String> {
        Ok(match format {
            ReportFormat::Html => html::page(self),
            ReportFormat::Markdown => markdown::page(self),
            ReportFormat::Json => {
                let text = serde_json::to_string_pretty(self);
                text.map_err(|e| DataFusionError::External(Box::new(e)))? + "\n"
            }
        })
    }
}
