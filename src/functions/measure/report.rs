//! From the figures of a table to the rows of a report.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    ArrayRef, AsArray, Float64Builder, ListArray, StringBuilder, StructArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, col, lit,
};
use serde::{Deserialize, Serialize};

use super::{audit, loss_report};

/// What a report says besides figures: the names of these in the order in which they come, and the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Context {
    pub figures: Vec<String>,
    pub kind: Kind,
}

/// Which report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Kind {
    Audit(audit::Call),
    Loss(loss_report::Call),
}

/// One row of a report.
#[derive(Debug)]
pub(super) struct Row {
    /// The part of the report, or the column.
    pub section: Option<String>,
    pub measure: &'static str,
    pub value: Option<f64>,
    /// Whether more or less is safer.
    pub better: Option<&'static str>,
    pub note: String,
}

/// Figures by name.
#[derive(Debug)]
pub(super) struct Figures<'a>(Vec<(&'a str, Option<f64>)>);

impl Figures<'_> {
    /// A figure; `None` if it is not known.
    pub fn get(&self, name: &str) -> Option<f64> {
        let mut figures = self.0.iter();
        figures
            .find(|(n, _)| *n == name)
            .and_then(|(_, value)| *value)
    }
}

/// The fields of a row.
fn row_fields() -> Fields {
    vec![
        Field::new("section", DataType::Utf8, true),
        Field::new("measure", DataType::Utf8, false),
        Field::new("value", DataType::Float64, true),
        Field::new("better", DataType::Utf8, true),
        Field::new("note", DataType::Utf8, false),
    ]
    .into()
}

/// Makes a report of a row of figures, and names its first field.
pub(super) fn report(
    function: &str,
    kind: Kind,
    figures: LogicalPlanBuilder,
    section: &str,
) -> Result<LogicalPlan> {
    let schema = figures.schema();
    let names = schema.fields().iter().map(|f| f.name().clone()).collect();
    let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let context = Context {
        figures: names,
        kind,
    };
    let context = serde_json::to_string(&context)
        .map_err(|_| internal_datafusion_err!("a report's context cannot be written"))?;
    let context = lit(ScalarValue::Utf8(Some(context)));
    let rows = audit_report().call([context].into_iter().chain(columns).collect());
    let field = |name: &str| {
        let field = get_field().call(vec![col("row"), lit(name)]);
        field.alias(if name == "section" { section } else { name })
    };
    let fields: Vec<Expr> = row_fields().iter().map(|f| field(f.name())).collect();
    figures
        .project(vec![rows.alias("row")])?
        .unnest_column("row")?
        .project(fields)?
        .alias(function)?
        .build()
}

/// The rows of a report from its context, as JSON, and its figures; for plans of our own.
pub(crate) fn audit_report() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(Report::new())));
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Report {
    signature: Signature,
}

impl Report {
    fn new() -> Self {
        Self {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }

    fn item() -> Arc<Field> {
        Arc::new(Field::new_list_field(DataType::Struct(row_fields()), true))
    }
}

impl ScalarUDFImpl for Report {
    fn name(&self) -> &str {
        "anonymize_audit_report"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Self::item()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(ColumnarValue::Scalar(ScalarValue::Utf8(Some(json)))) = args.args.first() else {
            return internal_err!("a report without a context");
        };
        let context: Context = serde_json::from_str(json)
            .map_err(|_| internal_datafusion_err!("a report's context cannot be read"))?;
        let columns: Vec<ArrayRef> = args.args[1..]
            .iter()
            .map(|value| value.to_array(args.number_rows))
            .collect::<Result<_>>()?;
        if columns.len() != context.figures.len() {
            return internal_err!("a report with {} figures", columns.len());
        }
        let reports = (0..args.number_rows).map(|at| {
            let figure = |(name, column): (_, &ArrayRef)| {
                let column = column.as_primitive::<Float64Type>();
                (name, column.iter().nth(at).flatten())
            };
            let names = context.figures.iter().map(String::as_str);
            let figures = Figures(names.zip(&columns).map(figure).collect());
            match &context.kind {
                Kind::Audit(call) => audit::rows(call, &figures),
                Kind::Loss(call) => loss_report::rows(call, &figures),
            }
        });
        Ok(ColumnarValue::Array(Arc::new(list(reports.collect())?)))
    }
}

fn list(reports: Vec<Vec<Row>>) -> Result<ListArray> {
    let offsets = OffsetBuffer::from_lengths(reports.iter().map(Vec::len));
    let text = || StringBuilder::new();
    let (mut section, mut measure, mut better, mut note) = (text(), text(), text(), text());
    let mut value = Float64Builder::new();
    for row in reports.into_iter().flatten() {
        section.append_option(row.section);
        measure.append_value(row.measure);
        value.append_option(row.value);
        better.append_option(row.better);
        note.append_value(row.note);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(section.finish()),
        Arc::new(measure.finish()),
        Arc::new(value.finish()),
        Arc::new(better.finish()),
        Arc::new(note.finish()),
    ];
    let rows = StructArray::try_new(row_fields(), columns, None)?;
    Ok(ListArray::try_new(
        Report::item(),
        offsets,
        Arc::new(rows),
        None,
    )?)
}
