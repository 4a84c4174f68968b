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
use crate::measure::query_error::{Summary, Workload, relative_error, relative_width};
use crate::measure::sql::estimate::list;

/// Columns of the report; with `bounds`, those of a table with buckets.
pub(super) fn report_fields(bounds: bool) -> Fields {
    let answer = |name| Field::new(name, DataType::Float64, false);
    let error = |name| Field::new(name, DataType::Float64, true);
    let mut fields = vec![
        Field::new("query", DataType::Int64, false),
        Field::new("columns", DataType::Utf8, false),
        Field::new("predicate", DataType::Utf8, true),
        answer("prec"),
        answer("est"),
        error("error"),
    ];
    if bounds {
        fields.extend([answer("lower"), answer("upper"), error("r_error")]);
    }
    fields.into()
}

/// Columns of the summary.
pub(super) fn summary_fields(bounds: bool) -> Fields {
    let mut fields = vec![
        Field::new("queries", DataType::Int64, false),
        Field::new("without_error", DataType::Int64, false),
    ];
    let names: &[&str] = match bounds {
        false => &["mean", "median", "p95", "max"],
        true => &[
            "mean", "median", "p95", "max", "r_mean", "r_median", "r_p95", "r_max",
        ],
    };
    let error = |name: &&str| Field::new(*name, DataType::Float64, true);
    fields.extend(names.iter().map(error));
    fields.into()
}

/// `__workload_report(workload, '', exact, estimated, floor, show, names)`: a list with a row per query.
pub(crate) fn workload_report(bounds: bool) -> Arc<ScalarUDF> {
    static PLAIN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(false, false));
    static BOUNDS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(false, true));
    Arc::clone(if bounds { &BOUNDS } else { &PLAIN })
}

/// `__workload_summary(workload, '', exact, estimated, floor, show, names)`: a struct.
pub(crate) fn workload_summary(bounds: bool) -> Arc<ScalarUDF> {
    static PLAIN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(true, false));
    static BOUNDS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| udf(true, true));
    Arc::clone(if bounds { &BOUNDS } else { &PLAIN })
}

fn udf(summary: bool, bounds: bool) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Report {
        summary,
        bounds,
        signature: Signature::any(7, Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Report {
    summary: bool,
    /// Whether lower and upper bounds follow the estimates.
    bounds: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Report {
    fn name(&self) -> &str {
        match (self.summary, self.bounds) {
            (true, false) => "__workload_summary",
            (false, false) => "__workload_report",
            (true, true) => "__workload_bounds_summary",
            (false, true) => "__workload_bounds_report",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.summary {
            DataType::Struct(summary_fields(self.bounds))
        } else {
            let item = DataType::Struct(report_fields(self.bounds));
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
            self.bounds,
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
    bounds: Option<Bounds>,
}

/// Bounds of the answers, and how wide they are.
struct Bounds {
    lower: Vec<f64>,
    upper: Vec<f64>,
    widths: Vec<Option<f64>>,
}

impl Rows {
    fn new(
        workload: &Workload,
        exact: &ArrayRef,
        estimated: &ArrayRef,
        floor: f64,
        bounds: bool,
    ) -> Self {
        let count = workload.queries.len();
        let answers = |list: &ArrayRef, parts: usize| {
            let (sums, rows) = read_sums(list);
            let mut answers: Vec<f64> = sums.iter().map(|s| s.value()).collect();
            // An empty table never saw the workload: all its answers are 0.
            answers.resize(parts * count, 0.0);
            (answers, rows)
        };
        let (exact, all) = answers(exact, 1);
        let (mut estimated, _) = answers(estimated, if bounds { 3 } else { 1 });
        let floor = floor * all as f64;
        let bounds = bounds.then(|| {
            let upper = estimated.split_off(2 * count);
            let lower = estimated.split_off(count);
            let ends = lower.iter().zip(&upper).zip(&exact);
            let widths =
                ends.map(|((lower, upper), exact)| relative_width(*lower, *upper, *exact, floor));
            let widths = widths.collect();
            Bounds {
                lower,
                upper,
                widths,
            }
        });
        let errors = exact
            .iter()
            .zip(&estimated)
            .map(|(exact, estimated)| relative_error(*estimated, *exact, floor))
            .collect();
        Self {
            exact,
            estimated,
            errors,
            bounds,
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
        let fields = report_fields(self.bounds.is_some());
        let mut arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(1..=count)),
            Arc::new(StringArray::from_iter_values(columns)),
            Arc::new(predicates),
            Arc::new(Float64Array::from(self.exact)),
            Arc::new(Float64Array::from(self.estimated)),
            Arc::new(Float64Array::from(self.errors)),
        ];
        if let Some(bounds) = self.bounds {
            arrays.push(Arc::new(Float64Array::from(bounds.lower)));
            arrays.push(Arc::new(Float64Array::from(bounds.upper)));
            arrays.push(Arc::new(Float64Array::from(bounds.widths)));
        }
        list(Arc::new(StructArray::try_new(fields, arrays, None)?))
    }

    fn summary(&self) -> Result<ScalarValue> {
        let summary = Summary::of(&self.errors);
        let widths = self.bounds.as_ref().map(|b| Summary::of(&b.widths));
        let count = |n: u64| Arc::new(Int64Array::from(vec![n as i64])) as ArrayRef;
        let error = |e: Option<f64>| Arc::new(Float64Array::from(vec![e])) as ArrayRef;
        let mut arrays = vec![count(summary.queries), count(summary.without_error)];
        for summary in [Some(summary), widths].into_iter().flatten() {
            arrays.extend([summary.mean, summary.median, summary.p95, summary.max].map(error));
        }
        let fields = summary_fields(self.bounds.is_some());
        let row = StructArray::try_new(fields, arrays, None)?;
        debug_assert_eq!(row.len(), 1);
        Ok(ScalarValue::Struct(Arc::new(row)))
    }
}
