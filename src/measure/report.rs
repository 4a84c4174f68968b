//! From the figures of a table, in one row, to the rows of a report.

mod audit;
mod loss;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Builder, RecordBatch, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use serde::{Deserialize, Serialize};

pub use audit::AuditCall;
pub use loss::LossCall;

/// Which report, and what its notes need of the call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Report {
    /// Of `audit`.
    Audit(AuditCall),
    /// Of `information_loss`.
    Loss(LossCall),
}

/// One row of a report.
#[derive(Debug)]
struct ReportRow {
    /// The part of the report, or the column.
    section: Option<String>,
    measure: &'static str,
    value: Option<f64>,
    /// Whether more or less is better.
    better: Option<&'static str>,
    note: String,
}

/// Figures by name.
#[derive(Debug)]
struct Figures<'a>(&'a RecordBatch);

impl Figures<'_> {
    /// A figure; `None` if it is not known.
    fn get(&self, name: &str) -> Option<f64> {
        let column = self
            .0
            .column_by_name(name)?
            .as_primitive_opt::<Float64Type>()?;
        (column.len() == 1 && column.is_valid(0)).then(|| column.value(0))
    }
}

impl Report {
    /// The measures that every report of this kind has and that levels can be required of, and whether more is better.
    pub(crate) fn levels(&self) -> Vec<(&'static str, bool)> {
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let rows = self.rows(&Figures(&nothing)).into_iter();
        rows.filter_map(|row| Some((row.measure, row.better? == "higher")))
            .collect()
    }

    fn rows(&self, figures: &Figures<'_>) -> Vec<ReportRow> {
        match self {
            Report::Audit(call) => audit::rows(call, figures),
            Report::Loss(call) => loss::rows(call, figures),
        }
    }

    /// The columns of the report.
    pub(crate) fn schema(&self) -> SchemaRef {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let value = Field::new("value", DataType::Float64, true);
        let (better, note) = (text("better", true), text("note", false));
        let (first, second) = match self {
            Report::Audit(_) => (text("section", false), text("measure", false)),
            Report::Loss(_) => (text("measure", false), text("column", true)),
        };
        Arc::new(Schema::new(vec![first, second, value, better, note]))
    }

    /// The report on a row of figures.
    pub(crate) fn of(&self, figures: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let figures = Figures(figures);
        let rows = self.rows(&figures);
        let text = StringBuilder::new;
        let (mut section, mut measure, mut better, mut note) = (text(), text(), text(), text());
        let mut value = Float64Builder::new();
        for row in rows {
            section.append_option(row.section);
            measure.append_value(row.measure);
            value.append_option(row.value);
            better.append_option(row.better);
            note.append_value(row.note);
        }
        let section: ArrayRef = Arc::new(section.finish());
        let measure: ArrayRef = Arc::new(measure.finish());
        let (first, second) = match self {
            Report::Audit(_) => (section, measure),
            Report::Loss(_) => (measure, section),
        };
        let columns: Vec<ArrayRef> = vec![
            first,
            second,
            Arc::new(value.finish()),
            Arc::new(better.finish()),
            Arc::new(note.finish()),
        ];
        RecordBatch::try_new(self.schema(), columns)
    }
}
