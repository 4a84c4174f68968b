//! From answers to rows: `__workload_report(…)` and `__workload_summary(…)`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Fields, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::answers::{called_with, read_sums};
use super::predicate::predicate_text;
use crate::estimate::{Summary, Workload, relative_error};
use crate::functions::estimate::list;

/// Columns of the report.
pub(super) fn report_fields() -> Fields {
    vec![
        Field::new("query", DataType::Int64, false),
        Field::new("columns", DataType::Utf8, false),
        Field::new("predicate", DataType::Utf8, true),
        Field::new("prec", DataType::Float64, false),
        Field::new("est", DataType::Float64, false),
        Field::new("error", DataType::Float64, true),
    ]
    .into()
}

/// Columns of the summary.
pub(super) fn summary_fields() -> Fields {
    let error = |name| Field::new(name, DataType::Float64, true);
    vec![
        Field::new("queries", DataType::Int64, false),
        Field::new("without_error", DataType::Int64, false),
        error("mean"),
        error("median"),
        error("p95"),
        error("max"),
    ]
    .into()
}

/// `__workload_report(workload, '', exact, estimated, floor, show, names)`: a list with a row per query.
pub(crate) fn workload_report() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(udf(false)));
    Arc::clone(&FUNCTION)
}

/// `__workload_summary(workload, '', exact, estimated, floor, show, names)`: a struct.
pub(crate) fn workload_summary() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(udf(true)));
    Arc::clone(&FUNCTION)
}

fn udf(summary: bool) -> ScalarUDF {
    ScalarUDF::new_from_impl(Report {
        summary,
        signature: Signature::any(7, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Report {
    summary: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Report {
    fn name(&self) -> &str {
        if self.summary {
            "__workload_summary"
        } else {
            "__workload_report"
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.summary {
            DataType::Struct(summary_fields())
        } else {
            let item = DataType::Struct(report_fields());
            DataType::List(Arc::new(Field::new_list_field(item, true)))
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = args
            .args
            .iter()
            .map(|a| a.to_array(1))
            .collect::<Result<Vec<_>>>()?;
        let [_, _, exact, estimated, floor, show, names] = arrays.as_slice() else {
            return internal_err!("a report takes seven arguments");
        };
        let (workload, _) = called_with(&arrays)?;
        let rows = Rows::new(
            &workload,
            &exact.as_list::<i32>().value(0),
            &estimated.as_list::<i32>().value(0),
            floor.as_primitive::<Float64Type>().value(0),
        );
        Ok(ColumnarValue::Scalar(if self.summary {
            rows.summary()?
        } else {
            let names = names.as_list::<i32>().value(0);
            rows.report(
                &workload,
                names.as_string::<i32>(),
                show.as_boolean().value(0),
            )?
        }))
    }
}

/// Exact and estimated answers with their errors.
struct Rows {
    exact: Vec<f64>,
    estimated: Vec<f64>,
    errors: Vec<Option<f64>>,
}

impl Rows {
    fn new(workload: &Workload, exact: &ArrayRef, estimated: &ArrayRef, floor: f64) -> Self {
        let count = workload.queries.len();
        let answers = |list: &ArrayRef| {
            let (sums, rows) = read_sums(list);
            let mut answers: Vec<f64> = sums.iter().map(|s| s.value()).collect();
            // An empty table never saw the workload: all its answers are 0.
            answers.resize(count, 0.0);
            (answers, rows)
        };
        let (exact, all) = answers(exact);
        let (estimated, _) = answers(estimated);
        let errors = exact
            .iter()
            .zip(&estimated)
            .map(|(exact, estimated)| relative_error(*estimated, *exact, floor * all as f64))
            .collect();
        Self {
            exact,
            estimated,
            errors,
        }
    }

    fn report(self, workload: &Workload, names: &StringArray, show: bool) -> Result<ScalarValue> {
        let columns = workload.queries.iter().map(|query| {
            let names: Vec<&str> = query.iter().map(|(c, _)| names.value(*c)).collect();
            names.join(", ")
        });
        let predicates = workload
            .queries
            .iter()
            .map(|query| {
                let text = || predicate_text(workload, query, names);
                show.then(text).transpose()
            })
            .collect::<Result<StringArray>>()?;
        let count = workload.queries.len() as i64;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(1..=count)),
            Arc::new(StringArray::from_iter_values(columns)),
            Arc::new(predicates),
            Arc::new(Float64Array::from(self.exact)),
            Arc::new(Float64Array::from(self.estimated)),
            Arc::new(Float64Array::from(self.errors)),
        ];
        list(Arc::new(StructArray::try_new(
            report_fields(),
            arrays,
            None,
        )?))
    }

    fn summary(&self) -> Result<ScalarValue> {
        let summary = Summary::of(&self.errors);
        let count = |n: u64| Arc::new(Int64Array::from(vec![n as i64])) as ArrayRef;
        let error = |e: Option<f64>| Arc::new(Float64Array::from(vec![e])) as ArrayRef;
        let arrays = vec![
            count(summary.queries),
            count(summary.without_error),
            error(summary.mean),
            error(summary.median),
            error(summary.p95),
            error(summary.max),
        ];
        let row = StructArray::try_new(summary_fields(), arrays, None)?;
        debug_assert_eq!(row.len(), 1);
        Ok(ScalarValue::Struct(Arc::new(row)))
    }
}
